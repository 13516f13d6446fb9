//! Signing in to the console, as its page does.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose sign-in fails fails where it stands"
)]

use std::collections::BTreeMap;

use nudge_apps::console::{Grants, links};
use nudge_http::issuer::Role;
use serde_json::json;
use uuid::Uuid;

use crate::{Answer, Credential, TestApp};

/// What a page of the server's own sends.
pub fn own_page() -> Credential {
    Credential::none().and("sec-fetch-site", "same-origin")
}

/// The value of a cookie that an answer sets; the attributes come after it.
#[track_caller]
pub fn cookie(answer: &Answer, name: &str) -> (String, String) {
    let set = answer.headers.get_all("set-cookie").iter();
    set.filter_map(|value| value.to_str().ok())
        .filter_map(|text| text.strip_prefix(name)?.strip_prefix('='))
        .filter_map(|text| text.split_once("; "))
        .map(|(value, attributes)| (value.to_owned(), attributes.to_owned()))
        .next()
        .expect("the answer sets the cookie")
}

/// A session's cookie as a page of the server's own sends it.
pub fn with_cookie(value: &str) -> Credential {
    own_page().and("cookie", &format!("nudge={value}"))
}

impl TestApp {
    /// The code of the link that the server printed.
    pub fn console_code(&self) -> &str {
        let (_, code) = self
            .access
            .console_url
            .split_once("/console/#login=")
            .expect("a link");
        code
    }

    /// The code of a new link.
    pub async fn console_link(&self, roles: &[(Uuid, Role)], operator: bool) -> String {
        let grants = Grants {
            roles: roles.iter().copied().collect::<BTreeMap<_, _>>(),
            operator,
        };
        let mut tx = self.services().db.write().await.expect("a transaction");
        let link = links::create(&mut tx, "", "a link", &grants, self.clock.now()).await;
        tx.commit().await.expect("a commit");
        let link = link.expect("a link");
        link.rsplit_once('=').expect("a code").1.to_owned()
    }

    /// Signs in by a code.
    pub async fn sign_in(&self, code: &str) -> Answer {
        let body = json!({"code": code});
        self.post("/console/session", &own_page(), &body).await
    }

    /// Somebody signed in with a role in the demo workspace.
    pub async fn signed_in(&self, role: Role) -> Credential {
        let code = self
            .console_link(&[(self.access.workspace_id, role)], false)
            .await;
        self.signed_in_by(&code).await
    }

    /// Somebody signed in by a code.
    pub async fn signed_in_by(&self, code: &str) -> Credential {
        let answer = self.sign_in(code).await;
        answer.data(201);
        with_cookie(&cookie(&answer, "nudge").0)
    }
}
