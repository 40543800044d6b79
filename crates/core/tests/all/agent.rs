//! The built-in agent's machine: what the model is shown, and what comes next.

use asyncagents_core::{
    agent::{
        Answer, Around, Block, Call, Conversation, End, Entry, Filed, Kind, Mode, Next,
        Permissions, Profile, Reach, Rule, Stop, ToolOutcome, Tools, Turn, Usage, UsedUp, Verdict,
        next, transcript,
    },
    budget::Cost,
    fork::{Parent, Preset, fork},
    moment::Moment,
    tokens,
};
use rstest::rstest;

/// A session that is written entry by entry, as a driver would.
#[derive(Default, Clone)]
struct Story {
    entries: Vec<Filed>,
    conversation: Conversation,
}

impl Story {
    fn then(mut self, entry: Entry) -> Self {
        let filed = Filed {
            seq: self.entries.len() as u64 + 1,
            at: Moment::from_millis(0),
            entry,
        };
        self.conversation.take(&filed);
        self.entries.push(filed);
        self
    }

    fn prompted(self, text: &str) -> Self {
        let post = format!("prompt {text}").into();
        self.then(Entry::Prompted {
            post,
            text: text.to_owned(),
            agent: "general".into(),
            model: None,
            chain: None,
        })
    }

    fn told(self, text: &str) -> Self {
        self.then(Entry::Notice {
            post: format!("told {text}").into(),
            visible: text.to_owned(),
            hidden: "hidden".to_owned(),
        })
    }

    fn answered(self, answer: Answer) -> Self {
        let seen = self.entries.len() as u64;
        self.then(Entry::Answered { seen, answer })
    }

    fn began(self, call: &str) -> Self {
        let call = call.to_owned();
        self.then(Entry::ToolBegan { call })
    }

    fn ended(self, call: &str, text: &str) -> Self {
        self.then(Entry::ToolEnded {
            call: call.to_owned(),
            outcome: ToolOutcome::Done(text.to_owned()),
        })
    }

    fn next(&self) -> Next {
        next(&self.conversation, &around())
    }

    /// What the model is shown, a word for each turn.
    fn shown(&self) -> Vec<String> {
        let turn = |turn: &Turn| match turn {
            Turn::Said(text) => format!("user: {text}"),
            Turn::Answered(answer) => format!("agent: {}", answer.text()),
            Turn::Result { call, outcome } => format!("{}: {}", call.id, outcome.text()),
        };
        self.conversation.shown().turns.iter().map(turn).collect()
    }
}

fn around() -> Around {
    Around {
        tasks: false,
        wait: true,
        compact_from: 1_000,
        most_answers: None,
        most_same_calls: 5,
        used_up: UsedUp::default(),
    }
}

fn says(text: &str) -> Answer {
    Answer {
        model: "test/model".into(),
        blocks: vec![Block::Text(text.to_owned())],
        stop: Stop::Finished,
        usage: Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        },
        cost: Some(Cost(7)),
    }
}

fn calls(names: &[&str]) -> Answer {
    let call = |name: &&str| {
        Block::Call(Call {
            id: (*name).to_owned(),
            name: "bash".to_owned(),
            input: "{}".to_owned(),
        })
    };
    Answer {
        blocks: names.iter().map(call).collect(),
        stop: Stop::Tools,
        ..says("")
    }
}

fn ids(next: Next) -> Vec<String> {
    match next {
        Next::Run(calls) | Next::Lost(calls) => calls.into_iter().map(|call| call.id).collect(),
        other => vec![format!("{other:?}")],
    }
}

#[test]
fn a_run_goes_from_its_prompt_over_tools_to_an_answer() {
    let story = Story::default();
    assert_eq!(story.next(), Next::Rest, "nothing was asked for");
    let story = story.prompted("Look");
    assert_eq!(story.next(), Next::Ask);
    let story = story.answered(calls(&["a", "b"]));
    assert_eq!(ids(story.next()), ["a", "b"]);
    let story = story.began("a").ended("a", "A").began("b").ended("b", "B");
    assert_eq!(story.next(), Next::Ask);
    let story = story.answered(says("Done"));
    assert_eq!(story.next(), Next::Finish(End::Answered));
    let prompt = "prompt Look".into();
    let story = story.then(Entry::Ended {
        prompt,
        end: End::Answered,
        answer: Some("Done".to_owned()),
    });
    assert_eq!(story.next(), Next::Rest);
    let ended = story.conversation.end_of(&"prompt Look".into());
    assert_eq!(ended, Some(&(End::Answered, Some("Done".to_owned()))));
    assert_eq!(
        story.shown(),
        ["user: Look", "agent: ", "a: A", "b: B", "agent: Done"]
    );
    let totals = story.conversation.totals();
    assert_eq!(
        (totals.tokens, totals.cost, totals.turns),
        (30, Cost(14), 2)
    );
    assert_eq!(totals.by_tool.get("bash"), Some(&2));
}

#[test]
fn a_tool_that_was_running_at_a_crash_is_not_run_again() {
    let story = Story::default()
        .prompted("Look")
        .answered(calls(&["done", "running", "waiting"]))
        .began("done")
        .ended("done", "x")
        .began("running");
    let Next::Lost(lost) = story.next() else {
        panic!("{:?}", story.next());
    };
    assert_eq!(lost.len(), 1);
    assert_eq!(lost.first().map(|call| call.id.as_str()), Some("running"));
    let story = story.then(Entry::ToolEnded {
        call: "running".to_owned(),
        outcome: ToolOutcome::Unknown,
    });
    assert_eq!(
        ids(story.next()),
        ["waiting"],
        "it had not begun, so it runs"
    );
    let story = story.began("waiting").ended("waiting", "y");
    let shown = story.shown();
    assert!(
        shown.contains(&format!("running: {}", ToolOutcome::UNKNOWN)),
        "{shown:?}"
    );
}

