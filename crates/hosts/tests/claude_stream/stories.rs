//! Stories with the real Claude Code, each judged by what its model was told.

use asyncagents_core::{
    agent::{Kind, ToolOutcome},
    id::PostId,
    question::Reply as Answer,
};
use asyncagents_hosts::agent::{Asked, Message, TurnStop, Which, WireError, WireEvent};
use asyncagents_scripted_model::{Gate, Recorded, Reply, Script, When};
use serde_json::json;

use crate::world::{Open, World, message};

/// When the conversation's newest part has these words.
fn told(words: &str) -> When {
    When::always().tools(true).last(words)
}

/// It runs the slow tool when it is told to "Toil".
fn slow_work() -> Script {
    Script::new()
        .rule(told("finished"), Reply::text("I have worked."))
        .rule(told("Go on"), Reply::text("I went on."))
        .rule(
            told("Toil"),
            Reply::call("Bash", json!({"command": "./slow", "description": "Works"})),
        )
}

/// Whether the model was asked with these words as what is new.
fn is_asked(words: &'static str) -> impl Fn(&[Recorded]) -> bool {
    let is_new = move |request: &Recorded| request.last().contains(words);
    move |requests| requests.iter().any(is_new)
}

async fn world(script: Script) -> Option<World> {
    World::new(script).await
}

fn outcome(open: &Open) -> Option<&ToolOutcome> {
    open.seen.iter().find_map(|event| match event {
        WireEvent::Tool(news) => news.outcome.as_ref(),
        _ => None,
    })
}

#[tokio::test]
async fn a_session_works_with_a_tool_that_it_is_allowed() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    world.go();
    let mut session = world.session(Which::New);
    session.instructions = Some("Speak like a pirate.".to_owned());
    session.model = Some("claude-haiku-4-5".to_owned());
    let mut open = world.try_open(&session).await.expect("a session");
    let end = open.says(&message("p1", "Toil"), &Answer::Once).await;

    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(open.text(), "I have worked.");
    let [ask] = open.asks()[..] else {
        panic!("{:?}", open.seen)
    };
    let Asked::Call(call) = &ask.what else {
        panic!("{ask:?}")
    };
    assert_eq!((call.kind, &*call.target), (Some(Kind::Run), "./slow"));
    let began = open.seen.iter().find_map(|event| match event {
        WireEvent::Tool(news) if news.began => Some(news),
        _ => None,
    });
    let began = began.expect("a call");
    assert_eq!(began.name.as_deref(), Some("Bash"));
    assert!(began.input.as_ref().expect("input").contains("./slow"));
    assert_eq!(
        outcome(&open),
        Some(&ToolOutcome::Done("finished".to_owned()))
    );
    let model = WireEvent::Model("claude-haiku-4-5".to_owned());
    assert!(open.seen.contains(&model), "{:?}", open.seen);
    let has = |fits: fn(&WireEvent) -> bool| open.seen.iter().any(fits);
    assert!(has(
        |event| matches!(event, WireEvent::Spent(cost) if cost.0 > 0)
    ));
    assert!(has(
        |event| matches!(event, WireEvent::Context(tokens) if *tokens > 0)
    ));
    assert!(end.usage.is_some_and(|usage| usage.context() > 0));

    let requests = world.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].system().contains("Speak like a pirate."));
    let tools = requests[0].tool_names();
    assert!(tools.contains(&"Edit".to_owned()) && !tools.contains(&"Agent".to_owned()));
    open.connection.close().await;
}

#[tokio::test]
async fn what_is_not_allowed_is_not_run_and_the_model_is_told_why() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let text = Some("Not on a Friday.".to_owned());
    let end = open
        .says(&message("p1", "Toil"), &Answer::Reject { text })
        .await;
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(world.runs(), 0);
    assert_eq!(world.times_told("Not on a Friday."), 1);
    let Some(ToolOutcome::Failed(why)) = outcome(&open) else {
        panic!("{:?}", open.seen)
    };
    assert!(why.contains("Not on a Friday."), "{why}");
}

