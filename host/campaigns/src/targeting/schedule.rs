//! When a campaign runs (contract 8, Schedule).

use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_platform::field_error::FieldError;
use serde::Deserialize;
use serde_json::Value;

use super::Suppression;
use super::clock_face::{self, Began, Hours, Minute};
use crate::settings::{OnQuiet, QuietHours};

/// Windows that a schedule may have.
const MOST_WINDOWS: usize = 24;
/// Days that a schedule may name, each once by either of its names.
const MOST_DAYS: usize = 14;
/// The largest `maxResponses`.
const MOST_RESPONSES: i64 = 1_000_000_000;
/// How often an end of quiet hours may lie in others.
const MOST_TURNS: usize = 8;
/// Days that are looked at for the next day or window: a week, the rest of today, and one for zones that skip a day.
const DAYS_AHEAD: usize = 9;
/// How often a day or window that something waits for may begin in quiet hours. Those of a campaign and of its app are two a day, and
/// a third is one that goes over midnight.
const MOST_WAITS: usize = 3 * DAYS_AHEAD;

/// Days of the week as people write them: names, or numbers with Monday as 1 and Sunday as 7 or 0.
const DAYS: [(&[&str], Weekday); 7] = [
    (&["monday", "mon"], Weekday::Monday),
    (&["tuesday", "tue"], Weekday::Tuesday),
    (&["wednesday", "wed"], Weekday::Wednesday),
    (&["thursday", "thu"], Weekday::Thursday),
    (&["friday", "fri"], Weekday::Friday),
    (&["saturday", "sat"], Weekday::Saturday),
    (&["sunday", "sun"], Weekday::Sunday),
];

/// A schedule, compiled.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Nothing is fired before.
    pub start_at: Option<Timestamp>,
    /// Nothing is fired from then on, and the campaign is completed.
    pub end_at: Option<Timestamp>,
    /// Whose clock days, windows and quiet hours are by.
    pub zone: Zone,
    /// The days on which something is fired; none: all.
    days: Vec<Weekday>,
    /// The hours in which something is fired; none: all. Those over midnight belong to the day that they begin on.
    windows: Vec<Hours>,
    /// The hours in which nobody is disturbed.
    pub quiet: Option<Quiet>,
    /// How many responses complete a survey.
    pub max_responses: Option<i64>,
}

/// Whose clock a schedule is by.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Zone {
    /// The subject's, as the SDK last told it; UTC until it did.
    #[default]
    Subject,
    /// One for everybody.
    Named(TimeZone),
}

impl Zone {
    /// The zone that counts for a subject.
    pub fn of(&self, subject: Option<&str>) -> TimeZone {
        match self {
            Self::Named(zone) => zone.clone(),
            Self::Subject => subject.and_then(clock_face::zone).unwrap_or(TimeZone::UTC),
        }
    }
}

/// Hours in which nobody is disturbed, and what becomes of what falls into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    hours: Hours,
    on_quiet: OnQuiet,
}

impl Quiet {
    /// Compiles settings. None: they are not as they were checked.
    pub fn of(settings: &QuietHours) -> Option<Self> {
        let hours = Hours {
            from: Minute::parse(&settings.from)?,
            to: Minute::parse(&settings.to)?,
        };
        let on_quiet = settings.on_quiet;
        (hours.from != hours.to).then_some(Self { hours, on_quiet })
    }
}

/// Whether something may be fired at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It may.
    Open,
    /// It may not.
    Closed(Suppression),
    /// It waits for the end of quiet hours and, where that lies outside of days or windows, for the next one.
    Deferred(Timestamp),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    start_at: Option<String>,
    end_at: Option<String>,
    timezone: Option<String>,
    days_of_week: Option<Vec<Value>>,
    time_windows: Option<Vec<Window>>,
    quiet_hours: Option<WrittenQuiet>,
    max_responses: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenQuiet {
    from: String,
    to: String,
    on_quiet: OnQuiet,
}

/// What is wrong with a schedule, as far as it was read.
struct Reader<'p> {
    place: &'p str,
    errors: Vec<FieldError>,
}

impl Schedule {
    /// Reads a `schedule`; `place` is its pointer.
    pub fn read(schedule: Option<&Value>, place: &str) -> Result<Self, Vec<FieldError>> {
        let Some(schedule) = schedule else {
            return Ok(Self::default());
        };
        let written: Written =
            nudge_platform::json::shape(schedule.clone(), place).map_err(|error| vec![error])?;
        let mut reader = Reader {
            place,
            errors: Vec::new(),
        };
        let schedule = reader.schedule(&written);
        if reader.errors.is_empty() {
            Ok(schedule)
        } else {
            Err(reader.errors)
        }
    }