#[test]
fn what_comes_while_the_model_answers_is_read_after_its_answer() {
    let story = Story::default().prompted("Look");
    let seen = story.conversation.shown().seen;
    let asked = story.shown();
    let story = story.told("task finished").then(Entry::Answered {
        seen,
        answer: says("Looking"),
    });
    assert_eq!(
        story.shown()[..asked.len()],
        asked,
        "what was sent stays as it was"
    );
    assert_eq!(
        story.shown(),
        [
            "user: Look",
            "agent: Looking",
            "user: task finished\n\nhidden"
        ]
    );
    assert_eq!(story.next(), Next::Ask, "it has not read the notice yet");
}

#[test]
fn a_notice_in_the_middle_of_tools_comes_after_their_results() {
    let story = Story::default()
        .prompted("Look")
        .answered(calls(&["a", "b"]))
        .ended("a", "A")
        .told("task finished")
        .ended("b", "B");
    assert_eq!(
        story.shown(),
        [
            "user: Look",
            "agent: ",
            "a: A",
            "b: B",
            "user: task finished\n\nhidden"
        ]
    );
}

#[test]
fn every_request_begins_with_the_one_before() {
    let mut story = Story::default().prompted("Look");
    let mut before: Vec<String> = Vec::new();
    for round in 0..6 {
        let shown = story.shown();
        assert_eq!(
            shown.get(..before.len()),
            Some(&before[..]),
            "round {round}"
        );
        before = shown;
        let (a, b) = (format!("{round}a"), format!("{round}b"));
        story = story
            .told(&format!("early {round}"))
            .then(Entry::Answered {
                seen: story_seen(before.len(), round),
                answer: calls(&[&a, &b]),
            })
            .ended(&b, "B")
            .told(&format!("late {round}"))
            .ended(&a, "A");
    }
}

/// The newest entry when round `round` was asked: 1 prompt, then 5 entries a round.
fn story_seen(_shown: usize, round: usize) -> u64 {
    1 + 5 * round as u64
}

#[test]
fn an_empty_answer_is_asked_for_again_twice_and_then_fails() {
    let mut story = Story::default().prompted("Look");
    for _ in 0..2 {
        story = story.answered(says(" "));
        let Next::Nudge(text) = story.next() else {
            panic!("{:?}", story.next());
        };
        assert!(text.starts_with("Your answer was empty"));
        story = story.then(Entry::Nudged { text });
        assert_eq!(story.next(), Next::Ask);
    }
    story = story.answered(says(""));
    let why = "the model answered nothing, three times in a row".to_owned();
    assert_eq!(story.next(), Next::Finish(End::Failed { why }));
}

#[rstest]
#[case(Stop::Refused, Next::Finish(End::Failed { why: "the model refused to answer".to_owned() }))]
#[case(Stop::Finished, Next::Finish(End::Answered))]
#[case(Stop::Tools, Next::Finish(End::Answered))]
fn how_an_answer_ends_decides(#[case] stop: Stop, #[case] then: Next) {
    let story = Story::default()
        .prompted("Look")
        .answered(Answer { stop, ..says("So") });
    assert_eq!(story.next(), then);
}

#[test]
fn an_answer_that_was_cut_goes_on_but_not_for_ever() {
    let mut story = Story::default().prompted("Look");
    let mut nudges = 0;
    loop {
        story = story.answered(Answer {
            stop: Stop::Length,
            ..says("half of")
        });
        match story.next() {
            Next::Nudge(text) => {
                nudges += 1;
                story = story.then(Entry::Nudged { text });
            }
            last => {
                assert_eq!(last, Next::Finish(End::Answered));
                break;
            }
        }
    }
    assert_eq!(nudges, 2);
}

#[test]
fn an_answer_waits_for_the_tasks_it_launched() {
    let story = Story::default().prompted("Look").answered(says("waiting"));
    let with = |tasks, wait| {
        let around = Around {
            tasks,
            wait,
            ..around()
        };
        next(&story.conversation, &around)
    };
    assert_eq!(with(true, true), Next::Wait);
    assert_eq!(with(true, false), Next::Finish(End::Answered));
    let story = Story {
        conversation: story.conversation.clone(),
        entries: story.entries.clone(),
    }
    .told("finished");
    assert_eq!(story.next(), Next::Ask);
}

#[test]
fn the_last_turn_is_announced_and_is_the_last() {
    let limited = |story: &Story| {
        let around = Around {
            most_answers: Some(2),
            ..around()
        };
        next(&story.conversation, &around)
    };
    let story = Story::default().prompted("Look");
    assert_eq!(limited(&story), Next::Ask);
    let story = story.answered(calls(&["a"])).ended("a", "A");
    let why = "the limit of 2 answers is reached".to_owned();
    let announced = Next::LastTurn {
        why: why.clone(),
        fails: false,
    };
    assert_eq!(limited(&story), announced);
    let story = story.then(Entry::LastTurn {
        why: why.clone(),
        fails: false,
    });
    assert_eq!(limited(&story), Next::Ask);
    let announced = story.shown().pop().expect("something was said");
    insta::assert_snapshot!(announced, @"user: This is your last turn: the limit of 2 answers is reached. Do not call tools. Say what you have found and done so far, and what is left.");
    // What it calls all the same is not run.
    let more = story.clone().answered(calls(&["b"]));
    assert_eq!(limited(&more), Next::Finish(End::Failed { why }));
    assert_eq!(more.conversation.totals().by_tool.values().sum::<u64>(), 1);
    // A notice after the answer does not undo it.
    let answered = story.answered(says("In sum.")).told("task finished");
    assert_eq!(limited(&answered), Next::Finish(End::Answered));
}

