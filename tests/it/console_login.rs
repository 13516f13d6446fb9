//! Signing in to the console at an OpenID provider (contract 22): a real one, and a fake one that can do anything wrong.

use std::collections::BTreeMap;

use nudge_platform::config::{Hidden, OidcIssuer};
use nudge_platform::sealed;
use nudge_platform::secrets::Secrets;
use reqwest::{Client, Method, Url};
use serde_json::{Value, json};
use tests::client::send;
use tests::console::{cookie, own_page, with_cookie};
use tests::{Answer, Credential, TestApp, on_both_backends};

use crate::concurrency::join;
use crate::oidc::configured;
use crate::oidc::fake::{FakeIssuer, Signer};
use crate::oidc::provider::{Provider, SECRET};
use crate::programs::has;

on_both_backends!(
    people_sign_in_at_a_real_provider,
    a_login_is_one_browsers_and_goes_on_once,
    what_the_provider_sends_must_be_right,
    tokens_are_renewed_by_one_request_and_a_refusal_ends_the_session,
    what_a_proxy_answers_ends_no_session,
    without_a_refresh_token_a_session_ends_with_its_token,
    what_is_kept_is_sealed_and_sealed_anew,
);

/// Follows nothing by itself.
fn browser() -> Client {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

async fn get(app: &TestApp, path: &str, who: &Credential) -> Answer {
    let request = app.request(Method::GET, path, who).build().unwrap();
    let (http, request) = (browser(), request);
    let response = http.execute(request).await.unwrap();
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}

/// Where an answer leads.
#[track_caller]
pub(crate) fn there(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.header("location")
}

pub(crate) fn console_client(issuer: &str) -> OidcIssuer {
    OidcIssuer {
        client_id: "console".to_owned(),
        client_secret: Hidden(SECRET.to_owned()),
        ..configured(issuer)
    }
}

/// Somebody on the way: their browser's cookie, and what the server told the provider.
pub(crate) struct Login {
    pub(crate) secret: Credential,
    pub(crate) asked: BTreeMap<String, String>,
    address: Url,
}

impl Login {
    pub(crate) async fn begin(app: &TestApp, query: &str) -> Self {
        let path = format!("/console/login{query}");
        let answer = get(app, &path, &Credential::none()).await;
        let address = Url::parse(there(&answer)).unwrap();
        let (secret, attributes) = cookie(&answer, "nudge-login");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        Self {
            secret: Credential::none().and("cookie", &format!("nudge-login={secret}")),
            asked: address.query_pairs().into_owned().collect(),
            address,
        }
    }

    /// Comes back with a code, the query changed.
    pub(crate) async fn finish(&self, app: &TestApp, change: Value) -> Answer {
        let mut query = json!({"code": "c", "state": self.asked["state"]});
        nudge_platform::json::merge::apply(&mut query, change);
        let mut url = Url::parse("http://x/console/callback").unwrap();
        for (name, value) in query.as_object().unwrap() {
            url.query_pairs_mut()
                .append_pair(name, value.as_str().unwrap());
        }
        let path = format!("{}?{}", url.path(), url.query().unwrap());
        get(app, &path, &self.secret).await
    }
}

/// The session that an answer begins.
#[track_caller]
pub(crate) fn signed_in(answer: &Answer) -> Credential {
    assert!(there(answer).starts_with("/console/"), "{}", there(answer));
    let (forgotten, _) = cookie(answer, "nudge-login");
    assert_eq!(forgotten, "");
    with_cookie(&cookie(answer, "nudge").0)
}

pub(crate) async fn session(app: &TestApp, who: &Credential) -> Answer {
    app.get("/console/session", who).await
}

/// A browser at a provider: follows its redirects, with its cookies, and fills in its forms.
struct Visitor {
    http: Client,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    async fn visit(&mut self, url: Url, form: Option<&str>) -> (Url, Answer) {
        let (mut url, mut form) = (url, form);
        for _ in 0..10 {
            let pairs = self.cookies.iter();
            let jar: Vec<String> = pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let request = match form.take() {
                Some(form) => self
                    .http
                    .post(url.clone())
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form.to_owned()),
                None => self.http.get(url.clone()),
            };
            let answer = send(request.header("cookie", jar.join("; "))).await;
            for set in answer.headers.get_all("set-cookie") {
                let pair = set.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
            let location = answer.header("location");
            if !(300..400).contains(&answer.status) || location.is_empty() {
                return (url, answer);
            }
            url = url.join(location).unwrap();
            if url.path() == "/console/callback" {
                return (url, answer);
            }
        }
        unreachable!("it leads in a circle");
    }
}

/// Signs somebody in at the real provider; answers where that sends them.
async fn at_provider(address: &Url, name: &str) -> Url {
    let mut visitor = Visitor {
        http: browser(),
        cookies: BTreeMap::new(),
    };
    let (mut url, mut page) = visitor.visit(address.clone(), None).await;
    for _ in 0..3 {
        if url.path() == "/console/callback" {
            return url;
        }
        assert_eq!(page.status, 200, "{}", page.text);
        let form = if page.text.contains("name=\"login\"") {
            format!("prompt=login&login={name}&password=x")
        } else {
            "prompt=consent".to_owned()
        };
        (url, page) = visitor.visit(url, Some(&form)).await;
    }
    unreachable!("the provider asks and asks: {}", page.text);
}

async fn people_sign_in_at_a_real_provider(app: &mut TestApp) {
    if !has(&["node", "npm"]) {
        return;
    }
    let provider = Provider::start(&app.access.workspace_id.to_string());
    let mut issuer = console_client(&provider.issuer);
    let resource = ("resource".to_owned(), "urn:nudge:ES256".to_owned());
    issuer.login_parameters = BTreeMap::from([resource]);
    app.config.auth.issuers = vec![issuer];
    app.restart().await;

    let refused = session(app, &Credential::none()).await;
    let problem = refused.refused(401, "invalid_credentials");
    let ways = json!({"link": false, "issuers": [provider.issuer]});
    assert_eq!(problem["signIn"], ways);
    for role in ["viewer", "admin"] {
        let login = Login::begin(app, "?return=/surveys%3Ftab%3D1").await;
        assert_eq!(login.asked["code_challenge_method"], "S256");
        let back = at_provider(&login.address, role).await;
        assert_eq!(back.path(), "/console/callback");
        let path = format!("{}?{}", back.path(), back.query().unwrap());
        let answer = get(app, &path, &login.secret).await;
        assert_eq!(there(&answer), "/console/#/surveys?tab=1");
        let who = signed_in(&answer);
        let view = session(app, &who).await.ok();
        assert_eq!(view["subject"], role);
        assert_eq!(view["workspaces"][0]["role"], role);
        assert_eq!(view["operator"], false);
        assert_eq!(view["apps"][0]["id"], json!(app.access.app_id));
        let renamed = app
            .patch(&app.path(""), &who, &json!({"name": "Shop"}))
            .await;
        if role == "viewer" {
            renamed.refused(403, "insufficient_role");
            continue;
        }
        renamed.ok();
        let log = app.get(&app.path("/audit-log"), &who).await.ok();
        assert_eq!(log["items"][0]["actor"], "admin");
        // The same code is good once.
        let again = get(app, &path, &login.secret).await;
        assert_eq!(there(&again), "/console/#error=login_expired");
        // The access token is good for an hour, by which time the provider gives another.
        app.advance(3_570);
        session(app, &who).await.ok();
        app.delete("/console/session", &who).await.data(204);
        session(app, &who).await.refused(401, "invalid_credentials");
    }
}

/// A server with a fake issuer, whose tokens this key signs.
async fn with_fake(app: &mut TestApp) -> (FakeIssuer, Signer) {
    let (issuer, signer) = (FakeIssuer::start().await, Signer::ed("d"));
    issuer.publish_login(std::slice::from_ref(&signer), &json!({}));
    app.config.auth.issuers = vec![console_client(&issuer.url)];
    app.restart().await;
    (issuer, signer)
}

/// What the token endpoint answers to a login, with changes of the claims of both tokens.
pub(crate) fn tokens(
    app: &TestApp,
    issuer: &FakeIssuer,
    signer: &Signer,
    nonce: &str,
    change: &Value,
) -> Value {
    let now = app.clock.now().seconds();
    let workspace = app.access.workspace_id.to_string();
    let mut access = json!({
        "iss": issuer.url, "aud": "nudge", "sub": "ada", "iat": now, "exp": now + 300, "roles": {workspace: "admin"},
    });
    let mut identity = json!({
        "iss": issuer.url, "aud": "console", "sub": "ada", "iat": now, "exp": now + 300, "nonce": nonce,
    });
    nudge_platform::json::merge::apply(&mut access, change["access"].clone());
    nudge_platform::json::merge::apply(&mut identity, change["identity"].clone());
    let mut answer = json!({
        "access_token": signer.sign(&access), "id_token": signer.sign(&identity), "refresh_token": "the-first-refresh-token",
        "token_type": "Bearer", "expires_in": 300,
    });
    nudge_platform::json::merge::apply(&mut answer, change["answer"].clone());
    answer
}

/// A change that changes nothing.
pub(crate) fn nothing() -> Value {
    json!({"access": {}, "identity": {}, "answer": {}})
}

/// Signs somebody in.
async fn sign_in(app: &TestApp, issuer: &FakeIssuer, signer: &Signer) -> Credential {
    let login = Login::begin(app, "").await;
    let answer = tokens(app, issuer, signer, &login.asked["nonce"], &nothing());
    issuer.answer_tokens(200, &answer);
    signed_in(&login.finish(app, json!({})).await)
}

async fn a_login_is_one_browsers_and_goes_on_once(app: &mut TestApp) {
    let (issuer, signer) = with_fake(app).await;
    let login = Login::begin(app, &format!("?issuer={}&return=login%3Dabc", issuer.url)).await;
    let asked = &login.asked;
    let redirect = format!("{}/console/callback", app.access.base_url);
    assert_eq!(login.address.path(), "/auth");
    assert_eq!(asked["redirect_uri"], redirect);
    assert_eq!(asked["client_id"], "console");
    assert_eq!(asked["scope"], "openid");
    assert_eq!(asked["response_type"], "code");
    issuer.answer_tokens(
        200,
        &tokens(app, &issuer, &signer, &asked["nonce"], &nothing()),
    );

    // Another browser has another secret, or none.
    let other = Login::begin(app, "").await;
    for stranger in [&Credential::none(), &other.secret] {
        let path = format!("/console/callback?code=c&state={}", asked["state"]);
        let answer = get(app, &path, stranger).await;
        assert_eq!(there(&answer), "/console/#error=login_expired");
    }
    assert!(issuer.token_requests().is_empty());
    let who = signed_in(&login.finish(app, json!({})).await);
    session(app, &who).await.ok();
    let (form, authorization) = issuer.token_requests().remove(0);
    for part in [
        "grant_type=authorization_code",
        "code=c",
        "code_verifier=",
        "redirect_uri=http",
    ] {
        assert!(form.contains(part), "{form}");
    }
    assert!(!form.contains(SECRET) && authorization.starts_with("Basic "));
    let again = login.finish(app, json!({})).await;
    assert_eq!(there(&again), "/console/#error=login_expired");

    // Whom the provider refuses comes back with an error, which is not repeated.
    let refused = json!({"code": null, "error": "access_denied"});
    assert_eq!(
        there(&other.finish(app, refused).await),
        "/console/#error=login_refused"
    );
    let late = Login::begin(app, "").await;
    app.advance(600);
    assert_eq!(
        there(&late.finish(app, json!({})).await),
        "/console/#error=login_expired"
    );
    let nobody = get(
        app,
        "/console/login?issuer=https://other.example",
        &Credential::none(),
    )
    .await;
    assert_eq!(there(&nobody), "/console/#error=unknown_issuer");

    // A link is the embedded issuer's, and there is none beside configured ones.
    assert!(app.access.console_url.contains("#login="));
    let code = app.console_link(&[], true).await;
    app.post("/console/session", &own_page(), &json!({"code": code}))
        .await
        .refused(401, "invalid_credentials");
}

async fn what_the_provider_sends_must_be_right(app: &mut TestApp) {
    let (issuer, signer) = with_fake(app).await;
    let failed = |change: Value| {
        let mut all = nothing();
        for (part, change) in change.as_object().unwrap() {
            all[part] = change.clone();
        }
        all
    };
    let past = app.clock.now().seconds() - 100;
    let foreign = Signer::ed("d").sign(&json!({}));
    for wrong in [
        json!({"identity": {"nonce": "another"}}),
        json!({"identity": {"nonce": null}}),
        json!({"identity": {"aud": "nudge"}}),
        json!({"identity": {"iss": "https://other.example"}}),
        json!({"identity": {"exp": past}}),
        json!({"identity": {"azp": "other"}}),
        json!({"access": {"aud": "other"}}),
        json!({"access": {"exp": past}}),
        json!({"access": {"sub": null}}),
        json!({"answer": {"access_token": "opaque"}}),
        json!({"answer": {"access_token": null}}),
        json!({"answer": {"id_token": null}}),
        json!({"answer": {"id_token": foreign}}),
        json!({"answer": {"token_type": "DPoP"}}),
    ] {
        let login = Login::begin(app, "").await;
        let answer = tokens(
            app,
            &issuer,
            &signer,
            &login.asked["nonce"],
            &failed(wrong.clone()),
        );
        issuer.answer_tokens(200, &answer);
        let answer = login.finish(app, json!({})).await;
        assert_eq!(there(&answer), "/console/#error=login_failed", "{wrong}");
        assert!(
            answer
                .headers
                .get_all("set-cookie")
                .iter()
                .all(|set| !set.to_str().unwrap().starts_with("nudge="))
        );
    }
    let login = Login::begin(app, "").await;
    let good = tokens(app, &issuer, &signer, &login.asked["nonce"], &nothing());
    issuer.answer_tokens(200, &good);
    let mixed_up = json!({"iss": "https://other.example"});
    assert_eq!(
        there(&login.finish(app, mixed_up).await),
        "/console/#error=login_failed"
    );
    for (status, told) in [
        (400, "login_failed"),
        (401, "login_failed"),
        (503, "provider_unavailable"),
        (429, "provider_unavailable"),
    ] {
        let login = Login::begin(app, "").await;
        issuer.answer_tokens(status, &json!({"error": "invalid_grant"}));
        let answer = login.finish(app, json!({})).await;
        assert_eq!(there(&answer), format!("/console/#error={told}"));
    }
    // One that says that it names itself must.
    issuer.publish_login(
        std::slice::from_ref(&signer),
        &json!({"authorization_response_iss_parameter_supported": true}),
    );
    app.restart().await;
    for (iss, expected) in [
        (Value::Null, "/console/#error=login_failed"),
        (json!(issuer.url), "/console/"),
    ] {
        let login = Login::begin(app, "").await;
        let good = tokens(app, &issuer, &signer, &login.asked["nonce"], &nothing());
        issuer.answer_tokens(200, &good);
        assert_eq!(
            there(&login.finish(app, json!({"iss": iss})).await),
            expected
        );
    }
    // One without the endpoints can't be asked.
    issuer.publish(std::slice::from_ref(&signer));
    app.restart().await;
    let answer = get(app, "/console/login", &Credential::none()).await;
    assert_eq!(there(&answer), "/console/#error=provider_unavailable");
}

async fn tokens_are_renewed_by_one_request_and_a_refusal_ends_the_session(app: &mut TestApp) {
    let (issuer, signer) = with_fake(app).await;
    let who = sign_in(app, &issuer, &signer).await;
    session(app, &who).await.ok();
    assert_eq!(issuer.token_requests().len(), 1);

    // Before its end, and while it goes on.
    for seconds in [250, 290, 400] {
        app.advance(seconds);
        let asked = issuer.token_requests().len();
        let next = json!({"answer": {"refresh_token": format!("after-{asked}")}, "access": {}, "identity": {}});
        issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &next));
        for answer in join((0..6).map(|_| session(app, &who))).await {
            answer.ok();
        }
        let requests = issuer.token_requests();
        assert_eq!(
            requests.len(),
            asked + 1,
            "one of six renews, after {seconds} s"
        );
        let used = if asked == 1 {
            "the-first-refresh-token".to_owned()
        } else {
            format!("after-{}", asked - 1)
        };
        let form = &requests.last().unwrap().0;
        assert!(
            form.contains("grant_type=refresh_token") && form.contains(&used),
            "{form}"
        );
    }

    // A provider that does not answer costs nothing while the token is good, and is asked again later.
    app.advance(270);
    issuer.answer_tokens(503, &json!({}));
    session(app, &who).await.ok();
    let asked = issuer.token_requests().len();
    session(app, &who).await.ok();
    assert_eq!(
        issuer.token_requests().len(),
        asked,
        "it is not asked at once again"
    );
    app.advance(100);
    session(app, &who).await.refused(503, "unavailable");
    app.advance(10);
    // It still gives no other without a refresh token of its own.
    let mut next = nothing();
    next["answer"] = json!({"refresh_token": null});
    issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &next));
    session(app, &who).await.ok();

    // For somebody else, and not at all.
    let other = sign_in(app, &issuer, &signer).await;
    app.advance(250);
    let mut next = nothing();
    next["access"] = json!({"sub": "eve"});
    issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &next));
    session(app, &who).await.refused(401, "invalid_credentials");
    issuer.answer_tokens(400, &json!({"error": "invalid_grant"}));
    session(app, &other)
        .await
        .refused(401, "invalid_credentials");
    issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &nothing()));
    session(app, &other)
        .await
        .refused(401, "invalid_credentials");
}

