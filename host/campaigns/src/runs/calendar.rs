//! When the runs of a campaign are: once, or again and again by the calendar. Pure.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use nudge_db::Timestamp;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::whole;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::targeting::Schedule;
use crate::targeting::schedule::Zone;

/// The clocks that are furthest ahead, in hours: UTC+14. What everybody gets by the own clock begins there.
const FURTHEST_AHEAD_HOURS: i64 = 14;
/// The clocks that are furthest behind, in hours: UTC-12. There a run by the own clock has reached everybody.
const FURTHEST_BEHIND_HOURS: i64 = 12;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
/// Months that are looked at for the next day of a month. Every one has it: a month that is too short has its last
/// day instead.
const MONTHS_AHEAD: i32 = 3;
/// Days that are looked at for the next day of a week, a day that its zone skips among them.
const DAYS_AHEAD: i32 = 15;

/// How a campaign finds its people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// By what they do, unless its trigger is a schedule.
    Triggered,
    /// By the calendar.
    Scheduled,
    /// All of them, once.
    Broadcast,
    /// They find it.
    Never,
}

/// When a campaign's runs are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    rule: Option<Rule>,
    /// Whose clock the rule is by; none: everybody's own.
    zone: Option<String>,
}

/// A time that comes round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rule {
    every: Every,
    hour: i8,
    minute: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Every {
    Day,
    /// The day's place in the week, Monday is 1.
    Week(i8),
    /// The day of the month, or the last one of months that are shorter.
    Month(i8),
}

/// One run of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What it is told apart by: the instant, or the local time as if it were UTC's.
    pub occasion: Timestamp,
    /// When it begins. It reaches nobody whose time was before.
    pub begins_at: Timestamp,
}

/// The names of the days, Monday first.
const DAYS: [(&str, &str); 7] = [
    ("monday", "mon"),
    ("tuesday", "tue"),
    ("wednesday", "wed"),
    ("thursday", "thu"),
    ("friday", "fri"),
    ("saturday", "sat"),
    ("sunday", "sun"),
];

impl Plan {
    /// Reads when a campaign runs from its manner, `trigger` and `schedule`; pointers are into its body. None: by
    /// what people do.
    ///
    /// A `trigger` of the kind `schedule` with `every` (`day`, `week`, `month`) and `at` (`HH:MM`) comes round by
    /// the schedule's `timezone`; a week's has `dayOfWeek` (`monday` …, unless said otherwise that), a month's
    /// `dayOfMonth` (1 to 31, unless said otherwise 1). Without `every` it comes once: at `startAt`, or when the
    /// campaign is activated.
    pub fn read(
        manner: Manner,
        trigger: Option<&Value>,
        schedule: Option<&Value>,
    ) -> Result<Option<Self>, Vec<FieldError>> {
        let kind = trigger.and_then(|trigger| trigger.get("kind")?.as_str());
        let of_its_own = match manner {
            Manner::Never => false,
            Manner::Broadcast => true,
            Manner::Scheduled => matches!(kind, None | Some("schedule" | "manual" | "plugin")),
            Manner::Triggered => kind == Some("schedule"),
        };
        let rule = match trigger {
            Some(trigger) if kind == Some("schedule") => Rule::read(trigger)?,
            _ => None,
        };
        if !of_its_own {
            return Ok(None);
        }
        let schedule = Schedule::read(schedule, "/schedule")?;
        Ok(Some(Self {
            start_at: schedule.start_at,
            end_at: schedule.end_at,
            rule: rule.filter(|_| manner != Manner::Broadcast),
            zone: match schedule.zone {
                Zone::Subject => None,
                Zone::Named(zone) => Some(zone.iana_name().unwrap_or("UTC").to_owned()),
            },
        }))
    }

    /// Whether there is one run.
    pub fn is_once(&self) -> bool {
        self.rule.is_none()
    }

