//! Drives `fuzz::identities` by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::identities(input));
