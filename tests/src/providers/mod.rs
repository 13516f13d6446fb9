//! Push services of the tests' own: real HTTP/2 over TLS, with an authority that is made for the run. They check what
//! arrives as the real ones do, and answer with real statuses and reasons, which a test can choose.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "test support: what fails here fails the test where it stands"
)]

pub mod apns;
pub mod fcm;
mod server;
pub mod webpush;

use std::path::{Path, PathBuf};

use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use apns::Apns;
pub use fcm::Fcm;
pub use server::{Hold, Manner, Received, Reply};
pub use webpush::{Browser, Webpush};

use crate::{Session, TestApp};

/// All push services.
pub struct Providers {
    /// Apple's, for released apps.
    pub apns: Apns,
    /// Apple's, for apps in development.
    pub sandbox: Apns,
    /// Google's.
    pub fcm: Fcm,
    /// That of a browser.
    pub webpush: Webpush,
    roots: PathBuf,
    // Removed with the services.
    _folder: TempDir,
}

/// Who signs the services' certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// A certificate for this machine, and its key in PKCS #8.
    fn certificate(&self) -> (Vec<u8>, Vec<u8>) {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let params = CertificateParams::new(names).expect("parameters");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.der().to_vec(), key.serialize_der())
    }
}

impl Providers {
    /// Starts all of them. They have the clock of the server that they are asked by.
    pub async fn start(clock: &Clock) -> Self {
        let authority = Authority::new();
        let folder = TempDir::with_prefix("nudge-providers-").expect("a folder");
        let roots = folder.path().join("roots.pem");
        std::fs::write(&roots, authority.0.pem()).expect("the authority's file");
        Self {
            apns: Apns::start(&authority, clock, "production").await,
            sandbox: Apns::start(&authority, clock, "sandbox").await,
            fcm: Fcm::start(&authority, clock).await,
            webpush: Webpush::start(&authority, clock).await,
            roots,
            _folder: folder,
        }
    }

    /// Makes a server ask these services.
    pub fn configure(&self, config: &mut Config) {
        config.push.apns.production_url.clone_from(&self.apns.url);
        config.push.apns.sandbox_url.clone_from(&self.sandbox.url);
        config.push.fcm.url.clone_from(&self.fcm.url);
        config.push.extra_root_certificates.clone_from(&self.roots);
        // Browsers' services are on this machine too.
        config.webhooks.allow_private_networks = true;
    }

    /// The file with the certificate of whoever signs the services' certificates.
    pub fn roots(&self) -> &Path {
        &self.roots
    }
}

impl Providers {
    /// What [`configure`](Self::configure) does, for the environment of a server in a process of its own, which
    /// may tell receivers on this machine too.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("NUDGE_PUSH__APNS__PRODUCTION_URL", self.apns.url.clone()),
            ("NUDGE_PUSH__APNS__SANDBOX_URL", self.sandbox.url.clone()),
            ("NUDGE_PUSH__FCM__URL", self.fcm.url.clone()),
            (
                "NUDGE_PUSH__EXTRA_ROOT_CERTIFICATES",
                self.roots.display().to_string(),
            ),
            ("NUDGE_WEBHOOKS__ALLOW_HTTP", "true".to_owned()),
            ("NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS", "true".to_owned()),
        ]
    }
}

impl TestApp {
    /// Starts push services and the server anew, so that it asks them.
    pub async fn with_providers(&mut self) -> Providers {
        let providers = Providers::start(&self.clock).await;
        providers.configure(&mut self.config);
        self.restart().await;
        providers
    }

    /// Uploads a push credential and answers its record.
    pub async fn credential(&self, body: &Value) -> Value {
        let path = self.path("/push/credentials");
        self.post(&path, &self.admin(), body).await.data(201)
    }

    /// Registers a device of a session, `parts` being its provider and token or subscription.
    pub async fn push_token(&self, session: &Session, device_id: &str, parts: &Value) -> Value {
        let mut body = json!({"anonymousId": session.anonymous_id, "deviceId": device_id});
        if let (Some(body), Some(parts)) = (body.as_object_mut(), parts.as_object()) {
            body.extend(parts.clone());
        }
        self.post("/v1/sdk/push-tokens", &session.credential(), &body)
            .await
            .ok()
    }
}
