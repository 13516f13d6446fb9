//! Two versions of a trigger plugin about the same events.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_db::Timestamp;
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_records::events::store::Stored;
use nudge_wasm::trigger;

use super::people::{People, Scene};
use super::report::{Report, Verdicts};
use super::side::{BacktestTimerKey, Batch, Concerned, Made, Side};
use super::window::Request;
use super::{Context, Match, SLICE};

/// The events that at least one version reads, with what each of them is asked.
#[derive(Default)]
struct Questions {
    items: Vec<trigger::Item>,
    events: Vec<Stored>,
    active: Concerned,
    candidate: Concerned,
}

impl Questions {
    /// Adds an item, if it concerns anything of a version.
    fn add(
        &mut self,
        event: &Stored,
        item: trigger::Item,
        active: Vec<usize>,
        candidate: Vec<usize>,
    ) {
        if active.is_empty() && candidate.is_empty() {
            return;
        }
        let number = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        for target in active {
            self.active.entry(target).or_default().push(number);
        }
        for target in candidate {
            self.candidate.entry(target).or_default().push(number);
        }
        self.items.push(item);
        self.events.push(event.clone());
    }

    /// Each event with its items: as the beginning of a session it is one of its own.
    fn by_event(&self) -> impl Iterator<Item = (&Stored, Range<usize>)> {
        let mut next = 0;
        let events = self.events.chunk_by(|one, other| one.seq == other.seq);
        events.filter_map(move |items| {
            let first = next;
            next += items.len();
            Some((items.first()?, first..next))
        })
    }
}

/// Both versions and what they know.
#[derive(Debug)]
pub(super) struct Triggers {
    context: Context,
    active: Side,
    candidate: Side,
    people: People,
    pub report: Report,
}

impl Triggers {
    pub(super) fn new(context: Context, versions: &Match, report: Report) -> Self {
        let targets = versions.targets.iter();
        let active = targets
            .clone()
            .map(|target| (target.clone(), Arc::clone(&target.active)));
        let candidate = targets.map(|target| (target.clone(), Arc::clone(&target.candidate)));
        Self {
            active: Side::new(context.app_id, &versions.active, active.collect()),
            candidate: Side::new(context.app_id, &versions.candidate, candidate.collect()),
            people: People::new(context.clone()),
            context,
            report,
        }
    }

    /// Runs a request's events, after the timers that were due before it. Where these take longer than a slice, it answers
    /// false, and has to be asked again.
    pub(super) fn run(&mut self, request: &Request) -> nudge_db::Result<bool> {
        let Some(first) = request.events.first() else {
            return Ok(true);
        };
        if !self.pass_time(first.received_at, SLICE)? {
            return Ok(false);
        }
        if self.report.stopped.is_some() {
            return Ok(true);
        }
        let read = |event: &Stored| {
            let name = &event.event.name;
            [&self.active, &self.candidate].into_iter().any(|side| {
                side.concerned(name).next().is_some() || !side.session_targets().is_empty()
            })
        };
        let scene = if request.events.iter().any(read) {
            self.people.scene(request.alias, first)?
        } else {
            None
        };
        let asked = self.lay_out(request);
        let Some(mut scene) = scene else {
            return Ok(true);
        };
        self.people.tell(&mut scene);
        let now = trigger::Batch::time(&asked.items);
        let (active, candidate) = self.decide(now, &scene, &asked)?;
        let approximate = active.approximate || candidate.approximate;
        for (event, items) in asked.by_event() {
            let verdicts = Verdicts {
                active: active.of(&items),
                candidate: candidate.of(&items),
            };
            self.report.approximate += u64::from(approximate);
            self.report.event(event, Some(scene.subject.id), &verdicts);
        }
        let bytes = self.active.bytes + self.candidate.bytes + self.people.bytes;
        self.report.measure(bytes);
        Ok(true)
    }

