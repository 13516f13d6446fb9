//! People with a device each, and the push services of the driver's own that reach them.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::ValueEnum;
use nudge_db::{Db, Rows, Timestamp, Tx};
use nudge_platform::clock::Clock;
use nudge_platform::id;
use nudge_platform::sealed::{Sealed, SealedColumn};
use nudge_platform::secrets::Secrets;
use nudge_push::providers::Subscription;
use nudge_records::deliveries::provider::Provider;
use serde_json::{Value, json};
use tests::providers::{Providers, Received, apns, fcm};
use uuid::Uuid;

use crate::child::{MASTER_KEY, Process};

/// Rows of a statement and transaction.
const ROWS: usize = 500;

/// A service that reaches devices.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Service {
    Apns,
    Fcm,
    /// With one browser's keys for all.
    Webpush,
}

impl Service {
    fn provider(self) -> Provider {
        match self {
            Self::Apns => Provider::Apns,
            Self::Fcm => Provider::Fcm,
            Self::Webpush => Provider::Webpush,
        }
    }
}

/// Devices that one service reaches.
#[derive(Clone, Copy)]
pub(crate) struct Device<'p> {
    service: Service,
    providers: &'p Providers,
}

impl<'p> Device<'p> {
    pub(crate) fn of(service: Service, providers: &'p Providers) -> Self {
        Self { service, providers }
    }

    /// The body that uploads a credential for the service.
    pub(crate) fn credential(&self) -> Value {
        match self.service {
            Service::Apns => self.providers.apns.credential(),
            Service::Fcm => self.providers.fcm.credential(),
            Service::Webpush => {
                json!({"platform": "web", "vapid": {"generate": true, "subject": "mailto:push@shop.example"}})
            }
        }
    }

    /// What the service got.
    pub(crate) fn received(&self) -> Vec<Received> {
        match self.service {
            Service::Apns => self.providers.apns.received(),
            Service::Fcm => self.providers.fcm.received(),
            Service::Webpush => self.providers.webpush.received(),
        }
    }

    /// What the service calls a device.
    pub(crate) fn name(&self, number: u32) -> String {
        match self.service {
            Service::Apns => apns::device_token(number),
            Service::Fcm => fcm::registration_token(number),
            Service::Webpush => format!("/push/{number}"),
        }
    }

    /// What the service calls the device that a request is for.
    pub(crate) fn of_request(&self, request: &Received) -> anyhow::Result<String> {
        Ok(match self.service {
            Service::Apns => {
                let name = request.path.strip_prefix("/3/device/");
                name.context("a device's path")?.to_owned()
            }
            Service::Fcm => {
                let body = request.json();
                let token = body.pointer("/message/token").and_then(Value::as_str);
                token.context("a token")?.to_owned()
            }
            Service::Webpush => request.path.clone(),
        })
    }

    /// Where a device is, as the server keeps it.
    fn address(&self, number: u32) -> anyhow::Result<String> {
        Ok(match self.service {
            Service::Apns | Service::Fcm => self.name(number),
            Service::Webpush => {
                let service = &self.providers.webpush;
                let registration = service.browser(1).token();
                let key = |name: &str| {
                    let key = registration.pointer(&format!("/subscription/keys/{name}"));
                    let key = key.and_then(Value::as_str).context("a key")?;
                    anyhow::Ok(URL_SAFE_NO_PAD.decode(key)?)
                };
                serde_json::to_string(&Subscription {
                    endpoint: format!("{}{}", service.url, self.name(number)),
                    p256dh: key("p256dh")?,
                    auth: key("auth")?,
                })?
            }
        })
    }
}

/// Makes people with a name and a device each, past the server.
pub(crate) async fn people(
    db: &Db,
    process: &Process,
    device: &Device<'_>,
    count: usize,
) -> anyhow::Result<Vec<Uuid>> {
    let app_id: Uuid = process.access("appId")?.parse()?;
    let now = Clock::default().now();
    let mut people = Vec::with_capacity(count);
    while people.len() < count {
        let size = ROWS.min(count - people.len());
        let ids: Vec<Uuid> = (0..size).map(|_| id::new(now)).collect();
        let mut tx = db.write().await?;
        some_people(&mut tx, app_id, &ids, now).await?;
        register(&mut tx, app_id, &ids, (device, people.len())).await?;
        tx.commit().await?;
        people.extend(ids);
    }
    Ok(people)
}

async fn some_people(
    tx: &mut Tx,
    app_id: Uuid,
    ids: &[Uuid],
    now: Timestamp,
) -> anyhow::Result<()> {
    let rows = || Rows::new().uuids(ids.iter().copied());
    tx.with_rows("v(id)", rows())
        .push(
            " INSERT INTO subjects (id, suppressed, first_seen_at, last_seen_at, event_count, session_number,
                                    instruction_count, last_seq, version, app_id)
              SELECT v.id, ",
        )
        .push_bind(false)
        .push(", ")
        .push_bind(now)
        .push(", ")
        .push_bind(now)
        .push(", 0, 0, 0, 0, 0, ")
        .push_bind(app_id)
        .push(" FROM v WHERE true")
        .execute()
        .await?;
    let names = rows().texts(ids.iter().map(|id| format!("person-{id}")));
    tx.with_rows("v(id, name)", names)
        .push(
            " INSERT INTO aliases (kind, value, folded, subject_id, token_epoch, created_at, app_id)
              SELECT 'anonymous', v.name, v.name, v.id, 0, ",
        )
        .push_bind(now)
        .push(", ")
        .push_bind(app_id)
        .push(" FROM v WHERE true")
        .execute()
        .await?;
    tx.with_rows("v(id)", rows())
        .push(
            " INSERT INTO subject_properties (subject_id, value, source, key, updated_at, app_id)
              SELECT v.id, '\"Ada\"', 'sdk', 'first_name', ",
        )
        .push_bind(now)
        .push(", ")
        .push_bind(app_id)
        .push(" FROM v WHERE true")
        .execute()
        .await?;
    Ok(())
}

/// Registers a device of each, of ascending numbers from the first one on.
pub(crate) async fn register(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Uuid],
    (device, first): (&Device<'_>, usize),
) -> anyhow::Result<()> {
    let secrets = Secrets::open(MASTER_KEY, Path::new(""))?;
    let now = Clock::default().now();
    for (number, subject_id) in (u32::try_from(first)?..).zip(subjects) {
        let registration = id::new(now).to_string();
        let place = SealedColumn {
            table: "push_tokens",
            row: &registration,
        };
        let sealed = Sealed::seal(&secrets, place, device.address(number)?.as_bytes())?;
        tx.sql(
            "INSERT INTO push_tokens (app_id, device_id, subject_id, registration, provider, environment, token_hash,
                                      token_suffix, sealed, status, registered_at)
             VALUES ($1, $2, $3, $4, $5, 'production', $2, '', $6, 'active', $7)",
        )
        .bind(app_id)
        .bind(format!("device-{number}"))
        .bind(*subject_id)
        .bind(registration.clone())
        .bind(device.service.provider().name().to_owned())
        .bind(sealed)
        .bind(now)
        .execute()
        .await?;
    }
    Ok(())
}
