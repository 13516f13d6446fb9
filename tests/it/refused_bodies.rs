//! Requests that are refused before their body is read: the client hears the answer, and its connection goes on or is
//! said to end (RFC 9112, section 9.6).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tests::{TestApp, on_both_backends};

on_both_backends!(
    a_connection_goes_on_after_a_refusal,
    a_connection_ends_where_too_much_is_left,
    who_waits_to_be_asked_for_the_body_sends_none,
    who_waits_to_be_asked_for_the_body_is_not_asked_for_too_much,
);

/// Longer than anything takes to be answered.
const HANGS: Duration = Duration::from_mins(1);
/// The largest body (contract 15).
const MOST_BODY_BYTES: usize = 1024 * 1024;

struct Client(BufReader<TcpStream>);

/// The head of an answer.
struct Head {
    status: String,
    headers: Vec<String>,
}

impl Head {
    fn closes(&self) -> bool {
        self.headers
            .iter()
            .any(|header| header == "connection: close")
    }
}

impl Client {
    fn connect(app: &TestApp) -> Self {
        let address = app.access.base_url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Sends a request with a body of spaces.
    fn post(&mut self, path: &str, headers: &str, length: usize) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        self.send(head.as_bytes());
        self.send(&vec![b' '; length]);
    }

    /// Reads an answer to its end.
    fn answer(&mut self) -> Head {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "closed after {lines:?}"
            );
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            lines.push(line.to_ascii_lowercase());
        }
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).unwrap();
        let status = lines.remove(0)["http/1.1 ".len()..][..3].to_owned();
        Head {
            status,
            headers: lines,
        }
    }
}

async fn a_connection_goes_on_after_a_refusal(app: &mut TestApp) {
    let key = format!("Authorization: Bearer {}\r\n", app.access.write_key);
    let json = "Content-Type: application/json\r\n";
    let surveys = app.path("/surveys");
    let cases: [(&str, String, &str); 5] = [
        ("/v1/sdk/ingest", json.to_owned(), "401"),
        (&surveys, format!("{json}{key}"), "403"),
        ("/v1/nothing", json.to_owned(), "404"),
        ("/v1/errors", json.to_owned(), "405"),
        (
            "/v1/sdk/session",
            format!("{key}Content-Type: text/csv\r\n"),
            "415",
        ),
    ];
    let mut client = Client::connect(app);
    for (path, headers, status) in cases {
        for length in [2, 100_000, MOST_BODY_BYTES] {
            client.post(path, &headers, length);
            let head = client.answer();
            assert_eq!(head.status, status, "{path}");
            assert!(!head.closes(), "{path}, {length} bytes");
        }
    }
    // In chunks too.
    client.send(b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert!(!client.answer().closes());
    client.send(b"GET /v1/errors HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, "200");
}

async fn a_connection_ends_where_too_much_is_left(app: &mut TestApp) {
    for (length, sent) in [(64 * MOST_BODY_BYTES, 2), (100, 99)] {
        let mut client = Client::connect(app);
        let head = format!(
            "POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        );
        client.send(head.as_bytes());
        client.send(&vec![b' '; sent]);
        let head = client.answer();
        assert_eq!(head.status, "404");
        assert!(head.closes(), "{length} bytes");
    }
}

async fn who_waits_to_be_asked_for_the_body_sends_none(app: &mut TestApp) {
    let mut client = Client::connect(app);
    client.send(b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let head = client.answer();
    assert_eq!(head.status, "404");
    assert!(head.closes());
}

async fn who_waits_to_be_asked_for_the_body_is_not_asked_for_too_much(app: &mut TestApp) {
    let authorization = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let json = format!(
        "{}Content-Type: application/json\r\n",
        authorization(&app.access.write_key)
    );
    let component = format!(
        "{}Content-Type: application/wasm\r\n",
        authorization(&app.access.admin_token)
    );
    let plugins = app.path("/plugins");
    for (path, headers, length, status) in [
        ("/v1/sdk/session", &json, MOST_BODY_BYTES + 1, "413"),
        ("/v1/sdk/session", &json, MOST_BODY_BYTES, "100"),
        (&plugins, &component, 64 * MOST_BODY_BYTES + 1, "422"),
    ] {
        let mut client = Client::connect(app);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        );
        client.send(head.as_bytes());
        let head = client.answer();
        assert_eq!(head.status, status, "{path}, {length} bytes");
        assert_eq!(head.closes(), status != "100", "{path}, {length} bytes");
    }
}
