//! Surveys and campaigns that name segments, as each kind reads what it says: a broadcast, a button or a survey behind a link
//! waits for nothing, whatever trigger was left in it.

use std::collections::{BTreeSet, HashMap, HashSet};

use nudge_db::{Error, Result, Tx};
use serde::Deserialize;
use uuid::Uuid;

use super::Watch;
use crate::campaign::Kind;
use crate::trigger::Terms;
use crate::{in_app, push, store, surveys};

/// Bodies that are read at a time: one may have a quarter of a megabyte.
const BODIES: usize = 16;

/// A survey or campaign as it is stored.
#[derive(nudge_db::FromRow)]
pub(super) struct Row {
    id: Uuid,
    kind: String,
    body: String,
}

/// What of a survey or campaign tells how it uses segments.
pub(super) struct User<'a> {
    /// What people call it.
    pub(super) name: &'a str,
    /// Whether anything can fire it.
    waits: bool,
    /// What it decides by.
    pub(super) terms: Terms<'a>,
}

impl Row {
    /// Reads the row, for as long as it takes to look at it: what is read takes many times as much as the text.
    pub(super) fn look<T>(&self, at: impl FnOnce(&User<'_>) -> T) -> Result<T> {
        let kind = Kind::parse(&self.kind);
        let kind = kind.ok_or_else(|| Error::corrupt("campaigns", "kind", &self.kind))?;
        Ok(match kind {
            Kind::Survey => {
                let content: surveys::Content = store::parse(&self.body)?;
                at(&User {
                    name: &content.name,
                    waits: true,
                    terms: content.terms(),
                })
            }
            Kind::Push => {
                let content: push::Content = store::parse(&self.body)?;
                at(&User {
                    name: &content.name,
                    waits: content.mode != push::Mode::Transactional,
                    terms: content.terms(),
                })
            }
            Kind::InApp => {
                let content: in_app::Content = store::parse(&self.body)?;
                at(&User {
                    name: &content.name,
                    waits: true,
                    terms: content.terms(),
                })
            }
        })
    }
}

/// The surveys and campaigns that name any of some segments, and were not put away.
pub(super) async fn all(tx: &mut Tx, app_id: Uuid, ids: &BTreeSet<Uuid>) -> Result<Vec<Row>> {
    tx.sql(
        "SELECT c.id, c.kind, c.body FROM campaigns c WHERE c.app_id = $1 AND c.status <> 'archived' AND c.id IN (
            SELECT u.user_id FROM segment_uses u WHERE u.app_id = $1 AND u.segment_id IN ",
    )
    .bind(app_id)
    .push_list(ids.iter().copied())
    .push(") ORDER BY c.id")
    .fetch_all()
    .await
}

/// Whether a campaign that runs waits for changes of a segment, so that it is known who is in it.
pub(crate) async fn is_watched(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let users: Vec<Uuid> = tx
        .sql("SELECT user_id FROM segment_uses WHERE app_id = $1 AND segment_id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_values()
        .await?;
    let watches = watches_of(tx, app_id, users).await?;
    Ok(watches.iter().any(|(_, watch)| watch.segment_id == id))
}

/// The campaigns that run and wait for changes of segments.
///
/// # Errors
///
/// Those of the database.
pub async fn watches(tx: &mut Tx, app_id: Uuid) -> Result<HashSet<(Uuid, Watch)>> {
    let users: Vec<Uuid> = tx
        .sql("SELECT DISTINCT user_id FROM segment_uses WHERE app_id = $1")
        .bind(app_id)
        .fetch_values()
        .await?;
    watches_of(tx, app_id, users).await
}

async fn watches_of(tx: &mut Tx, app_id: Uuid, users: Vec<Uuid>) -> Result<HashSet<(Uuid, Watch)>> {
    let mut watches = HashSet::new();
    for chunk in users.chunks(BODIES) {
        let rows: Vec<Row> = tx
            .sql("SELECT id, kind, body FROM campaigns WHERE app_id = $1 AND status = 'active' AND id IN ")
            .bind(app_id)
            .push_list(chunk.iter().copied())
            .fetch_all()
            .await?;
        for row in rows {
            let watch = row.look(|user| user.terms.watch().filter(|_| user.waits))?;
            watches.extend(watch.map(|watch| (row.id, watch)));
        }
    }
    Ok(watches)
}

/// What people call some surveys and campaigns.
pub(super) async fn names(
    tx: &mut Tx,
    app_id: Uuid,
    ids: &BTreeSet<Uuid>,
) -> Result<HashMap<Uuid, String>> {
    #[derive(nudge_db::FromRow)]
    struct BodyRow {
        id: Uuid,
        body: String,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let ids: Vec<Uuid> = ids.iter().copied().collect();
    let mut names = HashMap::with_capacity(ids.len());
    for chunk in ids.chunks(BODIES) {
        let rows: Vec<BodyRow> = tx
            .sql("SELECT id, body FROM campaigns WHERE app_id = $1 AND id IN ")
            .bind(app_id)
            .push_list(chunk.iter().copied())
            .fetch_all()
            .await?;
        for row in rows {
            if let Ok(Named { name }) = serde_json::from_str(&row.body) {
                names.insert(row.id, name);
            }
        }
    }
    Ok(names)
}
