//! Extism: a plugin in Rust that has the conditions in its code. Its limits are the manifest's: memory, and a time-out,
//! which a thread keeps that is told of the beginning and the end of each call.

use anyhow::ensure;
use extism::{CompiledPlugin, Manifest, Plugin, PluginBuilder, Wasm};
use wasmtime_of_extism::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::events::{Events, joined};
use super::{DEADLINE, MEMORY, Round, timed};

const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/extism_guest.wasm"));
const PAGE: usize = 64 << 10;

/// The plugin, compiled once.
pub(super) struct Compiled {
    plain: CompiledPlugin,
    /// With memory that is taken from a pool, as Nudge's: no default of Extism's.
    pooled: CompiledPlugin,
}

impl Compiled {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut pool = PoolingAllocationConfig::default();
        // An instance is two: the plugin's, and that of the module that is Extism's own.
        pool.total_core_instances(16)
            .total_memories(16)
            .total_tables(16)
            .max_memory_size(MEMORY)
            .linear_memory_keep_resident(512 << 10)
            .table_keep_resident(16 << 10);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        Ok(Self {
            plain: builder()?.compile()?,
            pooled: builder()?.with_wasmtime_config(config).compile()?,
        })
    }

    /// One plugin for all calls, which keeps what they leave in its memory.
    pub(super) fn reused<'a>(&self, events: &'a Events) -> anyhow::Result<Round<'a>> {
        let mut plugin = Plugin::new_from_compiled(&self.plain)?;
        Ok(Box::new(move |calls| {
            timed(events, calls, |texts| evaluate(&mut plugin, texts))
        }))
    }

    /// A plugin for each call.
    pub(super) fn fresh<'a>(&'a self, events: &'a Events) -> Round<'a> {
        each(&self.plain, events)
    }

    /// The same with memory from a pool.
    pub(super) fn pooled<'a>(&'a self, events: &'a Events) -> Round<'a> {
        each(&self.pooled, events)
    }
}

fn builder() -> anyhow::Result<PluginBuilder<'static>> {
    let manifest = Manifest::new([Wasm::data(GUEST)])
        .with_memory_max(u32::try_from(MEMORY / PAGE)?)
        .with_timeout(DEADLINE);
    Ok(PluginBuilder::new(manifest).with_cache_disabled())
}

fn each<'a>(compiled: &'a CompiledPlugin, events: &'a Events) -> Round<'a> {
    Box::new(|calls| {
        timed(events, calls, |texts| {
            evaluate(&mut Plugin::new_from_compiled(compiled)?, texts)
        })
    })
}

fn evaluate(plugin: &mut Plugin, texts: &[String]) -> anyhow::Result<Vec<u32>> {
    let answer: &[u8] = plugin.call("evaluate", joined(texts))?;
    let (places, rest) = answer.as_chunks();
    ensure!(rest.is_empty(), "not a list of numbers");
    Ok(places.iter().copied().map(u32::from_le_bytes).collect())
}
