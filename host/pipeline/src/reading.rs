//! What a batch reads before it is decided about: its subjects, and what plugins may ask of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use nudge_apps::App;
use nudge_db::{Db, Tx};
use nudge_plugin_runtime::Accepted;
use nudge_records::scheduled_work;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::evaluate::{Item, Routes};
use super::facts::{Ledger, Read};
use super::memory::{Recalled, RememberedState, States};
use super::projection::{Subject, Subjects};
use super::store::plugin_states::{self, StoredState};
use super::work::Work;
use super::{Inner, store};

/// Reads from the database, if there is anything to read.
pub(super) struct Reader<'d> {
    db: &'d Db,
    tx: Option<Tx>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(db: &'d Db) -> Self {
        Self { db, tx: None }
    }

    /// The one transaction of all reads.
    pub(super) async fn tx(&mut self) -> nudge_db::Result<&mut Tx> {
        Ok(match &mut self.tx {
            Some(tx) => tx,
            none => none.insert(self.db.read().await?),
        })
    }

    /// Gives the connection back until the next read: whoever needs one meanwhile has no second.
    pub(super) fn pause(&mut self) {
        self.tx = None;
    }
}

/// The subjects of a batch.
pub(super) async fn subjects(
    reader: &mut Reader<'_>,
    app_id: Uuid,
    works: &[Work],
    recalled: &Recalled,
) -> nudge_db::Result<Subjects> {
    let aliases: HashSet<i64> = works.iter().map(|work| work.alias).collect();
    let unknown = aliases.into_iter().filter(|it| !recalled.contains_key(it));
    let unknown: Vec<i64> = unknown.collect();
    let mut found = Vec::with_capacity(unknown.len() + recalled.len());
    for (from, count) in [("database", unknown.len()), ("memory", recalled.len())] {
        metrics::counter!("nudge_pipeline_aliases_total", "from" => from).increment(count as u64);
    }
    if !unknown.is_empty() {
        found = store::subjects(reader.tx().await?, app_id, unknown).await?;
    }
    // After what was read, which is newer where somebody has both.
    found.extend(
        recalled
            .iter()
            .map(|(alias, it)| (*alias, it.subject.clone())),
    );
    Ok(Subjects::new(found))
}

/// The subjects of a batch before it and after it, and what plugins keep of them, as far as that is known.
pub(super) struct People<'b> {
    pub before: &'b Subjects,
    pub after: &'b [Subject],
    pub states: &'b mut States,
}

/// A campaign and somebody it may fire for, by their numbers in the app and in the batch, and by their ids.
struct Pair<'a> {
    campaign: usize,
    subject: u32,
    campaign_id: Uuid,
    subject_id: Uuid,
    /// The plugin that decides for the campaign.
    accepted: &'a Accepted,
}

/// Who is concerned by which campaign, and those of whom their plugins may ask properties.
fn pairs<'a>(
    app: &'a App,
    subjects: &[Subject],
    items: &[Item],
    routes: &Routes,
) -> (Vec<Pair<'a>>, HashSet<Uuid>) {
    let mut pairs = Vec::new();
    let mut read = HashSet::new();
    for (campaign, numbers) in routes {
        let Some(running) = app.campaigns.get(*campaign) else {
            continue;
        };
        let of_campaign = numbers.iter().filter_map(|item| items.get(*item));
        let concerned: HashSet<usize> = of_campaign.map(|item| item.subject).collect();
        for index in concerned {
            let Some(subject) = subjects.get(index) else {
                continue;
            };
            if running.accepted.reads_subject() {
                read.insert(subject.id);
            }
            pairs.push(Pair {
                campaign: *campaign,
                subject: u32::try_from(index).unwrap_or(u32::MAX),
                campaign_id: running.id,
                subject_id: subject.id,
                accepted: &running.accepted,
            });
        }
    }
    (pairs, read)
}

