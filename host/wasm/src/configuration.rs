//! How wasmtime is set up. What compiles and what runs must agree, so both come here.

use std::num::NonZeroUsize;

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{
    CORE_INSTANCES, Limits, MEMORIES, RESIDENT_MEMORY_BYTES, RESIDENT_TABLE_BYTES, TABLES,
};

/// How many frames of a trap are looked at for names of functions.
const BACKTRACE_FRAMES: usize = 16;

/// An engine that only compiles. It reserves no memory for instances, so that it works within the limits
/// of the compiling process.
pub(crate) fn compiler() -> wasmtime::Result<Engine> {
    Engine::new(&common())
}

/// An engine whose instances come from a pool of `slots`.
pub(crate) fn pooled(limits: &Limits, slots: u32) -> wasmtime::Result<Engine> {
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(
        limits,
        slots.max(1),
    )));
    Engine::new(&config)
}

/// An engine whose instances are allocated one by one, for machines that have no room for a pool.
pub(crate) fn on_demand() -> wasmtime::Result<Engine> {
    Engine::new(&common())
}

/// Everything that compiled code depends on.
fn common() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // A call without concurrency support costs a fifth.
        .concurrency_support(false)
        // A trap names the functions in which it happened.
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES))
        // The same batch must give the same bits on every machine.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // Nothing that plugins do needs these, and what is off cannot have bugs.
        .wasm_memory64(false)
        // What wasmtime itself puts between the modules of a component that is made of several, as those
        // of the JavaScript tools are, has two memories.
        .wasm_multi_memory(true)
        .memory_init_cow(true);
    config
}

fn pool(limits: &Limits, slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .max_core_instances_per_component(CORE_INSTANCES)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES))
        .max_memories_per_component(MEMORIES)
        // A component that uses all it may have must not take it from the calls beside it.
        .total_memories(slots.saturating_mul(MEMORIES))
        .max_memory_size(limits.memory_bytes)
        .max_tables_per_component(TABLES)
        .max_tables_per_module(TABLES)
        .total_tables(slots.saturating_mul(TABLES))
        .table_elements(limits.table_elements)
        .total_stacks(1)
        .linear_memory_keep_resident(RESIDENT_MEMORY_BYTES)
        // Where the kernel can say which pages a call has touched, only those are cleared.
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(RESIDENT_TABLE_BYTES);
    pool
}
