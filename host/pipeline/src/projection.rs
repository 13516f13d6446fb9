//! Subjects as the pipeline reads, changes and writes them.

use std::collections::HashMap;
use std::time::Duration;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_platform::event_names::{PROPERTY_CHANGED, SESSION_ENDED};
use nudge_records::events::store::Stored;
use uuid::Uuid;

use crate::zones;

/// Silence that ends a session (specification 6.1).
const SESSION_TIMEOUT: Duration = Duration::from_mins(30);

/// So many sessions of a subject are known by the names that SDKs have for them.
const MOST_SESSION_NAMES: usize = 8;

/// A subject, as of the last event that was processed, and then of the next.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(super) struct Subject {
    pub id: Uuid,
    pub version: i64,
    pub external_id: Option<String>,
    pub messaging_consent: Option<bool>,
    pub suppressed: bool,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub event_count: i64,
    pub country: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
    pub locale: Option<String>,
    pub timezone: Option<String>,
    pub session_number: i64,
    pub session_active_at: Option<Timestamp>,
    /// What SDKs call the latest sessions, see [`SessionNames`].
    pub session_ids: Option<String>,
    pub instruction_count: i64,
    pub last_seq: i64,
    /// Whether anything of it is other than it was read.
    #[sqlx(default)]
    pub has_changed: bool,
}

/// The subjects of a batch.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    pub all: Vec<Subject>,
    by_alias: HashMap<i64, usize>,
}

impl Subjects {
    /// Subjects with the aliases that they were read through; several aliases can be one subject's.
    pub(super) fn new(rows: Vec<(i64, Subject)>) -> Self {
        let mut subjects = Self::default();
        let mut by_id: HashMap<Uuid, usize> = HashMap::new();
        for (alias, subject) in rows {
            let index = *by_id.entry(subject.id).or_insert_with(|| {
                subjects.all.push(subject);
                subjects.all.len() - 1
            });
            subjects.by_alias.insert(alias, index);
        }
        subjects
    }

    /// The subject of an alias.
    pub(super) fn of(&self, alias: i64) -> Option<usize> {
        self.by_alias.get(&alias).copied()
    }
}

/// The session of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    /// Its number.
    pub number: i64,
    /// Whether it begins with the event.
    pub begins: bool,
}

/// What SDKs call a subject's latest sessions, with their numbers; the latest is the last.
#[derive(Debug, Default)]
struct SessionNames(Vec<(String, i64)>);

impl SessionNames {
    fn read(text: Option<&str>) -> Self {
        let names = text.and_then(|text| serde_json::from_str(text).ok());
        Self(names.unwrap_or_default())
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// The session of a name.
    fn number(&self, name: &str) -> Option<i64> {
        let mut names = self.0.iter();
        names
            .find(|(known, _)| known == name)
            .map(|(_, number)| *number)
    }

    /// Whether a session has a name.
    fn has_number(&self, number: i64) -> bool {
        self.0.iter().any(|(_, known)| *known == number)
    }

    /// Notes the session of a name, and forgets the oldest where there are too many.
    fn note(&mut self, name: &str, number: i64) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), number));
        let surplus = self.0.len().saturating_sub(MOST_SESSION_NAMES);
        self.0.drain(..surplus);
    }
}

impl Subject {
    /// Finds an event's session.
    ///
    /// The window of 30 minutes decides, whatever SDKs say: the first event after it begins a session, be it
    /// `session_started` or not, and a `session_started` within it belongs to the session that goes on. What comes
    /// late, as of before the last event, belongs to the session that goes on too. `session_ended` is sent when a
    /// session expires: nobody was active, so that it neither begins a session nor keeps one going.
    ///
    /// Within the window sessions are told apart by what SDKs call them (`context.sessionId`), as of two devices at a
    /// time: another name is another session. The first name of a session that began without one is that session's.
    ///
    /// Nobody was active later than the server heard of it: a clock that is ahead ends no session and keeps none going.
    fn session(&mut self, stored: &Stored) -> Session {
        let event = &stored.event;
        let name = stored.origin.session_id.as_deref();
        let mut names = match name {
            Some(_) => SessionNames::read(self.session_ids.as_deref()),
            None => SessionNames::default(),
        };
        let known = name.and_then(|name| names.number(name));
        if *event.name == *SESSION_ENDED {
            return Session {
                number: known.unwrap_or(self.session_number),
                begins: false,
            };
        }
        let at = event.timestamp.min(stored.received_at);
        let active_at = self.session_active_at;
        let expired = active_at.is_none_or(|active_at| at > active_at.plus(SESSION_TIMEOUT));
        let is_late = active_at.is_some_and(|active_at| at < active_at);
        let is_another =
            name.is_some() && known.is_none() && !is_late && names.has_number(self.session_number);
        let begins = expired || is_another;
        if begins {
            self.session_number += 1;
        }
        self.session_active_at = Some(active_at.map_or(at, |active_at| active_at.max(at)));
        let number = known.filter(|_| !begins).unwrap_or(self.session_number);
        if let Some(name) = name.filter(|_| !is_late && known != Some(number)) {
            names.note(name, number);
            self.session_ids = Some(names.text());
        }
        Session { number, begins }
    }

