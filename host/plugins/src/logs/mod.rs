//! What plugins log: kept by version, within bounds, until it is old or a person's deletion takes it.

pub mod store;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use strum::IntoStaticStr;

use nudge_db::Timestamp;
use nudge_wasm::{Level, LogLine};
use parking_lot::Mutex;
use uuid::Uuid;

use super::statistics::minute;
use crate::rollout_period::RolloutPeriod;

/// Lines that are kept of a plugin in an app within a minute, for each process.
pub const MOST_LINES: usize = 1000;
/// Subjects that the lines of a minute may be about: each is a row. A batch has up to a thousand.
const MOST_SUBJECTS: usize = 10_000;
/// Lines of all plugins that wait for the database at the most.
const MOST_WAITING: usize = 20_000;
/// How long lines are kept.
pub const KEPT: Duration = Duration::from_hours(3 * 24);

/// What a line was logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A call that decided, or failed to.
    Decision,
    /// A call of a shadow candidate.
    Shadow,
    /// A call of `check-config`.
    Check,
    /// The server's own line about others that were not kept.
    Dropped,
}

impl Kind {
    /// The kind's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A level as a number that grows with it.
pub fn rank(level: Level) -> i64 {
    match level {
        Level::Debug => 0,
        Level::Info => 1,
        Level::Warn => 2,
        Level::Error => 3,
    }
}

/// Ids of campaigns and events that are kept with a line.
const MOST_IDS: usize = 20;

/// What a call was about.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    /// The subjects whose events it was about.
    pub subjects: Vec<Uuid>,
    /// The campaigns that it decided; none of definitions.
    pub campaigns: Vec<Uuid>,
    /// The events.
    pub events: Vec<Uuid>,
}

/// Some ids as JSON; none: there are none.
fn some_ids(ids: &[Uuid]) -> Option<Arc<str>> {
    let some = ids.get(..MOST_IDS.min(ids.len())).unwrap_or_default();
    let text = serde_json::to_string(some).ok();
    text.filter(|_| !some.is_empty()).map(Arc::from)
}

/// A line that waits for the database.
#[derive(Clone, Debug)]
struct Line {
    id: Uuid,
    app_id: Uuid,
    period: Arc<RolloutPeriod>,
    at: Timestamp,
    level: Level,
    kind: Kind,
    message: String,
    call_id: Uuid,
    campaign_ids: Option<Arc<str>>,
    event_ids: Option<Arc<str>>,
}

/// A subject whose events a call with lines was about.
#[derive(Clone, Debug)]
struct About {
    app_id: Uuid,
    subject_id: Uuid,
    call_id: Uuid,
    at: Timestamp,
}

/// What a plugin logged in an app within a minute.
#[derive(Debug)]
struct Window {
    minute: Timestamp,
    lines: usize,
    subjects: usize,
    dropped: u64,
    period: Arc<RolloutPeriod>,
}

/// A plugin in an app.
type LogWindowKey = (Uuid, Uuid, String);

/// Lines on their way to the database.
#[derive(Debug, Default)]
pub(super) struct Taken {
    lines: VecDeque<Line>,
    about: Vec<About>,
}

#[derive(Debug, Default)]
struct WaitingLines {
    taken: Taken,
    windows: HashMap<LogWindowKey, Window>,
}

/// Lines that wait for the database.
#[derive(Debug, Default)]
pub(super) struct Logs {
    waiting: Mutex<WaitingLines>,
}

