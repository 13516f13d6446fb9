//! Traces (contract 17): a span for each request, sent to the collector that `telemetry` names.
//!
//! By OTLP over HTTP in its JSON encoding (OpenTelemetry Protocol 1, "OTLP/HTTP"). A request with a `traceparent`
//! (W3C Trace Context, level 1) continues its caller's trace. Spans wait in memory, within a bound, and whatever becomes of
//! them holds up no request: while the collector does not answer, they are dropped and counted.

use std::time::Duration;

use anyhow::Context as _;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use nudge_db::Timestamp;
use nudge_platform::outbound::Lookups;
use nudge_platform::{config, secrets};
use percent_encoding::percent_decode_str;
use reqwest::{Client, Url, redirect};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Spans that wait to be sent at the most.
const MOST_WAITING: usize = 4096;
/// Spans of one message at the most.
const MOST_TOGETHER: usize = 512;
/// How long spans are gathered.
const GATHERING: Duration = Duration::from_secs(1);
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A span of a request that was answered.
const KIND_SERVER: u8 = 2;
/// The statuses of a span: one that failed, and any other.
const STATUS_ERROR: u8 = 2;
const STATUS_UNSET: u8 = 0;

/// Where a request stands in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    trace: u128,
    span: u64,
    parent: Option<u64>,
}

