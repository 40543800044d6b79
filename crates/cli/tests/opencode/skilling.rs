//! Skills in OpenCode, which runs none of them as sub-agents by itself.

use std::fs;

use asyncagents_scripted_model::{Gate, Reply, When};
use serde_json::json;

use crate::harness::{Opencode, World, child, command, story, task_id, tool};
use crate::told::told;

told!(v1, v2, v2_background:
    a_forked_skill_runs_isolated_and_the_parent_gets_a_summary_and_a_trace,
    an_inherited_skill_is_read_at_once_and_a_forked_one_can_be_waited_for,
);

fn skill(world: &World, name: &str, head: &str, body: &str) {
    let folder = world.project(".claude/skills").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let text = format!("---\nname: {name}\n{head}\n---\n{body}\n");
    fs::write(folder.join("SKILL.md"), text).expect("written");
}

fn a_forked_skill_runs_isolated_and_the_parent_gets_a_summary_and_a_trace(opencode: Opencode) {
    let done = Gate::closed();
    let world = World::new(
        opencode,
        story()
            .rule(
                child("the code"),
                Reply::call(opencode.shell(), command("touch forbidden")),
            )
            .rule(
                When::turn(1).system("executing the 'look' skill"),
                Reply::text("Two files, no bugs.").behind(&done),
            ),
    );
    let head = "description: Looks for bugs.\ncontext: fork\nallowed-tools: Read, Bash(git log *)\nmax-iterations: 20";
    skill(&world, "look", head, "Look at $ARGUMENTS.");
    skill(
        &world,
        "mine",
        "description: Not for models.\ndisable-model-invocation: true",
        "x",
    );
    let server = world.serve();
    let parent = server.session();
    parent.asks("XYZZY is the password");

    let call = json!({"name": "look", "arguments": "the code"});
    let launched = parent.uses("asyncagents_skill", call);
    let id = task_id(&launched);
    assert!(
        launched.contains("a sub-agent executes the skill look"),
        "{launched}"
    );
    let described = tool(&parent.requests()[0], "asyncagents_skill");
    let described = described["description"].as_str().expect("a description");
    assert!(
        described.ends_with("Skills:\n- look: Looks for bugs."),
        "{described}"
    );

    world.until("the second answer", || {
        (parent.child().requests().len() == 2).then_some(())
    });
    done.open();
    let notice = parent.until_told(1).remove(0);
    assert!(
        notice
            .visible
            .ends_with("\n\nSub-agent completed: Two files, no bugs."),
        "{notice:?}"
    );
    let chain = notice.hidden.strip_prefix("Full trace: ").expect("a trace");
    let chain = chain.lines().next().expect("a line");

    let requests = parent.child().requests();
    for request in &requests {
        assert!(!request.body.contains("XYZZY"), "{}", request.body);
    }
    let system = requests[0].system();
    assert!(
        system.contains("SKILL INSTRUCTIONS:\nLook at the code."),
        "{system}"
    );
    let mut tools = requests[0].tool_names();
    tools.sort();
    assert_eq!(
        tools,
        if opencode.is_v2() {
            ["read", "shell"]
        } else {
            ["bash", "read"]
        }
    );
    assert!(!world.project("forbidden").exists());
    let refused = requests[1].last();
    let why = if opencode.is_v2() {
        "this task may not use `shell` in this way: only `git log *`"
    } else {
        "prevents you from using this specific tool call"
    };
    assert!(refused.contains(why), "{refused}");

    let tree = world.shell(&["trace", chain]);
    assert!(
        tree.contains("✓ skill look: the code · general · completed"),
        "{tree}"
    );
    let call = format!("tool     {}", opencode.shell());
    assert!(tree.contains(&call), "{tree}");
    assert!(world.shell(&["list"]).contains(&id));
}

fn an_inherited_skill_is_read_at_once_and_a_forked_one_can_be_waited_for(opencode: Opencode) {
    let world = World::new(
        opencode,
        story().rule(child("Count"), Reply::text("Three.")),
    );
    skill(
        &world,
        "style",
        "description: How we write.",
        "Write short sentences about $0.",
    );
    skill(
        &world,
        "count",
        "description: Counts.\ncontext: fork\nagent: Explore",
        "Count.",
    );
    let server = world.serve();
    let parent = server.session();
    let text = parent.uses(
        "asyncagents_skill",
        json!({"name": "style", "arguments": "cats"}),
    );
    assert!(
        text.ends_with("Write short sentences about cats."),
        "{text}"
    );

    let call = json!({"name": "count", "arguments": "Count the files", "background": false});
    let waited = parent.uses("asyncagents_skill", call);
    let (summary, trace) = waited.split_once('\n').expect("two parts");
    assert_eq!(summary, "Sub-agent completed: Three.");
    assert!(trace.starts_with("Full trace: "), "{trace}");
    world.stays("not told again", || parent.notices().is_empty());

    let unknown = parent.uses("asyncagents_skill", json!({"name": "nix"}));
    assert!(
        unknown.contains("SKILL_NOT_FOUND: there is no skill `nix`; there are count and style"),
        "{unknown}"
    );
}
