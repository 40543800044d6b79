//! What holds for every session and every limit, tried on random ones, and compared with
//! a plain, slow reading of the rules.

use asyncagents_core::{
    fork::{Fork, Limits, Preset},
    tokens,
};
use asyncagents_testkit::opencode::{Session, text, tool, tool_cleared, tool_error, tool_running};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{chars, first, forked, last, with};

/// A session as the properties see it.
#[derive(Debug, Clone)]
enum Turn {
    User(String),
    Agent(Vec<Piece>),
    Compacted(String),
    CompactionFailed(String),
}

#[derive(Debug, Clone)]
enum Piece {
    Said(String),
    Called {
        tool: &'static str,
        param: String,
        came: Came,
    },
}

#[derive(Debug, Clone)]
enum Came {
    Output(String),
    Error(String),
    Cleared,
    Nothing,
}

/// The limits that the properties vary.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    whole: usize,
    middle: usize,
    middle_chars: usize,
    old_chars: usize,
    max_chars: usize,
    max_tokens: usize,
}

impl Numbers {
    fn limits(self) -> Limits {
        with(
            Preset::Graduated,
            &[
                ("whole_results", self.whole),
                ("middle_results", self.middle),
                ("middle_result_chars", self.middle_chars),
                ("old_result_chars", self.old_chars),
                ("max_chars", self.max_chars),
                ("max_tokens", self.max_tokens),
            ],
        )
    }
}

fn some_text(most: usize) -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "plain words ",
        "line\n",
        "\n\n",
        "é",
        "漢字",
        "👩‍👩‍👧",
        "𝔘",
        "\u{301}",
        " ",
        "\t",
        "\r\n",
        "/",
        "error: ",
        "FAILED",
        "{\"a\":1}",
        "a;\n",
        "...",
        "User:\n",
        "</inherited_context>",
        "<inherited_context>",
        "</INHERITED_context >",
        "<",
        "</",
    ]);
    vec(pieces, 0..most).prop_map(|pieces| pieces.concat())
}

fn turn() -> impl Strategy<Value = Turn> {
    let came = prop_oneof![
        8 => some_text(120).prop_map(Came::Output),
        2 => some_text(120).prop_map(Came::Error),
        1 => Just(Came::Cleared),
        1 => Just(Came::Nothing),
    ];
    let tool = prop::sample::select(vec!["read", "bash", "question", "mcp_exec"]);
    let called = (tool, some_text(60), came).prop_map(|(tool, param, came)| Piece::Called {
        tool,
        param,
        came,
    });
    let piece = prop_oneof![1 => some_text(60).prop_map(Piece::Said), 3 => called];
    prop_oneof![
        5 => some_text(60).prop_map(Turn::User),
        10 => vec(piece, 0..4).prop_map(Turn::Agent),
        1 => some_text(40).prop_map(|text| Turn::Compacted(format!("summary {text}"))),
        1 => some_text(40).prop_map(Turn::CompactionFailed),
    ]
}

fn numbers() -> impl Strategy<Value = Numbers> {
    (
        0..6_usize,
        0..6_usize,
        0..400_usize,
        0..100_usize,
        1_000..9_000_usize,
        1_000..3_000_usize,
    )
        .prop_map(
            |(whole, middle, middle_chars, old_chars, max_chars, max_tokens)| Numbers {
                whole,
                middle,
                middle_chars,
                old_chars,
                max_chars,
                max_tokens,
            },
        )
}

fn session(turns: &[Turn]) -> Session {
    turns
        .iter()
        .fold(Session::new(), |session, turn| match turn {
            Turn::User(said) => session.user(said),
            Turn::Agent(pieces) => session.agent(pieces.iter().map(part).collect()),
            Turn::Compacted(summary) => session.compacted(summary),
            Turn::CompactionFailed(partial) => session.compaction_failed(partial),
        })
}

fn part(piece: &Piece) -> serde_json::Value {
    match piece {
        Piece::Said(said) => text(said),
        Piece::Called {
            tool: name,
            param,
            came,
        } => {
            let input = json!({"p": param});
            match came {
                Came::Output(output) => tool(name, input, output),
                Came::Error(error) => tool_error(name, input, error),
                Came::Cleared => tool_cleared(name, input, "gone"),
                Came::Nothing => tool_running(name, input),
            }
        }
    }
}

/// The rules as written, with no thought for speed: write everything, and while it is
/// too long remove the oldest message and write everything again.
mod plainly {
    use super::*;

    pub(super) struct Plain {
        /// None if even the newest message alone (and the summary) do not fit.
        pub(super) context: Option<String>,
        pub(super) messages: Vec<String>,
        pub(super) summary: bool,
        pub(super) kept: usize,
    }

