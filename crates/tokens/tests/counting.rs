//! The same number of tokens as the reference says, for whatever text.
#![expect(clippy::expect_used, reason = "tests")]

use asyncagents_testkit::generate;
use asyncagents_tokens::o200k;
use proptest::prelude::*;
use rstest::rstest;

fn reference(text: &str) -> usize {
    let o200k = tiktoken::get_encoding("o200k_base").expect("a vocabulary");
    o200k.count(text)
}

#[rstest]
#[case::nothing("", 0)]
#[case::one_letter("a", 1)]
#[case::words("hello world", 2)]
#[case::a_name_of_a_special_token("<|endoftext|>", 7)]
fn known_texts_have_known_counts(#[case] text: &str, #[case] tokens: usize) {
    assert_eq!(o200k(text), tokens);
    assert_eq!(reference(text), tokens);
}

#[test]
fn every_character_is_split_as_the_reference_splits_it() {
    // Beside each of these, a character of another kind would be in another piece.
    let neighbours = ["a", "A", "1", "!", " ", "  ", "\n", "漢", "\u{301}", "'s"];
    let characters: Vec<char> = ('\0'..=char::MAX).collect();
    for neighbour in neighbours {
        for some in characters.chunks(256) {
            let led = some
                .iter()
                .map(|character| format!("{neighbour}{character}"));
            let text: String = led.collect();
            assert_eq!(
                o200k(&text),
                reference(&text),
                "{neighbour:?} before {some:?}"
            );
        }
    }
}

#[test]
fn every_token_is_found() {
    let vocabulary = tiktoken::get_encoding("o200k_base").expect("a vocabulary");
    for rank in 0..vocabulary.vocab_size() as u32 {
        if let Ok(token) = vocabulary.decode_to_string(&[rank]) {
            assert_eq!(o200k(&token), reference(&token), "{token:?}");
        }
    }
}

#[test]
fn whole_sessions_count_the_same() {
    for (name, shape) in &generate::BENCHMARK[..2] {
        let session = generate::session(*shape);
        assert_eq!(o200k(&session), reference(&session), "{name}");
    }
}

/// Pieces of a megabyte. Were a merge to cost the length of its piece, this test would not end.
#[rstest]
#[case::one_letter("a")]
#[case::upper_case("A")]
#[case::spaces(" ")]
#[case::line_ends("\n")]
#[case::digits("7")]
#[case::punctuation("=")]
#[case::two_letters("ab")]
#[case::base64("iVBORw0KGgoAAAANSUhEUgAAAAUA")]
#[case::ideographs("漢字")]
#[case::marks("\u{301}")]
#[case::ideographs_and_capitals("漢A")]
#[case::capitals_that_belong_to_no_word("漢AAAAAAAA")]
#[case::emoji("👩\u{200d}👩\u{200d}👧")]
fn a_long_run_takes_no_longer_than_other_text(#[case] unit: &str) {
    let text = unit.repeat(1_000_000 / unit.len());
    assert_eq!(o200k(&text), reference(&text));
    let followed = text + "x";
    assert_eq!(o200k(&followed), reference(&followed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_text_counts_the_same(text in any::<String>()) {
        prop_assert_eq!(o200k(&text), reference(&text));
    }

    /// Text in which the splitting rules meet.
    #[test]
    fn text_of_few_characters_counts_the_same(
        text in "[aAzZsStTlLrRvVeEmMdD'ſ0-9 \t\r\n/!_.\u{a0}\u{301}漢ǅʰ½\u{3000}é]{0,40}"
    ) {
        prop_assert_eq!(o200k(&text), reference(&text));
    }

    #[test]
    fn long_words_count_the_same(text in "([a-z]{0,90}|[A-Z]{0,90}|[a-zA-Z0-9+/=]{0,200}|[α-ω]{0,60}|[一-龥]{0,60})") {
        prop_assert_eq!(o200k(&text), reference(&text));
    }

    #[test]
    fn lines_of_programs_count_the_same(
        lines in prop::collection::vec("( {0,12}|\t{0,4})[a-z_]{1,12}(\\.|::|->)[A-Za-z]{1,14}\\([a-z0-9, \"]{0,20}\\)[;,{}]{0,3} {0,3}", 0..20)
    ) {
        let text = lines.join("\n");
        prop_assert_eq!(o200k(&text), reference(&text));
    }
}