#[tokio::test]
async fn what_is_always_allowed_is_not_written_into_the_project_or_kept_by_claude_code() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    world.go();
    let mut open = world.open(Which::New).await;
    open.says(&message("p1", "Toil"), &Answer::Always).await;
    open.says(&message("p2", "Toil again"), &Answer::Always)
        .await;
    assert_eq!(world.runs(), 2);
    assert_eq!(open.asks().len(), 2);
    assert!(!world.path("project/.claude").exists());
}

#[tokio::test]
async fn a_message_in_the_middle_of_a_tool_is_told_in_the_same_turn() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Toil"));
    open.allow().await;
    world.until_runs(1).await;
    let steered = open.connection.steer(&message("m1", "Mind the gap")).await;
    assert_eq!(steered, Ok(true));
    world.go();
    let end = prompt.await.expect("joined").expect("an end");
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(world.times_told("Mind the gap"), 1);
    assert_eq!(world.requests().len(), 2);
    // Nothing is going on, so it is for a prompt.
    let late = open.connection.steer(&message("m2", "Too late")).await;
    assert_eq!(late, Ok(false));
}

/// The model thinks while it is told something, and is done then: that has a turn of its own.
#[tokio::test]
async fn a_message_at_the_end_of_a_turn_is_told_in_the_next_and_the_prompt_waits_for_that() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(told("Mind the gap"), Reply::text("I mind it."))
        .rule(told("Think"), Reply::text("Thought.").behind(&gate));
    let Some(world) = world(script).await else {
        return;
    };
    let open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Think"));
    world.model.wait_for(is_asked("Think")).await;
    let steered = open.connection.steer(&message("m1", "Mind the gap")).await;
    assert_eq!(steered, Ok(true));
    gate.open();
    let end = prompt.await.expect("joined").expect("an end");
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(world.times_told("Mind the gap"), 1);
}

#[tokio::test]
async fn a_turn_is_cancelled_in_a_tool_and_what_waited_is_told_with_the_next_prompt() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Toil"));
    open.allow().await;
    world.until_runs(1).await;
    let steered = open.connection.steer(&message("m1", "Mind the gap")).await;
    assert_eq!(steered, Ok(true));
    open.connection.cancel().await;
    let end = prompt.await.expect("joined").expect("an end");
    assert_eq!(end.stop, TurnStop::Cancelled);
    assert_eq!(world.requests().len(), 1);
    assert_eq!(world.times_told("Mind the gap"), 0);

    let end = open.says(&message("p2", "Go on"), &Answer::Once).await;
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(world.times_told("Mind the gap"), 1);
    assert_eq!(world.times_told("Go on"), 1);
    assert_eq!(world.runs(), 1);
}

#[tokio::test]
async fn a_question_is_withdrawn_when_the_turn_is_cancelled() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Toil"));
    let ask = open.asked().await;
    open.connection.cancel().await;
    let end = prompt.await.expect("joined").expect("an end");
    assert_eq!(end.stop, TurnStop::Cancelled);
    open.says(&message("p2", "Go on"), &Answer::Once).await;
    assert!(open.seen.contains(&WireEvent::Withdrawn(ask.id)));
    assert_eq!(world.runs(), 0);
}

#[tokio::test]
async fn what_was_told_before_a_kill_is_not_run_again_and_what_was_not_is() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let id = killed_in_a_tool(&world, true).await;
    let mut session = world.session(Which::Load(id.clone()));
    session.look_for = ["p1", "m1", "p2"].map(PostId::from).into();
    let mut open = world.try_open(&session).await.expect("a session");
    assert_eq!(open.id(), id);
    assert_eq!(open.connection.session().found, [PostId::from("p1")].into());
    // It runs nothing by itself, and not what it has.
    let end = open.says(&message("p1", "Toil"), &Answer::Once).await;
    assert_eq!((end.stop, end.usage), (TurnStop::Finished, None));
    assert_eq!(world.requests().len(), 1);
    assert_eq!(world.runs(), 1);

    open.says(&message("m1", "Mind the gap"), &Answer::Once)
        .await;
    assert_eq!(world.times_told("Mind the gap"), 1);
    let newest = world.requests().pop().expect("a request");
    assert!(newest.text().contains("Tool call interrupted"));
    assert_eq!(world.runs(), 1);
}

