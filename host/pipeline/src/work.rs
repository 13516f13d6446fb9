//! Units of work: what a lane takes in one piece.

use std::collections::HashSet;
use std::sync::Arc;

use nudge_apps::App;
use nudge_records::dead_letters::{Letter, Stage};
use nudge_records::events::Origin;
use nudge_records::events::store::{RequestKey, Stored};
use nudge_records::instructions::Instruction;
use nudge_records::scheduled_work::{DueOccasion, DueTimer};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::devices::Device;
use super::memory::SeenVersions;
use super::room::Room;

/// What some work fired.
#[derive(Debug, Default)]
pub struct Fired {
    /// Instructions, by descending priority.
    pub instructions: Vec<Instruction>,
    /// Whether a plugin failed on it.
    pub failed: bool,
    /// Whether nothing was decided about it, as its campaign does not run: a dead letter is as it was.
    pub rests: bool,
    /// Whether it was not there any longer: a dead letter that was replayed, acknowledged or erased meanwhile.
    pub gone: bool,
}

/// A row that this process has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// A row of `pending`.
    Request(i64),
    /// A row of `timers`.
    Timer(Uuid),
    /// A row of `occasions`.
    Occasion(Uuid),
}

/// The claimed rows whose work is in memory. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimedRows(Arc<Mutex<HashSet<Claim>>>);

/// Keeps a claim in hand until it is dropped.
#[derive(Debug)]
pub(super) struct ClaimGuard {
    claim: Claim,
    in_hand: ClaimedRows,
}

impl ClaimedRows {
    /// Notes that the work of a claim is in memory.
    pub(super) fn hold(&self, claim: Claim) -> ClaimGuard {
        self.0.lock().insert(claim);
        ClaimGuard {
            claim,
            in_hand: self.clone(),
        }
    }

    /// Whether the work of a claim is in memory.
    pub(super) fn has(&self, claim: &Claim) -> bool {
        self.0.lock().contains(claim)
    }

    /// Whether no claim's work is in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// How many requests are in memory.
    pub(super) fn requests(&self) -> usize {
        self.count(|claim| matches!(claim, Claim::Request(_)))
    }

    /// How many occasions are in memory.
    pub(super) fn occasions(&self) -> usize {
        self.count(|claim| matches!(claim, Claim::Occasion(_)))
    }

    fn count(&self, is_wanted: impl Fn(&Claim) -> bool) -> usize {
        let claims = self.0.lock();
        claims.iter().filter(|claim| is_wanted(claim)).count()
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        self.in_hand.0.lock().remove(&self.claim);
    }
}

/// Where work comes from. Each is removed from the database in the transaction of its effects.
#[derive(Clone, Debug)]
pub enum Source {
    /// A request, by the id of its row in `pending`.
    Request(i64),
    /// A timer that is due.
    Timer(DueTimer),
    /// An occasion that is due.
    Occasion(DueOccasion),
    /// A dead letter of the trigger stage.
    Letter {
        /// The letter.
        id: Uuid,
        /// The campaign that could not be decided.
        campaign_id: Option<Uuid>,
        /// The session that the event was in.
        session: Option<i64>,
        /// Whether the plugin failed on the beginning of that.
        begins: bool,
        /// Whether the campaign has fired, and only its message is to be made again.
        fires: bool,
        /// The timer that the plugin failed on, if it is about one.
        timer: Option<DueTimer>,
    },
}

/// Some events of one alias that are processed together.
#[derive(Debug)]
pub struct Work {
    /// Where it comes from.
    pub source: Source,
    /// The app.
    pub app_id: Uuid,
    /// Whose events they are.
    pub alias: i64,
    /// The events: those of a request, or the one that a timer, an occasion or a letter is about.
    pub events: Vec<Stored>,
    /// Who waits for the outcome, if anybody still does.
    pub done: Option<oneshot::Sender<Fired>>,
    /// Whether a campaign may read one of the events, or hear of what it changes. The others are only projected.
    pub(super) routed: bool,
    /// Where the events come from, if the request said.
    pub(super) device: Option<Device>,
    /// What its commit has seen of the subject and of the app.
    pub(super) seen: Option<SeenVersions>,
    /// The subject, where whoever made the work knows it.
    subject: Option<Uuid>,
    /// Held until the work is done.
    _room: Option<Room>,
    /// Set when a lane gets the work.
    pub(super) held: Option<ClaimGuard>,
}

