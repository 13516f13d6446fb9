//! What plugins may keep of one subject, all campaigns together, and whose turn it is when there is no more room.
//!
//! A campaign may keep 4 KiB of state and 64 timers of a subject; a subject may have a thousand campaigns. So
//! there is a limit for all of them together: 64 KiB of states, 256 timers. Whoever came first must not keep the
//! others out: beyond the limit a campaign may still keep its share, the limit divided by the campaigns that keep
//! something of this subject. What is refused is the growth of those that have more than that; what they have
//! stays, and they may always keep less than before. In the worst case, a thousand campaigns that each filled
//! their share as it was when they came, a subject has about five times the limit.
//!
//! Timers of the host's own plugin do not count: each stands for an event of the subject that is stored anyway.

use std::collections::{BTreeSet, HashMap};

use nudge_apps::App;
use nudge_db::{Result, Rows, Tx};
use uuid::Uuid;

use super::evaluate::{Decisions, Failed, Item, Timer};
use super::projection::Subject;
use super::work::{Source, Work};

/// States of a subject, in bytes, all campaigns together.
pub(super) const STATE_BYTES: usize = 64 << 10;
/// Timers of a subject, all campaigns together.
pub(super) const TIMERS: usize = 256;
/// A state that is never refused: as much for each of a thousand campaigns is within the limit.
const SMALL_STATE_BYTES: usize = 64;
/// The same of timers: one that is always the campaign's own.
const FEW_TIMERS: usize = 1;

/// What campaigns keep of a subject: bytes or timers.
#[derive(Debug, Default)]
struct SubjectUsage(HashMap<Uuid, usize>);

impl SubjectUsage {
    /// The campaigns that would keep more than they may.
    fn over(&self, after: &HashMap<Uuid, usize>, limit: usize, always: usize) -> Vec<Uuid> {
        let mut whole = self.0.clone();
        whole.extend(after);
        whole.retain(|_, kept| *kept > 0);
        let total: usize = whole.values().sum();
        if total <= limit {
            return Vec::new();
        }
        let share = (limit / whole.len().max(1)).max(always);
        let before = |campaign: &Uuid| self.0.get(campaign).copied().unwrap_or_default();
        let over = after
            .iter()
            .filter(|(campaign, kept)| **kept > share && **kept > before(campaign));
        over.map(|(campaign, _)| *campaign).collect()
    }
}

#[derive(nudge_db::FromRow)]
struct StateRow {
    subject_id: Uuid,
    campaign_id: Uuid,
    bytes: i64,
}

#[derive(nudge_db::FromRow)]
struct TimerRow {
    subject_id: Uuid,
    campaign_id: Uuid,
    key: String,
}

/// A campaign and a subject.
type Pair = (usize, u32);

/// Takes out of decisions what would pass a subject's limits. The items of such a campaign and subject count as
/// refused, with all that the campaign decided about them. What is read here holds until the effects are
/// written: they are given up if the subject changed.
pub(super) async fn enforce(
    tx: &mut Tx,
    app: &App,
    works: &[Work],
    items: &[Item],
    subjects: &[Subject],
    decisions: &mut Decisions,
) -> Result<()> {
    let mut refused = too_many_bytes(tx, app, subjects, decisions).await?;
    refused.extend(too_many_timers(tx, app, items, subjects, decisions).await?);
    for pair in refused {
        tracing::warn!(app.id = %app.id, "a campaign would keep more of a subject than there is room for");
        refuse(app, works, items, decisions, pair);
    }
    Ok(())
}

/// Whether anything was decided that could pass a limit.
pub(super) fn matters(decisions: &Decisions) -> bool {
    let large = |state: &Option<Vec<u8>>| {
        let bytes = state.as_ref().map_or(0, Vec::len);
        bytes > SMALL_STATE_BYTES
    };
    let sets = |timer: &Timer| matches!(timer, Timer::Set { .. });
    decisions.states.values().any(large) || decisions.timers.iter().any(sets)
}

