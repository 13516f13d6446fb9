//! Two versions of a validation plugin about the same events: which of them each would reject.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nudge_records::events::store::Stored;
use nudge_wasm::validation::{Batch, Definition, Item};
use nudge_wasm::{Failure, Plugin};
use uuid::Uuid;

use super::super::store;
use super::report::{Report, Verdicts};
use super::window::Request;
use super::{Context, Match, Target};

/// Both versions.
#[derive(Debug)]
pub(super) struct Validations {
    context: Context,
    versions: Match,
    /// The definition of each event name.
    by_name: HashMap<String, usize>,
    pub report: Report,
}

/// A place of an event in its request, and the number of its definition.
type Declared<'r> = (&'r Stored, usize);

impl Validations {
    pub(super) fn new(context: Context, versions: &Match, report: Report) -> Self {
        let names = versions.targets.iter().enumerate();
        let by_name = names.filter_map(|(number, target)| Some((target.name.clone()?, number)));
        Self {
            context,
            by_name: by_name.collect(),
            versions: versions.clone(),
            report,
        }
    }

    /// Runs a request's events.
    pub(super) fn run(&mut self, request: &Request) -> nudge_db::Result<()> {
        let declared: Vec<Declared<'_>> = request
            .events
            .iter()
            .filter_map(|event| Some((event, *self.by_name.get(&*event.event.name)?)))
            .collect();
        if declared.is_empty() {
            return Ok(());
        }
        let Match {
            active, candidate, ..
        } = &self.versions;
        let active = self.rejected(active, &declared, |target| &target.active.properties)?;
        let candidate =
            self.rejected(candidate, &declared, |target| &target.candidate.properties)?;
        let differ = active != candidate;
        let subject = if differ {
            self.subject(request.alias)?
        } else {
            None
        };
        for (((event, definition), active), candidate) in
            declared.into_iter().zip(active).zip(candidate)
        {
            let of = |rejected: bool| {
                let definition = rejected.then_some(definition);
                definition.into_iter().collect::<BTreeSet<usize>>()
            };
            let verdicts = Verdicts {
                active: active.map(of),
                candidate: candidate.map(of),
            };
            self.report.event(event, subject, &verdicts);
        }
        Ok(())
    }

    fn subject(&self, alias: i64) -> nudge_db::Result<Option<Uuid>> {
        let context = &self.context;
        let found = context.runtime.block_on(async {
            let mut tx = context.db.read().await?;
            store::subjects(&mut tx, context.app_id, vec![alias]).await
        })?;
        Ok(found.first().map(|(_, subject)| subject.id))
    }

    /// For each event whether a version rejects it; none: it failed. Where it fails on all together, it is asked
    /// about each alone.
    fn rejected(
        &self,
        plugin: &Plugin,
        declared: &[Declared<'_>],
        properties: impl Fn(&Target) -> &Arc<[String]> + Copy,
    ) -> nudge_db::Result<Vec<Option<bool>>> {
        if let Some(rejected) = self.ask(plugin, declared, properties)? {
            return Ok(rejected.into_iter().map(Some).collect());
        }
        let mut verdicts = Vec::with_capacity(declared.len());
        for alone in declared.chunks(1) {
            let rejected = if declared.len() > 1 {
                self.ask(plugin, alone, properties)?
            } else {
                None
            };
            verdicts.push(rejected.and_then(|rejected| rejected.first().copied()));
        }
        Ok(verdicts)
    }

    fn ask(
        &self,
        plugin: &Plugin,
        declared: &[Declared<'_>],
        properties: impl Fn(&Target) -> &Arc<[String]>,
    ) -> nudge_db::Result<Option<Vec<bool>>> {
        let mut items_of: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (number, (_, definition)) in (0_u32..).zip(declared) {
            items_of.entry(*definition).or_default().push(number);
        }
        let definitions = items_of.into_iter().filter_map(|(definition, items)| {
            let target = self.versions.targets.get(definition)?;
            Some(Definition {
                config: Arc::clone(&target.config),
                properties: Arc::clone(properties(target)),
                items,
            })
        });
        let items = declared.iter().map(|(event, _)| Item {
            timestamp: event.event.timestamp.0,
            properties: Arc::clone(&event.event.properties),
        });
        let received = declared.iter().map(|(event, _)| event.received_at.0);
        let batch = Batch {
            now: received.max().unwrap_or_default(),
            items: items.collect(),
            definitions: definitions.collect(),
        };
        let outcome = super::call(|| self.context.check(), || plugin.validate(batch.clone()))?;
        match outcome {
            Ok(outcome) => {
                let broken: BTreeSet<u32> = outcome
                    .violations
                    .iter()
                    .map(|violation| violation.item)
                    .collect();
                let rejected = (0_u32..)
                    .zip(declared)
                    .map(|(item, _)| broken.contains(&item));
                Ok(Some(rejected.collect()))
            }
            Err(failed) if failed.failure == Failure::Unavailable => Err(
                nudge_db::Error::unavailable(std::io::Error::other("no room for a plugin")),
            ),
            Err(_) => Ok(None),
        }
    }
}
