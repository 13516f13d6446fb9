//! What became of a campaign of either type (contract 20): in all, by variant, by what was pressed, and by the day.
//!
//! What is counted is counted by when it was made: what became of it later is counted on that day.

use std::collections::BTreeMap;

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_campaigns::campaign::Kind;
use nudge_db::{Result, Timestamp, Tx};
use nudge_http::query::range;
use nudge_http::{ApiError, Data, Params, ResourceId};
use nudge_platform::{clock, hidden};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::http::kind_of;
use crate::services::Shared;

/// Numbers of a campaign.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_campaign_analytics))
}

/// Microseconds of a day, as the statements have them too.
const DAY: i64 = 24 * 3600 * 1_000_000;
/// Things that were pressed that are told apart, the most frequent.
const MOST_ACTIONS: i64 = 100;

/// What results are of.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct AnalyticsQuery {
    /// Made from here on: a day (UTC), or an ISO 8601 instant with an offset.
    from: Option<String>,
    /// Made before here: an instant; or a day, which is included.
    to: Option<String>,
}

/// What became of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CampaignCounts)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// How many were made.
    recipients: i64,
    /// How many were handed to a push service.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<i64>,
    /// How many a push service took.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<i64>,
    /// How many were seen.
    displayed: i64,
    /// How many push messages were opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened: Option<i64>,
    /// Of how many a button was pressed.
    clicked: i64,
    /// How many were closed.
    dismissed: i64,
    /// How many in-app messages were completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<i64>,
    /// How many push messages could not be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<i64>,
    /// How many times a firing was held back; a reason is noted once a day and person. Of push campaigns also how many of
    /// the messages that were made were skipped or cancelled.
    suppressed: i64,
}

/// What became of a variant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantCounts {
    variant_id: Uuid,
    #[serde(flatten)]
    counts: Counts,
}

/// How often something was pressed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionCounts {
    action_id: String,
    clicked: i64,
}

/// What became of what was made on a day.
#[derive(Debug, Serialize, ToSchema)]
pub struct DayCounts {
    /// The day's begin, by UTC.
    at: String,
    #[serde(flatten)]
    counts: Counts,
}

/// What became of a campaign.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignReport {
    totals: Counts,
    per_variant: Vec<VariantCounts>,
    /// What was pressed, the most frequent first. Devices tell it of in-app messages.
    per_action: Vec<ActionCounts>,
    /// By the day, as far as there is something to count.
    series: Vec<DayCounts>,
}

#[derive(nudge_db::FromRow)]
struct Row {
    variant_id: Option<Uuid>,
    day: i64,
    recipients: i64,
    sent: i64,
    delivered: i64,
    displayed: i64,
    opened: i64,
    clicked: i64,
    dismissed: i64,
    completed: i64,
    failed: i64,
    suppressed: i64,
}

impl Counts {
    fn none(kind: Kind) -> Self {
        let of = |wanted: Kind| (kind == wanted).then_some(0);
        Self {
            sent: of(Kind::Push),
            delivered: of(Kind::Push),
            opened: of(Kind::Push),
            failed: of(Kind::Push),
            completed: of(Kind::InApp),
            ..Self::default()
        }
    }

    fn add(&mut self, row: &Row) {
        self.recipients += row.recipients;
        self.displayed += row.displayed;
        self.clicked += row.clicked;
        self.dismissed += row.dismissed;
        self.suppressed += row.suppressed;
        for (count, more) in [
            (&mut self.sent, row.sent),
            (&mut self.delivered, row.delivered),
            (&mut self.opened, row.opened),
            (&mut self.completed, row.completed),
            (&mut self.failed, row.failed),
        ] {
            if let Some(count) = count {
                *count += more;
            }
        }
    }
}

/// A campaign's messages that were made from an instant on and before another.
struct CampaignPeriod {
    app_id: Uuid,
    campaign_id: Uuid,
    from: Timestamp,
    to: Timestamp,
}

/// Results of a campaign: in all, by variant, by what was pressed, and by the day.
#[utoipa::path(get, path = "/v1/apps/{appId}/campaigns/{campaignId}/analytics", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path), AnalyticsQuery),
    responses((status = 200, body = Data<CampaignReport>)))]
