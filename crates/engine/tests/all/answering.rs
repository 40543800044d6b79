//! What a task asks for while nobody is at its terminal is answered from elsewhere.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::Mode,
    budget::Budget,
    host_ref::HostRef,
    id::{SessionId, TaskId},
    lock::lock,
    port::{Host, HostError, HostEvents, Report, SessionEvent},
    progress::Observation,
    question::{Answered, Reply as Answer},
    request::{Caller, OutputRequest, TaskArgs},
    task::{Outcome, State},
};
use asyncagents_engine::{Approver, Question, Reply as Typed, Unanswered};
use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::json;
use tokio::{sync::Notify, time};

use crate::harness::{Harness, Plan};

const PATIENCE: Duration = Duration::from_secs(60);

fn waiting() -> Plan {
    let mut plan = Plan {
        settings: Box::new(|settings| {
            settings.permissions.mode = Mode::Ask;
            settings.unanswered = Unanswered::Wait;
            // Whoever waits for an answer does not wait so long for the engine to stop.
            settings.shutdown_timeout = PATIENCE * 10;
        }),
        ..Plan::default()
    };
    plan.runtime.lease = Duration::from_millis(300);
    plan
}

fn writes_twice() -> Script {
    let write = |name: &str| Reply::call("write", json!({"path": name, "content": "x"}));
    Script::new()
        .rule(When::turn(0), write("a.txt"))
        .rule(When::turn(1), write("b.txt"))
        .rule(When::always(), Reply::text("Done."))
}

/// A task from the shell.
async fn launched(harness: &Harness, prompt: &str) -> TaskId {
    let caller = Caller::Shell {
        session: "shell".into(),
        host: HostRef::engine("test").into(),
    };
    let args = TaskArgs {
        description: prompt.to_owned(),
        prompt: prompt.to_owned(),
        agent: "general".to_owned(),
        ..TaskArgs::default()
    };
    let accepted = harness.manager.task(&caller, args).await.expect("accepted");
    accepted.shown.task.id
}

/// The next question: who asks, its name and its text.
async fn asked(events: &mut Box<dyn HostEvents>) -> (SessionId, String, String) {
    let next = async {
        loop {
            let report = events.next().await.expect("an engine");
            if let Report::Session(session, SessionEvent::Observed { what, .. }) = report
                && let Observation::Asked { id, question } = what
            {
                return (session, id, question.text);
            }
        }
    };
    time::timeout(PATIENCE, next).await.expect("a question")
}

/// Waits until a task has ended.
async fn ended(harness: &Harness, task: &TaskId) -> (Outcome, Option<String>) {
    let wait = OutputRequest::new(task.as_str(), true, Some(60)).expect("a request");
    let report = harness.manager.output(&Caller::Person, wait).await;
    let report = report.expect("a report");
    match report.shown.task.state {
        State::Ended { outcome, .. } => (outcome, report.answer),
        other => panic!("{other:?}"),
    }
}

fn rejected(text: &str) -> Answer {
    Answer::Reject {
        text: Some(text.to_owned()),
    }
}

#[rstest]
#[case::once(Answer::Once, 2, "xx", "b.txt")]
#[case::always(Answer::Always, 1, "xx", "b.txt")]
#[case::no(
    rejected("not there; use c.txt"),
    2,
    "",
    "not permitted: not there; use c.txt"
)]
#[case::plain_no(Answer::Reject { text: None }, 2, "", "not permitted: the user says no")]
#[tokio::test]
async fn a_task_waits_for_an_answer_from_elsewhere(
    #[case] answer: Answer,
    #[case] times: usize,
    #[case] written: &str,
    #[case] told: &str,
) {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let task = launched(&harness, "Write").await;
    for name in ["a.txt", "b.txt"].into_iter().take(times) {
        let (session, id, text) = asked(&mut events).await;
        assert_eq!(session, task.session());
        let always = "(always: every write in this tree of tasks)";
        assert_eq!(text, format!("permission for write {name}\n{always}\nx"));
        let taken = harness.engine.answer(&session, &id, answer.clone()).await;
        assert_eq!(taken, Ok(Answered::Taken));
        let again = harness.engine.answer(&session, &id, Answer::Once).await;
        assert_eq!(again, Ok(Answered::NotAsked), "the first one counts");
    }
    let (outcome, said) = ended(&harness, &task).await;
    assert_eq!(
        (outcome, said.as_deref()),
        (Outcome::Completed, Some("Done."))
    );
    assert_eq!(harness.read("a.txt") + &harness.read("b.txt"), written);
    let last = harness.model.requests().pop().expect("a request").last();
    assert!(last.contains(told), "{last}");
    harness.close().await;
}

