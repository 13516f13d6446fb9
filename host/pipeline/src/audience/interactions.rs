//! What people did with what campaigns showed or sent them, as facts for trigger plugins (contract 8, Audience).

use std::collections::{BTreeMap, HashMap};

use nudge_campaigns::campaign::Kind;
use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::json;
use uuid::Uuid;

/// The fact that holds what became of surveys, and that of messages.
const FACTS: [(&str, Kind); 2] = [
    ("survey_interactions", Kind::Survey),
    ("message_interactions", Kind::Push),
];

/// When each interaction with each campaign last was, by subject.
type Latest = HashMap<Uuid, BTreeMap<Uuid, BTreeMap<&'static str, Timestamp>>>;

/// The kind of campaigns whose interactions a fact of this name holds.
pub fn kind_of(fact: &str) -> Option<Kind> {
    let mut facts = FACTS.iter();
    facts.find(|(name, _)| *name == fact).map(|(_, kind)| *kind)
}

#[derive(nudge_db::FromRow)]
struct Row {
    subject_id: Uuid,
    campaign_id: Uuid,
    displayed_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    status: String,
    status_at: Timestamp,
}

/// What subjects did with campaigns of a kind until an instant, in their order, as JSON text: by campaign an object that
/// says of each interaction when it last was. Of each subject's newest 1,000 presentations.
///
/// This is the one place that knows where interactions are: those with surveys are in instructions and attempts, those
/// with push messages in deliveries, those with in-app messages in instructions. Each is one statement for all subjects.
pub async fn of_subjects(
    tx: &mut Tx,
    subjects: &[Uuid],
    kind: Kind,
    until: Timestamp,
) -> Result<Vec<String>> {
    let mut latest = Latest::new();
    for chunk in subjects.chunks(Rows::MOST) {
        match kind {
            Kind::Survey => {
                presented(tx, chunk, kind, until, &mut latest).await?;
                started(tx, chunk, until, &mut latest).await?;
            }
            // A message is one whichever way it comes.
            Kind::Push | Kind::InApp => {
                sent(tx, chunk, until, &mut latest).await?;
                presented(tx, chunk, Kind::InApp, until, &mut latest).await?;
            }
        }
    }
    let texts = subjects.iter().map(|subject_id| {
        let campaigns = latest.remove(subject_id).unwrap_or_default().into_iter();
        let campaigns = campaigns.map(|(campaign_id, interactions)| {
            let interactions = interactions.into_iter();
            let interactions: serde_json::Map<_, _> = interactions
                .map(|(name, at)| (name.to_owned(), clock::to_text(at).into()))
                .collect();
            (campaign_id.to_string(), json!(interactions))
        });
        json!(campaigns.collect::<serde_json::Map<_, _>>()).to_string()
    });
    Ok(texts.collect())
}

/// When a message to a person came into its states.
#[derive(nudge_db::FromRow)]
struct MessageRow {
    subject_id: Uuid,
    campaign_id: Uuid,
    sent_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
    displayed_at: Option<Timestamp>,
    opened_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    dismissed_at: Option<Timestamp>,
    status: String,
    ended_at: Option<Timestamp>,
}

/// Deliveries but for tests, which are in no analytics either.
async fn sent(tx: &mut Tx, subjects: &[Uuid], until: Timestamp, latest: &mut Latest) -> Result<()> {
    let rows: Vec<MessageRow> = tx
        .with_rows("v(id, until)", asked(subjects, until))
        .push(
            ", w AS MATERIALIZED (
                SELECT v.id, v.until, COALESCE((SELECT o.created_at FROM deliveries o
                    WHERE o.subject_id = v.id AND o.created_at <= v.until AND NOT o.test
                    ORDER BY o.created_at DESC LIMIT 1 OFFSET 999), 0) AS oldest
                FROM v)
              SELECT d.subject_id, d.campaign_id, d.sent_at, d.delivered_at, d.displayed_at, d.opened_at, d.clicked_at,
                     d.dismissed_at, d.status, d.ended_at
              FROM w JOIN deliveries d ON d.subject_id = w.id AND d.created_at <= w.until AND d.created_at >= w.oldest
                AND NOT d.test",
        )
        .fetch_all()
        .await?;
    for row in rows {
        let done = [
            ("sent", row.sent_at),
            ("delivered", row.delivered_at),
            ("displayed", row.displayed_at),
            ("opened", row.opened_at),
            ("clicked", row.clicked_at),
            ("dismissed", row.dismissed_at),
            ("failed", row.ended_at.filter(|_| row.status == "failed")),
            ("bounced", row.ended_at.filter(|_| row.status == "bounced")),
        ];
        let done = done.into_iter().filter_map(|(name, at)| Some((name, at?)));
        note(latest, (row.subject_id, row.campaign_id), done, until);
    }
    Ok(())
}

