//! Configurations: JSON that people write, so every mistake in it is named by its place.
//!
//! Most plugins derive [`serde::Deserialize`] for their configuration and need nothing of this module.
//! Those that want to report several mistakes at once, with codes of their own, read a [`Node`] with the
//! help of [`Place`] and [`Problems`], and implement [`Config`] themselves.

mod node;
mod place;
mod pointer;
mod quick;

use serde::de::DeserializeOwned;

pub use node::Node;
pub use place::{Place, Problems};

use crate::declaration::Problem;

/// A plugin's configuration.
///
/// Everything that implements [`serde::Deserialize`] is one. What does not fit its type is reported as
/// the problem `invalid`, with a pointer to the place where reading stopped.
pub trait Config: Sized {
    /// Reads it from JSON text.
    fn parse(text: &str) -> Result<Self, Vec<Problem>>;
}

impl<T: DeserializeOwned> Config for T {
    fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        serde_json::from_str(text).map_err(|error| vec![problem(text, &error)])
    }
}

/// Says where and why reading stopped.
fn problem(text: &str, error: &serde_json::Error) -> Problem {
    let code = if error.is_data() {
        "invalid"
    } else {
        "malformed_json"
    };
    Problem::new(
        code,
        pointer::at(text, error.line(), error.column()),
        error.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Sample {
        name: String,
        limits: Vec<u32>,
    }

    fn pointer_of(text: &str) -> String {
        Sample::parse(text).unwrap_err().remove(0).pointer
    }

    #[test]
    fn what_serde_rejects_is_a_problem_with_its_place() {
        assert_eq!(pointer_of(r#"{"name": 7, "limits": []}"#), "/name");
        assert_eq!(
            pointer_of("{\"name\": \"a\",\n \"limits\": [1, 2, \"x\"]}"),
            "/limits/2"
        );
        assert_eq!(
            pointer_of(r#"{"name": "a", "limits": [], "more": 1}"#),
            "/more"
        );
        assert_eq!(pointer_of(r#"{"name": "a"}"#), "");
    }

    #[test]
    fn text_that_is_not_json_says_so() {
        let problems = Sample::parse(r#"{"name": "#).unwrap_err();
        assert_eq!(problems[0].code, "malformed_json");
    }
}
