//! Tells texts apart by a number that is the same in every process and every version.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A number for a list of texts: FNV-1a with 64 bits. It is kept in databases and file names, so it
/// never changes. Collisions are easy to make on purpose: use it only where they harm no one but
/// their author.
pub fn digest(texts: &[&str]) -> u64 {
    // A byte that is in no text ends each, so that `ab, c` is not `a, bc`.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn the_numbers_on_disk_stay_what_they_are() {
        assert_eq!(digest(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(&["bash", "{}"]), 0x0f5b_c17f_6411_c3d1);
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }
}