    /// Whether it has begun by an instant and is not over. Days and hours are not asked.
    pub fn is_within(&self, now: Timestamp) -> bool {
        self.start_at.is_none_or(|start_at| start_at <= now)
            && self.end_at.is_none_or(|end_at| now < end_at)
    }

    /// Whether something may be fired for a subject at an instant. `subject` is the subject's zone, `app` the
    /// app's quiet hours, which are by it.
    pub fn opening(&self, now: Timestamp, subject: Option<&str>, app: Option<Quiet>) -> Opening {
        if self.start_at.is_some_and(|start_at| now < start_at) {
            return Opening::Closed(Suppression::NotStarted);
        }
        if self.end_at.is_some_and(|end_at| now >= end_at) {
            return Opening::Closed(Suppression::Ended);
        }
        if !self.is_by_clock() && app.is_none() {
            return Opening::Open;
        }
        let zone = self.zone.of(subject);
        if let Some(local) = clock_face::local(now, &zone)
            && let Some(reason) = self.closed(local)
        {
            return Opening::Closed(reason);
        }
        self.while_quiet(now, subject, app)
    }

    /// The same, as far as quiet hours are concerned: of what has been fired.
    pub fn while_quiet(
        &self,
        now: Timestamp,
        subject: Option<&str>,
        app: Option<Quiet>,
    ) -> Opening {
        let zone = self.zone.of(subject);
        let mut quiet = Vec::new();
        quiet.extend(self.quiet.map(|hours| (hours, zone.clone())));
        quiet.extend(app.map(|hours| (hours, Zone::Subject.of(subject))));
        let mut at = undisturbed(&quiet, now);
        for _ in 0..MOST_WAITS {
            match at {
                None => break,
                Some(at) if at == now => return Opening::Open,
                Some(end) if self.is_open(end, &zone) => return Opening::Deferred(end),
                Some(end) => {
                    let next = self.opens_after(end, &zone);
                    at = next.and_then(|next| undisturbed(&quiet, next));
                }
            }
        }
        Opening::Closed(Suppression::QuietHours)
    }

    /// When it may open after an instant: at its start or, by days and hours, with the next minute. None: no time that passes
    /// opens it.
    pub fn may_open_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.start_at.is_some_and(|start_at| now < start_at) {
            return self.start_at;
        }
        let is_over = self.end_at.is_some_and(|end_at| now >= end_at);
        // Offsets of time zones are whole minutes.
        let next_minute = now.seconds().div_euclid(60).saturating_add(1);
        let next = Timestamp::from_seconds(next_minute.saturating_mul(60));
        (self.is_by_clock() && !is_over).then_some(next)
    }

    /// Whether it has days, windows or quiet hours.
    fn is_by_clock(&self) -> bool {
        !self.days.is_empty() || !self.windows.is_empty() || self.quiet.is_some()
    }

    /// Whether days and windows let something be fired at an instant.
    fn is_open(&self, at: Timestamp, zone: &TimeZone) -> bool {
        clock_face::local(at, zone).is_none_or(|local| self.closed(local).is_none())
    }

    /// When days and windows let something be fired next.
    fn opens_after(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let windows = self.windows.iter().map(|window| window.from);
        let begins: Vec<Minute> = windows.chain([Minute::MIDNIGHT]).collect();
        let is_open = |local| self.closed(local).is_none();
        clock_face::first_after(at, zone, DAYS_AHEAD, &begins, is_open)
    }

    /// Why nothing is fired at a local time, by days and windows.
    fn closed(&self, local: DateTime) -> Option<Suppression> {
        let today = local.date().weekday();
        let is_open = |day: Weekday| self.days.is_empty() || self.days.contains(&day);
        if self.windows.is_empty() {
            return (!is_open(today)).then_some(Suppression::OutsideDays);
        }
        let mut reason = Suppression::OutsideHours;
        for window in &self.windows {
            let day = match window.contain(local) {
                None => continue,
                Some(Began::Today) => today,
                Some(Began::Yesterday) => today.previous(),
            };
            if is_open(day) {
                return None;
            }
            reason = Suppression::OutsideDays;
        }
        Some(reason)
    }
}

/// When a firing at an instant disturbs nobody, by all quiet hours together; none: they drop it, or never end.
fn undisturbed(quiet: &[(Quiet, TimeZone)], now: Timestamp) -> Option<Timestamp> {
    let mut at = now;
    for _ in 0..MOST_TURNS {
        let disturbing = quiet.iter().find(|(quiet, zone)| {
            let local = clock_face::local(at, zone);
            local.is_some_and(|local| quiet.hours.contain(local).is_some())
        });
        let Some((quiet, zone)) = disturbing else {
            return Some(at);
        };
        match quiet.on_quiet {
            OnQuiet::Defer => at = quiet.hours.end_after(at, zone)?,
            OnQuiet::Drop => return None,
        }
    }
    None
}

