//! Request bodies: media type, compression, limits, JSON.

pub mod budget;
mod few;
mod sound;

use std::io::Read as _;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::objects::Objects;
use nudge_platform::json::{NUMBER_OUT_OF_RANGE, misshapen, pointer, shape};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

pub use few::Few;

use super::admission::Room;
use super::code::Code;
use super::error::ApiError;
use super::request_context::Notes;

/// The largest body, after decompression (contract 15).
pub const MOST_BODY_BYTES: usize = 1024 * 1024;
/// How deeply JSON may nest (contract 15).
pub const MOST_JSON_DEPTH: usize = 64;
/// How long a client may take to send its body.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to send a component.
const COMPONENT_TIMEOUT: Duration = Duration::from_mins(2);

/// The bytes of a JSON body: decompressed, UTF-8, not nested too deeply, not yet parsed.
#[derive(Debug)]
pub struct JsonText(pub String);

/// A JSON body, parsed. Types of management bodies deny unknown fields, those of SDK bodies do not.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// The bytes of a JSON body as [`JsonText`] has them, which need not be declared as JSON: browsers send it as plain text,
/// for which they need not ask first.
#[derive(Debug)]
pub struct PlainJsonText(pub String);

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        Received::of(request).await.map(|it| Self(it.keep()))
    }
}

impl<S: Send + Sync> FromRequest<S> for PlainJsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        // Clients that compress leave the type to their library, which takes the bytes for a form.
        if !matches!(
            media_type(request.headers()).as_deref(),
            None | Some(
                "text/plain" | "application/octet-stream" | "application/x-www-form-urlencoded"
            )
        ) {
            require_json(request.headers())?;
        }
        Received::of_any(request).await.map(|it| Self(it.keep()))
    }
}

/// A body that has arrived, and the room that it takes until it is kept in the notes.
struct Received {
    text: String,
    notes: Notes,
    room: Option<Room>,
}

impl Received {
    async fn of(request: Request) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        Self::of_any(request).await
    }

    /// The text, whose room is the request's from now on.
    fn keep(self) -> String {
        let Self { text, notes, room } = self;
        notes.keep_room(room);
        text
    }

    async fn of_any(request: Request) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let encoding = Encoding::of(&head.headers)?;
        let most_bytes = encoding.received(MOST_BODY_BYTES);
        refuse_announced(waits(&head.headers), &body, most_bytes)?;
        let notes = Notes::of(&head.extensions);
        let mut room = notes.room();
        // Nobody else waits until the client has sent everything.
        notes.leave();
        let bytes = tokio::time::timeout(SEND_TIMEOUT, receive(body, most_bytes, room.as_mut()))
            .await
            .map_err(|_| arrived_late())??;
        notes.come_back().await?;
        if !matches!(encoding, Encoding::Identity) {
            // How much it comes to is known afterwards only.
            resize(room.as_mut(), bytes.len() + MOST_BODY_BYTES)?;
        }
        let bytes = encoding.decode(bytes, MOST_BODY_BYTES)?;
        // What is made of it holds its texts once more.
        resize(room.as_mut(), 2 * bytes.len())?;
        notes.count_bytes(bytes.len())?;
        let text = String::from_utf8(bytes.into())
            .map_err(|_| ApiError::because(Code::MalformedJson, "the body is not UTF-8"))?;
        check_depth(&text)?;
        Ok(Self { text, notes, room })
    }

    /// Parses the text, whose room is the request's from now on.
    fn parse<T: DeserializeOwned>(mut self) -> Result<T, ApiError> {
        self.expect_tree()?;
        parse(&self.keep())
    }

    /// Takes room for what the text becomes once it is parsed, which stays in proportion.
    fn expect_tree(&mut self) -> Result<(), ApiError> {
        let tree_bytes = budget::tree_bytes(&self.text);
        let least = if self.notes.origins().is_some() {
            budget::LEAST_OF_KEYS
        } else {
            budget::LEAST
        };
        if !budget::fits(&self.text, tree_bytes, least) {
            let detail = "the body has far more values than its length is good for: it would take more than ten times \
                          its length in memory; send it in parts";
            return Err(ApiError::because(Code::PayloadTooLarge, detail));
        }
        let all = 2 * self.text.len() + tree_bytes;
        resize(self.room.as_mut(), all)
    }
}

