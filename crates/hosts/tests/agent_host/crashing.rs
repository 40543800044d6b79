//! Processes of the agent end in the middle, and so do ours.

use asyncagents_core::{
    fork::{Mode, Plan, Preset},
    id::TaskId,
    lifecycle::Standing,
    port::{Host, Report, SessionEvent},
    progress::Observation,
    task::Outcome,
};
use asyncagents_testkit::{
    host_contract::{Does, SCRIPT},
    plain,
};

use crate::{
    fake::{Abilities, CUT, DIES, FakeAgent},
    world::{World, child, ended, until},
};

/// A fork that keeps all of its parent.
fn exact() -> Plan {
    Plan {
        limits: Preset::Exact.limits(),
        mode: Mode::Messages,
        asked_in: None,
    }
}

/// The prompt with a call that does not end.
pub(crate) fn hangs() -> &'static str {
    let hanging = SCRIPT
        .iter()
        .find(|(_, does)| matches!(does, Does::CallAndHang));
    hanging.expect("there is one").0
}

/// A child whose process dies in a tool is told so, and goes on; nothing is said to it twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_process_died_in_a_tool_is_told_and_goes_on() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), DIES);
    host.prompt(&session, prompt).await.expect("it is taken");
    let answer = ended(&host, &session, &task.prompt(0)).await;
    assert_eq!(
        answer,
        Standing::Done {
            outcome: Outcome::Completed,
            answer: Some("the light is on again".to_owned()),
        }
    );
    let shown = world.shown(&session);
    assert_eq!(shown.matches(DIES).count(), 1, "{shown}");
    assert_eq!(shown.matches("You were interrupted").count(), 1, "{shown}");
    assert_eq!(world.agent.starts(), 2);
}

/// What was said before is neither said again nor taken for news, however late the agent tells of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_tells_late_of_a_session_is_heard_before_anything_is_said() {
    let world = World::new(FakeAgent::with(Abilities {
        replays_late: true,
        ..Abilities::default()
    }));
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), "Name the author");
    host.prompt(&session, prompt).await.expect("it is taken");
    ended(&host, &session, &task.prompt(0)).await;
    let prompt = plain::prompt(task.prompt(1), DIES);
    host.prompt(&session, prompt).await.expect("it is taken");
    let answer = ended(&host, &session, &task.prompt(1)).await;
    assert_eq!(
        answer,
        Standing::Done {
            outcome: Outcome::Completed,
            answer: Some("the light is on again".to_owned()),
        }
    );
    let shown = world.shown(&session);
    assert_eq!(shown.matches(DIES).count(), 1, "{shown}");
}

/// One that dies again and again fails, with what its process said last.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_process_always_dies_fails_with_its_last_words() {
    let world = World::new(FakeAgent::with(Abilities {
        dies_always: true,
        ..Abilities::default()
    }));
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), DIES);
    host.prompt(&session, prompt).await.expect("it is taken");
    let standing = ended(&host, &session, &task.prompt(0)).await;
    let Standing::Done {
        outcome: Outcome::Failed { why },
        ..
    } = standing
    else {
        panic!("it has not failed: {standing:?}");
    };
    assert_eq!(why, "fake has ended; it said last: the last words");
}

/// Where an agent works is sealed at the launch. A row of the database does not move it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_works_where_it_was_launched() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = world.moved(&task).await;
    let prompt = plain::prompt(task.prompt(0), "Wait for ever");
    host.prompt(&session, prompt).await.expect("it is taken");
    until("session/prompt is asked", || {
        !world.agent.asked("session/prompt").is_empty()
    })
    .await;
    let begun = world.agent.asked("session/new");
    assert_eq!(begun.first().expect("it began")["cwd"], "/project");
}

/// The process that worked for the one of ours that is gone is ended before another one works.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_another_owner_is_ended_first() {
    let world = World::new(FakeAgent::default());
    let task = TaskId::from_random(1);
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), "Wait for ever");
    world
        .host()
        .prompt(&session, prompt)
        .await
        .expect("it is taken");
    until("session/prompt is asked", || {
        !world.agent.asked("session/prompt").is_empty()
    })
    .await;
    world.restart().await;
    let host = world.host();
    let standing = host.inspect(&session, &task.prompt(0)).await;
    assert_eq!(standing.expect("it is known").standing, Standing::Working);
    until("session/prompt is asked again", || {
        world.agent.asked("session/prompt").len() == 2
    })
    .await;
    assert_eq!(world.agent.ended(), ["process-1"]);
}