/// Instructions; a button is its survey's.
async fn presented(
    tx: &mut Tx,
    subjects: &[Uuid],
    kind: Kind,
    until: Timestamp,
    latest: &mut Latest,
) -> Result<()> {
    let asked = asked(subjects, until).texts(subjects.iter().map(|_| kind.name().to_owned()));
    let rows: Vec<Row> = tx
        .with_rows("v(id, until, kind)", asked)
        .push(
            ", w AS MATERIALIZED (
                SELECT v.id, v.until, v.kind, COALESCE((SELECT o.counted_at FROM instructions o
                    WHERE o.subject_id = v.id AND o.counted_at <= v.until
                      AND CASE o.kind WHEN 'feedback' THEN 'survey' ELSE o.kind END = v.kind
                    ORDER BY o.counted_at DESC LIMIT 1 OFFSET 999), 0) AS oldest
                FROM v)
              SELECT i.subject_id, i.campaign_id, i.displayed_at, i.clicked_at, i.status, i.status_at
              FROM w JOIN instructions i ON i.subject_id = w.id
                AND CASE i.kind WHEN 'feedback' THEN 'survey' ELSE i.kind END = w.kind
                AND i.counted_at <= w.until AND i.counted_at >= w.oldest",
        )
        .fetch_all()
        .await?;
    for row in rows {
        let ended = match row.status.as_str() {
            "completed" => Some(("completed", row.status_at)),
            "dismissed" => Some(("dismissed", row.status_at)),
            _ => None,
        };
        let displayed = row.displayed_at.map(|at| ("displayed", at));
        let clicked = row.clicked_at.map(|at| ("clicked", at));
        let done = displayed.into_iter().chain(clicked).chain(ended);
        note(latest, (row.subject_id, row.campaign_id), done, until);
    }
    Ok(())
}

/// When somebody began to answer a survey, and how that ended.
#[derive(nudge_db::FromRow)]
struct AttemptRow {
    subject_id: Uuid,
    survey_id: Uuid,
    state: String,
    started_at: Timestamp,
    active_at: Timestamp,
    completed_at: Option<Timestamp>,
    is_answered: bool,
}

/// Attempts, also those that no instruction caused. Whoever begins one sees the survey.
async fn started(
    tx: &mut Tx,
    subjects: &[Uuid],
    until: Timestamp,
    latest: &mut Latest,
) -> Result<()> {
    let rows: Vec<AttemptRow> = tx
        .with_rows("v(id, until)", asked(subjects, until))
        .push(
            ", w AS MATERIALIZED (
                SELECT v.id, v.until, COALESCE((SELECT o.started_at FROM survey_attempts o
                    WHERE o.subject_id = v.id AND o.started_at <= v.until
                    ORDER BY o.started_at DESC LIMIT 1 OFFSET 999), 0) AS oldest
                FROM v)
              SELECT a.subject_id, a.survey_id, a.state, a.started_at, a.active_at, a.completed_at,
                     EXISTS (SELECT 1 FROM survey_answers n
                         WHERE n.attempt_id = a.id AND n.app_id = a.app_id AND n.value <> 'null') AS is_answered
              FROM w JOIN survey_attempts a ON a.subject_id = w.id AND a.started_at <= w.until AND a.started_at >= w.oldest",
        )
        .fetch_all()
        .await?;
    for row in rows {
        let completed = row.completed_at.map(|at| ("completed", at));
        let dismissed = (row.state == "dismissed").then_some(("dismissed", row.active_at));
        let ended = completed.into_iter().chain(dismissed);
        // The last answer was no later than the last sign of life.
        let answered = row.is_answered.then_some(("answered", row.active_at));
        let begun = ["displayed", "started"].map(|name| (name, row.started_at));
        let done = ended.chain(answered).chain(begun);
        note(latest, (row.subject_id, row.survey_id), done, until);
    }
    Ok(())
}

/// Subjects, which were reached through their app, and until when their rows are asked for.
fn asked(subjects: &[Uuid], until: Timestamp) -> Rows {
    let ids = Rows::new().uuids(subjects.iter().copied());
    ids.timestamps(subjects.iter().map(|_| until))
}

/// Notes interactions with a campaign until an instant; the latest of each counts.
fn note(
    latest: &mut Latest,
    (subject_id, campaign_id): (Uuid, Uuid),
    done: impl Iterator<Item = (&'static str, Timestamp)>,
    until: Timestamp,
) {
    for (name, at) in done.filter(|(_, at)| *at <= until) {
        let subject = latest.entry(subject_id).or_default();
        let campaign = subject.entry(campaign_id).or_default();
        let known = campaign.entry(name).or_insert(at);
        *known = at.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_have_their_kinds() {
        assert_eq!(kind_of("survey_interactions"), Some(Kind::Survey));
        assert_eq!(kind_of("message_interactions"), Some(Kind::Push));
        assert_eq!(kind_of("platform"), None);
    }
}
