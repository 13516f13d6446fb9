//! Traces (contract 17): spans of requests and of the work behind them, sent to the collector that `telemetry` names.
//!
//! OpenTelemetry's own crates make, sample and send them: by the OpenTelemetry Protocol over HTTP or gRPC, as the standard variables
//! say (`OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`). A request with a
//! `traceparent` (W3C Trace Context) continues its caller's trace, and webhooks hand it on. Spans wait in memory, within a bound, and
//! hold up nothing: while the collector does not answer, they are dropped and counted.

mod export;

use std::future::Future;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Status, TraceContextExt as _, TraceId, Tracer as _, TracerProvider as _,
};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use reqwest::header::HeaderMap;

pub use opentelemetry::trace::{FutureExt, SpanKind};
pub use opentelemetry::{Context, KeyValue};

use crate::config;
use crate::outbound::Lookups;

/// How long the spans that are left have to be sent when the server stops.
const FLUSH: Duration = Duration::from_secs(10);
/// The attribute that says which service it is.
const SERVICE_NAME: &str = "service.name";

/// Where spans are made and sent from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// What a span is called, what sort it is, and what is known of it before it ends.
#[derive(Debug)]
pub struct NewSpan {
    /// Its name, of few values.
    pub name: String,
    /// Whether it serves, asks somebody else, or neither.
    pub kind: SpanKind,
    /// What is known of it.
    pub attributes: Vec<KeyValue>,
}

impl NewSpan {
    /// A span of work inside the server.
    pub fn internal(name: &'static str, attributes: Vec<KeyValue>) -> Self {
        Self {
            name: name.to_owned(),
            kind: SpanKind::Internal,
            attributes,
        }
    }

    /// A span of a request to somebody else.
    pub fn client(name: &'static str, attributes: Vec<KeyValue>) -> Self {
        Self {
            kind: SpanKind::Client,
            ..Self::internal(name, attributes)
        }
    }
}

/// The spans of a server; none where no endpoint is configured. Runs on the runtime that sends them.
pub fn open(config: &config::Telemetry, lookups: &Lookups) -> anyhow::Result<Option<Traces>> {
    let Some(exporter) = export::exporter(config, lookups)? else {
        return Ok(None);
    };
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource())
        .build();
    Ok(Some(Traces {
        tracer: provider.tracer("nudge"),
        provider,
    }))
}

/// What the variables say of this service, which is `nudge` where they don't name it.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let told = || Resource::builder().with_attribute(version.clone());
    let name = told().build().get(&SERVICE_NAME.into());
    if name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        return told().build();
    }
    told().with_service_name("nudge").build()
}

