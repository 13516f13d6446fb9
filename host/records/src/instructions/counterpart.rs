//! The id of the attempt that an instruction causes.

use uuid::Uuid;

/// Bits that an attempt's id has otherwise than that of its instruction: none of those that say version, variant
/// and time (RFC 9562).
const ATTEMPT_BITS: u128 = 0x0000_0000_0000_0000_2f6b_91d3_5c84_e0a7;

/// The id of the attempt that an instruction causes; of such an id, that of the instruction.
pub fn attempt_id_of(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() ^ ATTEMPT_BITS)
}
