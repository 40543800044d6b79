//! Makes visible what a terminal would hide. A command that is shown with its text reversed,
//! or with a part that cannot be seen, would be approved for what it seems to be.
//!
//! This is for commands, paths, changes and tool lines. It is too strict for prose: Persian
//! joins words with U+200C, and families of emoji hold together by U+200D.

use std::path::Path;

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, Emoji, GeneralCategory, GeneralCategoryGroup},
};

/// Controls, formats (bidirectional ones too), private and unassigned characters, and white
/// space of all kinds.
const UNSEEN: GeneralCategoryGroup =
    GeneralCategoryGroup::Other.union(GeneralCategoryGroup::Separator);

/// The text as one line, with `<U+202E>` and the like in place of line breaks and of every
/// character that cannot be seen, changes how others are shown, or is white space other than
/// a space or a tab.
pub fn make_visible(text: &str) -> String {
    visible_beginning(text, usize::MAX).0
}

/// A path as one line that shows all of it: a name can have line breaks in it.
pub fn shown_path(path: &Path) -> String {
    make_visible(&path.to_string_lossy())
}

/// The same of as much of the beginning as fits into `most` characters, and how many
/// characters of the text are left.
pub fn visible_beginning(text: &str, most: usize) -> (String, usize) {
    let mut visible = String::new();
    let mut room = most;
    let mut before = None;
    for (at, c) in text.char_indices() {
        let name = is_unseen(before, c).then(|| format!("<U+{:04X}>", u32::from(c)));
        let length = name.as_ref().map_or(1, String::len);
        let Some(left) = room.checked_sub(length) else {
            let rest = text.get(at..).unwrap_or_default();
            return (visible, rest.chars().count());
        };
        room = left;
        match name {
            Some(name) => visible.push_str(&name),
            None => visible.push(c),
        }
        before = Some(c);
    }
    (visible, 0)
}

fn is_unseen(before: Option<char>, c: char) -> bool {
    match c {
        ' '..='~' | '\t' => false,
        // A variation selector chooses between two pictures of the emoji before it; anywhere else
        // it is invisible.
        '\u{fe0e}' | '\u{fe0f}' if before.is_some_and(is_emoji) => false,
        // Symbols by category, and empty: the braille blank and the null note head.
        '\u{2800}' | '\u{1d159}' => true,
        c => {
            let category = CodePointMapData::<GeneralCategory>::new().get(c);
            UNSEEN.contains(category)
                || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        }
    }
}

/// Digits count as emoji too, because of keycaps; not here.
fn is_emoji(c: char) -> bool {
    !c.is_ascii() && CodePointSetData::new::<Emoji>().contains(c)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{make_visible, visible_beginning};

    #[rstest]
    #[case::plain("cargo test -- --nocapture", "cargo test -- --nocapture")]
    #[case::letters("échō 日本語 שלום سلام Ω 🚀", "échō 日本語 שלום سلام Ω 🚀")]
    #[case::combining_marks("e\u{301}", "e\u{301}")]
    #[case::tabs("a\tb", "a\tb")]
    #[case::line_breaks("a\nb\r\n", "a<U+000A>b<U+000D><U+000A>")]
    #[case::escapes("\u{1b}[2Jx\u{7}", "<U+001B>[2Jx<U+0007>")]
    #[case::c1_controls("\u{9b}2J\u{85}", "<U+009B>2J<U+0085>")]
    #[case::reversed("rm \u{202e}txt.x\u{202c}", "rm <U+202E>txt.x<U+202C>")]
    #[case::isolates("\u{2066}a\u{2069}", "<U+2066>a<U+2069>")]
    #[case::marks_of_direction("\u{200e}\u{200f}\u{61c}", "<U+200E><U+200F><U+061C>")]
    #[case::zero_width(
        "a\u{200b}b\u{200c}c\u{200d}d\u{feff}",
        "a<U+200B>b<U+200C>c<U+200D>d<U+FEFF>"
    )]
    #[case::joiners("\u{2060}\u{2064}\u{34f}", "<U+2060><U+2064><U+034F>")]
    #[case::fillers(
        "\u{3164}\u{ffa0}\u{115f}\u{1160}\u{180e}",
        "<U+3164><U+FFA0><U+115F><U+1160><U+180E>"
    )]
    #[case::soft_hyphen("pass\u{ad}word", "pass<U+00AD>word")]
    #[case::tags(
        "a\u{e0001}\u{e0072}\u{e006d}\u{e007f}",
        "a<U+E0001><U+E0072><U+E006D><U+E007F>"
    )]
    #[case::other_white_space(
        "a\u{a0}b\u{3000}c\u{2028}\u{2800}",
        "a<U+00A0>b<U+3000>c<U+2028><U+2800>"
    )]
    #[case::private_and_unassigned("\u{e000}\u{378}", "<U+E000><U+0378>")]
    #[case::emoji("❤\u{fe0f} ☎\u{fe0e}", "❤\u{fe0f} ☎\u{fe0e}")]
    #[case::variation_selectors(
        "a\u{fe0f}1\u{fe0f}❤\u{fe0f}\u{fe0f}\u{fe00}\u{e0100}",
        "a<U+FE0F>1<U+FE0F>❤\u{fe0f}<U+FE0F><U+FE00><U+E0100>"
    )]
    fn what_cannot_be_seen_is_named(#[case] text: &str, #[case] visible: &str) {
        assert_eq!(make_visible(text), visible);
    }

    #[test]
    fn a_beginning_is_measured_as_it_is_shown() {
        let cut = |most| visible_beginning("ab\u{202e}cd", most);
        assert_eq!(cut(12), ("ab<U+202E>cd".to_owned(), 0));
        assert_eq!(cut(11), ("ab<U+202E>c".to_owned(), 1));
        assert_eq!(cut(9), ("ab".to_owned(), 3), "no half of a name");
        assert_eq!(cut(0), (String::new(), 5));
    }
}