/// Whether a client sends its body only when it is asked to, which receiving does (RFC 9110, section 10.1.1).
fn waits(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

/// Refuses a body that is announced as too large, if its client waits to be asked for it. Other clients are sending
/// already, and most of them listen to the answer only when they are done.
fn refuse_announced(waits: bool, body: &Body, most_bytes: usize) -> Result<(), ApiError> {
    if waits && body.size_hint().lower() > most_bytes as u64 {
        return Err(ApiError::new(Code::PayloadTooLarge));
    }
    Ok(())
}

/// Receives a body; what has arrived takes room.
async fn receive(
    mut body: Body,
    most_bytes: usize,
    mut room: Option<&mut Room>,
) -> Result<Bytes, ApiError> {
    let mut first = Bytes::new();
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| broke_off())?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = first.len() + received.len() + data.len();
        if length > most_bytes {
            return Err(ApiError::new(Code::PayloadTooLarge));
        }
        resize(room.as_deref_mut(), length)?;
        if first.is_empty() && received.is_empty() {
            // Most bodies are in one piece, which is not copied.
            first = data;
        } else {
            received.extend_from_slice(&std::mem::take(&mut first));
            received.extend_from_slice(&data);
        }
    }
    Ok(if received.is_empty() {
        first
    } else {
        received.freeze()
    })
}

fn resize(room: Option<&mut Room>, bytes: usize) -> Result<(), ApiError> {
    room.map_or(Ok(()), |room| room.resize(bytes))
}

/// The bytes of a WebAssembly component, decompressed.
///
/// Far larger than other bodies, so that it is read when its turn has come, not when the request is.
#[derive(Debug)]
pub struct Component {
    encoding: Encoding,
    body: Body,
    waits: bool,
    notes: Notes,
}

impl<S: Send + Sync> FromRequest<S> for Component {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        if media_type(&head.headers).as_deref() != Some("application/wasm") {
            let detail = "send the component as the body, with Content-Type: application/wasm";
            return Err(ApiError::because(Code::UnsupportedMediaType, detail));
        }
        let encoding = Encoding::of(&head.headers)?;
        let notes = Notes::of(&head.extensions);
        Ok(Self {
            encoding,
            body,
            waits: waits(&head.headers),
            notes,
        })
    }
}

impl Component {
    /// Reads and decompresses the body.
    pub async fn read(self, most_bytes: usize) -> Result<Bytes, ApiError> {
        let (encoding, body) = (self.encoding, self.body);
        refuse_announced(self.waits, &body, encoding.received(most_bytes))?;
        // Uploads have turns of their own, see `plugins/loaders.rs`.
        self.notes.leave();
        let bytes = tokio::time::timeout(
            COMPONENT_TIMEOUT,
            Self::receive(body, encoding.received(most_bytes)),
        )
        .await
        .map_err(|_| arrived_late())??;
        if matches!(encoding, Encoding::Identity) {
            return Ok(bytes);
        }
        tokio::task::spawn_blocking(move || encoding.decode(bytes, most_bytes))
            .await
            .map_err(ApiError::internal)?
    }

    /// Receives a body. One that is somewhat too large is received to its end, though not kept: most clients
    /// listen to the answer only then.
    async fn receive(mut body: Body, most_bytes: usize) -> Result<Bytes, ApiError> {
        let enough = most_bytes.saturating_mul(2);
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > enough {
            return Err(ApiError::new(Code::PayloadTooLarge));
        }
        let mut received = 0_usize;
        let mut bytes = Vec::with_capacity(announced.min(most_bytes));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| broke_off())?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            received = received.saturating_add(data.len());
            if received <= most_bytes {
                bytes.extend_from_slice(data);
            } else if received > enough {
                break;
            } else {
                bytes = Vec::new();
            }
        }
        if received > most_bytes {
            return Err(ApiError::new(Code::PayloadTooLarge));
        }
        Ok(bytes.into())
    }
}

