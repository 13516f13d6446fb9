//! What a database can answer besides rows.
//!
//! No error repeats a value: neither what was bound to a statement nor what is stored. PostgreSQL tells values in the
//! details of its errors, and in the messages of some; whoever logs an error has only what is kept of it here.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::{DatabaseError, ErrorKind, UnexpectedNullError};
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::reason::Reason;

/// What a database is made to say where changes that go together find other rows than they should.
pub(crate) const LOST_RACE: &str = "nudge: rows have changed meanwhile, this starts over";

/// What is said of a host that is reached and of no use.
const NO_WRITES: &str = "the database takes no writes: it is a standby, or read-only";

/// What distributed databases and poolers say, as if it were a defect of theirs, when a part of them can't be reached.
const AWAY: [&str; 6] = [
    "connection",
    "could not connect",
    "remote node",
    // A connection that ends in the middle of a statement: with TLS, as Citus' nodes have among them, and without.
    "SSL SYSCALL error",
    "data from server",
    // At the commit.
    "could not commit transaction for shard",
];

/// Classes of SQLSTATE whose messages name parts of the schema, sessions and resources at the most: connections,
/// constraints, transactions, catalogues, syntax and access, resources, states, operators, the system.
const SPEAKS_OF_NAMES: [&str; 13] = [
    "08", "23", "25", "26", "28", "3D", "40", "42", "53", "54", "55", "57", "58",
];

/// The result of everything in this package.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of trouble it is, alike for both databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A row that must be there is not.
    NotFound,
    /// A unique key is taken.
    Conflict,
    /// A reference points nowhere.
    ForeignKey,
    /// The transaction lost against another one and can be tried again (SQLSTATE 40001, 40P01).
    Serialization,
    /// The database can't be reached, is full, read-only or shutting down.
    Unavailable,
    /// A stored value does not have the form that the program gave it.
    Corrupt,
    /// Anything else: a defect in the program.
    Other,
}

/// A database error and its kind.
#[derive(Clone, Debug, thiserror::Error)]
#[error("database error: {kind:?}")]
pub struct Error {
    kind: Kind,
    reason: Option<Reason>,
    #[source]
    cause: Cause,
}

/// What the driver or the database said, without values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(Arc<str>);

impl Error {
    /// What kind of trouble it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Why, where an administrator can mend it.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Whether the same work may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::Serialization)
    }

    /// A stored value that can't be read, with where it is. What the cause quotes is left out.
    pub fn corrupt(
        table: &'static str,
        column: &'static str,
        cause: impl std::fmt::Display,
    ) -> Self {
        let cause = without_quoted(&cause.to_string());
        Self::new(Kind::Corrupt, format!("{table}.{column}: {cause}"))
    }

    /// Rows that a transaction began with are not what they were: it lost against another one and can be
    /// tried again.
    pub fn lost_race() -> Self {
        Self::new(
            Kind::Serialization,
            "rows are not what they were".to_owned(),
        )
    }

    /// A failure outside SQL that makes the database unusable for now.
    pub fn unavailable(cause: std::io::Error) -> Self {
        sqlx::Error::Io(cause).into()
    }

    /// What is configured can't be used. The text is the program's own, and has no value.
    pub(crate) fn misconfigured(text: &'static str) -> Self {
        Self::new(Kind::Other, format!("the database's configuration: {text}"))
    }

    /// A host was reached that takes no writes.
    pub(crate) fn standby() -> Self {
        Self {
            reason: Some(Reason::Standby),
            ..Self::new(Kind::Unavailable, NO_WRITES.to_owned())
        }
    }

    /// No connection became free in time.
    pub(crate) fn exhausted(most: u32, patience: Duration, who: &'static str) -> Self {
        let text = format!(
            "none of the {most} connections {who} became free within {} s: what holds them takes too long, or \
             `database.connections` is too low",
            patience.as_secs_f64()
        );
        Self::new(Kind::Unavailable, text)
    }

    /// Whether a host was reached that takes no writes.
    pub fn is_standby(&self) -> bool {
        &*self.cause.0 == NO_WRITES
    }

    fn new(kind: Kind, cause: String) -> Self {
        let cause = Cause(cause.into());
        Self {
            kind,
            reason: None,
            cause,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(source: sqlx::Error) -> Self {
        Self {
            reason: reason_of(&source),
            ..Self::new(kind_of(&source), told(&source))
        }
    }
}

/// Whether a connection can't be used any more after an error: it is broken, nobody has answered on it, or what is
/// behind it takes no writes, has gone, or has forgotten what was prepared.
pub(crate) fn breaks_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            is_fatal(&**database)
                || matches!(code.get(..2), Some("08"))
                || matches!(
                    &*code,
                    "25006" | "26000" | "42P05" | "57P01" | "57P02" | "57P03"
                )
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        _ => false,
    }
}

/// Whether PostgreSQL ends the connection with the error.
fn is_fatal(error: &dyn DatabaseError) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// What of an error may be told to anybody who reads logs.
pub(crate) fn told(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => told_by_database(&**database),
        // Causes of these quote what can't be read or written.
        sqlx::Error::ColumnDecode { index, source } => {
            format!("column {index} can't be decoded{}", harmless(&**source))
        }
        sqlx::Error::Decode(source) => format!("a value can't be decoded{}", harmless(&**source)),
        sqlx::Error::Encode(_) => "a parameter can't be encoded".to_owned(),
        sqlx::Error::Migrate(error) => match &**error {
            MigrateError::Execute(error) => format!("while executing migrations: {}", told(error)),
            MigrateError::ExecuteMigration(error, version) => {
                format!("while executing migration {version}: {}", told(error))
            }
            other => other.to_string(),
        },
        // URLs have passwords.
        sqlx::Error::Configuration(error) => {
            let cause = without_quoted(&error.to_string());
            format!("the database's configuration: {cause}")
        }
        other => other.to_string(),
    }
}

