//! One batch of a lane, from reading the subjects to writing the effects.

mod layout;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::apps;
use nudge_db::Timestamp;
use nudge_platform::traces::{self, KeyValue, NewSpan};
use nudge_plugin_runtime::{Lost, logs};
use nudge_records::dead_letters;
use nudge_records::instructions::Instruction;
use nudge_records::stats;
use uuid::Uuid;

use super::calls::Calls;
use super::effects::{self, Effects};
use super::evaluate::{Decided, Decisions, Evaluation, Item};
use super::facts::Ledger;
use super::groups::{self, Group};
use super::memory::{self, Recalled};
use super::messages;
use super::projection::{Subject, Subjects};
use super::reading::{self, People, Reader};
use super::work::{Fired, Source, Work};
use super::{Inner, devices, run_firings};
use crate::delivery_rules::{self, DeliveryRules};
use crate::quota;
use crate::segments::checks;
use crate::segments::decide::Means;
use crate::shadow::ShadowRuns;
use layout::{Layout, lay_out};

/// Why a batch could not be processed. Nothing of it has taken effect.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Something else must be processed first, or something changed meanwhile.
    Conflict,
    /// The database.
    Database(nudge_db::Error),
    /// The host panicked.
    Lost(Lost),
}

impl From<nudge_db::Error> for Trouble {
    fn from(error: nudge_db::Error) -> Self {
        match error.kind() {
            nudge_db::Kind::Serialization => Self::Conflict,
            _ => Self::Database(error),
        }
    }
}

/// Processes work of one app. On success whoever waits is told, and `works` has what is to be processed next.
pub(super) async fn process(inner: &Inner, works: &mut Vec<Work>) -> Result<(), Trouble> {
    let Some(app_id) = works.first().map(|work| work.app_id) else {
        return Ok(());
    };
    // What another process answered before an event arrived counts for the event.
    let version = version(inner, app_id, works).await?;
    let Some(app) = inner.apps.as_of(app_id, version).await? else {
        // The app was deleted, and its work with it.
        works.clear();
        return Ok(());
    };
    let recalled = inner.memory.recall(app_id, works);
    let outcome = process_with(inner, &app, works, &recalled).await;
    if let Err(Trouble::Conflict) = outcome
        && !recalled.is_empty()
    {
        let outdated = recalled.values().map(|it| it.subject.id);
        inner.memory.forget(app_id, outdated);
        return Box::pin(process_with(inner, &app, works, &Recalled::new())).await;
    }
    outcome
}

/// The version of the app that work is decided by, at the least. What was left in the database may be of campaigns that only
/// another process knows yet.
async fn version(inner: &Inner, app_id: Uuid, works: &[Work]) -> nudge_db::Result<i64> {
    let seen = works.iter().filter_map(|work| work.seen);
    let seen = seen.map(|seen| seen.app_version).max().unwrap_or_default();
    if works.iter().all(|work| work.seen.is_some()) {
        return Ok(seen);
    }
    let mut tx = inner.db.read().await?;
    let newest = apps::version(&mut tx, app_id).await?;
    Ok(newest.map_or(seen, |newest| newest.max(seen)))
}

/// Processes work; what was recalled is not read. What has to wait for it stays in `works`.
async fn process_with(
    inner: &Inner,
    app: &Arc<App>,
    works: &mut Vec<Work>,
    recalled: &Recalled,
) -> Result<(), Trouble> {
    let mut reader = Reader::new(&inner.db);
    let before = reading::subjects(&mut reader, app.id, works, recalled).await?;
    keep_replays_apart(works, &before)?;
    let (touched, behind) = take_behind_changes(app, works, &before);
    let outcome = process_read(inner, app, works, recalled, reader, before, touched).await;
    works.extend(behind);
    outcome
}