#[rstest]
#[case::before_the_first_answer(UsedUp { answers: Some("spent".into()), ..UsedUp::default() }, 0, Next::Ask)]
#[case::tokens_or_money(UsedUp { answers: Some("spent".into()), ..UsedUp::default() }, 1, last_turn("spent"))]
#[case::time(UsedUp { time: Some("late".into()), ..UsedUp::default() }, 1, last_turn("late"))]
#[case::enough(UsedUp::default(), 1, Next::Ask)]
fn a_used_up_budget_leads_to_a_last_turn(
    #[case] used_up: UsedUp,
    #[case] answers: usize,
    #[case] expected: Next,
) {
    let mut story = Story::default().prompted("Look");
    for call in ["a", "b"].iter().take(answers) {
        story = story.answered(calls(&[call])).ended(call, "A");
    }
    let around = Around {
        used_up,
        ..around()
    };
    assert_eq!(next(&story.conversation, &around), expected);
}

fn last_turn(why: &str) -> Next {
    Next::LastTurn {
        why: why.to_owned(),
        fails: true,
    }
}

#[test]
fn calls_beyond_the_budget_are_not_run_and_do_not_count() {
    let story = Story::default()
        .prompted("Look")
        .answered(calls(&["a"]))
        .ended("a", "A")
        .answered(calls(&["b", "c"]));
    let used_up = UsedUp {
        tool_calls: Some("no more calls".to_owned()),
        ..UsedUp::default()
    };
    let around = Around {
        used_up,
        ..around()
    };
    assert_eq!(
        next(&story.conversation, &around),
        last_turn("no more calls")
    );
    let story = story.then(Entry::LastTurn {
        why: "no more calls".to_owned(),
        fails: true,
    });
    assert_eq!(story.conversation.open_calls().count(), 0);
    assert_eq!(story.conversation.totals().by_tool.values().sum::<u64>(), 1);
    assert_eq!(next(&story.conversation, &around), Next::Ask);
    // Whatever it says, it has ended at its limit; what it said is kept.
    let story = story.answered(says("So far: A."));
    let why = "no more calls".to_owned();
    let end = next(&story.conversation, &around);
    assert_eq!(end, Next::Finish(End::Failed { why }));
    let run = story.conversation.run().expect("it has not ended yet");
    assert_eq!(run.answer.as_deref(), Some("So far: A."));
}

#[test]
fn who_waits_for_tasks_waits_until_the_time_is_up() {
    let story = Story::default().prompted("Look").answered(says("Waiting."));
    let waits = |used_up: UsedUp| {
        let around = Around {
            tasks: true,
            used_up,
            ..around()
        };
        next(&story.conversation, &around)
    };
    assert_eq!(waits(UsedUp::default()), Next::Wait);
    let spent = UsedUp {
        answers: Some("spent".to_owned()),
        ..UsedUp::default()
    };
    assert_eq!(waits(spent), Next::Wait, "its tasks may bring something");
    let late = UsedUp {
        time: Some("late".to_owned()),
        ..UsedUp::default()
    };
    assert_eq!(waits(late), last_turn("late"));
}

#[test]
fn what_a_refused_answer_wanted_done_is_not_done() {
    let refused = Answer {
        stop: Stop::Refused,
        ..calls(&["rm"])
    };
    let story = Story::default()
        .prompted("Look")
        .told("news")
        .answered(refused);
    let why = "the model refused to answer".to_owned();
    assert_eq!(story.next(), Next::Finish(End::Failed { why }));
}

#[test]
fn two_calls_of_one_name_both_get_a_result() {
    let story = Story::default()
        .prompted("Look")
        .answered(calls(&["same", "same"]))
        .began("same")
        .ended("same", "first")
        .began("same")
        .ended("same", "second");
    assert_eq!(story.next(), Next::Ask);
    assert_eq!(story.shown()[2..], ["same: first", "same: second"]);
}

#[test]
fn the_same_call_again_and_again_ends_a_run() {
    let mut story = Story::default().prompted("Look");
    for round in 0..5 {
        assert_eq!(story.next(), Next::Ask, "round {round}");
        story = story.answered(calls(&["x"])).ended("x", "no");
    }
    let why = "the same tool call came 5 times in a row".to_owned();
    assert_eq!(story.next(), Next::Finish(End::Failed { why }));
}

#[test]
fn calls_that_are_cut_again_and_again_end_a_run() {
    let mut story = Story::default().prompted("Look");
    for round in 0..4 {
        assert_eq!(story.next(), Next::Ask, "round {round}");
        let id = format!("{round}");
        let mut cut = calls(&[&id]);
        cut.stop = Stop::Length;
        if let Some(Block::Call(call)) = cut.blocks.first_mut() {
            call.input = format!("{{\"content\": \"{round}");
        }
        story = story.answered(cut).ended(&id, "cut");
    }
    let why = "the model's answers are cut at its greatest length, again and again".to_owned();
    assert_eq!(story.next(), Next::Finish(End::Failed { why }));
}

