//! WASI for guests whose languages cannot do without: no files, no sockets, no environment, no arguments;
//! the batch's time for a clock, the batch's seed for randomness, the call's log for output.
//!
//! It is built on its first use: most guests import it, if at all, for what they never call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::bindings::cli::{stderr, stdout};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{
    DynOutputStream, DynPollable, OutputStream, Pollable, StreamResult, subscribe,
};
use wasmtime_wasi::{
    Deterministic, HostWallClock, ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
    async_trait,
};

use crate::limits::{WASI_RANDOM_BYTES, WASI_RESOURCES};
use crate::log::{Level, Log};
use crate::store::State;

/// What a guest can find out about the world.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings {
    /// Microseconds since 1970.
    pub(crate) now: i64,
    pub(crate) seed: u64,
}

/// A call's WASI.
pub(crate) struct Wasi {
    surroundings: Surroundings,
    output_bytes: usize,
    open: Option<Open>,
}

struct Open {
    context: WasiCtx,
    table: ResourceTable,
    output: Output,
    errors: Output,
}

impl Wasi {
    pub(crate) fn new(surroundings: Surroundings, output_bytes: usize) -> Self {
        Self {
            surroundings,
            output_bytes,
            open: None,
        }
    }

    /// Whether the guest has asked for anything.
    pub(crate) fn was_asked(&self) -> bool {
        self.open.is_some()
    }

    /// Moves what the guest printed to the log.
    pub(crate) fn flush_into(&mut self, log: &mut Log) {
        if let Some(open) = self.open.take() {
            open.output.flush_into(log, Level::Info);
            open.errors.flush_into(log, Level::Error);
        }
    }

    fn open(&mut self) -> &mut Open {
        let Self {
            surroundings,
            output_bytes,
            open,
        } = self;
        open.get_or_insert_with(|| Open::new(*surroundings, *output_bytes))
    }
}

impl Open {
    fn new(surroundings: Surroundings, output_bytes: usize) -> Self {
        let (output, errors) = (Output::new(output_bytes), Output::new(output_bytes));
        let context = WasiCtxBuilder::new()
            .wall_clock(BatchTime(surroundings.now))
            .secure_random(Deterministic::new(random_bytes(
                surroundings.seed,
                "secure",
            )))
            .insecure_random(Deterministic::new(random_bytes(
                surroundings.seed,
                "insecure",
            )))
            .insecure_random_seed(u128::from(surroundings.seed))
            .max_random_size(WASI_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(WASI_RESOURCES);
        Self {
            context,
            table,
            output,
            errors,
        }
    }
}

/// 4 KiB that follow from the seed. Guests that want more get them again: this seeds hash maps, it does
/// not make keys.
fn random_bytes(seed: u64, stream: &str) -> Vec<u8> {
    let block = |number: u32| {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(number.to_le_bytes());
        hash.update(stream);
        hash.finalize()
    };
    (0..128).flat_map(block).collect()
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let open = self.wasi.open();
        WasiCtxView {
            ctx: &mut open.context,
            table: &mut open.table,
        }
    }
}

/// Adds all of WASI, with a monotonic clock that stands still and with output that goes to the log.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<State, Own>(linker, |state| state.wasi.open())?;
    stdout::add_to_linker::<State, Own>(linker, |state| state.wasi.open())?;
    stderr::add_to_linker::<State, Own>(linker, |state| state.wasi.open())?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The interfaces that [`Open`] itself answers.
struct Own;

impl HasData for Own {
    type Data<'a> = &'a mut Open;
}

impl Open {
    fn ready(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        let ready = self.table.push(Ready)?;
        subscribe(&mut self.table, ready)
    }
}

/// Time stands still, so that a guest can neither measure it nor sleep: a host call that sleeps is out of
/// reach of the deadline.
impl monotonic_clock::Host for Open {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, _when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.ready()
    }

    fn subscribe_duration(&mut self, _when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.ready()
    }
}

struct Ready;

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {}
}

struct BatchTime(i64);

impl HostWallClock for BatchTime {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }
}

/// Standard output or standard error. What does not fit is dropped, never an error: `println!` panics on
/// errors.
#[derive(Clone)]
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    limit_bytes: usize,
}

impl Output {
    fn new(limit_bytes: usize) -> Self {
        Self {
            text: Arc::default(),
            limit_bytes,
        }
    }

    fn flush_into(&self, log: &mut Log, level: Level) {
        let text = self.text.lock();
        if !text.is_empty() {
            log.write(level, &String::from_utf8_lossy(&text));
        }
    }
}

impl stdout::Host for Open {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(self.output.clone());
        Ok(self.table.push(stream)?)
    }
}

impl stderr::Host for Open {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(self.errors.clone());
        Ok(self.table.push(stream)?)
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut text = self.text.lock();
        let room = self.limit_bytes.saturating_sub(text.len()).min(bytes.len());
        text.extend_from_slice(bytes.get(..room).unwrap_or_default());
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}
