//! What `nudge plugin logs` and `nudge dead-letters replay` make of what goes wrong meanwhile (contract 12, 14).

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::plugin_command_remote::{Script, complaint, dead_letters, nudge};

/// Starts a server that answers one connection after another; to none it closes the connection.
#[expect(
    clippy::disallowed_methods,
    reason = "the server ends with the test's runtime"
)]
async fn serve(answers: Vec<Option<(u16, Value)>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(tokio::task::spawn(async move {
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let Some((status, body)) = answer else {
                continue;
            };
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).await.unwrap();
            let (body, words) = (body.to_string(), "Connection: close\r\nContent-Length");
            let text = format!(
                "HTTP/1.1 {status} X\r\n{words}: {}\r\n\r\n{body}",
                body.len()
            );
            connection.write_all(text.as_bytes()).await.unwrap();
        }
    }));
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_followed_past_a_restart_of_the_server() {
    let page = |message: &str| {
        let line = json!({"at": "2026-01-31T09:30:01.000Z", "version": "1.0.0", "level": "warn", "message": message});
        Some((200, json!({"data": {"items": [line], "nextCursor": null}})))
    };
    let problem = |status: u16, code: &str| Some((status, json!({"code": code, "title": code})));
    let url = serve(vec![
        page("one"),
        None,
        None,
        problem(503, "unavailable"),
        page("two"),
        problem(429, "rate_limited"),
        page("three"),
        problem(401, "invalid_credentials"),
    ])
    .await;
    let followed = nudge(&url, &["logs", "cart", "--follow"]).await;
    let shown = String::from_utf8(followed.stdout).unwrap();
    let messages: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(messages, ["one", "two", "three"]);
    assert_eq!(followed.status.code(), Some(1));
    let told = String::from_utf8(followed.stderr).unwrap();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("can't be reached"), "{told:?}");
    assert!(told[1].contains("429 rate_limited"), "{told:?}");
    assert_eq!(
        told[2],
        "nudge: 401 invalid_credentials: invalid_credentials"
    );

    // Whoever was never answered is told at once.
    let url = serve(vec![problem(503, "unavailable")]).await;
    let told = complaint(&nudge(&url, &["logs", "cart", "--follow"]).await);
    assert!(told.starts_with("nudge: 503 unavailable"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_lines_says_so() {
    let nothing = json!({"data": {"items": [], "nextCursor": null}});
    let (_script, url) = Script::start(&[(200, nothing.clone()), (200, nothing)]).await;
    let logs = nudge(&url, &["logs", "cart"]).await;
    assert!(logs.status.success(), "{logs:?}");
    assert_eq!(logs.stdout, b"");
    let told = String::from_utf8(logs.stderr).unwrap();
    assert_eq!(
        told,
        "nudge: cart logged nothing; `nudge plugin status cart` says how it fares\n"
    );
    let logs = nudge(&url, &["logs", "cart", "--json"]).await;
    assert_eq!(logs.stdout, b"[]\n");
    assert_eq!(logs.stderr, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_after_which_letters_fail_still_has_failed() {
    let ended = |result: Value| {
        [
            (202, json!({"data": {"jobId": "j"}})),
            (
                200,
                json!({"data": {"status": "completed", "result": result}}),
            ),
        ]
    };
    let answers = [
        ended(json!({"replayed": 1, "stillFailing": 6})),
        ended(json!({"replayed": 7, "stillFailing": 0})),
    ];
    let (_script, url) = Script::start(&answers.concat()).await;
    let replayed = dead_letters(&url, &["replay", "--all"]).await;
    assert_eq!(replayed.status.code(), Some(1));
    assert_eq!(replayed.stdout, b"replayed: 1\nstillFailing: 6\n");
    assert_eq!(complaint(&replayed), "nudge: 6 events fail still\n");
    let replayed = dead_letters(&url, &["replay", "--all"]).await;
    assert!(replayed.status.success(), "{replayed:?}");
}