async fn too_many_bytes(
    tx: &mut Tx,
    app: &App,
    subjects: &[Subject],
    decisions: &Decisions,
) -> Result<BTreeSet<Pair>> {
    let mut after: HashMap<u32, HashMap<Uuid, usize>> = HashMap::new();
    let mut numbers: HashMap<Uuid, usize> = HashMap::new();
    for ((campaign, subject), state) in &decisions.states {
        if let Some(running) = app.campaigns.get(*campaign) {
            let bytes = state.as_ref().map_or(0, Vec::len);
            numbers.insert(running.id, *campaign);
            after.entry(*subject).or_default().insert(running.id, bytes);
        }
    }
    let ids = ids(subjects, after.keys());
    let mut usage: HashMap<Uuid, SubjectUsage> = HashMap::new();
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<StateRow> = tx
            .with_rows("v(subject_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT p.subject_id, p.campaign_id, CAST(length(p.state) AS BIGINT) AS bytes
                  FROM v JOIN plugin_states p ON p.subject_id = v.subject_id WHERE p.app_id = ",
            )
            .push_bind(app.id)
            .fetch_all()
            .await?;
        for row in rows {
            let bytes = usize::try_from(row.bytes).unwrap_or_default();
            let of_subject = usage.entry(row.subject_id).or_default();
            of_subject.0.insert(row.campaign_id, bytes);
        }
    }
    Ok(over(
        subjects,
        &numbers,
        &usage,
        &after,
        STATE_BYTES,
        SMALL_STATE_BYTES,
    ))
}

/// The keys of timers by subject and campaign.
type TimerKeys = HashMap<Uuid, HashMap<Uuid, BTreeSet<String>>>;

