//! One message to one device.

use std::sync::Arc;

use nudge_campaigns::push::message::Message;
use nudge_db::{Db, Error};
use nudge_platform::clock::Clock;
use nudge_platform::config;
use nudge_platform::outbound::{Guard, lookups};
use nudge_platform::secrets::Secrets;
use uuid::Uuid;

use super::apns::Apns;
use super::fcm::Fcm;
use super::opened::{Cache, Opened};
use super::payload::{MOST_PAYLOAD_BYTES, payload_bytes};
use super::used::UsedCredentials;
use super::webpush::Webpush;
use super::{Address, PushOutcome, Target};
use crate::credentials::store::Stored;
use crate::credentials::{self, Status};
use crate::tokens;

/// Sends messages through the push services.
pub struct Providers {
    db: Db,
    secrets: Secrets,
    clock: Clock,
    apns: Apns,
    fcm: Fcm,
    webpush: Webpush,
    guard: Guard,
    opened: Cache,
    used: UsedCredentials,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Providers(***)")
    }
}

impl Providers {
    /// Clients of the configured services. `guard` says where browsers' endpoints may be.
    pub fn new(
        db: &Db,
        secrets: &Secrets,
        clock: &Clock,
        config: &config::Push,
        guard: Guard,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            db: db.clone(),
            secrets: secrets.clone(),
            clock: clock.clone(),
            apns: Apns::new(config, guard.lookups())?,
            fcm: Fcm::new(config, guard.lookups())?,
            webpush: Webpush::new(config, guard.clone())?,
            guard,
            opened: Cache::default(),
            used: UsedCredentials::default(),
        })
    }

    /// Says where browsers' endpoints may be.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Reads an app's credentials anew: they have changed. Other processes do so within 250 ms.
    pub fn credentials_changed(&self, app_id: Uuid) {
        self.used.forget(app_id);
    }

    /// Sends a message to a device of an app, with the app's credential. A token that its provider does not know any
    /// longer is retired, a credential that is refused is marked, before this returns. No transaction may be open.
    ///
    /// Errors are the database's; the same message may be sent again then.
    pub async fn send(
        &self,
        app_id: Uuid,
        target: &Target,
        message: &Message,
    ) -> Result<PushOutcome, Error> {
        let now = self.clock.now();
        if payload_bytes(target.provider, message) > MOST_PAYLOAD_BYTES {
            return Ok(rejected("payload_too_large"));
        }
        // One that is for now or never is for its first attempt's now.
        if message.expires_at().is_some_and(|at| at <= now) {
            return Ok(rejected("expired"));
        }
        let Some(stored) = self.used.find(&self.db, app_id, target).await? else {
            return Ok(PushOutcome::NoCredential);
        };
        if stored.record.status == Status::Invalid {
            return Ok(PushOutcome::CredentialInvalid {
                reason: stored.record.status_reason.clone().unwrap_or_default(),
            });
        }
        let opened = self.open(&stored)?;
        let sent = match (&*opened, &target.address) {
            (Opened::Apple(key), Address::Token(token)) => {
                self.apns.send(key, target, token, message, now).await
            }
            (Opened::Google(account), Address::Token(token)) => {
                self.fcm.send(account, token, message, now).await
            }
            (Opened::Web(key), Address::Subscription(subscription)) => {
                let sent = self.webpush.send(key, subscription, message, now);
                lookups::on_behalf_of(app_id, sent).await
            }
            _ => Ok(rejected("wrong_address")),
        };
        let outcome = sent.map_err(corrupt)?;
        count(target, &outcome);
        self.heed(app_id, target, &stored, &outcome).await?;
        Ok(outcome)
    }

    fn open(&self, stored: &Stored) -> Result<Arc<Opened>, Error> {
        if let Some(opened) = self.opened.known(stored.record.id) {
            return Ok(opened);
        }
        let key = stored.open(&self.secrets)?;
        let opened = self.opened.open(stored, &key);
        opened.map_err(corrupt)
    }

    /// Notes what an outcome says of the token or the credential.
    async fn heed(
        &self,
        app_id: Uuid,
        target: &Target,
        stored: &Stored,
        outcome: &PushOutcome,
    ) -> Result<(), Error> {
        match outcome {
            PushOutcome::Unregistered { .. } => {
                let mut tx = self.db.write().await?;
                tokens::store::retire(&mut tx, app_id, &target.registration).await?;
                tx.commit().await
            }
            PushOutcome::CredentialInvalid { reason } => {
                let id = stored.record.id;
                let mut tx = self.db.write().await?;
                let marked = credentials::store::mark_invalid(&mut tx, app_id, id, reason).await?;
                tx.commit().await?;
                self.used.forget(app_id);
                if marked {
                    tracing::warn!(app.id = %app_id, credential.id = %id, reason, "push credential refused by its provider");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn rejected(reason: &str) -> PushOutcome {
    PushOutcome::Rejected {
        reason: reason.to_owned(),
    }
}

fn corrupt(unusable: super::jws::Unusable) -> Error {
    Error::corrupt("push_credentials", "sealed", unusable)
}

fn count(target: &Target, outcome: &PushOutcome) {
    let outcome = match outcome {
        PushOutcome::Accepted { .. } => "accepted",
        PushOutcome::Unregistered { .. } => "unregistered",
        PushOutcome::Rejected { .. } => "rejected",
        PushOutcome::Retry { .. } => "retry",
        PushOutcome::Unknown => "unknown",
        PushOutcome::CredentialInvalid { .. } => "credential_invalid",
        PushOutcome::NoCredential => "no_credential",
    };
    metrics::counter!("nudge_push_provider_answers_total", "provider" => target.provider.name(), "outcome" => outcome)
        .increment(1);
}