async fn what_a_proxy_answers_ends_no_session(app: &mut TestApp) {
    let (issuer, signer) = with_fake(app).await;
    let who = sign_in(app, &issuer, &signer).await;
    app.advance(400);
    for (status, answer) in [
        (404, json!({"error": "Not Found"})),
        (403, json!("Forbidden")),
        (408, json!({})),
    ] {
        issuer.answer_tokens(status, &answer);
        session(app, &who).await.refused(503, "unavailable");
        app.advance(10);
    }
    issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &nothing()));
    session(app, &who).await.ok();
    // Some providers have codes of RFC 6749 under another status than 400.
    app.advance(400);
    issuer.answer_tokens(403, &json!({"error": "invalid_grant"}));
    session(app, &who).await.refused(401, "invalid_credentials");
}

async fn without_a_refresh_token_a_session_ends_with_its_token(app: &mut TestApp) {
    let (issuer, signer) = with_fake(app).await;
    let login = Login::begin(app, "").await;
    let mut change = nothing();
    change["answer"] = json!({"refresh_token": null});
    let answer = tokens(app, &issuer, &signer, &login.asked["nonce"], &change);
    issuer.answer_tokens(200, &answer);
    let who = signed_in(&login.finish(app, json!({})).await);
    app.advance(290);
    session(app, &who).await.ok();
    app.advance(11);
    session(app, &who).await.refused(401, "invalid_credentials");
    // Tokens that are good for half a minute are renewed now and then, not by every request.
    let login = Login::begin(app, "").await;
    let mut short = nothing();
    short["access"] = json!({"exp": app.clock.now().seconds() + 30});
    let answer = tokens(app, &issuer, &signer, &login.asked["nonce"], &short);
    issuer.answer_tokens(200, &answer);
    let who = signed_in(&login.finish(app, json!({})).await);
    let asked = issuer.token_requests().len();
    for _ in 0..3 {
        session(app, &who).await.ok();
    }
    assert_eq!(issuer.token_requests().len(), asked + 1);
    // A day is the most, however often it is renewed.
    let who = sign_in(app, &issuer, &signer).await;
    for _ in 0..23 {
        app.advance(3_600);
        issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &nothing()));
        session(app, &who).await.ok();
    }
    app.advance(3_600);
    session(app, &who).await.refused(401, "invalid_credentials");
}

