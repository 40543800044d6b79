//! A task is launched, looked at and read, and its parent is told.

use std::fs;

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{
    FIRST_MODEL, Opencode, SECOND_MODEL, Session, Setup, World, child, command, counting, forked,
    launch, resume, story, task_id, tool,
};
use crate::told::told;

told!(v1, v2, v2_background:
    seed_003_a_launch_answers_at_once_and_the_parent_is_told_exactly_once,
);
told!(v1, v2_background:
    the_model_has_the_tools_and_knows_whom_it_can_launch,
    seed_003_the_list_shows_the_tasks_of_its_own_session_only,
    seed_003_output_shows_progress_then_the_result_and_who_waited_is_not_told_again,
    seed_003_the_result_stays_until_it_is_cleared,
    what_cannot_be_launched_says_why_and_creates_nothing,
    a_child_is_listed_under_its_parent_and_has_its_parents_model_or_its_agents_own,
    a_child_launches_children_down_to_the_limit_where_it_has_no_such_tools,
);

fn seed_003_a_launch_answers_at_once_and_the_parent_is_told_exactly_once(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session().with_agent("plan").with_second_model();

    let launched = parent.uses("asyncagents_task", launch("count", "Count the files"));
    task_id(&launched);
    world.until_child_asks("Count the files");
    assert!(parent.is_idle(), "nobody waits for it");
    assert!(parent.notices().is_empty());

    counted.open();
    let notices = parent.until_told(1);
    let notice = &notices[0];
    assert!(
        notice
            .visible
            .starts_with("✓ **Agent \"count\" finished in "),
        "{notice:?}"
    );
    assert!(
        notice.visible.ends_with("s.**\nTask Progress: 1/1"),
        "{notice:?}"
    );
    let hint = "All 1 tasks finished.\nUse asyncagents_output tools to see agent responses.\n";
    assert!(notice.hidden.starts_with(hint), "{}", notice.hidden);
    // The user's choices are kept.
    assert_eq!((&*notice.agent, &*notice.model), ("plan", SECOND_MODEL));
    let requests = parent.requests();
    let told = requests.last().expect("a request");
    assert_eq!(told.model(), SECOND_MODEL);
    assert!(told.last().contains(&notice.visible), "{}", told.last());
    assert!(told.last().contains(&notice.hidden), "{}", told.last());
    let messages = parent.messages();
    assert_eq!(messages.last().expect("an answer").agent, "plan");

    world.stays("told once", || parent.ends_told() == 1);
    assert_eq!(parent.child().requests().len(), 1, "it worked once");
    assert_eq!(parent.requests().len(), 3, "asked, launched, told");
}

fn the_model_has_the_tools_and_knows_whom_it_can_launch(opencode: Opencode) {
    let painter = json!({
        "mode": "subagent",
        "description": "Paints what it is told to.",
        "prompt": "You paint.",
    });
    let world = Setup::new(opencode, story())
        .agent("painter", painter)
        .world();
    let server = world.serve();
    let session = server.session();
    session.asks("Hello");
    let request = &session.requests()[0];
    let mut ours = request.tool_names();
    ours.retain(|name| name.starts_with("asyncagents_"));
    ours.sort();
    let expected = [
        "answer", "cancel", "clear", "list", "message", "output", "skill", "task",
    ];
    assert_eq!(ours, expected.map(|name| format!("asyncagents_{name}")));

    let task = tool(request, "asyncagents_task");
    let described = task["description"].as_str().expect("a description");
    for agent in ["general", "explore", "painter"] {
        assert!(described.contains(agent), "{agent}: {described}");
    }
    let optional = |name: &str, parameter: &str| {
        let schema = &tool(request, name)["parameters"];
        assert!(schema["properties"][parameter].is_object(), "{schema}");
        let required = schema["required"].to_string();
        !required.contains(&format!("\"{parameter}\""))
    };
    assert!(optional("asyncagents_task", "fork"));
    assert!(optional("asyncagents_task", "resume"));
    assert!(!optional("asyncagents_task", "prompt"));
    assert!(optional("asyncagents_output", "block"));
    assert!(!optional("asyncagents_output", "task_id"));
}

