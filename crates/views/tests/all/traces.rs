use asyncagents_core::skill_event::{ErrorCode, SkillEvent};
use asyncagents_views::{
    RunEvent, RunTotals, SkillEventView, StepView, TaskView, TraceEvent, TraceView, arguments,
};

use crate::{made_up, printed};

#[test]
fn a_trace_with_a_nested_run() {
    let trace = made_up::nested();
    insta::assert_snapshot!(printed([TraceView::whole(&trace)]));
}

#[test]
fn a_list_of_runs() {
    let traces = [made_up::nested(), made_up::waiting()];
    insta::assert_snapshot!(printed(traces.iter().map(TraceView::head)));
}

#[test]
fn a_run_that_is_followed() {
    let trace = made_up::nested();
    let events = [
        TraceEvent::Step {
            chain_id: "chain_1",
            step: StepView::new(&trace.steps[1]),
        },
        TraceEvent::End(Box::new(TraceView::head(&trace))),
    ];
    insta::assert_snapshot!(printed(events));
}

#[test]
fn each_event_of_a_skill() {
    let events = events();
    insta::assert_snapshot!(printed(events.iter().map(SkillEventView::from)));
}

pub(crate) fn events() -> [SkillEvent; 6] {
    let task = "task_1".to_owned();
    [
        SkillEvent::Status {
            task: task.clone(),
            message: "Running skill: review".to_owned(),
        },
        SkillEvent::SubAgent {
            sub_task: "task_1-subagent-1".to_owned(),
            step: Box::new(made_up::steps().remove(0)),
        },
        SkillEvent::Message {
            task: task.clone(),
            parts: ["All is well.", "Full trace: chain_1"].map(str::to_owned),
        },
        SkillEvent::Error {
            task: task.clone(),
            code: ErrorCode::SkillNotFound,
            message: "there is no skill".to_owned(),
        },
        SkillEvent::Done {
            task: task.clone(),
            completed: true,
        },
        SkillEvent::Done {
            task,
            completed: false,
        },
    ]
}

#[test]
fn each_event_of_a_run() {
    let (task, now) = (made_up::running(), made_up::later(5));
    let (call, name, text) = ("call_1", "bash", "some text");
    let events = [
        RunEvent::Session { id: "ses_1" },
        RunEvent::TextDelta { text },
        RunEvent::Reset,
        RunEvent::Again {
            why: "it broke off",
        },
        RunEvent::Text { text },
        RunEvent::Tool {
            call,
            name,
            target: "ls",
            arguments: arguments(r#"{"timeout": 1, "command": "ls"}"#),
        },
        RunEvent::ToolEnded {
            call,
            name,
            error: None,
            result: Some(text),
        },
        RunEvent::Notice { text },
        RunEvent::Compacting,
        RunEvent::Task {
            task: Box::new(TaskView::new(&task, now)),
        },
        RunEvent::End(Box::new(RunTotals {
            session: "ses_1",
            answer: Some(text),
            error: None,
            spent: task.task.progress.spent.into(),
            cached_tokens: 40,
            seconds: 1.5,
            tasks: vec![TaskView::new(&task, now)],
        })),
    ];
    insta::assert_snapshot!(printed(events));
}