#[test]
fn an_answer_in_pieces_is_one_answer() {
    let cut = Answer {
        stop: Stop::Length,
        ..says("first half, ")
    };
    let story = Story::default().prompted("Look").answered(cut);
    let Next::Nudge(text) = story.next() else {
        panic!("{:?}", story.next());
    };
    let story = story
        .then(Entry::Nudged { text })
        .answered(says("second half"));
    let run = story.conversation.run().expect("a run");
    assert_eq!(run.answer.as_deref(), Some("first half, second half"));
    assert_eq!(story.next(), Next::Finish(End::Answered));
}

#[test]
fn what_fills_the_window_without_a_conversation_is_not_summarised_for_ever() {
    let full = |answer: Answer| Answer {
        usage: Usage {
            input: 2_000,
            ..Usage::default()
        },
        ..answer
    };
    let mut story = Story::default()
        .prompted("Look")
        .answered(full(calls(&["a"])))
        .ended("a", "A");
    let mut compactions = 0;
    for round in 0..6 {
        if story.next() == Next::Compact {
            compactions += 1;
            story = story.then(Entry::Compacted {
                seen: 0,
                answer: says("sum"),
            });
        }
        let id = format!("{round}");
        let mut call = calls(&[&id]);
        if let Some(Block::Call(call)) = call.blocks.first_mut() {
            call.input = id.clone();
        }
        story = story.answered(full(call)).ended(&id, "x");
    }
    assert!(compactions <= 3, "{compactions} compactions for 6 answers");
}

#[test]
fn a_full_window_is_summarised_before_the_next_request() {
    let full = Answer {
        usage: Usage {
            input: 900,
            output: 100,
            ..Usage::default()
        },
        ..calls(&["a"])
    };
    let story = Story::default()
        .prompted("Look")
        .answered(full)
        .ended("a", "A");
    assert_eq!(story.next(), Next::Compact);
    let story = story
        .told("while it was summarised")
        .then(Entry::Compacted {
            seen: 3,
            answer: says("We looked."),
        });
    let shown = story.shown();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].contains("<summary>\nWe looked.\n</summary>"));
    assert!(
        shown[1].contains("while it was summarised"),
        "nothing is lost"
    );
    assert_eq!(story.next(), Next::Ask);
}

#[test]
fn a_fork_of_a_summarised_session_begins_with_the_summary() {
    let story = Story::default()
        .prompted("A long story")
        .answered(calls(&["old"]))
        .ended("old", "an old result")
        .then(Entry::Compacted {
            seen: 3,
            answer: says("We looked."),
        })
        .answered(calls(&["new"]))
        .ended("new", "a new result");
    let parent = Parent::new(transcript(&story.entries));
    let child = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    assert!(child.context.contains("We looked."), "{}", child.context);
    assert!(child.context.contains("a new result"), "{}", child.context);
    assert!(
        !child.context.contains("an old result"),
        "{}",
        child.context
    );
    assert!(child.stats.compaction.is_some());
}

#[test]
fn a_call_in_flight_is_not_inherited_but_its_text_is() {
    let mut answer = calls(&["pending"]);
    answer
        .blocks
        .insert(0, Block::Text("Let me delegate.".to_owned()));
    let story = Story::default().prompted("Look").answered(answer);
    let parent = Parent::new(transcript(&story.entries));
    let child = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    assert!(child.context.contains("Let me delegate."));
    assert!(!child.context.contains("[Tool: bash]"), "{}", child.context);
}

#[test]
fn what_a_stopped_run_had_not_begun_is_not_done_for_the_next() {
    let stopped = Story::default()
        .prompted("Delete everything")
        .answered(calls(&["rm"]))
        .then(Entry::Ended {
            prompt: "prompt Delete everything".into(),
            end: End::Aborted,
            answer: None,
        })
        .prompted("Stop that");
    assert_eq!(stopped.next(), Next::Ask);
    assert!(stopped.shown()[2].starts_with("rm: Stopped"));
    let crashed = Story::default()
        .prompted("Delete everything")
        .answered(calls(&["rm"]))
        .prompted("Stop that");
    assert_eq!(crashed.next(), Next::Ask);
}

#[test]
fn a_branch_shows_the_parents_messages_and_settles_its_calls() {
    let mut story = Story::default().prompted("Look").answered(calls(&["a"]));
    let parent = story.conversation.shown();
    story.conversation.branch();
    let conversation = story.conversation;
    let turns = conversation.shown().turns;
    assert_eq!(turns.get(..2), parent.turns.get(..2));
    assert!(
        conversation.run().is_none(),
        "the parent's run is not the child's"
    );
    assert_eq!(conversation.totals().tokens, 0, "nor is what it has spent");
    let Some(Turn::Result { outcome, .. }) = turns.get(2) else {
        panic!("{turns:?}");
    };
    assert!(outcome.text().starts_with("Not part of this conversation"));
}

/// What a mode asks for.
const ASK: Verdict = Verdict::Ask { by_rule: false };

