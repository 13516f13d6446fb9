//! Signing in to the console of two servers on one PostgreSQL database: what a login needs is in the database, and sealed.

use nudge_platform::config::Config;
use reqwest::Url;
use serde_json::json;
use tempfile::TempDir;

use crate::concurrency::join;
use crate::console_login::{Login, console_client, nothing, session, signed_in, there, tokens};
use crate::oidc::fake::{FakeIssuer, Signer};
use crate::two_servers::node_with;

/// A part of a form that the provider was sent.
fn part(form: &str, name: &str) -> String {
    let url = Url::parse(&format!("http://x/?{form}")).unwrap();
    let found = url.query_pairs().find(|(one, _)| one == name);
    found
        .unwrap_or_else(|| unreachable!("{name} is in {form}"))
        .1
        .into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_begins_another_goes_on_with() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (issuer, signer) = (FakeIssuer::start().await, Signer::ed("d"));
    issuer.publish_login(std::slice::from_ref(&signer), &json!({}));
    let with_issuer = |config: &mut Config| {
        config.auth.issuers = vec![console_client(&issuer.url)];
    };
    let one = node_with(&url, folder.path(), "one", &with_issuer).await;
    let two = node_with(&url, folder.path(), "two", &with_issuer).await;
    // What stands in front of both leaves the name as the browser has it.
    let name = one.access.base_url.trim_start_matches("http://");

    // The second server knows the nonce that the first one chose.
    let mut other = Login::begin(&one, "").await;
    other.secret = other.secret.and("host", name);
    let mixed_up = json!({"access": {}, "identity": {"nonce": "another"}, "answer": {}});
    issuer.answer_tokens(200, &tokens(&one, &issuer, &signer, "", &mixed_up));
    let answer = other.finish(&two, json!({})).await;
    assert_eq!(there(&answer), "/console/#error=login_failed");

    let mut login = Login::begin(&one, "?return=/surveys").await;
    login.secret = login.secret.and("host", name);
    let strange = json!({"state": other.asked["state"]});
    let answer = login.finish(&two, strange).await;
    assert_eq!(there(&answer), "/console/#error=login_expired");
    let nonce = &login.asked["nonce"];
    issuer.answer_tokens(200, &tokens(&one, &issuer, &signer, nonce, &nothing()));
    let answer = login.finish(&two, json!({})).await;
    assert_eq!(there(&answer), "/console/#/surveys");
    let who = signed_in(&answer);
    let (form, _) = issuer.token_requests().pop().unwrap();
    assert_eq!(part(&form, "redirect_uri"), login.asked["redirect_uri"]);
    for server in [&one, &two] {
        session(server, &who).await.ok();
        let again = login.finish(server, json!({})).await;
        assert_eq!(there(&again), "/console/#error=login_expired");
    }
    let mut tx = one.services().db.read().await.unwrap();
    let sealed = tx.sql("SELECT sealed FROM console_sessions");
    let sealed: String = sealed.fetch_scalar().await.unwrap();
    drop(tx);
    assert!(sealed.starts_with("s1.") && !sealed.contains("refresh"));

    // Either renews what the other one got: one of them, when both are asked at once.
    let mut used = "the-first-refresh-token".to_owned();
    for round in 0..4 {
        one.advance(280);
        two.advance(280);
        let next = format!("after-{round}");
        let change = json!({"access": {}, "identity": {}, "answer": {"refresh_token": next}});
        issuer.answer_tokens(200, &tokens(&one, &issuer, &signer, "", &change));
        let asked = issuer.token_requests().len();
        let servers = match round {
            0 => [&one, &one],
            1 => [&two, &two],
            _ => [&one, &two],
        };
        for answer in join((0..6).map(|number| session(servers[number % 2], &who))).await {
            answer.ok();
        }
        let requests = issuer.token_requests();
        assert_eq!(requests.len(), asked + 1, "one request renews");
        let form = &requests.last().unwrap().0;
        assert_eq!(part(form, "grant_type"), "refresh_token");
        assert_eq!(part(form, "refresh_token"), used);
        used = next;
    }

    one.delete("/console/session", &who).await.data(204);
    session(&two, &who)
        .await
        .refused(401, "invalid_credentials");
    one.finish().await;
    two.finish().await;
}
