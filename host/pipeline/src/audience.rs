//! What a person was shown, in the database.

pub mod interactions;

use std::collections::HashMap;
use std::time::Duration;

use nudge_campaigns::campaign::Kind;
use nudge_campaigns::targeting::caps::RESERVED;
use nudge_campaigns::targeting::{CapWindow, Scope};
use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::setback::LEEWAY_AMONG_OTHERS;

/// How exactly it is known when a batch was decided: its decisions' ids say it.
const BATCH: Duration = Duration::from_millis(1);

/// How many presentations of one campaign, of all of a kind, or of all that SDKs present, a subject had after an instant.
/// Counting ends at the largest number that a cap can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PresentationQuestion {
    /// Whose.
    pub subject_id: Uuid,
    /// The kind of campaigns; none: all that SDKs present.
    pub kind: Option<Kind>,
    /// The campaign; none: all of the kind.
    pub campaign_id: Option<Uuid>,
    /// After when.
    pub since: Timestamp,
}

impl PresentationQuestion {
    /// What a cap window of a campaign of a kind counts of a subject.
    pub fn of(subject_id: Uuid, kind: Kind, cap_window: &CapWindow, now: Timestamp) -> Self {
        let (kind, campaign_id) = match cap_window.scope {
            Scope::Campaign(id) => (Some(kind), Some(id)),
            Scope::Kind(kind) => (Some(kind), None),
            Scope::Presented => (None, None),
        };
        Self {
            subject_id,
            kind,
            campaign_id,
            since: cap_window.since(now),
        }
    }
}

/// The time as of which presentations are counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedAsOf {
    at: Timestamp,
    issued_before: Timestamp,
    /// What was presented later was so by a clock that was ahead.
    latest: Timestamp,
}

impl CountedAsOf {
    /// Everything that was issued counts.
    pub fn now(now: Timestamp) -> Self {
        Self {
            at: now,
            issued_before: Timestamp(i64::MAX),
            latest: now.plus(LEEWAY_AMONG_OTHERS),
        }
    }

    /// What was issued before an instant counts, as far as it is known what became of it until then.
    pub fn before(at: Timestamp) -> Self {
        Self {
            at,
            issued_before: at,
            latest: Timestamp(i64::MAX),
        }
    }

    /// The same, with what was issued in the batch of that instant, which is known to the millisecond.
    pub fn with_batch_of(at: Timestamp) -> Self {
        Self {
            issued_before: at.plus(BATCH),
            ..Self::before(at)
        }
    }
}

#[derive(nudge_db::FromRow)]
struct LastRow {
    subject_id: Uuid,
    at: Option<Timestamp>,
}

#[derive(nudge_db::FromRow)]
struct CountRow {
    number: i64,
    count: i64,
}

/// Instructions of a campaign that count, up to 1,000, by the index that is made for it. What was issued and not
/// displayed counts for [`RESERVED`], while it is on offer. What was presented later than any clock can have it by now was so before
/// the clock was set back, nobody knows how long: it counts by when it was issued.
const OF_CAMPAIGN: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM instructions i
        WHERE i.subject_id = v.subject_id AND i.campaign_id = v.campaign_id AND i.counted_at > v.since
          AND (i.counted_at <= v.latest OR i.created_at > v.since)
          AND i.app_id = v.app_id AND i.created_at < v.before AND (i.displayed_at IS NOT NULL OR i.counted_at > v.reserved AND i.expires_at > v.at) LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// The same of all campaigns of a kind.
const OF_KIND: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM instructions i
        WHERE i.subject_id = v.subject_id AND i.kind = v.kind AND i.counted_at > v.since
          AND (i.counted_at <= v.latest OR i.created_at > v.since)
          AND i.app_id = v.app_id AND i.created_at < v.before AND (i.displayed_at IS NOT NULL OR i.counted_at > v.reserved AND i.expires_at > v.at) LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// The same of all campaigns that SDKs present. A button is none until it opens something.
