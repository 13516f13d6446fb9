//! People with two devices who become one person, while a firing waits that may be cancelled and other things are on
//! offer; and what must have come of it, whatever happened to the servers meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nudge_db::{Db, Timestamp};
use nudge_platform::clock::{self, Clock};
use serde_json::{Value, json};
use uuid::Uuid;

use super::caller::{Caller, Failed, PAUSE};
use super::identity::Backend;
use super::ledger::{Sent, all};
use super::{BOUGHT, DELAY, LEFT, LIKED, Reachable};
use crate::random::Random;
use crate::report::say;

/// What a walk does happens within so many milliseconds, in any order.
const LENGTH: u64 = 6_000;
/// [`DELAY`] in milliseconds.
const DELAY_MILLISECONDS: u64 = DELAY.as_secs() * 1_000;

/// One of a person's two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    /// Identified from the beginning.
    Phone,
    /// Anonymous until the merge.
    Web,
}

/// What happens on a walk, at some time.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Something is liked: it fires at once.
    Like(Device),
    /// What cancels the firing that waits.
    Buy(Device),
    /// The two become one.
    Merge,
    /// The device asks what is on offer.
    Poll(Device),
}

/// The event that cancels.
#[derive(Clone, Copy, Debug)]
struct Bought {
    id: Uuid,
    acknowledged_at: Timestamp,
    /// Whether it was the person's for whom the firing waits, and not that of somebody who became one with it later.
    theirs: bool,
}

/// One person's story, as its devices saw it.
#[derive(Debug)]
pub(super) struct Walk {
    /// The customer's id of the person, and the names of the devices.
    names: [String; 3],
    armed: Uuid,
    armed_by: Device,
    bought: Option<Bought>,
    liked: Vec<Uuid>,
    /// Ids by what fired them, as any poll has shown them.
    offered: BTreeMap<Uuid, Uuid>,
    /// What the phone has seen, from cursor to cursor.
    followed: BTreeSet<Uuid>,
    cursor: Option<String>,
}

/// Somebody who makes people walk, one after the other.
pub(super) struct Walker {
    number: usize,
    caller: Caller,
    backend: Arc<Backend>,
    tokens: [Option<String>; 2],
    merged: bool,
}

impl Walker {
    pub(super) fn new(
        number: usize,
        seed: u64,
        reachable: Reachable,
        backend: Arc<Backend>,
    ) -> Self {
        let random = Random::new(seed ^ ((number as u64 + 1_001) << 32));
        Self {
            number,
            caller: Caller::new(random, reachable),
            backend,
            tokens: [None, None],
            merged: false,
        }
    }

    /// Walks until it is told to stop.
    pub(super) async fn run(mut self, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Walk>> {
        let mut walks = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            walks.push(self.walk(walks.len()).await?);
        }
        Ok(walks)
    }

    async fn walk(&mut self, count: usize) -> anyhow::Result<Walk> {
        let name = |what: &str| format!("{what}-{}-{count}", self.number);
        let names = [name("person"), name("phone"), name("web")];
        self.tokens = [None, None];
        self.merged = false;
        let first = self.any_device();
        let mut walk = Walk {
            names,
            armed: Uuid::nil(),
            armed_by: first,
            bought: None,
            liked: Vec::new(),
            offered: BTreeMap::new(),
            followed: BTreeSet::new(),
            cursor: None,
        };
        walk.armed = self.event(&walk, first, LEFT).await?;
        let began = tokio::time::Instant::now();
        for (at, step) in self.steps(first) {
            tokio::time::sleep_until(began + Duration::from_millis(at)).await;
            self.caller.leave();
            self.take(&mut walk, step).await?;
        }
        Ok(walk)
    }

    fn any_device(&mut self) -> Device {
        if self.caller.random.below(2) == 0 {
            Device::Phone
        } else {
            Device::Web
        }
    }

    /// What happens when, in order of time.
    fn steps(&mut self, armed_by: Device) -> Vec<(u64, Step)> {
        let mut steps = vec![Step::Merge, Step::Poll(Device::Web)];
        steps.extend([Step::Poll(Device::Phone); 6]);
        for _ in 0..4 {
            steps.push(Step::Like(self.any_device()));
        }
        let mut timed: Vec<(u64, Step)> = steps
            .into_iter()
            .map(|step| (self.caller.random.below(LENGTH), step))
            .collect();
        // About when the firing is due, mostly on the device that it waits for.
        let random = &mut self.caller.random;
        if random.below(4) > 0 {
            let at = random.below(DELAY_MILLISECONDS * 4 / 3);
            let same = random.below(3) > 0;
            let device = if same { armed_by } else { self.any_device() };
            timed.push((at, Step::Buy(device)));
        }
        timed.sort_by_key(|(at, _)| *at);
        timed
    }

