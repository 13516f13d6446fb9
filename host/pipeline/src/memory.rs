//! Subjects as this process wrote them last, so that the next batch need not read them again.
//!
//! What is here can be out of date, which is found out twice: a request's commit sees which version its subject has, and
//! nothing older is taken from here; and effects are written only if each subject still has the version that they
//! follow from. So whatever changes a subject, or what plugins keep of it, counts its version up. What plugins keep for
//! a campaign goes with the campaign, which never comes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::effects::Effects;
use super::projection::Subject;
use super::work::Work;

/// Bytes of one generation. There are two, so that twice as much is remembered at the most.
const MOST_BYTES: usize = 8 << 20;
/// For how long a generation is filled. A deleted person is remembered twice as long at the most.
const LATELY: Duration = Duration::from_secs(30);
/// What a subject takes besides what plugins keep of it, about, in bytes.
const SUBJECT_BYTES: usize = 512;
/// What each campaign takes besides what its plugin keeps of a subject, in bytes.
const STATE_BYTES: usize = 64;
/// What plugins keep of a subject is remembered if it is at most so much, in bytes.
const MOST_STATE_BYTES: usize = 4 << 10;

/// The versions that a commit of events has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenVersions {
    /// The subject.
    pub subject_id: Uuid,
    /// The subject's version.
    pub version: i64,
    /// The app's version.
    pub app_version: i64,
}

/// What the plugin of a campaign keeps of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedState {
    /// The plugin's name: what another one keeps is not known.
    pub plugin: String,
    /// None: nothing.
    pub state: Option<Vec<u8>>,
}

/// What plugins keep of subjects, by subject and campaign. What is not there is not known.
pub(super) type States = HashMap<Uuid, HashMap<Uuid, RememberedState>>;

/// A subject as it was written.
#[derive(Debug)]
pub(super) struct Remembered {
    pub subject: Subject,
    states: HashMap<Uuid, RememberedState>,
    bytes: usize,
}

/// Subjects by the aliases that they are needed under.
pub(super) type Recalled = HashMap<i64, Arc<Remembered>>;

/// The subjects that were written last.
#[derive(Debug)]
pub(super) struct Memory(Mutex<Generations>);

type Generation = HashMap<(Uuid, Uuid), Arc<Remembered>>;

#[derive(Debug)]
struct Generations {
    young: Generation,
    old: Generation,
    young_bytes: usize,
    young_since: Instant,
}

impl Memory {
    /// A memory of nobody.
    pub(super) fn new() -> Self {
        Self(Mutex::new(Generations {
            young: Generation::new(),
            old: Generation::new(),
            young_bytes: 0,
            young_since: Instant::now(),
        }))
    }

    /// The subjects of those aliases that have requests alone, as far as they are remembered.
    pub(super) fn recall(&self, app_id: Uuid, works: &[Work]) -> Recalled {
        let mut wanted: HashMap<i64, Option<SeenVersions>> = HashMap::new();
        for work in works {
            let newest = wanted.entry(work.alias).or_insert(work.seen);
            *newest = newest.zip(work.seen).and_then(|(one, other)| {
                let same = one.subject_id == other.subject_id;
                let version = one.version.max(other.version);
                same.then_some(SeenVersions { version, ..one })
            });
        }
        let generations = self.0.lock();
        let found = wanted.into_iter().filter_map(|(alias, seen)| {
            let seen = seen?;
            let remembered = generations.get(&(app_id, seen.subject_id))?;
            (remembered.subject.version >= seen.version).then(|| (alias, Arc::clone(remembered)))
        });
        found.collect()
    }

    /// Remembers subjects that were just written, and what plugins keep of them.
    pub(super) fn remember(&self, app_id: Uuid, written: Vec<Subject>, mut states: States) {
        let mut generations = self.0.lock();
        for mut subject in written {
            subject.version += 1;
            subject.has_changed = false;
            let states = states.remove(&subject.id).unwrap_or_default();
            generations.put(app_id, Remembered::new(subject, states));
        }
    }

    /// Forgets subjects that were written long ago. To be called every now and then.
    pub(super) fn age(&self) {
        let mut generations = self.0.lock();
        if generations.young_since.elapsed() > LATELY {
            generations.turn();
        }
    }

    /// Forgets subjects.
    pub(super) fn forget(&self, app_id: Uuid, subjects: impl IntoIterator<Item = Uuid>) {
        let mut generations = self.0.lock();
        for id in subjects {
            generations.remove(&(app_id, id));
        }
    }
}

impl Remembered {
    fn new(subject: Subject, mut states: HashMap<Uuid, RememberedState>) -> Self {
        let size = |remembered: &RememberedState| {
            let state = remembered.state.as_ref().map_or(0, Vec::len);
            STATE_BYTES + remembered.plugin.len() + state
        };
        let mut bytes = states.values().map(size).sum();
        if bytes > MOST_STATE_BYTES {
            states = HashMap::new();
            bytes = 0;
        }
        Self {
            subject,
            states,
            bytes: SUBJECT_BYTES + bytes,
        }
    }
}

/// What plugins keep of those subjects that were recalled and have not changed since.
pub(super) fn states(recalled: &Recalled, subjects: &[Subject]) -> States {
    let versions: HashMap<Uuid, i64> = subjects.iter().map(|it| (it.id, it.version)).collect();
    let current = |it: &&Arc<Remembered>| {
        versions
            .get(&it.subject.id)
            .is_some_and(|version| *version == it.subject.version)
    };
    let recalled = recalled.values().filter(current);
    recalled
        .map(|it| (it.subject.id, it.states.clone()))
        .collect()
}