async fn what_is_kept_is_sealed_and_sealed_anew(app: &mut TestApp) {
    const NEW_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let (issuer, signer) = with_fake(app).await;
    let who = sign_in(app, &issuer, &signer).await;
    let stored = |app: &TestApp| {
        let db = app.services().db.clone();
        async move {
            let mut tx = db.read().await.unwrap();
            let sealed = tx.sql("SELECT sealed FROM console_sessions");
            sealed.fetch_scalar::<String>().await.unwrap()
        }
    };
    let before = stored(app).await;
    assert!(before.starts_with("s1.") && !before.contains("refresh"));
    let secrets = &mut app.config.secrets;
    *secrets.previous_keys = vec![secrets.master_key.0.clone()];
    NEW_KEY.clone_into(&mut secrets.master_key);
    // Compiled plugins are authenticated with the key too; other tests share theirs.
    app.config.plugins.cache_dir = std::path::PathBuf::new();
    let secrets = &app.config.secrets;
    let rotated = Secrets::load(secrets, &app.config.server.data_dir).unwrap();
    sealed::reseal(&app.services().db, &rotated, |_, _| {})
        .await
        .unwrap();
    let after = stored(app).await;
    assert_ne!(before, after);
    app.restart().await;
    session(app, &who).await.ok();
    app.advance(280);
    issuer.answer_tokens(200, &tokens(app, &issuer, &signer, "", &nothing()));
    session(app, &who).await.ok();
    assert!(
        issuer
            .token_requests()
            .last()
            .unwrap()
            .0
            .contains("the-first-refresh-token")
    );
}
