//! Where the console is: the names under which it answers, whose pages may change something, and its cookies.

use std::fmt::{self, Display, Formatter};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use nudge_http::{ApiError, Code};
use nudge_platform::outbound::is_loopback;
use reqwest::Url;

/// The site that the console is, by the configuration.
#[derive(Clone, Debug)]
pub struct Site {
    public: Origin,
    /// Whether it answers under names of this machine too.
    takes_loopback: bool,
}

/// A scheme, a host in lower case and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// The origin under which a request reached the console.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    origin: Origin,
    /// The origin as the request says it.
    pub(super) address: String,
}

/// The cookies, by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    /// Names a session.
    Session,
    /// Ties a login to the browser that began it.
    Login,
}

impl Origin {
    fn of(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str()?.to_ascii_lowercase(),
            port: url.port_or_known_default()?,
        })
    }

    /// Plain http to this machine: browsers keep no `Secure` cookie of it, and the name says that it is not of that kind.
    fn is_plain(&self) -> bool {
        self.scheme == "http" && is_loopback(&self.host)
    }
}

impl Display for Origin {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        match (scheme.as_str(), port) {
            ("http", 80) | ("https", 443) => write!(out, "{scheme}://{host}"),
            _ => write!(out, "{scheme}://{host}:{port}"),
        }
    }
}

impl Site {
    /// The site of a public URL. `takes_loopback`: embedded mode, or nobody said what the public URL is.
    pub fn new(public_url: &str, takes_loopback: bool) -> anyhow::Result<Self> {
        let public = Origin::of(public_url).ok_or_else(|| {
            anyhow::anyhow!("server.publicUrl: `{public_url}` is not the URL of a server")
        })?;
        Ok(Self {
            public,
            takes_loopback,
        })
    }

    /// Whether browsers keep the console's cookies: over plain http they do so of this machine alone.
    pub fn keeps_cookies(&self) -> bool {
        self.public.scheme == "https" || self.public.is_plain()
    }

    /// The origin under which a request came. Another host's name is refused: it leads here without being ours, and a
    /// browser takes what comes from it for that site's own.
    pub(super) fn reached(&self, parts: &Parts) -> Result<Reached, ApiError> {
        self.reached_by(parts).ok_or_else(|| {
            let public = &self.public;
            let detail = format!("the console is at {public} alone; `server.publicUrl` says where");
            ApiError::because(Code::Misdirected, detail)
        })
    }

    fn reached_by(&self, parts: &Parts) -> Option<Reached> {
        let authority = authority(parts)?;
        let host = authority.host().to_ascii_lowercase();
        let public = &self.public;
        let named = |scheme: &str| {
            let origin = Origin::of(&format!("{scheme}://{authority}"))?;
            let address = format!("{scheme}://{authority}");
            Some(Reached { origin, address })
        };
        let reached = named(&public.scheme)?;
        if reached.origin == *public {
            return Some(reached);
        }
        (self.takes_loopback && is_loopback(&host)).then(|| named("http"))?
    }

    /// Refuses what another site's page may have sent. `with_cookie`: what says nothing of where it is from is refused
    /// too, since browsers always do.
    pub(super) fn require_own_page(
        reached: &Reached,
        parts: &Parts,
        with_cookie: bool,
    ) -> Result<(), ApiError> {
        if parts.method.is_safe() {
            return Ok(());
        }
        let is_own = |origin: &HeaderValue| {
            let origin = origin.to_str().ok().and_then(Origin::of);
            origin.as_ref() == Some(&reached.origin)
        };
        let allowed = match (
            parts.headers.get("sec-fetch-site"),
            parts.headers.get(header::ORIGIN),
        ) {
            (Some(site), _) => site == "same-origin",
            (None, Some(origin)) => is_own(origin),
            (None, None) => !with_cookie,
        };
        if allowed {
            return Ok(());
        }
        Err(ApiError::new(Code::CrossSite))
    }
}

