//! URLs of PostgreSQL that name several hosts, as libpq takes them.

use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

use crate::{Error, Result};

/// Beyond so many, an outage is spent on asking them all.
const MOST_HOSTS: usize = 16;
const DEFAULT_PORT: &str = "5432";

/// A URL's parts, as they are written in it.
struct Parts<'u> {
    scheme: &'u str,
    user: Option<&'u str>,
    hosts: &'u str,
    path: &'u str,
    parameters: Vec<(&'u str, &'u str)>,
}

/// How to connect to each host of a URL, in their order.
///
/// Hosts stand with their ports before the database (`a:1,b:2/db`), or in the parameters `host` (or `hostaddr`) and `port`,
/// which has one number for all hosts or one for each. `target_session_attrs` may ask for what the server needs anyway:
/// a host that takes writes.
pub(crate) fn hosts(url: &str) -> Result<Vec<PgConnectOptions>> {
    let url = Parts::of(url)?;
    let mut names = None;
    let mut ports = None;
    let mut rest = Vec::new();
    for (name, value) in url.parameters {
        match name {
            "host" | "hostaddr" => names = Some(list(value)),
            "port" => ports = Some(list(value)),
            "target_session_attrs" => check_target(value)?,
            // Who takes writes is the same for all connections.
            "load_balance_hosts" => {}
            _ => rest.push(format!("{name}={value}")),
        }
    }
    let hosts = match names {
        Some(names) => paired(names, ports)?,
        None if url.hosts.is_empty() => vec![(String::new(), ports.and_then(only))],
        None => in_authority(url.hosts, ports)?,
    };
    if hosts.len() > MOST_HOSTS {
        return Err(wrong("it names more than 16 hosts"));
    }
    let user = url.user.map(|user| format!("{user}@")).unwrap_or_default();
    let (scheme, path) = (url.scheme, url.path);
    let options = hosts.into_iter().map(|(name, port)| {
        let mut parameters = rest.clone();
        // A host may be a folder with a socket, which stands among the parameters only.
        if !name.is_empty() {
            parameters.push(format!("host={name}"));
        }
        if let Some(port) = port {
            parameters.push(format!("port={port}"));
        }
        // Without a host the driver knows the places where a server of this machine is.
        let place = if name.is_empty() && user.is_empty() {
            ""
        } else {
            "localhost"
        };
        let single = format!("{scheme}://{user}{place}{path}?{}", parameters.join("&"));
        PgConnectOptions::from_str(&single).map_err(Error::from)
    });
    options.collect()
}

impl<'u> Parts<'u> {
    fn of(url: &'u str) -> Result<Self> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| wrong("it has no scheme"))?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = location.find('/').unwrap_or(location.len());
        let (authority, path) = location.split_at(path);
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let parameters = query.split('&').filter(|part| !part.is_empty());
        Ok(Self {
            scheme,
            user,
            hosts,
            path,
            parameters: parameters
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .collect(),
        })
    }
}

/// The members of a list, in which a comma may be written as such or escaped.
fn list(value: &str) -> Vec<String> {
    let value = value.replace("%2C", ",").replace("%2c", ",");
    value.split(',').map(str::to_owned).collect()
}

fn only(ports: Vec<String>) -> Option<String> {
    ports.into_iter().next()
}

/// Hosts with the ports of another parameter: one for all, or one for each.
fn paired(names: Vec<String>, ports: Option<Vec<String>>) -> Result<Vec<(String, Option<String>)>> {
    if names.iter().any(String::is_empty) {
        return Err(wrong("one of its hosts has no name"));
    }
    let ports = ports.unwrap_or_default();
    if ports.len() > 1 && ports.len() != names.len() {
        return Err(wrong("it names other than one port, or one for each host"));
    }
    let port = |index: usize| {
        let port = ports.get(index).or(ports.first())?;
        let port = if port.is_empty() { DEFAULT_PORT } else { port };
        Some(port.to_owned())
    };
    let hosts = names.into_iter().enumerate();
    Ok(hosts.map(|(index, name)| (name, port(index))).collect())
}

