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
pub(super) struct Conversation {
    pub(super) turns: Vec<Turn>,
    /// Whether the agent is still writing the last message, if that is its.
    pub(super) in_flight: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Turn {
    User(String),
    Agent(Vec<Piece>),
    /// A compaction that keeps so many of the messages before it.
    Compacted {
        summary: String,
        tail: usize,
    },
    CompactionFailed(String),
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Said(String),
    Called {
        tool: &'static str,
        param: String,
        came: Came,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Came {
    Output(String),
    Error(String),
    Cleared,
    Nothing,
}

/// The limits that the properties vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// How many results are in the first two tiers.
    results: [usize; 2],
    /// What is kept of results in the other two.
    result_chars: [usize; 2],
    param_chars: [usize; 3],
    head_percent: usize,
    max_chars: usize,
    max_tokens: usize,
    /// Whether repeated reads are marked.
    marks: bool,
}

const DEFAULT: Numbers = Numbers {
    results: [5, 10],
    result_chars: [3_000, 500],
    param_chars: [500, 200, 100],
    head_percent: 80,
    max_chars: 200_000,
    max_tokens: 100_000,
    marks: true,
};

impl Numbers {
    pub(super) fn limits(self) -> Limits {
        let mut limits = with(
            Preset::Graduated,
            &[
                ("whole_results", self.results[0]),
                ("middle_results", self.results[1]),
                ("middle_result_chars", self.result_chars[0]),
                ("old_result_chars", self.result_chars[1]),
                ("whole_param_chars", self.param_chars[0]),
                ("middle_param_chars", self.param_chars[1]),
                ("old_param_chars", self.param_chars[2]),
                ("head_percent", self.head_percent),
                ("max_chars", self.max_chars),
                ("max_tokens", self.max_tokens),
            ],
        );
        let marks = self.marks.to_string();
        limits
            .set("mark_repeated_reads", marks.as_str())
            .expect("an allowed value");
        limits
    }
}

/// Text of up to so many pieces, all of them up to so many times.
fn some_text(pieces: usize, times: usize) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "plain words ",
        "line\n",
        "\n\n",
        "é",
        "漢字",
        "👩‍👩‍👧",
        "𝔘",
        "🜁🜂🜃",
        "\u{301}",
        " ",
        "\t",
        "\r\n",
        "/",
        "\\",
        "\"",
        "error: ",
        "FAILED",
        "{\"a\":1}",
        "a;\n",
        "...",
        "User:\n",
        "</inherited_context>",
        "<inherited_context>",
        "</INHERITED_context >",
        "inherited_context",
        "<",
        "</",
    ]);
    (vec(piece, 0..pieces), 1..=times).prop_map(|(pieces, times)| pieces.concat().repeat(times))
}

/// A few texts that come again and again: one shorter than what stands for it, the others longer,
/// and two of the same length. One has the words of what stands for another.
fn repeated_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "short".to_owned(),
        "fn login() {}\n".repeat(20),
        "fn logon() {}\n".repeat(20),
        format!("{}</inherited_context>", "error: naïve ".repeat(30)),
        format!("{}\n", plainly::same_as(1).repeat(2)),
    ])
}

