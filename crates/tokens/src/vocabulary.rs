//! The vocabulary: which bytes are a token, and how early they are merged.

use crate::layout::{EMPTY, LONGEST, MARK_AT, RANK_BITS, START_BITS, TABLE_BITS, place};

/// The tokens' bytes, one after the other.
static BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bytes"));
/// The slots, each in eight bytes.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/table"));
/// The ranks of all pairs of bytes, each in four bytes: most of what a merge looks up.
static PAIRS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pairs"));

/// The rank of what is no token, behind all others.
pub(crate) const NONE: u32 = u32::MAX;

/// The rank of a token: of two that could be made, the lower one is made first.
pub(crate) fn rank(token: &[u8]) -> u32 {
    match token {
        [first, second] => pair(*first, *second),
        _ if token.len() <= LONGEST => longer(token),
        _ => NONE,
    }
}

pub(crate) fn pair(first: u8, second: u8) -> u32 {
    let (pairs, _) = PAIRS.as_chunks();
    let at = usize::from(first) << 8 | usize::from(second);
    pairs.get(at).map_or(NONE, |rank| u32::from_le_bytes(*rank))
}

fn longer(token: &[u8]) -> u32 {
    const OF_RANK: u64 = (1 << RANK_BITS) - 1;
    const OF_START: u64 = (1 << START_BITS) - 1;
    let (table, _) = TABLE.as_chunks();
    let (mut at, mark) = place(token);
    while let Some(slot) = table.get(at) {
        let slot = u64::from_le_bytes(*slot);
        if slot == EMPTY {
            break;
        }
        if slot >> MARK_AT == mark {
            let start = (slot >> RANK_BITS & OF_START) as usize;
            if BYTES.get(start..start + token.len()) == Some(token) {
                return (slot & OF_RANK) as u32;
            }
        }
        at = (at + 1) & ((1 << TABLE_BITS) - 1);
    }
    NONE
}
