//! SQLite for the tests: files with the schema.
#![expect(
    clippy::expect_used,
    reason = "test support: a test without its database fails where it stands"
)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nudge_db::{Db, Options};
use nudge_platform::schema::migrations;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// Makes a database with the schema: a copy of the process's first one, which costs a fraction of what making the schema
/// does.
pub(crate) async fn copy_migrated(path: &Path) {
    static TEMPLATE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(migrated).await;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(template));
    written.expect("the folder is ours");
}

async fn migrated() -> Vec<u8> {
    let folder = TempDir::with_prefix("nudge-schema-").expect("a folder for the database");
    let path = folder.path().join("nudge.db");
    let url = format!("sqlite:{}", path.display());
    let db = Db::open(&Options::new(url, 1)).await.expect("it opens");
    db.migrate(&migrations()).await.expect("the schema is made");
    // The log is folded into the file.
    db.close().await;
    std::fs::read(path).expect("the database was made")
}
