//! How the vocabulary is laid out: what `build.rs` writes and `vocabulary.rs` reads.
//!
//! A hash table with linear probing. A slot is one number: from the lowest bit on the token's rank,
//! where its bytes begin, how many there are, and as much of its hash as there is room for. The
//! last two are its mark: what has another mark is another token, and its bytes need not be read.

/// The table has `1 << TABLE_BITS` slots; 199,998 tokens fill three quarters of them.
pub(crate) const TABLE_BITS: u32 = 18;
pub(crate) const RANK_BITS: u32 = 18;
pub(crate) const START_BITS: u32 = 21;
/// Where a slot's mark begins, which is its topmost part.
pub(crate) const MARK_AT: u32 = RANK_BITS + START_BITS;
const LENGTH_BITS: u32 = 8;

/// A slot without a token. No token is as long as this would say.
pub(crate) const EMPTY: u64 = u64::MAX;
pub(crate) const LONGEST: usize = (1 << LENGTH_BITS) - 2;

/// Where a token of at most [`LONGEST`] bytes is looked for first, and its mark.
pub(crate) fn place(token: &[u8]) -> (usize, u64) {
    let hash = hash(token);
    let mark = hash << LENGTH_BITS | token.len() as u64;
    let at = (hash >> (64 - TABLE_BITS)) as usize;
    (at, mark & (u64::MAX >> MARK_AT))
}

fn hash(token: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 32
    };
    let length = token.len() as u64;
    let hash = match token.last_chunk() {
        // The last word overlaps the one before it where the length says so.
        Some(last) => {
            let (words, _) = token.as_chunks();
            let words = words.iter().chain([last]);
            words.fold(length, |hash, word| mix(hash, u64::from_le_bytes(*word)))
        }
        None => {
            let bytes = token.iter().map(|byte| u64::from(*byte));
            mix(length, bytes.fold(0, |word, byte| word << 8 | byte))
        }
    };
    // Multiplying moves what differs upwards, to the bits that choose the slot.
    hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
