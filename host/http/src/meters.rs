//! What is counted of requests: how many, by route, method and status, and how long they took.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use metrics::{Counter, Histogram};
use parking_lot::RwLock;

/// The counts of a listener. Each is looked up by its labels once and kept. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Meters(Arc<RwLock<HashMap<Box<str>, Vec<Meter>>>>);

/// What is counted of the requests of a route with one method and one status.
#[derive(Debug)]
struct Meter {
    method: &'static str,
    status: u16,
    requests: Counter,
    seconds: Histogram,
}

impl Meters {
    /// Counts a request. `route` is the pattern of the path, of which there are few.
    pub fn count(&self, route: &str, method: &Method, status: u16, elapsed: Duration) {
        let method = label(method);
        let seconds = elapsed.as_secs_f64();
        let is_it = |meter: &&Meter| meter.method == method && meter.status == status;
        let known = self.0.read();
        if let Some(meter) = known.get(route).and_then(|list| list.iter().find(is_it)) {
            meter.count(seconds);
            return;
        }
        drop(known);
        let mut known = self.0.write();
        let list = known.entry(route.into()).or_default();
        if !list.iter().any(|meter| is_it(&meter)) {
            list.push(Meter::new(route, method, status));
        }
        if let Some(meter) = list.iter().find(is_it) {
            meter.count(seconds);
        }
    }
}

impl Meter {
    fn new(route: &str, method: &'static str, status: u16) -> Self {
        let labels = [
            ("method", method.to_owned()),
            ("route", route.to_owned()),
            ("status", status.to_string()),
        ];
        Self {
            method,
            status,
            requests: metrics::counter!("nudge_http_requests_total", &labels),
            seconds: metrics::histogram!("nudge_http_request_seconds", &labels[..2]),
        }
    }

    fn count(&self, seconds: f64) {
        self.requests.increment(1);
        self.seconds.record(seconds);
    }
}

/// The method as a label: a client can make any word up, and must not make as many counts.
fn label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let known = KNOWN.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_kind_share_a_meter_and_made_up_methods_do_too() {
        let meters = Meters::default();
        let second = Duration::from_secs(1);
        let made_up = |word: &str| Method::from_bytes(word.as_bytes()).unwrap();
        for _ in 0..2 {
            meters.count("/a", &Method::GET, 200, second);
            meters.count("/a", &Method::GET, 404, second);
            meters.count("/a", &Method::POST, 200, second);
            meters.count("/b", &made_up("BREW"), 405, second);
            meters.count("/b", &made_up("WHEN"), 405, second);
        }
        let known = meters.0.read();
        let kinds = |route: &str| -> Vec<(&str, u16)> {
            let list = known[route].iter();
            list.map(|meter| (meter.method, meter.status)).collect()
        };
        assert_eq!(kinds("/a"), [("GET", 200), ("GET", 404), ("POST", 200)]);
        assert_eq!(kinds("/b"), [("other", 405)]);
    }
}
