//! Schedules against a calendar.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schedule(body: &Value) -> Schedule {
    Schedule::read(Some(body), "").unwrap()
}

fn at(text: &str) -> Timestamp {
    clock::from_text(text).unwrap()
}

fn wrong(body: &Value) -> Vec<String> {
    match Schedule::read(Some(body), "") {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.pointer).collect(),
    }
}

const OUTSIDE_DAYS: Opening = Opening::Closed(Suppression::OutsideDays);
const OUTSIDE_HOURS: Opening = Opening::Closed(Suppression::OutsideHours);

#[test]
fn a_schedule_begins_and_ends_at_its_instants() {
    let schedule =
        schedule(&json!({"startAt": "2026-05-01T00:00:00Z", "endAt": "2026-06-01T02:00:00+02:00"}));
    let opening = |now: &str| schedule.opening(at(now), None, None);
    assert_eq!(
        opening("2026-04-30T23:59:59.999Z"),
        Opening::Closed(Suppression::NotStarted)
    );
    assert_eq!(opening("2026-05-01T00:00:00Z"), Opening::Open);
    assert_eq!(opening("2026-05-31T23:59:59.999Z"), Opening::Open);
    assert_eq!(
        opening("2026-06-01T00:00:00Z"),
        Opening::Closed(Suppression::Ended)
    );
}

#[test]
fn a_schedule_opens_at_its_start_or_with_a_minute() {
    let may_open = |body: &Value, now: &str| schedule(body).may_open_at(at(now));
    let begins = json!({"startAt": "2026-05-01T00:00:30Z", "daysOfWeek": ["fri"]});
    let start = at("2026-05-01T00:00:30Z");
    assert_eq!(may_open(&begins, "2026-04-30T12:00:00Z"), Some(start));
    let next = at("2026-05-01T00:01:00Z");
    assert_eq!(may_open(&begins, "2026-05-01T00:00:30Z"), Some(next));
    let after = at("2026-05-01T00:02:00Z");
    assert_eq!(may_open(&begins, "2026-05-01T00:01:00Z"), Some(after));
    let ends = json!({"endAt": "2026-05-01T00:00:00Z", "daysOfWeek": ["fri"]});
    assert_eq!(may_open(&ends, "2026-05-01T00:00:00Z"), None);
    assert_eq!(may_open(&json!({}), "2026-05-01T00:00:00Z"), None);
}

#[test]
fn days_are_those_of_the_zone() {
    let monday = schedule(&json!({"daysOfWeek": ["Monday"], "timezone": "Asia/Tokyo"}));
    // Monday, 2026-06-01 in Tokyo begins on Sunday at 15:00 UTC.
    assert_eq!(
        monday.opening(at("2026-05-31T14:59:59Z"), None, None),
        OUTSIDE_DAYS
    );
    assert_eq!(
        monday.opening(at("2026-05-31T15:00:00Z"), None, None),
        Opening::Open
    );
    let of_subject = schedule(&json!({"daysOfWeek": [1], "timezone": "subject"}));
    let now = at("2026-05-31T15:00:00Z");
    assert_eq!(
        of_subject.opening(now, Some("Asia/Tokyo"), None),
        Opening::Open
    );
    assert_eq!(of_subject.opening(now, None, None), OUTSIDE_DAYS);
    assert_eq!(
        of_subject.opening(now, Some("No/Where"), None),
        OUTSIDE_DAYS
    );
}

#[test]
fn windows_over_midnight_belong_to_the_day_that_they_begin_on() {
    let friday = schedule(&json!({
        "daysOfWeek": ["fri"], "timezone": "UTC", "timeWindows": [{"from": "22:00", "to": "02:00"}],
    }));
    let opening = |now: &str| friday.opening(at(now), None, None);
    assert_eq!(opening("2026-06-05T21:59:59Z"), OUTSIDE_HOURS);
    assert_eq!(opening("2026-06-05T22:00:00Z"), Opening::Open);
    assert_eq!(opening("2026-06-06T01:59:59Z"), Opening::Open);
    assert_eq!(opening("2026-06-06T02:00:00Z"), OUTSIDE_HOURS);
    assert_eq!(opening("2026-06-05T01:00:00Z"), OUTSIDE_DAYS);
}

