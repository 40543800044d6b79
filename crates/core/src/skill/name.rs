//! What skills are called, in whatever script.

use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup},
};

/// How long a name may be, by the standard.
const STANDARD: usize = 64;
/// How long a folder's name may be that is a skill's too.
const LONGEST: usize = 128;

/// Controls, formats (those that turn text around too), private and unassigned characters, and
/// separators.
const UNSEEN: GeneralCategoryGroup =
    GeneralCategoryGroup::Other.union(GeneralCategoryGroup::Separator);

/// The same name in one form: letters that look alike because they are the same are the same.
pub(super) fn normal(name: &str) -> String {
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
    NFKC.normalize(name.trim()).into_owned()
}

/// What two spellings of one name have in common.
pub fn name_key(name: &str) -> String {
    let name = name.trim().trim_start_matches('/');
    normal(&normal(name).to_lowercase())
}

/// Whether a name is one by the Agent Skills standard.
pub(super) fn check(name: &str) -> Result<(), String> {
    let name = normal(name);
    let plain = |c: char| c.is_alphanumeric() || c == '-';
    let wrong = !name.chars().all(plain)
        || !(1..=STANDARD).contains(&name.chars().count())
        || name != name.to_lowercase()
        || name.starts_with('-')
        || name.ends_with('-')
        || name.contains("--");
    if !wrong {
        return Ok(());
    }
    Err(format!(
        "`{}` is refused; allowed: 1 to 64 small letters, digits and single hyphens between them",
        seen(&name, STANDARD + 1)
    ))
}

/// A name that a skill can be called by here, however it is written: in one line, not too long,
/// with nothing in it that cannot be seen or that means something in a path.
pub(super) fn usable(name: &str) -> Option<String> {
    const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfc();
    let name = NFC.normalize(name.trim()).into_owned();
    let fits = (1..=LONGEST).contains(&name.chars().count())
        && !name.starts_with(['-', '.'])
        && !name
            .chars()
            .any(|c| matches!(c, '/' | '\\') || is_unseen(c));
    fits.then_some(name)
}

/// As much of a text as can be shown in one line.
pub(super) fn seen(text: &str, most: usize) -> String {
    let words = text.split(char::is_whitespace);
    let words = words.map(|word| word.chars().filter(|c| !is_unseen(*c)).collect::<String>());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(most).collect()
}

fn is_unseen(c: char) -> bool {
    match c {
        ' '..='~' => false,
        // Symbols by category, and empty: the braille blank and the null note head.
        '\u{2800}' | '\u{1d159}' => true,
        c => {
            let category = CodePointMapData::<GeneralCategory>::new().get(c);
            UNSEEN.contains(category)
                || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        }
    }
}