/// Claude Code writes its file when it has time, but for what it is told.
#[tokio::test]
async fn a_message_is_found_after_a_kill_in_the_first_moment_of_a_tool() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let id = killed_in_a_tool(&world, false).await;
    let mut session = world.session(Which::Load(id));
    session.look_for = ["p1", "m1"].map(PostId::from).into();
    let mut open = world.try_open(&session).await.expect("a session");
    assert_eq!(open.connection.session().found, [PostId::from("p1")].into());
    open.says(&message("p1", "Toil"), &Answer::Once).await;
    assert_eq!((world.requests().len(), world.runs()), (1, 1));
    open.says(&message("p2", "Go on"), &Answer::Once).await;
    let newest = world.requests().pop().expect("a request");
    assert_eq!(newest.text().matches("Toil").count(), 1);
}

/// The model was asked and had not answered: Claude Code would ask it the same again.
#[tokio::test]
async fn a_message_that_was_not_answered_before_a_kill_is_not_told_twice() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(told("Go on"), Reply::text("I went on."))
        .rule(told("Think"), Reply::text("Thought.").behind(&gate));
    let Some(world) = world(script).await else {
        return;
    };
    let open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Think"));
    world.model.wait_for(is_asked("Think")).await;
    let id = open.id();
    world.kill();
    prompt.await.expect("joined").expect_err("gone");
    let mut session = world.session(Which::Load(id));
    session.look_for = vec![PostId::from("p1")];
    let mut open = world.try_open(&session).await.expect("a session");
    assert_eq!(open.connection.session().found, [PostId::from("p1")].into());
    open.says(&message("p1", "Think"), &Answer::Once).await;
    open.says(&message("p2", "Go on"), &Answer::Once).await;
    let requests = world.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].text().matches("Think").count(), 1);
    assert_eq!(open.text(), "I went on.");
}

/// Says `p1`, then `m1` while the tool runs, and kills it, perhaps when the call is in its file.
async fn killed_in_a_tool(world: &World, is_written: bool) -> String {
    let mut open = world.open(Which::New).await;
    let prompt = open.starts(message("p1", "Toil"));
    open.allow().await;
    world.until_runs(1).await;
    let id = open.id();
    if is_written {
        world.until_written(&id, "./slow").await;
    }
    let steered = open.connection.steer(&message("m1", "Mind the gap")).await;
    assert_eq!(steered, Ok(true));
    world.kill();
    let error = prompt.await.expect("joined").expect_err("gone");
    assert!(matches!(error, WireError::Gone(_)), "{error:?}");
    let next = message("p2", "Go on");
    let error = open.connection.prompt(&next).await.expect_err("gone");
    assert!(matches!(error, WireError::Gone(_)), "{error:?}");
    id
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Opened,
    Sent,
    ModelAsked,
    PermissionAsked,
    ToolRuns,
    Ended,
}

/// Whenever it is killed: who then sends what is not found there, and else lets it go on, has told it
/// everything once.
#[tokio::test]
async fn a_message_is_told_once_whenever_it_is_killed() {
    for step in [
        Step::Opened,
        Step::Sent,
        Step::ModelAsked,
        Step::PermissionAsked,
        Step::ToolRuns,
        Step::Ended,
    ] {
        let Some(world) = world(slow_work()).await else {
            return;
        };
        let mut open = world.open(Which::New).await;
        let id = open.id();
        if step != Step::Opened {
            let prompt = open.starts(message("p1", "Toil"));
            if step == Step::ModelAsked {
                world.model.wait_for(is_asked("Toil")).await;
            } else if step != Step::Sent {
                let ask = open.asked().await;
                if step != Step::PermissionAsked {
                    open.connection.reply(&ask.id, &Answer::Once);
                    world.until_runs(1).await;
                }
            }
            if step == Step::Ended {
                world.go();
                prompt.await.expect("joined").expect("an end");
            }
        }
        world.kill();
        world.go();
        let mut session = world.session(Which::Load(id));
        session.look_for = vec![PostId::from("p1")];
        let mut open = match world.try_open(&session).await {
            Ok(open) => open,
            Err(WireError::NoSession(_)) => world.open(Which::New).await,
            Err(error) => panic!("{step:?}: {error}"),
        };
        let has_it = !open.connection.session().found.is_empty();
        // What the model was asked it is not asked anew.
        assert!(has_it || world.requests().is_empty(), "{step:?}");
        let next = if has_it {
            message("p2", "Go on")
        } else {
            message("p1", "Toil")
        };
        let end = open.says(&next, &Answer::Once).await;
        assert_eq!(end.stop, TurnStop::Finished, "{step:?}");
        let newest = world.requests().pop().expect("a request");
        assert_eq!(newest.text().matches("Toil").count(), 1, "{step:?}");
    }
}