#[test]
fn a_window_that_the_clocks_skip_does_not_come_that_day() {
    let night = schedule(&json!({
        "timezone": "Europe/Vienna", "timeWindows": [{"from": "02:00", "to": "03:00"}],
    }));
    let minutes = |day: &str| {
        let midnight = at(&format!("{day}T00:00:00Z"));
        let open = (0..24 * 60).filter(|minute| {
            let now = Timestamp(midnight.0 + minute * 60_000_000);
            night.opening(now, None, None) == Opening::Open
        });
        open.count()
    };
    assert_eq!(minutes("2026-03-29"), 0);
    assert_eq!(minutes("2026-03-30"), 60);
    assert_eq!(minutes("2026-10-25"), 120);
}

#[test]
fn quiet_hours_defer_or_drop() {
    let quiet = |on_quiet: &str| {
        schedule(
            &json!({"timezone": "UTC", "quietHours": {"from": "22:00", "to": "07:00", "onQuiet": on_quiet}}),
        )
    };
    let (defer, drop) = (quiet("defer"), quiet("drop"));
    let now = at("2026-06-05T23:00:00Z");
    assert_eq!(
        defer.opening(now, None, None),
        Opening::Deferred(at("2026-06-06T07:00:00Z"))
    );
    assert_eq!(
        drop.opening(now, None, None),
        Opening::Closed(Suppression::QuietHours)
    );
    assert_eq!(
        drop.opening(at("2026-06-05T21:59:59Z"), None, None),
        Opening::Open
    );
    assert_eq!(
        drop.opening(at("2026-06-06T07:00:00Z"), None, None),
        Opening::Open
    );
}

#[test]
fn the_apps_quiet_hours_are_the_subjects_and_hold_beside_the_campaigns() {
    let app = Quiet::of(&QuietHours {
        from: "06:00".to_owned(),
        to: "09:00".to_owned(),
        on_quiet: OnQuiet::Defer,
    });
    let own = schedule(
        &json!({"timezone": "UTC", "quietHours": {"from": "22:00", "to": "07:00", "onQuiet": "defer"}}),
    );
    let now = at("2026-06-05T23:00:00Z");
    // 07:00 UTC is 07:00 in Reykjavik, which is in the app's hours.
    let opening = own.opening(now, Some("Atlantic/Reykjavik"), app);
    assert_eq!(opening, Opening::Deferred(at("2026-06-06T09:00:00Z")));
    // In New York the app's hours begin at 10:00 UTC.
    let opening = own.opening(now, Some("America/New_York"), app);
    assert_eq!(opening, Opening::Deferred(at("2026-06-06T07:00:00Z")));
    let opening =
        Schedule::default().opening(at("2026-06-06T10:00:00Z"), Some("America/New_York"), app);
    assert_eq!(opening, Opening::Deferred(at("2026-06-06T13:00:00Z")));
}

#[test]
fn what_waits_for_the_end_of_quiet_hours_comes_on_a_day_and_in_a_window() {
    let with = |parts: Value| {
        let mut body = json!({"timezone": "UTC", "quietHours": {"from": "22:00", "to": "07:00", "onQuiet": "defer"}});
        let parts = parts.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(parts);
        schedule(&body)
    };
    // The 5th is a Friday.
    let friday = at("2026-06-05T23:00:00Z");
    let week = with(json!({"daysOfWeek": [1, 2, 3, 4, 5]}));
    let monday = Opening::Deferred(at("2026-06-08T07:00:00Z"));
    assert_eq!(week.opening(friday, None, None), monday);
    // So it is with what was fired before they began.
    assert_eq!(week.while_quiet(friday, None, None), monday);
    let saturday = at("2026-06-06T12:00:00Z");
    assert_eq!(week.while_quiet(saturday, None, None), Opening::Open);
    let windows = json!([{"from": "06:00", "to": "08:00"}, {"from": "21:00", "to": "23:30"}]);
    let hours = with(json!({"daysOfWeek": ["fri"], "timeWindows": windows}));
    let next = Opening::Deferred(at("2026-06-12T07:00:00Z"));
    assert_eq!(hours.opening(friday, None, None), next);
    let always_quiet = json!({"timeWindows": [{"from": "22:00", "to": "23:30"}]});
    assert_eq!(
        with(always_quiet).opening(friday, None, None),
        Opening::Closed(Suppression::QuietHours)
    );
}

