//! A primary and a synchronous standby behind a proxy, of which the primary goes away again and again.

use anyhow::Context as _;
use tests::postgres::{Cluster, Durability};
use tests::proxy::Proxy;

/// Two clusters, and the proxy that leads to the one that takes writes.
#[derive(Debug)]
pub(crate) struct Pair {
    primary: Cluster,
    standby: Cluster,
    proxy: Proxy,
    /// The database's URL, by the proxy.
    pub(crate) url: String,
    failovers: usize,
}

impl Pair {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let (primary, standby, url) = tokio::task::spawn_blocking(|| {
            let primary = Cluster::start_new(Durability::Durable);
            let url = primary.create_database();
            let standby = primary.follow();
            (primary, standby, url)
        })
        .await
        .context("a panic")?;
        let (proxy, url) = Proxy::of(&url).await;
        Ok(Self {
            primary,
            standby,
            proxy,
            url,
            failovers: 0,
        })
    }

    /// Takes the primary away, in turns by killing it and by cutting it off without a word, promotes the standby, and makes
    /// a new one.
    pub(crate) fn fail_over(&mut self) {
        if self.failovers.is_multiple_of(2) {
            self.primary.kill();
        } else {
            self.proxy.freeze();
        }
        self.failovers += 1;
        self.standby.promote();
        self.proxy.redirect(&self.standby.url("postgres"));
        let next = self.standby.follow();
        self.primary = std::mem::replace(&mut self.standby, next);
    }
}
