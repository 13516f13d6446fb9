//! Requests to whichever server can be reached.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;

use super::Reachable;
use crate::client::{Connection, request};
use crate::random::Random;

/// How long an answer may take before the client gives up and asks again.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client waits before it asks again.
pub(super) const PAUSE: Duration = Duration::from_millis(25);

/// Why a request has no answer that counts.
pub(super) enum Failed {
    /// No server, or it went away; the same request is to be sent again.
    Again,
    /// The subject token is none any longer.
    Token,
}

/// A client's connection, and where it finds the next one.
pub(super) struct Caller {
    pub(super) random: Random,
    reachable: Reachable,
    connection: Option<(Connection, SocketAddr, String)>,
}

impl Caller {
    pub(super) fn new(random: Random, reachable: Reachable) -> Self {
        Self {
            random,
            reachable,
            connection: None,
        }
    }

    /// Sends a request once. What a client may see while servers die is asked again; anything else is an error.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> anyhow::Result<Result<Value, Failed>> {
        let Some((connection, _, key)) = self.connect().await else {
            return Ok(Err(Failed::Again));
        };
        let authorization = format!("Bearer {key}");
        let mut headers = vec![("Authorization", authorization.as_str())];
        headers.extend(token.map(|token| ("X-Service-Subject-Token", token)));
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let bytes = request(method, path, &headers, &body);
        let answered = tokio::time::timeout(PATIENCE, connection.send(&bytes)).await;
        let answered = match answered {
            Ok(Ok(answer)) => Some((answer.status, answer.body.to_vec())),
            Ok(Err(_)) | Err(_) => None,
        };
        let Some((status, body)) = answered else {
            self.connection = None;
            return Ok(Err(Failed::Again));
        };
        match status {
            200 => Ok(Ok(serde_json::from_slice(&body)?)),
            401 if token.is_some() => Ok(Err(Failed::Token)),
            429 | 503 => Ok(Err(Failed::Again)),
            _ => bail!("{path}: {status} {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Leaves the server: the next request may go to another one.
    pub(super) fn leave(&mut self) {
        self.connection = None;
    }

    /// The connection, to a server that lives as far as is known.
    async fn connect(&mut self) -> Option<&mut (Connection, SocketAddr, String)> {
        if self.connection.is_none() {
            let (address, key) = self.reachable.pick(&mut self.random)?;
            let connection = Connection::open(address).await.ok()?;
            self.connection = Some((connection, address, key));
        }
        self.connection.as_mut()
    }
}
