//! The kinds of campaigns that run by the calendar: the one place that knows them apart.

use nudge_db::{Result, Timestamp, Tx};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::apps;
use crate::audit::{self, Entry};
use crate::surveys::{self, Status};

/// A kind of campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A survey.
    Survey,
}

/// Where a campaign stands, as far as a run is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The run goes on.
    Runs,
    /// It waits.
    Rests,
    /// It is over, whatever is left of it.
    Over,
}

impl Kind {
    /// The kind's name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Survey => "survey",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Survey].into_iter().find(|kind| kind.name() == name)
    }

    /// Where a campaign stands.
    pub async fn standing(self, tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Standing> {
        match self {
            Self::Survey => {
                let survey = surveys::store::find(tx, app_id, id).await?;
                let status = survey.map_or(Status::Archived, |survey| survey.content.status);
                Ok(match status {
                    Status::Active => Standing::Runs,
                    Status::Draft | Status::Paused => Standing::Rests,
                    Status::Completed | Status::Archived => Standing::Over,
                })
            }
        }
    }

    /// Whether completing a campaign would take something back that people are still to get.
    pub async fn is_on_offer(
        self,
        tx: &mut Tx,
        app_id: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<bool> {
        match self {
            Self::Survey => super::store::any_on_offer(tx, app_id, id, now).await,
        }
    }

    /// Sets an active campaign `completed`, as the server; answers whether it was still active.
    pub async fn complete(
        self,
        tx: &mut Tx,
        app_id: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<bool> {
        let completed = match self {
            Self::Survey => surveys::complete(tx, app_id, id, now).await?,
        };
        if completed {
            apps::store::touch(tx, app_id, now).await?;
            let entry = Entry {
                app_id,
                actor: audit::SERVER,
                action: "campaign.completed",
                resource: format!("{}/{id}", self.name()),
                detail: json!({"because": "its run is over"}),
            };
            audit::record(tx, &entry, now).await?;
        }
        Ok(completed)
    }
}