    /// Takes a request's events into their subject, and finds what they concern.
    fn lay_out(&mut self, request: &Request) -> Questions {
        let mut asked = Questions::default();
        for event in &request.events {
            let session = self.people.take(request.alias, event);
            let number = session.map_or(0, |session| session.number);
            let given = item(event, event.received_at, number, None);
            if session.is_some_and(|session| session.begins) {
                let beginning = trigger::Item {
                    name: SESSION_BEGAN.into(),
                    ..given.clone()
                };
                let sides = [&self.active, &self.candidate];
                let [active, candidate] = sides.map(|side| side.session_targets().to_vec());
                asked.add(event, beginning, active, candidate);
            }
            let name = &event.event.name;
            let active = self.active.concerned(name).collect();
            let candidate = self.candidate.concerned(name).collect();
            asked.add(event, given, active, candidate);
        }
        asked
    }

    fn decide(
        &mut self,
        now: i64,
        scene: &Scene,
        asked: &Questions,
    ) -> nudge_db::Result<(Made, Made)> {
        let batch = Batch {
            now,
            items: &asked.items,
            events: &asked.events,
            scene,
        };
        let active = self.active.decide(&self.context, &batch, &asked.active)?;
        let candidate = self
            .candidate
            .decide(&self.context, &batch, &asked.candidate)?;
        Ok((active, candidate))
    }

    /// Lets timers fall due in order; answers whether none is left that is due by then. Gives up after `slice`.
    pub(super) fn pass_time(
        &mut self,
        until: Timestamp,
        slice: Duration,
    ) -> nudge_db::Result<bool> {
        let started = Instant::now();
        loop {
            let next = self.active.next().into_iter().chain(self.candidate.next());
            let next = next.min().filter(|(due, _)| *due <= until.0).cloned();
            let Some(next) = next else {
                return Ok(true);
            };
            if self.report.stopped.is_some() {
                return Ok(true);
            }
            if started.elapsed() >= slice {
                return Ok(false);
            }
            self.fall_due(&next)?;
        }
    }

    /// Lets a timer fall due that one version has set, or both.
    fn fall_due(&mut self, at: &(i64, BacktestTimerKey)) -> nudge_db::Result<()> {
        let (due, timer_key) = at;
        let mut verdicts = [None, None];
        let (mut event, mut approximate) = (None, false);
        for (side, verdict) in [&mut self.active, &mut self.candidate]
            .into_iter()
            .zip(&mut verdicts)
        {
            // A version that has not set it has not fired it.
            *verdict = Some(BTreeSet::new());
            let Some((pending, timer)) = side.take(at) else {
                continue;
            };
            let Some(scene) = self.people.now(timer_key.subject_id, Timestamp(*due)) else {
                continue;
            };
            let session = scene.subject.session_number;
            let item = item(&pending.event, Timestamp(*due), session, Some(timer));
            let batch = Batch {
                now: *due,
                items: &[item],
                events: std::slice::from_ref(&pending.event),
                scene: &scene,
            };
            let concerned = Concerned::from([(timer_key.target, vec![0])]);
            let made = side.decide(&self.context, &batch, &concerned)?;
            approximate |= made.approximate;
            *verdict = made.of(&(0..1));
            event = Some(pending.event);
        }
        let [active, candidate] = verdicts;
        if let Some(event) = event {
            let verdicts = Verdicts { active, candidate };
            self.report.approximate += u64::from(approximate);
            let (subject_id, key) = (timer_key.subject_id, &timer_key.key);
            self.report.timer(&event, subject_id, key, &verdicts);
        }
        Ok(())
    }
}

fn item(
    stored: &Stored,
    received: Timestamp,
    session: i64,
    timer: Option<trigger::Timer>,
) -> trigger::Item {
    let event = &stored.event;
    trigger::Item {
        subject: 0,
        event_id: event.id,
        name: Arc::clone(&event.name),
        timestamp: event.timestamp.0,
        received: received.0,
        session: u32::try_from(session).unwrap_or(u32::MAX),
        properties: Arc::clone(&event.properties),
        timer,
    }
}