fn turn(times: usize) -> impl Strategy<Value = Turn> {
    let came = prop_oneof![
        8 => some_text(120, times).prop_map(Came::Output),
        8 => repeated_text().prop_map(Came::Output),
        1 => repeated_text().prop_map(Came::Error),
        2 => some_text(120, times).prop_map(Came::Error),
        1 => Just(Came::Cleared),
        1 => Just(Came::Nothing),
    ];
    let tool = prop::sample::select(vec!["read", "bash", "shell", "question", "mcp_exec"]);
    let param = prop_oneof![
        1 => some_text(60, 1),
        2 => prop::sample::select(vec!["a.rs".to_owned(), "long/".repeat(50), "lonh/".repeat(50)]),
    ];
    let called =
        (tool, param, came).prop_map(|(tool, param, came)| Piece::Called { tool, param, came });
    let read_again = repeated_text().prop_map(|text| Piece::Called {
        tool: "read",
        param: "a.rs".to_owned(),
        came: Came::Output(text),
    });
    let said = some_text(60, times).prop_map(Piece::Said);
    let piece = prop_oneof![1 => said, 3 => called, 2 => read_again];
    prop_oneof![
        5 => some_text(60, times).prop_map(Turn::User),
        10 => vec(piece, 0..4).prop_map(Turn::Agent),
        1 => (some_text(40, times), 0..4_usize).prop_map(|(summary, tail)| Turn::Compacted { summary, tail }),
        1 => some_text(40, 1).prop_map(Turn::CompactionFailed),
    ]
}

pub(super) fn conversation(turns: usize, times: usize) -> impl Strategy<Value = Conversation> {
    (vec(turn(times), 0..turns), any::<bool>())
        .prop_map(|(turns, in_flight)| Conversation { turns, in_flight })
}

pub(super) fn numbers() -> impl Strategy<Value = Numbers> {
    let budget = (1_000..9_000_usize, 1_000..3_000_usize, any::<bool>());
    (
        [0..6_usize, 0..6],
        [0..400_usize, 0..100],
        [0..600_usize, 0..300, 0..150],
        0..=100_usize,
        budget,
    )
        .prop_map(
            |(results, result_chars, param_chars, head_percent, budget)| {
                let (max_chars, max_tokens, marks) = budget;
                Numbers {
                    results,
                    result_chars,
                    param_chars,
                    head_percent,
                    max_chars,
                    max_tokens,
                    marks,
                }
            },
        )
}

