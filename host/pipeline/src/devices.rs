//! The devices that people's events come from (contract 5).

use std::collections::BTreeMap;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::projection::Subjects;
use super::work::{Source, Work};

/// Devices that are kept of one person, those that were seen last.
const MOST: i64 = 100;

/// The device that a request came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    id: String,
    sdk_version: Option<String>,
}

impl Device {
    /// A device, if the request named it.
    pub(super) fn of(id: Option<String>, sdk_version: Option<String>) -> Option<Self> {
        id.map(|id| Self { id, sdk_version })
    }
}

/// What a batch tells about a device of a subject. What it does not tell, stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    subject_id: Uuid,
    device_id: String,
    platform: Option<String>,
    app_version: Option<String>,
    sdk_version: Option<String>,
    locale: Option<String>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

/// The devices of a batch, once each. `works` are in order: a later one knows better.
pub(crate) fn sightings(works: &[Work], subjects: &Subjects) -> Vec<Sighting> {
    let mut seen: BTreeMap<(Uuid, &str), Sighting> = BTreeMap::new();
    for work in works {
        let subject = subjects
            .of(work.alias)
            .and_then(|index| subjects.all.get(index));
        let (Source::Request(_), Some(device), Some(subject), Some(stored)) =
            (&work.source, &work.device, subject, work.events.first())
        else {
            continue;
        };
        let (at, origin) = (stored.received_at, &stored.origin);
        let sighting = seen
            .entry((subject.id, &device.id))
            .or_insert_with(|| Sighting {
                subject_id: subject.id,
                device_id: device.id.clone(),
                platform: None,
                app_version: None,
                sdk_version: None,
                locale: None,
                first_seen_at: at,
                last_seen_at: at,
            });
        sighting.first_seen_at = sighting.first_seen_at.min(at);
        sighting.last_seen_at = sighting.last_seen_at.max(at);
        for (known, told) in [
            (&mut sighting.platform, &origin.platform),
            (&mut sighting.app_version, &origin.app_version),
            (&mut sighting.sdk_version, &device.sdk_version),
            (&mut sighting.locale, &origin.locale),
        ] {
            if told.is_some() {
                known.clone_from(told);
            }
        }
    }
    seen.into_values().collect()
}

/// Notes that a subject's device registered a push token. What it runs is told by its events, unless there were
/// none yet.
pub async fn registered(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    device_id: &str,
    platform: &str,
    now: Timestamp,
) -> Result<()> {
    let told = tx
        .sql(
            "SELECT platform FROM devices WHERE app_id = $1 AND subject_id = $2 AND device_id = $3",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(device_id.to_owned())
        .fetch_value::<Option<String>>()
        .await?
        .flatten();
    let sighting = Sighting {
        subject_id,
        device_id: device_id.to_owned(),
        platform: told.or_else(|| Some(platform.to_owned())),
        app_version: None,
        sdk_version: None,
        locale: None,
        first_seen_at: now,
        last_seen_at: now,
    };
    write(tx, app_id, &[sighting]).await
}

/// Adds devices and what is new about them.
pub(crate) async fn write(tx: &mut Tx, app_id: Uuid, sightings: &[Sighting]) -> Result<()> {
    for chunk in sightings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|seen| seen.subject_id))
            .texts(chunk.iter().map(|seen| seen.device_id.clone()))
            .texts(chunk.iter().map(|seen| seen.platform.clone()))
            .texts(chunk.iter().map(|seen| seen.app_version.clone()))
            .texts(chunk.iter().map(|seen| seen.sdk_version.clone()))
            .texts(chunk.iter().map(|seen| seen.locale.clone()))
            .timestamps(chunk.iter().map(|seen| seen.first_seen_at))
            .timestamps(chunk.iter().map(|seen| seen.last_seen_at));
        tx.with_rows(
            "v(subject_id, device_id, platform, app_version, sdk_version, locale, first_seen_at, last_seen_at)",
            rows,
        )
        .push(
            " INSERT INTO devices (subject_id, device_id, app_id, platform, app_version, sdk_version, locale,
                                   first_seen_at, last_seen_at)
              SELECT v.subject_id, v.device_id, ",
        )
        .push_bind(app_id)
        .push(
            ", v.platform, v.app_version, v.sdk_version, v.locale, v.first_seen_at, v.last_seen_at
              FROM v WHERE true
              ON CONFLICT (subject_id, device_id) DO UPDATE SET
                platform = COALESCE(excluded.platform, devices.platform),
                app_version = COALESCE(excluded.app_version, devices.app_version),
                sdk_version = COALESCE(excluded.sdk_version, devices.sdk_version),
                locale = COALESCE(excluded.locale, devices.locale),
                first_seen_at = CASE WHEN excluded.first_seen_at < devices.first_seen_at
                                     THEN excluded.first_seen_at ELSE devices.first_seen_at END,
                last_seen_at = CASE WHEN excluded.last_seen_at > devices.last_seen_at
                                    THEN excluded.last_seen_at ELSE devices.last_seen_at END",
        )
        .execute()
        .await?;
        forget(tx, app_id, chunk).await?;
    }
    Ok(())
}

/// Removes what is more than [`MOST`] devices of a subject, but for those that have a push token.
async fn forget(tx: &mut Tx, app_id: Uuid, sightings: &[Sighting]) -> Result<()> {
    let subjects = sightings.iter().map(|seen| seen.subject_id);
    tx.with_rows("v(subject_id)", Rows::new().uuids(subjects))
        .push(
            " DELETE FROM devices WHERE (subject_id, device_id) IN (
                SELECT d.subject_id, d.device_id FROM v JOIN devices d ON d.subject_id = v.subject_id
                WHERE (SELECT count(*) FROM devices o
                       WHERE o.subject_id = d.subject_id
                         AND (o.last_seen_at > d.last_seen_at
                              OR (o.last_seen_at = d.last_seen_at AND o.device_id > d.device_id))) >= ",
        )
        .push_bind(MOST)
        .push(
            " AND NOT EXISTS (SELECT 1 FROM push_tokens t
                              WHERE t.app_id = d.app_id AND t.device_id = d.device_id
                                AND t.subject_id = d.subject_id)) AND app_id = ",
        )
        .push_bind(app_id)
        .execute()
        .await?;
    Ok(())
}
