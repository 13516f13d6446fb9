//! Requests that go where the rule allows and nowhere else: checked when a URL is saved, and at every
//! connection.
//!
//! Names are resolved by the guard alone, and the client connects to the addresses that the guard has checked:
//! there is no second look-up whose answer could be another one (DNS rebinding). Addresses in a URL are no
//! names; they are checked with the URL, which is why every request passes [`Guard::check`].

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};
use uuid::Uuid;

use super::lookups::{self, Lookups, Purpose};
use super::rule::{NotAllowed, Rule};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection waits for its next request.
const IDLE: Duration = Duration::from_secs(30);
/// Connections to one host that wait for their next request.
const MOST_IDLE: usize = 4;

/// Says where requests may go, and connects there only. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard {
    rule: Arc<Rule>,
    lookups: Lookups,
    purpose: Purpose,
}

impl Guard {
    /// A guard with a rule. Names are looked up for a purpose.
    pub fn new(rule: Rule, lookups: &Lookups, purpose: Purpose) -> Self {
        Self {
            rule: Arc::new(rule),
            lookups: lookups.clone(),
            purpose,
        }
    }

    /// The same rule for another purpose.
    #[must_use]
    pub fn with_purpose(&self, purpose: Purpose) -> Self {
        Self {
            purpose,
            ..self.clone()
        }
    }

    /// Looks names up.
    pub fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// Checks what can be told without a look-up. Every URL passes here before each request.
    pub fn check(&self, url: &str) -> Result<Url, NotAllowed> {
        self.rule.check(url)
    }

    /// Checks a URL that an app wants to save: all addresses of its host too. A name that does not resolve now, or can't
    /// be looked up now, is let pass, since nothing is ever connected to that is not checked then.
    ///
    /// Whoever asks learns whether a name has addresses that are not public. So it is for people who may manage an
    /// app; what the public names is checked without a look-up ([`Guard::check`]).
    pub async fn check_resolved(&self, app_id: Uuid, url: &str) -> Result<Url, NotAllowed> {
        let url = self.rule.check(url)?;
        let host = url.host_str().ok_or(NotAllowed::Host)?;
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        if is_address {
            return Ok(url);
        }
        let addresses = self.lookups.addresses(Purpose::Save, host);
        match lookups::on_behalf_of(app_id, addresses).await {
            Ok(addresses) if !addresses.iter().all(|it| self.rule.allows(*it)) => {
                Err(NotAllowed::Host)
            }
            _ => Ok(url),
        }
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
            let found = guard.lookups.addresses(guard.purpose, name.as_str());
            let addresses = found.await?;
            // Of a mixed answer the public part is not to be trusted either.
            if !addresses.iter().all(|address| guard.rule.allows(*address)) {
                return Err(NotAllowed::Host.into());
            }
            Ok(lookups::for_client(addresses))
        })
    }
}

/// Whether a request failed because of an address that is not allowed.
pub fn refused(error: &reqwest::Error) -> bool {
    super::cause::<NotAllowed>(error).is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::Lookup;
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
        fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
            self.asked.lock().unwrap().push(name.to_owned());
            let mut answers = self.answers.lock().unwrap();
            Ok(match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop().unwrap_or_default(),
            })
        }
    }

    fn guard(private: bool, script: &Arc<Script>) -> Guard {
        let rule = Rule {
            allow_http: true,
            allow_private_networks: private,
            ports: vec![443, 8443],
        };
        let lookup: Arc<dyn Lookup> = Arc::<Script>::clone(script);
        Guard::new(rule, &Lookups::new(&lookup, 4), Purpose::Webhook)
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
                .check_resolved(Uuid::nil(), "https://example.com/")
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
        let url = guard.check_resolved(Uuid::nil(), &url).await.unwrap();
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

    /// Answers nobody until it is released.
    #[derive(Debug, Default)]
    struct Hanging {
        asked: Mutex<Vec<String>>,
        released: Mutex<bool>,
        release: std::sync::Condvar,
    }

    impl Lookup for Hanging {
        fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
            self.asked.lock().unwrap().push(name.to_owned());
            let released = self.released.lock().unwrap();
            drop(self.release.wait_while(released, |it| !*it).unwrap());
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn a_clients_look_ups_are_those_of_the_app_that_it_works_for() {
        let hanging = Arc::new(Hanging::default());
        let lookup: Arc<dyn Lookup> = Arc::<Hanging>::clone(&hanging);
        let rule = Rule {
            allow_http: true,
            allow_private_networks: false,
            ports: vec![443],
        };
        // One thread an app.
        let guard = Guard::new(rule, &Lookups::new(&lookup, 4), Purpose::Webhook);
        let client = guard.client(Duration::from_secs(10)).unwrap();
        let request = |app: u128, name: &str| {
            let request = client.get(format!("http://{name}.example/")).send();
            lookups::on_behalf_of(Uuid::from_u128(app), request)
        };

        let (first, second, other) =
            tokio::join!(request(1, "a"), request(1, "b"), request(2, "c"));

        assert!(!lookups::busy(&first.unwrap_err()));
        assert!(
            lookups::busy(&second.unwrap_err()),
            "its app has one already"
        );
        assert!(!lookups::busy(&other.unwrap_err()));
        *hanging.released.lock().unwrap() = true;
        hanging.release.notify_all();
        assert_eq!(*hanging.asked.lock().unwrap(), ["a.example", "c.example"]);
    }
}