    /// The first run that is yet to reach somebody, of a campaign that is activated now. `last` is the occasion of its
    /// newest one: what was, is not made up for, and nothing runs twice. By everybody's own clock a run of today goes on
    /// where its time is still to come, unless there was one on that day.
    pub fn next(&self, last: Option<Timestamp>, now: Timestamp) -> Option<Run> {
        let from = self.start_at.map_or(now, |start_at| start_at.max(now));
        let Some(rule) = &self.rule else {
            let run = Run {
                occasion: from,
                begins_at: from,
            };
            return (last.is_none() && self.lasts(from)).then_some(run);
        };
        let last_day = last.and_then(|last| Some(self.local(last)?.date()));
        let mut date = self.local(self.earliest_reaching(from))?.date();
        loop {
            let at = rule.first_on_or_after(date)?;
            let run = self.run(at)?.not_before(from);
            if !self.lasts(run.begins_at) {
                return None;
            }
            let is_new = last.is_none_or(|last| run.occasion > last);
            let same_day = run.begins_at == from && last_day.is_some_and(|day| at.date() <= day);
            if self.ends_at(run) >= from && is_new && !(self.zone.is_none() && same_day) {
                return Some(run);
            }
            date = at.date().tomorrow().ok()?;
        }
    }

    /// The run that begins, of those that were to begin since `planned`: the first that is not over everywhere, or
    /// the newest.
    pub fn due(&self, planned: Run, now: Timestamp) -> Run {
        let mut newest = planned;
        if self.rule.is_some() {
            while let Some(next) = self.after(newest) {
                if next.begins_at > now || self.zone.is_none() && self.ends_at(newest) >= now {
                    break;
                }
                newest = next;
            }
        }
        newest
    }

    /// The run after another.
    pub fn after(&self, run: Run) -> Option<Run> {
        let rule = self.rule.as_ref()?;
        let at = rule.first_on_or_after(self.local(run.occasion)?.date().tomorrow().ok()?)?;
        let next = self.run(at)?.not_before(run.begins_at);
        Some(next).filter(|next| self.lasts(next.begins_at))
    }

    /// When a run has reached everybody.
    fn ends_at(&self, run: Run) -> Timestamp {
        match (&self.rule, &self.zone) {
            (Some(_), None) => shifted(run.occasion, FURTHEST_BEHIND_HOURS),
            _ => run.occasion,
        }
    }

    /// The earliest occasion that reaches somebody at or after an instant.
    fn earliest_reaching(&self, from: Timestamp) -> Timestamp {
        match self.zone {
            None => shifted(from, -FURTHEST_BEHIND_HOURS),
            Some(_) => from,
        }
    }

    /// When a run reaches somebody, by the clock that counts for it.
    pub fn reaches(&self, occasion: Timestamp, timezone: Option<&str>) -> Timestamp {
        if self.rule.is_none() || self.zone.is_some() {
            return occasion;
        }
        let zone = timezone.and_then(|name| TimeZone::get(name).ok());
        let (Some(zone), Some(local)) = (zone, local_in(occasion, &TimeZone::UTC)) else {
            return occasion;
        };
        instant(local, &zone).unwrap_or(occasion)
    }

    fn lasts(&self, at: Timestamp) -> bool {
        self.end_at.is_none_or(|end_at| at < end_at)
    }

    /// The zone that occasions are written in.
    fn zone(&self) -> TimeZone {
        let zone = self.zone.as_deref();
        zone.and_then(|name| TimeZone::get(name).ok())
            .unwrap_or(TimeZone::UTC)
    }

    fn local(&self, occasion: Timestamp) -> Option<DateTime> {
        local_in(occasion, &self.zone())
    }

    fn run(&self, at: DateTime) -> Option<Run> {
        let occasion = instant(at, &self.zone())?;
        let begins_at = if self.zone.is_some() {
            occasion
        } else {
            shifted(occasion, -FURTHEST_AHEAD_HOURS)
        };
        Some(Run {
            occasion,
            begins_at,
        })
    }
}

impl Run {
    /// The run for those whose time is at or after an instant.
    fn not_before(self, from: Timestamp) -> Self {
        Self {
            begins_at: self.begins_at.max(from),
            ..self
        }
    }
}

