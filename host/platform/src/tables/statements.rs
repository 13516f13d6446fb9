//! What is done to all tables alike: rows of an app and of a person are removed, those of two people become one's.

use nudge_db::{Result, Statement, Tx};
use uuid::Uuid;

use super::{Erase, Merged, OfApp, Personal, Store, Table};

impl Table {
    /// Removes some rows of the app `$1`, `$2` at the most, and changes nothing once none is found. None: there is no
    /// quick way to them.
    pub fn empty<'t>(&self, tx: &'t mut Tx) -> Option<Statement<'t>> {
        let begun = self.delete(tx);
        let found = match self.of_app {
            OfApp::Alias => self.keys(begun).push(
                "alias_number IN (SELECT number FROM aliases WHERE app_id = $1 ORDER BY kind, value LIMIT $2)",
            ),
            OfApp::Subject => self.keys(begun).push(
                "subject_id IN (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2)",
            ),
            OfApp::Selected(query) => begun.push(query),
            OfApp::Owner(order) => self.keys(begun).push("app_id = $1 ORDER BY ").push(order),
            OfApp::Indexed => self.keys(begun).push("app_id = $1"),
            OfApp::Unindexed | OfApp::No => return None,
        };
        Some(found.push(" LIMIT $2)"))
    }

    /// Removes some rows of the app `$1`, `$2` at the most, however long it takes to find them.
    pub fn remove_lost<'t>(&self, tx: &'t mut Tx) -> Statement<'t> {
        let begun = self.delete(tx);
        self.keys(begun).push("app_id = $1 LIMIT $2)")
    }

    /// Counts one if there is a row of the app `$1`, however long it takes to find it.
    pub fn look_for_lost<'t>(&self, tx: &'t mut Tx) -> Statement<'t> {
        tx.sql("SELECT count(*) AS count FROM (SELECT 1 AS one FROM ")
            .push(self.name)
            .push(" WHERE app_id = $1 LIMIT 1) AS found")
    }

    fn delete<'t>(&self, tx: &'t mut Tx) -> Statement<'t> {
        let begun = tx.sql("DELETE FROM ").push(self.name);
        begun.push(" WHERE (").push(self.key).push(") IN (")
    }

    /// A query for keys, up to its condition.
    fn keys<'t>(&self, begun: Statement<'t>) -> Statement<'t> {
        let begun = begun.push("SELECT ").push(self.key).push(" FROM ");
        begun.push(self.name).push(" WHERE ")
    }
}

impl Store {
    /// Gives the loser's rows to the winner, of which it becomes a part, unless [`Merged`] says that something else does.
    pub async fn merge(&self, tx: &mut Tx, app_id: Uuid, winner: Uuid, loser: Uuid) -> Result<()> {
        let name = self.table.name;
        let unless: &[&str] = match self.merged {
            Merged::Moved => &[],
            Merged::MovedUnless(columns) => columns,
            Merged::Apart | Merged::Stays => return Ok(()),
        };
        // Each of these tables has an index of subjects.
        let of_loser = " WHERE (app_id = $1) IS TRUE AND subject_id = $3";
        let moved = tx.sql("UPDATE ").push(name).push(" SET subject_id = $2");
        let mut moved = moved.push(of_loser);
        if !unless.is_empty() {
            moved = moved.push(" AND NOT EXISTS (SELECT 1 FROM ").push(name);
            moved = moved.push(" own WHERE own.subject_id = $2");
            for column in unless {
                moved = moved.push(" AND own.").push(column).push(" = ");
                moved = moved.push(name).push(".").push(column);
            }
            moved = moved.push(")");
        }
        moved
            .bind(app_id)
            .bind(winner)
            .bind(loser)
            .execute()
            .await?;
        if !unless.is_empty() {
            let left = tx.sql("DELETE FROM ").push(name).push(of_loser);
            let left = left.push(" AND subject_id <> $2");
            left.bind(app_id).bind(winner).bind(loser).execute().await?;
        }
        Ok(())
    }

    /// Erases some rows of the app `$1`, `$3` at the most, and changes nothing once none is left. `$2` is the job
    /// for rows of aliases, else the subject.
    pub fn erase<'t>(&self, tx: &'t mut Tx) -> Statement<'t> {
        let table = self.table;
        let begun = match self.erase {
            Erase::Delete => table.delete(tx),
            Erase::Set(text) => {
                let begun = tx.sql("UPDATE ").push(table.name).push(" SET ").push(text);
                begun.push(" WHERE (").push(table.key).push(") IN (")
            }
        };
        let found = match self.rows {
            Personal::Selected(query) => begun.push(query),
            Personal::Where(condition) => table.keys(begun).push(condition),
            Personal::Alias => table.keys(begun).push(
                "(app_id = $1) IS TRUE AND alias_number IN (SELECT alias_number FROM suppressions WHERE job_id = $2)",
            ),
        };
        found.push(" LIMIT $3)")
    }
}