impl Reader<'_> {
    fn wrong(&mut self, pointer: &str, code: &str, detail: &str) {
        let pointer = format!("{}{pointer}", self.place);
        self.errors.push(FieldError::new(pointer, code, detail));
    }

    fn schedule(&mut self, written: &Written) -> Schedule {
        let start_at = self.instant("/startAt", written.start_at.as_deref());
        let end_at = self.instant("/endAt", written.end_at.as_deref());
        if let (Some(start_at), Some(end_at)) = (start_at, end_at)
            && end_at <= start_at
        {
            self.wrong("/endAt", "out_of_range", "must be after `startAt`");
        }
        let zone = self.zone(written.timezone.as_deref());
        let days = self.days(written.days_of_week.as_deref());
        let windows = self.windows(written.time_windows.as_deref());
        let quiet = written.quiet_hours.as_ref().and_then(|quiet| {
            let hours = self.hours("/quietHours", &quiet.from, &quiet.to, Minute::parse)?;
            let on_quiet = quiet.on_quiet;
            Some(Quiet { hours, on_quiet })
        });
        let max_responses = written.max_responses;
        if max_responses.is_some_and(|most| !(1..=MOST_RESPONSES).contains(&most)) {
            let detail = format!("must be 1 to {MOST_RESPONSES}");
            self.wrong("/maxResponses", "out_of_range", &detail);
        }
        Schedule {
            start_at,
            end_at,
            zone,
            days,
            windows,
            quiet,
            max_responses,
        }
    }

    fn instant(&mut self, pointer: &str, text: Option<&str>) -> Option<Timestamp> {
        let instant = clock::from_text(text?);
        if instant.is_none() {
            let detail = "an ISO 8601 instant with an offset, such as 2026-05-01T09:00:00Z";
            self.wrong(pointer, "invalid", detail);
        }
        instant
    }

    fn zone(&mut self, name: Option<&str>) -> Zone {
        let Some(name) = name.filter(|name| *name != "subject") else {
            return Zone::Subject;
        };
        let Some(zone) = clock_face::zone(name) else {
            let detail = "`subject`, or an IANA time zone such as Europe/Vienna";
            self.wrong("/timezone", "invalid", detail);
            return Zone::Subject;
        };
        Zone::Named(zone)
    }

    fn days(&mut self, written: Option<&[Value]>) -> Vec<Weekday> {
        let Some(written) = written else {
            return Vec::new();
        };
        if !(1..=MOST_DAYS).contains(&written.len()) {
            self.wrong("/daysOfWeek", "out_of_range", "1 to 7 days");
            return Vec::new();
        }
        let mut days = Vec::new();
        for (index, value) in written.iter().enumerate() {
            let day = day(value);
            if day.is_none() {
                let detail = "a day: `monday` or `mon`, or 1 for Monday to 7 for Sunday";
                self.wrong(&format!("/daysOfWeek/{index}"), "invalid", detail);
            }
            days.extend(day);
        }
        days
    }

    fn windows(&mut self, written: Option<&[Window]>) -> Vec<Hours> {
        let Some(written) = written else {
            return Vec::new();
        };
        if !(1..=MOST_WINDOWS).contains(&written.len()) {
            let detail = format!("1 to {MOST_WINDOWS} windows");
            self.wrong("/timeWindows", "out_of_range", &detail);
            return Vec::new();
        }
        let mut windows = Vec::new();
        for (index, window) in written.iter().enumerate() {
            let place = format!("/timeWindows/{index}");
            windows.extend(self.hours(&place, &window.from, &window.to, Minute::parse_end));
        }
        windows
    }

    fn hours(
        &mut self,
        place: &str,
        from: &str,
        to: &str,
        end: fn(&str) -> Option<Minute>,
    ) -> Option<Hours> {
        let (from, to) = (Minute::parse(from), end(to));
        for (name, time) in [("from", from), ("to", to)] {
            if time.is_none() {
                let detail = "a time of day, 00:00 to 23:59";
                self.wrong(&format!("{place}/{name}"), "invalid", detail);
            }
        }
        let (from, to) = (from?, to?);
        if from == to {
            let detail = "must be another time than `from`";
            self.wrong(&format!("{place}/to"), "invalid", detail);
            return None;
        }
        Some(Hours { from, to })
    }
}

fn day(value: &Value) -> Option<Weekday> {
    if let Some(number) = nudge_platform::json::whole(value) {
        let number = i8::try_from(number).ok()?;
        return if number == 0 {
            Some(Weekday::Sunday)
        } else {
            Weekday::from_monday_one_offset(number).ok()
        };
    }
    let name = value.as_str()?.to_lowercase();
    let mut days = DAYS.iter();
    days.find(|(names, _)| names.contains(&name.as_str()))
        .map(|(_, day)| *day)
}

#[cfg(test)]
mod tests;
