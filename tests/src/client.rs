//! A client of the API whose answers check themselves.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose request fails fails where it stands"
)]

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::TestApp;

/// No answer takes longer; what does hangs.
const HANGS: Duration = Duration::from_mins(1);

/// Headers that say who calls.
#[derive(Clone, Debug, Default)]
pub struct Credential(Vec<(&'static str, String)>);

impl Credential {
    /// Nobody.
    pub fn none() -> Self {
        Self::default()
    }

    /// A key or token in `Authorization`.
    pub fn bearer(token: &str) -> Self {
        Self::none().and("authorization", &format!("Bearer {token}"))
    }

    /// A request with the headers.
    pub fn sign(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let headers = self.0.iter();
        headers.fold(request, |request, (name, value)| {
            request.header(*name, value)
        })
    }

    /// With one more header.
    #[must_use]
    pub fn and(mut self, header: &'static str, value: &str) -> Self {
        self.0.push((header, value.to_owned()));
        self
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON; null if there is none.
    pub fn json(&self) -> Value {
        if self.text.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.text).expect("a JSON body")
    }

    /// A header's text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("a header of text"))
    }

    /// The `data` of a success with this status.
    #[track_caller]
    pub fn data(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if status == 204 {
            assert_eq!(self.text, "");
            return Value::Null;
        }
        self.json()
            .get_mut("data")
            .map(Value::take)
            .expect("success is wrapped in data")
    }

    /// The `data` of a 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        self.data(200)
    }

    /// The problem of a refusal with this status and code (RFC 9457).
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let problem = self.problem();
        assert_eq!(
            (self.status, problem.get("code").and_then(Value::as_str)),
            (status, Some(code)),
            "{}",
            self.text
        );
        problem
    }

    /// The problem of any refusal, well-formed.
    #[track_caller]
    pub fn problem(&self) -> Value {
        assert!(self.status >= 400, "{}: {}", self.status, self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        for key in ["type", "title", "detail", "code", "requestId"] {
            let text = problem.get(key).and_then(Value::as_str);
            assert!(
                text.is_some_and(|text| !text.is_empty()),
                "{key}: {problem}"
            );
        }
        assert_eq!(problem.get("status"), Some(&self.status.into()));
        let request_id = problem.get("requestId").and_then(Value::as_str);
        assert_eq!(request_id, Some(self.header("x-request-id")));
        problem
    }

    /// The pointers of a refusal's errors.
    #[track_caller]
    pub fn pointers(&self) -> Vec<String> {
        let problem = self.problem();
        let errors = problem.get("errors").and_then(Value::as_array);
        errors
            .into_iter()
            .flatten()
            .filter_map(|error| error.get("pointer")?.as_str().map(str::to_owned))
            .collect()
    }
}

/// The client of a test.
pub fn build() -> reqwest::Client {
    reqwest::Client::builder()
        .timeout(HANGS)
        // Servers of tests speak HTTP: the system's certificates need not be read.
        .tls_certs_only([])
        .build()
        .expect("a client")
}

/// Sends a request and reads the answer.
pub async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.expect("a body of text"),
    }
}

impl TestApp {
    /// A request to be completed and given to [`send`].
    pub fn request(
        &self,
        method: Method,
        path: &str,
        credential: &Credential,
    ) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.access.base_url);
        credential.sign(self.http.request(method, url))
    }

    /// GET.
    pub async fn get(&self, path: &str, credential: &Credential) -> Answer {
        send(self.request(Method::GET, path, credential)).await
    }

    /// POST of a JSON body.
    pub async fn post(&self, path: &str, credential: &Credential, body: &Value) -> Answer {
        send(self.request(Method::POST, path, credential).json(body)).await
    }

    /// POST of a body as it is, declared as JSON.
    pub async fn post_raw(
        &self,
        path: &str,
        credential: &Credential,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self.request(Method::POST, path, credential);
        send(
            request
                .header("content-type", "application/json")
                .body(body),
        )
        .await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, credential: &Credential, body: &Value) -> Answer {
        send(self.request(Method::PATCH, path, credential).json(body)).await
    }

    /// PUT of a JSON body.
    pub async fn put(&self, path: &str, credential: &Credential, body: &Value) -> Answer {
        send(self.request(Method::PUT, path, credential).json(body)).await
    }

    /// POST of a component.
    pub async fn upload(
        &self,
        path: &str,
        credential: &Credential,
        component: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self.request(Method::POST, path, credential);
        send(
            request
                .header("content-type", "application/wasm")
                .body(component),
        )
        .await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str, credential: &Credential) -> Answer {
        send(self.request(Method::DELETE, path, credential)).await
    }
}
