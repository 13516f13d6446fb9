//! Requests to a server's routes for plugins (contract 12).

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::config::Config;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;

/// Longer than a server takes to compile an upload (contract 15).
const PATIENCE: Duration = Duration::from_mins(2);

/// Items of a page of a list: as many as there may be (contract 0).
const PAGE_ITEMS: &str = "200";

/// Longest answer that is no JSON and is shown all the same, in characters.
const SHOWN: usize = 200;

/// Which server, which app, and who asks.
#[derive(Debug, Args)]
pub(in crate::cli) struct Target {
    /// The server; else `NUDGE_PLUGIN__URL`, or `url` in `[plugin]` of nudge.toml.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// An access token: a viewer lists and reads logs, an admin does the rest. Better in `NUDGE_PLUGIN__TOKEN`, where
    /// other users can't see it.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The app; else `NUDGE_PLUGIN__APP`, or `app` in `[plugin]` of nudge.toml.
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// The plugins of the whole server, with an operator's token.
    #[arg(long)]
    pub(in crate::cli) operator: bool,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// A server's routes for plugins: an app's, or the server-wide ones.
pub(in crate::cli) struct Client {
    http: reqwest::Client,
    /// Without a slash at the end.
    base: Url,
    token: String,
}

impl Client {
    pub(in crate::cli) fn new(config: &Config, target: &Target) -> anyhow::Result<Self> {
        let choose = |flag: &Option<String>,
                      configured: &str,
                      what: &str,
                      flag_name: &str,
                      key: &str| {
            let chosen = flag.as_deref().unwrap_or(configured);
            if chosen.is_empty() {
                bail!(
                    "{what} it with --{flag_name}, NUDGE_PLUGIN__{}, or `{key}` in [plugin] of nudge.toml",
                    key.to_ascii_uppercase()
                );
            }
            Ok(chosen.to_owned())
        };
        let section = &config.plugin;
        let url = choose(&target.url, &section.url, "which server? Say", "url", "url")?;
        let token = choose(
            &target.token,
            &section.token,
            "no access token: say",
            "token",
            "token",
        )?;
        let path = if target.operator {
            "v1/operator".to_owned()
        } else {
            let app = choose(&target.app, &section.app, "which app? Say", "app", "app")?;
            let Ok(app) = app.parse::<Uuid>() else {
                bail!(
                    "`{app}` is no app's id: it is a UUID, which GET /v1/apps and the console show"
                );
            };
            format!("v1/apps/{app}")
        };
        let base = format!("{}/{path}/", url.trim_end_matches('/'));
        let base = Url::parse(&base).with_context(|| format!("`{url}` is no URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            bail!("`{url}` is no URL of a server: it begins with http:// or https://");
        }
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("nudge/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, base, token })
    }

    /// A request to a route below the app. Each segment is one: a name can't lead elsewhere.
    pub(in crate::cli) fn request(
        &self,
        method: Method,
        segments: &[&str],
    ) -> anyhow::Result<RequestBuilder> {
        let url = self.url(segments)?;
        Ok(self.http.request(method, url).bearer_auth(&self.token))
    }

    fn url(&self, segments: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("the server's URL has no path"))?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// Sends a request, and gives the status and `data` of the answer.
    pub(in crate::cli) async fn send(
        &self,
        request: RequestBuilder,
    ) -> anyhow::Result<(StatusCode, Json)> {
        let host = self.base.origin().ascii_serialization();
        let answer = request
            .send()
            .await
            .map_err(reqwest::Error::without_url)
            .with_context(|| format!("{host} can't be reached"))?;
        let status = answer.status();
        let text = answer
            .text()
            .await
            .with_context(|| format!("{host} broke off its answer"))?;
        if !status.is_success() {
            return Err(Refused {
                status,
                told: problem(status, &text),
            }
            .into());
        }
        if text.is_empty() {
            return Ok((status, Json::Null));
        }
        let mut body: Json = serde_json::from_str(&text)
            .with_context(|| format!("{host} did not answer as a Nudge server does"))?;
        let data = body.get_mut("data").map(Json::take);
        let data = data.with_context(|| format!("{host} did not answer as a Nudge server does"))?;
        Ok((status, data))
    }

    /// All items of a list under some conditions.
    pub(in crate::cli) async fn list(
        &self,
        segments: &[&str],
        conditions: &[(&str, &str)],
    ) -> anyhow::Result<Vec<Json>> {
        let mut items = Vec::new();
        let mut pages = self.pages(segments, conditions)?;
        while let Some(page) = pages.next().await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// A list under some conditions, page by page, or a plain list.
    pub(in crate::cli) fn pages(
        &self,
        segments: &[&str],
        conditions: &[(&str, &str)],
    ) -> anyhow::Result<Pages<'_>> {
        let mut first = self.url(segments)?;
        first
            .query_pairs_mut()
            .extend_pairs(conditions)
            .append_pair("limit", PAGE_ITEMS);
        Ok(Pages {
            client: self,
            next: Some(first.clone()),
            first,
        })
    }
}

/// A list that is being read.
pub(in crate::cli) struct Pages<'c> {
    client: &'c Client,
    first: Url,
    /// None: the list is at its end.
    next: Option<Url>,
}

impl Pages<'_> {
    /// The items of the next page.
    pub(in crate::cli) async fn next(&mut self) -> anyhow::Result<Option<Vec<Json>>> {
        let Some(url) = self.next.take() else {
            return Ok(None);
        };
        let request = self.client.http.get(url).bearer_auth(&self.client.token);
        let page = match self.client.send(request).await?.1 {
            Json::Array(list) => Page {
                items: list,
                next_cursor: None,
            },
            data => serde_json::from_value(data).context("the answer is no list")?,
        };
        self.next = page.next_cursor.map(|cursor| {
            let mut next = self.first.clone();
            next.query_pairs_mut().append_pair("cursor", &cursor);
            next
        });
        Ok(Some(page.items))
    }