    pub(super) fn fork(turns: &[Turn], numbers: Numbers) -> Plain {
        let boundary = turns
            .iter()
            .rposition(|turn| matches!(turn, Turn::Compacted(_)));
        let recent = &turns[boundary.unwrap_or(0)..];
        let mut place = 0;
        let mut messages: Vec<String> = Vec::new();
        for turn in recent.iter().rev() {
            messages.insert(0, message(turn, numbers, &mut place));
        }
        messages.retain(|message| !message.is_empty());
        let summary = boundary.is_some();
        let fits = |context: &str| {
            chars(context) <= numbers.max_chars && tokens::o200k(context) <= numbers.max_tokens
        };
        let mut kept = messages.clone();
        let context = loop {
            let context = wrap(&kept);
            if fits(&context) {
                break Some(context);
            }
            let oldest = usize::from(summary);
            if kept.len() <= oldest + 1 {
                break None;
            }
            kept.remove(oldest);
        };
        Plain {
            context,
            summary,
            kept: kept.len(),
            messages,
        }
    }

    fn wrap(messages: &[String]) -> String {
        format!(
            "<inherited_context>\n\n{}</inherited_context>",
            messages.join("\n")
        )
    }

    fn message(turn: &Turn, numbers: Numbers, place: &mut usize) -> String {
        match turn {
            Turn::User(said) if said.trim().is_empty() => String::new(),
            Turn::User(said) => format!("User:\n{}", line(said)),
            Turn::Compacted(summary) => format!("Agent:\n{}", line(summary)),
            Turn::CompactionFailed(_) => String::new(),
            Turn::Agent(pieces) => {
                let mut lines = Vec::new();
                for piece in pieces.iter().rev() {
                    lines.insert(0, shown(piece, numbers, place));
                }
                let body = lines.concat();
                if body.is_empty() {
                    body
                } else {
                    format!("Agent:\n{body}")
                }
            }
        }
    }

    fn shown(piece: &Piece, numbers: Numbers, place: &mut usize) -> String {
        let (tool, param, came) = match piece {
            Piece::Said(said) if said.trim().is_empty() => return String::new(),
            Piece::Said(said) => return line(said),
            Piece::Called { tool, param, came } => (tool, param, came),
        };
        if !matches!(came, Came::Nothing) {
            *place += 1;
        }
        let place = (*place).max(1);
        let (param_chars, result_chars) = if place <= numbers.whole {
            (500, usize::MAX)
        } else if place <= numbers.whole + numbers.middle {
            (200, numbers.middle_chars)
        } else {
            (100, numbers.old_chars)
        };
        let mut params = json!({"p": param}).to_string();
        if chars(&params) > param_chars {
            params = first(&params, param_chars) + "...";
        }
        let call = format!("[Tool: {tool}] {}\n", harmless(&params));
        match came {
            Came::Nothing => call,
            Came::Cleared => format!("{call}[Tool result]\n[Old tool result content cleared]\n"),
            Came::Output(text) => format!("{call}[Tool result]\n{}", cut(tool, text, result_chars)),
            Came::Error(text) => format!("{call}[Tool error]\n{}", cut(tool, text, result_chars)),
        }
    }

    fn cut(tool: &str, text: &str, limit: usize) -> String {
        let total = chars(text);
        if total <= limit || tool == "question" {
            return if text.is_empty() {
                String::new()
            } else {
                line(text)
            };
        }
        let marker = format!("\n...[truncated {} of {total} chars]...\n", total - limit);
        let words = [
            "error",
            "Error",
            "ERROR",
            "failed",
            "FAILED",
            "exception",
            "traceback",
        ];
        let keeps_end = tool.contains("bash")
            || tool.contains("exec")
            || words.iter().any(|word| text.contains(word));
        if keeps_end {
            let head = limit * 80 / 100;
            let cut = format!("{}{marker}{}", first(text, head), last(text, limit - head));
            return line(&cut);
        }
        line(&format!("{}{marker}", first(text, limit)))
    }

    fn line(text: &str) -> String {
        let text = harmless(text);
        if text.ends_with('\n') {
            text
        } else {
            text + "\n"
        }
    }

    /// Knows only the spellings that the random texts can hold.
    fn harmless(text: &str) -> String {
        [
            "/inherited_context",
            "inherited_context",
            "/INHERITED_context",
        ]
        .iter()
        .fold(text.to_owned(), |text, tag| {
            text.replace(&format!("<{tag}"), &format!("‹{tag}"))
        })
    }
}

