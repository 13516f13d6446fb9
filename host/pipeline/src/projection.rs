//! Subjects as the pipeline reads, changes and writes them.

use std::collections::HashMap;
use std::time::Duration;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_platform::event_names::{PROPERTY_CHANGED, SESSION_ENDED};
use nudge_records::events::Event;
use nudge_records::events::store::Stored;
use uuid::Uuid;

/// Silence that ends a session (specification 6.1).
const SESSION_TIMEOUT: Duration = Duration::from_mins(30);

/// A subject, as of the last event that was processed, and then of the next.
#[derive(Clone, Debug, sqlx::FromRow)]
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
    pub instruction_count: i64,
    pub last_seq: i64,
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

impl Subject {
    /// Finds an event's session.
    ///
    /// The window of 30 minutes decides, whatever SDKs say: the first event after it begins a session, be it
    /// `session_started` or not, and a `session_started` within it belongs to the session that goes on. What comes
    /// late, as of before the last event, belongs to the session that goes on too. `session_ended` is sent when a
    /// session expires: nobody was active, so that it neither begins a session nor keeps one going.
    fn session(&mut self, event: &Event) -> Session {
        if *event.name == *SESSION_ENDED {
            return Session {
                number: self.session_number,
                begins: false,
            };
        }
        let at = event.timestamp;
        let begins = self
            .session_active_at
            .is_none_or(|active_at| at > active_at.plus(SESSION_TIMEOUT));
        if begins {
            self.session_number += 1;
        }
        self.session_active_at = Some(
            self.session_active_at
                .map_or(at, |active_at| active_at.max(at)),
        );
        Session {
            number: self.session_number,
            begins,
        }
    }

    /// Takes an event in; answers the session that it belongs to.
    pub(super) fn take(&mut self, stored: &Stored) -> Session {
        self.last_seq = self.last_seq.max(stored.seq);
        if *stored.event.name == *PROPERTY_CHANGED {
            // The server's own note: the person did nothing.
            return Session {
                number: self.session_number,
                begins: false,
            };
        }
        let session = self.session(&stored.event);
        let at = stored.event.timestamp;
        self.event_count += 1;
        self.first_seen_at = self.first_seen_at.min(at);
        self.last_seen_at = self.last_seen_at.max(at);
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
        if let Some(country) = origin.locale.as_deref().and_then(region) {
            self.country = Some(country);
        }
        session
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
        !self.suppressed
            && self
                .messaging_consent
                .unwrap_or(!app.settings.consent.required)
    }
}

/// The region of a locale (`de-AT`, `zh_Hant_TW`): the only hint at a country that events carry.
fn region(locale: &str) -> Option<String> {
    let part = locale
        .split(['-', '_'])
        .skip(1)
        .find(|part| part.len() == 2)?;
    part.chars()
        .all(|letter| letter.is_ascii_alphabetic())
        .then(|| part.to_ascii_uppercase())
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
            instruction_count: 0,
            last_seq: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn event(name: &str, minutes: i64) -> Stored {
        Stored {
            seq: 1,
            received_at: Timestamp(0),
            origin: Arc::default(),
            event: Arc::new(Event {
                id: Uuid::nil(),
                name: name.into(),
                timestamp: Timestamp::from_seconds(minutes * 60),
                client_timestamp: None,
                properties: "{}".into(),
            }),
        }
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

    #[test]
    fn the_region_is_the_country() {
        assert_eq!(region("de-AT").as_deref(), Some("AT"));
        assert_eq!(region("zh_Hant_tw").as_deref(), Some("TW"));
        assert_eq!(region("en"), None);
        assert_eq!(region("en-419"), None);
    }
}