/// Whoever says `always` to one task has not seen the others that the same process works on.
#[tokio::test]
async fn always_from_elsewhere_is_for_one_tree_of_tasks() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let first = launched(&harness, "Write").await;
    let (session, id, _) = asked(&mut events).await;
    let always = harness.engine.answer(&session, &id, Answer::Always).await;
    assert_eq!(always, Ok(Answered::Taken));
    assert_eq!(ended(&harness, &first).await.0, Outcome::Completed);

    let second = launched(&harness, "Write").await;
    for _ in 0..2 {
        let (session, id, _) = asked(&mut events).await;
        assert_eq!(session, second.session(), "it asks for itself");
        let no = harness.engine.answer(&session, &id, rejected("no")).await;
        assert_eq!(no, Ok(Answered::Taken));
    }
    assert_eq!(ended(&harness, &second).await.0, Outcome::Completed);
    harness.close().await;
}

/// The answer is for the call that was asked about: no other session, no later call.
#[tokio::test]
async fn an_answer_is_for_one_call() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let tasks = [
        launched(&harness, "Write").await,
        launched(&harness, "Write too").await,
    ];
    let (one, one_asks, _) = asked(&mut events).await;
    let (other, other_asks, _) = asked(&mut events).await;
    assert_ne!(one, other);
    assert_ne!(one_asks, other_asks, "the same call in another session");

    let answer = async |session: &SessionId, id: &str, answer| {
        harness.engine.answer(session, id, answer).await
    };
    assert_eq!(
        answer(&one, &other_asks, Answer::Once).await,
        Ok(Answered::NotAsked)
    );
    assert_eq!(
        answer(&one, "ask_1_0", Answer::Always).await,
        Ok(Answered::NotAsked)
    );
    let values = Answer::Values([].into());
    let refused = answer(&one, &one_asks, values).await;
    assert!(matches!(refused, Err(HostError::Refused(_))), "{refused:?}");
    assert_eq!(harness.read("a.txt"), "");

    assert_eq!(
        answer(&one, &one_asks, Answer::Once).await,
        Ok(Answered::Taken)
    );
    let (next, next_asks, text) = asked(&mut events).await;
    assert_eq!(next, one);
    assert!(text.starts_with("permission for write b.txt\n"), "{text}");
    assert_eq!(
        answer(&one, &one_asks, Answer::Once).await,
        Ok(Answered::NotAsked)
    );
    let inspected = harness.all_tasks().await;
    let asking: usize = inspected
        .iter()
        .map(|shown| shown.task.progress.asking.len())
        .sum();
    assert!(asking >= 1, "what is asked is shown");

    for (session, id) in [(&next, &next_asks), (&other, &other_asks)] {
        assert_eq!(
            answer(session, id, rejected("no")).await,
            Ok(Answered::Taken)
        );
    }
    let (session, id, _) = asked(&mut events).await;
    assert_eq!(session, other);
    assert_eq!(
        answer(&session, &id, rejected("no")).await,
        Ok(Answered::Taken)
    );
    for task in &tasks {
        assert_eq!(ended(&harness, task).await.0, Outcome::Completed);
    }
    assert_eq!(harness.read("b.txt"), "");
    harness.close().await;
}

#[tokio::test]
async fn after_a_crash_the_same_is_asked_again_and_nothing_has_run() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let task = launched(&harness, "Write").await;
    let (session, before, _) = asked(&mut events).await;

    let harness = harness.killed().await;
    let early = harness.engine.answer(&session, &before, Answer::Once).await;
    assert!(
        matches!(early, Err(HostError::Unreachable(_))),
        "it is not asked yet, and may be answered later: {early:?}"
    );
    let mut events = harness.engine.subscribe();
    let (_, after, _) = asked(&mut events).await;
    assert_eq!(after, before);
    assert_eq!(harness.read("a.txt"), "");
    for id in [Some(after), None] {
        let id = match id {
            Some(id) => id,
            None => asked(&mut events).await.1,
        };
        let taken = harness.engine.answer(&session, &id, Answer::Once).await;
        assert_eq!(taken, Ok(Answered::Taken));
    }
    assert_eq!(ended(&harness, &task).await.0, Outcome::Completed);
    assert_eq!(harness.read("a.txt") + &harness.read("b.txt"), "xx");
    harness.close().await;
}

