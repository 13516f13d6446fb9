//! The rows of two subjects who become one.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// What of a subject's row both subjects have a say in.
#[derive(Clone, Debug, PartialEq, nudge_db::FromRow)]
pub(super) struct Whole {
    analytics_consent: Option<bool>,
    analytics_consent_at: Option<Timestamp>,
    messaging_consent: Option<bool>,
    messaging_consent_at: Option<Timestamp>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    event_count: i64,
    country: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    session_number: i64,
    session_active_at: Option<Timestamp>,
    pub(super) instruction_count: i64,
    last_seq: i64,
}

impl Whole {
    /// Counts add up, spans span both; of what one can only have once, the one that is newer has it, and the
    /// other fills gaps. The session in which two become one counts as a new one.
    pub(super) fn unite(self, other: Self) -> Self {
        let (first_seen_at, last_seen_at) = (
            self.first_seen_at.min(other.first_seen_at),
            self.last_seen_at.max(other.last_seen_at),
        );
        let (event_count, session_number, instruction_count) = (
            self.event_count + other.event_count,
            self.session_number + other.session_number,
            self.instruction_count + other.instruction_count,
        );
        let session_active_at = self.session_active_at.max(other.session_active_at);
        let last_seq = self.last_seq.max(other.last_seq);
        let analytics = last_word(
            (self.analytics_consent, self.analytics_consent_at),
            (other.analytics_consent, other.analytics_consent_at),
        );
        let messaging = last_word(
            (self.messaging_consent, self.messaging_consent_at),
            (other.messaging_consent, other.messaging_consent_at),
        );
        let (newer, older) = if other.last_seen_at > self.last_seen_at {
            (other, self)
        } else {
            (self, other)
        };
        Self {
            analytics_consent: analytics.0,
            analytics_consent_at: analytics.1,
            messaging_consent: messaging.0,
            messaging_consent_at: messaging.1,
            first_seen_at,
            last_seen_at,
            event_count,
            country: newer.country.or(older.country),
            platform: newer.platform.or(older.platform),
            app_version: newer.app_version.or(older.app_version),
            locale: newer.locale.or(older.locale),
            timezone: newer.timezone.or(older.timezone),
            session_number,
            session_active_at,
            instruction_count,
            last_seq,
        }
    }
}

/// What was said of a purpose, and when.
type Word = (Option<bool>, Option<Timestamp>);

/// The last word on a purpose. Who has said nothing has none.
fn last_word(one: Word, other: Word) -> Word {
    let is_later = other.0.is_some() && (one.0.is_none() || other.1 > one.1);
    if is_later { other } else { one }
}

pub(super) async fn read(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Whole> {
    tx.sql(
        "SELECT analytics_consent, COALESCE(analytics_consent_at, consent_at) AS analytics_consent_at,
                messaging_consent, COALESCE(messaging_consent_at, consent_at) AS messaging_consent_at,
                first_seen_at, last_seen_at, event_count, country, platform, app_version, locale, timezone,
                session_number, session_active_at, instruction_count, last_seq
         FROM subjects WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .fetch_one()
    .await
}

pub(super) async fn write(tx: &mut Tx, app_id: Uuid, id: Uuid, whole: Whole) -> Result<()> {
    tx.sql(
        "UPDATE subjects SET version = version + 1, analytics_consent = $3, messaging_consent = $4,
                consent_at = $5, first_seen_at = $6, last_seen_at = $7, event_count = $8, country = $9,
                platform = $10, app_version = $11, locale = $12, timezone = $13, session_number = $14,
                session_active_at = $15, session_ids = NULL, instruction_count = $16, last_seq = $17,
                analytics_consent_at = $18, messaging_consent_at = $19
         WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .bind(whole.analytics_consent)
    .bind(whole.messaging_consent)
    .bind(whole.analytics_consent_at.max(whole.messaging_consent_at))
    .bind(whole.first_seen_at)
    .bind(whole.last_seen_at)
    .bind(whole.event_count)
    .bind(whole.country)
    .bind(whole.platform)
    .bind(whole.app_version)
    .bind(whole.locale)
    .bind(whole.timezone)
    .bind(whole.session_number)
    .bind(whole.session_active_at)
    .bind(whole.instruction_count)
    .bind(whole.last_seq)
    .bind(whole.analytics_consent_at)
    .bind(whole.messaging_consent_at)
    .execute()
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(from: i64, to: i64) -> Whole {
        Whole {
            analytics_consent: None,
            analytics_consent_at: None,
            messaging_consent: None,
            messaging_consent_at: None,
            first_seen_at: Timestamp(from),
            last_seen_at: Timestamp(to),
            event_count: 2,
            country: None,
            platform: None,
            app_version: None,
            locale: None,
            timezone: None,
            session_number: 3,
            session_active_at: Some(Timestamp(to)),
            instruction_count: 4,
            last_seq: to * 512,
        }
    }

    #[test]
    fn counts_add_up_and_spans_span_both() {
        for (one, other) in [(seen(1, 5), seen(3, 9)), (seen(3, 9), seen(1, 5))] {
            let both = one.unite(other);
            assert_eq!(
                (both.first_seen_at, both.last_seen_at),
                (Timestamp(1), Timestamp(9))
            );
            assert_eq!(
                (
                    both.event_count,
                    both.session_number,
                    both.instruction_count
                ),
                (4, 6, 8)
            );
            assert_eq!(
                (both.session_active_at, both.last_seq),
                (Some(Timestamp(9)), 9 * 512)
            );
        }
    }

    #[test]
    fn the_newer_one_knows_better_and_the_older_one_fills_gaps() {
        let old = Whole {
            platform: Some("ios".to_owned()),
            locale: Some("de".to_owned()),
            ..seen(1, 5)
        };
        let new = Whole {
            platform: Some("web".to_owned()),
            ..seen(3, 9)
        };
        for both in [old.clone().unite(new.clone()), new.unite(old)] {
            assert_eq!(both.platform.as_deref(), Some("web"));
            assert_eq!(both.locale.as_deref(), Some("de"));
        }
    }

    #[test]
    fn the_last_word_on_each_purpose_counts() {
        let at = |at| Some(Timestamp(at));
        let phone = Whole {
            analytics_consent: Some(false),
            analytics_consent_at: at(8),
            messaging_consent: Some(false),
            messaging_consent_at: at(8),
            ..seen(1, 5)
        };
        // It has said the same of analytics again, and of messaging nothing since before the phone's word.
        let web = Whole {
            analytics_consent: Some(true),
            analytics_consent_at: at(9),
            messaging_consent: Some(true),
            messaging_consent_at: at(7),
            ..seen(3, 9)
        };
        for both in [phone.clone().unite(web.clone()), web.unite(phone)] {
            let said = (both.analytics_consent, both.messaging_consent);
            assert_eq!(said, (Some(true), Some(false)));
            let when = (both.analytics_consent_at, both.messaging_consent_at);
            assert_eq!(when, (at(9), at(8)));
        }
        let silent = seen(1, 5);
        let refused = Whole {
            analytics_consent: Some(false),
            analytics_consent_at: at(2),
            ..seen(1, 4)
        };
        for both in [silent.clone().unite(refused.clone()), refused.unite(silent)] {
            assert_eq!(both.analytics_consent, Some(false));
        }
    }
}
