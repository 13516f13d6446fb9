//! Connections that are only held: no request, half of one, answers that nobody reads. They end, and they keep nobody
//! out, on either listener.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Request;
use h2::client::{Builder, SendRequest};
use serde_json::json;
use tests::{Session, TestApp, on_both_backends};
use tokio::task::JoinSet;

use crate::admission::{open_polls, poll};

on_both_backends!(
    who_sends_no_request_is_let_go,
    a_full_listener_takes_new_clients,
    operators_are_answered_whoever_holds_connections,
    probes_are_answered_while_the_server_works_for_all,
    an_answer_that_is_not_read_ends_its_connection,
    an_answer_of_http_1_that_is_not_read_ends_its_connection,
    who_reads_slowly_gets_everything,
    answers_that_are_not_read_take_so_much_memory_and_no_more,
    old_connections_end_after_what_they_have_in_hand,
    a_connection_has_so_many_requests_in_hand,
    heads_have_a_limit,
    who_is_connected_when_the_server_stops_is_answered,
);

/// Longer than anything takes that does not hang.
const HANGS: Duration = Duration::from_mins(1);
/// What a client of HTTP/2 sends first (RFC 9113, 3.4), and empty settings after it.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// What clients send that never come to a request.
fn no_requests() -> [Vec<u8>; 6] {
    [
        Vec::new(),
        PREFACE[..8].to_vec(),
        PREFACE.to_vec(),
        [PREFACE, SETTINGS].concat(),
        b"G".to_vec(),
        b"GET /v1/errors HTTP/1.1\r\nHost: local".to_vec(),
    ]
}

fn address(app: &TestApp) -> SocketAddr {
    let address = app.access.base_url.trim_start_matches("http://");
    address.parse().unwrap()
}

/// A connection on which so much was sent.
fn connect(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream.write_all(sent).unwrap();
    stream
}

/// A connection with a body of which a byte has been sent.
fn slow_body(app: &TestApp, session: &Session) -> TcpStream {
    let (key, token) = (&app.access.write_key, &session.token);
    let head = format!(
        "POST /v1/sdk/ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1048576\r\n\
         Authorization: Bearer {key}\r\nX-Service-Subject-Token: {token}\r\n\r\n "
    );
    connect(address(app), head.as_bytes())
}

/// The status that a path is answered with.
fn ask(stream: &mut TcpStream, path: &str) -> u16 {
    let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(b"\r\n\r\n") {
        let length = stream.read(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert_ne!(length, 0, "closed after {text:?}");
        answer.extend_from_slice(&buffer[..length]);
    }
    let text = String::from_utf8(answer).unwrap();
    text["HTTP/1.1 ".len()..][..3].parse().unwrap()
}

/// Waits until the server has ended the connection.
fn ends(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let kind = error.kind();
                assert_eq!(kind, ErrorKind::ConnectionReset, "it is still there");
                return;
            }
        }
    }
}

async fn who_sends_no_request_is_let_go(app: &mut TestApp) {
    app.config.server.first_bytes_seconds = 5;
    "127.0.0.1:0".clone_into(&mut app.config.server.ops_listen);
    app.restart().await;
    let both = [address(app), app.operations_address().unwrap()];
    let mut ask_in_time = both.map(|address| connect(address, b""));
    for stream in &mut ask_in_time {
        assert_eq!(ask(stream, "/livez"), 200);
    }
    let silent = both.map(|address| no_requests().map(|sent| connect(address, &sent)));
    for mut stream in silent.into_iter().flatten() {
        ends(&mut stream);
    }
    // Whoever has sent a request in time may send more.
    for stream in &mut ask_in_time {
        assert_eq!(ask(stream, "/livez"), 200);
    }
}

async fn a_full_listener_takes_new_clients(app: &mut TestApp) {
    let most = 32;
    app.config.server.max_connections = most;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let mut polls = JoinSet::new();
    poll(app, &ada, &mut polls);
    open_polls(app, 1).await;

    let nothing = no_requests();
    let mut held: Vec<TcpStream> = (0..most)
        .map(|count| connect(address(app), &nothing[count % nothing.len()]))
        .collect();
    let slow: Vec<TcpStream> = (0..most / 2).map(|_| slow_body(app, &ada)).collect();
    // They go on a little, so that no silence tells them from others.
    let (stop, stopped) = mpsc::channel::<()>();
    let mut trickles: Vec<TcpStream> = slow.iter().map(|it| it.try_clone().unwrap()).collect();
    let trickle = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(100))
            == Err(mpsc::RecvTimeoutError::Timeout)
        {
            // Those that gave way are closed.
            trickles.retain_mut(|stream| stream.write_all(b" ").is_ok());
        }
    });

    let within = Duration::from_secs(app.config.server.first_bytes_seconds);
    for path in ["/v1/errors", "/livez"].repeat(most) {
        let mut new = connect(address(app), b"");
        new.set_read_timeout(Some(within)).unwrap();
        assert_eq!(ask(&mut new, path), 200);
        held.push(new);
        held.push(slow_body(app, &ada));
    }
    drop(stop);
    trickle.join().unwrap();

    // The poll was in hand all the time.
    assert!(polls.try_join_next().is_none());
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    for answer in polls.join_all().await {
        assert_eq!(answer.ok()["items"].as_array().unwrap().len(), 1);
    }
}

