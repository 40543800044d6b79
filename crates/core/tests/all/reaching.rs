//! How far back a fork has to read, what a child is told of what was not read, and what has
//! to change in a copy of a conversation.

use asyncagents_core::{
    fork::{CutResult, Edits, Fork, ForkError, Limits, Parent, Preset, Reach, edits, fork},
    read::Format,
    tokens,
    transcript::{Skipped, Transcript},
};
use asyncagents_testkit::opencode::{Session, result, text};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::{filler, forked, with, with_results};

/// More messages than are ever read of small ones.
const LONG: usize = 1_000;
/// How many messages are read in search of a summary, after there is enough.
const LOOK_BEYOND: usize = 500;

/// The end of a session, read as a host reads it: page by page, until it is enough.
fn end_of(session: &Session, limits: &Limits, page: usize) -> Parent<'static> {
    let all = messages(session);
    let mut reach = Reach::new(limits);
    let mut newest_first = Vec::new();
    let mut unread = all.len();
    let mut enough = false;
    while unread > 0 && !enough {
        let start = unread.saturating_sub(page);
        let text = Value::from(all[start..unread].to_vec()).to_string();
        let read = Format::OpenCode.read(&text).expect("a page");
        let page = read.messages().iter().rev();
        newest_first.extend(page.map(|message| message.clone().into_owned()));
        enough = reach.is_enough(&newest_first);
        unread = start;
    }
    newest_first.reverse();
    let transcript = Transcript::new(newest_first, Skipped::default());
    match unread {
        0 => Parent::new(transcript),
        _ => Parent::end_of(transcript),
    }
}

/// How many messages are read, one at a time.
fn asked_for(session: &Session, limits: &Limits) -> usize {
    let end = end_of(session, limits, 1);
    end.transcript().messages().len()
}

fn messages(session: &Session) -> Vec<Value> {
    serde_json::from_str(&session.json()).expect("a list of messages")
}

fn whole(session: &Session) -> Parent<'static> {
    let json = session.json();
    let read = Format::OpenCode.read(&json).expect("a session");
    let messages = read.messages().iter();
    let messages = messages.map(|message| message.clone().into_owned());
    Parent::new(Transcript::new(messages.collect(), read.skipped()))
}

fn small() -> Limits {
    with(Preset::Graduated, &[("max_chars", 2_000)])
}

/// `count` messages of 100 characters.
fn talk(session: Session, count: usize) -> Session {
    (0..count).fold(session, |session, n| session.user(&filler(n, 100)))
}

#[test]
fn a_short_conversation_is_read_whole() {
    let session = talk(Session::new(), 15);
    assert_eq!(asked_for(&session, &small()), 15);
}

#[test]
fn reading_ends_some_time_after_there_is_enough() {
    let session = talk(Session::new(), LONG);
    let fits = forked(&session, &small()).stats.messages.kept;
    let read = asked_for(&session, &small());
    assert!(
        (fits + LOOK_BEYOND..fits + LOOK_BEYOND + 5).contains(&read),
        "{fits} fit, {read} were read"
    );
}

#[test]
fn reading_ends_at_the_request_that_a_summary_answers() {
    let session = talk(Session::new(), LONG).compacted("so far");
    let session = talk(session, 3);
    assert_eq!(asked_for(&session, &small()), 3 + 2);
}

#[test]
fn reading_ends_at_the_beginning_of_a_tail() {
    let session = talk(Session::new(), LONG);
    let session = session.compacted_keeping(Some("msg_990"), "so far");
    let session = talk(session, 3);
    assert_eq!(asked_for(&session, &small()), 3 + 2 + 10);
}

#[test]
fn a_summary_that_failed_or_is_not_finished_ends_nothing() {
    let early = || talk(Session::new(), 100).compacted("so far");
    for session in [
        early().compaction_failed("half a"),
        early().compaction_unfinished("half a"),
    ] {
        let session = talk(session, 3);
        assert_eq!(asked_for(&session, &small()), 3 + 2 + 2);
    }
}

