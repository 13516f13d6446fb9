//! How a path names a person.
//!
//! An anonymous id is what any client calls itself: it may be the customer's own id of somebody else. So an answer says
//! as what the name was found, and the other person is asked for by what kind of id it is.

use nudge_db::Tx;
use nudge_http::{ApiError, Code};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::subjects::{AliasKind, store};

/// What a name in a path begins with that is an external id, whatever anonymous ids there are.
const EXTERNAL: &str = "externalId:";

/// A kind of id that people have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum IdKind {
    /// An SDK's.
    AnonymousId,
    /// The customer's own.
    ExternalId,
}

/// What kind of id a path has.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct NameQuery {
    /// What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
    /// anonymous id or, if nobody has it, an external id.
    id_kind: Option<IdKind>,
}

/// A person that a path names.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The subject.
    pub subject_id: Uuid,
    /// As what the name was found.
    pub matched_by: IdKind,
    /// Whether the name, as the other kind of id, is somebody else's.
    shadows: bool,
}

impl IdKind {
    fn alias(self) -> AliasKind {
        match self {
            Self::AnonymousId => AliasKind::Anonymous,
            Self::ExternalId => AliasKind::External,
        }
    }
}

impl Named {
    /// The person, if nobody else can be meant: for what can't be undone.
    pub fn unambiguous(self) -> Result<Self, ApiError> {
        if !self.shadows {
            return Ok(self);
        }
        let detail =
            "the id is one person's anonymousId and another one's externalId: say which is meant";
        Err(ApiError::field("/idKind", "required", detail))
    }
}

impl NameQuery {
    /// A query that says what the id is.
    pub fn of(id_kind: Option<IdKind>) -> Self {
        Self { id_kind }
    }

    /// Finds the person of a name. Nobody who is being deleted is found.
    pub async fn find(self, tx: &mut Tx, app_id: Uuid, name: &str) -> Result<Named, ApiError> {
        let (name, kind) = match (self.id_kind, name.strip_prefix(EXTERNAL)) {
            (None, Some(name)) => (name, Some(IdKind::ExternalId)),
            (kind, _) => (name, kind),
        };
        let mut found: Option<Named> = None;
        for matched_by in [IdKind::AnonymousId, IdKind::ExternalId] {
            if kind.is_some_and(|kind| kind != matched_by) {
                continue;
            }
            let person = store::find(tx, app_id, matched_by.alias(), name).await?;
            let Some(person) = person.filter(|person| !person.suppressed) else {
                continue;
            };
            match &mut found {
                None => {
                    found = Some(Named {
                        subject_id: person.subject_id,
                        matched_by,
                        shadows: false,
                    });
                }
                Some(found) => found.shadows = found.subject_id != person.subject_id,
            }
        }
        found.ok_or_else(|| ApiError::new(Code::NotFound))
    }
}
