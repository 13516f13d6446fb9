//! Plugins to be uploaded: many of one, made by changing its bytes.

use serde_json::{Value, json};
use tests::{Answer, Credential, TestApp};

const NAME: &[u8] = b"versioned-plugin-0000";
const VERSION: &[u8] = b"1.0.1000000";

/// The name of a plugin of [`versioned`].
pub(crate) fn name(plugin: u32) -> String {
    format!("versioned-plugin-{plugin:04}")
}

/// The version of a plugin of [`versioned`].
pub(crate) fn version(number: u32) -> String {
    format!("1.0.1{number:06}")
}

/// A trigger plugin that fires on everything that it is asked about, under a name and version of its own.
pub(crate) fn versioned(plugin: u32, number: u32) -> Vec<u8> {
    renamed(name(plugin).as_bytes(), version(number).as_bytes())
}

/// The same, saying whatever is as long as what it says.
pub(crate) fn renamed(name: &[u8], version: &[u8]) -> Vec<u8> {
    let mut bytes = test_guests::VERSIONED.to_vec();
    replace(&mut bytes, NAME, name);
    replace(&mut bytes, VERSION, version);
    bytes
}

/// Version 0.2.0 of the validation plugin `strict`, which lets the text `test` pass.
pub(crate) fn lenient() -> Vec<u8> {
    let mut bytes = test_guests::STRICT.to_vec();
    replace(&mut bytes, b"strict-version=0.1.0", b"strict-version=0.2.0");
    bytes
}

/// Version 0.2.0 of the personalization plugin `greeter`, which heeds people's moods.
pub(crate) fn moody() -> Vec<u8> {
    let mut bytes = test_guests::GREETER.to_vec();
    replace(
        &mut bytes,
        b"greeter-version=0.1.0",
        b"greeter-version=0.2.0",
    );
    bytes
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    let mut places = 0;
    for start in 0..=bytes.len() - old.len() {
        if bytes[start..start + old.len()] == *old {
            bytes[start..start + new.len()].copy_from_slice(new);
            places += 1;
        }
    }
    assert!(places > 0, "the guest must contain its name and version");
}

/// The server's plugins.
pub(crate) const SERVER: &str = "/v1/operator";

/// Uploads a component as an admin of the demo app.
pub(crate) async fn upload(app: &TestApp, component: Vec<u8>) -> Answer {
    app.upload(&app.path("/plugins"), &app.admin(), component)
        .await
}

/// Activates a version of a plugin under a path: an app's, or [`SERVER`].
pub(crate) async fn activate_at(
    app: &TestApp,
    root: &str,
    credential: &Credential,
    plugin: &str,
    parts: Value,
) -> Answer {
    let path = format!("{root}/plugins/{plugin}/activate");
    app.post(&path, credential, &parts).await
}

/// Activates a version of a plugin of the demo app.
pub(crate) async fn activate(app: &TestApp, plugin: u32, parts: Value) -> Answer {
    let root = app.path("");
    activate_at(app, &root, &app.admin(), &name(plugin), parts).await
}

/// Uploads a version and activates it at once.
pub(crate) async fn deploy(app: &TestApp, plugin: u32, number: u32) {
    upload(app, versioned(plugin, number)).await.data(201);
    activate(app, plugin, json!({"version": version(number)}))
        .await
        .ok();
}

/// Uploads version 1.0.0 of a plugin and activates it at once.
async fn deploy_component(app: &TestApp, component: &[u8], plugin: &str) {
    upload(app, component.to_vec()).await.data(201);
    let parts = json!({"version": "1.0.0"});
    activate_at(app, &app.path(""), &app.admin(), plugin, parts)
        .await
        .ok();
}

/// The trigger of a campaign that a plugin decides.
pub(crate) fn trigger(plugin: u32, config: Value) -> Value {
    json!({"kind": "plugin", "plugin": name(plugin), "config": config})
}

/// Which plugins and versions decided what was fired, in order.
pub(crate) async fn decided(app: &TestApp) -> Vec<(String, String)> {
    app.settle().await;
    app.rows("SELECT plugin_name, plugin_version FROM instructions ORDER BY position")
        .await
}

/// Sends an event and answers which plugin and version fired because of it, if exactly one did.
pub(crate) async fn decides(
    app: &TestApp,
    session: &tests::Session,
    event: &str,
) -> Option<(String, String)> {
    let before = decided(app).await.len();
    let fired = app.fires(session, event, &json!({})).await;
    let after = decided(app).await;
    assert_eq!(after.len() - before, fired);
    assert!(fired <= 1, "{after:?}");
    after.into_iter().nth(before)
}

/// What [`decides`] answers when a version of [`versioned`] decided.
#[expect(
    clippy::unnecessary_wraps,
    reason = "to be compared with an answer that may be none"
)]
pub(crate) fn by(plugin: u32, number: u32) -> Option<(String, String)> {
    Some((name(plugin), version(number)))
}

/// Puts a plugin into the demo app's trigger slot.
pub(crate) async fn set_slot(app: &TestApp, plugin: &str) -> tests::Answer {
    let path = app.path("/plugin-slots/trigger");
    app.put(&path, &app.admin(), &json!({"plugin": plugin}))
        .await
}

/// Uploads and activates the plugin that keeps as much of a subject as events tell it to.
pub(crate) async fn hoard(app: &TestApp) {
    deploy_component(app, test_guests::HOARDER, "hoarder").await;
}

/// Uploads and activates the plugin that does what the `mode` of a campaign says.
pub(crate) async fn deploy_misbehaving(app: &TestApp) {
    deploy_component(app, test_guests::MISBEHAVING, "misbehaving").await;
}

/// Puts the plugin into its slot that fails on what is personalized by `far_item`; answers the slot's path.
pub(crate) async fn break_personalization(app: &TestApp) -> String {
    let component = test_guests::MISBEHAVING_PERSONALIZATION;
    let plugin = "misbehaving-personalization";
    deploy_component(app, component, plugin).await;
    let slot = app.path("/plugin-slots/personalization");
    app.put(&slot, &app.admin(), &json!({"plugin": plugin}))
        .await
        .ok();
    slot
}

/// Saves a property of a subject, as of now.
pub(crate) async fn save_property(
    app: &TestApp,
    session: &tests::Session,
    key: &str,
    value: Value,
) {
    let subject: uuid::Uuid = session.subject_id.parse().unwrap();
    let now = app.clock.now();
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(
        "INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at)
         VALUES ($1, $2, $3, $4, 'api', $5)
         ON CONFLICT (subject_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
    )
    .bind(subject)
    .bind(key.to_owned())
    .bind(app.access.app_id)
    .bind(value.to_string())
    .bind(now)
    .execute()
    .await
    .unwrap();
    tx.commit().await.unwrap();
}
