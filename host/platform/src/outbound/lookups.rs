//! Who asks for the addresses of names, how many at a time, and for whom.
//!
//! The system's resolver (`getaddrinfo`) blocks the thread that asks, for half a minute where a name's servers do not
//! answer, and no time-out frees that thread. So names are looked up on threads of their own, few of them, which
//! nothing else of the server needs: never on tokio's blocking threads, which read files and make archives.
//!
//! * A [`Purpose`] has its own threads, so that whoever saves URLs, or names a browser's endpoint, takes none from
//!   webhooks, and neither takes any from the push services and issuers that are configured.
//! * Within a purpose an app has at most a quarter of the threads, a quarter is for apps that have none, and apps take
//!   turns (`turns`). A name that had an address lately comes under a share of its own, so that names that hang do not
//!   keep an app from a service that works.
//! * Whoever asks waits three seconds at the most. What waits is bounded; beyond it the answer is [`Unknown::Busy`] at once.
//! * The same name is asked for once at a time for an app. A name without an address is remembered as such for five
//!   seconds, 1,024 names of a purpose. Addresses are not remembered: what is connected to is what was answered, and
//!   checked, for that connection. The system's resolver has a cache that knows how long they are good for.
//!
//! Why not a resolver in Rust: `hickory-resolver` 0.26 would be nine crates and some hundred thousand lines more in a process
//! that strangers' name servers talk to; it reads `/etc/resolv.conf` and `/etc/hosts` once, at the start, and knows
//! nothing of `/etc/nsswitch.conf`. Its look-ups could be given up without a thread that goes on waiting; what is
//! bounded here is bounded without it.

mod names;
mod pool;
mod turns;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use pool::Pool;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use turns::Limits;
use uuid::Uuid;

/// Look-ups of a purpose that wait for a thread, and those of an app.
const MOST_WAITING: usize = 1_024;
const MOST_WAITING_EACH: usize = 256;

/// Who knows the addresses of names.
pub trait Lookup: std::fmt::Debug + Send + Sync {
    /// All addresses of a name. Blocks for as long as it takes.
    fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = (name, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// What a name is looked up for. Each has threads of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A URL that is to be saved.
    Save,
    /// A request to a webhook.
    Webhook,
    /// A message to a browser's push service.
    Endpoint,
    /// What the operator has configured: push services, issuers, the collector of traces.
    Service,
}

/// Why there is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The name has none, or its servers do not say.
    #[error("the name has no address")]
    NoAddress,
    /// It was not asked for: other look-ups have all threads that this one may have.
    #[error("too many names are being looked up")]
    Busy,
}

/// Looks names up. Cheap to clone; clones share their threads.
#[derive(Clone, Debug)]
pub struct Lookups {
    save: Pool,
    webhook: Pool,
    endpoint: Pool,
    service: Pool,
}

tokio::task_local! {
    /// The app on whose behalf a request is made.
    static OWNER: Uuid;
}

/// Runs what makes requests on behalf of an app, so that the look-ups of it are the app's.
pub async fn on_behalf_of<F: Future>(app_id: Uuid, requests: F) -> F::Output {
    OWNER.scope(app_id, requests).await
}

impl Lookups {
    /// Look-ups by way of `lookup`, for webhooks and for browsers' endpoints on so many threads each, and on a quarter of
    /// those for each of the rest.
    pub fn new(lookup: &Arc<dyn Lookup>, threads: usize) -> Self {
        let threads = threads.max(1);
        let few = threads.div_ceil(4);
        let pool = |purpose, threads, each| {
            let limits = Limits {
                threads,
                each,
                waiting: MOST_WAITING,
                waiting_each: MOST_WAITING_EACH,
            };
            Pool::new(purpose, Arc::clone(lookup), limits)
        };
        Self {
            save: pool("save", few, few.div_ceil(4)),
            webhook: pool("webhook", threads, few),
            endpoint: pool("endpoint", threads, few),
            // All are the operator's.
            service: pool("service", few, few),
        }
    }

    /// Look-ups by way of the system's resolver.
    pub fn system(threads: usize) -> Self {
        let system: Arc<dyn Lookup> = Arc::new(System);
        Self::new(&system, threads)
    }

    /// All addresses of a name, for the app of [`on_behalf_of`].
    pub async fn addresses(&self, purpose: Purpose, name: &str) -> Result<Vec<IpAddr>, Unknown> {
        let owner = OWNER.try_with(|owner| *owner).unwrap_or_default();
        let pool = match purpose {
            Purpose::Save => &self.save,
            Purpose::Webhook => &self.webhook,
            Purpose::Endpoint => &self.endpoint,
            Purpose::Service => &self.service,
        };
        pool.ask(owner, name).await
    }

    /// A client's resolver for what the operator has configured, wherever that is.
    pub fn for_services(&self) -> Arc<dyn Resolve> {
        Arc::new(Services(self.clone()))
    }
}

struct Services(Lookups);

impl Resolve for Services {
    fn resolve(&self, name: Name) -> Resolving {
        let lookups = self.0.clone();
        Box::pin(async move {
            let addresses = lookups.addresses(Purpose::Service, name.as_str()).await?;
            Ok(for_client(addresses))
        })
    }
}

/// Addresses as a client takes them. The port 0 stands for the URL's.
pub(super) fn for_client(addresses: Vec<IpAddr>) -> Addrs {
    let addresses = addresses
        .into_iter()
        .map(|address| SocketAddr::new(address, 0));
    Box::new(addresses)
}

/// Whether a request failed because its name was not looked up at all.
pub fn busy(error: &reqwest::Error) -> bool {
    super::cause(error) == Some(&Unknown::Busy)
}
