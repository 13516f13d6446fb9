//! What is to be known of each operation beside its handler, a row each in `operations.json`: who may call it, a request that
//! works, which entry it leaves in the audit log, and where the console does it. The description takes credentials and examples
//! from there; tests hold each row against the server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::security::SecurityRequirement;

/// A row. `{{name}}` in its request stands for a fact, `{{operation.items.0.id}}` for a part of the `data` that an operation
/// before it answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The operation's id.
    pub operation: String,
    /// Its method and path.
    pub route: String,
    /// Who may call it.
    pub by: Caller,
    /// The action of the entry that it leaves in the audit log.
    pub audit: Option<String>,
    /// Why a change leaves none there, or who looks at it.
    pub unaudited: Option<String>,
    /// Where the console does it. Only what SDKs do needs no place.
    pub console: Option<ConsolePlace>,
    /// What the path names; `appId` unless given is the app's.
    #[serde(default)]
    pub path: BTreeMap<String, Value>,
    /// The query.
    #[serde(default)]
    pub query: BTreeMap<String, Value>,
    /// The whole URL, where an answer gave it.
    pub url: Option<Value>,
    /// The body.
    pub body: Option<Value>,
    /// The body's lines, each of JSON.
    #[serde(default)]
    pub lines: Vec<Value>,
    /// The status, where several are successes.
    pub status: Option<u16>,
}

/// What an operation asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// Nothing.
    Anyone,
    /// An access token.
    Member,
    /// An access token with the role of an admin in some workspace.
    Administrator,
    /// A role in the app's workspace, at least this one.
    Viewer,
    /// The same.
    Editor,
    /// The same.
    Admin,
    /// An access token that looks after the server.
    Operator,
    /// A write key; whoever has a subject token goes on as the same person.
    Sdk,
    /// A write key and a subject token of its app.
    Subject,
    /// A server key with the scope `events.write`.
    Events,
    /// One of both, by the body's shape.
    SubjectOrEvents,
    /// A write key, or a server key with the scope `events.write`.
    Collector,
    /// An API token with the scope `users.properties.write`, of the app's workspace.
    Properties,
    /// A server key with the scope `push.transactional`, of the app.
    Transactional,
}

/// Where the console does an operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsolePlace {
    /// It asks it with success in this file of `tests/browser`.
    Asked(String),
    /// The file of its sources, and the text there that asks.
    Written(String, String),
    /// Nowhere, but on the command line, by backends or by other programs: why.
    Elsewhere(String),
}

impl Operation {
    /// All rows, in an order in which the requests work.
    pub fn all() -> serde_json::Result<Vec<Self>> {
        serde_json::from_str(include_str!("operations.json"))
    }
}

impl Caller {
    /// The credentials, one of these. None: it takes none in its headers.
    pub(super) fn security(self) -> Option<Vec<SecurityRequirement>> {
        let none: [&str; 0] = [];
        let token = |role: &str| vec![SecurityRequirement::new("accessToken", [role])];
        let write_key = || SecurityRequirement::new("writeKey", none);
        let subject = || write_key().add("subjectToken", none);
        let server_key = |scope: &str| SecurityRequirement::new("serverKey", [scope]);
        let events = || server_key("events.write");
        Some(match self {
            Self::Anyone => return None,
            Self::Member => vec![SecurityRequirement::new("accessToken", none)],
            Self::Viewer => token("viewer"),
            Self::Editor => token("editor"),
            Self::Administrator | Self::Admin => token("admin"),
            Self::Operator => token("operator"),
            Self::Sdk => vec![write_key(), subject()],
            Self::Subject => vec![subject()],
            Self::Events => vec![events()],
            Self::SubjectOrEvents => vec![subject(), events()],
            Self::Collector => vec![write_key(), events()],
            Self::Properties => vec![SecurityRequirement::new(
                "apiToken",
                ["users.properties.write"],
            )],
            Self::Transactional => vec![server_key("push.transactional")],
        })
    }

    /// Whether it takes an access token.
    pub(super) fn is_person(self) -> bool {
        matches!(
            self,
            Self::Member
                | Self::Administrator
                | Self::Viewer
                | Self::Editor
                | Self::Admin
                | Self::Operator
        )
    }
}
