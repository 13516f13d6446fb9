//! A survey's flow: its questions, branches and end screens (contract 7).

pub mod answer;
mod check;
pub mod condition;
pub mod question;
mod screen;
#[cfg(test)]
mod tests;
pub mod way;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use check::check;
pub use question::{Question, QuestionType, Spec};
pub use screen::{Button, ButtonAction, EndScreen};
pub use way::{Answers, End, Walker, Way};

/// Questions a flow may have.
pub const MOST_QUESTIONS: usize = 200;
/// Branches a flow may have.
pub const MOST_BRANCHES: usize = 500;
/// End screens a flow may have.
pub const MOST_END_SCREENS: usize = 50;

/// What a survey asks, in which order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flow {
    /// Where it begins; the first question unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_question_id: Option<String>,
    /// The questions.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Where answers lead; without one, to the next question.
    #[serde(default)]
    pub branches: Vec<Branch>,
    /// What is shown at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub end_screens: Vec<EndScreen>,
    /// How progress is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_style: Option<ProgressStyle>,
    /// Whether people can go back, and answer earlier questions otherwise.
    #[serde(default)]
    pub back_navigation: bool,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProgressStyle {
    Bar,
    Steps,
    Percent,
    None,
}

/// A way from one question to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its id within the flow.
    pub id: String,
    /// The question that it leaves.
    pub from: String,
    /// When it is taken; null is always.
    #[serde(default)]
    pub when: Option<Value>,
    /// Where it leads.
    pub to: Target,
}

/// Where a branch leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Target {
    /// To a question.
    QuestionId(String),
    /// To an end screen.
    EndScreenId(String),
}

impl Flow {
    /// The question with an id.
    pub fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }
}