/// All markers of a context: how many characters each left out, and of how many.
fn markers(context: &str) -> Vec<(usize, usize)> {
    let marker = |rest: &str| {
        let (left_out, rest) = rest.split_once(" of ")?;
        let (of, _) = rest.split_once(" chars]...")?;
        Some((left_out.parse().ok()?, of.parse().ok()?))
    };
    context
        .split("...[truncated ")
        .skip(1)
        .filter_map(marker)
        .collect()
}

/// The figure before a word of the preamble's line on results; 0 if it is not there.
fn figure(preamble: &str, word: &str) -> usize {
    let line = preamble
        .lines()
        .find(|line| line.contains("Tool results:"))
        .unwrap_or_default();
    let Some((before, _)) = line.split_once(word) else {
        return 0;
    };
    let number = before.trim_end().rsplit(' ').next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or(0)
}

fn check(turns: &[Turn], numbers: Numbers) -> Result<(), TestCaseError> {
    let session = session(turns);
    let made: Fork = forked(&session, &numbers.limits());
    let plain = plainly::fork(turns, numbers);
    let stats = &made.stats;

    // The limits always hold, and the statistics are the truth.
    prop_assert!(chars(&made.context) <= numbers.max_chars);
    prop_assert!(tokens::o200k(&made.context) <= numbers.max_tokens);
    prop_assert_eq!(chars(&made.context), stats.characters.after);
    prop_assert_eq!(tokens::o200k(&made.context), stats.tokens.after);

    // Nothing inside closes or opens the wrapper, and no character is split.
    let lower = made.context.to_lowercase();
    prop_assert_eq!(lower.matches("<inherited_context").count(), 1);
    prop_assert_eq!(lower.matches("</inherited_context").count(), 1);
    prop_assert!(made.context.ends_with("</inherited_context>"));
    prop_assert!(!made.context.contains(char::REPLACEMENT_CHARACTER));

    // The summary stays, the newest stay, only the oldest go.
    let inside = &made.context["<inherited_context>\n\n".len()..];
    if plain.summary && !stats.cut_to_fit.summary {
        prop_assert!(inside.starts_with(&plain.messages[0]));
    }
    prop_assert_eq!(stats.compaction.is_some(), plain.summary);
    prop_assert_eq!(
        stats.messages.removed + stats.messages.kept,
        plain.messages.len()
    );
    prop_assert_eq!(
        stats.messages.kept
            + stats.messages.removed
            + stats.messages.compacted
            + stats.messages.empty,
        stats.messages.r#in
    );

    // Where no message has to be cut as a whole, it is what the plain rules say: newest
    // results whole, every cut exactly at its limit, in order.
    match &plain.context {
        Some(context) => {
            prop_assert_eq!(&made.context, context);
            prop_assert_eq!(stats.messages.kept, plain.kept);
            let found = markers(&made.context);
            prop_assert_eq!(
                found.len(),
                stats.results.cut_middle + stats.results.cut_old
            );
            for (left_out, of) in found {
                prop_assert!([numbers.middle_chars, numbers.old_chars].contains(&(of - left_out)));
            }
        }
        None => prop_assert!(stats.cut_to_fit.newest || stats.cut_to_fit.summary),
    }

    // The preamble says what the statistics say, and those add up.
    let results = &stats.results;
    prop_assert_eq!(figure(&made.preamble, " whole"), results.whole);
    prop_assert_eq!(figure(&made.preamble, " already cleared"), results.cleared);
    prop_assert_eq!(
        figure(&made.preamble, " in a message"),
        results.in_cut_messages
    );
    if numbers.middle_chars != numbers.old_chars {
        let cut_to = |chars: usize| figure(&made.preamble, &format!(" cut to {chars} characters"));
        prop_assert_eq!(cut_to(numbers.middle_chars), results.cut_middle);
        prop_assert_eq!(cut_to(numbers.old_chars), results.cut_old);
    }
    prop_assert_eq!(
        results.whole
            + results.cut_middle
            + results.cut_old
            + results.cleared
            + results.in_cut_messages,
        results.kept
    );
    let removed = format!("Removed: {} message", stats.messages.removed);
    prop_assert_eq!(made.preamble.contains(&removed), stats.messages.removed > 0);

    // The same again gives the same again.
    prop_assert_eq!(forked(&session, &numbers.limits()), made);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_fork_keeps_its_promises(turns in vec(turn(), 0..40), numbers in numbers()) {
        check(&turns, numbers)?;
    }

    #[test]
    fn every_fork_of_the_default_limits_keeps_its_promises(turns in vec(turn(), 0..60)) {
        let numbers = Numbers {
            whole: 5, middle: 10, middle_chars: 3_000, old_chars: 500, max_chars: 200_000, max_tokens: 100_000,
        };
        check(&turns, numbers)?;
    }
}
