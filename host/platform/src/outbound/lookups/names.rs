//! Names of which something is remembered for a while, a bounded number of them. Pure.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Some names. The oldest goes where there is no room.
#[derive(Debug)]
pub(super) struct Names {
    most: usize,
    lifetime: Duration,
    since: HashMap<Arc<str>, Instant>,
    /// In the order in which they came; those that came again are here twice.
    order: VecDeque<(Instant, Arc<str>)>,
}

impl Names {
    pub(super) fn new(most: usize, lifetime: Duration) -> Self {
        Self {
            most,
            lifetime,
            since: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Whether a name is remembered.
    pub(super) fn has(&self, name: &str, now: Instant) -> bool {
        let since = self.since.get(name);
        since.is_some_and(|since| now.duration_since(*since) < self.lifetime)
    }

    /// Remembers a name from now on.
    pub(super) fn add(&mut self, name: &Arc<str>, now: Instant) {
        self.since.insert(Arc::clone(name), now);
        self.order.push_back((now, Arc::clone(name)));
        while let Some((since, _)) = self.order.front()
            && (self.order.len() > self.most || now.duration_since(*since) >= self.lifetime)
            && let Some((since, name)) = self.order.pop_front()
        {
            // Unless it came again.
            if self.since.get(&name) == Some(&since) {
                self.since.remove(&name);
            }
        }
    }

    /// Forgets a name.
    pub(super) fn remove(&mut self, name: &str) {
        self.since.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_with_time_and_for_want_of_room() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let name = |number: u64| -> Arc<str> { format!("n{number}.example").into() };
        let mut names = Names::new(3, Duration::from_secs(10));
        for number in 0..5 {
            names.add(&name(number), at(number));
        }
        let known: Vec<bool> = (0..5).map(|it| names.has(&name(it), at(5))).collect();
        assert_eq!(known, [false, false, true, true, true]);
        assert!(!names.has(&name(2), at(12)) && names.has(&name(3), at(12)));
        names.add(&name(3), at(12));
        names.remove(&name(4));
        assert!(names.has(&name(3), at(21)) && !names.has(&name(4), at(12)));
        for second in 12..200 {
            names.add(&name(7), at(second));
            assert!(names.order.len() <= 3 && names.since.len() <= 3);
        }
        assert!(names.has(&name(7), at(200)));
    }
}
