//! The words of a plain command, as a shell sees them.

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// It has a wildcard outside of quotes: names of files stand in its place.
    pub(super) is_glob: bool,
}

/// Splits a command that has no operators and no expansions. `None` if a quote is not closed.
pub(super) fn words(command: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        if c.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert(Word {
            text: String::new(),
            is_glob: false,
        });
        match c {
            '\'' => loop {
                match characters.next()? {
                    '\'' => break,
                    c => word.text.push(c),
                }
            },
            '"' => loop {
                match characters.next()? {
                    '"' => break,
                    '\\' => word.text.push(characters.next()?),
                    c => word.text.push(c),
                }
            },
            '\\' => word.text.push(characters.next()?),
            c => {
                word.is_glob |= matches!(c, '*' | '?' | '[');
                word.text.push(c);
            }
        }
    }
    words.extend(word);
    Some(words)
}