#[test]
fn a_summary_is_looked_for_beyond_what_fits_but_not_for_ever() {
    for (since, found) in [(LOOK_BEYOND, true), (LOOK_BEYOND + 100, false)] {
        let session = talk(Session::new(), 100).compacted("so far");
        let session = talk(session, since);
        let end = end_of(&session, &small(), 1);
        let made = fork(&end, &small(), tokens::o200k).expect("a fork");
        assert_eq!(made.context.contains("so far"), found, "{since}");
        assert_eq!(made.stats.compaction.is_some(), found, "{since}");
    }
}

#[test]
fn whoever_may_lose_nothing_reads_on() {
    let mut limits = small();
    limits.set("when_over", "refuse").expect("an allowed value");
    let session = talk(Session::new(), LONG);
    assert_eq!(asked_for(&session, &limits), LONG);
    let session = talk(session.compacted("so far"), 700);
    assert_eq!(asked_for(&session, &limits), 702, "or to the summary");
}

#[test]
fn old_results_are_measured_as_they_are_inherited() {
    // In full they would be 700,000 characters; as they are inherited, 70,000.
    let session = with_results((0..700).map(|n| result(&filler(n, 1_000))));
    let limits = [
        ("whole_results", 0),
        ("middle_results", 0),
        ("old_result_chars", 0),
        ("max_chars", 80_000),
    ];
    let limits = with(Preset::Graduated, &limits);
    assert_eq!(asked_for(&session, &limits), 701);
}

#[test]
fn repeated_reads_leave_room_for_older_messages() {
    // Cut to 500 characters each, a quarter of them would fit; as lines, all of them do.
    let session = with_results((0..LONG).map(|n| read(n, &filler(0, 1_000))));
    let mut limits = with(Preset::Graduated, &[("max_chars", 150_000)]);
    assert_eq!(asked_for(&session, &limits), 1 + LONG);
    assert_eq!(fork_end(&session, &limits).stats.messages.kept, 1 + LONG);
    limits
        .set("mark_repeated_reads", "false")
        .expect("an allowed value");
    let read = asked_for(&session, &limits);
    assert!(
        (LOOK_BEYOND + 200..LOOK_BEYOND + 300).contains(&read),
        "{read}"
    );
}

#[test]
fn what_no_model_can_have_been_shown_is_not_searched_for_a_summary() {
    // Five whole results are more than fits; 75 are three million characters.
    let session = with_results((0..LONG).map(|n| read(n, &filler(n, 40_000))));
    let read = asked_for(&session, &Preset::Graduated.limits());
    assert!((75..80).contains(&read), "{read}");
}

/// What a preamble says about the conversation.
fn facts(preamble: &str) -> Vec<&str> {
    let lines = preamble.lines();
    lines.filter_map(|line| line.strip_prefix("- ")).collect()
}

fn fork_end(session: &Session, limits: &Limits) -> Fork {
    let end = end_of(session, limits, 1);
    fork(&end, limits, tokens::o200k).expect("a fork")
}

#[test]
fn a_child_is_told_that_there_was_more_than_anybody_read() {
    let made = fork_end(&talk(Session::new(), LONG), &small());
    assert_eq!(
        facts(&made.preamble),
        [
            "Compaction: none was found.",
            "Tool results: none.",
            "Removed: everything before was left out to stay within the limits.",
        ]
    );
}

#[test]
fn a_child_is_told_that_a_summary_stands_for_what_nobody_read() {
    let session = talk(Session::new(), LONG).compacted("so far");
    let made = fork_end(&talk(session, 3), &small());
    assert_eq!(
        facts(&made.preamble),
        [
            "Compaction: found; it begins with the summary that stands for everything before it.",
            "Tool results: none.",
        ]
    );
}

