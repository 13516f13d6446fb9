//! The route of an app's counts over time (contract 13).

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_db::Timestamp;
use nudge_http::query::{begin, end};
use nudge_http::{ApiError, Data, Params};
use nudge_platform::clock;
use nudge_records::deliveries;
use nudge_records::deliveries::store::HourCount;
use nudge_records::stats::HOUR;
use nudge_records::stats::store::{self, CountRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;

/// Counts.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_stats))
}

/// Intervals that one answer has at the most.
const MOST_INTERVALS: i64 = 1_000;

/// How long the intervals are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interval {
    /// An hour each.
    #[default]
    Hour,
    /// A day each, by UTC.
    Day,
}

/// Which counts.
#[derive(Debug, Deserialize, IntoParams)]
pub struct StatsQuery {
    /// From the interval that this ISO 8601 instant is in, or from this day (UTC) on; a day before `to` for hours, 30 for
    /// days.
    from: Option<String>,
    /// To the interval that this instant is in, or begins, or to the end of this day; now unless given.
    to: Option<String>,
    /// `hour` unless given, or `day`.
    interval: Option<Interval>,
}

/// Counts of an interval, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Events that arrived: accepted, rejected and ignored.
    events: i64,
    /// Events that were stored, by when they arrived; a dead letter's once it is replayed.
    accepted: i64,
    /// Events that were rejected.
    rejected: i64,
    /// Lifecycle events that were taken while the app's toggle was off.
    ignored: i64,
    /// Instructions that were issued.
    instructions: i64,
    /// In-app messages that were seen, by when a device said so.
    in_app_views: i64,
    /// Push deliveries by the state that they came into.
    deliveries: BTreeMap<String, i64>,
}

/// Counts of an interval.
#[derive(Debug, Serialize, ToSchema)]
pub struct IntervalView {
    /// When it begins.
    at: String,
    #[serde(flatten)]
    counts: Counts,
}

/// Counts over time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AppStatsView)]
pub struct StatsView {
    interval: Interval,
    from: String,
    to: String,
    /// One for each interval, the oldest first.
    items: Vec<IntervalView>,
    totals: Counts,
}

impl Interval {
    fn span(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => 24 * HOUR,
        }
    }

    /// How much is shown unless the request says otherwise.
    fn window(self) -> Duration {
        match self {
            Self::Hour => Duration::from_hours(24),
            Self::Day => Duration::from_hours(30 * 24),
        }
    }
}

impl Counts {
    fn add(&mut self, kind: &str, count: i64) {
        match kind {
            "accepted" => self.accepted += count,
            "rejected" => self.rejected += count,
            "ignored" => self.ignored += count,
            "instructions" => self.instructions += count,
            "in_app_views" => self.in_app_views += count,
            _ => {}
        }
        self.events = self.accepted + self.rejected + self.ignored;
    }
}

/// Counts what happened in an app over time.
#[utoipa::path(get, path = "/v1/apps/{appId}/stats", tag = "apps",
    params(("appId" = Uuid, Path), StatsQuery), responses((status = 200, body = Data<StatsView>)))]
pub async fn get_stats(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<StatsQuery>,
) -> Result<Data<StatsView>, ApiError> {
    let interval = query.interval.unwrap_or_default();
    let (from, to) = range(&query, interval, services.clock.now())?;
    services.stats.flush(&services.db).await?;
    let mut tx = services.db.read().await?;
    let (app_id, first, end) = (scope.app.id, Timestamp(from), Timestamp(to));
    let rows = store::of_app(&mut tx, app_id, first, end).await?;
    let deliveries = deliveries::store::counts_between(&mut tx, app_id, first, end).await?;
    Ok(Data {
        data: view(interval, from, to, &rows, &deliveries),
    })
}

/// Where the first interval begins, and where the last one ends.
fn range(query: &StatsQuery, interval: Interval, now: Timestamp) -> Result<(i64, i64), ApiError> {
    let span = interval.span();
    let to = end("to", query.to.as_deref())?.unwrap_or(now);
    let from = begin("from", query.from.as_deref())?.unwrap_or(to.minus(interval.window()));
    let out_of_range = |detail: String| ApiError::field("/from", "out_of_range", detail);
    if from > to {
        return Err(out_of_range("from must not be after to".to_owned()));
    }
    let begin = nudge_records::stats::begin(from, span);
    let intervals =
        (to.0 - begin).div_euclid(span) + i64::from((to.0 - begin).rem_euclid(span) > 0);
    if intervals > MOST_INTERVALS {
        let detail = format!("at most {MOST_INTERVALS} intervals; ask for less time, or for days");
        return Err(out_of_range(detail));
    }
    Ok((begin, begin + intervals * span))
}