impl Rule {
    fn read(trigger: &Value) -> Result<Option<Self>, Vec<FieldError>> {
        let part = |key: &str| trigger.get(key).filter(|part| !part.is_null());
        let how_often = part("every").map(|every| every.as_str().unwrap_or_default());
        let mut errors = Vec::new();
        let mut wrong = |key: &str, code: &str, detail: &str| {
            errors.push(FieldError::new(format!("/trigger/{key}"), code, detail));
        };
        for (key, needs) in [("dayOfWeek", "week"), ("dayOfMonth", "month")] {
            if part(key).is_some() && how_often != Some(needs) {
                wrong(
                    key,
                    "not_allowed",
                    &format!("only what comes every `{needs}` has it"),
                );
            }
        }
        let every = match how_often {
            Some("day") => Some(Every::Day),
            Some("week") => {
                let day = part("dayOfWeek").map_or(Some(1), day_of_week);
                if day.is_none() {
                    wrong("dayOfWeek", "invalid", "`monday` to `sunday`");
                }
                day.map(Every::Week)
            }
            Some("month") => {
                let day = part("dayOfMonth").map_or(Some(1), day_of_month);
                if day.is_none() {
                    wrong("dayOfMonth", "out_of_range", "a whole number from 1 to 31");
                }
                day.map(Every::Month)
            }
            Some(_) => {
                wrong("every", "invalid", "`day`, `week` or `month`");
                None
            }
            None if part("at").is_some() => {
                let detail = "say how often it comes round: `day`, `week` or `month`";
                wrong("every", "required", detail);
                None
            }
            None => None,
        };
        let time = part("at").and_then(Value::as_str).and_then(time_of_day);
        if how_often.is_some() && time.is_none() {
            wrong("at", "invalid", "a time of day as `HH:MM`, 00:00 to 23:59");
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let whole = every.zip(time);
        Ok(whole.map(|(every, (hour, minute))| Self {
            every,
            hour,
            minute,
        }))
    }

    fn first_on_or_after(&self, date: Date) -> Option<DateTime> {
        let at = |date: Date| date.at(self.hour, self.minute, 0, 0);
        match self.every {
            Every::Day => Some(at(date)),
            Every::Week(day) => {
                let day = Weekday::from_monday_one_offset(day).ok()?;
                (0..DAYS_AHEAD)
                    .filter_map(|days| date.checked_add(days.days()).ok())
                    .find(|date| date.weekday() == day)
                    .map(at)
            }
            Every::Month(day) => (0..MONTHS_AHEAD)
                .filter_map(|months| {
                    let first = date.first_of_month().checked_add(months.months()).ok()?;
                    let day = day.min(first.days_in_month());
                    Date::new(first.year(), first.month(), day).ok()
                })
                .find(|found| *found >= date)
                .map(at),
        }
    }
}

fn day_of_week(day: &Value) -> Option<i8> {
    let name = day.as_str()?;
    let place = DAYS
        .iter()
        .position(|(long, short)| *long == name || *short == name)?;
    i8::try_from(place + 1).ok()
}

fn day_of_month(day: &Value) -> Option<i8> {
    let day = whole(day).filter(|day| (1..=31).contains(day))?;
    i8::try_from(day).ok()
}

/// Reads `HH:MM`, 00:00 to 23:59.
fn time_of_day(text: &str) -> Option<(i8, i8)> {
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i8>().ok()).flatten()
    };
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60).then_some((hour, minute))
}

fn shifted(instant: Timestamp, hours: i64) -> Timestamp {
    Timestamp(instant.0.saturating_add(hours * MICROS_PER_HOUR))
}

fn local_in(instant: Timestamp, zone: &TimeZone) -> Option<DateTime> {
    let instant = jiff::Timestamp::from_microsecond(instant.0).ok()?;
    Some(zone.to_datetime(instant))
}

