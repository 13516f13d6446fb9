//! Identity providers.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Hidden;

/// An OpenID provider whose access tokens are taken.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OidcIssuer {
    /// Its identifier, exactly as in `iss`.
    pub issuer: String,
    /// What `aud` must contain.
    pub audience: String,
    /// Where the roles are: the name of a claim, or a dotted path into one.
    #[serde(default = "default_roles_claim")]
    pub roles_claim: String,
    /// Where `true` makes an operator: the name of a claim, or a dotted path into one.
    #[serde(default = "default_operator_claim")]
    pub operator_claim: String,
    /// The console's client id there; empty: nobody signs in to the console with it.
    #[serde(default)]
    pub client_id: String,
    /// The client's secret; empty: a public client.
    #[serde(default)]
    pub client_secret: Hidden,
    /// What is asked for when somebody signs in.
    #[serde(default = "default_scope")]
    pub scope: String,
    /// More parameters of the request with which somebody signs in.
    #[serde(default)]
    pub login_parameters: BTreeMap<String, String>,
}

impl OidcIssuer {
    /// An issuer with the default claims, with which nobody signs in to the console.
    pub fn new(issuer: &str, audience: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            roles_claim: default_roles_claim(),
            operator_claim: default_operator_claim(),
            client_id: String::new(),
            client_secret: Hidden::default(),
            scope: default_scope(),
            login_parameters: BTreeMap::new(),
        }
    }
}

fn default_scope() -> String {
    "openid".to_owned()
}

fn default_roles_claim() -> String {
    "roles".to_owned()
}

fn default_operator_claim() -> String {
    "operator".to_owned()
}
