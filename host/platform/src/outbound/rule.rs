//! Which URLs a customer may have requests sent to (contract 10, the URL rule).

use std::net::IpAddr;

use reqwest::Url;

use super::address;

/// The longest URL, in bytes.
pub const MOST_URL_BYTES: usize = 2_048;
/// The longest host name, in bytes (RFC 1035 2.3.4).
const MOST_HOST_BYTES: usize = 253;
/// The longest part of a host name, in bytes (RFC 1035 2.3.4).
const MOST_LABEL_BYTES: usize = 63;
/// Names that are never public: of this machine, and of local networks (RFC 6761, RFC 6762, RFC 7686,
/// RFC 8375, and ICANN's reservation of `internal`).
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
    "onion",
];

/// What URLs must be like.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Whether `http` is allowed. For development.
    pub allow_http: bool,
    /// Whether addresses may be private, names local, and ports any. For development.
    pub allow_private_networks: bool,
    /// The ports.
    pub ports: Vec<u16>,
}

/// Why requests may not go to a URL. The text is for whoever named the URL, and tells no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// It is no URL.
    #[error("this is not a URL; write https://host/path")]
    Malformed,
    /// It is too long.
    #[error("a URL has at most {MOST_URL_BYTES} characters")]
    TooLong,
    /// Its scheme is another.
    #[error("the URL must begin with https://")]
    Scheme,
    /// It has a user name or password.
    #[error("the URL must have no user name and no password")]
    UserInfo,
    /// Its port is another.
    #[error(
        "the URL must have one of the ports that the server allows: leave the port out, or use 8443"
    )]
    Port,
    /// Its host is none that the public knows.
    #[error("the URL's host must be a name or address of the public internet")]
    Host,
}

impl NotAllowed {
    /// A stable reason in snake case.
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
            Self::Scheme => "scheme_not_allowed",
            Self::UserInfo => "user_info_not_allowed",
            Self::Port => "port_not_allowed",
            Self::Host => "host_not_allowed",
        }
    }
}

impl Rule {
    /// Checks everything that can be told without asking for addresses. The URL comes back in the form in
    /// which it is requested: its host in lower case and ASCII, addresses in their one spelling.
    pub fn check(&self, text: &str) -> Result<Url, NotAllowed> {
        if text.len() > MOST_URL_BYTES {
            return Err(NotAllowed::TooLong);
        }
        // URL parsers of browsers (WHATWG) drop tabs and line breaks, and take `\` for `/`; others read such
        // a text in another way.
        let odd = |byte: u8| byte.is_ascii_control() || byte == b' ' || byte == b'\\';
        if text.bytes().any(odd) {
            return Err(NotAllowed::Malformed);
        }
        let url = Url::parse(text).map_err(|_| NotAllowed::Malformed)?;
        // What is percent-encoded is longer than it was written, and is what every request checks again.
        if url.as_str().len() > MOST_URL_BYTES {
            return Err(NotAllowed::TooLong);
        }
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            _ => return Err(NotAllowed::Scheme),
        }
        // `https:host` and `https:///host` are URLs to browsers only.
        let after_scheme = text.get(url.scheme().len()..).unwrap_or_default();
        let authority = after_scheme.strip_prefix("://").unwrap_or_default();
        if authority.is_empty() || authority.starts_with('/') {
            return Err(NotAllowed::Malformed);
        }
        let written = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if written.contains('@') {
            return Err(NotAllowed::UserInfo);
        }
        let host = url.host_str().ok_or(NotAllowed::Host)?;
        self.check_host(host)?;
        let port = url.port_or_known_default().ok_or(NotAllowed::Port)?;
        let plain_http = url.scheme() == "http" && port == 80;
        if !self.allow_private_networks && !plain_http && !self.ports.contains(&port) {
            return Err(NotAllowed::Port);
        }
        Ok(url)
    }

    /// Whether a connection to an address is allowed.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow_private_networks || address::is_public(address)
    }

    /// Checks a host as the URL parser writes it.
    fn check_host(&self, host: &str) -> Result<(), NotAllowed> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return if self.allows(address) {
                Ok(())
            } else {
                Err(NotAllowed::Host)
            };
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        if name.is_empty() || name.len() > MOST_HOST_BYTES || !name.split('.').all(is_label) {
            return Err(NotAllowed::Host);
        }
        if self.allow_private_networks {
            return Ok(());
        }
        let local = LOCAL_NAMES.iter().any(|local| {
            name.strip_suffix(local)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        if local || !name.contains('.') {
            return Err(NotAllowed::Host);
        }
        Ok(())
    }
}

/// A part of a host name: letters, digits, hyphens within, and underscores, which some names have.
fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty()
        && label.len() <= MOST_LABEL_BYTES
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests;