/// Processes work whose subjects have been read. `touched` are people whose segments it may change: they are looked at before.
async fn process_read(
    inner: &Inner,
    app: &Arc<App>,
    works: &mut Vec<Work>,
    recalled: &Recalled,
    mut reader: Reader<'_>,
    before: Subjects,
    touched: Vec<Uuid>,
) -> Result<(), Trouble> {
    if !touched.is_empty() {
        reader.pause();
        checks::look_ahead(Means::of_pipeline(inner), app.id, &touched).await?;
    }
    let mut after = as_of(&before.all, inner.clock.now());
    let mut states = memory::states(recalled, &before.all);
    let given = run_firings::of(&mut reader, app.id, works, &before).await?;
    let Layout {
        items,
        routes,
        waited,
    } = lay_out(app, works, &given, &before, &mut after);
    let ledger = if routes.is_empty() {
        None
    } else {
        let people = People {
            before: &before,
            after: &after,
            states: &mut states,
        };
        Some(reading::ledger(inner, &mut reader, app, people, &items, &routes).await?)
    };
    drop(reader);
    let shadow_runs = ledger
        .as_ref()
        .and_then(|ledger| ShadowRuns::of(app, &items, &routes, ledger));
    let Decided {
        mut decisions,
        items,
        calls,
    } = match ledger {
        None => undecided(inner, app, items),
        Some(ledger) => {
            let groups = groups::of(app, &items, &before.all, routes);
            evaluate(inner, app, items, groups, ledger).await?
        }
    };
    within_quota(inner, app, works, &items, &before.all, &mut decisions).await?;
    let shadow_runs = shadow_runs.map(|shadow_runs| shadow_runs.against(&decisions));
    // No plugin has a say in these any longer.
    decisions.fired.splice(..0, waited);
    decisions.fired = delivery_rules::in_order(app, &items, decisions.fired);
    let now = inner.clock.now();
    let rules = DeliveryRules::read(&inner.db, app, &items, &after, &decisions.fired, now).await?;
    let messages = messages::make(inner, app, &items, &after, &decisions.fired, &rules).await?;
    let mut effects = Effects::new(app, works, &items, after, decisions, (rules, messages))?;
    effects.devices = devices::sightings(works, &before);
    effects.segment_checks = touched;
    commit(inner, &mut effects).await?;
    calls.settle();
    memory::update(&mut states, &effects);
    inner
        .memory
        .remember(app.id, std::mem::take(&mut effects.subjects), states);
    finish(inner, works, &items, effects);
    if let Some(shadow_runs) = shadow_runs {
        shadow_runs.offer(inner, app, items);
    }
    Ok(())
}

/// Refuses what people's plugins would keep beyond their room.
async fn within_quota(
    inner: &Inner,
    app: &App,
    works: &[Work],
    items: &[Item],
    subjects: &[Subject],
    decisions: &mut Decisions,
) -> Result<(), Trouble> {
    if quota::matters(decisions) {
        let mut tx = inner.db.read().await?;
        quota::enforce(&mut tx, app, works, items, subjects, decisions).await?;
    }
    Ok(())
}

/// Refuses a dead letter that is replayed together with other work of its person, under whichever alias. It is decided about
/// as of its own time, which is not that of the others.
fn keep_replays_apart(works: &[Work], subjects: &Subjects) -> Result<(), Trouble> {
    let mut replaying: HashMap<usize, bool> = HashMap::new();
    for work in works {
        let Some(subject) = subjects.of(work.alias) else {
            continue;
        };
        match replaying.entry(subject) {
            Entry::Vacant(first) => {
                first.insert(work.replays());
            }
            Entry::Occupied(earlier) if *earlier.get() || work.replays() => {
                return Err(Trouble::Conflict);
            }
            Entry::Occupied(_) => {}
        }
    }
    Ok(())
}

/// Subjects as they are now, as far as that is known.
fn as_of(subjects: &[Subject], now: Timestamp) -> Vec<Subject> {
    let mut subjects = subjects.to_vec();
    for subject in &mut subjects {
        subject.forget_activity_after(now);
    }
    subjects
}

/// Writes effects, as a span of the batch.
async fn commit(inner: &Inner, effects: &mut Effects) -> Result<(), Trouble> {
    let span = || NewSpan::internal("commit effects", Vec::new());
    let committed = traces::within(span, effects::write(inner, effects)).await;
    if let Err(Trouble::Database(error)) = &committed {
        inner.db.note_commit(Some(error));
    }
    committed
}