fn view(
    interval: Interval,
    from: i64,
    to: i64,
    rows: &[CountRow],
    deliveries: &[HourCount],
) -> StatsView {
    let span = interval.span();
    let begins = (0..).map(|number| from + number * span);
    let mut intervals: BTreeMap<i64, Counts> = begins
        .take_while(|begin| *begin < to)
        .map(|begin| (begin, Counts::default()))
        .collect();
    let mut totals = Counts::default();
    for row in rows {
        totals.add(&row.kind, row.count);
        let counts = intervals.entry(nudge_records::stats::begin(row.begins_at, span));
        counts.or_default().add(&row.kind, row.count);
    }
    for row in deliveries {
        let counts = intervals
            .entry(nudge_records::stats::begin(row.hour, span))
            .or_default();
        for counts in [counts, &mut totals] {
            *counts.deliveries.entry(row.state.clone()).or_default() += row.count;
        }
    }
    let items = intervals.into_iter().map(|(begin, counts)| IntervalView {
        at: clock::to_text(Timestamp(begin)),
        counts,
    });
    StatsView {
        interval,
        from: clock::to_text(Timestamp(from)),
        to: clock::to_text(Timestamp(to)),
        items: items.collect(),
        totals,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(from: Option<&str>, to: Option<&str>) -> StatsQuery {
        StatsQuery {
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            interval: None,
        }
    }

    #[test]
    fn ranges_are_whole_intervals_and_bounded() {
        let now = clock::from_text("2026-01-31T09:30:00Z").unwrap();
        let texts = |query: &StatsQuery, interval| {
            range(query, interval, now)
                .map(|(from, to)| [from, to].map(|at| clock::to_text(Timestamp(at))))
        };
        assert_eq!(
            texts(&query(None, None), Interval::Hour).unwrap(),
            ["2026-01-30T09:00:00.000Z", "2026-01-31T10:00:00.000Z"]
        );
        let day = query(Some("2026-01-30T00:00:00Z"), Some("2026-01-31T00:00:00Z"));
        assert_eq!(
            texts(&day, Interval::Day).unwrap(),
            ["2026-01-30T00:00:00.000Z", "2026-01-31T00:00:00.000Z"]
        );
        let november = query(Some("2026-11-01"), Some("2026-11-30"));
        assert_eq!(
            texts(&november, Interval::Day).unwrap(),
            ["2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z"]
        );
        let long = query(Some("2025-12-20T17:00:00Z"), Some("2026-01-31T09:00:00Z"));
        assert!(texts(&long, Interval::Hour).is_ok(), "a thousand hours");
        let longer = query(Some("2025-12-20T16:00:00Z"), Some("2026-01-31T09:00:00Z"));
        assert!(texts(&longer, Interval::Hour).is_err());
        assert!(texts(&longer, Interval::Day).is_ok());
        let backwards = query(Some("2026-01-31T09:00:00Z"), Some("2026-01-30T09:00:00Z"));
        assert!(texts(&backwards, Interval::Day).is_err());
    }

    #[test]
    fn every_interval_is_there_and_days_add_up() {
        let row = |hour: i64, kind: &str, count| CountRow {
            begins_at: Timestamp(hour * HOUR),
            kind: kind.to_owned(),
            count,
        };
        let rows = [
            row(0, "accepted", 1),
            row(23, "accepted", 2),
            row(23, "rejected", 3),
            row(47, "ignored", 4),
        ];
        let sent = HourCount {
            hour: Timestamp(47 * HOUR),
            state: "sent".to_owned(),
            count: 5,
        };
        let view = view(Interval::Day, 0, 72 * HOUR, &rows, &[sent]);
        let counts: Vec<[i64; 4]> = view
            .items
            .iter()
            .map(|item| &item.counts)
            .map(|counts| {
                [
                    counts.events,
                    counts.accepted,
                    counts.rejected,
                    counts.ignored,
                ]
            })
            .collect();
        assert_eq!(counts, [[6, 3, 3, 0], [4, 0, 0, 4], [0; 4]]);
        assert_eq!(view.totals.events, 10);
        assert_eq!(view.items[1].counts.deliveries["sent"], 5);
    }
}
