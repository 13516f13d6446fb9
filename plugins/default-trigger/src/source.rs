//! Kinds of triggers: which events they listen for, and what they ask of them besides filters.

use nudge_guest::Cell;
use nudge_guest::config::Node;

/// What the host calls the event of a changed property of a subject.
pub(crate) const PROPERTY_CHANGED: &str = "$property_changed";

/// What the host calls the event of a campaign's own occasion.
pub(crate) const SCHEDULED: &str = "$scheduled";
/// What the host calls the event that a session begins with, when it says that one does.
pub(crate) const SESSION_BEGAN: &str = "$session_began";

/// A trigger's kind.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Events of a name.
    Event([String; 1]),
    /// Views of a screen. SDKs differ in how they name the event and the property.
    Screen {
        names: [String; 2],
        screen: String,
        columns: [usize; 3],
    },
    /// The beginning of a session: the host says so, or the SDK.
    Session([String; 2]),
    /// A change of a subject's property.
    Property {
        names: [String; 1],
        change: Change,
        /// The columns of `key`, `from` and `to`.
        columns: [usize; 3],
    },
    /// The campaign's own occasion: its schedule has come round, or somebody began it.
    Occasion([String; 1]),
}

/// Which change of a property.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: String,
    pub(crate) from: Option<Scalar>,
    pub(crate) to: Option<Scalar>,
}

/// A value that a property can have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    /// None: the property was not there, or is no more.
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
}

impl Source {
    pub(crate) fn event(name: &str) -> Self {
        Self::Event([name.to_owned()])
    }

    pub(crate) fn screen(screen: &str, paths: &mut Vec<String>) -> Self {
        Self::Screen {
            names: ["screen_viewed", "screen_view"].map(str::to_owned),
            screen: screen.to_owned(),
            columns: columns(["screenName", "screen_name", "name"], paths),
        }
    }

    pub(crate) fn session() -> Self {
        Self::Session([SESSION_BEGAN, "session_started"].map(str::to_owned))
    }

    pub(crate) fn property(change: Change, paths: &mut Vec<String>) -> Self {
        Self::Property {
            names: [PROPERTY_CHANGED.to_owned()],
            change,
            columns: columns(["key", "from", "to"], paths),
        }
    }

    pub(crate) fn occasion() -> Self {
        Self::Occasion([SCHEDULED.to_owned()])
    }

    pub(crate) fn event_names(&self) -> &[String] {
        match self {
            Self::Event(names) | Self::Property { names, .. } | Self::Occasion(names) => names,
            Self::Screen { names, .. } | Self::Session(names) => names,
        }
    }

    /// Whether it is about sessions, which fire once each however often somebody says that one began.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }

    /// Whether it is an event of this source, but for filters.
    pub(crate) fn matches<'c>(&self, name: &str, cell: &dyn Fn(usize) -> Cell<'c>) -> bool {
        if !self.event_names().iter().any(|known| known == name) {
            return false;
        }
        match self {
            Self::Screen {
                screen, columns, ..
            } => columns.iter().find_map(|column| cell(*column).text()) == Some(screen.as_str()),
            Self::Property {
                change,
                columns: [key, from, to],
                ..
            } => {
                cell(*key).text() == Some(change.key.as_str())
                    && change
                        .from
                        .as_ref()
                        .is_none_or(|value| value.equals(cell(*from)))
                    && change
                        .to
                        .as_ref()
                        .is_none_or(|value| value.equals(cell(*to)))
            }
            Self::Event(_) | Self::Session(_) | Self::Occasion(_) => true,
        }
    }
}

impl Scalar {
    pub(crate) fn of(node: &Node<'_>) -> Option<Self> {
        Some(match node {
            Node::Null => Self::Null,
            Node::Boolean(boolean) => Self::Boolean(*boolean),
            Node::Number(number) => Self::Number(*number),
            Node::Text(text) => Self::Text(text.clone().into_owned()),
            Node::Array(_) | Node::Object(_) => return None,
        })
    }

    #[expect(clippy::float_cmp, reason = "it is about the number that was sent")]
    fn equals(&self, cell: Cell<'_>) -> bool {
        match self {
            Self::Null => !cell.present(),
            Self::Boolean(boolean) => cell.boolean() == Some(*boolean),
            Self::Number(number) => cell.number().is_some_and(|cell| cell == *number),
            Self::Text(text) => cell.text() == Some(text.as_str()),
        }
    }
}

fn columns(names: [&str; 3], paths: &mut Vec<String>) -> [usize; 3] {
    names.map(|name| {
        paths
            .iter()
            .position(|path| path == name)
            .unwrap_or_else(|| {
                paths.push(name.to_owned());
                paths.len() - 1
            })
    })
}
