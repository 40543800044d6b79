//! OpenCode by itself, without the plugin: what the other tests take for granted.

use asyncagents_scripted_model::{Gate, Reply};

use crate::harness::{Opencode, Setup, asked, command, root, story};
use crate::told::told;

told!(v1, v2, v2_background:
    serve_answers_a_prompt_and_uses_a_tool,
    serve_aborts_an_answer_and_the_model_notices,
    a_server_that_was_killed_is_gone_with_everything_and_another_has_its_sessions,
    serve_sums_a_conversation_up,
    run_answers_a_prompt,
    the_terminal_shows_an_answer,
);

fn serve_answers_a_prompt_and_uses_a_tool(opencode: Opencode) {
    let world = Setup::new(
        opencode,
        story().rule(asked("Hello"), Reply::text("Good morning.")),
    )
    .without_plugin()
    .world();
    let server = world.serve();
    let session = server.session();
    assert_eq!(session.asks("Hello"), "Good morning.");
    assert_eq!(session.runs("echo one two"), "one two\n");
    let requests = session.requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    assert!(requests[2].text().contains("one two"));
    assert!(
        server.has_said(opencode.end_of_turn(), |end| end["sessionID"]
            == *session.id)
    );
    assert!(session.notices().is_empty());
}

fn serve_aborts_an_answer_and_the_model_notices(opencode: Opencode) {
    let never = Gate::closed();
    let world = Setup::new(
        opencode,
        story().rule(asked("Think"), Reply::text("…").behind(&never)),
    )
    .without_plugin()
    .world();
    let server = world.serve();
    let session = server.session();
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

fn a_server_that_was_killed_is_gone_with_everything_and_another_has_its_sessions(
    opencode: Opencode,
) {
    let world = Setup::new(opencode, story()).without_plugin().world();
    let server = world.serve();
    let session = server.session();
    assert_eq!(session.asks("Hello"), "Noted.");
    session.begins_to_run("sleep 600");
    let id = session.id.clone();
    server.kill();
    let server = world.serve();
    let session = server.session_of(&id);
    if opencode == Opencode::V2Background {
        // It goes on by itself with what was being done.
        world.until("the model knows of the restart", || {
            let requests = world.requests_with("The server restarted");
            (!requests.is_empty()).then_some(())
        });
        session.until_idle();
    }
    assert!(session.is_idle());
    assert_eq!(session.asks("Hello again"), "Noted.");
    server.stop();
}

fn serve_sums_a_conversation_up(opencode: Opencode) {
    let summary = Reply::text("Something was said.");
    let script = story().rule(root().tools(false), summary);
    let world = Setup::new(opencode, script).without_plugin().world();
    let server = world.serve();
    let session = server.session();
    session.asks("Hello");
    session.summarize();
    session.asks("Hello again");
    let request = session.requests().pop().expect("a request").text();
    assert!(request.contains("Something was said."), "{request}");
    assert_eq!(request.matches("Hello").count(), 1, "{request}");
}

fn run_answers_a_prompt(opencode: Opencode) {
    let script = story().rule(asked("Hello"), Reply::text("Good morning."));
    let world = Setup::new(opencode, script).without_plugin().world();
    let run = world.run("Hello");
    assert_eq!(run.answer(), "Good morning.");
    let shell = opencode.shell();
    let run = world.run(&format!("Please use {shell} with {}", command("echo hi")));
    assert_eq!(run.results(shell), ["hi\n"]);
    assert_eq!(run.answer(), "Noted.");
}

fn the_terminal_shows_an_answer(opencode: Opencode) {
    let script = story().rule(asked("Hello"), Reply::text("Good morning."));
    let world = Setup::new(opencode, script).without_plugin().world();
    let tui = world.tui();
    tui.types("Hello");
    tui.until_shows("Good morning.");
}