#[rstest]
#[case(Mode::Ask, "read", Kind::Read, "a.rs", Verdict::Allow)]
#[case(Mode::Ask, "todo", Kind::Note, "", Verdict::Allow)]
#[case(Mode::Ask, "edit", Kind::Edit, "a.rs", ASK)]
#[case(Mode::Ask, "bash", Kind::Run, "ls", ASK)]
#[case(Mode::AutoEdit, "edit", Kind::Edit, "a.rs", Verdict::Allow)]
#[case(Mode::AutoEdit, "bash", Kind::Run, "ls", ASK)]
#[case(Mode::AutoEdit, "write", Kind::Edit, ".git/hooks/pre-commit", Verdict::Ask { by_rule: true })]
#[case(Mode::AutoEdit, "edit", Kind::Edit, "sub/asyncagents.toml", Verdict::Ask { by_rule: true })]
#[case(Mode::AutoEdit, "edit", Kind::Edit, ".gitignore", Verdict::Allow)]
#[case(Mode::Yolo, "bash", Kind::Run, "ls", Verdict::Allow)]
// Rules.
#[case(Mode::Ask, "bash", Kind::Run, "cargo test -p x", Verdict::Allow)]
#[case(Mode::Ask, "bash", Kind::Run, "cargo test; rm -rf x", ASK)]
#[case(Mode::Ask, "bash", Kind::Run, "cargo test $(rm x)", ASK)]
#[case(Mode::Ask, "bash", Kind::Run, "cargo test > /etc/x", ASK)]
#[case(Mode::Ask, "bash", Kind::Run, "cargo test\nrm x", ASK)]
#[case(Mode::Yolo, "bash", Kind::Run, "git push --force", Verdict::Deny("the rule `bash(git push*)` forbids it".to_owned()))]
#[case(Mode::Yolo, "bash", Kind::Run, "true && git push", Verdict::Deny("the rule `bash(git push*)` forbids it".to_owned()))]
#[case(Mode::Yolo, "bash", Kind::Run, "npm publish", Verdict::Ask { by_rule: true })]
#[case(Mode::Ask, "edit", Kind::Edit, "docs/a.md", Verdict::Allow)]
#[case(Mode::Ask, "write", Kind::Edit, "docs/a.md", Verdict::Allow)]
#[case(Mode::Yolo, "bash", Kind::Run, "if true; then git push; fi", Verdict::Deny("the rule `bash(git push*)` forbids it".to_owned()))]
#[case(Mode::Yolo, "bash", Kind::Run, "X=1 sudo git  push", Verdict::Deny("the rule `bash(git push*)` forbids it".to_owned()))]
fn modes_and_rules(
    #[case] mode: Mode,
    #[case] tool: &str,
    #[case] kind: Kind,
    #[case] target: &str,
    #[case] verdict: Verdict,
) {
    let rule = |text: &str| text.parse::<Rule>().expect("a rule");
    let permissions = Permissions {
        mode,
        allow: vec![rule("bash(cargo test*)"), rule("Edit(docs/*)")],
        ask: vec![rule("bash(npm publish*)")],
        deny: vec![rule("bash(git push*)")],
    };
    assert_eq!(permissions.judge(tool, kind, target), verdict);
}

/// Files that decide what others run are asked for, unless a rule speaks of them.
#[rstest]
#[case::within_what_is_allowed("edit(src/*)", "src/asyncagents.toml", false)]
#[case::hooks("edit(src/*)", "src/.git/config", false)]
#[case::everything("edit", ".git/config", false)]
#[case::all_markdown("edit(*.md)", "AGENTS.md", false)]
#[case::another_case("edit(*)", ".GIT/config", false)]
#[case::a_capital_of_other_letters("edit(*)", ".hu\u{17f}ky/pre-push", false)]
#[case::spelled_with_dots("edit(*)", "x/../.git/config", false)]
#[case::instructions("edit(docs/*)", "docs/CLAUDE.local.md", false)]
#[case::other_agents("edit(*)", "opencode.jsonc", false)]
#[case::servers("edit(*)", ".mcp.json", false)]
#[case::shell("edit(*)", "sub/.envrc", false)]
#[case::editor("edit(*)", ".vscode/tasks.json", false)]
#[case::pipeline("edit(.github/*)", ".github/workflows/ci.yml", false)]
#[case::not_the_outer_part("edit(*AGENTS.md)", ".git/AGENTS.md", false)]
#[case::named("edit(.git/config)", ".git/config", true)]
#[case::named_in_any_folder("edit(**/AGENTS.md)", "docs/AGENTS.md", true)]
#[case::named_with_a_wildcard("edit(.claude/*)", ".claude/agents/a.md", true)]
#[case::named_in_another_case("edit(agents.md)", "agents.md", true)]
#[case::named_pipeline("edit(.github/workflows/*)", ".github/workflows/ci.yml", true)]
#[case::no_pipeline("edit(.github/*)", ".github/CODEOWNERS", true)]
#[case::not_guarded("edit(src/*)", "src/gitconfig.rs", true)]
#[case::nearly_its_name("edit(*)", ".gitignore", true)]
fn guarded_files_are_asked_for(#[case] rule: &str, #[case] file: &str, #[case] free: bool) {
    let judged = |mode| {
        let permissions = Permissions {
            mode,
            allow: Rule::list(rule).expect("a rule"),
            ..Permissions::default()
        };
        permissions.judge("write", Kind::Edit, file)
    };
    let expected = if free {
        Verdict::Allow
    } else {
        Verdict::Ask { by_rule: true }
    };
    assert_eq!(judged(Mode::Ask), expected);
    assert_eq!(judged(Mode::AutoEdit), expected);
    assert_eq!(judged(Mode::Yolo), Verdict::Allow);
}

