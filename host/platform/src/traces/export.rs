//! The way to a collector.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig, Identity};
use opentelemetry_otlp::{
    Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as Export};
use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::runtime::Handle;

use crate::config;
use crate::outbound::Lookups;

/// How long the collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The exporter that the configuration and the environment ask for; none where no endpoint is configured.
pub(super) fn exporter(
    config: &config::Telemetry,
    lookups: &Lookups,
) -> anyhow::Result<Option<Counting>> {
    let (base, whole) = (&config.otlp_endpoint, &config.otlp_traces_endpoint);
    let (key, endpoint) = if !whole.is_empty() {
        ("telemetry.otlpTracesEndpoint", whole)
    } else if !base.is_empty() {
        ("telemetry.otlpEndpoint", base)
    } else {
        return Ok(None);
    };
    let url = Url::parse(endpoint).with_context(|| format!("{key}: {endpoint}"))?;
    let headers = headers(&config.otlp_headers.0)?;
    let protocol = protocol()?;
    let exporter = if protocol == Protocol::Grpc {
        let exporter = SpanExporter::builder().with_tonic();
        exporter
            .with_endpoint(endpoint)
            .with_tls_config(grpc_tls(&url)?)
            .with_metadata(MetadataMap::from_headers(headers))
            .build()
    } else {
        let endpoint = if whole.is_empty() {
            format!("{}/v1/traces", base.trim_end_matches('/'))
        } else {
            whole.clone()
        };
        let exporter = SpanExporter::builder().with_http();
        exporter
            .with_endpoint(endpoint)
            .with_protocol(protocol)
            .with_http_client(Sender::new(lookups, headers)?)
            .build()
    };
    let exporter = exporter.context("the exporter of traces")?;
    Ok(Some(Counting(exporter)))
}

/// What a variable for all signals, or the one for traces before it, says.
fn variable(name: &str) -> Option<(String, String)> {
    let names = [
        format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
        format!("OTEL_EXPORTER_OTLP_{name}"),
    ];
    names.into_iter().find_map(|name| {
        let value = std::env::var(&name).ok().filter(|it| !it.is_empty())?;
        Some((name, value))
    })
}

/// JSON over HTTP unless the environment names another.
fn protocol() -> anyhow::Result<Protocol> {
    let Some((name, value)) = variable("PROTOCOL") else {
        return Ok(Protocol::HttpJson);
    };
    Ok(match value.as_str() {
        "grpc" => Protocol::Grpc,
        "http/protobuf" => Protocol::HttpBinary,
        "http/json" => Protocol::HttpJson,
        _ => bail!("{name}: {value} is none of grpc, http/protobuf, http/json"),
    })
}

/// What a file holds that a variable names.
fn file(name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let Some((name, path)) = variable(name) else {
        return Ok(None);
    };
    let bytes = fs::read(&path).with_context(|| format!("{name}: {path}"))?;
    Ok(Some(bytes))
}

fn grpc_tls(url: &Url) -> anyhow::Result<ClientTlsConfig> {
    let mut tls = ClientTlsConfig::new().with_enabled_roots();
    if let Some(host) = url.host_str() {
        tls = tls.domain_name(host);
    }
    if let Some(certificate) = file("CERTIFICATE")? {
        tls = tls.ca_certificate(Certificate::from_pem(certificate));
    }
    if let (Some(certificate), Some(key)) = (file("CLIENT_CERTIFICATE")?, file("CLIENT_KEY")?) {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    Ok(tls)
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

/// Sends messages over HTTP from the runtime of the server: spans are gathered on a thread that has none.
#[derive(Clone, Debug)]
struct Sender {
    client: Client,
    headers: HeaderMap,
    runtime: Handle,
}

impl Sender {
    fn new(lookups: &Lookups, headers: HeaderMap) -> anyhow::Result<Self> {
        let timeout = variable("TIMEOUT").and_then(|(_, millis)| millis.parse().ok());
        let mut client = Client::builder()
            .dns_resolver(lookups.for_services())
            .timeout(timeout.map_or(TIMEOUT, Duration::from_millis))
            // Whoever it leads to is not whom the headers are for.
            .redirect(redirect::Policy::none());
        if let Some(certificate) = file("CERTIFICATE")? {
            let certificates = reqwest::Certificate::from_pem_bundle(&certificate)
                .context("OTEL_EXPORTER_OTLP_CERTIFICATE")?;
            client = client.tls_certs_merge(certificates);
        }
        if let (Some(mut identity), Some(key)) = (file("CLIENT_CERTIFICATE")?, file("CLIENT_KEY")?)
        {
            identity.extend_from_slice(&key);
            let identity = reqwest::Identity::from_pem(&identity)
                .context("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE")?;
            client = client.identity(identity);
        }
        Ok(Self {
            client: client
                .build()
                .context("no TLS for the collector of traces")?,
            headers,
            runtime: Handle::try_current().context("traces are sent from a runtime")?,
        })
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Those of the configuration, which come before the environment's of the same name.
        request.headers_mut().extend(self.headers.clone());
        let client = self.client.clone();
        let sent = self
            .runtime
            .spawn(async move { client.send_bytes(request).await });
        sent.await?
    }
}

/// Counts spans that the collector did not take.
#[derive(Debug)]
pub(super) struct Counting(SpanExporter);

impl Export for Counting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.0.export(batch).await;
        if let Err(error) = &sent {
            metrics::counter!("nudge_spans_dropped_total").increment(spans as u64);
            tracing::warn!(%error, spans, "the collector took no spans");
        }
        sent
    }

    fn set_resource(&mut self, resource: &opentelemetry_sdk::Resource) {
        self.0.set_resource(resource);
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