impl Logs {
    /// Takes the lines of a call about some topics.
    pub(super) fn write(
        &self,
        app_id: Uuid,
        period: &Arc<RolloutPeriod>,
        kind: Kind,
        lines: &[LogLine],
        topics: Topics,
        now: Timestamp,
    ) {
        let subjects = topics.subjects;
        let (campaign_ids, event_ids) = (some_ids(&topics.campaigns), some_ids(&topics.events));
        let mut waiting = self.waiting.lock();
        let WaitingLines { taken, windows } = &mut *waiting;
        let key = (app_id, period.owner, period.name.clone());
        let window = windows
            .entry(key)
            .or_insert_with(|| Window::new(period, now));
        if window.minute != minute(now) {
            taken.lines.extend(window.last_line(app_id, now));
            *window = Window::new(period, now);
        }
        let room = MOST_LINES
            .saturating_sub(window.lines)
            .min(MOST_WAITING.saturating_sub(taken.lines.len()));
        let room = if window.subjects + subjects.len() > MOST_SUBJECTS {
            0
        } else {
            room
        };
        let kept = lines.len().min(room);
        window.dropped += (lines.len() - kept) as u64;
        if kept == 0 {
            return;
        }
        window.lines += kept;
        window.subjects += subjects.len();
        let call_id = nudge_platform::id::new(now);
        taken.lines.extend(lines.iter().take(kept).map(|line| Line {
            id: nudge_platform::id::new(now),
            app_id,
            period: Arc::clone(period),
            at: now,
            level: line.level,
            kind,
            // PostgreSQL takes no NUL in a text.
            message: line.message.replace('\0', "\u{fffd}"),
            call_id,
            campaign_ids: campaign_ids.clone(),
            event_ids: event_ids.clone(),
        }));
        taken
            .about
            .extend(subjects.into_iter().map(|subject_id| About {
                app_id,
                subject_id,
                call_id,
                at: now,
            }));
    }

    /// Whether lines wait.
    pub(super) fn any(&self) -> bool {
        let waiting = self.waiting.lock();
        !waiting.taken.is_empty()
    }

    /// Takes what was logged, and says what was not kept of minutes that are over.
    pub(super) fn take(&self, now: Timestamp) -> Taken {
        let mut waiting = self.waiting.lock();
        let WaitingLines { taken, windows } = &mut *waiting;
        windows.retain(|(app_id, _, _), window| {
            let over = window.minute != minute(now);
            if over {
                taken.lines.extend(window.last_line(*app_id, now));
            }
            !over
        });
        std::mem::take(taken)
    }

    /// Takes back what could not be written. Of what was logged meanwhile stays what there is room for.
    pub(super) fn give_back(&self, mut earlier: Taken) {
        let mut waiting = self.waiting.lock();
        let WaitingLines { taken, windows } = &mut *waiting;
        let later = std::mem::take(taken);
        earlier.lines.extend(later.lines);
        earlier.about.extend(later.about);
        let kept = MOST_WAITING.min(earlier.lines.len());
        let lost = earlier.lines.split_off(kept);
        for line in &lost {
            let key = (line.app_id, line.period.owner, line.period.name.clone());
            if let Some(window) = windows.get_mut(&key) {
                window.dropped += 1;
            }
        }
        if !lost.is_empty() {
            let calls: HashSet<Uuid> = earlier.lines.iter().map(|line| line.call_id).collect();
            earlier.about.retain(|about| calls.contains(&about.call_id));
        }
        *taken = earlier;
    }
}

impl Window {
    fn new(period: &Arc<RolloutPeriod>, now: Timestamp) -> Self {
        Self {
            minute: minute(now),
            lines: 0,
            subjects: 0,
            dropped: 0,
            period: Arc::clone(period),
        }
    }

    /// Says how many lines were not kept, if any.
    fn last_line(&self, app_id: Uuid, now: Timestamp) -> Option<Line> {
        (self.dropped > 0).then(|| Line {
            id: nudge_platform::id::new(now),
            app_id,
            period: Arc::clone(&self.period),
            at: now,
            level: Level::Warn,
            kind: Kind::Dropped,
            message: format!(
                "{} lines of one minute were not kept: a plugin logs at most {MOST_LINES} lines a minute in an app",
                self.dropped
            ),
            call_id: nudge_platform::id::new(now),
            campaign_ids: None,
            event_ids: None,
        })
    }
}

impl Taken {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: Uuid = Uuid::from_u128(1);
    const NOW: Timestamp = Timestamp(60_000_000);
    const LATER: Timestamp = Timestamp(120_000_000);