fn seed_003_the_list_shows_the_tasks_of_its_own_session_only(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(
        opencode,
        story()
            .rule(child("Read the file"), Reply::text("It is short."))
            .rule(
                child("Count the files"),
                Reply::text("There are three.").behind(&counted),
            ),
    );
    let server = world.serve();
    let (parent, other) = (server.session(), server.session());
    let list = |session: &Session<'_>| session.uses("asyncagents_list", json!({}));
    assert_eq!(list(&parent), "No background tasks found");

    let read = task_id(&parent.uses("asyncagents_task", forked("read", "Read the file")));
    parent.until_told(1);
    let count = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");

    let both = list(&parent);
    let row = |task: &str| {
        let row = both.lines().find(|line| line.contains(task));
        row.unwrap_or_else(|| panic!("{task}: {both}"))
    };
    assert!(row(&read).contains(&format!("{read} (forked)")), "{both}");
    for word in ["read", "general", "completed"] {
        assert!(row(&read).contains(word), "{word}: {both}");
    }
    for word in ["count", "general", "running"] {
        assert!(row(&count).contains(word), "{word}: {both}");
    }
    assert!(!row(&count).contains('('), "nothing special: {both}");
    assert!(both.find(&count) < both.find(&read), "newest first: {both}");
    assert!(both.contains("2 tasks"), "{both}");
    let running = parent.uses("asyncagents_list", json!({"status": "running"}));
    assert!(
        running.contains(&count) && !running.contains(&read),
        "{running}"
    );
    assert_eq!(list(&other), "No background tasks found");

    counted.open();
    parent.until_told(2);
    assert!(list(&parent).contains("2 completed"));
}

fn seed_003_output_shows_progress_then_the_result_and_who_waited_is_not_told_again(
    opencode: Opencode,
) {
    let counted = Gate::closed();
    let count = command("until [ -e go ]; do sleep 0.05; done; echo one; echo two");
    let shell = opencode.shell();
    let world = World::new(
        opencode,
        story()
            .rule(child("Count the files"), Reply::call(shell, count))
            .rule(
                child("one\ntwo"),
                Reply::text("There are two.").behind(&counted),
            ),
    );
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    let shows = |phase: &str| {
        world.until(&format!("the child is {phase}"), || {
            let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
            assert!(shown.contains("is running"), "{shown}");
            let begun = shown.contains(&format!("{phase}; 1 tool call ({shell} 1)"));
            begun.then_some(())
        });
    };
    shows(&format!("using {shell}"));
    fs::write(world.project("go"), "").expect("written");
    world.until_child_asks("one\ntwo");
    shows("working");
    let waited = json!({"task_id": id, "block": true, "timeout": 1});
    let shown = parent.uses("asyncagents_output", waited);
    assert!(
        shown.contains("is running"),
        "a timeout is no error: {shown}"
    );

    let wait = json!({"task_id": id, "block": true, "timeout": 90});
    parent.begins_to_use("asyncagents_output", &wait);
    parent.until_using("asyncagents_output");
    counted.open();
    parent.until_idle();
    let results = parent.results("asyncagents_output");
    let result = results.last().expect("a result");
    assert!(result.contains("is completed"), "{result}");
    assert!(result.contains("There are two."), "{result}");
    world.stays("nobody is told again", || parent.notices().is_empty());

    // It can be read again, with everything that was said.
    let all = json!({"task_id": id, "full_session": true, "include_tool_results": true});
    let all = parent.uses("asyncagents_output", all);
    for said in ["Count the files", "echo one", "one\ntwo", "There are two."] {
        assert!(all.contains(said), "{said}: {all}");
    }
}

fn seed_003_the_result_stays_until_it_is_cleared(opencode: Opencode) {
    let world = World::new(
        opencode,
        story().rule(child("Count"), Reply::text("There are three.")),
    );
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("number", "Count")));
    parent.until_told(1);
    for _ in 0..2 {
        let result = parent.uses("asyncagents_output", json!({"task_id": id}));
        assert!(result.contains("There are three."), "{result}");
    }
    let beginning: String = id.chars().take(9).collect();
    let result = parent.uses("asyncagents_output", json!({"task_id": beginning}));
    assert!(result.contains("There are three."), "{result}");
    let cleared = parent.uses("asyncagents_clear", json!({}));
    assert!(cleared.contains("Cleared 1 task"), "{cleared}");
    let list = parent.uses("asyncagents_list", json!({}));
    assert_eq!(list, "No background tasks found");
    let gone = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(gone.contains("there is no task"), "{gone}");
    world.stays("told once", || parent.ends_told() == 1);
}