/// People whose watched segments work may change, in order. Takes out what comes behind such a request, from the next one of theirs
/// on: each change is told by itself.
fn take_behind_changes(
    app: &App,
    works: &mut Vec<Work>,
    subjects: &Subjects,
) -> (Vec<Uuid>, Vec<Work>) {
    if app.segments.watched.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let (mut changed, mut waiting) = (BTreeSet::new(), HashSet::new());
    let waits = |work: &mut Work| {
        let place = subjects.of(work.alias);
        let Some(subject) = place.and_then(|place| subjects.all.get(place)) else {
            return false;
        };
        if moves_segments(app, work, subject) && !changed.insert(subject.id) {
            waiting.insert(subject.id);
        }
        waiting.contains(&subject.id)
    };
    let behind = works.extract_if(.., waits).collect();
    (changed.into_iter().collect(), behind)
}

/// Whether work may change which watched segments somebody is in. A first event says of anybody that there is such a person.
fn moves_segments(app: &App, work: &Work, subject: &Subject) -> bool {
    let mut names = work.events.iter().map(|stored| &*stored.event.name);
    matches!(work.source, Source::Request(_))
        && (subject.event_count == 0 || names.any(|name| app.segments.is_touched_by(name)))
}

/// A batch that no plugin was asked about.
fn undecided(inner: &Inner, app: &App, items: Vec<Item>) -> Decided {
    Decided {
        decisions: Decisions::default(),
        items,
        calls: Calls::new(&inner.plugins.recorder, app.id, logs::Kind::Decision),
    }
}

async fn evaluate(
    inner: &Inner,
    app: &Arc<App>,
    items: Vec<Item>,
    groups: Vec<Group>,
    ledger: Ledger,
) -> Result<Decided, Trouble> {
    let decided = undecided(inner, app, items);
    let Some(first) = groups.first() else {
        return Ok(decided);
    };
    let recording = inner.plugins.keeps_decisions;
    let asked = groups.len();
    let evaluation = Evaluation::new(app, decided.items, ledger, first, decided.calls, recording);
    let evaluated = inner
        .plugins
        .workers
        .run(app.id, move || evaluation.run(&groups));
    let span = || {
        let calls = i64::try_from(asked).unwrap_or(i64::MAX);
        NewSpan::internal(
            "plugin trigger",
            vec![KeyValue::new("nudge.plugin.calls", calls)],
        )
    };
    match traces::within(span, evaluated).await {
        // A plugin's question that was not answered is no conflict of writes, whatever the database said.
        Ok(decided) => decided.map_err(Trouble::Database),
        Err(lost) => Err(Trouble::Lost(lost)),
    }
}

/// Tells whoever waits, and the open polls.
fn finish(inner: &Inner, works: &mut Vec<Work>, items: &[Item], effects: Effects) {
    dead_letters::count(effects.letters.iter().map(|letter| letter.stage));
    let now = inner.clock.now();
    let mut fired: Vec<Fired> = works.iter().map(|_| Fired::default()).collect();
    for failed in &effects.failed_works {
        if let Some(fired) = fired.get_mut(*failed) {
            fired.failed = true;
        }
    }
    for resting in &effects.resting_works {
        if let Some(fired) = fired.get_mut(*resting) {
            fired.rests = true;
        }
    }
    let issued = effects.instructions.len();
    let counted_at = effects.now;
    inner.stats.count(
        effects.app_id,
        counted_at,
        stats::Kind::Instructions,
        issued,
    );
    for (item, instruction) in effects.instructions {
        inner.polls.wake(instruction.subject_id);
        let work = items.get(item).map_or(usize::MAX, |item| item.work);
        if let Some(fired) = fired.get_mut(work) {
            fired.instructions.push(instruction);
        }
    }
    for (mut work, mut fired) in works.drain(..).zip(fired) {
        fired
            .instructions
            .sort_by_key(|instruction: &Instruction| std::cmp::Reverse(instruction.priority));
        metrics::counter!("nudge_pipeline_events_total").increment(work.events.len() as u64);
        if let (Source::Request(_), Some(first)) = (&work.source, work.events.first()) {
            metrics::histogram!("nudge_pipeline_lag_seconds")
                .record(now.since(first.received_at).as_secs_f64());
        }
        work.finish(fired);
    }
}
