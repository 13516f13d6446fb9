//! What people did with what campaigns showed or sent them, as facts for trigger plugins (contract 8, Audience).

use std::collections::BTreeMap;

use nudge_campaigns::campaign::Kind;
use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::json;
use uuid::Uuid;

/// Presentations of a subject that are looked at, the newest.
const LOOK_BACK: i64 = 1_000;

/// The fact that holds what became of surveys, and that of messages.
const FACTS: [(&str, Kind); 2] = [
    ("survey_interactions", Kind::Survey),
    ("message_interactions", Kind::Push),
];

/// When each interaction with each campaign last was.
type Latest = BTreeMap<Uuid, BTreeMap<&'static str, Timestamp>>;

/// The kind of campaigns whose interactions a fact of this name holds.
pub fn kind_of(fact: &str) -> Option<Kind> {
    let mut facts = FACTS.iter();
    facts.find(|(name, _)| *name == fact).map(|(_, kind)| *kind)
}

#[derive(sqlx::FromRow)]
struct Row {
    campaign_id: Uuid,
    displayed_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    status: String,
    status_at: Timestamp,
}

/// What a subject did with campaigns of a kind until an instant, as JSON text: by campaign an object that says of
/// each interaction when it last was. Of the subject's newest 1,000 presentations.
///
/// This is the one place that knows where interactions are: those with surveys are in instructions and attempts, those
/// with push messages in deliveries, those with in-app messages in instructions.
pub async fn of_subject(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    kind: Kind,
    until: Timestamp,
) -> Result<String> {
    let mut latest = Latest::new();
    match kind {
        Kind::Survey => {
            presented(tx, (app_id, subject_id, kind), until, &mut latest).await?;
            started(tx, app_id, subject_id, until, &mut latest).await?;
        }
        // A message is one whichever way it comes.
        Kind::Push | Kind::InApp => {
            sent(tx, app_id, subject_id, until, &mut latest).await?;
            let in_app = (app_id, subject_id, Kind::InApp);
            presented(tx, in_app, until, &mut latest).await?;
        }
    }
    let campaigns = latest.into_iter().map(|(campaign_id, interactions)| {
        let interactions = interactions.into_iter();
        let interactions: serde_json::Map<_, _> = interactions
            .map(|(name, at)| (name.to_owned(), clock::to_text(at).into()))
            .collect();
        (campaign_id.to_string(), json!(interactions))
    });
    Ok(json!(campaigns.collect::<serde_json::Map<_, _>>()).to_string())
}

/// When a message to a person came into its states.
#[derive(sqlx::FromRow)]
struct MessageRow {
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

async fn sent(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    until: Timestamp,
    latest: &mut Latest,
) -> Result<()> {
    let rows: Vec<MessageRow> = tx
        .sql(
            "SELECT campaign_id, sent_at, delivered_at, displayed_at, opened_at, clicked_at, dismissed_at, status,
                    ended_at
             FROM deliveries WHERE app_id = $1 AND subject_id = $2 AND created_at <= $3
             ORDER BY created_at DESC, id DESC LIMIT $4",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(until)
        .bind(LOOK_BACK)
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
        note(latest, row.campaign_id, done, until);
    }
    Ok(())
}

async fn presented(
    tx: &mut Tx,
    (app_id, subject_id, kind): (Uuid, Uuid, Kind),
    until: Timestamp,
    latest: &mut Latest,
) -> Result<()> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT campaign_id, displayed_at, clicked_at, status, status_at FROM instructions
             WHERE app_id = $1 AND subject_id = $2 AND kind = $5 AND counted_at <= $3
             ORDER BY counted_at DESC LIMIT $4",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(until)
        .bind(LOOK_BACK)
        .bind(kind.name())
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
        note(latest, row.campaign_id, done, until);
    }
    Ok(())
}

/// When somebody began to answer a survey, and how that ended.
#[derive(sqlx::FromRow)]
struct AttemptRow {
    survey_id: Uuid,
    state: String,
    started_at: Timestamp,
    active_at: Timestamp,
    completed_at: Option<Timestamp>,
}

/// Attempts, also those that no instruction caused.
async fn started(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    until: Timestamp,
    latest: &mut Latest,
) -> Result<()> {
    let rows: Vec<AttemptRow> = tx
        .sql(
            "SELECT survey_id, state, started_at, active_at, completed_at FROM survey_attempts
             WHERE app_id = $1 AND subject_id = $2 AND started_at <= $3
             ORDER BY started_at DESC LIMIT $4",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(until)
        .bind(LOOK_BACK)
        .fetch_all()
        .await?;
    for row in rows {
        let completed = row.completed_at.map(|at| ("completed", at));
        let dismissed = (row.state == "dismissed").then_some(("dismissed", row.active_at));
        let ended = completed.into_iter().chain(dismissed);
        let done = ended.chain([("started", row.started_at)]);
        note(latest, row.survey_id, done, until);
    }
    Ok(())
}

/// Notes interactions with a campaign until an instant; the latest of each counts.
fn note(
    latest: &mut Latest,
    campaign_id: Uuid,
    done: impl Iterator<Item = (&'static str, Timestamp)>,
    until: Timestamp,
) {
    for (name, at) in done.filter(|(_, at)| *at <= until) {
        let campaign = latest.entry(campaign_id).or_default();
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