#[test]
fn a_child_is_told_what_was_kept_beside_the_summary_and_what_was_removed_after_it() {
    let session = talk(Session::new(), 100);
    let session = session.compacted_keeping(Some("msg_98"), "so far");
    let made = fork_end(&talk(session.clone(), 3), &small());
    assert_eq!(
        facts(&made.preamble)[0],
        "Compaction: found; it begins with the summary that stands for everything before it, \
         followed by the last 2 messages before it."
    );
    let made = fork_end(&talk(session, 100), &small());
    let removed = made.stats.messages.removed;
    assert!(removed > 80, "{removed}");
    assert_eq!(
        facts(&made.preamble)[2],
        format!(
            "Removed: {removed} messages, the oldest after the summary, were left out to stay \
             within the limits."
        )
    );
}

#[test]
fn a_child_is_told_that_the_summary_of_what_nobody_read_is_empty() {
    let session = talk(Session::new(), 100).compacted(" \n");
    let made = fork_end(&talk(session, 3), &small());
    assert_eq!(
        facts(&made.preamble)[0],
        "Compaction: found, but the summary that stands for everything before it is empty."
    );
}

#[test]
fn only_where_something_was_not_read_do_the_figures_say_so() {
    let said = |made: &Fork| {
        let stats = serde_json::to_value(&made.stats).expect("JSON");
        stats["messages"].get("unread").cloned()
    };
    let long = talk(Session::new(), LONG);
    assert_eq!(said(&fork_end(&long, &small())), Some(json!(true)));
    let short = talk(Session::new(), 10);
    assert_eq!(said(&fork_end(&short, &small())), None);
    assert!(fork_end(&long, &small()).stats.tokens.before_is_estimate);
}

fn edits_of(parent: &Parent, limits: &Limits) -> Option<Edits> {
    edits(parent, limits, tokens::o200k).expect("edits")
}

/// A copy of a session, changed.
fn edited(session: &Session, edits: &Edits) -> Session {
    let is_removed = |id: &Value| edits.removed.iter().any(|gone| id == gone.as_str());
    let mut copy = Session::new();
    for mut message in messages(session) {
        let id = message["info"]["id"].clone();
        if is_removed(&id) {
            continue;
        }
        for part in message["parts"].as_array_mut().expect("parts") {
            let is_it = |cut: &&CutResult| {
                id == cut.message.as_str() && part["callID"] == cut.call.as_str()
            };
            let Some(cut) = edits.cut.iter().find(is_it) else {
                continue;
            };
            let kind = match part["state"]["status"].as_str() {
                Some("error") => "error",
                _ => "output",
            };
            part["state"][kind] = json!(cut.text);
        }
        copy = copy.entry(message);
    }
    copy
}

/// The same limits, but parameters stay: no edit can shorten them.
fn whole_params(mut limits: Limits) -> Limits {
    for key in ["whole_param_chars", "middle_param_chars", "old_param_chars"] {
        limits.set(key, 1_000_000_000).expect("an allowed value");
    }
    limits
}

/// Nothing is cut and nothing removed.
fn boundless() -> Limits {
    let limits = [
        ("whole_results", 1_000_000),
        ("max_chars", 20_000_000),
        ("max_tokens", 20_000_000),
    ];
    whole_params(with(Preset::Graduated, &limits))
}

#[test]
fn a_copy_is_changed_where_results_are_old_and_nowhere_else() {
    let reads = (0..20).map(|n| read(n, &filler(n, 10_000)));
    let session = with_results(reads);
    let edits = edits_of(&whole(&session), &Preset::Graduated.limits()).expect("edits");
    let cut: Vec<&str> = edits.cut.iter().map(|cut| cut.call.as_str()).collect();
    let old = (0..15).rev().map(|n| format!("call_{n}"));
    assert_eq!(cut, old.collect::<Vec<_>>());
    assert!(edits.removed.is_empty());
    let oldest = &edits.cut.last().expect("a cut").text;
    let marker = "\n...[truncated 9500 of 10000 chars]...\n";
    assert_eq!(*oldest, super::first(&filler(0, 10_000), 500) + marker);
}

