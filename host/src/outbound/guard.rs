//! Requests that go where the rule allows and nowhere else: checked when a URL is saved, and at every
//! connection.
//!
//! Names are resolved by the guard alone, and the client connects to the addresses that the guard has checked:
//! there is no second look-up whose answer could be another one (DNS rebinding). Addresses in a URL are no
//! names; they are checked with the URL, which is why every request passes [`Guard::check`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};

use super::rule::{NotAllowed, Rule};

/// How long the look-up of a name may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection waits for its next request.
const IDLE: Duration = Duration::from_secs(30);
/// Connections to one host that wait for their next request.
const MOST_IDLE: usize = 4;

/// Who knows the addresses of names.
pub trait Lookup: std::fmt::Debug + Send + Sync {
    /// All addresses of a name.
    fn lookup(&self, name: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Says where requests may go, and connects there only. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard {
    rule: Arc<Rule>,
    lookup: Arc<dyn Lookup>,
}

impl Guard {
    /// A guard with a rule. `lookup` resolves names; tests have one of their own.
    pub fn new(rule: Rule, lookup: Arc<dyn Lookup>) -> Self {
        Self {
            rule: Arc::new(rule),
            lookup,
        }
    }

    /// Checks what can be told without a look-up. Every URL passes here before each request.
    pub fn check(&self, url: &str) -> Result<Url, NotAllowed> {
        self.rule.check(url)
    }

    /// Checks a URL that is to be saved: all addresses of its host too. A name that does not resolve now is
    /// let pass, since nothing is ever connected to that is not checked then.
    pub async fn check_resolved(&self, url: &str) -> Result<Url, NotAllowed> {
        let url = self.rule.check(url)?;
        let host = url.host_str().ok_or(NotAllowed::Host)?;
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        if !is_address
            && let Ok(Ok(addresses)) =
                tokio::time::timeout(LOOKUP_TIMEOUT, self.lookup.lookup(host)).await
            && !addresses.iter().all(|address| self.rule.allows(*address))
        {
            return Err(NotAllowed::Host);
        }
        Ok(url)
    }

    /// A client that connects to checked addresses only. It follows no redirects, and takes no proxy from the
    /// environment, which would resolve names by itself. `timeout` is for a request and its whole answer.
    pub fn client(&self, timeout: Duration) -> anyhow::Result<Client> {
        self.builder(timeout)
            .build()
            .context("can't set TLS up: are the system's certificates (ca-certificates) installed?")
    }

    /// The same, to be completed: with certificates, say. The resolver, redirects and proxies must stay.
    pub fn builder(&self, timeout: Duration) -> reqwest::ClientBuilder {
        Client::builder()
            .dns_resolver(Checked(self.clone()))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .referer(false)
            .user_agent(concat!("nudge/", env!("CARGO_PKG_VERSION")))
    }
}

/// The client's resolver: answers checked addresses, or none.
struct Checked(Guard);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let looked_up = guard.lookup.lookup(name.as_str());
            let addresses = tokio::time::timeout(LOOKUP_TIMEOUT, looked_up).await??;
            // Of a mixed answer the public part is not to be trusted either.
            if !addresses.iter().all(|address| guard.rule.allows(*address)) {
                return Err(NotAllowed::Host.into());
            }
            // The port 0 stands for the URL's.
            let addresses = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// Whether a request failed because of an address that is not allowed.
pub fn refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<NotAllowed>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers from a list, and the last one for ever; notes what it was asked.
    #[derive(Debug, Default)]
    struct Script {
        answers: Mutex<Vec<Vec<IpAddr>>>,
        asked: Mutex<Vec<String>>,
    }

    impl Script {
        fn new(answers: &[&[&str]]) -> Arc<Self> {
            let parse = |addresses: &&[&str]| -> Vec<IpAddr> {
                let addresses = addresses.iter().map(|address| address.parse().unwrap());
                addresses.collect()
            };
            Arc::new(Self {
                answers: Mutex::new(answers.iter().rev().map(parse).collect()),
                asked: Mutex::default(),
            })
        }
    }

    impl Lookup for Script {
        fn lookup(&self, name: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
            self.asked.lock().unwrap().push(name.to_owned());
            let mut answers = self.answers.lock().unwrap();
            let answer = match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop().unwrap_or_default(),
            };
            Box::pin(std::future::ready(Ok(answer)))
        }
    }

    fn guard(private: bool, script: &Arc<Script>) -> Guard {
        let rule = Rule {
            allow_http: true,
            allow_private_networks: private,
            ports: vec![443, 8443],
        };
        Guard::new(rule, Arc::<Script>::clone(script))
    }

    #[tokio::test]
    async fn a_name_is_saved_if_all_its_addresses_are_public() {
        for (addresses, allowed) in [
            (&["93.184.215.14"][..], true),
            (&["93.184.215.14", "2606:2800:21f::1"], true),
            (&[], true),
            (&["10.0.0.1"], false),
            (&["93.184.215.14", "127.0.0.1"], false),
            (&["::1", "93.184.215.14"], false),
            (&["::ffff:169.254.169.254"], false),
        ] {
            let script = Script::new(&[addresses]);
            let checked = guard(false, &script)
                .check_resolved("https://example.com/")
                .await;
            assert_eq!(checked.is_ok(), allowed, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_changes_leads_nowhere() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Script::new(&[&["93.184.215.14"], &["127.0.0.1"]]);
        let mut guard = guard(false, &script);
        guard.rule = Arc::new(Rule {
            ports: vec![port],
            ..(*guard.rule).clone()
        });
        let url = format!("http://rebound.example:{port}/");
        let url = guard.check_resolved(&url).await.unwrap();
        let client = guard.client(Duration::from_secs(5)).unwrap();

        let error = client.get(url).send().await.unwrap_err();

        assert!(refused(&error), "{error:?}");
        assert_eq!(*script.asked.lock().unwrap(), ["rebound.example"; 2]);
        let mut accepted = Box::pin(listener.accept());
        assert!(accepted.as_mut().now_or_never().is_none());
    }

    #[tokio::test]
    async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // The second answer would lead nowhere.
        let script = Script::new(&[&["127.0.0.1"], &["192.0.2.1"]]);
        let guard = guard(true, &script);
        let client = guard.client(Duration::from_secs(5)).unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).await.unwrap();
            let answer =
                b"HTTP/1.1 302 Found\r\nlocation: http://192.0.2.1/\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&request[..read]).to_lowercase()
        };
        let url = format!("http://pinned.example:{port}/");

        let (response, request) = tokio::join!(client.get(url).send(), serve);

        assert_eq!(response.unwrap().status(), 302);
        assert!(request.contains(&format!("host: pinned.example:{port}")));
        assert_eq!(*script.asked.lock().unwrap(), ["pinned.example"]);
    }
}
