//! Random numbers that are the same whenever a decision is run again.

use sha2::{Digest as _, Sha256};

/// The number that follows from these parts: the first 8 bytes of their SHA-256, little-endian. The same in
/// every version of the host, because recorded decisions depend on it.
pub(crate) fn number(seed: u64, ids: &[uuid::Uuid], n: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for id in ids {
        hash.update(id.as_bytes());
    }
    hash.update(n.to_le_bytes());
    hash.finalize()
        .iter()
        .take(8)
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn numbers_never_change() {
        assert_eq!(
            number(7, &[Uuid::from_u128(1), Uuid::from_u128(2)], 3),
            13_262_240_819_661_990_765
        );
    }

    #[test]
    fn every_part_counts() {
        let base = number(1, &[Uuid::nil()], 0);
        assert_ne!(base, number(2, &[Uuid::nil()], 0));
        assert_ne!(base, number(1, &[Uuid::max()], 0));
        assert_ne!(base, number(1, &[Uuid::nil()], 1));
    }
}
