//! Requests of the server to others: one client with time-outs, answers with limits; and, for URLs that
//! customers and browsers name, the rule of where such requests may go.

pub mod address;
pub mod guard;
pub mod lookups;
mod retry_after;
pub mod rule;

pub use guard::Guard;
pub use lookups::{Lookup, Lookups};
pub use retry_after::retry_after;
pub use rule::{NotAllowed, Rule};

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use reqwest::{Client, Response, StatusCode, Url, header, redirect};
use serde::de::DeserializeOwned;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For a whole request and its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A client. It follows no redirects: what is configured is what is asked.
pub fn client(lookups: &Lookups) -> anyhow::Result<Client> {
    Client::builder()
        .dns_resolver(lookups.for_services())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("nudge/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("can't set TLS up: are the system's certificates (ca-certificates) installed?")
}

/// What is of a type among the causes of a failed request.
pub fn cause<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Gets a JSON document of at most so many bytes.
pub async fn get_json<T: DeserializeOwned>(
    client: &Client,
    url: Url,
    most_bytes: usize,
) -> anyhow::Result<T> {
    let response = client.get(url).send().await?;
    ensure!(
        response.status().is_success(),
        "status {}",
        response.status()
    );
    let body = read(response, most_bytes).await?;
    serde_json::from_slice(&body).context("the answer is not the JSON that it should be")
}

/// Posts a form, with a value of `Authorization` if there is one, and reads an answer of at most so many bytes, whatever
/// its status.
pub async fn post_form(
    client: &Client,
    url: Url,
    authorization: Option<String>,
    form: String,
    most_bytes: usize,
) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let mut request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let response = request.body(form).send().await?;
    let status = response.status();
    Ok((status, read(response, most_bytes).await?))
}

async fn read(mut response: Response, most_bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most_bytes {
            bail!("the answer has more than {most_bytes} bytes");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Whether a host's name or address, IPv6 with or without brackets, is this machine's alone.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A URL that may be asked: https, or http to this machine or where that is allowed.
pub fn checked_url(text: &str, allow_http: bool) -> anyhow::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("`{text}` is not a URL"))?;
    let local = url.host_str().is_some_and(is_loopback);
    match url.scheme() {
        "https" => Ok(url),
        "http" if local || allow_http => Ok(url),
        _ => bail!("`{text}` must begin with https://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_or_where_it_is_allowed() {
        for good in [
            "https://id.example/realm",
            "http://localhost:8080",
            "http://127.0.0.1/x",
            "http://[::1]:9000",
        ] {
            assert!(checked_url(good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example",
            "http://127.0.0.1.example",
            "http://10.0.0.1",
            "file:///etc/passwd",
            "id.example",
        ] {
            assert!(checked_url(bad, false).is_err(), "{bad}");
        }
        assert!(checked_url("http://id.example", true).is_ok());
        assert!(checked_url("file:///etc/passwd", true).is_err());
    }
}
