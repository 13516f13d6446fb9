//! What a database can answer besides rows.

use sqlx::error::ErrorKind;

/// What PostgreSQL is made to say where changes that go together find other rows than they should.
pub(crate) const LOST_RACE: &str = "nudge: rows have changed meanwhile, this starts over";

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
#[derive(Debug, thiserror::Error)]
#[error("database error: {kind:?}")]
pub struct Error {
    kind: Kind,
    #[source]
    source: sqlx::Error,
}

impl Error {
    /// What kind of trouble it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the same work may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::Serialization)
    }

    /// A stored value that can't be read, with where it is.
    pub fn corrupt(
        table: &'static str,
        column: &'static str,
        cause: impl std::fmt::Display,
    ) -> Self {
        Self {
            kind: Kind::Corrupt,
            source: sqlx::Error::Decode(format!("{table}.{column}: {cause}").into()),
        }
    }

    /// Rows that a transaction began with are not what they were: it lost against another one and can be
    /// tried again.
    pub fn lost_race() -> Self {
        Self {
            kind: Kind::Serialization,
            source: sqlx::Error::RowNotFound,
        }
    }

    /// A failure outside SQL that makes the database unusable for now.
    pub fn unavailable(cause: std::io::Error) -> Self {
        Self {
            kind: Kind::Unavailable,
            source: sqlx::Error::Io(cause),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(source: sqlx::Error) -> Self {
        Self {
            kind: kind_of(&source),
            source,
        }
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
            _ => database
                .code()
                .map_or(Kind::Other, |code| kind_of_code(&code)),
        },
        _ => Kind::Other,
    }
}

/// SQLite gives its extended result code as a decimal number, PostgreSQL five characters (SQLSTATE).
fn kind_of_code(code: &str) -> Kind {
    if code.len() == 5
        && let Some(class) = code.get(..2)
    {
        return match (class, code) {
            (_, "40001" | "40P01") => Kind::Serialization,
            ("08" | "53" | "57" | "58", _) | (_, "25006") => Kind::Unavailable,
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
        assert_eq!(kind_of_code("42601"), Kind::Other);
    }
}
