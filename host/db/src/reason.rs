//! What an administrator can do about an error.

/// Why a database does not do what it is asked to, where an administrator can mend that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It takes no more connections.
    TooManyConnections,
    /// It does not know the user, or the password is another one.
    Credentials,
    /// The server has no database of this name.
    NoSuchDatabase,
    /// It takes no writes: another one is the primary.
    Standby,
    /// Its disk is full.
    Full,
    /// Its files are damaged.
    Damaged,
    /// The user who runs the program can't write to its file or folder.
    ReadOnly,
}

impl Reason {
    /// By what PostgreSQL calls SQLSTATE, or SQLite's extended result code as a decimal number.
    pub(crate) fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "53300" => Self::TooManyConnections,
            "28P01" | "28000" => Self::Credentials,
            "3D000" => Self::NoSuchDatabase,
            "25006" => Self::Standby,
            "53100" => Self::Full,
            "XX001" | "XX002" => Self::Damaged,
            _ if code.len() == 5 => return None,
            _ => match code.parse::<i32>().map(|extended| extended & 0xff) {
                Ok(8) => Self::ReadOnly,
                Ok(13) => Self::Full,
                // CORRUPT, NOTADB
                Ok(11 | 26) => Self::Damaged,
                _ => return None,
            },
        })
    }

    /// What to do.
    pub fn next_step(self) -> &'static str {
        match self {
            Self::TooManyConnections => {
                "Raise the database's `max_connections`, or lower `database.connections` of the servers."
            }
            Self::Credentials => {
                "Mend the user or the password in `database.url`, or let this machine in by PostgreSQL's `pg_hba.conf`."
            }
            Self::NoSuchDatabase => {
                "Make it with `CREATE DATABASE`, or mend the name in `database.url`."
            }
            Self::Standby => "Name the primary in `database.url`, or all hosts of the cluster.",
            Self::Full => "Make room on the disk that the database is on.",
            Self::Damaged => "The database is damaged: restore a backup.",
            Self::ReadOnly => {
                "Run this as the user who owns the data directory, and let that user write to the database's file and folder."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_have_reasons() {
        for (code, reason) in [
            ("53300", Some(Reason::TooManyConnections)),
            ("53100", Some(Reason::Full)),
            ("53200", None),
            ("13", Some(Reason::Full)),
            ("267", Some(Reason::Damaged)),
            ("26", Some(Reason::Damaged)),
            // SQLITE_READONLY_DIRECTORY
            ("1544", Some(Reason::ReadOnly)),
            ("8", Some(Reason::ReadOnly)),
            ("5", None),
        ] {
            assert_eq!(Reason::of_code(code), reason, "{code}");
        }
    }
}