fn what_cannot_be_launched_says_why_and_creates_nothing(opencode: Opencode) {
    let world = World::new(opencode, story());
    let server = world.serve();
    let parent = server.session();
    let refused = |parameters: serde_json::Value, why: &[&str]| {
        let said = parent.uses("asyncagents_task", parameters);
        for words in why {
            assert!(said.contains(words), "{words}: {said}");
        }
    };
    let unknown = json!({"description": "d", "prompt": "p", "agent": "nobody"});
    refused(unknown, &["no agent `nobody`", "general", "explore"]);
    refused(launch("d", "  "), &["prompt is empty"]);
    refused(
        resume("task_00000000", "more"),
        &["there is no task `task_00000000`"],
    );
    // Seeds 000, 001 and 003: they exclude each other.
    let both = json!({"description": "d", "prompt": "p", "agent": "general", "fork": true, "resume": "task_1"});
    refused(both, &["`fork` and `resume` exclude each other"]);
    assert!(parent.children().is_empty(), "{:?}", parent.children());
    let list = parent.uses("asyncagents_list", json!({}));
    assert_eq!(list, "No background tasks found");
    let gone = parent.uses("asyncagents_output", json!({"task_id": "task_00000000"}));
    assert!(gone.contains("there is no task"), "{gone}");
    assert!(parent.notices().is_empty());
}

fn a_child_is_listed_under_its_parent_and_has_its_parents_model_or_its_agents_own(
    opencode: Opencode,
) {
    let painter = json!({
        "mode": "subagent",
        "description": "Paints.",
        "prompt": "You paint.",
        "model": format!("scripted/{FIRST_MODEL}"),
    });
    let script = story()
        .rule(child("Count the files"), Reply::text("There are three."))
        .rule(child("Paint the wall"), Reply::text("It is blue."));
    let world = Setup::new(opencode, script)
        .agent("painter", painter)
        .world();
    let server = world.serve();
    let parent = server.session().with_second_model();

    parent.uses(
        "asyncagents_task",
        launch("count the files", "Count the files"),
    );
    parent.until_told(1);
    let children = parent.children();
    assert_eq!(children.len(), 1, "{children:?}");
    let title = &children[0].title;
    assert!(title.contains("count the files"), "{title}");
    assert_eq!(children[0].parent, parent.id);
    let asked = world.until_child_asks("Count the files");
    assert_eq!(asked.model(), SECOND_MODEL, "the parent's");

    let paint = json!({"description": "paint", "prompt": "Paint the wall", "agent": "painter"});
    parent.uses("asyncagents_task", paint);
    let notices = parent.until_told(2);
    let asked = world.until_child_asks("Paint the wall");
    assert_eq!(asked.model(), FIRST_MODEL, "the agent's own");
    assert!(asked.system().contains("You paint."), "{}", asked.system());
    assert_eq!(parent.children().len(), 2);
    // The parent's model is still its own.
    let newest = notices.last().expect("told");
    assert_eq!(newest.model, SECOND_MODEL);
    let told = parent.requests().pop().expect("a request");
    assert_eq!(told.model(), SECOND_MODEL);
}

fn a_child_launches_children_down_to_the_limit_where_it_has_no_such_tools(opencode: Opencode) {
    let deep = json!({"description": "deep", "prompt": "Dig deeper", "agent": "general"});
    let wait = json!({"task_id": "{{id}}", "block": true, "timeout": 90});
    let launched = child("You will be told").capture("id", "Task (task_[0-9a-f]+)");
    let world = World::new(
        opencode,
        story()
            .rule(child("Dig deeper"), Reply::text("Gold."))
            .rule(child("Gold."), Reply::text("It has found gold."))
            .rule(launched, Reply::call("asyncagents_output", wait))
            .rule(child("Dig"), Reply::call("asyncagents_task", deep)),
    );
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("digging", "Dig")));
    let notices = parent.until_told(1);
    assert!(notices[0].visible.contains("finished"), "{notices:?}");
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("It has found gold."), "{result}");

    let ours = |words: &str| {
        let mut tools = world.until_child_asks(words).tool_names();
        tools.retain(|tool| tool.starts_with("asyncagents_"));
        tools.len()
    };
    assert_eq!(ours("Dig"), 8, "a child may launch");
    assert_eq!(ours("Dig deeper"), 0, "a child of a child may not");
    // Each is below the one that launched it, and only the direct parent was told.
    let middle = parent.child();
    assert_eq!(middle.children().len(), 1);
    world.stays("told once", || parent.ends_told() == 1);
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(!list.contains("deep"), "{list}");
}