/// The instant of a local time. One that clocks skip is as much later, of one that they show twice it is the
/// first.
fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let instant = zone.to_ambiguous_timestamp(local).compatible().ok()?;
    Some(Timestamp(instant.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use nudge_platform::clock;

    fn at(text: &str) -> Timestamp {
        clock::from_text(text).unwrap()
    }

    fn plan(manner: Manner, trigger: &Value, schedule: &Value) -> Option<Plan> {
        let present = |part: &Value| (!part.is_null()).then(|| part.clone());
        Plan::read(
            manner,
            present(trigger).as_ref(),
            present(schedule).as_ref(),
        )
        .unwrap()
    }

    fn every(trigger: &Value, zone: &str) -> Plan {
        let mut whole = json!({"kind": "schedule"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(trigger.as_object().unwrap().clone());
        plan(Manner::Scheduled, &whole, &json!({"timezone": zone})).unwrap()
    }

    fn occasions(plan: &Plan, from: &str, count: usize) -> Vec<String> {
        let mut run = plan.next(None, at(from));
        let mut found = Vec::new();
        while let Some(next) = run.filter(|_| found.len() < count) {
            found.push(clock::to_text(next.begins_at));
            run = plan.after(next);
        }
        found
    }

    #[test]
    fn who_runs_by_the_calendar() {
        let nothing = Value::Null;
        let schedule = json!({"kind": "schedule"});
        let event = json!({"kind": "event", "eventName": "purchase"});
        for (manner, trigger, runs) in [
            (Manner::Scheduled, &nothing, true),
            (Manner::Scheduled, &schedule, true),
            (Manner::Scheduled, &event, false),
            (Manner::Triggered, &schedule, true),
            (Manner::Triggered, &event, false),
            (Manner::Triggered, &nothing, false),
            (Manner::Broadcast, &nothing, true),
            (Manner::Broadcast, &event, true),
            (Manner::Never, &schedule, false),
        ] {
            assert_eq!(
                plan(manner, trigger, &nothing).is_some(),
                runs,
                "{manner:?} {trigger}"
            );
        }
        let daily = json!({"kind": "schedule", "every": "day", "at": "09:00"});
        assert!(plan(Manner::Broadcast, &daily, &nothing).unwrap().is_once());
        assert!(!plan(Manner::Scheduled, &daily, &nothing).unwrap().is_once());
    }

    #[test]
    fn one_run_begins_when_it_is_said_or_at_once_and_never_again() {
        let now = at("2026-03-01T12:00:00Z");
        let of = |schedule: Value| plan(Manner::Scheduled, &Value::Null, &schedule).unwrap();
        let begins = |plan: &Plan| plan.next(None, now).map(|run| run.begins_at);
        assert_eq!(begins(&of(json!({}))), Some(now));
        let later = of(json!({"startAt": "2026-03-02T00:00:00+02:00"}));
        assert_eq!(begins(&later), Some(at("2026-03-01T22:00:00Z")));
        assert_eq!(
            begins(&of(json!({"startAt": "2026-02-01T00:00:00Z"}))),
            Some(now)
        );
        assert_eq!(begins(&of(json!({"endAt": "2026-03-01T12:00:00Z"}))), None);
        assert_eq!(
            begins(&of(json!({"endAt": "2026-03-01T12:00:01Z"}))),
            Some(now)
        );
        assert_eq!(later.next(Some(now), now), None);
        let run = later.next(None, now).unwrap();
        assert_eq!(later.after(run), None);
        assert_eq!(later.due(run, at("2027-01-01T00:00:00Z")), run);
    }

    #[test]
    fn days_weeks_and_months_come_round_by_the_clock_of_the_zone() {
        let vienna = "Europe/Vienna";
        let daily = every(&json!({"every": "day", "at": "09:30"}), vienna);
        // Clocks go forward on the 29th.
        assert_eq!(
            occasions(&daily, "2026-03-28T08:30:00Z", 3),
            [
                "2026-03-28T08:30:00.000Z",
                "2026-03-29T07:30:00.000Z",
                "2026-03-30T07:30:00.000Z"
            ]
        );
        assert_eq!(
            occasions(&daily, "2026-03-28T08:30:00.001Z", 1),
            ["2026-03-29T07:30:00.000Z"]
        );
        let skipped = every(&json!({"every": "day", "at": "02:30"}), vienna);
        assert_eq!(
            occasions(&skipped, "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:30:00.000Z", "2026-03-30T00:30:00.000Z"]
        );
        let twice = every(&json!({"every": "day", "at": "02:30"}), vienna);
        assert_eq!(
            occasions(&twice, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]
        );
        let weekly = every(
            &json!({"every": "week", "dayOfWeek": "thursday", "at": "00:00"}),
            "UTC",
        );
        assert_eq!(
            occasions(&weekly, "2026-12-25T00:00:00Z", 2),
            ["2026-12-31T00:00:00.000Z", "2027-01-07T00:00:00.000Z"]
        );
        let last = every(
            &json!({"every": "month", "dayOfMonth": 31, "at": "23:59"}),
            "UTC",
        );
        assert_eq!(
            occasions(&last, "2028-01-31T23:59:01Z", 3),
            [
                "2028-02-29T23:59:00.000Z",
                "2028-03-31T23:59:00.000Z",
                "2028-04-30T23:59:00.000Z"
            ]
        );
    }

    #[test]
    fn by_everybodys_own_clock_a_run_begins_where_it_is_first() {
        let daily = every(&json!({"every": "day", "at": "09:00"}), "subject");
        let run = daily.next(None, at("2026-03-01T21:00:01Z")).unwrap();
        assert_eq!(run.occasion, at("2026-03-02T09:00:00Z"));
        let run = daily.next(None, at("2026-03-01T06:00:00Z"));
        let run = daily.after(run.unwrap()).unwrap();
        assert_eq!(run.begins_at, at("2026-03-01T19:00:00Z"));
        let reaches = |zone: Option<&str>| clock::to_text(daily.reaches(run.occasion, zone));
        assert_eq!(
            reaches(Some("Pacific/Kiritimati")),
            "2026-03-01T19:00:00.000Z"
        );
        assert_eq!(reaches(Some("Europe/Vienna")), "2026-03-02T08:00:00.000Z");
        assert_eq!(reaches(Some("Pacific/Midway")), "2026-03-02T20:00:00.000Z");
        assert_eq!(reaches(Some("Mars/Olympus")), "2026-03-02T09:00:00.000Z");
        assert_eq!(reaches(None), "2026-03-02T09:00:00.000Z");
    }

    #[test]
    fn by_everybodys_own_clock_a_run_of_today_goes_on_where_its_time_is_yet_to_come() {
        let daily = every(&json!({"every": "day", "at": "09:00"}), "subject");
        let run = |last: Option<&str>, now: &str| {
            let run = daily.next(last.map(at), at(now)).unwrap();
            (clock::to_text(run.occasion), clock::to_text(run.begins_at))
        };
        let expected =
            |occasion: &str, begins_at: &str| (occasion.to_owned(), begins_at.to_owned());
        let (first, second) = ("2026-03-01T09:00:00.000Z", "2026-03-02T09:00:00.000Z");
        // At 20:00 UTC it is 09:00 of the first in Midway, and 10:00 of the second in Kiritimati.
        let now = "2026-03-01T20:00:00.000Z";
        assert_eq!(run(None, now), expected(first, now));
        let begun = daily.next(None, at(now)).unwrap();
        let after = daily.after(begun).unwrap();
        assert_eq!((after.occasion, after.begins_at), (at(second), at(now)));
        // Neither of them was to begin later, so that neither is passed over.
        assert_eq!(daily.due(begun, at(now)), begun);
        assert_eq!(daily.due(begun, at("2026-03-01T21:00:00Z")), begun);
        assert_eq!(daily.due(begun, at("2026-03-01T21:00:01Z")), after);
        // What was begun is not begun again, nor another one of that day.
        assert_eq!(run(Some(first), now), expected(second, now));
        assert_eq!(
            run(Some("2026-03-01T08:00:00Z"), now),
            expected(second, now)
        );
    }

    #[test]
    fn what_was_missed_is_made_up_for_once() {
        let daily = every(&json!({"every": "day", "at": "09:00"}), "UTC");
        let planned = daily.next(None, at("2026-03-01T12:00:00Z")).unwrap();
        let late = daily.due(planned, at("2026-03-05T15:00:00Z"));
        assert_eq!(late.occasion, at("2026-03-05T09:00:00Z"));
        assert_eq!(
            daily.after(late).unwrap().occasion,
            at("2026-03-06T09:00:00Z")
        );
        assert_eq!(daily.due(planned, planned.begins_at), planned);
    }

    #[test]
    fn mistakes_are_named() {
        let pointers = |trigger: Value| -> Vec<String> {
            let errors = Plan::read(Manner::Scheduled, Some(&trigger), None);
            let errors = errors.err().unwrap_or_default();
            errors.into_iter().map(|error| error.pointer).collect()
        };
        let of = |rest: Value| {
            let mut trigger = json!({"kind": "schedule"});
            trigger
                .as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            pointers(trigger)
        };
        assert!(of(json!({})).is_empty());
        assert!(of(json!({"every": "day", "at": "00:00"})).is_empty());
        assert_eq!(of(json!({"at": "00:00"})), ["/trigger/every"]);
        assert_eq!(of(json!({"every": "day"})), ["/trigger/at"]);
        for time in ["24:00", "9:00", "09:60", "", "+9:00", "09:00:00"] {
            assert_eq!(of(json!({"every": "day", "at": time})), ["/trigger/at"]);
        }
        assert_eq!(
            of(json!({"every": "year", "at": "09:00"})),
            ["/trigger/every"]
        );
        for day in [json!(0), json!(32), json!(1.5), json!("1")] {
            assert_eq!(
                of(json!({"every": "month", "dayOfMonth": day, "at": "09:00"})),
                ["/trigger/dayOfMonth"]
            );
        }
        assert_eq!(
            of(json!({"every": "day", "dayOfWeek": "monday", "dayOfMonth": 1, "at": "09:00"})),
            ["/trigger/dayOfWeek", "/trigger/dayOfMonth"]
        );
    }

    proptest! {
        #[test]
        fn runs_ascend_and_none_is_before_its_time(
            from in 1_700_000_000_i64..2_000_000_000,
            every in 0_usize..3,
            day in 1_i8..=31,
            (hour, minute) in (0_i8..24, 0_i8..60),
            zone in prop::sample::select(vec!["subject", "UTC", "Europe/Vienna", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe"]),
        ) {
            let plan = Plan {
                start_at: None,
                end_at: None,
                rule: Some(Rule {
                    every: [Every::Day, Every::Week((day - 1) % 7 + 1), Every::Month(day)][every],
                    hour,
                    minute,
                }),
                zone: (zone != "subject").then(|| zone.to_owned()),
            };
            let from = Timestamp::from_seconds(from);
            let first = plan.next(None, from).unwrap();
            prop_assert!(first.begins_at >= from);
            let second = plan.after(first).unwrap();
            prop_assert!(second.occasion > first.occasion && second.begins_at >= first.begins_at);
            // Asked again after it, the plan goes on where it was.
            prop_assert_eq!(plan.next(Some(first.occasion), first.begins_at), Some(second));
            let over = plan.ends_at(first).max(second.begins_at);
            prop_assert_eq!(plan.due(first, Timestamp(over.0 + 1)).occasion, second.occasion);
            for whose in [None, Some("Pacific/Kiritimati"), Some("Pacific/Midway"), Some("Asia/Kathmandu")] {
                let reached = plan.reaches(second.occasion, whose);
                prop_assert!(reached >= second.begins_at || first.begins_at == second.begins_at);
                prop_assert!(reached <= plan.ends_at(second));
            }
        }
    }
}
