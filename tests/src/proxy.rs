//! A proxy between a server and its database, which can cut connections, hold everything back, lose answers, and lead to
//! another database.
#![expect(
    clippy::expect_used,
    reason = "test support: a proxy that fails fails the test where it stands"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What a client says to make a transaction durable.
const COMMIT: &[u8] = b"COMMIT";

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    control: Arc<Control>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Control {
    /// Where new connections lead.
    to: Mutex<String>,
    /// How often all connections of a time were frozen.
    freezes: AtomicU64,
    /// Moves when all connections are to be cut.
    cuts: watch::Sender<u64>,
    /// Whether nothing passes in either direction.
    held: watch::Sender<bool>,
    /// The answer to each so manieth message of clients is lost, and its connection with it. 0: none is.
    lost_every: AtomicU64,
    /// Whether the answer to the next commit is lost.
    loses_commit: AtomicBool,
    messages: AtomicU64,
    lost: AtomicU64,
}

impl Proxy {
    /// A proxy for a server.
    pub async fn start(to: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let control = Arc::new(Control {
            to: Mutex::new(to),
            freezes: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
            held: watch::Sender::new(false),
            lost_every: AtomicU64::new(0),
            loses_commit: AtomicBool::new(false),
            messages: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        let controlled = Arc::clone(&control);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(connection(client, Arc::clone(&controlled)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            control,
            _tasks: tasks,
        }
    }

    /// A proxy for the server of a database's URL, and the URL that leads through it.
    pub async fn of(url: &str) -> (Self, String) {
        let proxy = Self::start(authority(url).to_owned()).await;
        let url = url.replace(authority(url), &proxy.address.to_string());
        (proxy, url)
    }

    /// New connections lead to the server of another database's URL. Nothing happens to those that are there.
    pub fn redirect(&self, url: &str) {
        let mut to = self.control.to.lock().expect("nobody panics with it");
        authority(url).clone_into(&mut to);
    }

    /// Nothing passes any more on the connections that are there, and nothing says so; new ones are not concerned.
    pub fn freeze(&self) {
        self.control.freezes.fetch_add(1, Ordering::SeqCst);
    }

    /// Cuts all connections as they are.
    pub fn cut(&self) {
        self.control.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Lets nothing pass any more, or everything again.
    pub fn hold(&self, held: bool) {
        self.control.held.send_replace(held);
    }

    /// Has each so manieth message carried out, and its connection cut before the answer. 0: none.
    pub fn lose_every(&self, messages: u64) {
        self.control.lost_every.store(messages, Ordering::SeqCst);
    }

    /// Has the next commit carried out, and its connection cut before the answer.
    pub fn lose_next_commit(&self) {
        self.control.loses_commit.store(true, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> u64 {
        self.control.lost.load(Ordering::SeqCst)
    }
}

/// The host and the port of a database's URL.
fn authority(url: &str) -> &str {
    let (_, rest) = url.rsplit_once('@').expect("a user");
    let (authority, _) = rest.split_once('/').expect("a database");
    authority
}

/// Passes on what the two say until one has nothing more to say or the connection is cut.
async fn connection(client: TcpStream, control: Arc<Control>) {
    let freezes = control.freezes.load(Ordering::SeqCst);
    let to = control.to.lock().expect("nobody panics with it").clone();
    let Ok(server) = TcpStream::connect(to).await else {
        return;
    };
    // A client of a database waits for each answer.
    for stream in [&client, &server] {
        if stream.set_nodelay(true).is_err() {
            return;
        }
    }
    let mut cuts = control.cuts.subscribe();
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let loses = AtomicBool::new(false);
    tokio::select! {
        () = requests(client_reads, server_writes, &control, &loses, freezes) => {}
        () = answers(server_reads, client_writes, &control, &loses, freezes) => {}
        _ = cuts.changed() => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    control: &Control,
    loses: &AtomicBool,
    freezes: u64,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let number = control.messages.fetch_add(1, Ordering::SeqCst);
        let every = control.lost_every.load(Ordering::SeqCst);
        let commits = buffer
            .get(..length)
            .is_some_and(|sent| sent.windows(COMMIT.len()).any(|part| part == COMMIT));
        let loses_commit = commits && control.loses_commit.swap(false, Ordering::SeqCst);
        if loses_commit || (every > 0 && number % every == every - 1) {
            loses.store(true, Ordering::SeqCst);
        }
        if !pass(&buffer, length, &mut to, control, freezes).await {
            return;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    control: &Control,
    loses: &AtomicBool,
    freezes: u64,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if loses.load(Ordering::SeqCst) {
            control.lost.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if !pass(&buffer, length, &mut to, control, freezes).await {
            return;
        }
    }
}

/// Passes something on once nothing is held back, on a connection that was made after so many freezes.
async fn pass(
    buffer: &[u8],
    length: usize,
    to: &mut OwnedWriteHalf,
    control: &Control,
    freezes: u64,
) -> bool {
    if control.freezes.load(Ordering::SeqCst) > freezes {
        std::future::pending::<()>().await;
    }
    let mut held = control.held.subscribe();
    if held.wait_for(|held| !held).await.is_err() {
        return false;
    }
    let part = buffer.get(..length).unwrap_or_default();
    to.write_all(part).await.is_ok()
}
