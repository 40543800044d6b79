//! One piece of text as tokens: of two neighbours that make a token, those that make the one of
//! lowest rank are merged, the leftmost first, until there are none.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::vocabulary::{self, NONE};

/// A piece up to this length is searched for the next merge from end to end, which for so few is
/// faster than a heap.
const SHORT: usize = 48;

/// The number of tokens of a piece.
pub(crate) fn count(piece: &[u8]) -> usize {
    match piece.len() {
        length @ (0 | 1) => length,
        _ if vocabulary::rank(piece) != NONE => 1,
        2 => 2,
        length if length <= SHORT => count_short(piece),
        _ => count_long(piece),
    }
}

fn count_short(piece: &[u8]) -> usize {
    // Where each token begins, and what its merge with the next one would be. The end of the piece
    // is one more beginning.
    let mut starts = [0; SHORT + 1];
    let mut ranks = [NONE; SHORT + 1];
    for (at, pair) in piece.windows(2).enumerate() {
        ranks[at] = vocabulary::pair(pair[0], pair[1]);
    }
    for (at, start) in starts.iter_mut().enumerate() {
        *start = at;
    }
    let mut tokens = piece.len();
    loop {
        let of_tokens = ranks[..tokens].iter().enumerate();
        let lowest = of_tokens.min_by_key(|(_, rank)| **rank);
        let Some((at, _)) = lowest.filter(|(_, rank)| **rank != NONE) else {
            return tokens;
        };
        starts.copy_within(at + 2..=tokens, at + 1);
        ranks.copy_within(at + 2..=tokens, at + 1);
        tokens -= 1;
        let merged = |at: usize| {
            let end = starts.get(at + 2).filter(|_| at + 1 < tokens);
            end.map_or(NONE, |end| vocabulary::rank(&piece[starts[at]..*end]))
        };
        ranks[at] = merged(at);
        if at > 0 {
            ranks[at - 1] = merged(at - 1);
        }
    }
}

/// The same for a piece of any length, in n log n: a list of tokens whose links are where they begin,
/// and a heap of merges, of which those count that are still to be had.
fn count_long(piece: &[u8]) -> usize {
    let end = piece.len();
    let mut next: Vec<usize> = (1..=end).collect();
    let mut previous: Vec<usize> = (0..end).map(|at| at.saturating_sub(1)).collect();
    let pairs = piece
        .windows(2)
        .map(|pair| vocabulary::pair(pair[0], pair[1]));
    let mut ranks: Vec<u32> = pairs.chain([NONE]).collect();
    let possible = ranks.iter().enumerate().filter(|(_, rank)| **rank != NONE);
    let mut merges: BinaryHeap<_> = possible.map(|(at, rank)| Reverse((*rank, at))).collect();
    let mut tokens = end;
    while let Some(Reverse((rank, at))) = merges.pop() {
        if ranks[at] != rank {
            continue;
        }
        let gone = next[at];
        ranks[gone] = NONE;
        next[at] = next[gone];
        if next[at] < end {
            previous[next[at]] = at;
        }
        tokens -= 1;
        // At the beginning there is no previous token, and the same is looked up twice.
        for start in [previous[at], at] {
            let second = next[start];
            ranks[start] = match next.get(second) {
                Some(after) => vocabulary::rank(&piece[start..*after]),
                None => NONE,
            };
            if ranks[start] != NONE {
                merges.push(Reverse((ranks[start], start)));
            }
        }
    }
    tokens
}
