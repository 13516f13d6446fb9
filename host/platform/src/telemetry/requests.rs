//! The log of somebody who develops: a short line for each request that changes something or fails.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// The module that logs requests: the name that a filter has for their lines.
const REQUESTS: &str = "nudge_http::request";

/// Writes requests as short lines, and everything else as ever.
#[derive(Debug, Default)]
pub(super) struct ShortRequests(Format);

impl<S, N> FormatEvent<S, N> for ShortRequests
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != REQUESTS {
            return self.0.format_event(context, writer, event);
        }
        let mut request = Request::default();
        event.record(&mut request);
        if request.is_told() {
            writeln!(writer, "{request}")?;
        }
        Ok(())
    }
}

/// What a line says of a request.
#[derive(Debug, Default)]
struct Request {
    method: String,
    route: String,
    status: u64,
    code: Option<String>,
    microseconds: u64,
}

impl Request {
    /// Whether it has a line. Open pages of the console read every few seconds, and load their own parts.
    fn is_told(&self) -> bool {
        let reads = ["GET", "HEAD", "OPTIONS"].contains(&&*self.method);
        self.status >= 400 || (!reads && self.route.starts_with("/v1/"))
    }
}

impl Visit for Request {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "http.route" => value.clone_into(&mut self.route),
            "error.code" => self.code = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "http.status" => self.status = value,
            "elapsed_us" => self.microseconds = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "http.method" {
            self.method = format!("{value:?}");
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            route,
            status,
            code,
            microseconds,
        } = self;
        write!(formatter, "{method} {route} {status}")?;
        if let Some(code) = code {
            write!(formatter, " {code}")?;
        }
        let (whole, tenth) = (microseconds / 1_000, microseconds % 1_000 / 100);
        write!(formatter, " {whole}.{tenth} ms")
    }
}