#[tokio::test]
async fn what_a_session_has_cost_is_told_once_over_all_its_processes() {
    let script = Script::new().rule(told("Hello"), Reply::text("Ahoy.").usage(1_000_000, 0, 0));
    let Some(world) = world(script).await else {
        return;
    };
    let mut spent = Vec::new();
    let mut which = Which::New;
    for (process, is_killed) in [false, true, false].into_iter().enumerate() {
        let mut open = world.open(which).await;
        let said = message(&format!("p{process}"), "Hello");
        open.says(&said, &Answer::Once).await;
        spent.extend(open.seen.iter().filter_map(|event| match event {
            WireEvent::Spent(cost) => Some(cost.0),
            _ => None,
        }));
        which = Which::Load(open.id());
        if is_killed {
            world.kill();
        } else {
            open.connection.close().await;
        }
    }
    // Each turn as much as the model's tokens, and a little for what it asks beside.
    let is_one = |spent: &u64| (4_000_000..4_100_000).contains(spent);
    assert_eq!(spent.len(), 3);
    assert!(spent.iter().all(is_one), "{spent:?}");
}

#[tokio::test]
async fn a_fork_knows_what_its_parent_knows_and_goes_its_own_way() {
    let Some(world) = world(Script::new()).await else {
        return;
    };
    let mut parent = world.open(Which::New).await;
    parent
        .says(&message("p1", "The word is heron"), &Answer::Once)
        .await;
    let mut fork = world.open(Which::Fork(parent.id())).await;
    assert_ne!(fork.id(), parent.id());
    fork.says(&message("f1", "Only for the fork"), &Answer::Once)
        .await;
    parent
        .says(&message("p2", "Only for the parent"), &Answer::Once)
        .await;
    let requests = world.requests();
    let text = |at: usize| requests[at].text();
    assert!(text(1).contains("heron") && text(1).contains("Only for the fork"));
    assert!(text(2).contains("heron") && !text(2).contains("Only for the fork"));
    let id = fork.id();
    fork.connection.close().await;
    let mut session = world.session(Which::Load(id));
    session.look_for = ["f1", "p2"].map(PostId::from).into();
    let again = world.try_open(&session).await.expect("a session");
    assert_eq!(
        again.connection.session().found,
        [PostId::from("f1")].into()
    );
}

#[tokio::test]
async fn two_sessions_work_at_once() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    let (mut one, mut two) = tokio::join!(world.open(Which::New), world.open(Which::New));
    let first = one.starts(message("p1", "Toil one"));
    let second = two.starts(message("p2", "Toil two"));
    one.allow().await;
    two.allow().await;
    world.until_runs(2).await;
    world.go();
    for prompt in [first, second] {
        let end = prompt.await.expect("joined").expect("an end");
        assert_eq!(end.stop, TurnStop::Finished);
    }
    assert_eq!(world.times_told("finished"), 2);
}

/// A session is written down when it is told something first.
#[tokio::test]
async fn a_session_that_is_not_there_is_said_so() {
    let Some(world) = world(Script::new()).await else {
        return;
    };
    let open = world.open(Which::New).await;
    let unused = open.id();
    open.connection.close().await;
    let unknown = "00000000-0000-4000-8000-000000000000".to_owned();
    for which in [
        Which::Load(unused),
        Which::Load(unknown.clone()),
        Which::Fork(unknown),
        Which::Load("../../etc".to_owned()),
    ] {
        let error = world.try_open(&world.session(which.clone())).await;
        let error = error.err().expect("no session");
        assert!(matches!(error, WireError::NoSession(_)), "{which:?}");
    }
}

