//! Tasks and traces to show.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    agent::{Tools, Usage},
    answer::Shown,
    budget::{Budget, Cost, Spent},
    host_ref::{HostRef, HostSetup, LaunchSettings},
    id::TaskId,
    moment::Moment,
    progress::{OpenQuestion, Progress},
    question::Question,
    skill::Terms,
    speaker::Speaker,
    task::{Brief, Context, Outcome, Place, Stage, State, Task},
    trace::{Step, StepKind, ToolResult, Trace, TraceState, TraceTotals},
};

/// 2026-03-01, half past twelve.
pub(crate) const BEGUN: Moment = Moment::from_millis(1_772_368_205_123);

pub(crate) fn later(seconds: u64) -> Moment {
    BEGUN.after(Duration::from_secs(seconds))
}

pub(crate) fn task(state: State) -> Shown {
    let id = TaskId::from_random(7);
    Shown {
        id: "task_00000000".to_owned(),
        task: Task {
            place: Place {
                parent: "ses_parent".into(),
                above: None,
                root: "ses_parent".into(),
                depth: 1,
                outside: None,
                above_in: None,
            },
            brief: Brief {
                description: "Find the \"slow\" query".to_owned(),
                agent: "general".into(),
                model: None,
                effort: None,
                context: Context::Fresh,
                host: HostSetup {
                    host: HostRef::Engine {
                        folder: "/shop".into(),
                    },
                    settings: LaunchSettings::default(),
                },
            },
            skill: None,
            budget: Budget::default(),
            launched_at: BEGUN,
            batch: 1,
            run: 0,
            session: None,
            state,
            stopping: false,
            progress: Progress::default(),
            below: Spent::default(),
            spent_before: Spent::default(),
            retrieved_at: None,
            cleared: false,
            owner: None,
            chain: None,
            seq: 1,
            id,
        },
    }
}

pub(crate) fn queued() -> Shown {
    task(State::Queued { since: BEGUN })
}

/// At work, with progress, a budget and a question.
pub(crate) fn running() -> Shown {
    let mut shown = task(State::Running {
        since: BEGUN,
        stage: Stage::Working,
    });
    let task = &mut shown.task;
    task.session = Some("ses_child".into());
    task.chain = Some("chain_1".into());
    task.brief.model = Some("anthropic/claude".into());
    task.budget = Budget {
        tokens: Some(1_000),
        cost: Some(Cost(250_000)),
        time: Some(Duration::from_millis(90_500)),
        turns: Some(9),
        tool_calls: Some(8),
    };
    task.progress = Progress {
        spent: Spent {
            tokens: 640,
            cost: Cost(12_345),
            unpriced: 40,
            turns: 3,
            tool_calls: 2,
        },
        by_tool: [("read".to_owned(), 1), ("bash".to_owned(), 1)].into(),
        recent: ["read".to_owned(), "bash".to_owned()].into(),
        last_activity: Some(later(2)),
        asking: BTreeMap::from([(
            "q1".to_owned(),
            OpenQuestion {
                question: Question::permission("May I run `make`?"),
                since: later(2),
                told: true,
            },
        )]),
        ..Progress::default()
    };
    shown
}

pub(crate) fn ended(outcome: Outcome) -> Shown {
    let (at, ran) = (later(61), Duration::from_millis(60_250));
    let mut shown = task(State::Ended { at, ran, outcome });
    shown.task.retrieved_at = Some(later(62));
    shown.task.progress.spent.unpriced = 5;
    shown.task.progress.spent.tokens = 5;
    shown
}

pub(crate) fn forked_and_resumed() -> Shown {
    let mut shown = ended(Outcome::Completed);
    shown.task.brief.context = Context::Forked;
    shown.task.run = 2;
    shown
}

pub(crate) fn of_skill() -> Shown {
    let mut shown = queued();
    shown.task.skill = Some(Terms {
        skill: "review".to_owned(),
        tools: Tools::default(),
        iterations: 5,
        retries: 1,
        iteration_time: None,
        model: None,
        effort: None,
    });
    shown
}

const USAGE: Usage = Usage {
    input: 100,
    cache_read: 40,
    cache_write: 2,
    output: 30,
};

/// One step of each kind, and a tool call with each result.
pub(crate) fn steps() -> Vec<Step> {
    let text = "some text".to_owned();
    let tool = |input: &str, result, retries| StepKind::Tool {
        name: "bash".to_owned(),
        input: input.to_owned(),
        result,
        retries,
    };
    let kinds = [
        StepKind::Thought { text: text.clone() },
        StepKind::Model {
            model: Some("anthropic/claude".into()),
            usage: USAGE,
            unsplit: 0,
            cost: Some(Cost(1_500)),
            text: text.clone(),
        },
        StepKind::Model {
            model: None,
            usage: Usage::default(),
            unsplit: 12,
            cost: None,
            text: String::new(),
        },
        StepKind::Compacted {
            model: "anthropic/claude".into(),
            usage: USAGE,
            cost: None,
        },
        tool(r#"{"z": 1, "command": "ls"}"#, ToolResult::Open, 0),
        tool("not JSON", ToolResult::Done(text.clone()), 0),
        tool("{}", ToolResult::Failed(text.clone()), 2),
        tool("{}", ToolResult::Unknown, 0),
        tool("", ToolResult::NotReported, 0),
        StepKind::Notice { text: text.clone() },
        StepKind::Message {
            from: Some(Speaker::Ancestor),
            text: text.clone(),
        },
        StepKind::Nudged { text },
    ];
    let step = |(seq, what): (u64, StepKind)| Step {
        seq,
        at: later(seq),
        took: seq.is_multiple_of(2).then(|| Duration::from_millis(250)),
        what,
    };
    (1..).zip(kinds).map(step).collect()
}

fn run(title: &str, state: TraceState) -> Trace {
    Trace {
        chain: None,
        parent: None,
        task: None,
        title: title.to_owned(),
        skill: None,
        agent: None,
        request: "Do it".to_owned(),
        state,
        begun: BEGUN,
        took: Duration::from_millis(4_200),
        steps: Vec::new(),
        answer: None,
        own: TraceTotals::default(),
        all: TraceTotals::default(),
        children: Vec::new(),
    }
}

/// A run with steps, and below it a skill that died.
pub(crate) fn nested() -> Trace {
    let why = "the model's server is gone".to_owned();
    let died = TraceState::Ended {
        outcome: Outcome::Failed { why },
        own: false,
    };
    let completed = TraceState::Ended {
        outcome: Outcome::Completed,
        own: true,
    };
    let child = Trace {
        chain: Some("chain_2".into()),
        parent: Some("chain_1".into()),
        task: Some(TaskId::from_random(8)),
        skill: Some("review".to_owned()),
        agent: Some("general".into()),
        ..run("skill review", died)
    };
    let mut trace = Trace {
        chain: Some("chain_1".into()),
        answer: Some("Done.".to_owned()),
        own: TraceTotals::of(&steps()),
        steps: steps(),
        children: vec![child],
        ..run("Why is it slow?", completed)
    };
    trace.add_up();
    trace
}

/// A run that waits for its slot.
pub(crate) fn waiting() -> Trace {
    run("later", TraceState::Queued)
}
