//! What `nudge dev` tells a newcomer: the pages to open, a first event, and where the rest is.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use super::Access;

/// The program that opens a page in the browser.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// The introduction; with all keys and tokens where no person reads it, or one who asked for them.
pub(super) fn text(access: &Access, all: bool) -> String {
    let Access {
        base_url,
        console_url,
        workspace_id,
        app_id,
        write_key,
        server_key,
        api_token,
        admin_token,
        editor_token,
        viewer_token,
        operator_token,
    } = access;
    let mut text = format!(
        "Nudge is running. Open in a browser:\n\n\
         a shop          {base_url}/demo/\n\
         the console     {console_url}\n\
         API pages       {base_url}/docs\n\
         the book        {base_url}/docs/book/\n\n\
         base URL        {base_url}\n\
         workspace       {workspace_id}\n\
         app             {app_id}\n"
    );
    if all {
        let _ = write!(
            text,
            "write key       {write_key}\n\
             server key      {server_key}\n\
             API token       {api_token}\n\
             admin token     {admin_token}\n\
             editor token    {editor_token}\n\
             viewer token    {viewer_token}\n\
             operator token  {operator_token}\n"
        );
    } else {
        text.push_str("keys, tokens    with --show-keys, or in a file with --json FILE\n");
    }
    let _ = write!(
        text,
        "\nSend a first event:\n\n\
         curl {base_url}/v1/sdk/ingest -H 'Authorization: Bearer {server_key}' -H 'Content-Type: application/json' \
         -d '{{\"userId\": \"ada\", \"events\": [{{\"name\": \"cart_updated\", \"timestamp\": \"'$(date -u +%FT%TZ)'\", \
         \"properties\": {{\"total\": 42}}}}]}}'\n"
    );
    if all {
        let _ = write!(
            text,
            "\nFor `nudge plugin` beside it:\n\n\
             export NUDGE_PLUGIN__URL={base_url} NUDGE_PLUGIN__APP={app_id} NUDGE_PLUGIN__TOKEN={admin_token}\n"
        );
    }
    text.push_str(
        "\nThe console's link signs you in once, within ten minutes; `nudge console-link` makes others.\nCtrl-C stops.",
    );
    text
}

/// Opens a page in the browser. Where there is none, the page is printed above.
pub(super) fn open(page: &str) {
    let opened = Command::new(OPENER)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        tracing::warn!(%error, "the browser can't be opened");
    }
}