/// What the plugins that decide keep of pairs, by campaign and subject, and what stands beside it. `known` is so already, and is
/// brought up to date.
async fn states(
    reader: &mut Reader<'_>,
    app_id: Uuid,
    pairs: Vec<Pair<'_>>,
    known: &mut States,
) -> nudge_db::Result<(HashMap<(usize, u32), Vec<u8>>, Read)> {
    let mut states = HashMap::with_capacity(pairs.len());
    let mut unknown = Vec::new();
    for pair in pairs {
        let of_subject = known.get(&pair.subject_id);
        let of_pair = of_subject.and_then(|it| it.get(&pair.campaign_id));
        match of_pair.filter(|it| it.plugin == pair.accepted.plugin_name()) {
            Some(remembered) => {
                let place = (pair.campaign, pair.subject);
                states.extend(remembered.state.clone().map(|state| (place, state)));
            }
            None => unknown.push(pair),
        }
    }
    let mut marked = Vec::new();
    if !unknown.is_empty() {
        let asked = unknown.iter().map(|it| (it.campaign_id, it.subject_id));
        let mut stored = plugin_states::read(reader.tx().await?, app_id, asked.collect()).await?;
        for pair in unknown {
            let stored = stored.remove(&(pair.campaign_id, pair.subject_id));
            let stored = stored.filter(|it| pair.accepted.inherits(it.plugin.as_deref()));
            let state = stored.as_ref().map(|stored| stored.state.clone());
            let of_subject = known.entry(pair.subject_id).or_default();
            if let Some(stored) = stored.filter(StoredState::is_marked) {
                of_subject.remove(&pair.campaign_id);
                marked.push((pair.subject, pair.campaign_id, stored));
            } else {
                let remembered = RememberedState {
                    plugin: pair.accepted.plugin_name().to_owned(),
                    state: state.clone(),
                };
                of_subject.insert(pair.campaign_id, remembered);
            }
            states.extend(state.map(|state| ((pair.campaign, pair.subject), state)));
        }
    }
    Ok((states, Read::beside(marked.into_iter())))
}

/// Reads what the campaigns' plugins may ask for, and notes what they keep.
pub(super) async fn ledger(
    inner: &Inner,
    reader: &mut Reader<'_>,
    app: &App,
    people: People<'_>,
    items: &[Item],
    routes: &Routes,
) -> nudge_db::Result<Ledger> {
    let (pairs, read) = pairs(app, &people.before.all, items, routes);
    let (states, mut beside) = states(reader, app.id, pairs, people.states).await?;
    let subjects = known(people.before, people.after, items);
    let unread = (0..).zip(&subjects);
    beside.without_properties = unread
        .filter_map(|(number, it)| (!read.contains(&it.id)).then_some(number))
        .collect();
    let mut properties = HashMap::new();
    if !read.is_empty() {
        let read: Vec<Uuid> = read.into_iter().collect();
        properties = store::properties(reader.tx().await?, app.id, &read).await?;
    }
    let mut ledger = Ledger {
        app_id: app.id,
        db: inner.db.clone(),
        runtime: Handle::current(),
        subjects,
        properties,
        states,
        earlier: Vec::new(),
        aliases: HashMap::new(),
        until: inner.clock.now(),
        read: beside,
    };
    let asked = counted(app, items, routes);
    if !asked.is_empty() {
        ledger.read_ahead(reader.tx().await?, &asked).await?;
    }
    Ok(ledger)
}

/// Subjects as of before the batch. Of one with a dead letter it is before the letter's event, or when its timer fell due: neither
/// that event nor what came after it is its past.
fn known(before: &Subjects, after: &[Subject], items: &[Item]) -> Vec<Subject> {
    let both = before.all.iter().zip(after);
    let mut subjects: Vec<Subject> = both.map(|(it, after)| it.clone().at(after)).collect();
    for item in items.iter().filter(|item| item.replays) {
        let last_seq = match &item.timer {
            Some(timer) => timer.last_seq,
            None if scheduled_work::instant_of(item.stored.seq).is_some() => None,
            None => Some(item.stored.seq - 1),
        };
        if let (Some(subject), Some(last_seq)) = (subjects.get_mut(item.subject), last_seq) {
            subject.last_seq = subject.last_seq.min(last_seq);
        }
    }
    subjects
}

/// Subjects, by their number in the batch, and names of events whose past campaigns may ask for.
fn counted<'a>(app: &'a App, items: &[Item], routes: &Routes) -> BTreeSet<(u32, &'a str)> {
    let mut asked = BTreeSet::new();
    for (campaign, numbers) in routes {
        let Some(running) = app.campaigns.get(*campaign) else {
            continue;
        };
        let accepted = &running.accepted;
        let names: Vec<&String> = accepted.history().collect();
        for item in numbers.iter().filter_map(|item| items.get(*item)) {
            let subject = u32::try_from(item.subject).unwrap_or(u32::MAX);
            asked.extend(names.iter().map(|name| (subject, name.as_str())));
            if item.timer.is_some() {
                // A firing that is due after a delay may ask whether an event has cancelled it.
                asked.extend(accepted.event_names().map(|name| (subject, name.as_str())));
            }
        }
    }
    asked
}