/// The host that a request names: in its target as HTTP/2 has it, or in its one `Host`.
fn authority(parts: &Parts) -> Option<Authority> {
    let authority = if let Some(authority) = parts.uri.authority() {
        authority.clone()
    } else {
        let mut hosts = parts.headers.get_all(header::HOST).iter();
        let (host, None) = (hosts.next()?, hosts.next()) else {
            return None;
        };
        Authority::try_from(host.as_bytes()).ok()?
    };
    (!authority.as_str().contains('@')).then_some(authority)
}

impl Reached {
    fn is_plain(&self) -> bool {
        self.origin.is_plain()
    }

    fn name(&self, cookie: Cookie) -> &'static str {
        match (cookie, self.is_plain()) {
            (Cookie::Session, false) => "__Host-nudge",
            (Cookie::Session, true) => "nudge",
            (Cookie::Login, false) => "__Host-nudge-login",
            (Cookie::Login, true) => "nudge-login",
        }
    }

    /// The value of a cookie.
    pub(super) fn read<'h>(&self, headers: &'h HeaderMap, cookie: Cookie) -> Option<&'h str> {
        let name = self.name(cookie);
        all(headers).find_map(|(known, value)| (known == name).then_some(value))
    }

    /// `Set-Cookie` with a value; none: without it from now on. The provider's redirect back is another site's, so that the
    /// cookie of a login can't be `Strict`.
    pub(super) fn write(&self, cookie: Cookie, value: Option<&str>) -> HeaderValue {
        let name = self.name(cookie);
        let site = match cookie {
            Cookie::Session => "Strict",
            Cookie::Login => "Lax",
        };
        let age = match (cookie, value) {
            (_, None) => "; Max-Age=0",
            (Cookie::Login, Some(_)) => "; Max-Age=600",
            (Cookie::Session, Some(_)) => "",
        };
        let secure = if self.is_plain() { "" } else { "; Secure" };
        let value = value.unwrap_or_default();
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite={site}{secure}{age}");
        // A secret has letters and digits alone.
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}

/// Whether a request has a cookie of a session, under whichever name.
pub(crate) fn has_session_cookie(headers: &HeaderMap) -> bool {
    all(headers).any(|(name, _)| matches!(name, "__Host-nudge" | "nudge"))
}