    async fn take(&mut self, walk: &mut Walk, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Like(device) => {
                let liked = self.event(walk, device, LIKED).await?;
                walk.liked.push(liked);
            }
            Step::Buy(device) => {
                let theirs = self.merged || device == walk.armed_by;
                let id = self.event(walk, device, BOUGHT).await?;
                walk.bought = Some(Bought {
                    id,
                    acknowledged_at: Clock::default().now(),
                    theirs,
                });
            }
            Step::Merge => {
                self.merged = true;
                self.tokens = [self.tokens[0].take(), None];
                self.token(walk, Device::Web).await?;
            }
            Step::Poll(device) => self.poll(walk, device).await?,
        }
        Ok(())
    }

    /// The device's subject token; asks for a session where there is none.
    async fn token(&mut self, walk: &Walk, device: Device) -> anyhow::Result<String> {
        let [person, phone, web] = &walk.names;
        loop {
            let place = usize::from(device == Device::Web);
            if let Some(token) = self.tokens.get(place).cloned().flatten() {
                return Ok(token);
            }
            let body = match device {
                Device::Web if !self.merged => json!({"anonymousId": web}),
                Device::Web => {
                    json!({"anonymousId": web, "identityToken": self.backend.token(person)})
                }
                Device::Phone => {
                    json!({"anonymousId": phone, "identityToken": self.backend.token(person)})
                }
            };
            let answer = self
                .caller
                .send("POST", "/v1/sdk/session", None, &body)
                .await?;
            let Ok(answer) = answer else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let token = answer.pointer("/data/subjectToken").and_then(Value::as_str);
            let token = token.context("a session has a token")?.to_owned();
            *self.tokens.get_mut(place).context("a device")? = Some(token);
        }
    }

    /// Sends a request until it is answered.
    async fn call(
        &mut self,
        walk: &Walk,
        device: Device,
        (method, path): (&str, &str),
        body: &Value,
    ) -> anyhow::Result<Value> {
        loop {
            let token = self.token(walk, device).await?;
            match self.caller.send(method, path, Some(&token), body).await? {
                Ok(answer) => return Ok(answer),
                Err(Failed::Again) => tokio::time::sleep(PAUSE).await,
                Err(Failed::Token) => {
                    let place = usize::from(device == Device::Web);
                    *self.tokens.get_mut(place).context("a device")? = None;
                }
            }
        }
    }

    /// Has an event of a name acknowledged; answers its id.
    async fn event(&mut self, walk: &Walk, device: Device, name: &str) -> anyhow::Result<Uuid> {
        let id = self.caller.random.uuid();
        let [_, phone, web] = &walk.names;
        let anonymous_id = if device == Device::Web { web } else { phone };
        let now = clock::to_text(Clock::default().now());
        let event =
            json!({"eventId": id, "name": name, "timestamp": now, "anonymousId": anonymous_id});
        let body = json!({"context": {"anonymousId": anonymous_id}, "events": [event]});
        loop {
            let answer = self
                .call(walk, device, ("POST", "/v1/sdk/ingest"), &body)
                .await?;
            let accepted = answer.pointer("/data/accepted").and_then(Value::as_u64);
            if accepted == Some(1) {
                return Ok(id);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn poll(&mut self, walk: &mut Walk, device: Device) -> anyhow::Result<()> {
        let cursor = walk.cursor.as_ref().filter(|_| device == Device::Phone);
        let path = cursor.map_or_else(
            || "/v1/sdk/instructions".to_owned(),
            |cursor| format!("/v1/sdk/instructions?cursor={cursor}"),
        );
        let answer = self
            .call(walk, device, ("GET", &path), &Value::Null)
            .await?;
        let shown = walk.note(&answer)?;
        if device == Device::Phone {
            walk.followed.extend(shown);
            let next = answer.pointer("/data/nextCursor").and_then(Value::as_str);
            walk.cursor = next.map(str::to_owned);
        }
        Ok(())
    }
}

impl Walk {
    /// Notes what a poll has shown; answers the ids. What one event fires has one id, before a merge and after it.
    fn note(&mut self, answer: &Value) -> anyhow::Result<Vec<Uuid>> {
        let items = answer.pointer("/data/items").and_then(Value::as_array);
        let mut shown = Vec::new();
        for item in items.context("items")? {
            let id = |pointer| {
                let text = item.pointer(pointer).and_then(Value::as_str);
                Uuid::parse_str(text.unwrap_or_default())
            };
            let (instruction, event) = (id("/instructionId")?, id("/trigger/eventId")?);
            let before = self.offered.insert(event, instruction);
            ensure!(
                before.is_none_or(|before| before == instruction),
                "{}: event {event} has two instructions",
                self.names[0]
            );
            shown.push(instruction);
        }
        Ok(shown)
    }

    /// The events that were acknowledged.
    pub(super) fn add_to(&self, sent: &mut Sent) {
        sent.events.insert(self.armed, LEFT);
        sent.events.extend(self.bought.map(|it| (it.id, BOUGHT)));
        sent.events.extend(self.liked.iter().map(|id| (*id, LIKED)));
    }

    /// Whether the firing that waited must have come; none: either is right.
    fn comes(&self, received: &HashMap<Uuid, Timestamp>) -> anyhow::Result<Option<bool>> {
        let at = |id: Uuid| received.get(&id).copied().context("an event is stored");
        let due = at(self.armed)?.plus(DELAY);
        Ok(match self.bought {
            None => Some(true),
            Some(bought) if at(bought.id)? > due => Some(true),
            Some(bought) if bought.theirs && bought.acknowledged_at < due => Some(false),
            Some(_) => None,
        })
    }
}

#[derive(nudge_db::FromRow)]
struct Received {
    event_id: Uuid,
    received_at: Timestamp,
}

/// Looks once more as everybody's phone, and compares what is there with what must be.
pub(super) async fn compare(db: &Db, mut walker: Walker, walks: Vec<Walk>) -> anyhow::Result<()> {
    let rows: Vec<Received> = all(
        db,
        "SELECT event_id, received_at FROM events WHERE name IN ('cart_left', 'cart_bought')",
    )
    .await?;
    let received: HashMap<Uuid, Timestamp> = rows
        .into_iter()
        .map(|row| (row.event_id, row.received_at))
        .collect();
    let (mut came, mut cancelled, mut open) = (0, 0, 0);
    let count = walks.len();
    for mut walk in walks {
        let person = walk.names[0].clone();
        let before = walk.offered.clone();
        let everything = walker.everything(&mut walk, None).await?;
        for (event, id) in &before {
            ensure!(
                everything.contains(id),
                "{person}: {id}, which {event} fired, is no longer offered"
            );
        }
        for event in &walk.liked {
            ensure!(
                walk.offered.contains_key(event),
                "{person}: {event} fired nothing"
            );
        }
        let comes = walk.comes(&received)?;
        let there = walk.offered.contains_key(&walk.armed);
        ensure!(
            comes.is_none_or(|comes| comes == there),
            "{person}: the delayed firing must come: {comes:?}, and it did: {there}; {walk:?}"
        );
        let expected = walk.liked.len() + usize::from(there);
        ensure!(
            everything.len() == expected,
            "{person}: {} instructions, not {expected}",
            everything.len()
        );
        let cursor = walk.cursor.clone();
        let mut followed = walker.everything(&mut walk, cursor).await?;
        followed.extend(&walk.followed);
        ensure!(
            followed == everything,
            "{person}: its cursor has passed something over"
        );
        match comes {
            Some(true) => came += 1,
            Some(false) => cancelled += 1,
            None => open += 1,
        }
    }
    Ok(say(format_args!(
        "{count} people became one amid it: {came} delayed firings came, {cancelled} were cancelled in time, {open} on the brink"
    ))?)
}

impl Walker {
    /// All pages of what a person is offered, from a cursor on.
    async fn everything(
        &mut self,
        walk: &mut Walk,
        mut cursor: Option<String>,
    ) -> anyhow::Result<BTreeSet<Uuid>> {
        self.merged = true;
        self.tokens = [None, None];
        let mut found = BTreeSet::new();
        loop {
            let path = cursor.as_ref().map_or_else(
                || "/v1/sdk/instructions".to_owned(),
                |cursor| format!("/v1/sdk/instructions?cursor={cursor}"),
            );
            let answer = self
                .call(walk, Device::Phone, ("GET", &path), &Value::Null)
                .await?;
            let shown = walk.note(&answer)?;
            if shown.is_empty() {
                return Ok(found);
            }
            found.extend(shown);
            let next = answer.pointer("/data/nextCursor").and_then(Value::as_str);
            cursor = next.map(str::to_owned);
        }
    }
}
