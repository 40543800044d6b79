//! What is said behind a skill's name, as words.

/// Arguments as words: at blanks, but not within quotes. A quote that is never closed is a
/// character like any other: `it's late` has two words.
pub(super) fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = arguments.chars();
    while let Some(c) = rest.next() {
        let quoted = match c {
            '"' | '\'' => rest.as_str().split_once(c),
            _ => None,
        };
        match quoted {
            Some((within, behind)) => {
                word.get_or_insert_default().push_str(within);
                rest = behind.chars();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The words that a shell has taken apart, written so that they are the same words again. A
/// single one is what a person wanted to say, and stays as it is.
pub fn as_typed(words: &[String]) -> String {
    match words {
        [one] => one.clone(),
        words => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Whatever has no double quote in it stands between two of them; a double quote between
    // single ones.
    let pieces = word.split('"').map(|piece| match piece {
        "" => String::new(),
        piece => format!("\"{piece}\""),
    });
    let pieces: Vec<String> = pieces.collect();
    match pieces.join("'\"'") {
        empty if empty.is_empty() => "\"\"".to_owned(),
        quoted => quoted,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::{as_typed, words};

    #[rstest]
    #[case("a  b", &["a", "b"])]
    #[case("'a b' c", &["a b", "c"])]
    #[case("x\"a b\"y", &["xa by"])]
    #[case("it's b", &["it's", "b"])]
    #[case("5\" disk", &["5\"", "disk"])]
    #[case("'' x", &["", "x"])]
    fn words_are_split_at_blanks_outside_of_quotes(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(words(text), expected);
    }

    proptest! {
        #[test]
        fn several_words_of_a_shell_stay_the_same_words(
            given in proptest::collection::vec("[a ' \"\n]{0,6}", 2..5)
        ) {
            prop_assert_eq!(words(&as_typed(&given)), given);
        }
    }
}