pub(super) fn session(conversation: &Conversation) -> Session {
    let mut session = Session::new();
    let mut messages: usize = 0;
    for (at, turn) in conversation.turns.iter().enumerate() {
        let in_flight = conversation.in_flight && at + 1 == conversation.turns.len();
        session = match turn {
            Turn::User(said) => session.user(said),
            Turn::Agent(pieces) if in_flight => {
                session.agent_in_flight(pieces.iter().map(part).collect())
            }
            Turn::Agent(pieces) => session.agent(pieces.iter().map(part).collect()),
            Turn::Compacted { summary, tail } => {
                let start = messages.checked_sub(*tail).filter(|_| *tail > 0);
                let start = start.map(|start| format!("msg_{start}"));
                session.compacted_keeping(start.as_deref(), summary)
            }
            Turn::CompactionFailed(partial) => session.compaction_failed(partial),
        };
        messages += match turn {
            Turn::User(_) | Turn::Agent(_) => 1,
            Turn::Compacted { .. } | Turn::CompactionFailed(_) => 2,
        };
    }
    session
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
        /// None if the newest message (and the summary) do not fit.
        pub(super) context: Option<String>,
        pub(super) boundary: bool,
        pub(super) summary: Option<Written>,
        /// All but the summary, oldest first, cut and written.
        pub(super) messages: Vec<Written>,
        pub(super) kept: usize,
    }

    /// A message, and what became of the calls in it.
    #[derive(Clone, Default)]
    pub(super) struct Written {
        pub(super) text: String,
        pub(super) whole: usize,
        pub(super) cut: usize,
        pub(super) head_tail: usize,
        pub(super) cleared: usize,
        pub(super) repeated: usize,
        pub(super) params_cut: usize,
    }

    /// What is newer than what is being written.
    #[derive(Default)]
    struct Newer<'c> {
        /// The results, newest first: tool, parameter, and the text of those that are whole.
        results: Vec<(&'c str, &'c str, Option<&'c str>)>,
        /// Whether there is a message that is.
        message: bool,
    }

    /// What stands in place of a result.
    pub(super) fn same_as(number: usize) -> String {
        let which = if number == 1 {
            "the newest result of this same call".to_owned()
        } else {
            format!("result {number} of this same call, counted from the newest")
        };
        format!("[Same text as {which}, which is whole further down]")
    }

    /// A message for itself.
    #[derive(Clone)]
    enum One<'c> {
        User(&'c str),
        Agent(&'c [Piece], bool),
        Request(usize),
        Summary(&'c str),
        Nothing,
    }

    pub(super) fn fork(conversation: &Conversation, numbers: Numbers) -> Plain {
        let all = flattened(conversation);
        let boundary = all.iter().rposition(|one| matches!(one, One::Summary(_)));
        let (recent, summary) = match boundary {
            None => (all, None),
            Some(at) => {
                let request = at - 1;
                let tail = match all[request] {
                    One::Request(tail) if tail <= request => tail,
                    _ => 0,
                };
                let recent = [&all[request - tail..request], &all[at + 1..]].concat();
                (recent, Some(all[at].clone()))
            }
        };
        let mut newer = Newer::default();
        let mut messages = Vec::new();
        for one in recent.iter().rev() {
            messages.insert(0, written(one, numbers, &mut newer));
            newer.message |= !messages[0].text.is_empty();
        }
        messages.retain(|message| !message.text.is_empty());
        let summary = summary.map(|summary| written(&summary, numbers, &mut newer));
        let summary = summary.filter(|summary| !summary.text.is_empty());

        let mut kept = messages.clone();
        let context = loop {
            let written = summary.iter().chain(&kept);
            let written: Vec<&str> = written.map(|message| &*message.text).collect();
            let context = format!(
                "<inherited_context>\n\n{}</inherited_context>",
                written.join("\n")
            );
            if chars(&context) <= numbers.max_chars && tokens::o200k(&context) <= numbers.max_tokens
            {
                break Some(context);
            }
            if kept.len() <= 1 {
                break None;
            }
            kept.remove(0);
        };
        Plain {
            context,
            boundary: boundary.is_some(),
            kept: kept.len(),
            summary,
            messages,
        }
    }

    fn flattened(conversation: &Conversation) -> Vec<One<'_>> {
        let mut all = Vec::new();
        for (at, turn) in conversation.turns.iter().enumerate() {
            let in_flight = conversation.in_flight && at + 1 == conversation.turns.len();
            match turn {
                Turn::User(said) => all.push(One::User(said)),
                Turn::Agent(pieces) => all.push(One::Agent(pieces, in_flight)),
                Turn::Compacted { summary, tail } => {
                    all.extend([One::Request(*tail), One::Summary(summary)]);
                }
                Turn::CompactionFailed(_) => all.extend([One::Nothing, One::Nothing]),
            }
        }
        all
    }

    fn written<'c>(one: &One<'c>, numbers: Numbers, newer: &mut Newer<'c>) -> Written {
        let mut written = Written::default();
        let (label, body) = match one {
            One::Request(_) | One::Nothing => return written,
            One::User(said) => ("User:\n", shown_text(said)),
            One::Summary(said) => ("Agent:\n", shown_text(said)),
            One::Agent(pieces, in_flight) => {
                let mut lines = Vec::new();
                for piece in pieces.iter().rev() {
                    lines.insert(0, shown(piece, *in_flight, numbers, newer, &mut written));
                }
                ("Agent:\n", lines.concat())
            }
        };
        if !body.is_empty() {
            written.text = harmless(&format!("{label}{body}"));
        }
        written
    }

    fn shown_text(said: &str) -> String {
        if said.trim().is_empty() {
            return String::new();
        }
        line(said)
    }

    fn shown<'c>(
        piece: &'c Piece,
        in_flight: bool,
        numbers: Numbers,
        newer: &mut Newer<'c>,
        written: &mut Written,
    ) -> String {
        let (tool, param, came) = match piece {
            Piece::Said(said) => return shown_text(said),
            Piece::Called { tool, param, came } => (*tool, param.as_str(), came),
        };
        let mut place = newer.results.len();
        if matches!(came, Came::Nothing) {
            if in_flight {
                return String::new();
            }
        } else {
            place += 1;
        }
        let place = place.max(1);
        let (param_chars, result_chars) = if place <= numbers.results[0] {
            (numbers.param_chars[0], usize::MAX)
        } else if place <= numbers.results[0] + numbers.results[1] {
            (numbers.param_chars[1], numbers.result_chars[0])
        } else {
            (numbers.param_chars[2], numbers.result_chars[1])
        };
        let mut params = json!({"p": param}).to_string();
        let is_shortened = chars(&params) > param_chars;
        if is_shortened {
            params = first(&params, param_chars) + "...";
            written.params_cut += 1;
        }
        let call = format!("[Tool: {tool}] {params}\n");
        let keep = if tool == "question" {
            usize::MAX
        } else {
            result_chars
        };
        let (label, text) = match came {
            Came::Nothing => return call,
            Came::Cleared => {
                newer.results.push((tool, param, None));
                written.cleared += 1;
                return format!("{call}[Tool result]\n[Old tool result content cleared]\n");
            }
            Came::Output(text) => ("[Tool result]", text.as_str()),
            Came::Error(text) => ("[Tool error]", text.as_str()),
        };
        let (short, keeps_end) = cut(tool, text, keep, numbers.head_percent);
        let may_be_marked = numbers.marks
            && newer.message
            && label == "[Tool result]"
            && tool != "question"
            && !is_shortened
            && place > numbers.results[0];
        let same = same_further_down(newer, tool, param, text).filter(|_| may_be_marked);
        let same = same.filter(|same| chars(same) < chars(&short));
        let is_whole = same.is_none() && chars(text) <= keep;
        let output = Some(text).filter(|_| is_whole && label == "[Tool result]");
        newer.results.push((tool, param, output));
        if same.is_some() {
            written.repeated += 1;
        } else if is_whole {
            written.whole += 1;
        } else {
            written.cut += 1;
            written.head_tail += usize::from(keeps_end);
        }
        format!("{call}{label}\n{}", line(&same.unwrap_or(short)))
    }

    /// What may stand in place of a result: the number of the newest whole one of the same call
    /// with the same text.
    fn same_further_down(newer: &Newer, tool: &str, param: &str, text: &str) -> Option<String> {
        let of_this_call = |(name, input, _): &&(&str, &str, _)| *name == tool && *input == param;
        let mut of_this_call = newer.results.iter().filter(of_this_call);
        let at = of_this_call.position(|(.., whole)| *whole == Some(text))?;
        Some(same_as(at + 1))
    }

    /// What is kept of a text, and whether its end is.
    fn cut(tool: &str, text: &str, limit: usize, head_percent: usize) -> (String, bool) {
        let total = chars(text);
        if total <= limit {
            return (text.to_owned(), false);
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
            || tool.contains("shell")
            || words.iter().any(|word| text.contains(word));
        let head = if keeps_end {
            limit * head_percent / 100
        } else {
            limit
        };
        let (start, end) = (first(text, head), last(text, limit - head));
        (format!("{start}{marker}{end}"), limit > head)
    }

    fn line(text: &str) -> String {
        if text.is_empty() || text.ends_with('\n') {
            text.to_owned()
        } else {
            format!("{text}\n")
        }
    }

    /// Character by character: is this a `<` with, after white space and perhaps a slash,
    /// the name of the wrapper?
    fn harmless(text: &str) -> String {
        // What a reader does not see, as far as these texts have it.
        let is_unseen = |c: &char| {
            (c.is_control() && !c.is_whitespace()) || "\u{200b}\u{feff}\u{ad}\u{2060}".contains(*c)
        };
        let mut safe = String::new();
        for (at, c) in text.char_indices() {
            let seen = text[at..].chars().skip(1).filter(|c| !is_unseen(c));
            let name = seen.skip_while(|c| c.is_whitespace() || *c == '/');
            let name = || -> String { name.filter(|c| !c.is_control()).take(17).collect() };
            let tag = c == '<' && name().eq_ignore_ascii_case("inherited_context");
            safe.push(if tag { '‹' } else { c });
        }
        safe
    }
}