/// The cause of a value that can't be read, where it names types only.
fn harmless(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let text = cause.to_string();
    if cause.is::<UnexpectedNullError>() || text.starts_with("mismatched types") {
        format!(": {text}")
    } else {
        String::new()
    }
}

/// Code, message and place of an error of the database's. Details, hints and the like have the values of rows.
fn told_by_database(error: &dyn DatabaseError) -> String {
    let code = error.code().unwrap_or_default();
    let mut text = format!("the database refuses ({code})");
    let postgres = error.try_downcast_ref::<PgDatabaseError>();
    let message = match postgres {
        // Data, raised exceptions and others: messages quote what was found.
        Some(_) if !SPEAKS_OF_NAMES.contains(&code.get(..2).unwrap_or_default()) => None,
        Some(_) => Some(error.message().to_owned()),
        None => Some(without_quoted(error.message())),
    };
    let table = error.table();
    let column = postgres.and_then(PgDatabaseError::column);
    for (name, part) in [
        ("", message.as_deref()),
        (" table", table),
        (" column", column),
        (" constraint", error.constraint()),
    ] {
        if let Some(part) = part {
            // Writing to a String can't fail.
            let _ = write!(text, ";{name} {part}");
        }
    }
    text
}

/// A text without what stands between its first and its last quotation mark.
fn without_quoted(text: &str) -> String {
    const MARKS: [char; 3] = ['"', '\'', '`'];
    let (first, last) = (text.find(MARKS), text.rfind(MARKS));
    match first.zip(last) {
        Some((first, last)) => {
            let before = text.get(..first).unwrap_or_default();
            let after = text.get(last + 1..).unwrap_or_default();
            format!("{before}…{after}")
        }
        None => text.to_owned(),
    }
}

fn kind_of(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::RowNotFound => Kind::NotFound,
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Kind::Unavailable,
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => Kind::Corrupt,
        sqlx::Error::Database(database) => match database.kind() {
            ErrorKind::UniqueViolation => Kind::Conflict,
            ErrorKind::ForeignKeyViolation => Kind::ForeignKey,
            _ if database.message().contains(LOST_RACE) => Kind::Serialization,
            _ if is_away(&**database) => Kind::Unavailable,
            _ => database
                .code()
                .map_or(Kind::Other, |code| kind_of_code(&code)),
        },
        _ => Kind::Other,
    }
}

fn reason_of(error: &sqlx::Error) -> Option<Reason> {
    match error {
        sqlx::Error::Database(database) => Reason::of_code(&database.code()?),
        sqlx::Error::Migrate(error) => match &**error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                reason_of(error)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether an internal error (SQLSTATE XX000) means that a part of a distributed database can't be reached, or that a
/// pooler lets nobody in.
fn is_away(error: &dyn DatabaseError) -> bool {
    let message = error.message();
    error.code().is_some_and(|code| code == "XX000")
        && (is_fatal(error) || AWAY.iter().any(|part| message.contains(part)))
}

/// SQLite gives its extended result code as a decimal number, PostgreSQL five characters (SQLSTATE).
fn kind_of_code(code: &str) -> Kind {
    if code.len() == 5
        && let Some(class) = code.get(..2)
    {
        return match (class, code) {
            (_, "40001" | "40P01") => Kind::Serialization,
            // Besides: nobody may write here, a transaction was idle for too long, what was prepared is not there.
            ("08" | "53" | "57" | "58", _) | (_, "25006" | "25P03" | "26000" | "42P05") => {
                Kind::Unavailable
            }
            _ => Kind::Other,
        };
    }
    match code.parse::<i32>().map(|extended| extended & 0xff) {
        // BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN
        Ok(5 | 6 | 8 | 10 | 13 | 14) => Kind::Unavailable,
        // CORRUPT, NOTADB
        Ok(11 | 26) => Kind::Corrupt,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_told_apart() {
        assert_eq!(kind_of_code("13"), Kind::Unavailable);
        assert_eq!(kind_of_code("1032"), Kind::Unavailable);
        assert_eq!(kind_of_code("40001"), Kind::Serialization);
        assert_eq!(kind_of_code("57P01"), Kind::Unavailable);
        assert_eq!(kind_of_code("25006"), Kind::Unavailable);
        assert_eq!(kind_of_code("42601"), Kind::Other);
        assert_eq!(kind_of_code("XX000"), Kind::Other);
    }

    #[test]
    fn values_are_not_repeated() {
        let value = "ada@example.com";
        let decode = || -> Box<dyn std::error::Error + Send + Sync> {
            format!("invalid type: string {value:?}, expected a number").into()
        };
        for error in [
            Error::corrupt("surveys", "body", format!("unknown variant `{value}`")),
            Error::corrupt("surveys", "body", format!("{value:?}, \"or\" not")),
            sqlx::Error::Decode(decode()).into(),
            sqlx::Error::Encode(decode()).into(),
            sqlx::Error::ColumnDecode {
                index: "name".to_owned(),
                source: decode(),
            }
            .into(),
            sqlx::Error::Migrate(Box::new(MigrateError::ExecuteMigration(
                sqlx::Error::Decode(decode()),
                7,
            )))
            .into(),
        ] {
            let text = format!("{error:?} {}", error.cause);
            assert!(!text.contains("ada"), "{text}");
        }
        let null: sqlx::Error = sqlx::Error::Decode(Box::new(UnexpectedNullError));
        assert!(told(&null).contains("unexpected null"));
    }
}
