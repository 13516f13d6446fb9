//! What of submissions may be stored, and what came of it: for the writers and for jobs that replay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use nudge_pipeline::SeenVersions;
use nudge_records::dead_letters::store::Inserted;
use nudge_records::dead_letters::{self, Letter};
use nudge_records::events::insert::{self, NewRequest};
use nudge_records::events::store::{self, RequestKey, Stored};
use nudge_records::events::{Event, Key, SEQ_BLOCK, removed};
use nudge_records::rejected::{self, RejectedEvent};
use nudge_records::stats::{self, Stats, Tally};
use nudge_records::subjects::current::{Claim, Claims};
use nudge_records::subjects::{self, NOBODY, Versioned};
use uuid::Uuid;

use super::commit::CommitOutcome;
use crate::submission::Submission;

/// What a replay has stored of a submission.
#[derive(Debug)]
pub struct Replayed {
    /// The letters that it has removed.
    pub letters: usize,
    /// The events that are new.
    pub events: Vec<Arc<Event>>,
}

/// Stores what a job replays, in the job's own transaction. No process has it in hand then: whichever has room
/// processes it. Answers for each submission what it has brought, or why nothing of it was stored.
pub async fn store_replayed(
    tx: &mut Tx,
    submissions: &[Submission],
) -> nudge_db::Result<Vec<Result<Replayed, CommitOutcome>>> {
    if submissions.is_empty() {
        return Ok(Vec::new());
    }
    let Plan { seen: plan, new } = plan(tx, submissions).await?;
    let kept: Vec<&Submission> = new
        .iter()
        .map(|submission| &**submission)
        .zip(&plan)
        .filter(|(submission, plan)| plan.is_ok() && !submission.events.is_empty())
        .map(|(submission, _)| submission)
        .collect();
    let requests: Vec<NewRequest<'_>> = kept
        .iter()
        .map(|submission| NewRequest {
            app_id: submission.app.id,
            alias: submission.alias,
            node: None,
            received_at: submission.received_at,
            origin: &submission.origin,
            events: &submission.events,
        })
        .collect();
    let inserted = insert::insert(tx, &requests, false).await?;
    let stored = new_events(tx, &kept, &inserted.ids, false).await?;
    keep_letters(tx, &new, &plan).await?;
    let mut stored = stored.into_iter();
    let outcomes = new.iter().zip(plan).map(|(submission, plan)| {
        plan?;
        let letters = submission.replays.len();
        let mut events = Vec::new();
        if !submission.events.is_empty() {
            let new = stored.next().unwrap_or_default();
            events.extend(new.into_iter().map(|stored| stored.event));
        }
        Ok(Replayed { letters, events })
    });
    Ok(outcomes.collect())
}

