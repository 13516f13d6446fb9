//! Connecting to the one of several hosts that takes writes, or to any, where nothing is written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection, Row as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::{Error, Kind, Result, url};

/// How long one host has before the next one is asked beside it.
const HEAD_START: Duration = Duration::from_millis(300);
/// The pauses between rounds, during a failover for instance.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// What a server or a pooler says to a setting that it does not take: a violation of the protocol, an unknown object, a
/// bad value, a feature that is not there.
const REFUSED_SETTINGS: [&str; 4] = ["08P01", "42704", "22023", "0A000"];
/// A standby is one of both: it has not been promoted, or its administrator lets nobody write.
const IS_STANDBY: &str =
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";

/// The hosts of a URL.
#[derive(Debug)]
pub(crate) struct Hosts {
    all: Vec<Host>,
    /// The host that took writes last is asked first.
    last: AtomicUsize,
    /// How long one may take to let a connection in.
    patience: Duration,
    access: Access,
}

/// What is done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is written to.
    Writes,
    /// It is only read.
    Reads,
}

#[derive(Debug)]
struct Host {
    /// With the session's settings as start-up options, which take no round trip and reach through failovers.
    set: PgConnectOptions,
    /// Without: poolers that hand a connection from one session to another refuse them.
    plain: PgConnectOptions,
    refuses_settings: AtomicBool,
}

impl Hosts {
    pub(crate) fn new(
        url: &str,
        statement_cache: usize,
        settings: &[(&str, String)],
        patience: Duration,
        access: Access,
    ) -> Result<Self> {
        let hosts = url::hosts(url)?.into_iter().map(|options| {
            let plain = options
                .statement_cache_capacity(statement_cache)
                // The default of PostgreSQL is as exact, and poolers do not know the setting.
                .extra_float_digits(None);
            Host {
                set: plain.clone().options(settings.iter().cloned()),
                plain,
                refuses_settings: AtomicBool::new(false),
            }
        });
        Ok(Self {
            all: hosts.collect(),
            last: AtomicUsize::new(0),
            patience,
            access,
        })
    }

    /// A connection to a host that takes writes, if that is wanted. Asks again while there is none, as during a failover, but not past an
    /// instant.
    pub(crate) async fn connect(self: &Arc<Self>, until: Instant) -> Result<PgConnection> {
        let mut pause = FIRST_PAUSE;
        let mut failure = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let error = match timeout(left, self.round()).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => error,
                // What the round before has found says more.
                Err(_) => return Err(failure.unwrap_or_else(|| silence().into())),
            };
            if error.kind() != Kind::Unavailable || Instant::now() + pause >= until {
                return Err(error);
            }
            failure = Some(error);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks each host once, each a little after the one before; the first that takes writes wins.
    async fn round(self: &Arc<Self>) -> Result<PgConnection> {
        let last = self.last.load(Ordering::Relaxed);
        let count = self.all.len();
        let mut waiting = (0..count).map(|index| (last + index) % count);
        let mut attempts = JoinSet::new();
        let mut failure: Option<Error> = None;
        loop {
            if let Some(index) = waiting.next() {
                let hosts = Arc::clone(self);
                attempts.spawn(async move { (index, hosts.attempt(index).await) });
            }
            let more = waiting.len() > 0;
            tokio::select! {
                attempt = attempts.join_next() => match attempt {
                    Some(Ok((index, Ok(connection)))) => {
                        self.last.store(index, Ordering::Relaxed);
                        return Ok(connection);
                    }
                    Some(Ok((_, Err(error)))) => failure = Some(graver(failure, error)),
                    Some(Err(_)) => {}
                    None if more => {}
                    None => return Err(failure.unwrap_or_else(|| silence().into())),
                },
                () = sleep(HEAD_START), if more => {}
            }
        }
    }

    async fn attempt(&self, index: usize) -> Result<PgConnection> {
        let Some(host) = self.all.get(index) else {
            return Err(silence().into());
        };
        match timeout(self.patience, host.open(self.access)).await {
            Ok(connection) => connection,
            Err(_) => Err(silence().into()),
        }
    }
}

impl Host {
    async fn open(&self, access: Access) -> Result<PgConnection> {
        let mut connection = self.enter().await?;
        if access == Access::Reads {
            return Ok(connection);
        }
        match sqlx::raw_sql(IS_STANDBY).fetch_one(&mut connection).await {
            Ok(row) if row.try_get(0)? => {
                // It takes no part in anything: there is nothing to wait for.
                drop(connection);
                Err(Error::standby())
            }
            Ok(_) => Ok(connection),
            // A database that only speaks the protocol may not know the question.
            Err(sqlx::Error::Database(error))
                if error.code().is_some_and(|code| code.starts_with("42")) =>
            {
                Ok(connection)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn enter(&self) -> Result<PgConnection> {
        if self.refuses_settings.load(Ordering::Relaxed) {
            return Ok(self.plain.connect().await?);
        }
        match self.set.connect().await {
            Err(sqlx::Error::Database(error))
                if error
                    .code()
                    .is_some_and(|code| REFUSED_SETTINGS.contains(&&*code)) =>
            {
                let connection = self.plain.connect().await?;
                // Only now is it known that the settings were what was wrong.
                self.refuses_settings.store(true, Ordering::Relaxed);
                Ok(connection)
            }
            outcome => Ok(outcome?),
        }
    }
}

/// Of two hosts' failures, what may be over soon: only if none may be is there no use in asking again. Of those, that a
/// host answered and takes no writes.
fn graver(one: Option<Error>, other: Error) -> Error {
    let rank = |error: &Error| match error.kind() {
        Kind::Unavailable if error.is_standby() => 2,
        Kind::Unavailable => 1,
        _ => 0,
    };
    match one {
        Some(one) if rank(&one) >= rank(&other) => one,
        _ => other,
    }
}

/// What is said of a database that says nothing.
pub(crate) fn silence() -> sqlx::Error {
    let text = "the database gave no answer in time";
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text))
}
