//! Drives `fuzz::urls` by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::urls(input));