    /// Forgets activity that is noted as of later than now, by a server that took an event's word for it.
    ///
    /// It does not go by when an event arrived: one that is sent in again arrived long before the last.
    pub(super) fn forget_activity_after(&mut self, now: Timestamp) {
        self.session_active_at = self.session_active_at.map(|active_at| active_at.min(now));
    }

    /// Takes an event in; answers the session that it belongs to.
    pub(super) fn take(&mut self, stored: &Stored) -> Session {
        self.has_changed = true;
        self.last_seq = self.last_seq.max(stored.seq);
        if *stored.event.name == *PROPERTY_CHANGED {
            // The server's own note: the person did nothing.
            return Session {
                number: self.session_number,
                begins: false,
            };
        }
        let session = self.session(stored);
        let at = stored.event.timestamp;
        self.event_count += 1;
        self.first_seen_at = self.first_seen_at.min(at);
        // A clock that is ahead has shown nobody later than the server heard of it.
        self.last_seen_at = self.last_seen_at.max(at.min(stored.received_at));
        let origin = &stored.origin;
        for (known, told) in [
            (&mut self.platform, &origin.platform),
            (&mut self.app_version, &origin.app_version),
            (&mut self.locale, &origin.locale),
            (&mut self.timezone, &origin.timezone),
        ] {
            if told.is_some() && known != told {
                known.clone_from(told);
            }
        }
        // A locale says which language somebody reads: where is a guess, as long as no zone with a country is known.
        let country = match self.timezone.as_deref().and_then(zones::country) {
            Some(country) => Some(country.to_owned()),
            None => origin.locale.as_deref().and_then(zones::region),
        };
        if country.is_some() && self.country != country {
            self.country = country;
        }
        session
    }

    /// Counts an instruction in.
    pub(super) fn count_instruction(&mut self) {
        self.has_changed = true;
        self.instruction_count += 1;
    }

    /// The subject with what events have told of where it is now: an event says from which app and place it comes,
    /// and an audience is about that, also when it is the subject's first.
    pub(super) fn at(self, after: &Self) -> Self {
        Self {
            platform: after.platform.clone(),
            app_version: after.app_version.clone(),
            locale: after.locale.clone(),
            country: after.country.clone(),
            timezone: after.timezone.clone(),
            ..self
        }
    }

    /// Whether something may be presented to the subject.
    pub(super) fn may_message(&self, app: &App) -> bool {
        !self.suppressed && app.settings.consent.grants(self.messaging_consent)
    }
}

