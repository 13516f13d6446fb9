//! What a poll gets, and where the next one goes on (contract 4).
//!
//! A subject's instructions have positions that ascend as they become available, so that a cursor is a position
//! that everything up to was seen. A page has the most important ones of what is there, not the oldest: what is
//! there when a poll asks is a *window*, from what was seen up to the newest that is on offer, which pages go through by
//! priority. What comes meanwhile is in the next window.

use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_apps::auth::SdkSubject;
use nudge_db::{Timestamp, Tx};
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code};
use nudge_records::instructions::range::Range;
use nudge_records::instructions::{Instruction, Kind, store};
use nudge_records::subjects::current;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

use super::feedback;
use crate::services::Shared;

/// Where a subject's next page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePosition {
    /// Everything up to this position was seen.
    seen: i64,
    /// The last activation of a survey that was known then: what one that was activated later offers was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activated: Option<Timestamp>,
    /// The window that is not read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Window>,
}

/// How far a window is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Window {
    /// The newest position that belongs to it.
    until: i64,
    /// Priority and position of the last one that was read.
    last: (i64, i64),
    /// The last activation of a survey that was known when it was first asked for.
    #[serde(default)]
    activated: Option<Timestamp>,
    /// The first position that was not available yet at one of its pages: no later page has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<i64>,
}

/// A page of instructions.
#[derive(Debug, Default)]
pub struct Page {
    /// The instructions, by descending priority.
    pub instructions: Vec<Instruction>,
    /// Where the next page begins.
    pub place: PagePosition,
    /// When something becomes available that is not yet.
    next_at: Option<Timestamp>,
}

impl PagePosition {
    /// The activation after which there were others, of surveys that offer more than what comes after the place.
    fn since(self, app: &App) -> Option<Timestamp> {
        let activated = self.activated?;
        let others = app.last_activation.is_some_and(|last| last > activated);
        others.then_some(activated)
    }

    /// The place where nothing is on offer of what was activated up to this activation.
    fn knowing(self, activated: Option<Timestamp>) -> Self {
        Self {
            activated: self.activated.and(self.activated.max(activated)),
            ..self
        }
    }

    /// The place, where a subject has had so many instructions; the beginning, if the database has lost some of them, as
    /// after it was restored: their positions are given anew.
    fn known_to(self, instructions: i64) -> Self {
        let until = self.within.map_or(self.seen, |window| window.until);
        if until > instructions {
            Self::default()
        } else {
            self
        }
    }

    /// What to ask for, of a subject whose newest position on offer is this.
    fn range(self, newest: i64, since: Option<Timestamp>) -> Range {
        let (until, below) = match self.within {
            Some(window) => (window.until, Some(window.last)),
            None => (newest.max(self.seen), None),
        };
        Range {
            after: self.seen,
            since,
            until,
            below,
        }
    }

    /// Where to go on after a page of a range. `last` is what the page ended with if there is more in the range;
    /// `held` the first position in it that is not available yet, which no cursor may be past; `activated` the last
    /// activation of a survey that is known.
    fn after(
        self,
        range: Range,
        last: Option<(i64, i64)>,
        held: Option<i64>,
        activated: Option<Timestamp>,
    ) -> Self {
        let activated = self.within.map_or(activated, |window| window.activated);
        let before = self.within.and_then(|window| window.held);
        let held = before.into_iter().chain(held).min();
        let Some(last) = last else {
            let seen = held.map_or(range.until, |held| range.until.min(held - 1));
            return Self {
                seen: seen.max(self.seen),
                activated,
                within: None,
            };
        };
        Self {
            seen: self.seen,
            activated: self.activated,
            within: Some(Window {
                until: range.until,
                last,
                activated,
                held,
            }),
        }
    }
}

/// How often a poll that waits asks whether an app with buttons has changed.
const APP_AGAIN: Duration = Duration::from_secs(5);

