//! Runs of campaigns by rules and zones.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use nudge_platform::clock;

fn at(text: &str) -> Timestamp {
    clock::from_text(text).unwrap()
}

fn plan(manner: Manner, trigger: &Value, schedule: &Value) -> Option<Plan> {
    let present = |part: &Value| (!part.is_null()).then(|| part.clone());
    let schedule = Schedule::read(present(schedule).as_ref(), "/schedule").unwrap();
    Plan::read(manner, present(trigger).as_ref(), &schedule).unwrap()
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
fn a_time_that_clocks_skip_takes_no_other_days() {
    // In Nuuk 23:00 becomes midnight on the 28th: its 23:30 is half an hour past that.
    let evening = every(&json!({"every": "day", "at": "23:30"}), "America/Nuuk");
    let runs = [
        "2026-03-28T01:30:00.000Z",
        "2026-03-29T01:30:00.000Z",
        "2026-03-30T00:30:00.000Z",
        "2026-03-31T00:30:00.000Z",
    ];
    assert_eq!(occasions(&evening, "2026-03-27T12:00:00Z", 4), runs);
    // Between midnight and then it is yet to come.
    assert_eq!(occasions(&evening, "2026-03-29T01:10:00Z", 1), runs[1..2]);
    // In Santiago midnight becomes one o'clock on the 6th.
    let midnight = every(&json!({"every": "day", "at": "00:00"}), "America/Santiago");
    assert_eq!(
        occasions(&midnight, "2026-09-05T00:00:00Z", 3),
        [
            "2026-09-05T04:00:00.000Z",
            "2026-09-06T04:00:00.000Z",
            "2026-09-07T03:00:00.000Z"
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
    let expected = |occasion: &str, begins_at: &str| (occasion.to_owned(), begins_at.to_owned());
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
    // Nor is one whose time was put off to later that day.
    let evening = every(&json!({"every": "day", "at": "18:00"}), "subject");
    let next = evening.next(Some(at(first)), at("2026-03-01T00:00:00Z"));
    assert_eq!(next.unwrap().occasion, at("2026-03-02T18:00:00Z"));
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
fn what_a_clock_that_was_ahead_has_planned_is_planned_anew() {
    let now = at("2026-03-01T12:00:00Z");
    let ahead = at("2099-03-01T12:00:00Z");
    let daily = every(&json!({"every": "day", "at": "09:00"}), "UTC");
    let first = daily.next(None, now).unwrap();
    let second = daily.after(first).unwrap();
    let planned = daily.next(None, ahead);
    assert_eq!(
        daily.replanned(None, planned, now),
        Some((None, Some(first)))
    );
    let planned = planned.unwrap();
    let last = Some(planned.occasion);
    assert_eq!(
        daily.replanned(last, daily.after(planned), now),
        Some((Some(first.occasion), Some(second)))
    );
    assert_eq!(
        daily.replanned(last, None, now),
        Some((Some(first.occasion), None)),
        "it does not run, and may again"
    );
    assert_eq!(
        daily.replanned(Some(first.occasion), Some(second), now),
        None,
        "one may be passed over"
    );

    let once = plan(Manner::Scheduled, &Value::Null, &Value::Null).unwrap();
    let at_once = once.next(None, now);
    assert_eq!(
        once.replanned(None, once.next(None, ahead), now),
        Some((None, at_once))
    );
    assert_eq!(once.replanned(Some(ahead), None, now), None);
}

#[test]
fn mistakes_are_named() {
    let pointers = |trigger: Value| -> Vec<String> {
        let errors = Plan::read(Manner::Scheduled, Some(&trigger), &Schedule::default());
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
        zone in prop::sample::select(vec!["subject", "UTC", "Europe/Vienna", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "America/Nuuk", "America/Santiago"]),
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
        // A clock that is right leaves them as they are.
        prop_assert_eq!(plan.replanned(None, Some(first), from), None);
        prop_assert_eq!(plan.replanned(Some(first.occasion), Some(second), first.begins_at), None);
        prop_assert_eq!(plan.replanned(Some(second.occasion), plan.after(second), second.begins_at), None);
        // One that was a year ahead and is set back has another run soon.
        let ahead = plan.due(first, Timestamp(from.0 + 365 * 24 * MICROS_PER_HOUR));
        let (last, next) = plan.replanned(Some(ahead.occasion), plan.after(ahead), from).unwrap();
        prop_assert!(next.is_some_and(|next| next.begins_at > from && next.begins_at < ahead.begins_at));
        prop_assert_eq!(plan.replanned(last, next, from), None);
        for whose in [None, Some("Pacific/Kiritimati"), Some("Pacific/Midway"), Some("Asia/Kathmandu")] {
            let reached = plan.reaches(second.occasion, whose);
            prop_assert!(reached >= second.begins_at || first.begins_at == second.begins_at);
            prop_assert!(reached <= plan.ends_at(second));
        }
    }
}
