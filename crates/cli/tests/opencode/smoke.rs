//! OpenCode by itself, without the plugin: what the other tests take for granted.

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{Setup, asked, root, story};

#[test]
fn serve_answers_a_prompt_and_uses_a_tool() {
    let world = Setup::new(story().rule(asked("Hello"), Reply::text("Good morning.")))
        .without_plugin()
        .world();
    let opencode = world.serve();
    let session = opencode.session();
    assert_eq!(session.asks("Hello"), "Good morning.");
    let said = session.uses(
        "bash",
        json!({"command": "echo one two", "description": "say"}),
    );
    assert_eq!(said, "one two\n");
    let requests = session.requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    assert!(requests[2].text().contains("one two"));
    assert!(opencode.has_said("session.idle", |idle| idle["sessionID"] == *session.id));
    assert!(session.notices().is_empty());
}

#[test]
fn serve_aborts_an_answer_and_the_model_notices() {
    let never = Gate::closed();
    let world = Setup::new(story().rule(asked("Think"), Reply::text("…").behind(&never)))
        .without_plugin()
        .world();
    let opencode = world.serve();
    let session = opencode.session();
    session.begins("Think");
    world.until("the model thinks", || {
        (world.model.in_flight() == 1).then_some(())
    });
    assert!(!session.is_idle());
    session.abort();
    session.until_idle();
    world.until("nobody waits for it", || {
        (world.model.in_flight() == 0).then_some(())
    });
}

#[test]
fn a_server_that_was_killed_is_gone_with_everything_and_another_has_its_sessions() {
    let world = Setup::new(story()).without_plugin().world();
    let opencode = world.serve();
    let session = opencode.session();
    assert_eq!(session.asks("Hello"), "Noted.");
    session.begins_to_use(
        "bash",
        &json!({"command": "sleep 600", "description": "wait"}),
    );
    session.until_using("bash");
    let id = session.id.clone();
    opencode.kill();
    let opencode = world.serve();
    let session = opencode.session_of(&id);
    assert!(session.is_idle());
    assert_eq!(session.asks("Hello again"), "Noted.");
    opencode.stop();
}

#[test]
fn serve_sums_a_conversation_up() {
    let summary = Reply::text("Something was said.");
    let script = story().rule(root().tools(false), summary);
    let world = Setup::new(script).without_plugin().world();
    let opencode = world.serve();
    let session = opencode.session();
    session.asks("Hello");
    session.summarize();
    session.asks("Hello again");
    let request = session.requests().pop().expect("a request").text();
    assert!(request.contains("Something was said."), "{request}");
    assert_eq!(request.matches("Hello").count(), 1, "{request}");
}

#[test]
fn run_answers_a_prompt() {
    let script = story().rule(asked("Hello"), Reply::text("Good morning."));
    let world = Setup::new(script).without_plugin().world();
    let run = world.run("Hello");
    assert_eq!(run.answer(), "Good morning.");
    let run = world.run(r#"Please use bash with {"command":"echo hi","description":"say"}"#);
    assert_eq!(run.results("bash"), ["hi\n"]);
    assert_eq!(run.answer(), "Noted.");
}

#[test]
fn the_terminal_shows_an_answer() {
    let script = story().rule(asked("Hello"), Reply::text("Good morning."));
    let world = Setup::new(script).without_plugin().world();
    let tui = world.tui();
    tui.types("Hello");
    tui.until_shows("Good morning.");
}
