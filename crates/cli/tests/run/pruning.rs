//! What ended long ago is deleted, and no more than was asked about.

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};

use crate::Home;

/// A conversation that has launched a task: when the task goes, the conversation can go too.
#[test]
fn a_conversation_is_counted_with_the_tasks_that_it_has_launched() {
    let child = json!({
        "description": "count", "prompt": "Count the files", "agent": "general", "fork": true
    });
    let script = Script::new()
        .rule(
            When::always().last("Count the files"),
            Reply::text("Three."),
        )
        .rule(When::turn(0), Reply::call("asyncagents_task", child))
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    home.ask(&["run", "Have the files counted"]);
    let prune = ["prune", "--older", "0s", "--sessions", "--json"];
    let pruned = |more: &str| -> Value {
        let said = home.ask(&[&prune[..], &[more]].concat());
        serde_json::from_str(&said).expect("JSON")
    };
    let would = pruned("--dry-run");
    assert_eq!(
        (&would["tasks"], &would["sessions"]),
        (&json!(1), &json!(1)),
        "{would}"
    );
    assert_eq!(would["deleted"], false);
    let did = pruned("--yes");
    assert_eq!(
        (&did["tasks"], &did["sessions"]),
        (&json!(1), &json!(1)),
        "{did}"
    );
    assert_eq!(home.ask(&["list"]), "No background tasks found");
    assert!(home.ask(&["sessions"]).contains("No sessions found"));
}
