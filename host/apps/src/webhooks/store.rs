//! New messages in the database.

use std::collections::HashSet;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::Message;

/// A message that was added.
#[derive(nudge_db::FromRow)]
struct AddedRow {
    id: Uuid,
    node: Option<Uuid>,
}

/// Adds messages; answers those that are claimed. One that is there already stays as it is: each type is sent once for a
/// source. Those of an endpoint that is disabled are held, whatever a snapshot said; those of one that is gone are nobody's.
/// One whose source has an earlier one that may still arrive is claimed by nobody, whatever was wished.
pub(super) async fn insert(
    tx: &mut Tx,
    app_id: Uuid,
    messages: &[Message],
    now: Timestamp,
) -> Result<HashSet<Uuid>> {
    let mut claimed = HashSet::new();
    for chunk in messages.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|message| message.id))
            .uuids(chunk.iter().map(|message| message.webhook_id))
            .uuids(chunk.iter().map(|message| message.subject_id))
            .uuids(chunk.iter().map(|message| message.source_id))
            .uuids(chunk.iter().map(|message| message.position))
            .texts(chunk.iter().map(|message| message.event.name().to_owned()))
            .texts(chunk.iter().map(|message| message.body.clone()))
            .uuids(chunk.iter().map(|message| message.node));
        let added: Vec<AddedRow> = tx
            .with_rows(
                "v(id, webhook_id, subject_id, delivery_id, position, event_type, body, node)",
                rows,
            )
            .push(
                " INSERT INTO webhook_messages (id, app_id, webhook_id, subject_id, delivery_id, position, event_type,
                                                body, state, attempts, created_at, due_at, node)
                  SELECT v.id, w.app_id, w.id, v.subject_id, v.delivery_id, v.position, v.event_type, v.body,
                         CASE WHEN w.disabled_at IS NULL THEN 'pending' ELSE 'held' END, 0, ",
            )
            .push_bind(now)
            .push(", CASE WHEN w.disabled_at IS NULL THEN ")
            .push_bind(now)
            .push(
                " END,
                  CASE WHEN w.disabled_at IS NULL AND NOT EXISTS (SELECT 1 FROM webhook_messages e
                      WHERE e.webhook_id = v.webhook_id AND e.delivery_id = v.delivery_id AND e.due_at IS NOT NULL)
                  THEN v.node END
                  FROM v JOIN webhooks w ON w.id = v.webhook_id WHERE w.app_id = ",
            )
            .push_bind(app_id)
            .push(" ON CONFLICT (id) DO NOTHING RETURNING id, node")
            .fetch_all()
            .await?;
        let added = added.into_iter().filter(|row| row.node.is_some());
        claimed.extend(added.map(|row| row.id));
    }
    Ok(claimed)
}
