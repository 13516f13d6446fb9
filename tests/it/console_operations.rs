//! What the console does of what the API can: each management operation is asked by the console in a browser test, or
//! has a reason why it is not. Its row in `host/src/openapi/operations.json` says so.

use std::collections::BTreeSet;
use std::path::Path;

use nudge::openapi::operations::{ConsolePlace, Operation};
use tests::{Backend, Credential, TestApp, site};

use crate::browser;

/// Whether a path is of a route.
fn is_of(path: &str, route: &str) -> bool {
    let parts = || route.split('/').zip(path.split('/'));
    route.split('/').count() == path.split('/').count()
        && parts()
            .all(|(wanted, given)| wanted == given || wanted.starts_with('{') && !given.is_empty())
}

/// An operation and where it is done.
type Row = (String, ConsolePlace);

/// The operations that have a place.
fn rows() -> Vec<Row> {
    let all = Operation::all().unwrap().into_iter();
    all.filter_map(|row| Some((row.route, row.console?)))
        .collect()
}

/// The row of a request. A route that has a name where another has a value comes first.
fn row_of<'r>(rows: &'r [Row], request: &str) -> Option<&'r Row> {
    let rows = rows.iter().filter(|(route, _)| is_of(request, route));
    rows.min_by_key(|(route, _)| route.matches('{').count())
}

/// The error says where a file of tests did not do what the table says of it. `asked`: a line for each request of the
/// console that succeeded, method and path.
pub(crate) fn check(file: &str, asked: &str) -> Result<(), String> {
    let rows = rows();
    let mut done = BTreeSet::new();
    for line in asked.lines() {
        let Some((route, place)) = row_of(&rows, line) else {
            continue;
        };
        if matches!(place, ConsolePlace::Elsewhere(_)) {
            return Err(format!(
                "the console asks {route} in {file}; the table says: {place:?}"
            ));
        }
        done.insert(route);
    }
    let missing: Vec<_> = rows
        .iter()
        .filter(|(_, place)| matches!(place, ConsolePlace::Asked(shown) if *shown == file))
        .map(|(route, _)| route)
        .filter(|route| !done.contains(route))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the console asked none of these in {file}: {missing:#?}"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_management_operation_is_in_the_console_or_named() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        let is_sdk = path.starts_with("/v1/sdk/");
        described.extend(
            methods
                .filter(|_| !is_sdk)
                .map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    let rows = rows();
    let named: BTreeSet<_> = rows.iter().map(|(route, _)| route.clone()).collect();
    assert_eq!(named.len(), rows.len(), "an operation has two rows");
    let new: Vec<_> = described.difference(&named).collect();
    assert!(
        new.is_empty(),
        "say where these are done, as `console` in host/src/openapi/operations.json: {new:#?}"
    );
    let gone: Vec<_> = named.difference(&described).collect();
    assert!(gone.is_empty(), "these are gone: {gone:#?}");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/console/app/src");
    let files = browser::files();
    for (route, place) in &rows {
        match place {
            ConsolePlace::Asked(file) => assert!(files.iter().any(|known| known == file), "{file}"),
            ConsolePlace::Written(file, text) => {
                let source = std::fs::read_to_string(sources.join(file)).unwrap();
                assert!(
                    source.contains(text),
                    "nothing asks {route} in {file} any longer"
                );
            }
            ConsolePlace::Elsewhere(reason) => assert!(!reason.is_empty(), "{route} has no reason"),
        }
    }
    app.finish().await;
}