const PRESENTED: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM instructions i
        WHERE i.subject_id = v.subject_id AND i.kind IN ('survey', 'in_app') AND i.counted_at > v.since
          AND (i.counted_at <= v.latest OR i.created_at > v.since)
          AND i.app_id = v.app_id AND i.created_at < v.before AND (i.displayed_at IS NOT NULL OR i.counted_at > v.reserved AND i.expires_at > v.at) LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// When the last presentation was that [`PRESENTED`] counts.
const LAST_PRESENTED: &str = " SELECT v.subject_id, (SELECT max(CASE WHEN i.counted_at > v.latest THEN i.created_at ELSE i.counted_at END) FROM instructions i
        WHERE i.subject_id = v.subject_id AND i.kind IN ('survey', 'in_app') AND i.counted_at > v.since
          AND (i.counted_at <= v.latest OR i.created_at > v.since)
          AND i.app_id = v.app_id AND (i.displayed_at IS NOT NULL OR i.counted_at > v.reserved AND i.expires_at > v.at)
    ) AS at FROM v WHERE true";

/// Push messages of a campaign that count, whoever asked for them: those that were not called off, skipped or failed.
/// Tests are outside of caps.
const PUSHED_OF_CAMPAIGN: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM deliveries d
        WHERE d.subject_id = v.subject_id AND d.created_at > v.since AND d.created_at < v.before AND d.campaign_id = v.campaign_id
          AND d.app_id = v.app_id AND NOT d.test
          AND d.status NOT IN ('skipped', 'cancelled', 'failed', 'bounced') LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// The same of all campaigns.
const PUSHED: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM deliveries d
        WHERE d.subject_id = v.subject_id AND d.created_at > v.since AND d.created_at < v.before
          AND d.app_id = v.app_id AND NOT d.test
          AND d.status NOT IN ('skipped', 'cancelled', 'failed', 'bounced') LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// Push messages that count as in [`PUSHED`], of a campaign or of all, and that were made before one that waits.
const PUSHED_BEFORE: &str = " SELECT v.number, (SELECT count(*) FROM (
        SELECT 1 AS one FROM deliveries d
        WHERE d.subject_id = v.subject_id AND d.created_at > v.since AND d.created_at <= v.at
          AND (d.created_at < v.at OR d.id < v.id) AND (v.campaign_id IS NULL OR d.campaign_id = v.campaign_id)
          AND d.app_id = v.app_id AND NOT d.test
          AND d.status NOT IN ('skipped', 'cancelled', 'failed', 'bounced') LIMIT 1000
    ) AS counted) AS count FROM v WHERE true";

/// A push message that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub struct WaitingMessage {
    /// Its delivery.
    pub id: Uuid,
    /// Whose it is by now.
    pub subject_id: Uuid,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How many messages each cap window of a push campaign counts that were made for a person before one that waits.
pub async fn pushed_before(
    tx: &mut Tx,
    app_id: Uuid,
    message: WaitingMessage,
    cap_windows: &[CapWindow],
) -> Result<Vec<u32>> {
    let at = message.created_at;
    let question = |window| PresentationQuestion::of(message.subject_id, Kind::Push, window, at);
    let questions: Vec<PresentationQuestion> = cap_windows.iter().map(question).collect();
    let mut counts = vec![0; questions.len()];
    if questions.is_empty() {
        return Ok(counts);
    }
    let rows = Rows::new()
        .integers((0..questions.len()).map(|number| i64::try_from(number).ok()))
        .uuids(questions.iter().map(|_| app_id))
        .uuids(questions.iter().map(|question| question.subject_id))
        .uuids(questions.iter().map(|question| question.campaign_id))
        .timestamps(questions.iter().map(|question| question.since))
        .timestamps(questions.iter().map(|_| at))
        .uuids(questions.iter().map(|_| message.id));
    let rows: Vec<CountRow> = tx
        .with_rows(
            "v(number, app_id, subject_id, campaign_id, since, at, id)",
            rows,
        )
        .push(PUSHED_BEFORE)
        .fetch_all()
        .await?;
    note(&mut counts, rows);
    Ok(counts)
}