/// Keeps the letters and refused events of those submissions that may be stored; answers what came of the letters.
pub(super) async fn keep_letters(
    tx: &mut Tx,
    submissions: &[Cow<'_, Submission>],
    plan: &[Result<SeenVersions, CommitOutcome>],
) -> nudge_db::Result<Inserted> {
    let planned = || {
        let planned = submissions.iter().zip(plan);
        planned.filter(|(_, plan)| plan.is_ok()).map(|(it, _)| it)
    };
    let letters: Vec<&Letter> = planned().flat_map(|it| &it.letters).collect();
    let now = planned().map(|it| it.received_at).max();
    let now = now.unwrap_or(Timestamp(i64::MIN));
    let inserted = dead_letters::store::insert(tx, &letters, now).await?;
    let kept = &inserted.kept;
    for submission in planned() {
        let letters = submission.letters.iter();
        let letters: Vec<&Letter> = letters.filter(|letter| kept.contains(&letter.id)).collect();
        let (app, at) = (&submission.app, submission.received_at);
        let _polled = dead_letters::announce(tx, app.id, &app.webhooks, &letters, at).await?;
    }
    let refused: Vec<&RejectedEvent> = planned().flat_map(|it| &it.rejected).collect();
    rejected::insert(tx, &refused, kept).await?;
    Ok(inserted)
}

/// Counts what was stored of a submission: its events that are new, and those of its dead letters that `is_new` says are new.
pub fn count(
    stats: &Stats,
    submission: &Submission,
    new_events: &[Arc<Event>],
    mut is_new: impl FnMut(&Uuid) -> bool,
) {
    let app = &submission.app;
    let at = submission.received_at;
    stats.count(app.id, at, stats::Kind::Accepted, new_events.len());
    if app.definitions.is_empty() || !submission.replays.is_empty() {
        // What a replay stores was seen when it arrived.
        return;
    }
    let mut tallies: HashMap<Uuid, Tally> = HashMap::new();
    let mut add = |name: &str, violations| {
        if let Some(enforced) = app.definitions.get(name) {
            tallies.entry(enforced.id).or_default().add(Tally {
                seen: 1,
                violations,
            });
        }
    };
    for event in new_events {
        add(
            &event.name,
            i64::from(submission.observed.contains(&event.id)),
        );
    }
    for letter in &submission.letters {
        if is_new(&letter.id) {
            add(&letter.event_name, 1);
        }
    }
    if !tallies.is_empty() {
        stats.count_definition(app.id, at, tallies);
    }
}

/// What of submissions is to be stored.
pub(super) struct Plan<'s> {
    /// For each its subject as of now, or why nothing of it may be stored.
    pub seen: Vec<Result<SeenVersions, CommitOutcome>>,
    /// The submissions, without the events that are known under other aliases of their subjects or were removed, and without
    /// those of letters that are gone.
    pub new: Vec<Cow<'s, Submission>>,
}

/// Looks at what submissions may bring, and removes the letters that they replay. Of a letter that is gone, because it was
/// acknowledged or replayed since it was read, nothing is stored.
pub(super) async fn plan<'s>(
    tx: &mut Tx,
    submissions: &'s [Submission],
) -> nudge_db::Result<Plan<'s>> {
    let standings = standings(tx, submissions).await?;
    let looks = submissions.iter().map(|it| look(it, &standings));
    let mut seen: Vec<Result<SeenVersions, CommitOutcome>> = looks.collect();
    let left = take_letters(tx, submissions, &mut seen).await?;
    let shared = |alias| standings.get(&alias).is_some_and(|it| it.has_others);
    let asked = left.iter().zip(&seen).filter_map(|(it, seen)| {
        let seen = seen.as_ref().ok().filter(|_| shared(it.alias))?;
        Some(it.event_ids().map(|id| (it.alias, seen.subject_id, id)))
    });
    let asked: Vec<(i64, Uuid, Uuid)> = asked.flatten().collect();
    let mut known = store::known_elsewhere(tx, &asked).await?;
    let old = left.iter().zip(&seen).filter_map(|(it, seen)| {
        let seen = seen.as_ref().ok()?;
        Some(it.old_event_ids().map(|id| (it.alias, seen.subject_id, id)))
    });
    let old: Vec<(i64, Uuid, Uuid)> = old.flatten().collect();
    known.extend(removed::known(tx, &old).await?);
    let new = left.into_iter().map(|it| without(it, &known)).collect();
    Ok(Plan { seen, new })
}

/// The subjects of the aliases that submissions are about, by alias.
async fn standings(
    tx: &mut Tx,
    submissions: &[Submission],
) -> nudge_db::Result<HashMap<i64, Versioned>> {
    let mut aliases: Vec<i64> = submissions
        .iter()
        .flat_map(|it| [Some(it.alias), it.claims.map(|claims| claims.token.alias)])
        .flatten()
        .collect();
    aliases.sort_unstable();
    aliases.dedup();
    let standings = subjects::store::standings(tx, aliases).await?;
    let by_alias = standings.into_iter().map(|it| (it.standing.alias, it));
    Ok(by_alias.collect())
}

