//! The pages that everybody may read: what browsers are told of them (contract 22).

use reqwest::Method;
use tests::{Credential, TestApp, on_both_backends};

on_both_backends!(
    the_documentation_runs_nothing_but_its_own_script,
    nothing_is_shown_in_frames,
);

/// The policy, as the contract has it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The values of an attribute in a page.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    let rest = html.split(begin.as_str()).skip(1);
    rest.map(|rest| rest.split('"').next().unwrap()).collect()
}

async fn the_documentation_runs_nothing_but_its_own_script(app: &mut TestApp) {
    let page = app.get("/docs", &Credential::none()).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("content-security-policy"), POLICY);
    let html = &page.text;
    assert!(
        !html.contains("<style") && !html.contains("style="),
        "{html}"
    );
    let inline = html.split("<script").skip(1);
    for script in inline {
        let (tag, rest) = script.split_once('>').unwrap();
        assert!(
            tag.contains(" src=\"") && rest.starts_with("</script>"),
            "{script}"
        );
    }
    let version = page.header("etag").trim_matches('"');
    let scripts = values(html, "src");
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    let links = values(html, "href").into_iter();
    let styles = links.filter(|path| path.rsplit_once('.').is_some_and(|(_, kind)| kind == "css"));
    let scripts = scripts.iter().copied();
    for (path, kind) in scripts
        .map(|path| (path, "text/javascript; charset=utf-8"))
        .chain(styles.map(|path| (path, "text/css; charset=utf-8")))
    {
        assert!(path.starts_with(&format!("/console/{version}/")), "{path}");
        let part = app.get(path, &Credential::none()).await;
        assert_eq!(
            (part.status, part.header("content-type")),
            (200, kind),
            "{path}"
        );
        assert_eq!(part.header("x-content-type-options"), "nosniff", "{path}");
        assert!(!part.text.contains("innerHTML"), "{path}");
    }
    let known = Credential::none().and("if-none-match", page.header("etag"));
    assert_eq!(app.get("/docs", &known).await.status, 304);
    let small = Credential::none().and("accept-encoding", "br");
    let small = app.request(Method::GET, "/docs", &small);
    let small = small.send().await.unwrap();
    assert_eq!(small.headers()["content-encoding"], "br");
}

async fn nothing_is_shown_in_frames(app: &mut TestApp) {
    for path in [
        "/docs",
        "/console/",
        "/openapi.json",
        "/v1/errors",
        "/livez",
        "/v1/nothing",
    ] {
        let answer = app.get(path, &Credential::none()).await;
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; "),
            "{path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
    }
}
