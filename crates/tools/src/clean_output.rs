//! Turns what a program writes to a terminal into lines of text: no colours, progress bars
//! only as they ended.

/// A line is handed on in pieces of this many bytes, however long it is.
const LONGEST_PIECE: usize = 64 * 1024;

/// Collects bytes and hands out lines.
#[derive(Default)]
pub(crate) struct Cleaner {
    line: Vec<u8>,
    /// A carriage return was seen: what follows overwrites the line, unless the line ends.
    returned: bool,
    escape: Escape,
}

#[derive(Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// ESC and an intermediate byte, as in `ESC ( B`.
    Designating,
    /// `ESC [ …`, until a letter.
    Control,
    /// `ESC ] …` and the like, until BEL or `ESC \`.
    Text,
    /// ESC within the former.
    TextEnding,
}

impl Cleaner {
    /// Takes bytes as they come. Each line is handed on with its line end; a very long one in
    /// pieces.
    pub(crate) fn take(&mut self, bytes: &[u8], mut emit: impl FnMut(&str)) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let plain = self.plain(rest);
            if plain > 0 {
                self.line.extend_from_slice(&rest[..plain]);
                rest = &rest[plain..];
            } else {
                self.take_byte(byte, &mut emit);
                rest = after;
            }
        }
    }

    /// Hands on what is left without a line end.
    pub(crate) fn finish(mut self, mut emit: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.hand_on(self.line.len(), &mut emit);
        }
    }

    /// How many bytes are plain text and fit into the line: most are, and copying them at once
    /// is much quicker.
    fn plain(&self, bytes: &[u8]) -> usize {
        if self.returned || !matches!(self.escape, Escape::None) {
            return 0;
        }
        let room = (LONGEST_PIECE - 1).saturating_sub(self.line.len());
        let bytes = &bytes[..bytes.len().min(room)];
        let is_special = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
        bytes.iter().position(is_special).unwrap_or(bytes.len())
    }

    fn take_byte(&mut self, byte: u8, emit: &mut impl FnMut(&str)) {
        self.escape = match (self.escape, byte) {
            (Escape::None, 0x1b) => Escape::Begun,
            (Escape::None, byte) => {
                self.take_visible(byte, emit);
                Escape::None
            }
            (Escape::Begun, b'[') => Escape::Control,
            (Escape::Begun, b']' | b'P' | b'X' | b'^' | b'_') => Escape::Text,
            (Escape::Begun, 0x20..=0x2f) => Escape::Designating,
            (Escape::Begun, _) => Escape::None,
            (Escape::Designating, 0x20..=0x2f) => Escape::Designating,
            (Escape::Designating, _) => Escape::None,
            (Escape::Control, 0x20..=0x3f) => Escape::Control,
            (Escape::Control, b'\n') => {
                self.take_visible(b'\n', emit);
                Escape::None
            }
            (Escape::Control, _) => Escape::None,
            (Escape::Text, 0x07) => Escape::None,
            (Escape::Text, 0x1b) => Escape::TextEnding,
            // A program that forgot the end must not swallow all that follows.
            (Escape::Text | Escape::TextEnding, b'\n') => {
                self.take_visible(b'\n', emit);
                Escape::None
            }
            (Escape::Text, _) => Escape::Text,
            (Escape::TextEnding, _) => Escape::None,
        };
    }

    fn take_visible(&mut self, byte: u8, emit: &mut impl FnMut(&str)) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.line.push(b'\n');
                self.hand_on(self.line.len(), emit);
            }
            b'\r' => self.returned = true,
            // Backspace: spinners take back their last sign.
            0x08 => {
                self.line.pop();
            }
            0x00..=0x08 | 0x0b..=0x1f | 0x7f => {}
            byte => {
                if self.returned {
                    self.line.clear();
                    self.returned = false;
                }
                self.line.push(byte);
                if self.line.len() >= LONGEST_PIECE {
                    self.hand_on(whole_characters(&self.line), emit);
                }
            }
        }
    }

    fn hand_on(&mut self, bytes: usize, emit: &mut impl FnMut(&str)) {
        emit(&String::from_utf8_lossy(&self.line[..bytes]));
        self.line.drain(..bytes);
    }
}

/// How many bytes can be handed on without cutting a character in two.
fn whole_characters(bytes: &[u8]) -> usize {
    let is_start = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let tail = bytes.iter().rev().take(4).position(is_start);
    match tail {
        Some(at) if bytes[bytes.len() - 1 - at] >= 0b1100_0000 => bytes.len() - 1 - at,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Cleaner;

    fn cleaned(chunks: &[&[u8]]) -> String {
        let mut text = String::new();
        let mut cleaner = Cleaner::default();
        for chunk in chunks {
            cleaner.take(chunk, |piece| text.push_str(piece));
        }
        cleaner.finish(|piece| text.push_str(piece));
        text
    }

    #[rstest]
    #[case::plain(b"one\ntwo", "one\ntwo")]
    #[case::colours(b"\x1b[1;31mred\x1b[0m\n", "red\n")]
    #[case::title(b"\x1b]0;title\x07text\n", "text\n")]
    #[case::link(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n")]
    #[case::charset(b"\x1b(Bplain\n", "plain\n")]
    #[case::progress(b" 1%\r 50%\r100%\ndone\n", "100%\ndone\n")]
    #[case::windows_line_ends(b"a\r\nb\r\n", "a\nb\n")]
    #[case::return_at_the_end(b"50%\r", "50%")]
    #[case::spinner(b"-\x08\\\x08|\x08ok\n", "ok\n")]
    #[case::not_text(b"a\xff\xfeb\n", "a\u{fffd}\u{fffd}b\n")]
    #[case::tabs_stay(b"a\tb\x00\n", "a\tb\n")]
    #[case::unfinished_title(b"\x1b]0;oops\nnext\n", "\nnext\n")]
    fn terminal_output_becomes_text(#[case] bytes: &[u8], #[case] expected: &str) {
        assert_eq!(cleaned(&[bytes]), expected);
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(cleaned(&single), expected, "byte by byte");
    }

    #[test]
    fn an_endless_line_comes_in_pieces_of_whole_characters() {
        let line = "aä".repeat(100_000);
        let mut pieces = 0;
        let mut text = String::new();
        let mut cleaner = Cleaner::default();
        cleaner.take(line.as_bytes(), |piece| {
            pieces += 1;
            text.push_str(piece);
        });
        cleaner.finish(|piece| text.push_str(piece));
        assert!(pieces > 3);
        assert_eq!(text, line);
    }
}
