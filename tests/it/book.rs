//! The book at `/docs/book/`: every page is reached, every link leads somewhere, and nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use nudge_http::Code;
use reqwest::Method;
use serde_json::Value;
use tests::{Backend, Credential, TestApp, site};

const BOOK: &str = "/docs/book/";
const SUMMARY: &str = include_str!("../../host/docs/SUMMARY.md");

/// The values of an attribute in a page.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let begin = format!(" {attribute}=\"");
    let rest = html.split(begin.as_str()).skip(1);
    rest.map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

/// The path that a link of a page leads to.
fn joined(page: &str, link: &str) -> String {
    let base = reqwest::Url::parse("http://nudge.test").unwrap();
    let url = base.join(page).unwrap().join(link).unwrap();
    assert_eq!(url.host_str(), Some("nudge.test"), "{page}: {link}");
    url.path().to_owned()
}

/// Gets every file that the book's first page leads to, by way of other pages too.
async fn crawl(app: &TestApp) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut left = vec![BOOK.to_owned()];
    while let Some(path) = left.pop() {
        if files.contains_key(&path) {
            continue;
        }
        let answer = app.get(&path, &Credential::none()).await;
        assert_eq!(answer.status, 200, "{path}");
        let is_page = answer.header("content-type") == "text/html; charset=utf-8";
        let html = if is_page { answer.text } else { String::new() };
        if path.starts_with(BOOK) {
            let links = values(&html, "href")
                .into_iter()
                .chain(values(&html, "src"));
            for link in links.filter(|link| !link.contains("://")) {
                left.push(joined(&path, link.split('#').next().unwrap()));
            }
        }
        files.insert(path, html);
    }
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_link_leads_somewhere() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let files = crawl(&app).await;
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let operations: BTreeSet<&str> = description["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let mut anchors = 0;
    for (page, html) in files.iter().filter(|(page, _)| page.starts_with(BOOK)) {
        let ids = values(html, "id");
        let distinct: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(ids.len(), distinct.len(), "{page}: {ids:?}");
        for link in values(html, "href") {
            let Some((target, anchor)) = link.split_once('#') else {
                continue;
            };
            if target.contains("://") {
                continue;
            }
            anchors += 1;
            if let Some(operation) = anchor.strip_prefix("/op/") {
                assert!(operations.contains(operation), "{page}: {link}");
                continue;
            }
            if let Some(schema) = anchor.strip_prefix("/schema/") {
                let schemas = &description["components"]["schemas"];
                assert!(schemas[schema].is_object(), "{page}: {link}");
                continue;
            }
            let known = values(&files[&joined(page, target)], "id");
            assert!(known.iter().any(|id| id == anchor), "{page}: {link}");
        }
    }
    assert!(anchors > 300, "{anchors}");
    // All documents of the summary are among them.
    let listed = SUMMARY.matches(".md)").count();
    let pages = files
        .iter()
        .filter(|(path, html)| path.starts_with(BOOK) && !html.is_empty());
    assert_eq!(
        pages.count(),
        listed + 1,
        "the first page has two addresses"
    );
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_run_the_servers_own_script_alone() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let docs = app.get("/docs", &Credential::none()).await;
    let page = app
        .get("/docs/book/install.html", &Credential::none())
        .await;
    for header in [
        "content-security-policy",
        "x-content-type-options",
        "cross-origin-opener-policy",
    ] {
        assert_eq!(page.header(header), docs.header(header), "{header}");
    }
    let first = app.get("/docs/book", &Credential::none()).await;
    assert_eq!(first.status, 200, "it is led to the first page");
    assert!(first.text.contains("<h1 id=\"nudge\">"), "{}", first.text);
    let slashed = app.get("/docs/", &Credential::none()).await;
    assert_eq!(slashed.text, docs.text, "it is led to the pages of the API");
    let gone = app
        .get("/docs/book/nothing.html", &Credential::none())
        .await;
    gone.refused(404, "not_found");

    let known = Credential::none().and("if-none-match", page.header("etag"));
    assert_eq!(app.get("/docs/book/install.html", &known).await.status, 304);
    // Who takes no compression gets the same page as who does.
    let small = Credential::none().and("accept-encoding", "br");
    let small = app.request(Method::GET, "/docs/book/install.html", &small);
    let small = small.send().await.unwrap();
    assert_eq!(small.headers()["content-encoding"], "br");
    let small = small.bytes().await.unwrap();
    let mut plain = Vec::new();
    brotli::BrotliDecompress(&mut &*small, &mut plain).unwrap();
    assert_eq!(String::from_utf8(plain).unwrap(), page.text);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_finds_what_pages_say() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let answer = app.get("/docs/book/search.json", &Credential::none()).await;
    let sections: Value = answer.json();
    let sections = sections.as_array().unwrap();
    assert!(sections.len() > 200, "{}", sections.len());
    let named = |address: &str| sections.iter().find(|section| section[0] == address);
    let errors = named("reference/errors.html#errors").unwrap();
    for code in Code::ALL {
        let text = errors[3].as_str().unwrap();
        assert!(text.contains(code.name()), "{}", code.name());
    }
    assert!(named("runbook.html#nudgediskfull").is_some());
    app.finish().await;
}