/// A wildcard stands for more of the same, not for options that write files or run programs.
#[rstest]
#[case("git diff*", "git diff --output=stolen")]
#[case("git diff*", "git diff --outp=stolen")]
#[case("git diff*", "git diff '--output' stolen")]
#[case("git diff*", "git diff --out\"put\"=stolen")]
#[case("git diff*", r"git diff --o\utput=stolen")]
#[case("git *", "git -c core.pager=evil log")]
#[case("git *", "git -ccore.pager=evil log")]
#[case("git *", "git --no-pager -C elsewhere status")]
#[case("git *", "git config core.fsmonitor evil")]
#[case("git grep *", "git grep -Oevil x")]
#[case("git grep *", "git grep -nO x")]
#[case("git grep *", "git grep --open-files-in-pager=evil x")]
#[case("git archive *", "git archive -o stolen HEAD")]
#[case("git fetch*", "git fetch ext::evil")]
#[case("git fetch*", "git fetch --upload-pack=evil")]
#[case("find *", "find . -exec rm x +")]
#[case("find *", "find . -delete")]
#[case("find *", "find . -fprintf stolen x")]
#[case("fd *", "fd -x evil")]
#[case("rg *", "rg --pre evil x")]
#[case("rg *", "rg --pre=evil x")]
#[case("sort *", "sort -o stolen file")]
#[case("sort *", "sort -uostolen file")]
#[case("sort *", "sort --compress-prog=evil file")]
#[case("sort *", "sort *.txt")]
#[case("sed *", "sed -i s/a/b/ file")]
#[case("sed *", "sed -ni.old 1p file")]
#[case("sed *", "sed 's/a/b/w stolen' file")]
#[case("sed *", "sed 's/a/evil/e' file")]
#[case("sed *", "sed '1e evil' file")]
#[case("sed *", "sed -n '/a/w stolen' file")]
#[case("sed *", "sed -e 1p -e 'w stolen' file")]
#[case("sed *", "sed -ne 'w stolen' file")]
#[case("sed *", "sed --expr='w stolen' file")]
#[case("sed *", "sed -f evil file")]
#[case("tar *", "tar xf a --to-command=evil")]
#[case("tar *", "tar xf a --checkpoint-action exec=evil")]
#[case("tar *", "tar xIf evil a")]
#[case("awk *", "awk -f evil file")]
#[case("curl *", "curl -sSo stolen http://host")]
#[case("curl *", "curl -K evil http://host")]
#[case("cargo test*", "cargo test --config evil")]
#[case("cargo test*", "cargo test --conf=evil")]
#[case("go test *", "go test -exec evil ./x")]
#[case("go test *", "go test --toolexec=evil ./x")]
#[case("make test*", "make test SHELL=evil")]
#[case("npm test*", "npm test --script-shell=evil")]
#[case("pytest *", "pytest -p evil")]
#[case("python -m pytest *", "python -m pytest -p evil")]
#[case("env *", "env evil")]
#[case("env *", "env A=1 evil")]
#[case("xargs *", "xargs evil")]
#[case("timeout 5 *", "timeout 5 evil")]
#[case("timeout 5 git diff*", "timeout 5 git diff --output=stolen")]
#[case("/usr/bin/find *", "/usr/bin/find . -delete")]
#[case("git diff*", "git diff 'unclosed")]
#[case("git -C * status*", "git -C . -c core.fsmonitor=evil status")]
#[case("git -C *", "git -C . -c alias.z=!evil z")]
#[case("git --git-dir *", "git --git-dir .git -c core.fsmonitor=evil status")]
#[case("git *", "git --namespace x -c core.fsmonitor=evil status")]
#[case("git *", "git --attr-source HEAD -c core.fsmonitor=evil status")]
#[case("git *", "git --namespace x config alias.y !evil")]
#[case("git *", "git --namespace x difftool -y")]
#[case("git *", "git --namespace x archive -o stolen HEAD")]
#[case("git clone *", "git clone -u evil . d")]
#[case("git format-patch *", "git format-patch -o elsewhere HEAD")]
#[case("git *", "git fast-export --export-marks=stolen HEAD")]
#[case("sed -n*", "sed -n -l 1 1eevil a")]
#[case("sed *", "sed -l 5 'w stolen' a")]
#[case("sed *", "sed --line-length 5 'w stolen' a")]
#[case("env*", "env -Sevil")]
#[case("env *", "env --split-string=evil")]
#[case("tar t*", "tar tf x.tar --index-file=stolen")]
#[case("curl *", "curl --alt-svc stolen http://host")]
#[case("command *", "command evil")]
#[case("strace *", "strace evil")]
fn a_wildcard_does_not_stand_for_risky_options(#[case] pattern: &str, #[case] command: &str) {
    let rule = format!("bash({pattern})");
    let permissions = Permissions {
        allow: vec![rule.parse().expect("a rule")],
        ..Permissions::default()
    };
    assert_eq!(permissions.judge("bash", Kind::Run, command), ASK);
    // Nor for an agent or a skill that has no more than that.
    let tools = Tools {
        only: Some(permissions.allow),
        ..Tools::default()
    };
    assert!(!tools.allows("bash", Kind::Run, command));
}