/// Gets a page, and the app as it was when the page was read; waits for one if there is nothing, until something is issued or
/// that time is over. Whatever ends the key or the token ends the wait.
pub async fn poll(
    services: &Shared,
    subject: &SdkSubject,
    notes: &Notes,
    place: PagePosition,
    limit: u32,
    wait: Duration,
) -> Result<(Arc<App>, Page), ApiError> {
    let poll = services.polls.open(subject.token.subject_id);
    let deadline = Instant::now() + wait;
    let mut seat = None;
    loop {
        let mut issued = std::pin::pin!(poll.issued());
        issued.as_mut().enable();
        let Some(app) = services.apps.get(subject.app.id).await? else {
            return Err(ApiError::new(Code::InvalidCredentials));
        };
        let mut tx = services.db.read().await?;
        let now = services.clock.now();
        if !subject.has_live_key(&app, now) {
            return Err(ApiError::new(Code::InvalidCredentials));
        }
        if subject.token.expires_at <= now {
            return Err(ApiError::new(Code::SubjectTokenExpired));
        }
        let standing = current::read(&mut tx, &subject.token).await?;
        let subject_id = standing.subject_id;
        let state = store::state(&mut tx, subject.app.id, subject_id).await?;
        let Some((state, version)) = state.filter(|_| standing.may_message(&app)) else {
            let nothing = Page {
                place,
                ..Page::default()
            };
            return Ok((app, nothing));
        };
        let place = place.known_to(state.instructions);
        let who = (subject_id, standing.alias);
        let asked = (subject.token.subject_id, place, limit);
        let (page, now) = with_buttons(services, &app, tx, who, asked).await?;
        poll.saw(state);
        // What the person does may make a button due.
        poll.watches((!app.feedback.is_empty()).then_some(version));
        let over = Instant::now() >= deadline || services.stop.is_cancelled();
        if !page.instructions.is_empty() || over {
            return Ok((app, page));
        }
        if seat.is_none() {
            seat = Some(services.admission.seat(subject.app.id)?);
            notes.leave();
        }
        let ends_at = subject.ends_at();
        let next = page.next_at.into_iter().chain(button_at(&app, now));
        let at = next.fold(ends_at, Timestamp::min);
        let until = deadline.min(Instant::now() + at.since(now));
        tokio::select! {
            () = issued => {}
            () = services.stop.cancelled() => {}
            () = tokio::time::sleep_until(until) => {}
            () = buttons_changed(services, &app) => {}
        }
    }
}

/// When the schedule of one of the app's buttons may open next.
fn button_at(app: &App, now: Timestamp) -> Option<Timestamp> {
    let buttons = app.feedback.iter();
    let buttons = buttons.filter_map(|index| app.campaigns.get(*index));
    let openings = buttons.filter_map(|running| running.rules.schedule.may_open_at(now));
    openings.min()
}

/// Resolves once this process knows another version of an app, where one of the two has buttons. The database is
/// asked only of an app that memory does not have.
async fn buttons_changed(services: &Shared, app: &App) {
    loop {
        tokio::time::sleep(APP_AGAIN).await;
        let Ok(Some(newest)) = services.apps.get(app.id).await else {
            return;
        };
        let has_buttons = !app.feedback.is_empty() || !newest.feedback.is_empty();
        if newest.version != app.version && has_buttons {
            return;
        }
    }
}

/// Reads a page with the person's buttons as they are now, and says as of when. `who` is the subject and one of its aliases.
async fn with_buttons(
    services: &Shared,
    app: &App,
    mut tx: Tx,
    who: (Uuid, i64),
    (subject_id, place, limit): (Uuid, PagePosition, u32),
) -> nudge_db::Result<(Page, Timestamp)> {
    if !app.feedback.is_empty() {
        drop(tx);
        feedback::refresh(services, app, who).await?;
        tx = services.db.read().await?;
    }
    let now = services.clock.now();
    let found = page(&mut tx, app, subject_id, place, limit, now).await?;
    let is_button = |it: &Instruction| it.kind == Kind::Feedback;
    if !app.feedback.is_empty() || !found.instructions.iter().any(is_button) {
        return Ok((found, now));
    }
    drop(tx);
    // The last survey that a button opened is none any longer, or this process has not heard of another one yet.
    feedback::refresh(services, app, who).await?;
    let mut tx = services.db.read().await?;
    let now = services.clock.now();
    let found = page(&mut tx, app, subject_id, place, limit, now).await?;
    Ok((found, now))
}