#[test]
fn a_day_whose_midnight_the_clocks_skip_begins_when_they_jump() {
    let sunday = schedule(&json!({
        "timezone": "America/Santiago", "daysOfWeek": ["sun", "fri"],
        "quietHours": {"from": "20:00", "to": "23:00", "onQuiet": "defer"},
    }));
    // After Saturday, 2026-09-05, midnight becomes one o'clock, at 04:00 UTC.
    let friday = at("2026-09-05T01:00:00Z");
    assert_eq!(
        sunday.opening(friday, None, None),
        Opening::Deferred(at("2026-09-05T03:00:00Z"))
    );
    let app = Quiet::of(&QuietHours {
        from: "01:00".to_owned(),
        to: "04:00".to_owned(),
        on_quiet: OnQuiet::Defer,
    });
    // Its end in UTC is the begin of Saturday.
    assert_eq!(
        sunday.opening(friday, None, app),
        Opening::Deferred(at("2026-09-06T04:00:00Z"))
    );
}

#[test]
fn quiet_hours_that_never_end_drop() {
    let app = Quiet::of(&QuietHours {
        from: "10:00".to_owned(),
        to: "22:00".to_owned(),
        on_quiet: OnQuiet::Defer,
    });
    let own = schedule(
        &json!({"timezone": "UTC", "quietHours": {"from": "22:00", "to": "10:00", "onQuiet": "defer"}}),
    );
    let opening = own.opening(at("2026-06-05T23:00:00Z"), None, app);
    assert_eq!(opening, Opening::Closed(Suppression::QuietHours));
}

#[test]
fn what_is_wrong_is_named() {
    let none: [&str; 0] = [];
    assert_eq!(wrong(&json!({"daysOfWeek": [0, 7, "sun", "SUNDAY"]})), none);
    assert_eq!(
        wrong(&json!({"daysOfWeek": [8, -1]})),
        ["/daysOfWeek/0", "/daysOfWeek/1"]
    );
    assert_eq!(wrong(&json!({"daysOfWeek": []})), ["/daysOfWeek"]);
    assert_eq!(
        wrong(&json!({"timeWindows": [{"from": "00:00", "to": "24:00"}]})),
        none
    );
    assert_eq!(
        wrong(
            &json!({"timeWindows": [{"from": "9:00", "to": "24:01"}, {"from": "09:00", "to": "09:00"}]})
        ),
        [
            "/timeWindows/0/from",
            "/timeWindows/0/to",
            "/timeWindows/1/to"
        ]
    );
    assert_eq!(wrong(&json!({"startAt": "2026-05-01"})), ["/startAt"]);
    assert_eq!(
        wrong(&json!({"startAt": "2026-05-01T00:00:00Z", "endAt": "2026-05-01T00:00:00Z"})),
        ["/endAt"]
    );
    assert_eq!(
        wrong(&json!({"quietHours": {"from": "22:00", "to": "24:00", "onQuiet": "drop"}})),
        ["/quietHours/to"]
    );
    assert_eq!(
        wrong(&json!({"quietHours": {"from": "22:00", "to": "23:00", "onQuiet": "wait"}})),
        ["/quietHours/onQuiet"]
    );
    assert_eq!(wrong(&json!({"maxResponses": 1})), none);
}

proptest! {
    /// What is deferred is fired at once when its time comes.
    #[test]
    fn the_end_of_a_deferral_is_open(
        seconds in 1_700_000_000_i64..2_000_000_000,
        (from, to) in (0_u32..1440, 0_u32..1440),
        (app_from, app_to) in (0_u32..1440, 0_u32..1440),
        zone in prop::sample::select(vec!["UTC", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"]),
        days in prop::collection::vec(1..=7, 1..4),
        window in prop::option::of((0_u32..1440, 0_u32..1440)),
    ) {
        prop_assume!(from != to && app_from != app_to && window.is_none_or(|(from, to)| from != to));
        let text = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
        let windows = window.map(|(from, to)| json!([{"from": text(from), "to": text(to)}]));
        let own = schedule(&json!({
            "timezone": "Europe/Vienna",
            "daysOfWeek": days,
            "timeWindows": windows,
            "quietHours": {"from": text(from), "to": text(to), "onQuiet": "defer"},
        }));
        let app = Quiet::of(&QuietHours { from: text(app_from), to: text(app_to), on_quiet: OnQuiet::Defer });
        let now = Timestamp::from_seconds(seconds);
        if let Opening::Deferred(until) = own.opening(now, Some(zone), app) {
            prop_assert!(until > now);
            prop_assert_eq!(own.opening(until, Some(zone), app), Opening::Open);
        }
    }
}