/// Hosts with ports of their own: `a:1,b,[::1]:3`.
fn in_authority(hosts: &str, ports: Option<Vec<String>>) -> Result<Vec<(String, Option<String>)>> {
    let mut names = Vec::new();
    let mut own = Vec::new();
    for host in hosts.split(',') {
        // An address of IPv6 has colons within its brackets.
        let end = host.find(']').map_or(0, |end| end + 1);
        let (address, tail) = host.split_at(end);
        let (name, port) = tail.split_once(':').unwrap_or((tail, ""));
        let address = address.trim_matches(['[', ']']);
        names.push(format!("{address}{name}"));
        own.push(port.to_owned());
    }
    let has_ports = own.iter().any(|port| !port.is_empty());
    paired(names, if has_ports { Some(own) } else { ports })
}

fn check_target(value: &str) -> Result<()> {
    match value {
        "any" | "read-write" | "primary" | "" => Ok(()),
        _ => Err(wrong(
            "the server writes, so that target_session_attrs can be read-write only",
        )),
    }
}

/// The URL may have a password: nothing of it is repeated.
fn wrong(what: &'static str) -> Error {
    sqlx::Error::Configuration(what.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str) -> Vec<(String, u16)> {
        let hosts = hosts(url).unwrap();
        let place = |host: &PgConnectOptions| match host.get_socket() {
            Some(folder) => (folder.display().to_string(), host.get_port()),
            None => (host.get_host().to_owned(), host.get_port()),
        };
        hosts.iter().map(place).collect()
    }

    fn named(hosts: &[(&str, u16)]) -> Vec<(String, u16)> {
        let own = |(name, port): &(&str, u16)| ((*name).to_owned(), *port);
        hosts.iter().map(own).collect()
    }

    #[test]
    fn every_form_of_libpq_is_read() {
        for (url, expected) in [
            ("postgres://u:p@a/db", &[("a", 5432)][..]),
            (
                "postgresql://a:1,b:2/db?target_session_attrs=read-write",
                &[("a", 1), ("b", 2)],
            ),
            ("postgres://u:p@a,b:2/db", &[("a", 5432), ("b", 2)]),
            ("postgres://a,b/db?port=7", &[("a", 7), ("b", 7)]),
            (
                "postgres://u:p@/db?host=a,b&port=1,2",
                &[("a", 1), ("b", 2)],
            ),
            ("postgres:///db?host=a%2Cb&port=6", &[("a", 6), ("b", 6)]),
            (
                "postgres://u@x/db?hostaddr=10.0.0.1,10.0.0.2",
                &[("10.0.0.1", 5432), ("10.0.0.2", 5432)],
            ),
            (
                "postgres://[::1]:3,[fe80::2]/db",
                &[("::1", 3), ("fe80::2", 5432)],
            ),
            (
                "postgres:///db?host=/run/one,/run/two&port=1,2",
                &[("/run/one", 1), ("/run/two", 2)],
            ),
            ("postgres://%2Frun%2Fone:4/db", &[("/run/one", 4)]),
        ] {
            assert_eq!(found(url), named(expected), "{url}");
        }
    }

    #[test]
    fn what_is_not_about_hosts_stays() {
        let hosts = hosts("postgres://me:p%40ss@a:1,b:2/events?sslmode=require&application_name=x")
            .unwrap();
        for host in &hosts {
            assert_eq!(host.get_username(), "me");
            assert_eq!(host.get_database(), Some("events"));
            assert_eq!(host.get_application_name(), Some("x"));
            assert!(matches!(
                host.get_ssl_mode(),
                sqlx::postgres::PgSslMode::Require
            ));
        }
        assert_eq!(hosts.len(), 2);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_the_password() {
        let many = format!("postgres://u:secret@{}/db", ["h"; 17].join(","));
        for url in [
            "postgres://u:secret@a,b,c/db?port=1,2",
            "postgres://u:secret@a,,c/db",
            "postgres://u:secret@a:1,b:2/db?target_session_attrs=standby",
            "postgres://u:secret@a:one,b:2/db",
            many.as_str(),
        ] {
            let error = hosts(url).unwrap_err();
            let text = format!("{error:?}");
            assert!(!text.contains("secret"), "{url}: {text}");
        }
    }
}