fn arrived_late() -> ApiError {
    ApiError::because(Code::MalformedJson, "the body did not arrive in time")
}

fn broke_off() -> ApiError {
    ApiError::because(Code::MalformedJson, "the body broke off")
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        Received::of(request).await?.parse().map(Self)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub struct OptionalJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let declared = require_json(request.headers());
        let received = Received::of_any(request).await?;
        // A client that announces a body may have none all the same.
        if received.text.is_empty() {
            return Ok(Self(T::default()));
        }
        declared?;
        received.parse().map(Self)
    }
}

/// Parses a body; what has the wrong shape is named by a pointer.
pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let pointer = pointer(error.path());
        refuse(text, error.inner(), pointer)
    })?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(parsed)
}

/// Parses a body as [`parse`] does, without keeping track of where it is: quicker, if it is good.
pub fn parse_quickly<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ApiError> {
    parse_good(text).map_or_else(|| parse(text), Ok)
}

/// Parses a body; none if anything is wrong with it.
pub fn parse_good<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = T::deserialize(Objects(&mut deserializer)).ok()?;
    deserializer.end().ok()?;
    Some(parsed)
}

/// Gives a JSON value that is already parsed its type.
pub fn parse_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, ApiError> {
    parse_part(value, "")
}

/// Gives a part of a body that is already parsed its type. `place` is the part's JSON pointer.
pub fn parse_part<T: DeserializeOwned>(
    value: serde_json::Value,
    place: &str,
) -> Result<T, ApiError> {
    shape(value, place).map_err(|error| ApiError::fields(Code::ValidationFailed, vec![error]))
}

/// Parses the text of a part of a body, which is JSON. `place` is the part's JSON pointer.
pub fn shape_text<'a, T: Deserialize<'a>>(text: &'a str, place: &str) -> Result<T, FieldError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let pointer = format!("{place}{}", pointer(error.path()));
        misshapen(error.inner(), pointer)
    })
}

/// Tells what is not JSON from what is JSON of the wrong shape. The parser's word for it is not enough: a number where
/// one of some names belongs is a mistake in the syntax to it.
fn refuse(text: &str, error: &serde_json::Error, pointer: String) -> ApiError {
    match sound::check(text) {
        Err(unsound) if !is_out_of_range(text, &unsound) => malformed(&unsound),
        _ => wrong_shape(error, pointer),
    }
}

/// Whether a text that is not sound is JSON nevertheless, with a number that is too large for numbers here.
fn is_out_of_range(text: &str, unsound: &serde_json::Error) -> bool {
    // Of the parser's errors of syntax it is the only one that is about no syntax.
    unsound.to_string().starts_with(NUMBER_OUT_OF_RANGE)
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn wrong_shape(error: &serde_json::Error, pointer: String) -> ApiError {
    ApiError::fields(Code::ValidationFailed, vec![misshapen(error, pointer)])
}

fn malformed(error: &serde_json::Error) -> ApiError {
    ApiError::because(
        Code::MalformedJson,
        format!(
            "the body is not JSON: line {}, column {}",
            error.line(),
            error.column()
        ),
    )
}

/// The media type of a body, without parameters, in lower case.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default();
    Some(media_type.trim().to_ascii_lowercase())
}

fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    match media_type(headers).as_deref() {
        Some("application/json") => Ok(()),
        Some(other) if other.starts_with("application/") && other.ends_with("+json") => Ok(()),
        _ => Err(ApiError::new(Code::UnsupportedMediaType)),
    }
}