/// The subject of a submission as of now, or why nothing may be stored. A token counts as long as its own alias is as it
/// was when the token was issued, whichever of the subject's aliases the events come under.
fn look(
    submission: &Submission,
    standings: &HashMap<i64, Versioned>,
) -> Result<SeenVersions, CommitOutcome> {
    let is_so = |claim: Claim| {
        let found = standings.get(&claim.alias);
        found.is_some_and(|found| Claim::of(&found.standing) == claim)
    };
    let holds = |claims: &Claims| is_so(claims.token) && is_so(claims.named);
    if submission.alias == NOBODY {
        return Err(CommitOutcome::Suppressed);
    }
    let Versioned {
        standing,
        version,
        app_version,
        ..
    } = standings
        .get(&submission.alias)
        .ok_or(CommitOutcome::TokenRevoked)?;
    if submission.claims.is_some_and(|claims| !holds(&claims)) {
        Err(CommitOutcome::TokenRevoked)
    } else if standing.suppressed {
        Err(CommitOutcome::Suppressed)
    } else if !standing.may_analyze(&submission.app) {
        Err(CommitOutcome::ConsentMissing)
    } else {
        Ok(SeenVersions {
            subject_id: standing.subject_id,
            version: *version,
            app_version: *app_version,
        })
    }
}

/// Removes the letters that submissions replay; answers the submissions with the events of those that were there.
async fn take_letters<'s>(
    tx: &mut Tx,
    submissions: &'s [Submission],
    plan: &mut [Result<SeenVersions, CommitOutcome>],
) -> nudge_db::Result<Vec<Cow<'s, Submission>>> {
    let planned = submissions.iter().zip(&*plan).filter(|(_, it)| it.is_ok());
    let replayed: Vec<(Uuid, Uuid)> = planned
        .flat_map(|(it, _)| it.replays.iter().map(|id| (it.app.id, *id)))
        .collect();
    let taken = dead_letters::store::take(tx, &replayed).await?;
    let left = submissions.iter().zip(plan).map(|(submission, plan)| {
        let is_there = |id: &Uuid| taken.contains(id);
        if plan.is_err() || submission.replays.iter().all(is_there) {
            return Cow::Borrowed(submission);
        }
        let mut left = submission.clone();
        let pairs = left.replays.into_iter().zip(left.events);
        (left.replays, left.events) = pairs.filter(|(id, _)| is_there(id)).unzip();
        if left.replays.is_empty() {
            *plan = Err(CommitOutcome::LettersGone);
        }
        Cow::Owned(left)
    });
    Ok(left.collect())
}

/// A submission without those events that are known.
fn without<'s>(submission: Cow<'s, Submission>, known: &HashSet<Key>) -> Cow<'s, Submission> {
    let alias = submission.alias;
    let is_new = |id: Uuid| !known.contains(&(alias, id));
    if known.is_empty() || submission.event_ids().all(is_new) {
        return submission;
    }
    let mut rest = submission.into_owned();
    rest.events.retain(|event| is_new(event.id));
    rest.letters.retain(|letter| is_new(letter.event_id));
    Cow::Owned(rest)
}

/// Of each request the events that are new; requests without any are done with.
pub(super) async fn new_events(
    tx: &mut Tx,
    kept: &[&Submission],
    ids: &[i64],
    all_new: bool,
) -> nudge_db::Result<Vec<Vec<Stored>>> {
    let key = |(submission, id): (&&Submission, &i64)| (submission.alias, *id);
    let keys: Vec<RequestKey> = kept.iter().zip(ids).map(key).collect();
    let mut there = if all_new {
        HashMap::new()
    } else {
        store::seqs_of(tx, &keys).await?
    };
    let mut stored = Vec::with_capacity(kept.len());
    let mut empty = Vec::new();
    for (submission, key) in kept.iter().zip(keys) {
        let (_, id) = key;
        let new = (!all_new).then(|| there.remove(&id).unwrap_or_default());
        if new.as_ref().is_some_and(Vec::is_empty) {
            empty.push(key);
        }
        let events = (0_i64..)
            .zip(&submission.events)
            .map(|(offset, event)| Stored {
                seq: id * SEQ_BLOCK + offset,
                received_at: submission.received_at,
                origin: Arc::clone(&submission.origin),
                event: Arc::clone(event),
            });
        stored.push(
            events
                .filter(|event| {
                    new.as_ref()
                        .is_none_or(|new| new.binary_search(&event.seq).is_ok())
                })
                .collect(),
        );
    }
    if !empty.is_empty() {
        store::delete_pending(tx, &empty).await?;
    }
    Ok(stored)
}
