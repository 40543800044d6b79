//! Tasks from the shell in an `opencode serve`, over HTTP: there is no plugin.

use asyncagents_scripted_model::Reply;

use crate::harness::{Opencode, Setup, child, story};
use crate::told::told;

told!(v1, v2, v2_background:
    a_task_from_the_shell_inherits_a_session_of_a_server_which_is_told_once,
);

fn a_task_from_the_shell_inherits_a_session_of_a_server_which_is_told_once(opencode: Opencode) {
    let script = story().rule(child("Use what you know"), Reply::text("It is 42."));
    let world = Setup::new(opencode, script).without_plugin().world();
    let server = world.serve();
    let parent = server.session().with_agent("plan");
    parent.asks("The secret is 42");
    let answer = world.shell_for(
        &server,
        &[
            "task",
            "--opencode",
            server.url(),
            "--session",
            &parent.id,
            "--fork",
            "--follow",
            "Use what you know",
        ],
    );
    assert!(answer.contains("It is 42."), "{answer}");
    let request = world.until_child_asks("Use what you know");
    assert!(
        request.text().contains("The secret is 42"),
        "{}",
        request.text()
    );

    let notices = parent.until_told(1);
    assert!(notices[0].visible.contains("finished in"), "{notices:?}");
    assert_eq!(notices[0].agent, "plan");
    assert_eq!(parent.children().len(), 1);
    world.stays("told once", || parent.ends_told() == 1);
}
