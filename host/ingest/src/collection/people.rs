//! Whose messages are whose, and what becomes of them.

mod identify;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use nudge_apps::App;
use nudge_apps::auth::Stranger;
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Mark};
use nudge_records::events::{MOST_BYTES, MOST_EVENTS};
use nudge_records::subjects::current::check_anonymous_id;
use nudge_records::subjects::identity::is_external_id;
use nudge_records::subjects::{self, AliasKind, NOBODY};

use super::message::{Content, Message, MessageError};
use crate::body::{EventBody, Events, Field};
use crate::event::{self, Rules};
use crate::owner::{self, Owner};
use crate::services::Shared;
use crate::submission::Rejection;
use crate::taking::{self, Batch};

/// People whose messages are taken side by side.
const SIDE_BY_SIDE: usize = 8;
/// People that one request with a public key can name: each is somebody new, as far as anybody knows.
const MOST_PUBLIC_PEOPLE: usize = 50;

/// Why a message that is over the limit of events is not taken.
const TOO_LARGE: &str = "a message has at most 65536 bytes";

/// What a key says about those whom messages name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nothing: only what is anonymous is taken.
    Anonymous,
    /// Nothing, but the app takes a server's word without proof.
    Unverified,
    /// A server's word.
    Server,
}

/// A request's messages on their way.
pub(super) struct Collection<'c> {
    pub(super) services: &'c Shared,
    pub(super) app: &'c Arc<App>,
    pub(super) caller: &'c Stranger,
    pub(super) notes: &'c Notes,
    pub(super) mark: Mark,
    pub(super) trust: Trust,
    pub(super) received_at: Timestamp,
}

/// Why a message was not taken.
pub(super) struct Refused {
    pub(super) index: usize,
    pub(super) error: MessageError,
    /// Whether it may be taken when it is sent again.
    pub(super) retryable: bool,
}

