//! Counts what a call asks and gives.

use crate::failure::Stop;

/// What is left of a call's allowances.
#[derive(Debug)]
pub(crate) struct Meter {
    host_calls: u32,
    host_calls_left: u32,
    output_bytes: usize,
    output_bytes_left: usize,
}

impl Meter {
    pub(crate) fn new(host_calls: u32, output_bytes: usize) -> Self {
        Self {
            host_calls,
            host_calls_left: host_calls,
            output_bytes,
            output_bytes_left: output_bytes,
        }
    }

    /// Counts a call of a host function.
    pub(crate) fn host_call(&mut self) -> Result<(), Stop> {
        self.host_calls_left = self
            .host_calls_left
            .checked_sub(1)
            .ok_or(Stop::TooManyHostCalls(self.host_calls))?;
        Ok(())
    }

    /// How many host functions the plugin has called.
    pub(crate) fn host_calls_made(&self) -> u32 {
        self.host_calls.saturating_sub(self.host_calls_left)
    }

    /// How many bytes the plugin has given to the host.
    pub(crate) fn output_bytes_given(&self) -> usize {
        self.output_bytes.saturating_sub(self.output_bytes_left)
    }

    /// Counts bytes that the plugin gives to the host.
    pub(crate) fn output(&mut self, bytes: usize) -> Result<(), Stop> {
        self.output_bytes_left = self
            .output_bytes_left
            .checked_sub(bytes)
            .ok_or(Stop::OutputTooLarge)?;
        Ok(())
    }
}
