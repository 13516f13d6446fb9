//! `nudge check` only looks.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;
use tests::child::{self, complaint};
use tests::{postgres, site};

fn check(data: &Path, flags: &[&str]) -> Output {
    let mut program = child::program(site!());
    program.env("NUDGE_SECRETS__MASTER_KEY", "");
    program.args(["check", "--data-dir"]).arg(data);
    program.args(flags).output().unwrap()
}

/// What a server would make is made in a folder that is gone afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_makes_neither_a_database_nor_a_key() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let there = |path: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let data = folder.path().join("data");
    let output = check(&data, &[]);
    assert!(output.status.success(), "{}", complaint(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    let database = data.join("nudge.db");
    let expected = format!(
        "note: the server makes the database {} when it starts",
        database.display()
    );
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("that are not there yet"), "{said}");
    assert!(!said.contains("the database answers"), "{said}");
    assert_eq!(there(folder.path()), Vec::<String>::new());

    std::fs::create_dir(&data).unwrap();
    let other = format!("sqlite:{}", folder.path().join("other.db").display());
    let postgres = postgres::database().await;
    for arguments in [
        &[][..],
        &["--database-url", &other],
        &["--database-url", &postgres],
    ] {
        let output = check(&data, arguments);
        assert!(output.status.success(), "{}", complaint(&output));
        assert_eq!(there(&data), Vec::<String>::new(), "{arguments:?}");
        assert_eq!(there(folder.path()), ["data"], "{arguments:?}");
    }

    let lost = format!("sqlite:{}/none/nudge.db", folder.path().display());
    let output = check(&data, &["--database-url", &lost]);
    let refused = complaint(&output);
    let expected = "/none/nudge.db: can't open the database";
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(there(folder.path()), ["data"]);
}
