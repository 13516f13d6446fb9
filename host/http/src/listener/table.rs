//! Who is connected. There is room for so many, and for so many of one address; where there is none, the connection
//! gives way that has kept the server waiting the longest. So who only holds connections gives way to who uses them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use nudge_platform::rate_limits::owner_of;
use parking_lot::Mutex;

use super::connection::{Connection, Memory, Order, Patience, Reason};

/// One in so many connections gives way at a time, as looking for them takes a look at all.
const AT_A_TIME: usize = 256;

/// Connections of one kind.
#[derive(Debug)]
pub(super) struct Table {
    most: usize,
    of_an_address: usize,
    patience: Patience,
    memory: Arc<Memory>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: HashMap<u64, Arc<Connection>>,
    addresses: HashMap<[u8; 16], usize>,
    next: u64,
}

impl Inner {
    fn remove(&mut self, connection: &Connection) {
        if self.open.remove(&connection.id).is_none() {
            return;
        }
        let owner = owner_of(connection.peer);
        if let Some(count) = self.addresses.get_mut(&owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.addresses.remove(&owner);
            }
        }
    }
}

/// Why there is no room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Its address has as many as it may have.
    Address,
    /// The server works for all that there are.
    Table,
}

/// A connection's place in a table; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    table: Arc<Table>,
    pub(super) connection: Arc<Connection>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.inner.lock().remove(&self.connection);
    }
}

