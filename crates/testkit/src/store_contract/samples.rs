//! Tasks, events, sessions and entries to store.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    agent::{Effort, Tools},
    budget::{Budget, Cost, Spent},
    end_notice::{EndNotice, ToldResult},
    event::{Event, Launched},
    fallback::Fallback,
    fork::{Mode, Plan},
    host_ref::{HostRef, HostSetup, LaunchSettings},
    id::{SessionId, TaskId},
    moment::Moment,
    port::{Base, Content, Journal, NoticeText, Post, Session, Stored},
    progress::{Observation, Totals},
    question::{Field, Question, QuestionKind, Reply},
    skill::{Role, Terms},
    speaker::Speaker,
    task::{Brief, Context, Outcome, Place, Task},
};

pub(super) fn id(n: u128) -> TaskId {
    TaskId::from_random(n)
}

pub(super) fn at(millis: i64) -> Moment {
    Moment::from_millis(millis)
}

/// A task with nothing special about it.
pub(super) fn launched(parent: &str) -> Launched {
    Launched {
        place: Place {
            parent: parent.into(),
            above: None,
            root: parent.into(),
            depth: 1,
            outside: None,
            above_in: None,
        },
        brief: Brief {
            description: "one".to_owned(),
            agent: "general".into(),
            model: None,
            effort: None,
            context: Context::Fresh,
            host: HostRef::from("scripted").into(),
        },
        prompt: "do it".to_owned(),
        fork: None,
        budget: Budget::default(),
        batch: 0,
        owner: None,
        chain: None,
        from: None,
        role: None,
    }
}

/// A task with something in every field.
pub(super) fn launched_with_all() -> Launched {
    Launched {
        place: Place {
            parent: "child \u{1F600}".into(),
            above: Some(id(1)),
            root: "main".into(),
            depth: 2,
            outside: Some(HostRef::ClaudeCode {
                config: "/home/me/.claude".into(),
            }),
            above_in: Some(HostRef::from("agent:codex:/work")),
        },
        brief: Brief {
            description: "it's \"one\"\n".to_owned(),
            agent: "general".into(),
            model: Some("test/model".into()),
            effort: Some(Effort::Low),
            context: Context::Forked,
            host: HostSetup {
                host: HostRef::engine("/work"),
                settings: LaunchSettings {
                    json: r#"{"model":"x/y"}"#.into(),
                    seal: "5ea1".into(),
                },
            },
        },
        prompt: "do it".to_owned(),
        fork: Some(Plan {
            mode: Mode::Messages,
            asked_in: Some("message".to_owned()),
            ..Plan::default()
        }),
        budget: Budget {
            tokens: Some(1),
            cost: Some(Cost(2)),
            time: Some(Duration::from_millis(3)),
            turns: Some(4),
            tool_calls: Some(0),
        },
        batch: 6,
        owner: Some("worker".into()),
        chain: Some("0198-aa".into()),
        from: Some("0198-00".into()),
        role: Some(role()),
    }
}

pub(super) fn role() -> Role {
    Role {
        terms: terms(),
        instructions: "Look.".to_owned(),
    }
}

pub(super) fn terms() -> Terms {
    Terms {
        skill: "look".to_owned(),
        tools: Tools {
            only: Some(vec!["bash(git log *)".parse().expect("a rule")]),
            not: vec!["write".parse().expect("a rule")],
            within: Vec::new(),
        },
        iterations: 7,
        retries: 2,
        iteration_time: Some(Duration::from_millis(500)),
        model: Some("test/fast".into()),
        effort: Some(Effort::High),
    }
}