impl Traces {
    /// The span of a request with these headers, within its caller's trace.
    pub fn request(&self, headers: &HeaderMap, span: NewSpan) -> Context {
        let caller = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &HeaderExtractor(headers));
        self.begin(span, &caller)
    }

    /// Runs work that no request waits for as a trace of its own.
    pub async fn root<F: Future>(
        traces: Option<&Self>,
        span: impl FnOnce() -> NewSpan,
        work: F,
    ) -> F::Output {
        let Some(traces) = traces else {
            return work.await;
        };
        let context = traces.begin(span(), &Context::new());
        work.with_context(context).await
    }

    fn begin(&self, span: NewSpan, parent: &Context) -> Context {
        let builder = self.tracer.span_builder(span.name).with_kind(span.kind);
        let builder = builder.with_attributes(span.attributes);
        let span = self.tracer.build_with_context(builder, parent);
        Context::new().with_value(self.clone()).with_span(span)
    }

    /// Sends what is left. Spans that end later are dropped.
    pub async fn finish(self) {
        let finished =
            tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FLUSH)).await;
        if let Ok(Err(error)) = finished {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Runs work as a part of what the caller is doing, if that is traced.
pub async fn within<F: Future>(span: impl FnOnce() -> NewSpan, work: F) -> F::Output {
    let current = Context::current();
    let Some(traces) = current.get::<Traces>() else {
        return work.await;
    };
    let context = traces.begin(span(), &current);
    work.with_context(context).await
}

/// The id of the trace that a context is of, in hexadecimal digits (W3C Trace Context). None: of no trace.
pub fn trace_id(context: &Context) -> Option<String> {
    let id = context.span().span_context().trace_id();
    (id != TraceId::INVALID).then(|| id.to_string())
}

/// The id of the trace that a request's headers name, whether or not anything is traced here.
pub fn callers_trace_id(headers: &HeaderMap) -> Option<String> {
    let caller = TraceContextPropagator::new();
    trace_id(&caller.extract_with_context(&Context::new(), &HeaderExtractor(headers)))
}

/// Ends the span of a request that was answered with a status. `request_id` as in `X-Request-Id` and the log.
pub fn end_request(request: &Context, status: u16, request_id: &str) {
    if !request.has_active_span() {
        return;
    }
    let span = request.span();
    span.set_attribute(KeyValue::new(
        "http.response.status_code",
        i64::from(status),
    ));
    span.set_attribute(KeyValue::new("nudge.request.id", request_id.to_owned()));
    if status >= 500 {
        span.set_status(Status::error(""));
    }
    span.end();
}

/// Says that what the caller does failed.
pub fn fail(because: &str) {
    Context::map_current(|current| {
        if current.has_active_span() {
            current.span().set_status(Status::error(because.to_owned()));
        }
    });
}

/// The headers that hand the caller's trace on, if it has one.
pub fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    Context::map_current(|current| {
        TraceContextPropagator::new().inject_context(current, &mut HeaderInjector(&mut headers));
    });
    headers
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::StatusCode;
    use opentelemetry::trace::TraceContextExt as _;
    use serde_json::Value;

    use super::*;

    /// A collector's answers, and the messages that it got.
    struct Collector {
        traces: Traces,
        messages: Arc<Mutex<Vec<Value>>>,
        _tasks: tokio::task::JoinSet<std::io::Result<()>>,
    }

    async fn collector() -> Collector {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&messages);
        let take = move |headers: HeaderMap, axum::Json(message): axum::Json<Value>| {
            assert_eq!(headers["api-key"], "a b");
            seen.lock().unwrap().push(message);
            async { StatusCode::OK }
        };
        let app = axum::Router::new().route("/v1/traces", axum::routing::post(take));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = config::Config::defaults().unwrap().telemetry;
        config.otlp_endpoint = format!("http://{}", listener.local_addr().unwrap());
        config.otlp_headers = config::Hidden("api-key=a%20b".to_owned());
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(axum::serve(listener, app).into_future());
        let traces = open(&config, &Lookups::system(1)).unwrap().unwrap();
        Collector {
            traces,
            messages,
            _tasks: tasks,
        }
    }

    fn span(name: &'static str) -> NewSpan {
        NewSpan::internal(name, Vec::new())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whatever_waits_at_the_end_is_sent() {
        let Collector {
            traces,
            messages,
            _tasks,
        } = collector().await;
        for _ in 0..1_300 {
            drop(traces.begin(span("work"), &Context::new()));
        }
        traces.finish().await;
        let messages = messages.lock().unwrap();
        let spans = messages.iter().flat_map(|message| {
            let scopes = message["resourceSpans"][0]["scopeSpans"]
                .as_array()
                .unwrap();
            assert_eq!(scopes.len(), 1, "{message}");
            scopes[0]["spans"].as_array().unwrap().clone()
        });
        assert_eq!(spans.count(), 1_300);
        let resource = messages[0]["resourceSpans"][0]["resource"]["attributes"].to_string();
        assert!(
            resource.contains(r#"{"stringValue":"nudge"}"#),
            "{resource}"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_within_a_request_is_a_part_of_its_trace() {
        let Collector {
            traces,
            messages,
            _tasks,
        } = collector().await;
        assert!(headers().is_empty());
        within(|| panic!("nothing is traced"), async {}).await;
        let request = traces.request(&HeaderMap::new(), span("request"));
        let id = request.span().span_context().trace_id().to_string();
        let handed_on = within(|| span("part"), async { headers() });
        let handed_on = handed_on.with_context(request.clone()).await;
        let handed_on = handed_on["traceparent"].to_str().unwrap();
        assert!(handed_on.starts_with(&format!("00-{id}-")), "{handed_on}");
        end_request(&request, 500, "r");
        traces.finish().await;

        let messages = messages.lock().unwrap();
        let spans = &messages[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let (part, request) = (&spans[0], &spans[1]);
        assert_eq!(
            (&part["traceId"], &request["traceId"]),
            (&Value::from(&*id), &Value::from(&*id))
        );
        assert_eq!(part["parentSpanId"], request["spanId"]);
        assert_eq!(
            (&part["name"], &request["status"]["code"]),
            (&"part".into(), &2.into())
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_caller_says_which_trace_it_is() {
        let Collector { traces, _tasks, .. } = collector().await;
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (text, continues) in [
            (format!("00-{trace}-00f067aa0ba902b7-01"), Some(true)),
            (format!("00-{trace}-00f067aa0ba902b7-00"), Some(false)),
            (format!("cc-{trace}-00f067aa0ba902b7-01-more"), Some(true)),
            (format!("00-{trace}-00f067aa0ba902b7-01-more"), None),
            (format!("ff-{trace}-00f067aa0ba902b7-01"), None),
            (
                format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
                None,
            ),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
            (format!("00-{trace}-{}-01", "0".repeat(16)), None),
            (format!("00-{trace}-00f067aa0ba902b7"), None),
            (String::new(), None),
        ] {
            let caller =
                HeaderMap::from_iter([("traceparent".parse().unwrap(), text.parse().unwrap())]);
            let named = continues.map(|_| trace.to_owned());
            assert_eq!(callers_trace_id(&caller), named, "{text}");
            let request = traces.request(&caller, span("request"));
            let place = request.span().span_context().clone();
            let is_callers = place.trace_id().to_string() == trace;
            let found = is_callers.then(|| place.is_sampled());
            assert_eq!(found, continues, "{text}");
            assert!(is_callers || place.is_sampled(), "{text}");
        }
        traces.finish().await;
    }
}