async fn timer_keys(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<TimerKeys> {
    let mut keys = TimerKeys::new();
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<TimerRow> = tx
            .with_rows("v(subject_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT t.subject_id, t.campaign_id, t.key
                  FROM v JOIN timers t ON t.subject_id = v.subject_id WHERE t.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        for row in rows {
            let of_subject = keys.entry(row.subject_id).or_default();
            let of_campaign = of_subject.entry(row.campaign_id).or_default();
            of_campaign.insert(row.key);
        }
    }
    Ok(keys)
}

async fn too_many_timers(
    tx: &mut Tx,
    app: &App,
    items: &[Item],
    subjects: &[Subject],
    decisions: &Decisions,
) -> Result<BTreeSet<Pair>> {
    let subject_of = |item: usize| {
        let item = items.get(item)?;
        u32::try_from(item.subject).ok()
    };
    let setters: BTreeSet<u32> = decisions
        .timers
        .iter()
        .filter_map(|timer| match timer {
            Timer::Set { campaign, item, .. } => {
                let number = subject_of(*item)?;
                let subject = subjects.get(number as usize)?;
                counts(app, *campaign, subject).then_some(number)
            }
            Timer::Cancel { .. } | Timer::CancelAll { .. } => None,
        })
        .collect();
    let mut keys = timer_keys(tx, app.id, &ids(subjects, setters.iter())).await?;
    for number in &setters {
        if let Some(subject) = subjects.get(*number as usize)
            && let Some(of_subject) = keys.get_mut(&subject.id)
        {
            let count = |id: &Uuid| app.campaign(*id).is_none_or(|it| counts(app, it, subject));
            of_subject.retain(|id, _| count(id));
        }
    }
    // Those that fell due are gone.
    for item in items {
        if let (Some(timer), Some(subject)) = (&item.timer, subjects.get(item.subject))
            && let Some(of_subject) = keys.get_mut(&subject.id)
            && let Some(of_campaign) = of_subject.get_mut(&timer.campaign_id)
        {
            of_campaign.remove(&timer.key);
        }
    }
    let usage: HashMap<Uuid, SubjectUsage> = keys
        .iter()
        .map(|(subject, campaigns)| {
            let counts = campaigns
                .iter()
                .map(|(campaign, keys)| (*campaign, keys.len()));
            (*subject, SubjectUsage(counts.collect()))
        })
        .collect();

    let (mut after, numbers) = counted(app, items, subjects, decisions, keys);
    after.retain(|subject, _| setters.contains(subject));
    Ok(over(subjects, &numbers, &usage, &after, TIMERS, FEW_TIMERS))
}

/// Whether what a campaign has of a subject's timers counts.
fn counts(app: &App, campaign: usize, subject: &Subject) -> bool {
    let running = app.campaigns.get(campaign);
    running.is_none_or(|running| {
        let (plugin, _) = running.accepted.for_subject(subject.id);
        !plugin.has_unlimited_timers()
    })
}

/// How many timers campaigns have of subjects after the changes, and the numbers of those campaigns.
fn counted(
    app: &App,
    items: &[Item],
    subjects: &[Subject],
    decisions: &Decisions,
    mut keys: TimerKeys,
) -> (HashMap<u32, HashMap<Uuid, usize>>, HashMap<Uuid, usize>) {
    let subject_of = |item: usize| {
        let item = items.get(item)?;
        u32::try_from(item.subject).ok()
    };
    let mut after: HashMap<u32, HashMap<Uuid, usize>> = HashMap::new();
    let mut numbers: HashMap<Uuid, usize> = HashMap::new();
    for change in &decisions.timers {
        let (campaign, subject) = match change {
            Timer::Set { campaign, item, .. } => (*campaign, subject_of(*item)),
            Timer::Cancel {
                campaign, subject, ..
            }
            | Timer::CancelAll {
                campaign, subject, ..
            } => (*campaign, Some(*subject)),
        };
        let (Some(running), Some(number)) = (app.campaigns.get(campaign), subject) else {
            continue;
        };
        let Some(subject) = subjects
            .get(number as usize)
            .filter(|subject| counts(app, campaign, subject))
        else {
            continue;
        };
        let of_subject = keys.entry(subject.id).or_default();
        let of_campaign = of_subject.entry(running.id).or_default();
        match change {
            Timer::Set { key, .. } => drop(of_campaign.insert(key.clone())),
            Timer::Cancel { key, .. } => drop(of_campaign.remove(key)),
            Timer::CancelAll { .. } => of_campaign.clear(),
        }
        numbers.insert(running.id, campaign);
        let of_campaigns = after.entry(number).or_default();
        of_campaigns.insert(running.id, of_campaign.len());
    }
    (after, numbers)
}

fn ids<'n>(subjects: &[Subject], numbers: impl Iterator<Item = &'n u32>) -> Vec<Uuid> {
    let subject = |number: &u32| subjects.get(*number as usize);
    numbers
        .filter_map(subject)
        .map(|subject| subject.id)
        .collect()
}

fn over(
    subjects: &[Subject],
    numbers: &HashMap<Uuid, usize>,
    usage: &HashMap<Uuid, SubjectUsage>,
    after: &HashMap<u32, HashMap<Uuid, usize>>,
    limit: usize,
    always: usize,
) -> BTreeSet<Pair> {
    let nothing = SubjectUsage::default();
    let mut over = BTreeSet::new();
    for (number, after) in after {
        let Some(subject) = subjects.get(*number as usize) else {
            continue;
        };
        let usage = usage.get(&subject.id).unwrap_or(&nothing);
        for campaign in usage.over(after, limit, always) {
            over.extend(numbers.get(&campaign).map(|campaign| (*campaign, *number)));
        }
    }
    over
}

