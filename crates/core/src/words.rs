//! Enums whose variants have words that people type and programs read.

/// For each enum the table of its words, the word of a variant and the variant of a word.
macro_rules! words {
    ($($kind:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        impl $kind {
            /// Every one, with its word.
            pub const ALL: &[(&str, $kind)] = &[$(($word, $kind::$variant)),*];

            pub fn word(self) -> &'static str {
                match self {
                    $($kind::$variant => $word),*
                }
            }

            /// The one that has exactly this word.
            pub fn of_word(word: &str) -> Option<Self> {
                let known = Self::ALL.iter().find(|(known, _)| *known == word);
                known.map(|(_, found)| *found)
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    )*};
}

pub(crate) use words;