    fn period() -> Arc<RolloutPeriod> {
        Arc::new(RolloutPeriod {
            owner: APP,
            name: "cart".to_owned(),
            version: "1.0.0".to_owned(),
            since: Timestamp(1),
        })
    }

    fn about(subjects: Vec<Uuid>) -> Topics {
        Topics {
            subjects,
            ..Topics::default()
        }
    }

    fn lines(count: usize) -> Vec<LogLine> {
        let line = |number: usize| LogLine {
            level: Level::Info,
            message: format!("line {number}"),
        };
        (0..count).map(line).collect()
    }

    #[test]
    fn what_is_past_the_limit_is_counted_in_a_line() {
        let (logs, period) = (Logs::default(), period());
        let write = |app_id, count, now| {
            logs.write(
                app_id,
                &period,
                Kind::Decision,
                &lines(count),
                about(vec![APP]),
                now,
            );
        };
        write(APP, MOST_LINES - 1, NOW);
        write(APP, 3, NOW);
        write(APP, 1, NOW);
        write(Uuid::from_u128(2), 1, NOW);
        let taken = logs.take(NOW);
        assert_eq!(taken.lines.len(), MOST_LINES + 1, "the other app's too");
        assert_eq!(taken.about.len(), 3);

        let taken = logs.take(LATER);
        let [line] = &Vec::from(taken.lines)[..] else {
            panic!("one line");
        };
        assert_eq!(line.kind, Kind::Dropped);
        assert!(line.message.starts_with("3 lines"), "{}", line.message);
        assert!(logs.take(LATER).is_empty());
        write(APP, 1, LATER);
        assert_eq!(logs.take(LATER).lines.len(), 1);
    }

    #[test]
    fn lines_about_too_many_subjects_are_not_kept() {
        let (logs, period) = (Logs::default(), period());
        let subjects = |count: usize| (0..count).map(|_| APP).collect::<Vec<Uuid>>();
        for count in [MOST_SUBJECTS, 1] {
            logs.write(
                APP,
                &period,
                Kind::Decision,
                &lines(1),
                about(subjects(count)),
                NOW,
            );
        }
        assert_eq!(logs.take(NOW).lines.len(), 1);
        assert_eq!(logs.take(LATER).lines.len(), 1, "what was not kept");
    }

    #[test]
    fn lines_come_back_in_order_after_a_failed_write() {
        let (logs, period) = (Logs::default(), period());
        let write = |message: &str| {
            let line = LogLine {
                level: Level::Error,
                message: message.to_owned(),
            };
            logs.write(APP, &period, Kind::Shadow, &[line], about(vec![APP]), NOW);
        };
        write("one");
        let taken = logs.take(NOW);
        write("t\0wo");
        logs.give_back(taken);
        let taken = logs.take(NOW);
        let messages: Vec<&str> = taken.lines.iter().map(|line| &*line.message).collect();
        assert_eq!(messages, ["one", "t\u{fffd}wo"]);
        assert_eq!(taken.about.len(), 2);
    }

    #[test]
    fn what_comes_back_leaves_no_more_waiting_than_may_wait() {
        let (logs, period) = (Logs::default(), period());
        let minute = |number: usize| Timestamp(NOW.0 + 60_000_000 * i64::try_from(number).unwrap());
        let write = |number: usize| {
            let (lines, topics) = (lines(MOST_LINES), about(vec![APP]));
            logs.write(APP, &period, Kind::Decision, &lines, topics, minute(number));
        };
        let minutes = MOST_WAITING / MOST_LINES;
        for number in 0..minutes {
            write(number);
        }
        let taken = logs.take(minute(minutes - 1));
        assert_eq!(taken.lines.len(), MOST_WAITING);
        write(minutes);
        logs.give_back(taken);
        let taken = logs.take(minute(minutes));
        assert_eq!(taken.lines.len(), MOST_WAITING);
        assert_eq!(taken.about.len(), minutes);
        let dropped = logs.take(minute(minutes + 1)).lines;
        assert_eq!(dropped.len(), 1);
        assert!(dropped[0].message.starts_with("1000 lines"));
    }
}