#[tokio::test]
async fn our_tools_are_offered_at_once_and_are_known_as_ours() {
    let script = Script::new()
        .rule(told("swordfish"), Reply::text("Launched."))
        .rule(
            told("Delegate"),
            Reply::call("mcp__asyncagents__task", json!({"prompt": "look"})),
        );
    let Some(world) = world(script).await else {
        return;
    };
    let mut session = world.session(Which::New);
    session.may_delegate = true;
    let mut open = world.try_open(&session).await.expect("a session");
    let end = open.says(&message("p1", "Delegate"), &Answer::Once).await;
    assert_eq!(end.stop, TurnStop::Finished);
    let [ask] = open.asks()[..] else {
        panic!("{:?}", open.seen)
    };
    assert!(matches!(&ask.what, Asked::Call(call) if call.is_ours));
    assert_eq!(world.times_told("for-tests swordfish"), 1);
    let tools = world.requests()[0].tool_names();
    assert!(
        tools.contains(&"mcp__asyncagents__task".to_owned()),
        "{tools:?}"
    );
    assert!(tools.contains(&"Agent".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn a_child_that_only_reads_cannot_change_files() {
    let script = Script::new().rule(
        told("Change it"),
        Reply::call("Write", json!({"file_path": "new.txt", "content": "x"})),
    );
    let Some(world) = world(script).await else {
        return;
    };
    let mut session = world.session(Which::New);
    session.reads_only = true;
    let mut open = world.try_open(&session).await.expect("a session");
    open.says(&message("p1", "Change it"), &Answer::Once).await;
    let tools = world.requests()[0].tool_names();
    assert!(!tools.contains(&"Write".to_owned()) && tools.contains(&"Read".to_owned()));
    assert!(!world.path("project/new.txt").exists());
    assert!(open.asks().is_empty());
}

#[tokio::test]
async fn a_question_of_the_model_is_answered() {
    let questions = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }]});
    let script = Script::new().rule(told("Paint it"), Reply::call("AskUserQuestion", questions));
    let Some(world) = world(script).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let values = [("Colour".to_owned(), vec!["Blue".to_owned()])];
    let answer = Answer::Values(values.into());
    let end = open.says(&message("p1", "Paint it"), &answer).await;
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(world.times_told("Blue"), 1);
}

/// Not even where the user has told Claude Code to trust the folder.
#[tokio::test]
async fn a_projects_hooks_do_not_run_and_its_instructions_are_pointed_out() {
    let Some(world) = world(slow_work()).await else {
        return;
    };
    world.go();
    let hook = json!({"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": format!("touch {}", world.path("home/hooked").display())},
    ]}]}});
    world.write("project/.claude/settings.json", &hook.to_string());
    world.write("project/CLAUDE.md", "Speak softly.");
    let trusted = world.path("project").canonicalize().expect("a folder");
    let trusted =
        json!({"projects": {trusted.display().to_string(): {"hasTrustDialogAccepted": true}}});
    world.write("home/.claude.json", &trusted.to_string());
    let mut open = world.open(Which::New).await;
    open.says(&message("p1", "Toil"), &Answer::Once).await;
    assert_eq!((world.runs(), open.asks().len()), (1, 1));
    assert!(!world.path("home/hooked").exists());
    assert!(
        world.requests()[0]
            .system()
            .contains("in its file CLAUDE.md")
    );
}

#[tokio::test]
async fn an_error_of_the_model_is_said_in_its_words() {
    let script = Script::new().rule(
        told("Hello"),
        Reply::status(400)
            .code("invalid_request_error")
            .message("there is nothing to say"),
    );
    let Some(world) = world(script).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let end = open.says(&message("p1", "Hello"), &Answer::Once).await;
    let TurnStop::Failed(why) = end.stop else {
        panic!("{end:?}")
    };
    assert!(why.contains("there is nothing to say"), "{why}");
    assert_eq!(open.text(), "");
}

/// A message without a name is a new one each time.
#[tokio::test]
async fn a_message_without_a_name_is_told_each_time() {
    let Some(world) = world(Script::new()).await else {
        return;
    };
    let mut open = world.open(Which::New).await;
    let again = Message {
        id: None,
        ..message("", "Once more")
    };
    open.says(&again, &Answer::Once).await;
    open.says(&again, &Answer::Once).await;
    assert_eq!(world.times_told("Once more"), 2);
}