#[derive(Clone, Copy, Debug)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
    Brotli,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        match value
            .to_str()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
            .as_str()
        {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            "br" => Ok(Self::Brotli),
            _ => Err(ApiError::new(Code::UnsupportedMediaType)),
        }
    }

    /// The most bytes that may arrive where so many are allowed once they are decompressed: what does not compress
    /// grows by its frames.
    fn received(self, most_bytes: usize) -> usize {
        match self {
            Self::Identity => most_bytes,
            Self::Gzip | Self::Zstd | Self::Brotli => most_bytes + most_bytes / 64,
        }
    }

    fn decode(self, bytes: Bytes, most_bytes: usize) -> Result<Bytes, ApiError> {
        let broken = || ApiError::new(Code::InvalidEncoding);
        let mut decoder: Box<dyn std::io::Read> = match self {
            Self::Identity => return Ok(bytes),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(&*bytes)),
            Self::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(&*bytes).map_err(|_| broken())?)
            }
            // A window of up to a GiB, which RFC 7932 (9.1) has not, would be filled before anything is handed out.
            Self::Brotli if bytes.first().is_some_and(|first| first & 0x7f == 0x11) => {
                return Err(broken());
            }
            Self::Brotli => Box::new(brotli::Decompressor::new(&*bytes, 16 * 1024)),
        };
        let mut text = Vec::with_capacity(bytes.len().saturating_mul(4).min(most_bytes));
        let limit = most_bytes as u64 + 1;
        decoder
            .by_ref()
            .take(limit)
            .read_to_end(&mut text)
            .map_err(|_| broken())?;
        if text.len() > most_bytes {
            return Err(ApiError::new(Code::PayloadTooLarge));
        }
        Ok(text.into())
    }
}

/// Refuses JSON that nests too deeply, before any recursive parser sees it.
fn check_depth(text: &str) -> Result<(), ApiError> {
    // So few at a time that a byte holds their number, which lets the compiler count many at once.
    let opened = text.as_bytes().chunks(255).map(|chunk| {
        let opens = |byte: &u8| u8::from(matches!(byte, b'[' | b'{'));
        usize::from(chunk.iter().map(opens).sum::<u8>())
    });
    if opened.sum::<usize>() <= MOST_JSON_DEPTH {
        // So few can't nest deeper, and counting them is much quicker than following them.
        return Ok(());
    }
    let mut depth = 0_usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => drop(bytes.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            b'[' | b'{' => {
                depth += 1;
                if depth > MOST_JSON_DEPTH {
                    let detail = format!("the body nests deeper than {MOST_JSON_DEPTH} levels");
                    return Err(ApiError::because(Code::MalformedJson, detail));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_strings_only() {
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(check_depth(&deep).is_ok());
        assert!(check_depth(&format!("[{deep}]")).is_err());
        assert!(check_depth(&format!("[\"{}\\\"{}\"]", "[".repeat(99), "{".repeat(99))).is_ok());
    }

    #[tokio::test]
    async fn a_body_that_may_be_left_out_may_be_announced_and_empty() {
        type Patch = OptionalJson<Option<serde_json::Value>>;
        let request = |pieces: &'static [&'static str]| {
            let pieces = pieces.iter().map(|piece| Ok::<_, std::io::Error>(*piece));
            let body = Body::from_stream(futures_util::stream::iter(pieces));
            assert!(!body.is_end_stream());
            Request::new(body)
        };
        let OptionalJson(none) = Patch::from_request(request(&[]), &()).await.unwrap();
        assert_eq!(none, None);
        let error = Patch::from_request(request(&["{}"]), &()).await;
        assert_eq!(error.unwrap_err().code(), Code::UnsupportedMediaType);
    }

    #[test]
    fn truncated_compression_is_refused() {
        for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::Brotli] {
            let error = encoding
                .decode(Bytes::from_static(&[0x1f, 0x8b, 8, 0]), MOST_BODY_BYTES)
                .unwrap_err();
            assert_eq!(error.code(), Code::InvalidEncoding);
        }
    }
}