#[test]
fn a_repeated_read_in_a_copy_says_that_it_is_whole_further_down() {
    let text = filler(0, 400);
    let reads = (0..8).map(|n| match n {
        0 | 6 => read(n, &text),
        _ => tool(n, "bash", json!({"n": n}), "completed", &filler(n, 400)),
    });
    let session = with_results(reads);
    let edits = edits_of(&whole(&session), &Preset::Graduated.limits()).expect("edits");
    let [repeated] = &edits.cut[..] else {
        panic!("{:?}", edits.cut);
    };
    assert_eq!(
        (
            repeated.message.as_str(),
            repeated.call.as_str(),
            repeated.text.as_str()
        ),
        (
            "msg_1",
            "call_0",
            "[Same text as the newest result of this same call, which is whole further down]"
        )
    );
    let made = forked(&session, &Preset::Graduated.limits());
    assert_eq!(made.stats.results.repeated, 1);
    assert_eq!(facts(&edits.preamble), facts(&made.preamble));
}

#[test]
fn results_of_a_message_in_the_making_are_cut_too() {
    let input = || json!({});
    let session = Session::new().agent_in_flight(vec![
        tool(0, "bash", input(), "running", ""),
        tool(1, "bash", input(), "error", &filler(1, 900)),
        tool(2, "read", input(), "completed", &filler(2, 900)),
    ]);
    let limits = [
        ("whole_results", 0),
        ("middle_results", 0),
        ("old_result_chars", 100),
    ];
    let limits = with(Preset::Graduated, &limits);
    let edits = edits_of(&whole(&session), &limits).expect("edits");
    let [failed, read] = &edits.cut[..] else {
        panic!("{:?}", edits.cut);
    };
    let calls = (failed.call.as_str(), read.call.as_str());
    assert_eq!(calls, ("call_1", "call_2"));
    let (failed, read) = (&failed.text, &read.text);
    assert!(failed.starts_with("#1# ") && failed.contains("...[truncated 800 of 900 chars]..."));
    assert!(read.starts_with("#2# ") && read.contains("...[truncated 800 of 900 chars]..."));
}

#[test]
fn calls_of_one_name_are_told_apart_by_their_messages() {
    let session = with_results((0..20).map(|n| {
        let mut call = read(n, &filler(n, 1_000));
        call["callID"] = json!("call_0");
        call
    }));
    let edits = edits_of(&whole(&session), &Preset::Graduated.limits()).expect("edits");
    assert_eq!(edits.cut.len(), 5);
    for (cut, n) in edits.cut.iter().zip((0..5).rev()) {
        // The first message is the question.
        assert_eq!(cut.message.as_str(), format!("msg_{}", n + 1));
        assert!(cut.text.starts_with(&format!("#{n}# ")), "{}", cut.text);
    }
}

#[test]
fn the_oldest_messages_go_but_never_what_a_summary_stands_for() {
    let session = talk(Session::new(), 30).compacted("so far");
    let session = talk(session, 40);
    let edits = edits_of(&whole(&session), &small()).expect("edits");
    let kept = forked(&session, &small()).stats.messages.kept - 1;
    let removed: Vec<&str> = edits.removed.iter().map(|id| id.as_str()).collect();
    let after = 30 + 2..30 + 2 + 40 - kept;
    let expected = after.rev().map(|n| format!("msg_{n}"));
    assert_eq!(removed, expected.collect::<Vec<_>>());
}

