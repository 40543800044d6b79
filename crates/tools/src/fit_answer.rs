//! Keeps an answer within its limit: the head and the tail stay, the middle is counted.

/// The beginning and the end of a text of any length, in bounded memory.
pub(crate) struct HeadAndTail {
    head: String,
    head_left: usize,
    tail: String,
    tail_characters: usize,
    tail_limit: usize,
    left_out: usize,
}

impl HeadAndTail {
    /// Keeps about this many characters, half from each end.
    pub(crate) fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self {
            head: String::new(),
            head_left: limit - tail_limit,
            tail: String::new(),
            tail_characters: 0,
            tail_limit,
            left_out: 0,
        }
    }

    /// Adds to the end.
    pub(crate) fn push(&mut self, text: &str) {
        let text = self.fill_head(text);
        if text.is_empty() {
            return;
        }
        self.tail.push_str(text);
        self.tail_characters += text.chars().count();
        // Cutting at twice the limit moves each character once, not at every push.
        if self.tail_characters > 2 * self.tail_limit {
            self.cut_tail();
        }
    }

    /// What was kept, with a remark where something is missing.
    pub(crate) fn finish(mut self) -> String {
        self.cut_tail();
        if self.left_out > 0 {
            let left_out = self.left_out;
            self.head
                .push_str(&format!("\n[… {left_out} characters left out …]\n"));
        }
        self.head.push_str(&self.tail);
        self.head
    }

    fn fill_head<'a>(&mut self, text: &'a str) -> &'a str {
        if self.head_left == 0 {
            return text;
        }
        match text.char_indices().nth(self.head_left) {
            Some((end, _)) => {
                self.head.push_str(&text[..end]);
                self.head_left = 0;
                &text[end..]
            }
            None => {
                self.head.push_str(text);
                self.head_left -= text.chars().count();
                ""
            }
        }
    }

    fn cut_tail(&mut self) {
        let surplus = self.tail_characters.saturating_sub(self.tail_limit);
        if surplus == 0 {
            return;
        }
        let cut = self.tail.char_indices().nth(surplus);
        self.tail.drain(..cut.map_or(self.tail.len(), |(at, _)| at));
        self.tail_characters -= surplus;
        self.left_out += surplus;
    }
}

/// At most this many characters of a line, saying how many are missing.
pub(crate) fn cut_line(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => {
            let missing = line[end..].chars().count();
            format!("{} [… {missing} more characters]", &line[..end])
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::HeadAndTail;

    #[rstest]
    #[case::short(&["ab", "cd"], "abcd")]
    #[case::exact(&["abcdefgh"], "abcdefgh")]
    #[case::long(&["abcdefghij"], "abcd\n[… 2 characters left out …]\nghij")]
    #[case::in_pieces(&["abc", "def", "ghi", "jkl", "mno"], "abcd\n[… 7 characters left out …]\nlmno")]
    #[case::wide(&["äöüßäöüßäöüß"], "äöüß\n[… 4 characters left out …]\näöüß")]
    fn keeps_both_ends(#[case] pieces: &[&str], #[case] expected: &str) {
        let mut kept = HeadAndTail::new(8);
        pieces.iter().for_each(|piece| kept.push(piece));
        assert_eq!(kept.finish(), expected);
    }

    #[test]
    fn memory_is_bounded() {
        let mut kept = HeadAndTail::new(1000);
        for _ in 0..10_000 {
            kept.push("0123456789");
            assert!(kept.head.len() + kept.tail.len() <= 1_600);
        }
        assert!(kept.finish().contains("[… 99000 characters left out …]"));
    }
}