/// All markers of a context: how many characters each left out, and of how many.
fn markers(context: &str) -> Vec<(usize, usize)> {
    let marker = |rest: &str| {
        let (left_out, rest) = rest.split_once(" of ")?;
        let (of, _) = rest.split_once(" chars]...")?;
        Some((left_out.parse().ok()?, of.parse().ok()?))
    };
    let after = context.split("...[truncated ").skip(1);
    after.filter_map(marker).collect()
}

/// The figure before a word of the preamble's line on results; 0 if it is not there.
fn figure(preamble: &str, word: &str) -> usize {
    let line = preamble.lines().find(|line| line.contains("Tool results:"));
    let Some((before, _)) = line.and_then(|line| line.split_once(word)) else {
        return 0;
    };
    let number = before.trim_end().rsplit(' ').next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or(0)
}

fn check(conversation: &Conversation, numbers: Numbers) -> Result<(), TestCaseError> {
    let session = session(conversation);
    let made: Fork = forked(&session, &numbers.limits());
    let plain = plainly::fork(conversation, numbers);
    let stats = &made.stats;

    // The limits always hold, and the statistics are the truth.
    prop_assert!(chars(&made.context) <= numbers.max_chars);
    prop_assert!(tokens::o200k(&made.context) <= numbers.max_tokens);
    prop_assert_eq!(chars(&made.context), stats.characters.after);
    prop_assert_eq!(tokens::o200k(&made.context), stats.tokens.after);

    // Only the wrapper opens and closes itself.
    let inside = made.context.strip_prefix("<inherited_context>\n\n");
    let inside = inside.and_then(|rest| rest.strip_suffix("</inherited_context>"));
    let inside = inside.expect("the wrapper");
    let lower = inside.to_lowercase();
    prop_assert!(!lower.contains("<inherited_context") && !lower.contains("</inherited_context"));

    // Every message is accounted for.
    let messages = &stats.messages;
    let all = plain.messages.len() + usize::from(plain.summary.is_some());
    prop_assert_eq!(messages.kept + messages.removed, all);
    prop_assert_eq!(
        messages.kept + messages.removed + messages.compacted + messages.empty,
        messages.r#in
    );
    prop_assert_eq!(stats.compaction.is_some(), plain.boundary);

    match &plain.context {
        // The newest results whole, every cut exactly at its limit, no character split,
        // only the oldest messages gone, the summary still there: what the rules say.
        Some(context) => {
            prop_assert_eq!(&made.context, context);
            prop_assert_eq!(
                messages.kept,
                plain.kept + usize::from(plain.summary.is_some())
            );
            let kept = plain.messages.iter().rev().take(plain.kept);
            let repeated: usize = kept.map(|message| message.repeated).sum();
            prop_assert_eq!(stats.results.repeated, repeated);
            let found = markers(&made.context);
            prop_assert_eq!(
                found.len(),
                stats.results.cut_middle + stats.results.cut_old
            );
            let to = |keep: usize| {
                found
                    .iter()
                    .filter(|(left_out, of)| of - left_out == keep)
                    .count()
            };
            if numbers.result_chars[0] != numbers.result_chars[1] {
                prop_assert_eq!(to(numbers.result_chars[0]), stats.results.cut_middle);
                prop_assert_eq!(to(numbers.result_chars[1]), stats.results.cut_old);
            }
        }
        // Nothing is left but the summary and the newest message, and of those the
        // beginning and the end.
        None => {
            prop_assert!(stats.cut_to_fit.newest || stats.cut_to_fit.summary);
            let kept = plain.summary.iter().chain(plain.messages.last());
            prop_assert_eq!(messages.kept, kept.clone().count());
            // A tag that the cut went through needs no change: compare what was meant.
            let meant = |text: &str| text.replace('‹', "<");
            let inside = meant(inside);
            let mut rest = inside.as_str();
            for whole in kept.map(|message| meant(&message.text)) {
                let (label, body) = whole.split_at(whole.find('\n').expect("a label") + 1);
                rest = rest.strip_prefix(label).expect("the label");
                if let Some(after) = rest.strip_prefix(body) {
                    rest = after.strip_prefix('\n').unwrap_or(after);
                    continue;
                }
                let end = format!(" of {} chars]...\n", chars(body));
                let (head, tail) = rest.split_once(&end).expect("a marker");
                let (head, left_out) = head.rsplit_once("\n...[truncated ").expect("a marker");
                let left_out: usize = left_out.parse().expect("a number");
                let kept = chars(body) - left_out;
                let end = first(tail, kept - chars(head));
                prop_assert!(body.starts_with(head), "the beginning of it");
                prop_assert!(body.ends_with(&end), "the end of it");
                prop_assert_eq!(chars(head), kept * numbers.head_percent / 100, "its share");
                rest = &tail[end.len()..];
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            prop_assert_eq!(rest, "", "and nothing else");
        }
    }

    // The preamble says what the statistics say, and those add up.
    let results = &stats.results;
    prop_assert_eq!(figure(&made.preamble, " whole"), results.whole);
    prop_assert_eq!(figure(&made.preamble, " already cleared"), results.cleared);
    prop_assert_eq!(figure(&made.preamble, " repeated"), results.repeated);
    let says_where = made.preamble.contains("`[Same text as ...]`");
    prop_assert_eq!(says_where, results.repeated > 0);
    prop_assert_eq!(
        figure(&made.preamble, " in a message"),
        results.in_cut_messages
    );
    if numbers.result_chars[0] != numbers.result_chars[1] {
        let cut_to = |chars: usize| {
            let to = if chars < 1_000 {
                chars.to_string()
            } else {
                "3,000".to_owned()
            };
            figure(&made.preamble, &format!(" cut to {to} characters"))
        };
        prop_assert_eq!(cut_to(numbers.result_chars[0]), results.cut_middle);
        prop_assert_eq!(cut_to(numbers.result_chars[1]), results.cut_old);
    }
    prop_assert_eq!(
        results.whole + results.cut_middle + results.cut_old + results.cleared + results.repeated,
        results.kept
    );
    prop_assert_eq!(
        results.whole_tier + results.middle_tier + results.old_tier,
        results.kept
    );
    let removed = format!("Removed: {} message", messages.removed);
    prop_assert_eq!(made.preamble.contains("Removed: "), messages.removed > 0);
    prop_assert!(messages.removed == 0 || made.preamble.contains(&removed));
    prop_assert_eq!(made.preamble.contains("Parameters: "), stats.params_cut > 0);

    // The same again gives the same again.
    prop_assert_eq!(forked(&session, &numbers.limits()), made);
    Ok(())
}

pub(super) fn cases(share: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        failure_persistence: None,
        cases: config.cases / share,
        ..config
    }
}

proptest! {
    #![proptest_config(cases(1))]

    #[test]
    fn every_fork_keeps_its_promises(conversation in conversation(40, 1), numbers in numbers()) {
        check(&conversation, numbers)?;
    }
}

proptest! {
    // Far more text to each, so fewer of them.
    #![proptest_config(cases(8))]

    #[test]
    fn every_fork_of_the_default_limits_keeps_its_promises(conversation in conversation(60, 20)) {
        check(&conversation, DEFAULT)?;
    }
}