#[test]
fn a_child_is_told_that_the_messages_above_are_its_parents() {
    let session = with_results((0..20).map(|n| read(n, &filler(n, 10_000))));
    let made = forked(&session, &Preset::Graduated.limits());
    let edits = edits_of(&whole(&session), &Preset::Graduated.limits()).expect("edits");
    assert!(edits.preamble.contains("The conversation above belongs"));
    assert!(
        edits
            .preamble
            .contains("the task you are given after this.")
    );
    assert!(!edits.preamble.contains("inherited_context"));
    assert_eq!(facts(&edits.preamble), facts(&made.preamble));
    // Parameters are whole in a copy, so nothing is said about them.
    let part = tool(
        0,
        "read",
        json!({"p": filler(0, 900)}),
        "completed",
        "short",
    );
    let session = with_results([part]);
    let made = forked(&session, &Preset::Graduated.limits());
    let edits = edits_of(&whole(&session), &Preset::Graduated.limits()).expect("edits");
    assert_eq!(facts(&made.preamble).len(), 3);
    assert_eq!(facts(&edits.preamble).len(), 2);
}

#[test]
fn what_edits_cannot_do_becomes_a_text() {
    let long = Session::new().user(&filler(0, 5_000));
    assert_eq!(edits_of(&whole(&long), &small()), None, "a long message");
    let summary = Session::new().compacted(&filler(0, 5_000)).user("go on");
    assert_eq!(edits_of(&whole(&summary), &small()), None, "a long summary");

    let nameless = |text: &str| {
        json!({"info": {"role": "user", "time": {"created": 1}},
            "parts": [{"type": "text", "text": text}]})
    };
    let session = talk(Session::new().entry(nameless("hello")), 40);
    assert_eq!(edits_of(&whole(&session), &small()), None, "without a name");
    let session = talk(Session::new().entry(nameless("hello")), 3);
    assert!(edits_of(&whole(&session), &small()).is_some(), "it stays");

    let mut call = read(0, &filler(0, 5_000));
    call["callID"] = Value::Null;
    let flat = with(Preset::Graduated, &[("whole_results", 0)]);
    let session = with_results([call]);
    assert_eq!(edits_of(&whole(&session), &flat), None, "a call without");

    let unread = talk(Session::new(), LONG);
    let end = end_of(&unread, &small(), 1);
    assert_eq!(edits_of(&end, &small()), None, "a copy would have it all");
    let session = talk(unread.compacted("so far"), 3);
    let end = end_of(&session, &small(), 1);
    assert!(edits_of(&end, &small()).is_some(), "it is left behind");
}

#[test]
fn what_may_not_be_cut_is_refused_as_a_copy_too() {
    let mut limits = small();
    limits.set("when_over", "refuse").expect("an allowed value");
    let parent = whole(&talk(Session::new(), 40));
    let refused = edits(&parent, &limits, tokens::o200k);
    let as_text = fork(&parent, &limits, tokens::o200k);
    assert_eq!(refused.err(), as_text.err());
    assert!(edits(&parent, &limits, tokens::o200k).is_err());
}

/// A call whose name nobody else has.
fn tool(n: usize, name: &str, input: Value, status: &str, said: &str) -> Value {
    let kind = if status == "error" { "error" } else { "output" };
    json!({"id": format!("prt_{n}"), "type": "tool", "callID": format!("call_{n}"), "tool": name,
        "state": {"status": status, "input": input, kind: said, "time": {"start": 1, "end": 2}}})
}

fn read(n: usize, said: &str) -> Value {
    tool(n, "read", json!({"filePath": "a.rs"}), "completed", said)
}

/// A session as the properties see it. Numbers are lengths.
#[derive(Debug, Clone)]
struct Conversation {
    /// Short messages before all others.
    lead: usize,
    turns: Vec<Turn>,
    in_flight: bool,
}

#[derive(Debug, Clone)]
enum Turn {
    User(usize),
    Agent(Vec<Call>),
    Compacted { summary: usize, tail: Tail },
    CompactionFailed,
    CompactionUnfinished,
}

#[derive(Debug, Clone, Copy)]
enum Tail {
    None,
    /// So many messages before the request.
    Of(usize),
    /// It begins with a message that is not there.
    Lost,
}

