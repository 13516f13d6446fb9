//! What a message says of a person: traits, and whose an anonymous id is.

use nudge_db::Timestamp;
use nudge_http::ApiError;
use nudge_pipeline::segments::checks;
use nudge_platform::{id, secrets};
use nudge_records::events::MOST_BYTES;
use nudge_records::events::canonical::canonical;
use nudge_records::subjects::NOBODY;
use nudge_records::subjects::current::check_anonymous_id;
use nudge_records::subjects::link::{self, Link};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Collection, Person, Refused, TOO_LARGE, Trust, refused};
use crate::collection::message::Message;
use crate::collection::traits;
use crate::event::DELETED;
use crate::owner::Owner;
use crate::properties::{self, Error, Whom};

impl Collection<'_> {
    /// Takes what a message says of a person. A server's says whose the anonymous id is, too.
    pub(super) async fn identify(
        &self,
        message: &Message<'_>,
        traits: &[&RawValue],
    ) -> Result<Vec<Refused>, ApiError> {
        if message.bytes > MOST_BYTES {
            return Ok(vec![refused(message, ("event_too_large", TOO_LARGE))]);
        }
        let moment = message.moment(self.received_at);
        let owner = match self.owner(message, || self.until_ahead(moment)).await? {
            Ok(owner) => owner,
            Err(refusal) => return Ok(vec![refused(message, refusal)]),
        };
        if is_of_deleted(&owner, moment) {
            return Ok(vec![suppressed(message, owner.erasing)]);
        }
        let whom = match self.person(message) {
            Ok(Person::External(name)) => Whom::External(name.to_owned()),
            Ok(Person::Anonymous(name)) => Whom::Anonymous(name.to_owned()),
            Err(_) => return Ok(Vec::new()),
        };
        let linked = match &whom {
            Whom::External(name) => self.link(message, name).await?,
            _ => None,
        };
        if let Some(refused) = linked {
            return Ok(vec![refused]);
        }
        let refused = self.update(message, &whom, traits).await?;
        // The person may be new.
        checks::look_afterwards(self.services, self.app, owner.subject_id).await?;
        Ok(refused)
    }

    /// Takes the traits of a message.
    async fn update(
        &self,
        message: &Message<'_>,
        whom: &Whom,
        traits: &[&RawValue],
    ) -> Result<Vec<Refused>, ApiError> {
        let id = mutation_id(self.app.id, message, traits, self.received_at);
        let update = match traits::update(&message.pointer, id, traits) {
            Ok(Some(update)) => update,
            Ok(None) => return Ok(Vec::new()),
            Err(errors) => {
                let refused = errors.into_iter().map(|error| Refused {
                    index: message.index,
                    error,
                    retryable: false,
                });
                return Ok(refused.collect());
            }
        };
        let whom = (whom, message.own_origin.source);
        let taken = properties::take(self.services, self.app, whom, &update, self.mark, None).await;
        let refusal = match taken {
            Ok(_) => return Ok(Vec::new()),
            Err(Error::ConsentRequired) => {
                ("consent_missing", "the user has not consented to analytics")
            }
            Err(Error::SubjectNotFound | Error::TokenRevoked | Error::SubjectMismatch) => {
                ("suppressed_subject", DELETED)
            }
            Err(Error::MutationConflict) => (
                "mutation_conflict",
                "a message of this messageId said something else; a new message takes a new one",
            ),
            Err(Error::TooMany) => (
                "limit_exceeded",
                "the person has as many properties as a person can have; remove some first",
            ),
            Err(error) => return Err(error.into()),
        };
        Ok(vec![refused(message, refusal)])
    }

    /// An instant that is no further ahead than events may be.
    fn until_ahead(&self, at: Option<Timestamp>) -> Option<Timestamp> {
        let ahead = self.app.settings.ingest.future_window_seconds;
        let most = ahead.saturating_mul(1_000_000);
        let most = self.received_at.0.saturating_add(most);
        at.filter(|at| at.0 <= most)
    }

    /// Links the anonymous id of a server's message to the person whom it names. One that is another person's stays theirs.
    async fn link(
        &self,
        message: &Message<'_>,
        external_id: &str,
    ) -> Result<Option<Refused>, ApiError> {
        let services = self.services;
        let is_anonymous = |id: &&str| check_anonymous_id("", id).is_ok();
        let anonymous_id = message.anonymous_id.as_deref().filter(is_anonymous);
        let Some(anonymous_id) = anonymous_id.filter(|_| self.trust == Trust::Server) else {
            return Ok(None);
        };
        let link = Link {
            app_id: self.app.id,
            anonymous_id,
            external_id,
            issued_at: message.moment(self.received_at).unwrap_or(self.received_at),
            platform: message.platform(),
            client_id: None,
            // The traits that come with the names have the person looked at.
            is_watched: false,
        };
        let now = services.clock.now();
        checks::look_before_link(services, self.app, &link, self.mark.begun).await?;
        match link::link(&services.db, &services.pseudonyms, link, now).await {
            Ok(linked) => {
                for subject_id in linked.concerned() {
                    services.polls.wake(subject_id);
                }
                Ok(None)
            }
            Err(link::Error::IdentityConflict | link::Error::ClientSessionInvalid) => Ok(None),
            Err(link::Error::Suppressed) => Ok(Some(suppressed(message, false))),
            Err(link::Error::Erasing(_)) => Ok(Some(suppressed(message, true))),
            Err(link::Error::TooMany) => {
                let detail = "the person has as many ids as a person can have";
                Ok(Some(refused(message, ("limit_exceeded", detail))))
            }
            Err(error @ link::Error::Storage(_)) => Err(error.into()),
        }
    }
}

/// The id of the update that a message is: its own, or one that follows from what it says and when it says so. One that
/// says no time is another each time.
fn mutation_id(
    app_id: Uuid,
    message: &Message<'_>,
    traits: &[&RawValue],
    received_at: Timestamp,
) -> Uuid {
    if let Some(id) = message.id {
        return id;
    }
    if !message.is_timed {
        return id::new(received_at);
    }
    let said = traits
        .iter()
        .map(|one| canonical(one.get()).unwrap_or_default());
    let said = said.collect::<Vec<_>>().join("\n");
    let hash = secrets::hash(&[
        b"traits",
        app_id.as_bytes(),
        message.user_id.as_deref().unwrap_or_default().as_bytes(),
        message
            .anonymous_id
            .as_deref()
            .unwrap_or_default()
            .as_bytes(),
        message.timestamp.as_bytes(),
        said.as_bytes(),
    ]);
    id::derived(Timestamp::default(), &hash)
}

/// Whether what is of a moment is of somebody who was deleted.
fn is_of_deleted(owner: &Owner, moment: Option<Timestamp>) -> bool {
    let told = moment.zip(owner.events_after);
    owner.alias == NOBODY || told.is_some_and(|(at, after)| at <= after)
}

/// The refusal of a message of somebody who was deleted. `erasing`: a new person begins once that is done.
fn suppressed(message: &Message<'_>, erasing: bool) -> Refused {
    Refused {
        retryable: erasing,
        ..refused(message, ("suppressed_subject", DELETED))
    }
}