/// A request that was answered.
#[derive(Clone, Debug)]
struct Served {
    place: Place,
    began: Timestamp,
    took: Duration,
    method: String,
    route: String,
    status: u16,
    request_id: String,
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Begun {
    traces: Traces,
    place: Place,
    began: Timestamp,
}

/// The spans on their way to the collector. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Traces(mpsc::Sender<Served>);

/// Sends spans to the collector.
#[derive(Debug)]
pub struct Exporter {
    spans: mpsc::Receiver<Served>,
    client: Client,
    url: Url,
}

/// The two ends of the way to a collector; none where no endpoint is configured.
pub fn open(
    config: &config::Telemetry,
    lookups: &Lookups,
) -> anyhow::Result<Option<(Traces, Exporter)>> {
    let (base, whole) = (&config.otlp_endpoint, &config.otlp_traces_endpoint);
    let url = if !whole.is_empty() {
        Url::parse(whole).with_context(|| format!("telemetry.otlpTracesEndpoint: {whole}"))?
    } else if !base.is_empty() {
        let url = format!("{}/v1/traces", base.trim_end_matches('/'));
        Url::parse(&url).with_context(|| format!("telemetry.otlpEndpoint: {base}"))?
    } else {
        return Ok(None);
    };
    let client = Client::builder()
        .dns_resolver(lookups.for_services())
        .timeout(TIMEOUT)
        // Whoever it leads to is not whom the headers are for.
        .redirect(redirect::Policy::none())
        .default_headers(headers(&config.otlp_headers.0)?)
        .build()
        .context("no TLS for the collector of traces")?;
    let (sender, spans) = mpsc::channel(MOST_WAITING);
    let exporter = Exporter { spans, client, url };
    Ok(Some((Traces(sender), exporter)))
}

/// Reads headers in the form of `OTEL_EXPORTER_OTLP_HEADERS` (OpenTelemetry, "OTLP Exporter Configuration"): as W3C
/// Baggage, percent-encoded, without metadata. Complaints name no value: it may be a credential.
fn headers(text: &str) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let entries = text.split(',').map(str::trim);
    for (number, entry) in (1..).zip(entries).filter(|(_, entry)| !entry.is_empty()) {
        let (name, value) = entry.split_once('=').with_context(|| {
            format!("telemetry.otlpHeaders: entry {number} is not of the form name=value")
        })?;
        let name = HeaderName::try_from(name.trim()).with_context(|| {
            format!("telemetry.otlpHeaders: entry {number} has no name that a header may have")
        })?;
        let value: Vec<u8> = percent_decode_str(value.trim()).collect();
        let mut value = HeaderValue::from_bytes(&value)
            .with_context(|| format!("telemetry.otlpHeaders: {name} can't have that value"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

impl Traces {
    /// Begins the span of a request that came `now`; none where its caller says that the trace is not recorded.
    pub fn begin(self, headers: &HeaderMap, now: Timestamp) -> Option<Begun> {
        Some(Begun {
            place: Place::of(headers)?,
            traces: self,
            began: now,
        })
    }
}

impl Begun {
    /// Ends the span: `route` is what the router calls the path, `request_id` as in `X-Request-Id` and the log. One span
    /// too many is dropped.
    pub fn end(self, took: Duration, method: &Method, route: &str, status: u16, request_id: &str) {
        let served = Served {
            place: self.place,
            began: self.began,
            took,
            method: method.to_string(),
            route: route.to_owned(),
            status,
            request_id: request_id.to_owned(),
        };
        if self.traces.0.try_send(served).is_err() {
            metrics::counter!("nudge_spans_dropped_total").increment(1);
        }
    }
}

impl Place {
    /// The place of a request with these headers; none where its caller says that the trace is not recorded.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let caller = headers.get("traceparent");
        let caller = caller
            .and_then(|value| value.to_str().ok())
            .and_then(continued);
        let span = u64::from_be_bytes(secrets::random());
        match caller {
            Some((_, _, false)) => None,
            Some((trace, parent, true)) => Some(Self {
                trace,
                span,
                parent: Some(parent),
            }),
            None => Some(Self {
                trace: u128::from_be_bytes(secrets::random()),
                span,
                parent: None,
            }),
        }
    }
}

/// The trace, the caller's span and whether they are recorded (W3C Trace Context, section 3.2). Later versions may have
/// more parts.
fn continued(text: &str) -> Option<(u128, u64, bool)> {
    let mut parts = text.split('-');
    let mut part = |length: usize| {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let part = parts.next()?;
        (part.len() == length && part.bytes().all(digit)).then_some(part)
    };
    let (version, trace, parent, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    if version == "ff" || version == "00" && parts.next().is_some() {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let parent = u64::from_str_radix(parent, 16).ok()?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (trace != 0 && parent != 0).then_some((trace, parent, flags & 1 == 1))
}

impl Served {
    /// The span in OTLP's JSON encoding: ids in hexadecimal, 64-bit numbers as texts.
    fn span(&self) -> Value {
        let Place {
            trace,
            span,
            parent,
        } = self.place;
        let began = i128::from(self.began.0) * 1_000;
        let ended = began + i128::try_from(self.took.as_nanos()).unwrap_or(i128::MAX / 2);
        let status = self.status.to_string();
        let code = if self.status >= 500 {
            STATUS_ERROR
        } else {
            STATUS_UNSET
        };
        json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{span:016x}"),
            "parentSpanId": parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
            "name": format!("{} {}", self.method, self.route),
            "kind": KIND_SERVER,
            "startTimeUnixNano": began.to_string(),
            "endTimeUnixNano": ended.to_string(),
            "attributes": [
                text("http.request.method", &self.method),
                text("http.route", &self.route),
                {"key": "http.response.status_code", "value": {"intValue": status}},
                text("nudge.request.id", &self.request_id),
            ],
            "status": {"code": code},
        })
    }
}

/// An attribute that is a text.
fn text(key: &str, text: &str) -> Value {
    json!({"key": key, "value": {"stringValue": text}})
}

/// A message with spans.
fn message(spans: &[Served]) -> Value {
    let spans: Vec<Value> = spans.iter().map(Served::span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "nudge"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{"scope": {"name": "nudge"}, "spans": spans}],
    }]})
}

