//! Signatures of requests (specification 6.3) and those of Standard Webhooks, which existing libraries verify.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nudge_db::Timestamp;
use uuid::Uuid;

use super::Secret;

/// What a request is signed with and about.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The endpoint's secrets, the newest first.
    pub secrets: &'a [Secret],
    /// The message.
    pub id: Uuid,
    /// When it is sent.
    pub at: Timestamp,
    /// The bytes of the body.
    pub body: &'a str,
}

impl Signed<'_> {
    /// `X-Service-Signature`: `t=<seconds>,v1=<signature>` with a `v1` for each secret, each the Base64 for URLs
    /// without padding (RFC 4648 5) of an HMAC-SHA256 over `<seconds>.<body>`.
    pub fn service(&self) -> String {
        let seconds = self.at.seconds().to_string();
        let mut text = format!("t={seconds}");
        for secret in self.secrets {
            let signature = sign(secret, &[&seconds, ".", self.body]);
            text.push_str(",v1=");
            text.push_str(&URL_SAFE_NO_PAD.encode(signature));
        }
        text
    }

    /// `webhook-signature`: a `v1,<signature>` for each secret, each the Base64 of an HMAC-SHA256 over
    /// `<id>.<seconds>.<body>`.
    pub fn standard(&self) -> String {
        let (id, seconds) = (self.id.to_string(), self.at.seconds().to_string());
        let signatures = self.secrets.iter().map(|secret| {
            let signature = sign(secret, &[&id, ".", &seconds, ".", self.body]);
            format!("v1,{}", STANDARD.encode(signature))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

fn sign(secret: &Secret, parts: &[&str]) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.bytes());
    let mut context = hmac::Context::with_key(&key);
    for part in parts {
        context.update(part.as_bytes());
    }
    context.sign()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_signs_the_newest_first() {
        let secrets = [Secret::new([1; 32]), Secret::new([2; 32])];
        let signed = |secrets| Signed {
            secrets,
            id: Uuid::from_u128(7),
            at: Timestamp(1_614_265_330_999_999),
            body: r#"{"test": 2432232314}"#,
        };
        // Made with Python's hmac.
        let one = signed(&secrets[..1]).service();
        assert_eq!(
            one,
            "t=1614265330,v1=6k4hpraRS5XO0DQi17xxz-a9SL30z06CkrStVx0ABQI"
        );
        let both = signed(&secrets).service();
        assert_eq!(
            both,
            format!("{one},v1=4CsO7rOPaCMIh3IYB8Xj_BuyZSb46Gm2nVVo87DwT3s")
        );
        assert_eq!(
            signed(&secrets).standard(),
            "v1,/NUTX+hct+NncvE2Rok+YD81shn97DKzndUk0Zt6wNM= v1,KQWx8NB9UEvnVff5lEHuFKfXJ3lsFf0oxah8OjIJQAU="
        );
    }
}
