//! What one call has: its batch, its meter, its log, its memory account.

use std::any::Any;

use wasmtime::ResourceLimiter;

use crate::failure::{Failure, Stop};
use crate::host::wasi::Wasi;
use crate::limits::{CORE_INSTANCES, Limits, MEMORIES, TABLES};
use crate::log::Log;
use crate::meter::Meter;
use crate::ticker::Ticking;

/// What the host keeps of a batch: the `View` of the plugin's world.
pub(crate) type AnyView = Box<dyn Any + Send>;

/// The data of a call's store. All worlds have the same: what is made for a type of it, WASI above all, is made once.
pub(crate) struct State {
    /// None in `describe` and `check-config`, which have no batch.
    pub(crate) view: Option<AnyView>,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    pub(crate) memory: MemoryAccount,
    pub(crate) wasi: Wasi,
    /// Deadlines pass until the call has ended.
    pub(crate) ticking: Option<Ticking>,
}

impl State {
    /// Counts a call of a host function, and gives what it works on. `V` is the view of the function's world.
    pub(crate) fn enter<V: Any>(&mut self) -> Result<(&mut V, &mut Meter), Stop> {
        self.meter.host_call()?;
        let view = self.view.as_mut().and_then(|view| view.downcast_mut());
        Ok((view.ok_or(Stop::NoBatch)?, &mut self.meter))
    }

    /// Whether the plugin has asked the host for anything, or told it anything.
    pub(crate) fn was_asked(&self) -> bool {
        self.meter.host_calls_made() > 0 || self.wasi.was_asked() || !self.log.is_empty()
    }

    /// No deadline passes any longer.
    pub(crate) fn end(&mut self) {
        self.ticking = None;
    }
}

/// What a decision left of its view.
pub(crate) fn left<V: Any>(view: Option<AnyView>) -> Result<V, Failure> {
    let view = view.and_then(|view| view.downcast().ok());
    let view = view.ok_or_else(|| Failure::Trap(Stop::NoBatch.to_string()))?;
    Ok(*view)
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

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module, Store};

    use super::*;
    use crate::configuration;

    /// A module with an empty table, and a function `grow` that makes it grow and gives its size before.
    const GROWING_TABLE: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x06\x01\x60\x01\x7f\x01\x7f\
        \x03\x02\x01\0\
        \x04\x04\x01\x70\0\0\
        \x07\x08\x01\x04grow\0\0\
        \x0a\x0b\x01\x09\0\xd0\x70\x20\0\xfc\x0f\0\x0b";

    #[test]
    fn tables_grow_to_their_limit() -> wasmtime::Result<()> {
        let limits = Limits {
            table_elements: 1000,
            ..Limits::default()
        };
        for engine in [
            configuration::pooled(&limits, 1)?,
            configuration::on_demand()?,
        ] {
            let mut store = Store::new(&engine, MemoryAccount::new(&limits));
            store.limiter(|account| account);
            store.set_epoch_deadline(1);
            let module = Module::new(&engine, GROWING_TABLE)?;
            let instance = Instance::new(&mut store, &module, &[])?;
            let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow")?;
            assert_eq!(grow.call(&mut store, 999)?, 0);
            assert_eq!(grow.call(&mut store, 2)?, -1);
            assert_eq!(grow.call(&mut store, 1)?, 999);
            assert_eq!(grow.call(&mut store, 1)?, -1);
        }
        Ok(())
    }
}
