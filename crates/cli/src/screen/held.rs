//! What has to wait while a question is on the screen. The answer may take hours, and other tasks
//! go on, so what is kept is bounded.

use std::io::{self, Write};

use crate::{print, screen::counted};

/// How much is kept, in bytes.
const MOST: usize = 1_000_000;

/// Something for the screen.
pub(super) enum Piece {
    /// A piece of the answer, as it is to be written.
    Answer(String),
    /// Lines beside it.
    Remark(String),
}

impl Piece {
    pub(super) fn write(&self) -> io::Result<()> {
        match self {
            Piece::Answer(text) => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Piece::Remark(text) => {
                print::painted(text);
                Ok(())
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Piece::Answer(text) | Piece::Remark(text) => text.len(),
        }
    }
}

/// The pieces, in order.
#[derive(Default)]
pub(super) struct Held {
    pieces: Vec<Piece>,
    bytes: usize,
    /// How many did not fit.
    left_out: u64,
}

impl Held {
    pub(super) fn add(&mut self, piece: Piece) {
        let bytes = self.bytes + piece.bytes();
        if bytes > MOST {
            self.left_out += 1;
            return;
        }
        self.bytes = bytes;
        self.pieces.push(piece);
    }

    /// Shows all of it. What cannot be written now cannot be written next time either.
    pub(super) fn write(self) {
        for piece in &self.pieces {
            let _ = piece.write();
        }
        if self.left_out > 0 {
            let pieces = counted(self.left_out, "more piece");
            print::remark(&format!("… {pieces} of output came while this was open\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, MOST, Piece};

    #[test]
    fn what_waits_does_not_grow_without_end() {
        let mut held = Held::default();
        for _ in 0..3_000 {
            held.add(Piece::Remark("x".repeat(1_000)));
        }
        assert_eq!((held.pieces.len(), held.left_out), (1_000, 2_000));
        assert!(held.bytes <= MOST);
    }
}
