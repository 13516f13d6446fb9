//! What differs between the two databases.

/// The database behind a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Embedded SQLite: one process, one writer.
    Sqlite,
    /// PostgreSQL, or a database that speaks its protocol: any number of processes.
    Postgres,
}

/// When what a transaction changed is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once its commit returns.
    Full,
    /// With the next commit that is durable in full. Until then a crash of the machine may lose it, one of the program may not.
    Delayed,
}

impl Dialect {
    /// Locks selected rows and passes over those that another process holds.
    ///
    /// SQLite: nothing, it has one writer. PostgreSQL: ` FOR UPDATE SKIP LOCKED`.
    pub fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Locks selected rows until the transaction ends.
    ///
    /// SQLite: nothing, it has one writer. PostgreSQL: ` FOR UPDATE`.
    pub fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE",
        }
    }

    /// What a query ends with whose rows nobody removes or locks `FOR UPDATE` until the transaction ends, while
    /// others may change what no key is made of: ` FOR KEY SHARE` on PostgreSQL, nothing on SQLite, which has one
    /// writer.
    pub fn for_key_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR KEY SHARE",
        }
    }

    /// Keeps selected rows from being changed until the transaction ends; others may do the same.
    ///
    /// SQLite: nothing, it has one writer. PostgreSQL: ` FOR SHARE`.
    pub fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR SHARE",
        }
    }
}