impl Work {
    /// A request that was just committed.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a commit knows of a request"
    )]
    pub fn request(
        app: &Arc<App>,
        alias: i64,
        origin: &Origin,
        seen: SeenVersions,
        id: i64,
        events: Vec<Stored>,
        room: Room,
        done: oneshot::Sender<Fired>,
    ) -> Self {
        let moves_segments = !app.segments.watched.is_empty()
            && events
                .iter()
                .any(|stored| app.segments.is_touched_by(&stored.event.name));
        let routed = moves_segments
            || !app.session_campaigns().is_empty()
            || events
                .iter()
                .any(|stored| app.campaigns_for(&stored.event.name).next().is_some());
        Self {
            done: Some(done),
            routed,
            device: Device::of(origin.device_id.clone(), origin.sdk_version.clone()),
            seen: Some(seen),
            subject: Some(seen.subject_id),
            ..Self::new(Source::Request(id), app.id, alias, events, Some(room))
        }
    }

    /// Work that nobody waits for and of which nothing is known but what the database has: a request that another process
    /// left or that there was no room for, a timer, an occasion.
    pub fn new(
        source: Source,
        app_id: Uuid,
        alias: i64,
        events: Vec<Stored>,
        room: Option<Room>,
    ) -> Self {
        Self {
            source,
            app_id,
            alias,
            events,
            done: None,
            routed: true,
            device: None,
            seen: None,
            subject: None,
            _room: room,
            held: None,
        }
    }

    /// The same of a subject that is known.
    #[must_use]
    pub fn of_subject(self, subject: Uuid) -> Self {
        Self {
            subject: Some(subject),
            ..self
        }
    }

    /// Which of so many lanes does the work: all of a subject's, as far as the subject is known.
    pub(super) fn lane(&self, lanes: usize) -> usize {
        let owner = match self.subject {
            Some(subject) => subject.as_u128(),
            None => u128::from(self.alias.unsigned_abs()),
        };
        usize::try_from(owner % lanes as u128).unwrap_or_default()
    }

    /// A dead letter to be replayed. `campaign_id` is the campaign that decides; none: there is none any more, and the letter goes.
    pub fn replay(
        app_id: Uuid,
        letter: &Letter,
        campaign_id: Option<Uuid>,
        event: Stored,
        room: Option<Room>,
        done: oneshot::Sender<Fired>,
    ) -> Self {
        let source = Source::Letter {
            id: letter.id,
            campaign_id,
            session: letter.session,
            begins: letter.opens_session,
            fires: letter.stage == Stage::Personalization,
            timer: letter.timer.clone(),
        };
        Self {
            done: Some(done),
            ..Self::new(source, app_id, letter.alias, vec![event], room)
        }
    }

    /// Whether it is a dead letter that is replayed.
    pub(super) fn replays(&self) -> bool {
        matches!(self.source, Source::Letter { .. })
    }

    /// The row that must be claimed for the work.
    pub(super) fn claim(&self) -> Option<Claim> {
        match &self.source {
            Source::Request(id) => Some(Claim::Request(*id)),
            Source::Timer(timer) => Some(Claim::Timer(timer.id)),
            Source::Occasion(occasion) => Some(Claim::Occasion(occasion.id)),
            Source::Letter { .. } => None,
        }
    }

    /// The request's row in `pending`, if it is one.
    pub(super) fn request_id(&self) -> Option<i64> {
        match &self.source {
            Source::Request(id) => Some(*id),
            Source::Timer(_) | Source::Occasion(_) | Source::Letter { .. } => None,
        }
    }

    /// The request with its alias, if it is one.
    pub(super) fn request_key(&self) -> Option<RequestKey> {
        self.request_id().map(|id| (self.alias, id))
    }

    /// The order in which work of one subject is done: requests by their number, the rest first.
    pub fn order(&self) -> i64 {
        match &self.source {
            Source::Request(id) => *id,
            Source::Timer(_) | Source::Occasion(_) | Source::Letter { .. } => i64::MIN,
        }
    }

    /// Whether anybody waits for the outcome.
    pub fn is_awaited(&self) -> bool {
        self.done.as_ref().is_some_and(|done| !done.is_closed())
    }

    /// Tells whoever waits.
    pub fn finish(&mut self, fired: Fired) {
        if let Some(done) = self.done.take() {
            // Nobody waits any longer: the outcome is in the database.
            drop(done.send(fired));
        }
    }
}
