//! The error when the text to replace is not in the file: what comes nearest, and why it does not
//! match.

use std::collections::HashSet;

use asyncagents_core::shorten::one_line;

use super::{edit::LONGEST_LINE, numbered::numbered};
use crate::fit_answer::cut_line;

/// How much is compared, so that a large file costs little.
const MOST_LINES: usize = 100_000;
const MOST_WANTED: usize = 50;
const MOST_SHOWN: usize = 20;

/// The answer about a text that is not there.
pub(super) fn not_found(file: &str, old: &str, shown: &str) -> String {
    let what = format!("`old` is not in {shown}");
    let Some(found) = nearest(file, old) else {
        return format!("{what}, and nothing in it is similar: read it again");
    };
    let why = match found.why {
        Why::LineEnds => {
            " because of the line ends (CRLF and LF are mixed); copy a piece within \
             one line, or change the file with bash. These lines match otherwise"
        }
        Why::WhiteSpace => ", but these lines differ only in white space",
        Why::Numbers => ": leave out the line numbers that `read` puts before lines. Nearest",
        Why::Words => ". The nearest lines",
    };
    let lines = file.lines().skip(found.line).take(found.length);
    let lines = lines.map(|line| cut_line(line, LONGEST_LINE));
    format!("{what}{why}:\n{}", numbered(lines, found.line + 1))
}

struct Nearest {
    /// From 0.
    line: usize,
    length: usize,
    why: Why,
}

enum Why {
    LineEnds,
    WhiteSpace,
    Numbers,
    Words,
}

fn nearest(file: &str, old: &str) -> Option<Nearest> {
    let lines: Vec<_> = file.lines().take(MOST_LINES).collect();
    let wanted: Vec<_> = old.lines().take(MOST_WANTED).collect();
    let length = wanted.len().min(MOST_SHOWN);
    let (line, equal) = most_equal(&lines, &wanted)?;
    if equal == wanted.len() {
        let same_ends = lines[line..].iter().zip(&wanted).all(|(a, b)| a == b);
        let why = if same_ends && file.contains('\r') {
            Why::LineEnds
        } else {
            Why::WhiteSpace
        };
        return Some(Nearest { line, length, why });
    }
    let bare: Vec<_> = wanted.iter().map(|line| without_number(line)).collect();
    if bare.iter().zip(&wanted).any(|(bare, line)| bare != line)
        && let Some((line, equal)) = most_equal(&lines, &bare)
        && equal == bare.len()
    {
        let why = Why::Numbers;
        return Some(Nearest { line, length, why });
    }
    let why = Why::Words;
    if equal > 0 {
        return Some(Nearest { line, length, why });
    }
    let line = most_similar(&lines, &wanted)?;
    Some(Nearest { line, length, why })
}

/// Where most lines are the same but for white space, and how many.
fn most_equal(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let wanted: Vec<_> = wanted.iter().map(|line| one_line(line)).collect();
    let lines: Vec<_> = lines.iter().map(|line| one_line(line)).collect();
    let blank = |line: &String| line.is_empty();
    let filled = wanted.iter().filter(|line| !blank(line)).count();
    let score = |at: usize| {
        let pairs = lines[at..].iter().zip(&wanted);
        let same = pairs.clone().filter(|(a, b)| a == b).count();
        let telling = pairs.filter(|(a, b)| a == b && !blank(b)).count();
        if telling == 0 && filled > 0 { 0 } else { same }
    };
    // The first of the best.
    (0..lines.len())
        .map(|at| (at, score(at)))
        .max_by_key(|(at, score)| (*score, usize::MAX - at))
}

/// Where the first line that says something has its most similar counterpart.
fn most_similar(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let first = wanted.iter().position(|line| !line.trim().is_empty())?;
    let wanted = pairs(wanted[first]);
    let (at, score) = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, similarity(&wanted, &pairs(line))))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (score > 0.5).then_some(at.saturating_sub(first))
}

/// How many pairs of letters two lines share: 0 to 1.
fn similarity(a: &HashSet<(char, char)>, b: &HashSet<(char, char)>) -> f64 {
    match a.len() + b.len() {
        0 => 0.0,
        all => 2.0 * a.intersection(b).count() as f64 / all as f64,
    }
}

fn pairs(line: &str) -> HashSet<(char, char)> {
    let line = one_line(line);
    let next = line.chars().skip(1);
    line.chars().zip(next).take(400).collect()
}

fn without_number(line: &str) -> &str {
    let digits = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    match digits.strip_prefix('\t') {
        Some(rest) if digits.len() < line.trim_start().len() => rest,
        _ => line,
    }
}
