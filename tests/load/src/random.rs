//! Random numbers that are the same in every run.

use uuid::{Builder, Uuid};

/// `SplitMix64`: a few cycles a number, which is what a client that shares the server's processors may cost.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        // Below `end`, which is a u64.
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number from 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "the upper 53 bits fit")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&mut self) -> Uuid {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}