/// Brings what plugins kept up to date with what is written. Marks of firings that were held back, and what merges added,
/// stand beside it in the database: where one is, was made, or may have been, nothing is known.
pub(super) fn update(states: &mut States, effects: &Effects) {
    if !effects.dropped.is_empty() {
        states.clear();
        return;
    }
    for change in &effects.states {
        let of_subject = states.get_mut(&change.subject_id);
        if let Some(remembered) = of_subject.and_then(|it| it.get_mut(&change.campaign_id)) {
            remembered.state.clone_from(&change.state);
        }
    }
    for (campaign_id, subject_id) in effects.held_back.keys() {
        if let Some(of_subject) = states.get_mut(subject_id) {
            of_subject.remove(campaign_id);
        }
    }
}

impl Generations {
    fn get(&self, key: &(Uuid, Uuid)) -> Option<&Arc<Remembered>> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// Puts a subject in, unless a newer version of it is there.
    fn put(&mut self, app_id: Uuid, remembered: Remembered) {
        let key = (app_id, remembered.subject.id);
        let version = remembered.subject.version;
        if self
            .get(&key)
            .is_some_and(|it| it.subject.version >= version)
        {
            return;
        }
        self.remove(&key);
        self.young_bytes += remembered.bytes;
        self.young.insert(key, Arc::new(remembered));
        if self.young_bytes > MOST_BYTES {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.young_bytes = 0;
        self.young_since = Instant::now();
    }

    fn remove(&mut self, key: &(Uuid, Uuid)) {
        self.old.remove(key);
        if let Some(removed) = self.young.remove(key) {
            self.young_bytes -= removed.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Source;

    const APP: Uuid = Uuid::from_u128(1);
    const ADA: Uuid = Uuid::from_u128(2);
    const CAMPAIGN: Uuid = Uuid::from_u128(3);

    fn subject(version: i64) -> Subject {
        Subject {
            id: ADA,
            version,
            ..Subject::nobody()
        }
    }

    fn request(alias: i64, version: i64) -> Work {
        let mut work = Work::new(Source::Request(1), APP, alias, Vec::new(), None);
        work.seen = Some(SeenVersions {
            subject_id: ADA,
            version,
            app_version: 1,
        });
        work
    }

    fn keeping(state: &[u8]) -> States {
        let remembered = RememberedState {
            plugin: "counter".to_owned(),
            state: Some(state.to_vec()),
        };
        let of_ada = HashMap::from([(CAMPAIGN, remembered)]);
        States::from([(ADA, of_ada)])
    }

    /// The version that is recalled for the alias 1.
    fn recalled(memory: &Memory, app_id: Uuid, works: &[Work]) -> Option<i64> {
        let recalled = memory.recall(app_id, works);
        recalled.get(&1).map(|it| it.subject.version)
    }

    #[test]
    fn what_was_written_is_recalled_unless_a_commit_saw_something_newer() {
        let memory = Memory::new();
        assert_eq!(recalled(&memory, APP, &[request(1, 0)]), None);
        memory.remember(APP, vec![subject(6)], States::new());
        assert_eq!(recalled(&memory, APP, &[request(1, 5)]), Some(7));
        assert_eq!(recalled(&memory, APP, &[request(1, 7)]), Some(7));
        assert_eq!(recalled(&memory, APP, &[request(1, 8)]), None);
        let both = [request(1, 7), request(1, 8)];
        assert_eq!(recalled(&memory, APP, &both), None);
        assert_eq!(recalled(&memory, Uuid::nil(), &[request(1, 7)]), None);
        // Written before what is remembered, and noted late.
        memory.remember(APP, vec![subject(4)], States::new());
        assert_eq!(recalled(&memory, APP, &[request(1, 7)]), Some(7));
        memory.forget(APP, [ADA]);
        assert_eq!(recalled(&memory, APP, &[request(1, 7)]), None);
    }

    #[test]
    fn only_requests_whose_commits_saw_the_subject_are_recalled_for() {
        let memory = Memory::new();
        memory.remember(APP, vec![subject(6)], States::new());
        let mut works = vec![request(1, 7), request(1, 7), request(2, 7)];
        assert_eq!(memory.recall(APP, &works).len(), 2);
        works.push(Work::new(Source::Request(2), APP, 1, Vec::new(), None));
        assert_eq!(recalled(&memory, APP, &works), None);
        assert_eq!(memory.recall(APP, &works).len(), 1);
    }

    #[test]
    fn states_are_those_of_the_version_that_the_batch_has() {
        let memory = Memory::new();
        memory.remember(APP, vec![subject(6)], keeping(b"state"));
        let found = memory.recall(APP, &[request(1, 7)]);
        assert_eq!(states(&found, &[subject(7)]), keeping(b"state"));
        assert_eq!(states(&found, &[subject(8)]), States::new());
        // Large ones are not remembered.
        let large = vec![0; MOST_STATE_BYTES];
        memory.remember(APP, vec![subject(7)], keeping(&large));
        let found = memory.recall(APP, &[request(1, 8)]);
        let of_ada = States::from([(ADA, HashMap::new())]);
        assert_eq!(states(&found, &[subject(8)]), of_ada);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let memory = Memory::new();
        let places = MOST_BYTES / SUBJECT_BYTES;
        let somebody = |number: usize| Subject {
            id: Uuid::from_u128(number as u128 + 10),
            ..subject(0)
        };
        memory.remember(APP, vec![subject(6)], States::new());
        memory.remember(APP, (0..places).map(somebody).collect(), States::new());
        assert_eq!(recalled(&memory, APP, &[request(1, 7)]), Some(7));
        let more = (places..=3 * places).map(somebody);
        memory.remember(APP, more.collect(), States::new());
        assert_eq!(recalled(&memory, APP, &[request(1, 7)]), None);
        let generations = memory.0.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * places + 2);
    }
}