/// What they are known for goes on as before, and what a rule names is meant.
#[rstest]
#[case("git diff*", "git diff --stat main..feature")]
#[case("git *", "git log --oneline -5 -c")]
#[case("git *", "git commit -C HEAD")]
#[case("git log*", "git log --format='%h %s' --since=yesterday")]
#[case("find *", "find . -name '*.rs' -type f -o -name x")]
#[case("find *", "find . -name *.rs")]
#[case("rg *", "rg -n --pretty word src")]
#[case("sort *", "sort -u -k2 file")]
#[case("sed *", "sed -n 10,20p file")]
#[case("sed *", "sed -n -e '/^a/p' file")]
#[case("sed *", "sed 's/one/two words/g' file.write")]
#[case("sed *", "sed '/start/,/end/d' file")]
#[case("tar *", "tar tzf archive.tgz")]
#[case("curl *", "curl -sS -H 'accept: text/plain' http://host/o")]
#[case("cargo test*", "cargo test -p core --test all -- --nocapture")]
#[case("go test *", "go test -count=1 -v ./x")]
#[case("make test*", "make test -j4")]
#[case("ls *", "ls -o *")]
#[case("env", "env")]
#[case("git diff --output=*", "git diff --output=out.patch")]
#[case("sed -i *", "sed -i s/a/b/ file")]
#[case("timeout 5 cargo test*", "timeout 5 cargo test -p x")]
#[case("env A=1 cargo test*", "env A=1 cargo test -p x")]
#[case("git -C sub diff*", "git -C sub diff --stat")]
#[case("find . -exec cat *", "find . -exec cat a")]
#[case("git config core.pager cat", "git config core.pager cat")]
fn what_a_wildcard_stands_for(#[case] pattern: &str, #[case] command: &str) {
    let rule: Rule = format!("bash({pattern})").parse().expect("a rule");
    assert!(rule.lets_pass("bash", Kind::Run, command));
}

/// Rules about reading bind the tools that search, too.
#[rstest]
#[case::read("read", ".env", Verdict::Deny("the rule `read(.env)` forbids it".to_owned()))]
#[case::grep("grep", ".env", Verdict::Deny("the rule `read(.env)` forbids it".to_owned()))]
#[case::a_folder("glob", "keys/old", Verdict::Deny("the rule `read(keys/*)` forbids it".to_owned()))]
#[case::asked_for("grep", "notes/diary.md", Verdict::Ask { by_rule: true })]
#[case::everything("grep", ".", Verdict::Allow)]
#[case::a_tool_of_tomorrow("count_lines", ".env", Verdict::Deny("the rule `read(.env)` forbids it".to_owned()))]
#[case::blanks_are_kept("read", "two  blanks", Verdict::Deny("the rule `read(two  blanks)` forbids it".to_owned()))]
#[case::no_command("read", "time .env", Verdict::Allow)]
#[case::in_a_folder("read", "vault/a/b", Verdict::Deny("the rule `read(vault/)` forbids it".to_owned()))]
#[case::the_folder("glob", "vault", Verdict::Deny("the rule `read(vault/)` forbids it".to_owned()))]
#[case::beside_the_folder("read", "vault.md", Verdict::Allow)]
#[case::in_any_folder("read", "a/b/id.pem", Verdict::Deny("the rule `read(**/*.pem)` forbids it".to_owned()))]
#[case::or_in_none("grep", "id.pem", Verdict::Deny("the rule `read(**/*.pem)` forbids it".to_owned()))]
fn rules_about_reading(#[case] tool: &str, #[case] target: &str, #[case] verdict: Verdict) {
    assert_eq!(guarded().judge(tool, Kind::Read, target), verdict);
}

fn guarded() -> Permissions {
    let rules = |text: &str| Rule::list(text).expect("rules");
    Permissions {
        mode: Mode::Yolo,
        allow: rules("grep"),
        ask: rules("Read(./notes/*)"),
        deny: rules("read(.env), Read(./keys/*), read(two  blanks), read(vault/), read(**/*.pem)"),
    }
}

#[rstest]
#[case::free("grep", ".", "src/main.rs", Reach::Show)]
#[case::forbidden("grep", ".", ".env", Reach::Hide)]
#[case::forbidden_below("glob", ".", "keys/a/b", Reach::Hide)]
#[case::asked_for("grep", ".", "notes/diary.md", Reach::Ask)]
#[case::answered("grep", "notes/diary.md", "notes/diary.md", Reach::Show)]
#[case::answered_for_the_folder("grep", "notes/old", "notes/old/diary.md", Reach::Show)]
fn what_a_search_comes_upon(
    #[case] tool: &str,
    #[case] searched: &str,
    #[case] file: &str,
    #[case] reach: Reach,
) {
    assert_eq!(guarded().reach(tool, searched, file), reach);
}

#[test]
fn an_agent_that_may_not_read_may_not_search() {
    let not = |rules: &str| Tools {
        not: Rule::list(rules).expect("rules"),
        ..Tools::default()
    };
    assert!(!not("Read").offers("grep"));
    assert!(not("Grep").offers("read"));
    let tools = not("Read(.env)");
    assert!(tools.offers("grep"));
    assert!(!tools.allows("grep", Kind::Read, ".env"));
    assert!(tools.allows("grep", Kind::Read, "."));
    assert!(tools.hides("grep", ".env") && !tools.hides("grep", "a"));
    // A list of what is allowed is literal: it would not be for `Read` to allow `Grep`.
    let only = Tools {
        only: Some(Rule::list("Read").expect("rules")),
        ..Tools::default()
    };
    assert!(!only.offers("grep"));
}

#[rstest]
#[case("")]
#[case("bash(")]
#[case("(x)")]
#[case("two words")]
fn what_is_no_rule_is_told(#[case] text: &str) {
    let error = text.parse::<Rule>().expect_err("no rule").to_string();
    assert!(error.ends_with("rules look like `bash`, `bash(cargo test*)` or `edit(src/*)`"));
}