/// Every kind of event but the first of a task, in an order that may happen.
pub(super) fn events() -> Vec<Event> {
    let observed = [
        Observation::ToolCalled {
            tool: "read".to_owned(),
            call: u64::MAX,
        },
        Observation::CommandQueued,
        Observation::CommandStarted,
        turned(10, 3, 1),
        Observation::AskedBeside(Spent::answer(5, Cost(1), 2)),
        Observation::Asked {
            id: "q".to_owned(),
            question: Question::permission("May I?"),
        },
        Observation::Answered { id: "q".to_owned() },
        Observation::Asked {
            id: "q2".to_owned(),
            question: Question {
                text: "Which?".to_owned(),
                kind: QuestionKind::Form(vec![Field {
                    key: "q0".to_owned(),
                    text: "Which colour?".to_owned(),
                    options: vec!["red".to_owned(), "blue".to_owned()],
                    custom: true,
                    multiple: false,
                }]),
            },
        },
        Observation::FellBack(fallback("test/second", "test/third")),
        Observation::Counted(Totals {
            tokens: 20,
            cost: Cost(4),
            unpriced: 3,
            turns: 2,
            by_tool: BTreeMap::from([("read".to_owned(), 2)]),
        }),
    ];
    let mut events = vec![
        Event::Owned {
            by: Some("other".into()),
        },
        Event::Owned { by: None },
        Event::Started,
        Event::SessionMade {
            session: "ses_child".into(),
        },
        Event::Prompted,
    ];
    events.extend(observed.map(Event::Observed));
    events.extend([
        Event::SpentBelow(Spent {
            tokens: 1,
            cost: Cost(2),
            unpriced: 3,
            turns: 4,
            tool_calls: 5,
        }),
        Event::Messaged {
            id: "task.message.7".into(),
            from: Some(Speaker::Parent),
            text: "Leave the tests alone".to_owned(),
        },
        Event::QuestionTold {
            question: "q2".to_owned(),
        },
        Event::Held {
            why: "anthropic needs a key".to_owned(),
        },
        Event::Replied {
            id: "task.answer.9".into(),
            question: "q2".to_owned(),
            reply: Reply::Values([("q0".to_owned(), vec!["red".to_owned()])].into()),
        },
        Event::ClockMoved { by: -7 },
        Event::FellBack(fallback("test/model", "test/second")),
        Event::SummingUp {
            why: "time".to_owned(),
        },
        ended(Outcome::Failed {
            why: "time".to_owned(),
        }),
        Event::Stopped,
        Event::Retrieved,
        Event::Resumed {
            prompt: "go on".to_owned(),
            batch: 8,
            chain: Some("0198-bb".into()),
            from: Some("0198-00".into()),
        },
        Event::Moved {
            host: HostRef::from("scripted"),
        },
        Event::Started,
        ended(Outcome::Cancelled),
        Event::Resumed {
            prompt: "and on".to_owned(),
            batch: 9,
            chain: None,
            from: None,
        },
        ended(Outcome::Completed),
        Event::Cleared,
    ]);
    events
}

pub(super) fn fallback(from: &str, to: &str) -> Fallback {
    Fallback {
        from: Some(from.into()),
        to: to.into(),
        why: "out of quota".to_owned(),
    }
}

pub(super) fn turned(tokens: u64, cost: u64, unpriced: u64) -> Observation {
    Observation::Turned(Spent::answer(tokens, Cost(cost), unpriced))
}

/// The end of a run that said something and whose host has to be stopped.
pub(super) fn ended(outcome: Outcome) -> Event {
    Event::Ended {
        outcome,
        answer: Some("found".to_owned()),
        stop: true,
    }
}

/// The end of a run whose host has stopped by itself.
pub(super) fn completed(answer: &str) -> Event {
    Event::Ended {
        outcome: Outcome::Completed,
        answer: Some(answer.to_owned()),
        stop: false,
    }
}

pub(super) fn owned(parent: &str, owner: &str) -> Launched {
    Launched {
        owner: Some(owner.into()),
        ..launched(parent)
    }
}

/// A task to which these events have happened.
pub(super) fn task_with(
    journal: &mut dyn Journal,
    n: u128,
    launched: Launched,
    events: &[Event],
) -> Stored<Task> {
    let mut task = journal.insert(id(n), launched, at(1))?;
    if !events.is_empty() {
        journal.append(&mut task, events, at(2))?;
    }
    Ok(task)
}

pub(super) fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id.clone()).collect()
}

pub(super) fn notice(task: &Task) -> Post {
    Post {
        id: task.id.notice(task.run),
        to: task.place.parent.clone(),
        run: task.run,
        content: Content::Notice(NoticeText::Unsent {
            batch: task.batch,
            end: EndNotice {
                shown: task.id.to_string(),
                headline: format!("{} has ended", task.id),
                undelivered: 1,
                error: Some("too slow".to_owned()),
                result: ToldResult::Text {
                    text: "<result>".to_owned(),
                    chars: 9,
                },
            },
        }),
    }
}

pub(super) fn session(name: &str) -> Session {
    Session {
        id: name.into(),
        task: None,
        title: "a story".to_owned(),
        agent: "general".into(),
        model: "test/model".into(),
        system: "You are.".to_owned(),
        delegates: true,
        workspace: "/work".to_owned(),
        terms: None,
        base: None,
        begun: at(7),
    }
}

/// A session with something in every field.
pub(super) fn session_with_all(name: &str) -> Session {
    Session {
        task: Some(id(1)),
        delegates: false,
        terms: Some(terms()),
        base: Some(Base {
            session: SessionId::from("ses_base"),
            until: 3,
        }),
        ..session(name)
    }
}