/// When subjects were last presented something, as far back as the questions go.
pub async fn last_presented(
    tx: &mut Tx,
    app_id: Uuid,
    questions: &[PresentationQuestion],
    now: Timestamp,
) -> Result<HashMap<Uuid, Timestamp>> {
    let mut found = HashMap::new();
    for chunk in questions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|_| app_id))
            .uuids(chunk.iter().map(|question| question.subject_id))
            .timestamps(chunk.iter().map(|question| question.since))
            .timestamps(chunk.iter().map(|_| now.minus(RESERVED)))
            .timestamps(chunk.iter().map(|_| now))
            .timestamps(chunk.iter().map(|_| now.plus(LEEWAY_AMONG_OTHERS)));
        let rows: Vec<LastRow> = tx
            .with_rows("v(app_id, subject_id, since, reserved, at, latest)", rows)
            .push(LAST_PRESENTED)
            .fetch_all()
            .await?;
        let known = rows.into_iter();
        found.extend(known.filter_map(|row| Some((row.subject_id, row.at?))));
    }
    Ok(found)
}

/// Answers questions, each with a number, in their order.
///
/// This is the one place that knows where presentations are: those of surveys and in-app messages are instructions, push
/// messages are deliveries.
pub async fn counts(
    tx: &mut Tx,
    app_id: Uuid,
    questions: &[PresentationQuestion],
    as_of: CountedAsOf,
) -> Result<Vec<u32>> {
    let mut counts = vec![0; questions.len()];
    for (kind, of_campaign, text) in [
        (Some(Kind::Survey), true, OF_CAMPAIGN),
        (Some(Kind::Survey), false, OF_KIND),
        (Some(Kind::InApp), true, OF_CAMPAIGN),
        (Some(Kind::InApp), false, OF_KIND),
        (Some(Kind::Push), true, PUSHED_OF_CAMPAIGN),
        (Some(Kind::Push), false, PUSHED),
        (None, false, PRESENTED),
    ] {
        let chosen = questions.iter().enumerate().filter(|(_, question)| {
            question.kind == kind && question.campaign_id.is_some() == of_campaign
        });
        let chosen: Vec<(usize, &PresentationQuestion)> = chosen.collect();
        for chunk in chosen.chunks(Rows::MOST) {
            let rows = Rows::new()
                .integers(chunk.iter().map(|(number, _)| i64::try_from(*number).ok()))
                .uuids(chunk.iter().map(|_| app_id))
                .uuids(chunk.iter().map(|(_, question)| question.subject_id))
                .uuids(chunk.iter().map(|(_, question)| question.campaign_id))
                .timestamps(chunk.iter().map(|(_, question)| question.since))
                .timestamps(chunk.iter().map(|_| as_of.at.minus(RESERVED)))
                .timestamps(chunk.iter().map(|_| as_of.at))
                .timestamps(chunk.iter().map(|_| as_of.issued_before))
                .timestamps(chunk.iter().map(|_| as_of.latest))
                .texts(
                    chunk
                        .iter()
                        .map(|_| kind.map(|kind| kind.name().to_owned())),
                );
            let rows: Vec<CountRow> = tx
                .with_rows(
                    "v(number, app_id, subject_id, campaign_id, since, reserved, at, before, latest, kind)",
                    rows,
                )
                .push(text)
                .fetch_all()
                .await?;
            note(&mut counts, rows);
        }
    }
    Ok(counts)
}

/// Puts counts at the places of their questions.
fn note(counts: &mut [u32], rows: Vec<CountRow>) {
    for row in rows {
        let place = usize::try_from(row.number).ok();
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count = u32::try_from(row.count).unwrap_or(u32::MAX);
        }
    }
}
