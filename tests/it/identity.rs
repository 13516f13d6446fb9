//! Identity tokens: what they must say, and whom they link (contract 2).

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_platform::clock;
use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    each_algorithm_identifies,
    a_token_that_is_not_right_identifies_nobody,
    algorithms_are_the_keys_own,
    a_removed_key_identifies_nobody,
    a_person_is_found_by_all_ids,
    tokens_from_before_the_identification_are_revoked,
    an_identified_session_takes_proof,
    a_session_is_no_longer_than_its_proof,
    two_identified_people_never_merge,
    concurrent_first_sessions_link_once,
    a_browser_session_follows_its_person,
);

enum Signer {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

/// A customer's backend with an identity key that is registered at the app.
pub(crate) struct Backend {
    signer: Signer,
    kid: &'static str,
    app_id: Uuid,
}

impl Backend {
    /// A backend with an Ed25519 key.
    pub(crate) async fn new(app: &TestApp) -> Self {
        Self::with(app, "ed", Signer::Ed(Ed25519KeyPair::generate().unwrap())).await
    }

    async fn with(app: &TestApp, kid: &'static str, signer: Signer) -> Self {
        let backend = Self {
            signer,
            kid,
            app_id: app.access.app_id,
        };
        let body = json!({"kid": kid, "publicKey": backend.jwk()});
        app.post(&app.path("/identity-keys"), &app.admin(), &body)
            .await
            .data(201);
        backend
    }

    fn jwk(&self) -> Value {
        match &self.signer {
            Signer::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            Signer::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
            Signer::Rsa(pair) => {
                let n = pair
                    .public_key()
                    .modulus()
                    .big_endian_without_leading_zero();
                let e = pair
                    .public_key()
                    .exponent()
                    .big_endian_without_leading_zero();
                json!({"kty": "RSA", "n": encode(n), "e": encode(e)})
            }
        }
    }

    fn algorithm(&self) -> &'static str {
        match &self.signer {
            Signer::Ec(_) => "ES256",
            Signer::Ed(_) => "EdDSA",
            Signer::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let content = content(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.signer {
            Signer::Ec(pair) => pair
                .sign(&random, content.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Signer::Ed(pair) => pair.sign(content.as_bytes()).as_ref().to_vec(),
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &random,
                    content.as_bytes(),
                    &mut signature,
                )
                .unwrap();
                signature
            }
        };
        format!("{content}.{}", encode(&signature))
    }

    fn claims(&self, app: &TestApp, external_id: &str) -> Value {
        let now = app.clock.now().seconds();
        json!({"iss": self.app_id, "sub": external_id, "iat": now, "exp": now + 3600})
    }

    fn header(&self) -> Value {
        json!({"alg": self.algorithm(), "typ": "JWT", "kid": self.kid})
    }

    /// A token for an hour.
    pub(crate) fn token(&self, app: &TestApp, external_id: &str) -> String {
        self.sign(&self.header(), &self.claims(app, external_id))
    }

    /// A token that was issued some seconds from now.
    pub(crate) fn token_of(&self, app: &TestApp, external_id: &str, seconds: i64) -> String {
        let mut claims = self.claims(app, external_id);
        claims["iat"] = json!(app.clock.now().seconds() + seconds);
        self.sign(&self.header(), &claims)
    }

    /// Asks for an identified session.
    pub(crate) async fn try_identify(
        &self,
        app: &TestApp,
        anonymous_id: &str,
        external_id: &str,
    ) -> Answer {
        let token = self.token(app, external_id);
        start(
            app,
            &json!({"anonymousId": anonymous_id, "identityToken": token}),
        )
        .await
    }