/// Reads a page, of the next window where the one that was being read has nothing left.
async fn page(
    tx: &mut Tx,
    app: &App,
    subject_id: Uuid,
    place: PagePosition,
    limit: u32,
    now: Timestamp,
) -> nudge_db::Result<Page> {
    let app_id = app.id;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut place = place;
    loop {
        let reading = place.within.is_some();
        let since = place.since(app);
        let newest = if reading {
            None
        } else {
            store::newest_on_offer(tx, app_id, subject_id, place.seen, since, now).await?
        };
        if !reading && newest.is_none() {
            let held = store::first_held(tx, app_id, subject_id, place.seen, now).await?;
            return Ok(Page {
                instructions: Vec::new(),
                place: place.knowing(app.last_activation),
                next_at: held.map(|held| held.available_at),
            });
        }
        let range = place.range(newest.unwrap_or_default(), since);
        let one_more = i64::from(limit) + 1;
        let mut found = store::on_offer(tx, app_id, subject_id, range, one_more, now).await?;
        // After the others, each of which may see more of the database than the one before: whatever has a position before
        // the newest is there by now. An instruction that a merge brings is on offer already, and the one before it,
        // which came after `now`, is not.
        let held = store::first_held(tx, app_id, subject_id, place.seen, now).await?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found
            .last()
            .filter(|_| more)
            .map(|last| (i64::from(last.priority), last.position));
        place = place.after(
            range,
            last,
            held.map(|held| held.position),
            app.last_activation,
        );
        if !found.is_empty() || !reading {
            return Ok(Page {
                instructions: found,
                place,
                next_at: held.map(|held| held.available_at),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `store::on_offer` answers, of positions from 1 on with these priorities.
    fn on_offer(priorities: &[i64], range: Range, limit: usize) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = (1..)
            .zip(priorities)
            .map(|(position, priority)| (*priority, position))
            .filter(|(priority, position)| {
                let below = range.below.is_none_or(|(least, last)| {
                    *priority < least || (*priority == least && *position > last)
                });
                below && (range.after + 1..=range.until).contains(position)
            })
            .collect();
        found.sort_by_key(|(priority, position)| (-priority, *position));
        found.truncate(limit);
        found
    }

    proptest! {
        /// Whatever is issued between pages: each is seen once, and within a window by priority.
        #[test]
        fn pages_show_everything_once(
            priorities in prop::collection::vec(-3_i64..3, 0..60),
            issued in prop::collection::vec(0_usize..8, 1..60),
            limit in 1_usize..6,
        ) {
            let mut place = PagePosition::default();
            let mut there = 0;
            let mut seen: Vec<(i64, i64)> = Vec::new();
            let mut window = Vec::new();
            for more in issued.into_iter().chain(std::iter::repeat_n(0, 80)) {
                there = (there + more).min(priorities.len());
                let newest = i64::try_from(there).unwrap();
                let range = place.range(newest, None);
                if range.below.is_none() {
                    window.clear();
                }
                let mut page = on_offer(&priorities[..there], range, limit + 1);
                let last = (page.len() > limit).then(|| page[limit - 1]);
                page.truncate(limit);
                window.extend(page.iter().map(|found| (-found.0, found.1)));
                prop_assert!(window.is_sorted());
                seen.extend(page);
                let before = place;
                place = place.after(range, last, None, None);
                prop_assert!(place.seen >= before.seen);
            }
            let mut positions: Vec<i64> = seen.iter().map(|found| found.1).collect();
            positions.sort_unstable();
            let there = i64::try_from(there).unwrap();
            prop_assert_eq!(positions, (1..=there).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_cursor_is_past_what_is_not_available_yet() {
        let range = PagePosition::default().range(9, None);
        assert_eq!(
            PagePosition::default().after(range, None, None, None).seen,
            9
        );
        assert_eq!(
            PagePosition::default()
                .after(range, None, Some(4), None)
                .seen,
            3
        );
        let seen = PagePosition {
            seen: 5,
            ..PagePosition::default()
        };
        assert_eq!(seen.after(seen.range(9, None), None, Some(6), None).seen, 5);
        assert_eq!(seen.after(seen.range(2, None), None, None, None).seen, 5);
    }

    #[test]
    fn no_cursor_is_past_what_became_available_amid_a_window() {
        let range = PagePosition::default().range(9, None);
        let first = PagePosition::default().after(range, Some((0, 8)), Some(4), None);
        let last = first.after(first.range(9, None), None, None, None);
        assert_eq!((last.seen, last.within), (3, None));
    }

    #[test]
    fn a_window_knows_what_was_known_when_it_was_first_asked_for() {
        let (before, later) = (Some(Timestamp(7)), Some(Timestamp(8)));
        let range = PagePosition::default().range(9, None);
        let first = PagePosition::default().after(range, Some((0, 4)), None, before);
        assert_eq!(first.activated, None);
        let next = first.after(first.range(9, None), None, None, later);
        assert_eq!((next.seen, next.activated), (9, before));
        // Nothing runs, or something else does, and nothing of it is on offer.
        assert_eq!(next.knowing(None).activated, before);
        assert_eq!(next.knowing(later).activated, later);
        assert_eq!(PagePosition::default().knowing(later).activated, None);
    }
}
