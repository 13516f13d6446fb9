//! Subjects as the pipeline reads, changes and writes them.

use std::collections::HashMap;
use std::time::Duration;

use nudge_db::Timestamp;
use uuid::Uuid;

use crate::apps::App;
use crate::ingest::store::Stored;
use crate::properties::PROPERTY_CHANGED;

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

impl Subject {
    /// Takes an event in; answers the number of the session that it belongs to.
    pub(super) fn take(&mut self, stored: &Stored) -> i64 {
        self.last_seq = self.last_seq.max(stored.seq);
        if *stored.event.name == *PROPERTY_CHANGED {
            // The server's own note: the person did nothing.
            return self.session_number;
        }
        let at = stored.event.timestamp;
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
        self.session_number
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
mod tests {
    use super::*;

    #[test]
    fn the_region_is_the_country() {
        assert_eq!(region("de-AT").as_deref(), Some("AT"));
        assert_eq!(region("zh_Hant_tw").as_deref(), Some("TW"));
        assert_eq!(region("en"), None);
        assert_eq!(region("en-419"), None);
    }
}
