//! An HTTP/1.1 client that costs little: requests are bytes made beforehand, answers are only looked through.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection that is kept alive.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer; borrowed from the connection.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends a whole request and reads the whole answer.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (status, start, end) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            if let Some(found) = head(&self.buffer)? {
                break found;
            }
        };
        while self.buffer.len() < end {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
        }
        let body = self.buffer.get(start..end).unwrap_or_default();
        let head = self.buffer.get(..start).unwrap_or_default();
        Ok(Answer { status, head, body })
    }

    /// Sends JSON and reads JSON; for what is not measured.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> anyhow::Result<Value> {
        let request = request(method, path, headers, &body.to_string());
        let answer = self.send(&request).await?;
        if answer.status >= 300 {
            let text = String::from_utf8_lossy(answer.body);
            bail!("{method} {path}: {} {text}", answer.status);
        }
        Ok(serde_json::from_slice(answer.body)?)
    }
}

/// The bytes of a request with a JSON body.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        for part in [*name, ": ", *value, "\r\n"] {
            text.push_str(part);
        }
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// Status, start and end of the body, once the head is there.
fn head(bytes: &[u8]) -> anyhow::Result<Option<(u16, usize, usize)>> {
    let Some(length) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes.get(..length).unwrap_or_default())?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .context("no status line")?;
    let body: usize = lines
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .context("no content-length")?
        .1
        .parse()?;
    Ok(Some((status.parse()?, length + 4, length + 4 + body)))
}