async fn operators_are_answered_whoever_holds_connections(app: &mut TestApp) {
    "127.0.0.1:0".clone_into(&mut app.config.server.ops_listen);
    app.restart().await;
    let operators = app.operations_address().unwrap();
    let nothing = no_requests();
    // More than there is room for, those that would be refused included.
    let _held: Vec<TcpStream> = (0..400)
        .map(|count| connect(operators, &nothing[count % nothing.len()]))
        .collect();
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(ask(&mut connect(operators, b""), path), 200);
    }
}

async fn probes_are_answered_while_the_server_works_for_all(app: &mut TestApp) {
    app.config.server.max_connections = 2;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let mut polls = JoinSet::new();
    for count in 1..=2 {
        poll(app, &ada, &mut polls);
        open_polls(app, count).await;
    }
    let nothing = no_requests();
    let _held: Vec<TcpStream> = (0..200)
        .map(|count| connect(address(app), &nothing[count % nothing.len()]))
        .collect();
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/v1/errors", 503),
    ] {
        assert_eq!(ask(&mut connect(address(app), b""), path), status, "{path}");
    }
    assert!(polls.try_join_next().is_none());
    polls.abort_all();
}

/// A connection of HTTP/2 on which the server may send so many bytes of an answer until more is asked for.
async fn multiplexed(app: &TestApp, window: u32) -> (SendRequest<Bytes>, JoinSet<()>) {
    let stream = tokio::net::TcpStream::connect(address(app)).await.unwrap();
    let (requests, connection) = Builder::new()
        .initial_window_size(window)
        .handshake(stream)
        .await
        .unwrap();
    // How it ends is no matter: the server may cut it.
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (requests, driver)
}

type Response = axum::http::Response<h2::RecvStream>;

