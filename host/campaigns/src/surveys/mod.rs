//! Surveys: what they ask, whom they wait for, and the form in which the pipeline runs them.

pub mod flow;
pub mod localization;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Timestamp, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

pub use crate::campaign::Status;
use crate::campaign::{ActiveCampaign, CampaignAction, Kind};
pub use crate::lifecycle::Error;
use crate::lifecycle::{self, Campaign, CommonContent, Content as _, Presented, check_terms};
use crate::runs::Manner;
use crate::segments::Audiences;
use crate::store::{self, Stored};
use crate::targeting::Schedule;
use crate::theme;
use crate::trigger::{self, BY_THE_CALENDAR, Terms};
use flow::Flow;
use localization::Localization;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::whole;
use nudge_plugin_runtime::{Deciders, Plugins};
pub use payload::Payload;
pub(crate) use payload::check as check_shown_object;

/// After this long without a sign of life nobody is taken to be answering any longer (contract 7).
pub const IDLE: Duration = Duration::from_mins(30);

/// The setting that makes instructions come with an attempt (specification 4.2).
const COORDINATED: &str = "coordinated";

/// The setting that says how a survey is presented, and its value for a button that stands ready.
const PRESENTATION: &str = "presentation";
const FEEDBACK_BUTTON: &str = "feedback_button";
/// The setting that makes the button go once the survey is complete.
const ONCE: &str = "once";

/// How a survey finds its people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// An event triggers it.
    #[default]
    Triggered,
    /// A schedule does.
    Scheduled,
    /// The app asks for it.
    OnDemand,
    /// Somebody follows a link.
    LinkOnly,
}

/// What people write of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SurveyContent)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// How it finds its people.
    #[serde(default)]
    pub mode: Mode,
    /// Where it stands.
    #[serde(default)]
    pub status: Status,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Which comes first when several fire; higher first.
    #[serde(default)]
    pub priority: i32,
    /// What triggers it, as the trigger plugin reads it.
    #[serde(
        default,
        deserialize_with = "trigger::read",
        skip_serializing_if = "Option::is_none"
    )]
    pub trigger: Option<Value>,
    /// What it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// What it asks in other languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub localization: Option<Localization>,
    /// Whom it is for, as the trigger plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Value>,
    /// When it runs (contract 8, Schedule).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
    /// How often a person meets it (contract 8, Frequency cap).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_cap: Option<Value>,
    /// How it looks: `{mode?, background?, text?, primary?, onPrimary?, dark?, radius?, font?, allowLowContrast?}`; text needs a contrast
    /// of 4.5:1 to its ground. Other members are handed to the SDK as they are. An object of at most 256 members and 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub theme: Option<Value>,
    /// How it behaves: `{presentation?, position?, closeable?, delaySeconds?, once?, coordinated?}`. Other members are handed to the SDK as they
    /// are, and limited as `theme` is. With `coordinated: true`, instructions come with an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub settings: Option<Value>,
}

impl Content {
    /// What a trigger plugin decides by.
    pub fn terms(&self) -> Terms<'_> {
        let by_the_calendar = Some(&*BY_THE_CALENDAR);
        let trigger = if self.is_feedback() {
            // Whatever it would wait for: the button is there for its audience.
            let names_plugin =
                |trigger: &&Value| trigger.get("kind").and_then(Value::as_str) == Some("plugin");
            self.trigger
                .as_ref()
                .filter(names_plugin)
                .or(by_the_calendar)
        } else {
            match self.mode {
                Mode::Triggered | Mode::OnDemand => self.trigger.as_ref(),
                Mode::Scheduled => self.trigger.as_ref().or(by_the_calendar),
                // Whatever it would wait for: who has no link does not meet it.
                Mode::LinkOnly => None,
            }
        };
        Terms {
            trigger,
            audience: self.audience.as_ref(),
        }
    }
}

/// A survey.
pub type Survey = Campaign<Content>;

impl lifecycle::Content for Content {
    const KIND: Kind = Kind::Survey;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[
        ("mode", r#""triggered""#),
        ("status", r#""draft""#),
        ("priority", "0"),
    ];

    fn common(&self) -> CommonContent<'_> {
        CommonContent {
            status: self.status,
            priority: self.priority,
            trigger: self.trigger.as_ref(),
            audience: self.audience.as_ref(),
            schedule: self.schedule.as_ref(),
            frequency_cap: self.frequency_cap.as_ref(),
        }
    }

    fn terms(&self) -> Terms<'_> {
        Self::terms(self)
    }

    fn manner(&self) -> Manner {
        match self.mode {
            _ if self.is_feedback() => Manner::Never,
            Mode::Triggered => Manner::Triggered,
            Mode::Scheduled => Manner::Scheduled,
            Mode::OnDemand | Mode::LinkOnly => Manner::Never,
        }
    }

    async fn validate(
        &self,
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        before: Option<&Self>,
    ) -> Result<(), Error> {
        check(plugins, deciders, segments, self, before).await
    }
}

impl Presented for Content {
    async fn run(
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        survey: &Survey,
        before: Option<&ActiveCampaign>,
    ) -> Result<ActiveCampaign, Error> {
        let payload = Payload::new(survey.id, survey.version, &survey.content);
        let action = CampaignAction::Present(Arc::new(payload));
        lifecycle::active(plugins, deciders, segments, survey, action, before).await
    }
}