#[cfg(test)]
impl Subject {
    /// A subject without an event.
    pub(super) fn nobody() -> Self {
        Self {
            id: Uuid::nil(),
            version: 0,
            external_id: None,
            messaging_consent: None,
            suppressed: false,
            first_seen_at: Timestamp(i64::MAX),
            last_seen_at: Timestamp(0),
            event_count: 0,
            country: None,
            platform: None,
            app_version: None,
            locale: None,
            timezone: None,
            session_number: 0,
            session_active_at: None,
            session_ids: None,
            instruction_count: 0,
            has_changed: false,
            last_seq: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nudge_records::events::Event;
    use proptest::prelude::*;

    use super::*;

    fn event(name: &str, minutes: i64) -> Stored {
        let at = Timestamp::from_seconds(minutes * 60);
        Stored {
            seq: 1,
            received_at: at,
            origin: Arc::default(),
            event: Arc::new(Event {
                id: Uuid::nil(),
                name: name.into(),
                timestamp: at,
                client_timestamp: None,
                properties: "{}".into(),
            }),
        }
    }

    /// The sessions of events with what the SDK calls them.
    fn named_sessions(events: &[(Option<&str>, i64)]) -> Vec<(i64, bool)> {
        let mut subject = Subject::nobody();
        let taken = events.iter().map(|(name, minutes)| {
            let mut stored = event("bought", *minutes);
            Arc::make_mut(&mut stored.origin).session_id = name.map(str::to_owned);
            let session = subject.take(&stored);
            (session.number, session.begins)
        });
        taken.collect()
    }

    #[test]
    fn names_tell_sessions_apart_within_the_window() {
        let (phone, browser) = (Some("phone"), Some("browser"));
        assert_eq!(
            named_sessions(&[
                (phone, 0),
                (phone, 5),
                (browser, 6),
                (phone, 7),
                (None, 8),
                (browser, 3),
                (browser, 9),
            ]),
            [
                (1, true),
                (1, false),
                (2, true),
                (1, false),
                (2, false),
                (2, false),
                (2, false)
            ]
        );
        // The window ends every session, whatever it is called; what is late begins none.
        assert_eq!(
            named_sessions(&[
                (phone, 0),
                (phone, 31),
                (browser, 20),
                (browser, 32),
                (phone, 33)
            ]),
            [(1, true), (2, true), (2, false), (3, true), (2, false)]
        );
        // A session that began without a name gets its first one.
        assert_eq!(
            named_sessions(&[(None, 0), (phone, 1), (browser, 2), (None, 3)]),
            [(1, true), (1, false), (2, true), (2, false)]
        );
    }

    #[test]
    fn the_latest_names_are_known() {
        let mut names = SessionNames::default();
        for number in 0..20 {
            names.note(&format!("s{number}"), number);
        }
        let names = SessionNames::read(Some(&names.text()));
        assert_eq!(names.0.len(), MOST_SESSION_NAMES);
        assert_eq!((names.number("s19"), names.number("s0")), (Some(19), None));
    }

    fn sessions(events: &[(&str, i64)]) -> Vec<(i64, bool)> {
        let mut subject = Subject::nobody();
        let taken = events.iter().map(|(name, minutes)| {
            let session = subject.take(&event(name, *minutes));
            (session.number, session.begins)
        });
        taken.collect()
    }

    #[test]
    fn the_window_decides_where_a_session_begins() {
        assert_eq!(
            sessions(&[
                ("opened", 0),
                ("session_started", 0),
                ("bought", 30),
                ("bought", 61),
                ("session_started", 70),
            ]),
            [(1, true), (1, false), (1, false), (2, true), (2, false)]
        );
    }

    #[test]
    fn the_end_of_a_session_is_no_activity() {
        assert_eq!(
            sessions(&[
                ("session_ended", 0),
                ("session_started", 1),
                ("session_ended", 31),
                ("session_started", 32),
                ("session_ended", 500),
                ("bought", 501),
            ]),
            [
                (0, false),
                (1, true),
                (1, false),
                (2, true),
                (2, false),
                (3, true)
            ]
        );
    }

    #[test]
    fn what_comes_late_begins_no_session() {
        assert_eq!(
            sessions(&[
                ("bought", 100),
                ("session_started", 0),
                ("bought", 130),
                ("bought", 161)
            ]),
            [(1, true), (1, false), (1, false), (2, true)]
        );
    }

    #[test]
    fn a_clock_that_is_ahead_keeps_no_session_going() {
        let mut subject = Subject::nobody();
        subject.session_active_at = Some(Timestamp::from_seconds(9_000 * 60));
        subject.forget_activity_after(Timestamp::from_seconds(60));
        let mut ahead = event("bought", 1_440);
        ahead.received_at = Timestamp::from_seconds(60);
        let taken = [ahead, event("bought", 20), event("bought", 60)].map(|stored| {
            let session = subject.take(&stored);
            (session.number, session.begins)
        });
        assert_eq!(taken, [(0, false), (0, false), (1, true)]);
    }

    #[test]
    fn nobody_was_seen_later_than_the_server_heard_of_it() {
        let mut subject = Subject::nobody();
        let mut ahead = event("bought", 1_440);
        ahead.received_at = Timestamp::from_seconds(60);
        subject.take(&ahead);
        assert_eq!(subject.last_seen_at, Timestamp::from_seconds(60));
        subject.take(&event("bought", 20));
        assert_eq!(subject.last_seen_at, Timestamp::from_seconds(20 * 60));
    }

    proptest! {
        /// Numbers ascend by one, each with the one event that begins it, whatever comes in whichever order; and
        /// an event is the first for half an hour if and only if it begins a session.
        #[test]
        fn every_session_begins_once(events in prop::collection::vec(
            (prop::sample::select(vec!["session_started", "session_ended", "bought", "opened"]), 0_i64..300), 1..40)) {
            let found = sessions(&events);
            let mut number = 0;
            let mut active_at: Option<i64> = None;
            for ((name, minutes), (session, begins)) in events.iter().zip(found) {
                let silent = active_at.is_none_or(|active_at| *minutes > active_at + 30);
                prop_assert_eq!(begins, silent && *name != "session_ended");
                number += i64::from(begins);
                prop_assert_eq!(session, number);
                if *name != "session_ended" {
                    active_at = Some(active_at.map_or(*minutes, |active_at| active_at.max(*minutes)));
                }
            }
        }
    }
}
