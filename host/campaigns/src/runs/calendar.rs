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

#[cfg(test)]
mod tests;

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
    /// Reads when a campaign runs from its manner and `trigger`; pointers are into its body. None: by what people do.
    ///
    /// A `trigger` of the kind `schedule` with `every` (`day`, `week`, `month`) and `at` (`HH:MM`) comes round by
    /// the schedule's `timezone`; a week's has `dayOfWeek` (`monday` …, unless said otherwise that), a month's
    /// `dayOfMonth` (1 to 31, unless said otherwise 1). Without `every` it comes once: at `startAt`, or when the
    /// campaign is activated.
    pub fn read(
        manner: Manner,
        trigger: Option<&Value>,
        schedule: &Schedule,
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
        Ok(Some(Self {
            start_at: schedule.start_at,
            end_at: schedule.end_at,
            rule: rule.filter(|_| manner != Manner::Broadcast),
            zone: match &schedule.zone {
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
        // The day before has one that is yet to come where clocks skip its time and the rest of that day.
        let mut date = self.local(self.earliest_reaching(from))?.date();
        date = date.yesterday().unwrap_or(date);
        loop {
            let at = rule.first_on_or_after(date)?;
            let run = self.run(at)?.not_before(from);
            if !self.lasts(run.begins_at) {
                return None;
            }
            let is_new = last.is_none_or(|last| run.occasion > last);
            let same_day = self.zone.is_none() && last_day.is_some_and(|day| at.date() <= day);
            if self.ends_at(run) >= from && is_new && !same_day {
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
        // One whose time clocks skip may have come on the next day, which has its own.
        let mut at = rule.first_on_or_after(self.local(run.occasion)?.date())?;
        let mut next = self.run(at)?;
        if next.occasion <= run.occasion {
            at = rule.first_on_or_after(at.date().tomorrow().ok()?)?;
            next = self.run(at)?;
        }
        let next = next.not_before(run.begins_at);
        Some(next).filter(|next| self.lasts(next.begins_at))
    }

    /// Plans anew where the clock was set back since the runs were noted: the occasion of the newest run, and the next run. None:
    /// both stay. At most one run is passed over, which the clock that was ahead may have begun. `last` is the occasion of the
    /// newest run.
    pub fn replanned(
        &self,
        last: Option<Timestamp>,
        next: Option<Run>,
        now: Timestamp,
    ) -> Option<(Option<Timestamp>, Option<Run>)> {
        let mut first = self.next(None, now)?;
        let Some(last) = last else {
            let is_too_late = next.is_some_and(|next| first.begins_at < next.begins_at);
            return is_too_late.then_some((None, Some(first)));
        };
        while first.begins_at <= now {
            first = self.after(first)?;
        }
        let second = self.after(first)?;
        let is_too_late = match next {
            Some(next) => second.begins_at < next.begins_at,
            None => first.occasion < last,
        };
        is_too_late.then_some((Some(first.occasion), next.and(Some(second))))
    }

    /// When a run that has begun reaches its last people, at the latest.
    pub fn reaches_by(&self, now: Timestamp) -> Timestamp {
        match (&self.rule, &self.zone) {
            (Some(_), None) => shifted(now, FURTHEST_AHEAD_HOURS + FURTHEST_BEHIND_HOURS),
            _ => now,
        }
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