/// Asks for a path with headers; answers when the head has arrived.
async fn request(
    requests: &SendRequest<Bytes>,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Response, h2::Error> {
    let mut request = Request::get(format!("http://localhost{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut requests = requests.clone().ready().await?;
    let (response, _) = requests.send_request(request.body(()).unwrap(), true)?;
    response.await
}

/// Waits until the server has ended the connection.
async fn ended(mut driver: JoinSet<()>) {
    let ended = tokio::time::timeout(HANGS, driver.join_next()).await;
    assert!(ended.is_ok(), "the connection is still there");
}

async fn an_answer_that_is_not_read_ends_its_connection(app: &mut TestApp) {
    app.config.server.stalled_seconds = 1;
    app.restart().await;
    let (requests, driver) = multiplexed(app, 0).await;
    let response = request(&requests, "/openapi.json", &[]).await.unwrap();
    assert_eq!(response.status(), 200);
    ended(driver).await;

    // One answer is not read to its end, while others on the same connection are.
    let (requests, driver) = multiplexed(app, 1000).await;
    let response = request(&requests, "/openapi.json", &[]).await.unwrap();
    let reads = async {
        while let Ok(mut answer) = request(&requests, "/livez", &[]).await {
            let text = answer.body_mut().data().await;
            if let Some(Ok(text)) = text {
                assert_eq!(text, "ok\n");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let hangs = tokio::time::timeout(HANGS, reads).await.is_err();
    assert!(!hangs, "the connection is still there");
    ended(driver).await;
    drop(response);
}

async fn an_answer_of_http_1_that_is_not_read_ends_its_connection(app: &mut TestApp) {
    app.config.server.stalled_seconds = 1;
    app.restart().await;
    // More than the system takes in advance.
    let pipelined = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(400);
    let mut stream = connect(address(app), pipelined.as_bytes());
    let started = Instant::now();
    while stream.write_all(b"\r\n").is_ok() {
        assert!(started.elapsed() < HANGS, "the connection is still there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn who_reads_slowly_gets_everything(app: &mut TestApp) {
    app.config.server.stalled_seconds = 5;
    app.restart().await;
    let (requests, driver) = multiplexed(app, 16 * 1024).await;
    let response = request(&requests, "/openapi.json", &[]).await.unwrap();
    let length: usize = response.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let mut body = response.into_body();
    let (started, mut read) = (Instant::now(), 0);
    while let Some(piece) = body.data().await {
        read += piece.unwrap().len();
        tokio::time::sleep(Duration::from_millis(400)).await;
        let used = body.flow_control().used_capacity();
        body.flow_control().release_capacity(used).unwrap();
    }
    assert_eq!(read, length);
    // For longer than a client is waited for that reads nothing.
    assert!(started.elapsed() > Duration::from_secs(5));
    drop((requests, body));
    ended(driver).await;
}

async fn answers_that_are_not_read_take_so_much_memory_and_no_more(app: &mut TestApp) {
    app.config.server.answer_memory_bytes = 1024 * 1024;
    app.config.server.stalled_seconds = 3600;
    app.restart().await;
    let (requests, driver) = multiplexed(app, 0).await;
    let mut answers = JoinSet::new();
    for _ in 0..32 {
        let requests = requests.clone();
        answers.spawn(async move { request(&requests, "/openapi.json", &[]).await });
    }
    ended(driver).await;
    drop(answers.join_all().await);
    let description = app.get("/openapi.json", &tests::Credential::none()).await;
    assert!(description.json()["paths"].is_object());
}

async fn old_connections_end_after_what_they_have_in_hand(app: &mut TestApp) {
    app.config.server.max_connection_age_seconds = 4;
    app.restart().await;
    let ada = app.session("ada").await;
    let path = "/v1/sdk/instructions?wait=6";
    let key = format!("Bearer {}", app.access.write_key);
    let headers = [
        ("authorization", key.as_str()),
        ("x-service-subject-token", ada.token.as_str()),
    ];
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\nX-Service-Subject-Token: {}\r\n\r\n",
        ada.token
    );
    let mut first = connect(address(app), head.as_bytes());
    let (requests, driver) = multiplexed(app, 65_535).await;
    let mut polled = request(&requests, path, &headers).await.unwrap();
    assert_eq!(polled.status(), 200);
    assert!(polled.body_mut().data().await.unwrap().is_ok());
    drop(polled);
    // The client would go on.
    ended(driver).await;
    assert!(request(&requests, "/livez", &[]).await.is_err());

    let mut answer = String::new();
    first.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with('}'), "{answer}");
}

async fn a_connection_has_so_many_requests_in_hand(app: &mut TestApp) {
    let default = app.config.server.http2_max_streams as usize;
    assert_eq!(default, 64);
    for most in [default, 3] {
        app.config.server.http2_max_streams = u32::try_from(most).unwrap();
        app.restart().await;
        let (requests, driver) = multiplexed(app, 65_535).await;
        assert_eq!(
            request(&requests, "/livez", &[]).await.unwrap().status(),
            200
        );
        assert_eq!(requests.current_max_send_streams(), most);
        drop(requests);
        ended(driver).await;
    }
}

async fn heads_have_a_limit(app: &mut TestApp) {
    let status = |length: usize| {
        let long = "x".repeat(length);
        let head = format!("GET /v1/errors HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n");
        let mut stream = connect(address(app), head.as_bytes());
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(status(16 * 1024), "HTTP/1.1 200");
    assert_eq!(status(40 * 1024), "HTTP/1.1 431");
}

/// Asks on one connection after the other until nobody listens, and counts the first answer.
fn asks_until_nobody_listens(address: SocketAddr, answered: &AtomicUsize) {
    let head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for number in 0.. {
        let connected = TcpStream::connect_timeout(&address, HANGS);
        if connected
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            return;
        }
        let mut stream = connected.unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        let mut answer = String::new();
        let asked = stream.write_all(head);
        let read = asked.and_then(|()| stream.read_to_string(&mut answer));
        assert!(
            answer.starts_with("HTTP/1.1 200"),
            "{read:?} after {number} answers: {answer}"
        );
        if number == 0 {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn who_is_connected_when_the_server_stops_is_answered(app: &mut TestApp) {
    for _ in 0..10 {
        let address = address(app);
        let answered = Arc::new(AtomicUsize::new(0));
        let clients: [_; 8] = std::array::from_fn(|_| {
            let answered = Arc::clone(&answered);
            std::thread::spawn(move || asks_until_nobody_listens(address, &answered))
        });
        app.until("a client is not answered", async || {
            answered.load(Ordering::Relaxed) == clients.len()
        })
        .await;
        app.stop().await;
        for client in clients {
            let ended = tokio::task::spawn_blocking(|| client.join().unwrap());
            ended.await.unwrap();
        }
        app.resume().await;
    }
}
