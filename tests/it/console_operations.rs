//! What the console does of what the API can: each management operation is asked by the console in a browser test, or
//! has a reason why it is not. A new operation is a line here.

use std::collections::BTreeSet;
use std::path::Path;

use tests::{Backend, Credential, TestApp, site};

use crate::browser;

/// Where an operation is done.
#[derive(Debug)]
enum Place {
    /// In the console, which asks it with success in this file of `tests/browser`.
    Asked(&'static str),
    /// In the console: the file of its sources, and the text there that asks.
    Written(&'static str, &'static str),
    /// On the command line, by backends or by other programs: why.
    Elsewhere(&'static str),
}
use Place::{Asked, Elsewhere, Written};

const SETTINGS: &str = "console-settings.test.mjs";
const PEOPLE: &str = "console-people.test.mjs";
const JOURNEY: &str = "console-journey.test.mjs";

type Row = (&'static str, &'static str, Place);

#[rustfmt::skip]
const OPERATIONS: &[Row] = &[
    ("GET", "/v1/apps", Asked(SETTINGS)),
    ("POST", "/v1/apps", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}", Asked(SETTINGS)),
    ("DELETE", "/v1/apps/{appId}", Asked(SETTINGS)),
    ("PATCH", "/v1/apps/{appId}", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/audit-log", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/campaigns", Written("pages/messages.js", r#"useList(inApp("/campaigns"), { type })"#)),
    ("POST", "/v1/apps/{appId}/campaigns", Written("pages/messages.js", r#"post(inApp("/campaigns"), body)"#)),
    ("GET", "/v1/apps/{appId}/campaigns/{campaignId}", Written("pages/message.js", "useResource(inApp(`/campaigns/${params.campaignId}`))")),
    ("DELETE", "/v1/apps/{appId}/campaigns/{campaignId}", Written("pages/messages.js", "del(inApp(`/campaigns/${row.id}`)")),
    ("PATCH", "/v1/apps/{appId}/campaigns/{campaignId}", Written("pages/message.js", "useSaving(inApp(`/campaigns/${campaign.id}`)")),
    ("GET", "/v1/apps/{appId}/campaigns/{campaignId}/analytics", Written("pages/message/results.js", "useResource(inApp(`/campaigns/${campaign.id}/analytics`)")),
    ("GET", "/v1/apps/{appId}/campaigns/{campaignId}/recipients", Written("pages/message/results.js", "inApp(`/campaigns/${campaign.id}/recipients`)")),
    ("POST", "/v1/apps/{appId}/campaigns/{campaignId}/test-send", Written("pages/message/preview.js", "post(inApp(`/campaigns/${campaign.id}/test-send`)")),
    ("GET", "/v1/apps/{appId}/dead-letters", Written("pages/dead-letters.js", r#"useList(inApp("/dead-letters"),"#)),
    ("POST", "/v1/apps/{appId}/dead-letters/acknowledge", Written("pages/dead-letters.js", r#"post(inApp("/dead-letters/acknowledge")"#)),
    ("POST", "/v1/apps/{appId}/dead-letters/replay", Written("pages/dead-letters.js", r#"post(inApp("/dead-letters/replay")"#)),
    ("GET", "/v1/apps/{appId}/dead-letters/summary", Written("pages/dead-letters.js", r#"useList(inApp("/dead-letters/summary")"#)),
    ("GET", "/v1/apps/{appId}/dead-letters/{id}", Written("pages/dead-letters.js", "useResource(inApp(`/dead-letters/${id}`))")),
    ("DELETE", "/v1/apps/{appId}/dead-letters/{id}", Written("pages/dead-letters.js", "del(inApp(`/dead-letters/${letter.id}`))")),
    ("POST", "/v1/apps/{appId}/dead-letters/{id}/replay", Written("pages/dead-letters.js", "post(inApp(`/dead-letters/${letter.id}/replay`)")),
    ("GET", "/v1/apps/{appId}/decisions", Written("pages/why.js", r#"useList(inApp("/decisions")"#)),
    ("POST", "/v1/apps/{appId}/decisions/{id}/rerun", Written("pages/why.js", "post(inApp(`/decisions/${id}/rerun`))")),
    ("GET", "/v1/apps/{appId}/event-definitions", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/event-definitions", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/event-definitions/infer", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/event-definitions/{id}", Asked(SETTINGS)),
    ("DELETE", "/v1/apps/{appId}/event-definitions/{id}", Asked(SETTINGS)),
    ("PATCH", "/v1/apps/{appId}/event-definitions/{id}", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/event-definitions/{id}/dry-run", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/events", Asked(PEOPLE)),
    ("GET", "/v1/apps/{appId}/events/stream", Written("pages/events.js", r#"useEvents(inApp("/events/stream")"#)),
    ("GET", "/v1/apps/{appId}/explain", Written("pages/why.js", r#"useResource(inApp("/explain")"#)),
    ("POST", "/v1/apps/{appId}/gdpr/delete", Written("pages/person-privacy.js", r#"post(inApp("/gdpr/delete")"#)),
    ("GET", "/v1/apps/{appId}/gdpr/deletions/{jobId}", Written("pages/person-privacy.js", "useResource(inApp(`/gdpr/deletions/${jobId}`))")),
    ("POST", "/v1/apps/{appId}/gdpr/export", Written("pages/person-privacy.js", r#"post(inApp("/gdpr/export")"#)),
    ("GET", "/v1/apps/{appId}/gdpr/exports/{exportId}", Written("pages/person-privacy.js", "useResource(inApp(`/gdpr/exports/${exportId}`))")),
    ("GET", "/v1/apps/{appId}/gdpr/jobs", Written("pages/people.js", r#"useList(inApp("/gdpr/jobs")"#)),
    ("GET", "/v1/apps/{appId}/identity-keys", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/identity-keys", Asked(SETTINGS)),
    ("DELETE", "/v1/apps/{appId}/identity-keys/{kid}", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/jobs/{id}", Written("ui/progress.js", "useResource(inApp(`/jobs/${jobId}`))")),
    ("GET", "/v1/apps/{appId}/keys", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/keys", Asked(SETTINGS)),
    ("DELETE", "/v1/apps/{appId}/keys/{keyId}", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/personalization/preview", Written("pages/message/preview.js", r#"post(inApp("/personalization/preview")"#)),
    ("GET", "/v1/apps/{appId}/plugin-slots", Written("pages/plugins.js", r#"useList(ofOwner("/plugin-slots"))"#)),
    ("PUT", "/v1/apps/{appId}/plugin-slots/{kind}", Written("pages/plugins.js", "put(ofOwner(`/plugin-slots/${kind}`)")),
    ("DELETE", "/v1/apps/{appId}/plugin-slots/{kind}", Written("pages/plugins.js", "del(ofOwner(`/plugin-slots/${kind}`))")),
    ("GET", "/v1/apps/{appId}/plugins", Written("pages/plugins.js", r#"useList(ofOwner("/plugins"),"#)),
    ("POST", "/v1/apps/{appId}/plugins", Written("pages/plugin/versions.js", r#"request("POST", ofOwner("/plugins")"#)),
    ("GET", "/v1/apps/{appId}/plugins/{name}", Written("pages/plugin.js", "useResource(ofOwner(`/plugins/${params.name}`))")),
    ("DELETE", "/v1/apps/{appId}/plugins/{name}", Written("pages/plugin.js", "del(ofOwner(`/plugins/${name}`))")),
    ("POST", "/v1/apps/{appId}/plugins/{name}/activate", Written("pages/plugin/versions.js", "post(ofOwner(`/plugins/${plugin.name}/activate`)")),
    ("GET", "/v1/apps/{appId}/plugins/{name}/logs", Written("pages/plugin/running.js", "useList(ofOwner(`/plugins/${plugin.name}/logs`)")),
    ("GET", "/v1/apps/{appId}/plugins/{name}/metrics", Written("pages/plugin/trials.js", "useResource(ofOwner(`/plugins/${plugin.name}/metrics`))")),
    ("POST", "/v1/apps/{appId}/plugins/{name}/promote", Written("pages/plugin/versions.js", r#"change("promote""#)),
    ("POST", "/v1/apps/{appId}/plugins/{name}/rollback", Written("pages/plugin/versions.js", r#"change("rollback""#)),
    ("GET", "/v1/apps/{appId}/plugins/{name}/versions/{version}", Elsewhere("`get_plugin` has all versions")),
    ("DELETE", "/v1/apps/{appId}/plugins/{name}/versions/{version}", Written("pages/plugin/versions.js", "del(ofOwner(`/plugins/${plugin.name}/versions/${encodeURIComponent(version)}`))")),
    ("POST", "/v1/apps/{appId}/plugins/{name}/versions/{version}/backtest", Written("pages/plugin/trials.js", "versions/${encodeURIComponent(version)}/backtest`)")),
    ("POST", "/v1/apps/{appId}/plugins/{name}/versions/{version}/test", Elsewhere("cases are for authors of plugins and their CI")),
    ("GET", "/v1/apps/{appId}/push/credentials", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/push/credentials", Asked(SETTINGS)),
    ("DELETE", "/v1/apps/{appId}/push/credentials/{credId}", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/push/deliveries", Written("pages/message/results.js", r#"useList(inApp("/push/deliveries")"#)),
    ("GET", "/v1/apps/{appId}/push/deliveries/{deliveryId}", Written("pages/message/results.js", "useResource(inApp(`/push/deliveries/${id}`))")),
    ("POST", "/v1/apps/{appId}/push/transactional", Elsewhere("for backends, with a server key")),
    ("GET", "/v1/apps/{appId}/push/webhooks", Written("pages/webhooks.js", r#"useList(inApp("/push/webhooks")"#)),
    ("POST", "/v1/apps/{appId}/push/webhooks", Written("pages/webhooks.js", r#"post(inApp("/push/webhooks")"#)),
    ("GET", "/v1/apps/{appId}/push/webhooks/{webhookId}", Written("pages/webhook.js", "inApp(`/push/webhooks/${params.webhookId}`)")),
    ("DELETE", "/v1/apps/{appId}/push/webhooks/{webhookId}", Written("pages/webhook.js", "del(path, known)")),
    ("PATCH", "/v1/apps/{appId}/push/webhooks/{webhookId}", Written("pages/webhooks.js", "patch(inApp(`/push/webhooks/${webhook.id}`)")),
    ("GET", "/v1/apps/{appId}/push/webhooks/{webhookId}/attempts", Written("pages/webhook.js", "useList(`${path}/attempts`")),
    ("POST", "/v1/apps/{appId}/push/webhooks/{webhookId}/enable", Written("pages/webhook.js", "post(`${path}/enable`)")),
    ("POST", "/v1/apps/{appId}/push/webhooks/{webhookId}/messages/{messageId}/retry", Written("pages/webhook.js", "post(`${path}/messages/${row.messageId}/retry`)")),
    ("POST", "/v1/apps/{appId}/push/webhooks/{webhookId}/recover", Written("pages/webhook.js", "post(`${path}/recover`")),
    ("POST", "/v1/apps/{appId}/push/webhooks/{webhookId}/rotate-secret", Written("pages/webhook.js", "post(`${path}/rotate-secret`")),
    ("POST", "/v1/apps/{appId}/push/webhooks/{webhookId}/test", Written("pages/webhook.js", "post(`${path}/test`)")),
    ("GET", "/v1/apps/{appId}/instructions", Written("pages/person-timeline.js", r#"inApp("/instructions")"#)),
    ("GET", "/v1/apps/{appId}/attempts", Written("pages/person-timeline.js", r#"inApp("/attempts")"#)),
    ("GET", "/v1/apps/{appId}/segments", Written("pages/segments.js", r#"useList(inApp("/segments")"#)),
    ("POST", "/v1/apps/{appId}/segments", Written("pages/segment.js", r#"post(inApp("/segments"), value)"#)),
    ("POST", "/v1/apps/{appId}/segments/preview", Written("pages/segment.js", r#"post(inApp("/segments/preview")"#)),
    ("GET", "/v1/apps/{appId}/segments/{segmentId}", Written("pages/segment.js", "useResource(source ? inApp(`/segments/${source}`) : null)")),
    ("DELETE", "/v1/apps/{appId}/segments/{segmentId}", Written("pages/segments.js", "del(inApp(`/segments/${segment.id}`)")),
    ("PATCH", "/v1/apps/{appId}/segments/{segmentId}", Written("pages/segment.js", "useSaving(inApp(`/segments/${segment.id}`)")),
    ("GET", "/v1/apps/{appId}/segments/{segmentId}/history", Written("pages/segment.js", "useResource(inApp(`/segments/${segmentId}/history`)")),
    ("GET", "/v1/apps/{appId}/segments/{segmentId}/members", Written("pages/segment.js", "useList(inApp(`/segments/${segmentId}/members`)")),
    ("GET", "/v1/apps/{appId}/settings", Asked(SETTINGS)),
    ("PATCH", "/v1/apps/{appId}/settings", Asked(SETTINGS)),
    ("GET", "/v1/apps/{appId}/stats", Elsewhere("for the charts of other programs; pages have the counts of what they are about")),
    ("GET", "/v1/apps/{appId}/surveys", Asked(SETTINGS)),
    ("POST", "/v1/apps/{appId}/surveys", Asked(JOURNEY)),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}", Asked(JOURNEY)),
    ("DELETE", "/v1/apps/{appId}/surveys/{surveyId}", Written("pages/surveys.js", "del(inApp(`/surveys/${survey.id}`)")),
    ("PATCH", "/v1/apps/{appId}/surveys/{surveyId}", Asked(JOURNEY)),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}/analytics", Asked(JOURNEY)),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}/attempts", Written("pages/survey-results.js", "useList(inApp(`/surveys/${survey.id}/attempts`)")),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}/attempts/{attemptId}", Elsewhere("`list_survey_attempts` has all of each attempt")),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}/recipients", Written("pages/survey-results.js", "inApp(`/surveys/${survey.id}/recipients`)")),
    ("GET", "/v1/apps/{appId}/surveys/{surveyId}/responses", Written("pages/survey-results.js", "downloadCsv(`${path}/responses`")),
    ("GET", "/v1/apps/{appId}/users", Written("pages/people.js", r#"useList(inApp("/users")"#)),
    ("GET", "/v1/apps/{appId}/users/properties", Elsewhere("`get_user`, of somebody whose id is the name of a route")),
    ("PATCH", "/v1/apps/{appId}/users/properties", Elsewhere("for backends, with an API token")),
    ("GET", "/v1/apps/{appId}/users/{anonymousId}", Written("pages/find.js", "get(inApp(`/users/${encodeURIComponent(id)}`)")),
    ("GET", "/v1/apps/{appId}/users/{anonymousId}/events", Written("pages/person-timeline.js", "path: `${place(person).path}/events`")),
    ("GET", "/v1/apps/{appId}/users/{anonymousId}/plugin-state", Written("pages/plugin/kept.js", "useResource(path, query)")),
    ("DELETE", "/v1/apps/{appId}/users/{anonymousId}/plugin-state", Written("pages/plugin/kept.js", "del(path, { query })")),
    ("POST", "/v1/batch", Elsewhere("for SDKs of others, with a write key")),
    ("POST", "/v1/compat/v1/{kind}", Elsewhere("for SDKs of others, with a write key")),
    ("GET", "/v1/errors", Written("docs/pages.js", r#"href="/v1/errors""#)),
    ("GET", "/v1/exports/{exportId}/archive", Written("pages/person-privacy.js", "href=${here(one.downloadUrl)}")),
    ("GET", "/v1/operator/audit-log", Asked(SETTINGS)),
    ("GET", "/v1/operator/plugin-slots", Asked(SETTINGS)),
    ("PUT", "/v1/operator/plugin-slots/{kind}", Asked(SETTINGS)),
    ("DELETE", "/v1/operator/plugin-slots/{kind}", Asked(SETTINGS)),
    ("GET", "/v1/operator/plugins", Asked(SETTINGS)),
    ("POST", "/v1/operator/plugins", Asked(SETTINGS)),
    ("GET", "/v1/operator/plugins/{name}", Asked(SETTINGS)),
    ("DELETE", "/v1/operator/plugins/{name}", Written("pages/plugin.js", "del(ofOwner(`/plugins/${name}`))")),
    ("POST", "/v1/operator/plugins/{name}/activate", Asked(SETTINGS)),
    ("GET", "/v1/operator/plugins/{name}/logs", Written("pages/plugin/running.js", "useList(ofOwner(`/plugins/${plugin.name}/logs`)")),
    ("GET", "/v1/operator/plugins/{name}/metrics", Written("pages/plugin/trials.js", "useResource(ofOwner(`/plugins/${plugin.name}/metrics`))")),
    ("POST", "/v1/operator/plugins/{name}/promote", Written("pages/plugin/versions.js", r#"change("promote""#)),
    ("POST", "/v1/operator/plugins/{name}/rollback", Written("pages/plugin/versions.js", r#"change("rollback""#)),
    ("GET", "/v1/operator/plugins/{name}/versions/{version}", Elsewhere("`get_server_plugin` has all versions")),
    ("DELETE", "/v1/operator/plugins/{name}/versions/{version}", Written("pages/plugin/versions.js", "del(ofOwner(`/plugins/${plugin.name}/versions/${encodeURIComponent(version)}`))")),
    ("POST", "/v1/operator/plugins/{name}/versions/{version}/backtest", Written("pages/plugin/trials.js", "versions/${encodeURIComponent(version)}/backtest`)")),
    ("POST", "/v1/operator/plugins/{name}/versions/{version}/test", Elsewhere("cases are for authors of plugins and their CI")),
];

/// Whether a path is of a route.
fn is_of(path: &str, route: &str) -> bool {
    let parts = || route.split('/').zip(path.split('/'));
    route.split('/').count() == path.split('/').count()
        && parts()
            .all(|(wanted, given)| wanted == given || wanted.starts_with('{') && !given.is_empty())
}

/// The row of a request. A route that has a name where another has a value comes first.
fn row_of(method: &str, path: &str) -> Option<&'static Row> {
    let rows = OPERATIONS
        .iter()
        .filter(|row| row.0 == method && is_of(path, row.1));
    rows.min_by_key(|row| row.1.matches('{').count())
}

/// The error says where a file of tests did not do what the table says of it. `asked`: a line for each request of the
/// console that succeeded, method and path.
pub(crate) fn check(file: &str, asked: &str) -> Result<(), String> {
    let mut done = BTreeSet::new();
    for line in asked.lines() {
        let (method, path) = line.split_once(' ').unwrap();
        let Some((method, route, place)) = row_of(method, path) else {
            continue;
        };
        if matches!(place, Elsewhere(_)) {
            return Err(format!(
                "the console asks {method} {route} in {file}; the table says: {place:?}"
            ));
        }
        done.insert((*method, *route));
    }
    let missing: Vec<_> = OPERATIONS
        .iter()
        .filter(|(_, _, place)| matches!(place, Asked(shown) if *shown == file))
        .filter(|(method, route, _)| !done.contains(&(*method, *route)))
        .map(|(method, route, _)| format!("{method} {route}"))
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
    let named: BTreeSet<_> = OPERATIONS
        .iter()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert_eq!(named.len(), OPERATIONS.len(), "an operation has two lines");
    let new: Vec<_> = described.difference(&named).collect();
    assert!(
        new.is_empty(),
        "say where these are done, in {}: {new:#?}",
        file!()
    );
    let gone: Vec<_> = named.difference(&described).collect();
    assert!(gone.is_empty(), "these are gone: {gone:#?}");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/console/app/src");
    let files = browser::files();
    for (method, path, place) in OPERATIONS {
        match place {
            Asked(file) => assert!(files.iter().any(|known| known == file), "{file}"),
            Written(file, text) => {
                let source = std::fs::read_to_string(sources.join(file)).unwrap();
                assert!(
                    source.contains(text),
                    "nothing asks {method} {path} in {file} any longer"
                );
            }
            Elsewhere(reason) => assert!(!reason.is_empty(), "{method} {path} has no reason"),
        }
    }
    app.finish().await;
}