/// Takes everything out that a campaign decided about a subject.
fn refuse(app: &App, works: &[Work], items: &[Item], decisions: &mut Decisions, pair: Pair) {
    let (campaign, subject) = pair;
    let of = |item: usize| {
        let item = items.get(item);
        item.is_some_and(|item| u32::try_from(item.subject).is_ok_and(|of| of == subject))
    };
    decisions.states.remove(&pair);
    decisions
        .fired
        .retain(|fired| fired.campaign != campaign || !of(fired.item));
    decisions.timers.retain(|change| match change {
        Timer::Set {
            campaign: set,
            item,
            ..
        } => *set != campaign || !of(*item),
        Timer::Cancel {
            campaign: set,
            subject: whose,
            ..
        }
        | Timer::CancelAll {
            campaign: set,
            subject: whose,
            ..
        } => (*set, *whose) != pair,
    });
    let known: BTreeSet<usize> = decisions
        .failed
        .iter()
        .filter(|failed| failed.campaign == campaign)
        .map(|failed| failed.item)
        .collect();
    let concerned = items.iter().enumerate().filter(|(number, item)| {
        of(*number) && !known.contains(number) && concerns(app, works, item, campaign)
    });
    let failed = concerned.map(|(item, _)| Failed {
        campaign,
        item,
        reason: "refused",
        detail: "the plugins of all campaigns together keep as much of this person as they may; erase plugin state that is not \
                 needed, or let timers fall due"
            .into(),
    });
    decisions.failed.extend(failed);
}

/// Whether an item is one that the campaign was asked about.
fn concerns(app: &App, works: &[Work], item: &Item, campaign: usize) -> bool {
    let is = |id: Uuid| app.campaign(id) == Some(campaign);
    match works.get(item.work).map(|work| &work.source) {
        Some(Source::Timer(timer)) => is(timer.campaign_id),
        // What only waited was decided before.
        Some(Source::Occasion(due)) => due.firing_id.is_none() && is(due.campaign_id),
        Some(Source::Letter { campaign_id, .. }) => campaign_id.is_some_and(is),
        Some(Source::Request(_)) if item.begins => app.session_campaigns().contains(&campaign),
        Some(Source::Request(_)) => app
            .campaigns_for(&item.stored.event.name)
            .any(|concerned| concerned == campaign),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(parts: &[(u128, usize)]) -> HashMap<Uuid, usize> {
        let parts = parts.iter();
        parts
            .map(|(campaign, kept)| (Uuid::from_u128(*campaign), *kept))
            .collect()
    }

    fn over(before: &[(u128, usize)], after: &[(u128, usize)]) -> Vec<u128> {
        let over = SubjectUsage(kept(before)).over(&kept(after), 100, 5);
        let mut over: Vec<u128> = over.iter().map(Uuid::as_u128).collect();
        over.sort_unstable();
        over
    }

    #[test]
    fn the_limit_is_all_campaigns_together() {
        assert!(over(&[(1, 60)], &[(2, 40)]).is_empty());
        assert!(over(&[(1, 40)], &[(2, 60)]).is_empty());
        assert_eq!(over(&[(1, 40)], &[(2, 61)]), [2]);
        // Its own, in place of what it had.
        assert!(over(&[(1, 60), (2, 40)], &[(1, 59)]).is_empty());
        assert_eq!(over(&[(1, 60), (2, 40)], &[(1, 61)]), [1]);
        assert!(over(&[(1, 60), (2, 40)], &[(1, 0), (3, 60)]).is_empty());
    }

    #[test]
    fn whoever_came_first_does_not_keep_others_out() {
        // Half of it is the second campaign's share.
        assert!(over(&[(1, 100)], &[(2, 50)]).is_empty());
        assert_eq!(over(&[(1, 100)], &[(2, 51)]), [2]);
        // The first may not grow, nor stay by writing as much again in vain; it may keep what it has.
        assert_eq!(over(&[(1, 90), (2, 50)], &[(1, 91)]), [1]);
        assert!(over(&[(1, 90), (2, 50)], &[(1, 90)]).is_empty());
        let thirty: Vec<(u128, usize)> = (1..=30).map(|campaign| (campaign, 10)).collect();
        assert!(over(&thirty, &[(31, 5)]).is_empty());
        assert_eq!(over(&thirty, &[(31, 6)]), [31]);
    }

    proptest! {
        #[test]
        fn a_share_is_never_refused(before in prop::collection::vec(0_usize..200, 0..40)) {
            let before: Vec<(u128, usize)> = (1..).zip(before).collect();
            let holders = before.iter().filter(|(_, kept)| *kept > 0).count() + 1;
            let share = (100 / holders).max(5);
            prop_assert!(over(&before, &[(0, share)]).is_empty());
        }
    }
}