/// All cookies but those that are no text: other sites of the domain can set some, and these hide no others. Only blanks of
/// ASCII are taken off, as browsers do: with another one before it, `__Host-` protects a name from nobody.
fn all(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(header::COOKIE).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .filter_map(|pair| std::str::from_utf8(pair.trim_ascii()).ok())
        .filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, Request};

    use super::*;

    fn parts(method: Method, target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn reached(site: &Site, host: &str) -> Option<Reached> {
        site.reached(&parts(Method::GET, "/", &[("host", host)]))
            .ok()
    }

    #[test]
    fn it_answers_under_its_own_name_and_where_allowed_under_names_of_this_machine() {
        let site = Site::new("https://Nudge.example", false).unwrap();
        for good in ["nudge.example", "NUDGE.example:443"] {
            assert!(reached(&site, good).is_some(), "{good}");
        }
        for bad in [
            "",
            "nudge.example:8443",
            "nudge.example.evil.example",
            "x@nudge.example",
            "127.0.0.1",
            "localhost",
        ] {
            assert!(reached(&site, bad).is_none(), "{bad}");
        }
        let site = Site::new("http://127.0.0.1:8480", true).unwrap();
        for good in ["127.0.0.1:8480", "localhost:99", "[::1]:8480", "127.1.2.3"] {
            assert!(reached(&site, good).is_some(), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1:8480",
            "0.0.0.0",
        ] {
            assert!(reached(&site, bad).is_none(), "{bad}");
        }
        assert!(Site::new("nudge.example", false).is_err());
    }

    #[test]
    fn the_target_of_http_2_names_the_host_and_two_hosts_are_none() {
        let site = Site::new("https://nudge.example", false).unwrap();
        let of = |target, headers: &[(&str, &str)]| {
            site.reached(&parts(Method::GET, target, headers)).is_ok()
        };
        assert!(of("https://nudge.example/console/", &[]));
        assert!(!of("https://evil.example/", &[("host", "nudge.example")]));
        assert!(!of(
            "/",
            &[("host", "nudge.example"), ("host", "nudge.example")]
        ));
        assert!(!of("/", &[]));
    }

    #[test]
    fn only_own_pages_change_anything() {
        let site = Site::new("https://nudge.example", false).unwrap();
        let is_allowed = |method, headers: &[(&str, &str)], with_cookie| {
            let mut all = vec![("host", "nudge.example")];
            all.extend(headers);
            let parts = parts(method, "/", &all);
            let reached = site.reached(&parts).unwrap();
            Site::require_own_page(&reached, &parts, with_cookie).is_ok()
        };
        let own = ("origin", "https://nudge.example");
        for (headers, with_cookie, without) in [
            (&[][..], false, true),
            (&[("sec-fetch-site", "same-origin")], true, true),
            (&[("sec-fetch-site", "same-site")], false, false),
            (&[("sec-fetch-site", "none"), own], false, false),
            (&[("sec-fetch-site", "cross-site"), own], false, false),
            (&[own], true, true),
            (&[("origin", "https://nudge.example:443")], true, true),
            (&[("origin", "http://nudge.example")], false, false),
            (
                &[("origin", "https://nudge.example.evil.example")],
                false,
                false,
            ),
            (&[("origin", "null")], false, false),
        ] {
            assert_eq!(
                is_allowed(Method::POST, headers, true),
                with_cookie,
                "{headers:?}"
            );
            assert_eq!(
                is_allowed(Method::DELETE, headers, false),
                without,
                "{headers:?}"
            );
            assert!(is_allowed(Method::GET, headers, true));
        }
    }

    #[test]
    fn cookies_are_the_hosts_and_the_protocols_alone() {
        let public = Site::new("https://nudge.example", true).unwrap();
        let there = reached(&public, "nudge.example").unwrap();
        assert_eq!(
            there.write(Cookie::Session, Some("v")),
            "__Host-nudge=v; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(
            there.write(Cookie::Login, Some("v")),
            "__Host-nudge-login=v; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600"
        );
        let here = reached(&public, "localhost:8480").unwrap();
        assert_eq!(
            here.write(Cookie::Session, None),
            "nudge=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
        );
        let headers = parts(
            Method::GET,
            "/",
            &[("cookie", "a=b; nudge=one"), ("cookie", "__Host-nudge=two")],
        )
        .headers;
        assert_eq!(here.read(&headers, Cookie::Session), Some("one"));
        assert_eq!(there.read(&headers, Cookie::Session), Some("two"));
        assert_eq!(there.read(&headers, Cookie::Login), None);
    }

    #[test]
    fn a_cookie_that_is_no_text_hides_no_other_and_blanks_beyond_ascii_are_of_the_name() {
        let site = Site::new("https://nudge.example", false).unwrap();
        let there = reached(&site, "nudge.example").unwrap();
        for (cookies, found) in [
            (&b"theme=\xe9; __Host-nudge=one"[..], Some("one")),
            (b"__Host-nudge=one;\xff", Some("one")),
            ("name=J\u{fc}rgen; __Host-nudge=one".as_bytes(), Some("one")),
            (b"__Host-nudge=\xe9", None),
            ("a=b; \u{2000}__Host-nudge=one".as_bytes(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_bytes(cookies).unwrap());
            assert_eq!(there.read(&headers, Cookie::Session), found);
            assert_eq!(has_session_cookie(&headers), found.is_some());
        }
    }
}