impl Exporter {
    /// Sends spans until the server halts, and then those that are left.
    pub async fn run(mut self, halt: CancellationToken) {
        let mut spans = Vec::with_capacity(MOST_TOGETHER);
        loop {
            let halted = tokio::select! {
                biased;
                () = halt.cancelled() => true,
                received = self.spans.recv_many(&mut spans, MOST_TOGETHER) => received == 0,
            };
            if !halted {
                // Others come soon.
                let _ = tokio::time::timeout(GATHERING, halt.cancelled()).await;
            }
            self.fill(&mut spans);
            if halted {
                return self.finish(spans).await;
            }
            self.send(&spans).await;
            spans.clear();
        }
    }

    /// Sends what is left, one message after the other. A collector that fails would hold up the end with each of them:
    /// what waits then is dropped and counted.
    async fn finish(mut self, mut spans: Vec<Served>) {
        while !spans.is_empty() && self.send(&spans).await {
            spans.clear();
            self.fill(&mut spans);
        }
        while self.spans.try_recv().is_ok() {
            metrics::counter!("nudge_spans_dropped_total").increment(1);
        }
    }

    /// Takes what waits, as far as it goes into one message.
    fn fill(&mut self, spans: &mut Vec<Served>) {
        while spans.len() < MOST_TOGETHER
            && let Ok(span) = self.spans.try_recv()
        {
            spans.push(span);
        }
    }

    /// Sends a message; answers whether it was taken.
    async fn send(&self, spans: &[Served]) -> bool {
        let request = self.client.post(self.url.clone()).json(&message(spans));
        let problem = match request.send().await {
            Ok(answer) if answer.status().is_success() => return true,
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.without_url().to_string(),
        };
        metrics::counter!("nudge_spans_dropped_total").increment(spans.len() as u64);
        tracing::warn!(
            error = problem,
            spans = spans.len(),
            "the collector took no spans"
        );
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::StatusCode;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_caller_says_which_trace_it_is() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let (id, parent) = (
            0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            0x00f0_67aa_0ba9_02b7,
        );
        for (text, expected) in [
            (
                format!("00-{trace}-00f067aa0ba902b7-01"),
                Some((id, parent, true)),
            ),
            (
                format!("00-{trace}-00f067aa0ba902b7-00"),
                Some((id, parent, false)),
            ),
            (
                format!("cc-{trace}-00f067aa0ba902b7-01-more"),
                Some((id, parent, true)),
            ),
            (format!("00-{trace}-00f067aa0ba902b7-01-more"), None),
            (format!("ff-{trace}-00f067aa0ba902b7-01"), None),
            (
                format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
                None,
            ),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
            (format!("00-{trace}-{}-01", "0".repeat(16)), None),
            (format!("00-{trace}-00f067aa0ba902b7"), None),
            ("é".repeat(55), None),
            (String::new(), None),
        ] {
            assert_eq!(continued(&text), expected, "{text}");
        }
    }

    fn served(number: u64) -> Served {
        Served {
            place: Place {
                trace: 1,
                span: number,
                parent: None,
            },
            began: Timestamp(0),
            took: Duration::ZERO,
            method: "GET".to_owned(),
            route: "/".to_owned(),
            status: 200,
            request_id: String::new(),
        }
    }

