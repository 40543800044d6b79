//! Long texts, compressed. They are on people's disks: LZ4's block format behind the length of the
//! text, four bytes with the lowest first.

use std::borrow::Cow;

use lz4_flex::block::{compress_prepend_size, decompress, uncompressed_size};

use crate::sql::{Column, Damage, Row, Value};

/// Texts that are shorter are kept as they are: little would be gained.
const SHORTEST: usize = 512;

/// LZ4 cannot make a text shorter than by this. A file that claims more is damaged, and might
/// claim all memory.
const MOST_BY: usize = 255;

/// A text, compressed if that is worth it.
pub(crate) fn pack(text: &str) -> Option<Vec<u8>> {
    if text.len() < SHORTEST {
        return None;
    }
    let packed = compress_prepend_size(text.as_bytes());
    (packed.len() < text.len() - text.len() / 8).then_some(packed)
}

/// The columns of a text: as it is, and compressed. One of them is nothing.
pub(crate) fn columns(text: &str) -> [Value<'_>; 2] {
    match pack(text) {
        Some(packed) => [Value::Null, Value::Blob(packed.into())],
        None => [text.into(), Value::Null],
    }
}

/// The text that these columns hold.
pub(crate) fn text_in<'r>(
    row: &Row<'r>,
    plain: &str,
    packed: &str,
) -> Result<Cow<'r, str>, Damage> {
    match row.get::<Option<Packed>>(packed)? {
        Some(Packed(bytes)) => unpack(&bytes).map(Cow::Owned),
        None => row.text(plain),
    }
}

struct Packed(Vec<u8>);

impl Column for Packed {
    fn read(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Blob(bytes) => Some(Self(bytes.to_vec())),
            Value::Null | Value::Integer(_) | Value::Text(_) => None,
        }
    }
}

fn unpack(packed: &[u8]) -> Result<String, Damage> {
    let damaged = || Damage("a compressed text is damaged".to_owned());
    let (length, block) = uncompressed_size(packed).map_err(|_| damaged())?;
    if length > block.len().saturating_mul(MOST_BY) {
        return Err(damaged());
    }
    let text = decompress(block, length).map_err(|_| damaged())?;
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    (text.len() == length).then_some(text).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{pack, unpack};

    #[rstest]
    #[case::same("x".repeat(100_000))]
    #[case::lines((0..5_000).map(|n| format!("line {n} of a file\n")).collect())]
    #[case::scripts("Ärger, 事, \u{1F600}. ".repeat(100))]
    fn a_long_text_is_shorter_and_the_same_again(#[case] text: String) {
        let packed = pack(&text).expect("packed");
        assert!(packed.len() < text.len() / 2);
        assert_eq!(unpack(&packed), Ok(text));
    }

    #[test]
    fn what_is_short_or_random_stays_as_it_is() {
        assert_eq!(pack(&"x".repeat(511)), None);
        let mut state = 1_u64;
        let random = (0..4_000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from_u32(0x4e00 + u32::try_from(state >> 50).unwrap_or_default())
        });
        assert_eq!(
            pack(&random.map(Option::unwrap_or_default).collect::<String>()),
            None
        );
    }

    #[rstest]
    #[case::nothing(&[])]
    #[case::short(&[1, 0])]
    #[case::claims_all_memory(&[255, 255, 255, 255, 0x10, b'x'])]
    #[case::claims_more_than_there_is(&[100, 0, 0, 0, 0x10, b'x'])]
    #[case::is_no_text(&[2, 0, 0, 0, 0x20, 0xff, 0xff])]
    fn what_is_damaged_is_named(#[case] bytes: &[u8]) {
        assert!(unpack(bytes).is_err());
    }
}