    /// An identified session.
    pub(crate) async fn identify(
        &self,
        app: &TestApp,
        anonymous_id: &str,
        external_id: &str,
    ) -> Session {
        let data = self.try_identify(app, anonymous_id, external_id).await.ok();
        assert_eq!(data["subject"]["identified"], true);
        assert_eq!(data["subject"]["externalId"], external_id);
        assert_eq!(data["subject"]["anonymousId"], anonymous_id);
        app.opened(anonymous_id, &data)
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn content(header: &Value, claims: &Value) -> String {
    let (header, claims) = (header.to_string(), claims.to_string());
    format!(
        "{}.{}",
        encode(header.as_bytes()),
        encode(claims.as_bytes())
    )
}

async fn start(app: &TestApp, body: &Value) -> Answer {
    app.post("/v1/sdk/session", &app.sdk(), body).await
}

async fn each_algorithm_identifies(app: &mut TestApp) {
    let rsa = Signer::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
    let ec = Signer::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
    let ed = Signer::Ed(Ed25519KeyPair::generate().unwrap());
    for (kid, signer) in [("rsa", rsa), ("ec", ec), ("ed", ed)] {
        let backend = Backend::with(app, kid, signer).await;
        let session = backend.identify(app, &format!("{kid}-phone"), kid).await;
        let event = app.event(&session, "opened", &json!({}));
        assert_eq!(app.ingest(&session, &[event]).await.ok()["accepted"], 1);
    }
}

async fn a_token_that_is_not_right_identifies_nobody(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let (header, claims) = (backend.header(), backend.claims(app, "e-1"));
    let now = app.clock.now().seconds();
    let claim = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        backend.sign(&header, &claims)
    };
    let without = |name: &str| {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().remove(name);
        backend.sign(&header, &claims)
    };
    let good = backend.sign(&header, &claims);
    let mut tampered: Vec<&str> = good.split('.').collect();
    let other = encode(
        json!({"iss": backend.app_id, "sub": "root", "iat": now, "exp": now + 60})
            .to_string()
            .as_bytes(),
    );
    tampered[1] = &other;
    let mut wrong = vec![
        String::new(),
        "x".to_owned(),
        "a.b.c".to_owned(),
        tampered.join("."),
        good[..good.len() - 4].to_owned(),
        format!("{good}{}", "A".repeat(9_000)),
        claim("iss", json!(app.id())),
        claim("iss", json!("")),
        claim("sub", json!("")),
        claim("sub", json!(7)),
        claim("sub", json!("x".repeat(257))),
        claim("exp", json!(now)),
        claim("exp", json!(now + 24 * 3600 + 120)),
        claim("exp", json!("soon")),
        claim("iat", json!(now + 120)),
        claim("nbf", json!(now + 120)),
        claim("aid", json!("another")),
        backend.sign(&json!({"alg": "EdDSA", "kid": "unknown"}), &claims),
        backend.sign(&json!({"alg": "EdDSA"}), &claims),
        backend.sign(
            &json!({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false}),
            &claims,
        ),
    ];
    wrong.extend(["iss", "sub", "iat", "exp"].map(without));
    for token in wrong {
        let body = json!({"anonymousId": "ada", "identityToken": token});
        start(app, &body).await.refused(401, "invalid_credentials");
    }
    let made: Vec<(i64,)> = app.rows("SELECT count(*) FROM subjects").await;
    assert_eq!(made, [(0,)]);

    for token in [
        good,
        claim("aid", json!("ada")),
        claim("exp", json!(now + 24 * 3600 + 30)),
        claim("iat", json!(now + 30)),
    ] {
        let data = start(app, &json!({"anonymousId": "ada", "identityToken": token}))
            .await
            .ok();
        assert_eq!(data["subject"]["externalId"], "e-1");
    }
}

async fn algorithms_are_the_keys_own(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let claims = backend.claims(app, "e-1");
    let mut tokens = Vec::new();
    for algorithm in ["none", "None", "HS256", "ES256", "RS256", "PS256", ""] {
        let header = json!({"alg": algorithm, "kid": "ed"});
        tokens.push(backend.sign(&header, &claims));
        tokens.push(format!("{}.", content(&header, &claims)));
    }
    // The public key as the secret of an HMAC, which a verifier takes that believes the header.
    let header = json!({"alg": "HS256", "kid": "ed"});
    let signed = content(&header, &claims);
    let Signer::Ed(pair) = &backend.signer else {
        unreachable!()
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, pair.public_key().as_ref());
    tokens.push(format!(
        "{signed}.{}",
        encode(hmac::sign(&key, signed.as_bytes()).as_ref())
    ));
    for token in tokens {
        let body = json!({"anonymousId": "ada", "identityToken": token});
        start(app, &body).await.refused(401, "invalid_credentials");
    }
}

async fn a_removed_key_identifies_nobody(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let token = backend.token(app, "e-1");
    app.delete(&app.path("/identity-keys/ed"), &app.admin())
        .await
        .data(204);
    let body = json!({"anonymousId": "ada", "identityToken": token});
    start(app, &body).await.refused(401, "invalid_credentials");
}

async fn a_person_is_found_by_all_ids(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let laptop = backend.identify(app, "laptop", "e-1").await;
    assert_eq!(phone.subject_id, laptop.subject_id);
    for session in [&phone, &laptop] {
        let event = app.event(session, "opened", &json!({}));
        assert_eq!(app.ingest(session, &[event]).await.ok()["accepted"], 1);
    }
    let body = json!({"userId": "e-1", "events": [{"name": "paid", "timestamp": app.time(0)}]});
    app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    app.settle().await;

    for id in ["phone", "laptop", "e-1"] {
        let user = app
            .get(&app.path(&format!("/users/{id}")), &app.viewer())
            .await
            .ok();
        assert_eq!(text(&user["profile"], "subjectId"), phone.subject_id);
        assert_eq!(user["profile"]["anonymousId"], "phone");
        assert_eq!(user["profile"]["anonymousIds"], json!(["phone", "laptop"]));
        assert_eq!(user["profile"]["eventCount"], 3);
        let events = app
            .get(&app.path(&format!("/users/{id}/events")), &app.viewer())
            .await
            .ok();
        let mut owners: Vec<Value> = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["anonymousId"].clone())
            .collect();
        owners.sort_by_key(Value::to_string);
        assert_eq!(owners, [json!("laptop"), json!("phone"), Value::Null]);
    }
    let found = app.get(&app.path("/users?q=E-"), &app.viewer()).await.ok();
    assert_eq!(found["total"], 1);
}

async fn tokens_from_before_the_identification_are_revoked(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    // Whoever knows the anonymous id could have got this one.
    let before = app.session("ada").await;
    let after = backend.identify(app, "ada", "e-1").await;
    assert_eq!(before.subject_id, after.subject_id);
    app.poll(&before, "")
        .await
        .refused(401, "subject_token_expired");
    app.poll(&after, "").await.ok();
    // Another session revokes nothing.
    backend.identify(app, "ada", "e-1").await;
    app.poll(&after, "").await.ok();
}

async fn an_identified_session_takes_proof(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let laptop = backend.identify(app, "laptop", "e-1").await;
    let stranger = app.session("stranger").await;
    let body = json!({"anonymousId": "phone"});
    start(app, &body).await.refused(401, "identity_required");
    let with = async |session: &Session| {
        app.post("/v1/sdk/session", &session.credential(), &body)
            .await
    };
    with(&stranger).await.refused(401, "identity_required");
    // Both tokens are the subject's.
    for session in [&phone, &laptop] {
        assert_eq!(with(session).await.ok()["subject"]["externalId"], "e-1");
    }
    app.end(&laptop, &json!({})).await.data(204);
    with(&laptop).await.refused(401, "identity_required");
    app.end(&phone, &json!({})).await.data(204);
    with(&phone).await.refused(401, "identity_required");
    backend.identify(app, "phone", "e-1").await;
}

async fn a_session_is_no_longer_than_its_proof(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let anonymous = start(app, &json!({"anonymousId": "other"})).await.ok();
    let lifetime = |data: &Value| {
        let instant = |key: &str| {
            clock::from_text(data[key].as_str().unwrap())
                .unwrap()
                .seconds()
        };
        instant("expiresAt") - instant("serverTime")
    };
    assert_eq!(lifetime(&anonymous), 24 * 3600);
    let data = backend.try_identify(app, "ada", "e-1").await.ok();
    assert!((3590..=3600).contains(&lifetime(&data)), "{data}");
    let session = app.opened("ada", &data);

    // Renewing by the subject token prolongs nothing.
    app.advance(1800);
    let body = json!({"anonymousId": "ada"});
    let renewed = app
        .post("/v1/sdk/session", &session.credential(), &body)
        .await
        .ok();
    assert_eq!(renewed["expiresAt"], data["expiresAt"]);
    app.advance(1801);
    app.poll(&app.opened("ada", &renewed), "")
        .await
        .refused(401, "subject_token_expired");
    let answer = app
        .post("/v1/sdk/session", &session.credential(), &body)
        .await;
    answer.refused(401, "identity_required");

    let now = app.clock.now().seconds();
    let mut claims = backend.claims(app, "e-1");
    claims["exp"] = json!(now + 24 * 3600 + 59);
    let token = backend.sign(&backend.header(), &claims);
    let data = start(app, &json!({"anonymousId": "ada", "identityToken": token}))
        .await
        .ok();
    assert_eq!(lifetime(&data), 24 * 3600);
}

async fn two_identified_people_never_merge(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-1").await;
    backend.identify(app, "laptop", "e-2").await;
    for (device, user) in [("phone", "e-2"), ("laptop", "e-1"), ("phone", "new")] {
        backend
            .try_identify(app, device, user)
            .await
            .refused(409, "identity_conflict");
    }
    app.poll(&ada, "").await.ok();
    let page = app.get(&app.path("/users"), &app.viewer()).await.ok();
    assert_eq!(page["total"], 2);
    let new = app.get(&app.path("/users/new"), &app.viewer()).await;
    new.refused(404, "not_found");
}

async fn concurrent_first_sessions_link_once(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    for round in 0..5 {
        let (phone, user) = (format!("phone-{round}"), format!("e-{round}"));
        if round > 1 {
            app.session(&phone).await;
        }
        if round > 2 {
            let body =
                json!({"userId": user, "events": [{"name": "paid", "timestamp": app.time(0)}]});
            app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
        }
        let all = (0..12).map(|_| backend.identify(app, &phone, &user));
        let sessions = futures_util::future::join_all(all).await;
        assert!(
            sessions
                .iter()
                .all(|session| session.subject_id == sessions[0].subject_id)
        );
        app.poll(&sessions[0], "").await.ok();
    }
    // The same device for two users at once: one of them has it.
    let answers = futures_util::future::join_all((0..12).map(|number| {
        let user = if number % 2 == 0 { "x" } else { "y" };
        backend.try_identify(app, "shared", user)
    }))
    .await;
    let mut winners: Vec<Value> = Vec::new();
    for answer in &answers {
        if answer.status == 200 {
            winners.push(answer.ok()["subject"]["externalId"].clone());
        } else {
            answer.refused(409, "identity_conflict");
        }
    }
    winners.dedup();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let page = app.get(&app.path("/users"), &app.viewer()).await.ok();
    assert_eq!(page["total"], 6);
}

async fn a_browser_session_follows_its_person(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    let client = app.id();
    let body = json!({"anonymousId": "web", "clientId": client});
    start(app, &body).await.ok();
    let token = backend.token(app, "e-1");
    let data = start(
        app,
        &json!({"anonymousId": "web", "clientId": client, "identityToken": token}),
    )
    .await
    .ok();
    assert_eq!(data["clientId"], json!(client));
    let session = app.opened("web", &data);
    let event = app.event(&session, "opened", &json!({}));
    let mut batch = session.batch(std::slice::from_ref(&event));
    batch["delivery"] = json!({"eventIds": [event["eventId"]], "clientId": client});
    app.post_batch(&session, &batch).await.ok();

    // A browser session of somebody else links nobody.
    let theirs = app.id();
    start(app, &json!({"anonymousId": "stranger", "clientId": theirs}))
        .await
        .ok();
    let token = backend.token(app, "e-1");
    let body = json!({"anonymousId": "new", "clientId": theirs, "identityToken": token});
    start(app, &body)
        .await
        .refused(403, "client_session_invalid");
    let new = app.get(&app.path("/users/new"), &app.viewer()).await;
    new.refused(404, "not_found");
}