/// Whom a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Person<'m> {
    External(&'m str),
    Anonymous(&'m str),
}

/// Why nothing of somebody's messages is taken: a code and a sentence.
type PersonRejection = (&'static str, &'static str);

impl Collection<'_> {
    /// Takes messages; answers of those that were not taken.
    pub(super) async fn take(&self, messages: Vec<Message<'_>>) -> Result<Vec<Refused>, ApiError> {
        let mut refused = Vec::new();
        let mut named = Vec::with_capacity(messages.len());
        for message in messages {
            match self.person(&message) {
                Ok(_) => named.push(message),
                Err(error) => refused.push(Refused {
                    index: message.index,
                    error,
                    retryable: false,
                }),
            }
        }
        let people = by_person(named, self.trust);
        if self.trust == Trust::Anonymous && people.len() > MOST_PUBLIC_PEOPLE {
            let detail = format!(
                "a request with a public write key has messages of at most {MOST_PUBLIC_PEOPLE} people; use a server key"
            );
            return Err(ApiError::field("/batch", "too_many_people", detail));
        }
        let mut taken: Vec<BoxFuture<'_, _>> = Vec::with_capacity(people.len());
        for messages in people {
            taken.push(self.of_person(messages).boxed());
        }
        let outcomes: Vec<Vec<Refused>> = stream::iter(taken)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        refused.extend(outcomes.into_iter().flatten());
        refused.sort_by_key(|one| one.index);
        Ok(refused)
    }

    /// Whom a message is about, as far as the key allows it to say so.
    fn person<'m>(&self, message: &'m Message<'_>) -> Result<Person<'m>, MessageError> {
        let user_id = message.user_id.as_deref();
        let user_id = user_id.filter(|_| self.trust != Trust::Anonymous);
        match (user_id, message.anonymous_id.as_deref()) {
            (Some(user_id), _) => Ok(Person::External(user_id)),
            (None, Some(anonymous_id)) => Ok(Person::Anonymous(anonymous_id)),
            (None, None) if self.trust == Trust::Anonymous => {
                let detail = "a public write key takes what is anonymous only: send anonymousId, or use a server key";
                let pointer = format!("{}/anonymousId", message.pointer);
                Err(MessageError::new(&pointer, "required", detail))
            }
            (None, None) => {
                let detail = "send userId or anonymousId";
                let pointer = format!("{}/userId", message.pointer);
                Err(MessageError::new(&pointer, "required", detail))
            }
        }
    }

    /// Takes the messages of one person in their order: events that follow each other together, as many as a request of ingest
    /// has at the most. What was taken before a failure stays, and changes nothing when all is sent again.
    async fn of_person(&self, messages: Vec<Message<'_>>) -> Result<Vec<Refused>, ApiError> {
        self.count_bytes(&messages)?;
        let mut refused = Vec::new();
        let mut rest = messages.as_slice();
        while let Some(first) = rest.first() {
            if let Content::Traits(traits) = &first.content {
                refused.extend(Box::pin(self.identify(first, traits)).await?);
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let person = self.person(first);
            let goes_on = |next: &&Message<'_>| {
                matches!(next.content, Content::Event(..))
                    && self.person(next) == person
                    && next.own_origin == first.own_origin
                    && next.sent_at == first.sent_at
            };
            let piece = rest.iter().take(MOST_EVENTS);
            let count = piece.take_while(goes_on).count().max(1);
            let (run, after) = rest.split_at(count);
            refused.extend(Box::pin(self.events(run)).await?);
            rest = after;
        }
        Ok(refused)
    }

    /// Counts the bytes of messages for those whom they name, where nothing but the messages says who that is.
    fn count_bytes(&self, messages: &[Message<'_>]) -> Result<(), ApiError> {
        if self.trust == Trust::Server {
            return Ok(());
        }
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for message in messages {
            if let Ok(Person::External(name) | Person::Anonymous(name)) = self.person(message) {
                *sizes.entry(name).or_default() += message.bytes;
            }
        }
        for (name, bytes) in sizes {
            owner::count_bytes_of(self.notes, self.app.id, name, bytes)?;
        }
        Ok(())
    }

    /// Whose message this is; somebody new, if need be. `latest`: when the latest is of what would be taken of the person.
    async fn owner(
        &self,
        message: &Message<'_>,
        latest: impl FnOnce() -> Option<Timestamp>,
    ) -> Result<Result<Owner, PersonRejection>, ApiError> {
        let (services, app_id) = (self.services, self.app.id);
        match self.person(message) {
            Ok(Person::External(name)) => {
                if !is_external_id(name) {
                    let detail = "userId has 1 to 256 characters and no control characters";
                    return Ok(Err(("invalid", detail)));
                }
                let (standing, erasing) = owner::named(services, app_id, name, latest).await?;
                Ok(Ok(Owner::unproven(standing, erasing)))
            }
            Ok(Person::Anonymous(name)) => {
                if check_anonymous_id("", name).is_err() {
                    let detail = "anonymousId has 1 to 128 characters and no control characters";
                    return Ok(Err(("invalid", detail)));
                }
                self.charge_if_new(name).await?;
                let (kind, now) = (AliasKind::Anonymous, services.clock.now());
                let platform = message.platform();
                let (db, pseudonyms) = (&services.db, &services.pseudonyms);
                // The event or the traits that come with the name have the person looked at.
                let of = (app_id, false);
                let standing =
                    subjects::ensure(db, pseudonyms, of, kind, name, platform, now).await?;
                if self.trust == Trust::Anonymous && standing.external_id.is_some() {
                    let detail = "this anonymousId is that of an identified person, for whom a public write key does not speak";
                    return Ok(Err(("identity_required", detail)));
                }
                Ok(Ok(Owner::unproven(standing, false)))
            }
            Err(_) => Ok(Err(("required", "send userId or anonymousId"))),
        }
    }

    /// Counts somebody whom nobody has named before, and whom anybody may name, like a session that begins.
    async fn charge_if_new(&self, anonymous_id: &str) -> Result<(), ApiError> {
        if self.trust != Trust::Anonymous {
            return Ok(());
        }
        let mut tx = self.services.db.read().await?;
        let kind = AliasKind::Anonymous;
        let known = subjects::store::find(&mut tx, self.app.id, kind, anonymous_id).await?;
        drop(tx);
        match known {
            Some(_) => Ok(()),
            None => self.caller.charge_person(self.services, self.app),
        }
    }

    /// What the events of anybody are checked against.
    fn rules(&self, sent_at: Option<Timestamp>) -> Rules<'_> {
        Rules {
            app_id: self.app.id,
            alias: NOBODY,
            mismatch: None,
            anonymous_id: None,
            external_id: None,
            events_after: None,
            settings: &self.app.settings.ingest,
            received_at: self.received_at,
            skew: event::skew(sent_at, self.received_at),
        }
    }

    /// Takes events that follow each other, of one person and origin.
    async fn events(&self, run: &[Message<'_>]) -> Result<Vec<Refused>, ApiError> {
        let Some(first) = run.first() else {
            return Ok(Vec::new());
        };
        let (fitting, large): (Vec<(usize, &Message<'_>)>, Vec<_>) = run
            .iter()
            .enumerate()
            .partition(|(_, message)| message.bytes <= MOST_BYTES);
        let rules = self.rules(first.sent_at);
        let latest = || {
            let dated = fitting.iter().filter(|(_, message)| message.is_dated());
            let dated = dated.map(|(_, message)| body(message)).collect();
            event::latest(&Events::Read(dated), &rules)
        };
        let owner = match self.owner(first, latest).await? {
            Ok(owner) => owner,
            Err(refusal) => return Ok(run.iter().map(|one| refused(one, refusal)).collect()),
        };
        let rules = Rules {
            alias: owner.alias,
            events_after: owner.events_after,
            ..rules
        };
        let bodies = fitting.iter().map(|(_, message)| body(message));
        let (checked, mut rejections) = event::check_all(Events::Read(bodies.collect()), &rules);
        let place = |index: usize| fitting.get(index).map_or(index, |(place, _)| *place);
        let checked = checked
            .into_iter()
            .map(|(index, event)| (place(index), event));
        let checked: Vec<_> = checked.collect();
        // What a client has twice in one request, it sends again. Where the first of two that are checked together is
        // rejected, so is the other.
        rejections.retain(|rejection| {
            rejection.code != "duplicate_event_id_in_batch"
                || !checked
                    .iter()
                    .any(|(_, event)| Some(event.id) == rejection.event_id)
        });
        for rejection in &mut rejections {
            rejection.index = place(rejection.index);
        }
        rejections.extend(large.into_iter().map(|(place, message)| {
            Rejection::new(place, message.id, "event_too_large", TOO_LARGE)
        }));
        let batch = Batch {
            app: self.app,
            owner: &owner,
            origin: Arc::new(first.origin()),
            received_at: self.received_at,
        };
        let all = (checked, rejections);
        let taken = taking::take(self.services, self.notes, &batch, all, None).await?;
        let refused = taken.rejections.into_iter().filter_map(|rejection| {
            let message = run.get(rejection.index)?;
            Some(Refused {
                index: message.index,
                error: MessageError::new(&message.pointer, rejection.code, rejection.message),
                retryable: rejection.retryable,
            })
        });
        Ok(refused.collect())
    }
}

/// The messages of each person, in their order. Ids that a message has together are one person's, unless the key's word
/// for a user id is ignored.
fn by_person(messages: Vec<Message<'_>>, trust: Trust) -> Vec<Vec<Message<'_>>> {
    let mut groups: Vec<usize> = Vec::new();
    let mut of_name: HashMap<(bool, String), usize> = HashMap::new();
    let mut of_message = Vec::with_capacity(messages.len());
    for message in &messages {
        let user_id = message.user_id.as_ref();
        let user_id = user_id.filter(|_| trust != Trust::Anonymous);
        let names = [(true, user_id), (false, message.anonymous_id.as_ref())];
        let mut group = None;
        for (is_user, name) in names {
            let Some(name) = name else { continue };
            let found = *of_name.entry((is_user, name.clone())).or_insert_with(|| {
                groups.push(groups.len());
                groups.len() - 1
            });
            let found = root(&groups, found);
            let first = *group.get_or_insert(found);
            if let Some(slot) = groups.get_mut(found.max(first)) {
                *slot = found.min(first);
            }
            group = Some(found.min(first));
        }
        of_message.push(group.unwrap_or(usize::MAX));
    }
    let mut people: HashMap<usize, Vec<Message<'_>>> = HashMap::new();
    for (message, group) in messages.into_iter().zip(of_message) {
        people
            .entry(root(&groups, group))
            .or_default()
            .push(message);
    }
    people.into_values().collect()
}

/// The first of the groups that are one.
fn root(groups: &[usize], mut group: usize) -> usize {
    while let Some(next) = groups.get(group).copied()
        && next != group
    {
        group = next;
    }
    group
}

/// The event that a message is.
fn body<'m>(message: &'m Message<'_>) -> EventBody<'m> {
    let (name, properties) = match &message.content {
        Content::Event(name, properties) => (name.as_deref(), properties.as_deref()),
        Content::Traits(_) => (None, None),
    };
    let id = message.id.map(|id| Field::Text(Cow::Owned(id.to_string())));
    EventBody {
        event_id: id.unwrap_or(Field::Missing),
        name: name.map_or(Field::Missing, |name| Field::Text(Cow::Borrowed(name))),
        timestamp: Field::Text(Cow::Borrowed(&message.timestamp)),
        anonymous_id: Field::Missing,
        external_id: Field::Missing,
        properties: properties.filter(|raw| raw.get() != "null"),
    }
}

fn refused(message: &Message<'_>, (code, detail): PersonRejection) -> Refused {
    Refused {
        index: message.index,
        error: MessageError::new(&message.pointer, code, detail),
        retryable: false,
    }
}