    /// Whether there are no more.
    pub(in crate::cli) fn is_at_end(&self) -> bool {
        self.next.is_none()
    }
}

/// An answer that says no.
#[derive(Debug, thiserror::Error)]
#[error("{told}")]
pub(in crate::cli) struct Refused {
    /// The status.
    pub(in crate::cli) status: StatusCode,
    /// What to tell of it.
    pub(in crate::cli) told: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Json>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// An answer that says no (RFC 9457), as far as it is shown.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Problem {
    code: String,
    title: String,
    detail: String,
    request_id: String,
    errors: Vec<Field>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Field {
    pointer: String,
    code: String,
    detail: String,
}

/// What to tell of an answer that says no, and of each place that is wrong.
fn problem(status: StatusCode, text: &str) -> String {
    let Ok(problem) = serde_json::from_str::<Problem>(text) else {
        let start: String = text.chars().take(SHOWN).collect();
        return format!("the server answered {status}: {}", start.trim());
    };
    let detail = if problem.detail.is_empty() {
        &problem.title
    } else {
        &problem.detail
    };
    let mut told = format!("{} {}", status.as_u16(), problem.code);
    // A detail that points to the errors, or repeats one of them, adds nothing.
    let adds_nothing = !problem.errors.is_empty() && detail.ends_with("see errors.")
        || problem.errors.iter().any(|error| error.detail == *detail);
    let mut separator = ':';
    if !adds_nothing {
        let _ = write!(told, ": {detail}");
        separator = ';';
    }
    if status.is_server_error() && !problem.request_id.is_empty() {
        let _ = write!(told, " (request {})", problem.request_id);
    }
    for Field {
        pointer,
        code,
        detail,
    } in &problem.errors
    {
        let place = if pointer.is_empty() { "body" } else { pointer };
        let _ = write!(told, "{separator} {place}: {detail} ({code})");
        separator = ';';
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_with_their_places() {
        let body = r#"{"type": "x", "title": "Validation failed", "status": 422, "code": "validation_failed",
            "detail": "the body breaks the contract", "requestId": "r1",
            "errors": [{"pointer": "/percent", "code": "out_of_range", "detail": "must be from 1 to 100"}]}"#;
        assert_eq!(
            problem(StatusCode::UNPROCESSABLE_ENTITY, body),
            "422 validation_failed: the body breaks the contract; /percent: must be from 1 to 100 (out_of_range)"
        );
        // What the errors say is not said twice.
        for detail in ["The request breaks the contract; see errors.", "m"] {
            let body = format!(
                r#"{{"code": "c", "detail": "{detail}", "errors": [
                    {{"pointer": "/a", "code": "x", "detail": "m"}}, {{"code": "y", "detail": "n"}}]}}"#
            );
            assert_eq!(
                problem(StatusCode::UNPROCESSABLE_ENTITY, &body),
                "422 c: /a: m (x); body: n (y)"
            );
        }
        let body = r#"{"title": "Unavailable", "code": "unavailable", "requestId": "r1"}"#;
        assert_eq!(
            problem(StatusCode::SERVICE_UNAVAILABLE, body),
            "503 unavailable: Unavailable (request r1)"
        );
        assert_eq!(
            problem(StatusCode::BAD_GATEWAY, "<html>no"),
            "the server answered 502 Bad Gateway: <html>no"
        );
    }
}