#[rstest]
#[case::claude_code(
    "---\nname: reviewer\ndescription: Use when: code changed\ntools: Read, Grep, Bash(git log:*)\nmodel: inherit\n---\nReview it.\n"
)]
#[case::opencode(
    "---\r\ndescription: \"Use when: code changed\"\r\nmode: subagent\r\ntools:\r\n  write: false\r\n  edit: false\r\n  task: false\r\n---\r\nReview it.\r\n"
)]
#[case::ours(
    "\u{feff}---\ndescription: >\n  Use when: code changed\ntools: [read, grep, \"bash(git log*)\"]\nmax_turns: 9\n---\n\nReview it."
)]
fn profiles_of_all_three_kinds_are_read(#[case] text: &str) {
    let profile = Profile::parse("reviewer", text)
        .expect("read")
        .expect("an agent");
    assert_eq!(profile.name.as_str(), "reviewer");
    assert_eq!(profile.description, "Use when: code changed");
    assert_eq!(profile.prompt, "Review it.");
    assert_eq!(profile.model, None);
    assert!(profile.tools.offers("read"));
    assert!(profile.tools.offers("bash"));
    assert!(!profile.tools.offers("edit"));
    assert!(!profile.tools.offers("asyncagents_task"));
    assert!(profile.tools.allows("bash", Kind::Run, "git log -3"));
    let listed = profile.tools.only.is_some();
    assert_eq!(profile.tools.allows("bash", Kind::Run, "rm -rf x"), !listed);
}

#[rstest]
#[case(
    "no settings",
    "it does not begin with `---` and end its settings with `---`"
)]
#[case(
    "---\nname: x\n",
    "it does not begin with `---` and end its settings with `---`"
)]
#[case("---\nname: x\n---\n  \n", "it has no prompt below its settings")]
#[case(
    "---\ntools: [\"a b(\"]\n---\nx",
    "its tools: `a b(` is no rule; rules look like `bash`, `bash(cargo test*)` or `edit(src/*)`"
)]
fn a_file_that_is_no_profile_says_why(#[case] text: &str, #[case] why: &str) {
    let error = Profile::parse("x", text).expect_err("no profile");
    assert_eq!(error.to_string(), why);
}

#[test]
fn a_profile_that_is_switched_off_is_none() {
    let profile = Profile::parse("general", "---\ndisable: true\n---\nx");
    assert_eq!(profile, Ok(None));
}

#[test]
fn who_only_reads_cannot_delegate_to_someone_who_writes() {
    for profile in Profile::built_in() {
        let writes = profile.tools.offers("write");
        assert_eq!(profile.tools.offers("bash"), writes, "{}", profile.name);
        assert_eq!(
            profile.tools.offers("asyncagents_task"),
            writes,
            "{}",
            profile.name
        );
        assert!(profile.tools.offers("read"), "{}", profile.name);
    }
}

#[rstest]
#[case::for_each_tool("permission:\n  edit: deny\n  bash: deny", false, false)]
#[case::by_pattern(
    "permission:\n  bash:\n    \"git push*\": deny\n    \"*\": allow\n  edit: ask",
    true,
    true
)]
#[case::for_all("permission: deny", false, false)]
#[case::switches_from_nothing(
    "permission:\n  bash:\n    \"git push*\": deny\ntools:\n  \"*\": false\n  read: true\n  bash: true",
    false,
    true
)]
fn what_opencode_forbids_is_forbidden(
    #[case] front: &str,
    #[case] edits: bool,
    #[case] runs: bool,
) {
    let text = format!("---\n{front}\n---\nReview it.\n");
    let tools = Profile::parse("x", &text)
        .expect("read")
        .expect("an agent")
        .tools;
    assert_eq!(tools.allows("edit", Kind::Edit, "a"), edits);
    assert_eq!(tools.allows("write", Kind::Edit, "a"), edits);
    assert_eq!(tools.allows("bash", Kind::Run, "ls"), runs);
    assert!(!tools.allows("bash", Kind::Run, "git push"), "{front}");
}

#[test]
fn a_profile_without_delegation_has_none_under_any_prefix() {
    let text = "---\ndisallowedTools: Task\n---\nReview it.\n";
    let tools = Profile::parse("x", text)
        .expect("read")
        .expect("an agent")
        .tools;
    assert!(!tools.offers("asyncagents_task") && !tools.offers("bg_task"));
    assert!(tools.offers("bash"));
}

#[rstest]
#[case::edits(Kind::Edit, "edit", "src/a.rs", &[Mode::AutoEdit, Mode::Yolo])]
#[case::programs(Kind::Run, "bash", "cargo test", &[Mode::Yolo])]
#[case::a_rule_asks(Kind::Run, "bash", "git push", &[])]
#[case::free_anyway(Kind::Read, "read", "a", &[Mode::Ask, Mode::AutoEdit, Mode::Yolo])]
fn only_modes_that_free_a_call_are_recommended(
    #[case] kind: Kind,
    #[case] tool: &str,
    #[case] target: &str,
    #[case] modes: &[Mode],
) {
    let permissions = Permissions {
        mode: Mode::AutoEdit,
        ask: vec!["bash(git push*)".parse().expect("a rule")],
        ..Permissions::default()
    };
    assert_eq!(permissions.freeing_modes(tool, kind, target), modes);
}