/// Everything that must hold before a survey is saved. `before` is what it said until now.
///
/// What a survey waits for is not asked of its plugin again where nothing of it changes and it does not run: a
/// survey whose plugin has become another can always be stopped.
async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    content: &Content,
    before: Option<&Content>,
) -> Result<(), Error> {
    if content.name.is_empty() || content.name.chars().count() > 200 {
        return Err(Error::Invalid(vec![FieldError::new(
            "/name",
            "invalid",
            "a name has 1 to 200 characters",
        )]));
    }
    if let Some(flow) = &content.flow {
        let errors = flow::check(flow);
        // A key that nothing has is a typo like any other (contract 0), not a flow that can't be walked.
        if errors.iter().any(|error| error.code == "unknown_key") {
            return Err(Error::Invalid(errors));
        }
        if !errors.is_empty() {
            return Err(Error::InvalidFlow(errors));
        }
    }
    check_shown(content, before)?;
    content.compile().map_err(Error::Invalid)?;
    check_texts(content)?;
    check_terms(plugins, deciders, segments, content, before).await?;
    if content.status == Status::Active {
        let errors = not_activatable(content);
        if !errors.is_empty() {
            return Err(Error::NotActivatable(errors));
        }
    }
    Ok(())
}

fn not_activatable(content: &Content) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if content
        .flow
        .as_ref()
        .is_none_or(|flow| flow.questions.is_empty())
    {
        errors.push(FieldError::new(
            "/flow/questions",
            "required",
            "an active survey asks at least one question",
        ));
    }
    if content.mode == Mode::Triggered && content.trigger.is_none() && !content.is_feedback() {
        errors.push(FieldError::new(
            "/trigger",
            "required",
            "an active triggered survey has a trigger",
        ));
    }
    errors
}

/// What of a survey is checked beside its flow: texts in other languages, and the one setting that the server reads.
fn check_texts(content: &Content) -> Result<(), Error> {
    if let Some(localization) = &content.localization {
        let flow = payload::document(content.flow.as_ref());
        let errors = localization.check(&flow);
        if !errors.is_empty() {
            return Err(Error::Invalid(errors));
        }
    }
    let coordinated = content
        .settings
        .as_ref()
        .and_then(|settings| settings.get(COORDINATED));
    if coordinated.is_some_and(|value| !value.is_boolean()) {
        let pointer = format!("/settings/{COORDINATED}");
        let error = FieldError::new(pointer, "invalid", "true or false");
        return Err(Error::Invalid(vec![error]));
    }
    Ok(())
}

/// Checks what is handed to SDKs as it is. What was there before there were limits may stay.
fn check_shown(content: &Content, before: Option<&Content>) -> Result<(), Error> {
    let parts = [
        ("theme", &content.theme, before.map(|before| &before.theme)),
        (
            "settings",
            &content.settings,
            before.map(|before| &before.settings),
        ),
    ];
    let mut errors = Vec::new();
    for (key, part, known) in parts {
        if let Some(part) = part
            && known.is_none_or(|known| known.as_ref() != Some(part))
        {
            if key == "theme" {
                theme::check(part, &mut errors)?;
            } else {
                theme::check_settings(part, &mut errors);
            }
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(errors))
    }
}

impl Content {
    /// Whether it is opened by a button that stands ready for its audience.
    pub fn is_feedback(&self) -> bool {
        self.setting(PRESENTATION) == Some(&Value::from(FEEDBACK_BUTTON))
    }

    /// Whether that button goes once the survey is complete.
    pub fn is_once(&self) -> bool {
        self.setting(ONCE) == Some(&Value::Bool(true))
    }

    fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.as_ref()?.get(name)
    }

    /// Whether its schedule has begun and is not over. Days and hours are not asked: who opens a survey is not disturbed by it.
    pub fn is_open_at(&self, now: Timestamp) -> bool {
        let schedule = Schedule::read(self.schedule.as_ref(), "/schedule");
        schedule.is_ok_and(|schedule| schedule.is_within(now))
    }

    /// Whether instructions come with an attempt, so that no request starts one.
    pub fn is_coordinated(&self) -> bool {
        self.setting(COORDINATED) == Some(&Value::Bool(true))
    }
}

/// How many complete attempts end a survey (`schedule.maxResponses`, contract 8), as its body says.
pub async fn max_responses(tx: &mut Tx, app_id: Uuid, id: Uuid) -> nudge_db::Result<Option<i64>> {
    let body = store::body_of(tx, app_id, id).await?;
    Ok(body.as_ref().and_then(responses_of))
}

/// The same of a survey that was read.
pub fn max_responses_of(survey: &Stored) -> nudge_db::Result<Option<i64>> {
    let body: Value = store::parse(&survey.body)?;
    Ok(responses_of(&body))
}

fn responses_of(body: &Value) -> Option<i64> {
    whole(body.pointer("/schedule/maxResponses")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_responses_that_end_a_survey_are_read_however_they_are_written() {
        let most = |most: Value| responses_of(&json!({"schedule": {"maxResponses": most}}));
        assert_eq!(most(json!(7)), Some(7));
        assert_eq!(most(json!(7.0)), Some(7));
        assert_eq!(most(json!(null)), None);
    }
}
