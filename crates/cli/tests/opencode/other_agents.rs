//! Children that work in other agents.

use asyncagents_core::wording::grouped;
use asyncagents_scripted_model::{Reply, When};
use serde_json::{Value, json};

use crate::harness::{Opencode, World, forked, story};
use crate::told::{skip, told};

told!(v1, v2_background:
    two_agents_of_other_vendors_know_what_was_read_and_are_told_once,
);

/// How the requests of the children are told from those of the parent: what they are asked is followed
/// by our name for it.
const CLAUDE: &str = "Judge it from the left\n\n[asyncagents";
const CODEX: &str = "Judge it from the right\n\n[asyncagents";

fn two_agents_of_other_vendors_know_what_was_read_and_are_told_once(opencode: Opencode) {
    // Their requests look like those of a session of a user, so they come first.
    let script = story()
        .rule(
            When::always().last(CLAUDE),
            Reply::text("It leans to the left."),
        )
        .rule(
            When::always().last(CODEX),
            Reply::text("It leans to the right."),
        );
    let world = World::new(opencode, script);
    if !world.install_agents() {
        return skip(
            "two_agents_of_other_vendors_know_what_was_read_and_are_told_once",
            "Claude Code or codex-acp",
        );
    }
    let server = world.serve();
    let parent = server.session();
    for number in 0..10 {
        let file = world.project(&format!("part-{number}.txt"));
        std::fs::write(&file, format!("part {number} is {}\n", number * 7)).expect("written");
        let (read, what) = opencode.read(&file);
        parent.uses(read, what);
    }
    let mut first = forked("left", "Judge it from the left");
    first["host"] = json!("claude");
    let mut second = forked("right", "Judge it from the right");
    second["host"] = json!("codex");
    parent.uses("asyncagents_task", first);
    parent.uses("asyncagents_task", second);

    let notices = parent.until_told(2);
    let told: String = notices
        .iter()
        .map(|notice| notice.hidden.as_str())
        .collect();
    for result in ["It leans to the left.", "It leans to the right."] {
        assert_eq!(told.matches(result).count(), 1, "{told}");
    }
    for asked in [CLAUDE, CODEX] {
        let mut requests = world.requests_with(asked);
        // What an agent asks beside its work, such as a title, has no tools.
        requests.retain(|request| !request.tool_names().is_empty());
        assert_eq!(requests.len(), 1, "{asked}");
        let text = requests[0].text();
        for number in 0..10 {
            let read = format!("part {number} is {}", number * 7);
            assert!(text.contains(&read), "{asked}: {read} is inherited\n{text}");
        }
    }
    world.stays("told of two ends", || parent.ends_told() == 2);
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(
        list.contains("general in claude") && list.contains("general in codex"),
        "{list}"
    );
    // One tree, one bill.
    let tasks: Vec<Value> =
        serde_json::from_str(&world.asyncagents(&["list", "--json"])).expect("JSON");
    assert_eq!(tasks.len(), 2);
    for task in &tasks {
        assert_eq!(task["parent_session"], *parent.id, "{task}");
        assert_eq!(task["status"], "completed", "{task}");
        assert!(task["progress"]["tokens"].as_u64() > Some(0), "{task}");
        assert!(task["progress"]["cost_usd"].as_f64() > Some(0.0), "{task}");
    }
    let tokens = tasks
        .iter()
        .filter_map(|task| task["progress"]["tokens"].as_u64());
    let bill = format!(
        "2 tasks: 2 completed; {} tokens, $",
        grouped(tokens.sum::<u64>())
    );
    let list = world.asyncagents(&["list"]);
    assert!(list.contains(&bill), "{bill}: {list}");
}
