//! What one call has: its batch, its meter, its log, its memory account.

use wasmtime::ResourceLimiter;

use crate::failure::Stop;
use crate::host::wasi::Wasi;
use crate::limits::{CORE_INSTANCES, Limits, MEMORIES, TABLES};
use crate::log::Log;
use crate::meter::Meter;

/// The data of a call's store. `B` is the world's view of the batch.
pub(crate) struct State<B> {
    /// None in `describe` and `check-config`, which have no batch.
    pub(crate) batch: Option<B>,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    pub(crate) memory: MemoryAccount,
    pub(crate) wasi: Wasi,
}

impl<B> State<B> {
    /// Counts a call of a host function, and gives what it works on.
    pub(crate) fn enter(&mut self) -> Result<(&mut B, &mut Meter), Stop> {
        self.meter.host_call()?;
        let batch = self.batch.as_mut().ok_or(Stop::NoBatch)?;
        Ok((batch, &mut self.meter))
    }
}

/// Limits what instances may allocate, and remembers how much they did.
#[derive(Debug)]
pub(crate) struct MemoryAccount {
    limit_bytes: usize,
    table_elements: usize,
    /// All memories together. Memories never shrink, so this is the peak too.
    pub(crate) bytes: usize,
    /// Whether more memory was asked for than there is.
    pub(crate) denied: bool,
}

impl MemoryAccount {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit_bytes: limits.memory_bytes,
            table_elements: limits.table_elements,
            bytes: 0,
            denied: false,
        }
    }
}

impl ResourceLimiter for MemoryAccount {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let bytes = self.bytes.saturating_add(desired.saturating_sub(current));
        if bytes > self.limit_bytes {
            self.denied = true;
            return Ok(false);
        }
        self.bytes = bytes;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= self.table_elements)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }
}