/// The engine is told to stop when the answer is there and the task has not gone on yet.
#[tokio::test]
async fn an_answer_that_was_taken_counts_though_the_engine_stops() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let task = launched(&harness, "Write").await;
    let (session, first, _) = asked(&mut events).await;
    let taken = harness.engine.answer(&session, &first, Answer::Once).await;
    assert_eq!(taken, Ok(Answered::Taken));
    harness.engine.stop().await;
    assert_eq!(harness.read("a.txt"), "x");
    let harness = harness.asleep().await;
    let mut events = harness.engine.subscribe();
    let (_, second, text) = asked(&mut events).await;
    assert!(text.contains("write b.txt"), "{text}");
    let taken = harness.engine.answer(&session, &second, Answer::Once).await;
    assert_eq!(taken, Ok(Answered::Taken));
    assert_eq!(ended(&harness, &task).await.0, Outcome::Completed);
    harness.close().await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_asks_no_more() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    let task = launched(&harness, "Write").await;
    let (session, id, _) = asked(&mut events).await;
    let cancelled = harness.manager.cancel(&Caller::Person, task.as_str()).await;
    cancelled.expect("cancelled");
    // Its host is stopped by the worker: first its driver, then its run.
    let idle = Report::Session(session.clone(), SessionEvent::Idle);
    for _ in 0..2 {
        while events.next().await.expect("an engine") != idle {}
        let late = harness.engine.answer(&session, &id, Answer::Once).await;
        assert_ne!(late, Ok(Answered::Taken));
    }
    let late = harness.engine.answer(&session, &id, Answer::Once).await;
    assert_eq!(late, Ok(Answered::NotAsked));
    assert_eq!(ended(&harness, &task).await.0, Outcome::Cancelled);
    assert_eq!(harness.read("a.txt"), "");
    harness.close().await;
}

#[tokio::test]
async fn an_engine_stops_at_once_while_a_task_asks() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    let mut events = harness.engine.subscribe();
    launched(&harness, "Write").await;
    asked(&mut events).await;
    let stopped = time::timeout(PATIENCE, harness.close()).await;
    stopped.expect("stopped long before the timeout of a tool");
}

#[tokio::test]
async fn a_question_that_nobody_answers_ends_the_task_with_its_time() {
    let script = writes_twice();
    let mut plan = waiting();
    plan.runtime.limits.budget = Budget {
        time: Some(Duration::from_secs(2)),
        ..Budget::default()
    };
    let harness = Harness::with(script, plan).await;
    let task = launched(&harness, "Write").await;
    let (outcome, _) = ended(&harness, &task).await;
    let Outcome::Failed { why } = outcome else {
        panic!("{outcome:?}");
    };
    let expected = "the time limit of 2.0s is reached, and nobody had answered: permission for \
        write a.txt x";
    assert_eq!(why, expected);
    assert_eq!(harness.read("a.txt"), "");
    harness.close().await;
}

/// A person at a terminal, who answers when told to, and sees what others have answered.
#[derive(Default)]
struct Person {
    answers: Notify,
    elsewhere: Mutex<Vec<String>>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, _: Question) -> Typed {
        self.answers.notified().await;
        Typed::No("I am here".to_owned())
    }

    fn answered_elsewhere(&self, question: &Question) {
        lock(&self.elsewhere).push(question.target.clone());
    }
}

#[tokio::test]
async fn whoever_answers_first_counts() {
    let person = Arc::new(Person::default());
    let plan = Plan {
        approver: Some(person.clone()),
        ..waiting()
    };
    let harness = Harness::with(writes_twice(), plan).await;
    let mut events = harness.engine.subscribe();
    let task = launched(&harness, "Write").await;
    let (session, first, _) = asked(&mut events).await;
    let answered = harness.engine.answer(&session, &first, Answer::Once).await;
    assert_eq!(answered, Ok(Answered::Taken));

    let (_, second, _) = asked(&mut events).await;
    person.answers.notify_one();
    assert_eq!(ended(&harness, &task).await.0, Outcome::Completed);
    let late = harness.engine.answer(&session, &second, Answer::Once).await;
    assert_eq!(late, Ok(Answered::NotAsked));
    assert_eq!(*lock(&person.elsewhere), ["a.txt"], "the terminal is told");
    assert_eq!(harness.read("a.txt") + &harness.read("b.txt"), "x");
    harness.close().await;
}

/// Only what a task asks can be answered from elsewhere.
#[tokio::test]
async fn a_session_of_a_person_who_is_not_there_does_not_wait() {
    let harness = Harness::with(writes_twice(), waiting()).await;
    assert_eq!(harness.run("Write").await.said(), "Done.");
    assert_eq!(harness.read("a.txt"), "");
    harness.close().await;
}