impl Table {
    /// Nobody is connected. With 0 `of_an_address`, addresses are not counted.
    pub(super) fn new(
        most: usize,
        of_an_address: usize,
        patience: Patience,
        memory: &Arc<Memory>,
    ) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            of_an_address,
            patience,
            memory: Arc::clone(memory),
            inner: Mutex::default(),
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.inner.lock().open.len()
    }

    /// Takes a connection in.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Result<Seat, Full> {
        let mut inner = self.inner.lock();
        let owner = owner_of(peer);
        let of_an_address = inner.addresses.get(&owner).copied().unwrap_or_default();
        let counted = self.of_an_address > 0 && !peer.to_canonical().is_loopback();
        if counted && of_an_address >= self.of_an_address {
            return Err(Full::Address);
        }
        if inner.open.len() >= self.most {
            self.make_room(&mut inner, now);
        }
        if inner.open.len() >= self.most {
            return Err(Full::Table);
        }
        inner.next += 1;
        let credit = self.patience.credit();
        let connection = Connection::new(inner.next, peer, credit, &self.memory, now);
        let connection = Arc::new(connection);
        inner.open.insert(connection.id, Arc::clone(&connection));
        *inner.addresses.entry(owner).or_default() += 1;
        drop(inner);
        let table = Arc::clone(self);
        Ok(Seat { table, connection })
    }

    /// Ends some of the connections that the server waits for.
    fn make_room(&self, inner: &mut Inner, now: Instant) {
        let mut waiting: Vec<(Instant, Arc<Connection>)> = inner
            .open
            .values()
            .filter_map(|it| Some((it.waits_since()?, Arc::clone(it))))
            .collect();
        let count = (self.most / AT_A_TIME).max(1);
        if waiting.len() > count {
            waiting.select_nth_unstable_by_key(count, |(since, _)| *since);
            waiting.truncate(count);
        }
        for (_, connection) in waiting {
            connection.end(Order::Close, Reason::Room, now);
            inner.remove(&connection);
        }
    }

    /// Ends what has taken too long.
    pub(super) fn sweep(&self, now: Instant) {
        for connection in self.all() {
            connection.check_first(self.patience.first, now);
            if let Some((order, reason)) = connection.due(&self.patience, now) {
                connection.end(order, reason, now);
            }
        }
    }

    /// Ends connections that do not read their answers, those that have waited longest first, until so many bytes are
    /// free.
    pub(super) fn free(&self, mut bytes: usize, now: Instant) {
        let mut holding: Vec<(Instant, usize, Arc<Connection>)> = self
            .all()
            .into_iter()
            .filter(|it| it.order() < Some(Order::Close))
            .filter_map(|it| Some((it.reads_since()?, it.held(), it)))
            .filter(|(_, held, _)| *held > 0)
            .collect();
        holding.sort_unstable_by_key(|(since, _, _)| *since);
        for (_, held, connection) in holding {
            if bytes == 0 {
                return;
            }
            connection.end(Order::Reset, Reason::Memory, now);
            bytes = bytes.saturating_sub(held);
        }
    }

    /// Asks all to finish.
    pub(super) fn drain(&self, now: Instant) {
        for connection in self.all() {
            connection.tell(Order::Drain, now);
        }
    }

    fn all(&self) -> Vec<Arc<Connection>> {
        self.inner.lock().open.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PATIENCE: Patience = Patience {
        first: Duration::from_secs(10),
        stalled: Duration::from_secs(30),
        idle: Duration::from_mins(1),
        age: Duration::from_mins(10),
        drain: Duration::from_secs(40),
    };

    fn address(last: u16) -> IpAddr {
        format!("192.0.2.{last}").parse().unwrap()
    }

    #[test]
    fn an_address_has_so_many_and_this_machine_all() {
        let now = Instant::now();
        let table = Table::new(100, 2, PATIENCE, &Arc::default());
        let admit = |peer: &str| table.admit(peer.parse().unwrap(), now);
        let one = admit("192.0.2.1").unwrap();
        let _two = admit("::ffff:192.0.2.1").unwrap();
        assert_eq!(admit("192.0.2.1").unwrap_err(), Full::Address);
        let _other = admit("192.0.2.2").unwrap();
        drop(one);
        let _three = admit("192.0.2.1").unwrap();
        assert_eq!(admit("192.0.2.1").unwrap_err(), Full::Address);

        let _network = [admit("2001:db8::1").unwrap(), admit("2001:db8::2").unwrap()];
        assert_eq!(admit("2001:db8::3").unwrap_err(), Full::Address);
        let _next = admit("2001:db8:0:1::3").unwrap();

        let local: Vec<Seat> = ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"]
            .into_iter()
            .flat_map(|peer| {
                [
                    admit(peer).unwrap(),
                    admit(peer).unwrap(),
                    admit(peer).unwrap(),
                ]
            })
            .collect();
        let before = table.len();
        drop(local);
        assert_eq!(table.len(), before - 12);
    }

    #[test]
    fn addresses_are_not_counted_where_they_say_nothing() {
        let table = Table::new(100, 0, PATIENCE, &Arc::default());
        let seats: Vec<_> = (0..50)
            .map(|_| table.admit(address(1), Instant::now()))
            .collect();
        assert!(seats.iter().all(Result::is_ok));
        drop(seats);
        assert!(table.inner.lock().addresses.is_empty());
    }

    #[test]
    fn who_keeps_the_server_waiting_longest_gives_way() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let table = Table::new(3, 0, PATIENCE, &Arc::default());
        let admit = |last, now| table.admit(address(last), now);
        let busy = admit(1, after(0)).unwrap();
        let _request = busy.connection.begin(after(0));
        let idle = admit(2, after(2)).unwrap();
        let silent = admit(3, after(1)).unwrap();

        let new = admit(4, after(3)).unwrap();
        assert_eq!(silent.connection.order(), Some(Order::Close));
        assert_eq!((idle.connection.order(), table.len()), (None, 3));
        // It was taken out already.
        drop(silent);
        assert_eq!(table.len(), 3);

        let _requests = [
            idle.connection.begin(after(3)),
            new.connection.begin(after(3)),
        ];
        assert_eq!(admit(5, after(4)).unwrap_err(), Full::Table);
        assert_eq!(busy.connection.order(), None);
    }

    #[test]
    fn many_give_way_at_a_time_where_there_are_many() {
        let start = Instant::now();
        let table = Table::new(1024, 0, PATIENCE, &Arc::default());
        let seats: Vec<Seat> = (0..1024)
            .map(|micros| {
                let at = start + Duration::from_micros(micros);
                table.admit(address(1), at).unwrap()
            })
            .collect();
        let _new = table.admit(address(2), start + Duration::from_secs(1));
        let ended = |seats: &[Seat]| {
            seats
                .iter()
                .filter(|it| it.connection.order().is_some())
                .count()
        };
        assert_eq!((ended(&seats[..4]), ended(&seats)), (4, 4));
    }

    #[test]
    fn answers_that_are_not_read_are_given_up_where_memory_ends() {
        let start = Instant::now();
        let memory = Arc::new(Memory::new(1500));
        let table = Table::new(10, 0, PATIENCE, &memory);
        let seats: Vec<Seat> = (0..3)
            .map(|last| table.admit(address(last), start).unwrap())
            .collect();
        let requests: Vec<_> = seats
            .iter()
            .map(|seat| {
                let request = seat.connection.begin(start);
                request.hold(1000);
                std::thread::sleep(Duration::from_millis(2));
                request
            })
            .collect();
        assert_eq!(memory.excess(), 1500);
        table.free(memory.excess(), Instant::now());
        let orders: Vec<_> = seats.iter().map(|seat| seat.connection.order()).collect();
        assert_eq!(orders, [Some(Order::Reset), Some(Order::Reset), None]);
        drop((requests, seats));
    }
}