#[derive(Debug, Clone)]
struct Call {
    tool: &'static str,
    status: &'static str,
    input: usize,
    output: usize,
    /// Whether others have the same parameters, and the same text if it is as long.
    repeated: bool,
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop::sample::select(vec!["read", "bash", "question"]);
    let status = prop::sample::select(vec![
        "completed",
        "completed",
        "completed",
        "error",
        "running",
    ]);
    let alone = (0..300_usize, 0..900_usize, Just(false));
    let lengths = prop::sample::select(vec![50_usize, 150, 151, 900]);
    let repeated = (Just(4_usize), lengths, Just(true));
    let call = (tool, status, prop_oneof![alone, repeated]);
    call.prop_map(|(tool, status, (input, output, repeated))| Call {
        tool,
        status,
        input,
        output,
        repeated,
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let tail = prop_oneof![
        2 => Just(Tail::None),
        4 => (1..30_usize).prop_map(Tail::Of),
        1 => Just(Tail::Lost),
    ];
    let compacted = (0..600_usize, tail);
    prop_oneof![
        5 => (0..400_usize).prop_map(Turn::User),
        10 => vec(call(), 0..4).prop_map(Turn::Agent),
        1 => compacted.prop_map(|(summary, tail)| Turn::Compacted { summary, tail }),
        1 => Just(Turn::CompactionFailed),
        1 => Just(Turn::CompactionUnfinished),
    ]
}

fn conversation() -> impl Strategy<Value = Conversation> {
    let lead = prop_oneof![Just(0), 0..40_usize, LOOK_BEYOND..LOOK_BEYOND + 300];
    let turns = vec(turn(), 0..40);
    (lead, turns, any::<bool>()).prop_map(|(lead, turns, in_flight)| Conversation {
        lead,
        turns,
        in_flight,
    })
}

fn session(conversation: &Conversation) -> Session {
    let mut session = Session::new();
    for n in 0..conversation.lead {
        session = session.user(&"lead ".repeat(n % 6));
    }
    let mut calls = 0;
    for (at, turn) in conversation.turns.iter().enumerate() {
        let in_flight = conversation.in_flight && at + 1 == conversation.turns.len();
        session = match turn {
            Turn::User(chars) => session.user(&filler(at, *chars)),
            Turn::Agent(all) => {
                let mut parts = vec![text(&filler(at, all.len()))];
                for call in all {
                    calls += 1;
                    let n = if call.repeated { 0 } else { calls };
                    let input = json!({"p": filler(n, call.input)});
                    let output = filler(n, call.output);
                    parts.push(tool(calls, call.tool, input, call.status, &output));
                }
                if in_flight {
                    session.agent_in_flight(parts)
                } else {
                    session.agent(parts)
                }
            }
            Turn::Compacted { summary, tail } => {
                let start = match tail {
                    Tail::None => None,
                    Tail::Of(tail) => before(&session, *tail),
                    Tail::Lost => Some("msg_lost".to_owned()),
                };
                session.compacted_keeping(start.as_deref(), &filler(at, *summary))
            }
            Turn::CompactionFailed => session.compaction_failed("half a"),
            Turn::CompactionUnfinished => session.compaction_unfinished("half a"),
        };
    }
    session
}

/// The ID of the message so many before the next one.
fn before(session: &Session, messages: usize) -> Option<String> {
    let next = session.next_id();
    let next: usize = next.strip_prefix("msg_")?.parse().ok()?;
    Some(format!("msg_{}", next.checked_sub(messages)?))
}

fn limits() -> impl Strategy<Value = Limits> {
    let numbers = (
        [0..6_usize, 0..6],
        [0..400_usize, 0..100],
        0..=100_usize,
        [1_000..6_000_usize, 1_000..3_000],
    );
    let policy = prop::sample::select(vec!["remove", "remove", "remove", "refuse"]);
    let switch = || prop::sample::select(vec!["false", "true"]);
    let switches = (policy, switch(), switch());
    (numbers, switches).prop_map(|((results, chars, head, most), (policy, ids, marks))| {
        let mut limits = with(
            Preset::Graduated,
            &[
                ("whole_results", results[0]),
                ("middle_results", results[1]),
                ("middle_result_chars", chars[0]),
                ("old_result_chars", chars[1]),
                ("head_percent", head),
                ("max_chars", most[0]),
                ("max_tokens", most[1]),
            ],
        );
        limits.set("when_over", policy).expect("an allowed value");
        limits.set("call_ids", ids).expect("an allowed value");
        limits
            .set("mark_repeated_reads", marks)
            .expect("an allowed value");
        limits
    })
}

/// What does not depend on how much was read.
fn essence(made: Result<Fork, ForkError>) -> Result<(String, Value), ForkError> {
    let Fork { context, stats, .. } = made?;
    let compaction = stats
        .compaction
        .map(|compacted| (compacted.id, compacted.empty, compacted.kept_tail));
    let mut results = serde_json::to_value(stats.results).expect("JSON");
    results["removed"] = Value::Null;
    let kept = json!([
        stats.messages.kept,
        compaction,
        results,
        stats.params_cut,
        serde_json::to_value(stats.cut_to_fit).expect("JSON"),
        stats.characters.after,
        stats.tokens.after,
    ]);
    Ok((context, kept))
}

/// Long sessions, so fewer of them.
fn cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        failure_persistence: None,
        cases: config.cases / 4,
        ..config
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_not_read_would_not_have_been_inherited(
        conversation in conversation(),
        limits in limits(),
        page in prop_oneof![Just(1_usize), 2..150_usize],
    ) {
        let session = session(&conversation);
        let end = end_of(&session, &limits, page);
        let read = fork(&end, &limits, tokens::o200k);
        let all = fork(&whole(&session), &limits, tokens::o200k);
        if let Ok(read) = &read {
            let unread = read.stats.messages.unread;
            prop_assert_eq!(unread, end.transcript().messages().len() < messages(&session).len());
            let left_out = read.preamble.contains("everything before was left out");
            prop_assert_eq!(left_out, unread && read.stats.compaction.is_none());
        }
        prop_assert_eq!(essence(read), essence(all));
    }

    #[test]
    fn an_edited_copy_says_what_a_text_would_say(
        conversation in conversation(),
        limits in limits().prop_map(whole_params),
    ) {
        let session = session(&conversation);
        let parent = whole(&session);
        let as_text = fork(&parent, &limits, tokens::o200k);
        let as_copy = edits(&parent, &limits, tokens::o200k);
        let (as_text, as_copy) = match (as_text, as_copy) {
            (Ok(as_text), Ok(as_copy)) => (as_text, as_copy),
            (as_text, as_copy) => {
                prop_assert_eq!(as_text.err(), as_copy.err());
                return Ok(());
            }
        };
        let Fork { stats, context, .. } = as_text;
        let cut_to_fit = stats.cut_to_fit.newest || stats.cut_to_fit.summary;
        // A tail that loses messages has no beginning any more.
        let cut_tail = stats.messages.removed > 0 && stats.compaction.is_some();
        prop_assert!(as_copy.is_some() || cut_to_fit || cut_tail);
        prop_assert!(as_copy.is_none() || !cut_to_fit);
        let Some(as_copy) = as_copy else { return Ok(()) };
        prop_assert_eq!(
            as_copy.cut.len(),
            stats.results.cut_middle + stats.results.cut_old + stats.results.repeated
        );
        prop_assert_eq!(as_copy.removed.len(), stats.messages.removed);
        let mut boundless = boundless();
        let ids = limits.describe().into_iter().find(|(key, ..)| *key == "call_ids");
        let (.., ids, _) = ids.expect("a limit");
        boundless.set("call_ids", ids.as_str()).expect("an allowed value");
        let copy = forked(&edited(&session, &as_copy), &boundless);
        prop_assert_eq!(copy.context, context);
    }
}