/// An agent that has lost a session in which work was done is not asked to do it again.
#[tokio::test(flavor = "multi_thread")]
async fn work_that_was_begun_is_not_begun_again_elsewhere() {
    let world = World::new(FakeAgent::with(Abilities {
        loads: false,
        ..Abilities::default()
    }));
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), DIES);
    host.prompt(&session, prompt).await.expect("it is taken");
    let standing = ended(&host, &session, &task.prompt(0)).await;
    let Standing::Done {
        outcome: Outcome::Failed { why },
        ..
    } = standing
    else {
        panic!("it has not failed: {standing:?}");
    };
    let expected = "its session cannot be loaded: fake cannot load the session theirs-1";
    assert_eq!(why, expected);
    assert_eq!(world.agent.asked("session/prompt").len(), 1);
}

/// Nothing of its first turn is known but that a call was begun, which may have done its work.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_begun_is_not_made_again_in_another_session() {
    let world = World::new(FakeAgent::with(Abilities {
        loads: false,
        ..Abilities::default()
    }));
    let task = TaskId::from_random(1);
    let session = child(&world, &task).await;
    let mut events = world.host().subscribe();
    let prompt = plain::prompt(task.prompt(0), hangs());
    let host = world.host();
    host.prompt(&session, prompt).await.expect("it is taken");
    loop {
        let report = events.next().await.expect("the host lives");
        if let Report::Session(_, SessionEvent::Observed { what, .. }) = report
            && matches!(what, Observation::ToolCalled { .. })
        {
            break;
        }
    }
    world.restart().await;
    let standing = ended(&world.host(), &session, &task.prompt(0)).await;
    let Standing::Done {
        outcome: Outcome::Failed { why },
        ..
    } = standing
    else {
        panic!("it has not failed: {standing:?}");
    };
    assert!(why.contains("its session cannot be loaded"), "{why}");
    assert_eq!(world.agent.asked("session/prompt").len(), 1);
}

/// Many agents keep a session from its first prompt on, so one that ends before that has nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_was_opened_and_never_told_anything_is_made_again_from_its_parent() {
    let world = World::new(FakeAgent::default());
    let (host, parent_task) = (world.host(), TaskId::from_random(1));
    let parent = child(&world, &parent_task).await;
    let prompt = plain::prompt(parent_task.prompt(0), "Count the files");
    host.prompt(&parent, prompt).await.expect("it is taken");
    ended(&host, &parent, &parent_task.prompt(0)).await;

    let task = TaskId::from_random(2);
    let branch = host
        .branch(plain::new_session(&task, &parent), &exact())
        .await;
    let branch = branch.expect("it can").expect("a branch");
    world.opened_before(&branch, "theirs-lost").await;
    let prompt = plain::prompt(task.prompt(0), "Name the author");
    host.prompt(&branch, prompt).await.expect("it is taken");
    let standing = ended(&host, &branch, &task.prompt(0)).await;
    let Standing::Done {
        outcome: Outcome::Completed,
        ..
    } = standing
    else {
        panic!("it has not ended well: {standing:?}");
    };
    let shown = world.shown(&branch);
    assert!(shown.contains("Count the files"), "{shown}");
    let told = "From here on you are a background agent";
    assert_eq!(shown.matches(told).count(), 1, "{shown}");
}

/// Its child inherits through the pipeline then, as that of any other agent does.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_fork_its_sessions_has_no_branch() {
    for (forks, has_one) in [(true, true), (false, false)] {
        let abilities = Abilities {
            forks,
            ..Abilities::default()
        };
        let world = World::new(FakeAgent::with(abilities));
        let (host, task) = (world.host(), TaskId::from_random(1));
        let parent = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), "Count the files");
        host.prompt(&parent, prompt).await.expect("it is taken");
        ended(&host, &parent, &task.prompt(0)).await;
        let new = plain::new_session(&TaskId::from_random(2), &parent);
        let branch = host.branch(new, &exact()).await.expect("it is known");
        assert_eq!(branch.is_some(), has_one);
    }
}

/// Half an answer is no success, whenever our process ends.
#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_is_no_success_when_our_process_ends_before_it_has_saved_the_end() {
    let world = World::new(FakeAgent::default());
    let (task, next) = (TaskId::from_random(1), TaskId::from_random(2));
    let (cut, left) = (child(&world, &task).await, child(&world, &next).await);
    let host = world.host();
    let prompt = plain::prompt(task.prompt(0), CUT);
    host.prompt(&cut, prompt).await.expect("it is taken");
    let failed = ended(&host, &cut, &task.prompt(0)).await;
    let outcome = |standing: &Standing| match standing {
        Standing::Done { outcome, .. } => outcome.clone(),
        other => panic!("it is not over: {other:?}"),
    };
    let Outcome::Failed { why } = outcome(&failed) else {
        panic!("it has not failed: {failed:?}");
    };
    assert_eq!(why, "the answer was cut at the model's greatest length");

    world.copied_without_end(&cut, &left).await;
    let after = ended(&host, &left, &task.prompt(0)).await;
    assert_eq!(outcome(&after), outcome(&failed));
    // It was asked to go on.
    assert_eq!(world.agent.asked("session/prompt").len(), 2);
}
