//! What a plugin is told of one subject and of an event of theirs.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_db::{Timestamp, Tx};
use nudge_records::events::store::Stored;
use nudge_wasm::trigger;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::ONLY;
use crate::facts::{Ledger, Read, View};
use crate::projection::Subject;
use crate::services::Services;
use crate::store::{self, plugin_states};

/// How much of a subject a plugin is to know.
pub(super) struct ViewScope<'a> {
    /// The campaigns of which it is told its state.
    campaigns: &'a [&'a ActiveCampaign],
    /// Events from this number on have not happened.
    before: i64,
    /// Facts are as of this instant.
    until: Timestamp,
}

impl<'a> ViewScope<'a> {
    pub(super) fn new(campaigns: &'a [&'a ActiveCampaign], before: i64, until: Timestamp) -> Self {
        Self {
            campaigns,
            before,
            until,
        }
    }
}

/// What is known of a subject as of before an event, as far as it is still known.
pub(super) async fn view(
    tx: &mut Tx,
    services: &Services,
    app: &App,
    mut subject: Subject,
    scope: ViewScope<'_>,
) -> nudge_db::Result<View> {
    subject.last_seq = scope.before - 1;
    let properties = store::properties(tx, app.id, &[subject.id]).await?;
    let pairs = scope.campaigns.iter().map(|it| (it.id, subject.id));
    let mut stored = plugin_states::read(tx, app.id, pairs.collect()).await?;
    stored.retain(|(id, _), stored| {
        let running = scope.campaigns.iter().find(|it| it.id == *id);
        running.is_some_and(|it| it.accepted.inherits(stored.plugin.as_deref()))
    });
    let beside = stored.iter();
    let beside = beside.map(|((campaign, _), stored)| (ONLY, *campaign, stored.clone()));
    let read = Read::beside(beside);
    let states = scope
        .campaigns
        .iter()
        .enumerate()
        .filter_map(|(number, running)| {
            let stored = stored.remove(&(running.id, subject.id))?;
            Some(((number, ONLY), stored.state))
        });
    let states = states.collect();
    let ledger = Ledger {
        app_id: app.id,
        db: services.db.clone(),
        runtime: Handle::current(),
        subjects: vec![subject],
        properties,
        read,
        states,
        earlier: Vec::new(),
        aliases: HashMap::new(),
        until: scope.until,
    };
    Ok(View {
        ledger: Arc::new(Mutex::new(ledger)),
        campaigns: (0..scope.campaigns.len()).collect(),
        transcript: None,
    })
}

pub(super) fn session(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn as_item(
    stored: &Stored,
    session: u32,
    timer: Option<trigger::Timer>,
    received: i64,
) -> trigger::Item {
    let event = &stored.event;
    trigger::Item {
        subject: ONLY,
        event_id: event.id,
        name: Arc::clone(&event.name),
        timestamp: event.timestamp.0,
        received,
        session,
        properties: Arc::clone(&event.properties),
        timer,
    }
}