pub async fn get_campaign_analytics(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<AnalyticsQuery>,
) -> std::result::Result<Data<CampaignReport>, ApiError> {
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let period = CampaignPeriod {
        app_id: scope.app.id,
        campaign_id: id,
        from: from.unwrap_or(Timestamp(0)),
        to: to.unwrap_or(Timestamp(i64::MAX)),
    };
    let kind = kind_of(&services, scope.app.id, id).await?;
    let mut tx = services.db.read().await?;
    let mut rows = counts(&mut tx, INSTRUCTIONS, &period).await?;
    if kind == Kind::Push {
        rows.extend(counts(&mut tx, DELIVERIES, &period).await?);
    }
    let per_action = actions(&mut tx, &period).await?;
    drop(tx);
    let mut totals = Counts::none(kind);
    let mut variants: BTreeMap<Uuid, Counts> = BTreeMap::new();
    let mut days: BTreeMap<i64, Counts> = BTreeMap::new();
    for row in &rows {
        totals.add(row);
        let day = days.entry(row.day).or_insert_with(|| Counts::none(kind));
        day.add(row);
        if let Some(id) = row.variant_id {
            let variant = variants.entry(id).or_insert_with(|| Counts::none(kind));
            variant.add(row);
        }
    }
    let variants = variants.into_iter();
    let days = days.into_iter();
    Ok(Data {
        data: CampaignReport {
            totals,
            per_variant: variants
                .map(|(variant_id, counts)| VariantCounts { variant_id, counts })
                .collect(),
            per_action,
            series: days
                .map(|(day, counts)| DayCounts {
                    at: clock::to_text(Timestamp(day * DAY)),
                    counts,
                })
                .collect(),
        },
    })
}

/// What is counted of in-app messages, and of firings of either type that were held back.
const INSTRUCTIONS: &str = "count(CASE WHEN suppressed_by IS NULL THEN 1 END) AS recipients,
    CAST(0 AS BIGINT) AS sent, CAST(0 AS BIGINT) AS delivered, count(displayed_at) AS displayed, CAST(0 AS BIGINT) AS opened,
    count(clicked_at) AS clicked, count(CASE WHEN status = 'dismissed' THEN 1 END) AS dismissed,
    count(CASE WHEN status = 'completed' THEN 1 END) AS completed, CAST(0 AS BIGINT) AS failed,
    count(suppressed_by) AS suppressed
    FROM instructions WHERE app_id = $1";

/// What is counted of push messages. Those that are past their retention are left out, whether caps count them still or not.
const DELIVERIES: &str =
    "count(*) AS recipients, count(sent_at) AS sent, count(delivered_at) AS delivered,
    count(displayed_at) AS displayed, count(opened_at) AS opened, count(clicked_at) AS clicked,
    count(dismissed_at) AS dismissed, CAST(0 AS BIGINT) AS completed,
    count(CASE WHEN status IN ('failed', 'bounced') THEN 1 END) AS failed,
    count(CASE WHEN status IN ('skipped', 'cancelled') THEN 1 END) AS suppressed
    FROM deliveries WHERE app_id = $1 AND status <> 'kept'";

/// Counts of a campaign's messages but for tests, by variant and day. `counted` says what is counted, and of which rows of the app.
async fn counts(tx: &mut Tx, counted: &'static str, period: &CampaignPeriod) -> Result<Vec<Row>> {
    tx.sql("SELECT variant_id, created_at / 86400000000 AS day, ")
        .push(counted)
        .push(
            " AND campaign_id = $2 AND created_at >= $3 AND created_at < $4 AND NOT test
                AND subject_id NOT IN ",
        )
        .push(hidden::SUBJECTS)
        .push(" GROUP BY variant_id, created_at / 86400000000")
        .bind(period.app_id)
        .bind(period.campaign_id)
        .bind(period.from)
        .bind(period.to)
        .fetch_all()
        .await
}

async fn actions(tx: &mut Tx, period: &CampaignPeriod) -> Result<Vec<ActionCounts>> {
    #[derive(nudge_db::FromRow)]
    struct ActionRow {
        action_id: String,
        clicked: i64,
    }
    let rows: Vec<ActionRow> = tx
        .sql(
            "SELECT action_id, count(*) AS clicked FROM (
                SELECT action_id, subject_id FROM instructions
                WHERE app_id = $1 AND campaign_id = $2 AND created_at >= $3 AND created_at < $4 AND action_id IS NOT NULL AND NOT test
                UNION ALL SELECT action_id, subject_id FROM deliveries
                WHERE app_id = $1 AND campaign_id = $2 AND created_at >= $3 AND created_at < $4 AND action_id IS NOT NULL AND NOT test
             ) clicks WHERE subject_id NOT IN ",
        )
        .push(hidden::SUBJECTS)
        .push(" GROUP BY action_id ORDER BY count(*) DESC, action_id LIMIT $5")
        .bind(period.app_id)
        .bind(period.campaign_id)
        .bind(period.from)
        .bind(period.to)
        .bind(MOST_ACTIONS)
        .fetch_all()
        .await?;
    let counts = rows.into_iter().map(|row| ActionCounts {
        action_id: row.action_id,
        clicked: row.clicked,
    });
    Ok(counts.collect())
}