    /// How many spans each message had that a collector was sent, when so many waited as the server halted, and what
    /// credential came with them. The collector fails from a message on.
    async fn sent_at_the_end(waiting: usize, fails_from: usize) -> Vec<(usize, String)> {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&messages);
        let take = move |headers: HeaderMap, axum::Json(message): axum::Json<Value>| {
            let spans = &message["resourceSpans"][0]["scopeSpans"][0]["spans"];
            let credential = headers["api-key"].to_str().unwrap().to_owned();
            let mut seen = seen.lock().unwrap();
            seen.push((spans.as_array().unwrap().len(), credential));
            let fails = seen.len() >= fails_from;
            async move { StatusCode::from_u16(if fails { 503 } else { 200 }).unwrap() }
        };
        let collector = axum::Router::new().route("/v1/traces", axum::routing::post(take));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = config::Config::defaults().unwrap().telemetry;
        config.otlp_endpoint = format!("http://{}", listener.local_addr().unwrap());
        config.otlp_headers = config::Hidden("api-key=a%20b".to_owned());
        let (traces, exporter) = open(&config, &Lookups::system(1)).unwrap().unwrap();
        for number in 0..waiting {
            traces.0.try_send(served(number as u64)).unwrap();
        }
        let halt = CancellationToken::new();
        halt.cancel();
        tokio::select! {
            ended = axum::serve(listener, collector).into_future() => panic!("{ended:?}"),
            () = exporter.run(halt) => {}
        }
        messages.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn whatever_waits_at_the_end_is_sent() {
        let sizes = |messages: Vec<(usize, String)>| -> Vec<usize> {
            assert!(messages.iter().all(|(_, credential)| credential == "a b"));
            messages.into_iter().map(|(size, _)| size).collect()
        };
        assert_eq!(sizes(sent_at_the_end(0, 9).await), [0; 0]);
        assert_eq!(sizes(sent_at_the_end(1_300, 9).await), [512, 512, 276]);
        assert_eq!(
            sizes(sent_at_the_end(4_096, 2).await),
            [512, 512],
            "it fails"
        );
    }

    #[test]
    fn headers_are_read_as_every_exporter_reads_them() {
        let read = |text: &str| {
            let headers = headers(text).unwrap();
            let each = headers.iter().map(|(name, value)| {
                assert!(value.is_sensitive());
                format!("{name}: {}", value.to_str().unwrap())
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(read(""), [""; 0]);
        assert_eq!(
            read("Authorization=Basic%20dXNlcjpw+w==, x-tenant = 7 ,"),
            ["authorization: Basic dXNlcjpw+w==", "x-tenant: 7"]
        );
        for (text, complaint) in [
            ("s3cret", "entry 1 is not of the form"),
            ("a=1,s3cret", "entry 2 is not of the form"),
            ("a b=s3cret", "entry 1 has no name"),
            ("=s3cret", "entry 1 has no name"),
            ("a=s3cret%0A", "a can't have that value"),
        ] {
            let error = format!("{:#}", headers(text).unwrap_err());
            assert!(error.contains(complaint), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let config = config::Hidden("s3cret".to_owned());
        assert_eq!(format!("{config:?}"), "***");
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in ".{0,80}", parts in "[0-9a-f+-]{0,60}") {
            continued(&text);
            if let Some((trace, parent, _)) = continued(&parts) {
                let again = format!("00-{trace:032x}-{parent:016x}");
                prop_assert!(again[3..] == parts[3..again.len()]);
            }
        }
    }

    #[test]
    fn spans_are_written_as_otlp_has_them() {
        let served = Served {
            place: Place {
                trace: 0xab,
                span: 0xcd,
                parent: Some(0xef),
            },
            began: Timestamp(1_700_000_000_000_001),
            took: Duration::from_micros(1_500),
            method: "POST".to_owned(),
            route: "/v1/sdk/ingest".to_owned(),
            status: 503,
            request_id: "r".to_owned(),
        };
        assert_eq!(
            served.span(),
            json!({
                "traceId": "000000000000000000000000000000ab", "spanId": "00000000000000cd",
                "parentSpanId": "00000000000000ef", "name": "POST /v1/sdk/ingest", "kind": 2,
                "startTimeUnixNano": "1700000000000001000", "endTimeUnixNano": "1700000000001501000",
                "attributes": [
                    {"key": "http.request.method", "value": {"stringValue": "POST"}},
                    {"key": "http.route", "value": {"stringValue": "/v1/sdk/ingest"}},
                    {"key": "http.response.status_code", "value": {"intValue": "503"}},
                    {"key": "nudge.request.id", "value": {"stringValue": "r"}},
                ],
                "status": {"code": 2},
            })
        );
    }
}
