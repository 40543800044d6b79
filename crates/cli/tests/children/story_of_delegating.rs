//! Children that have children of their own, by our tools.

use asyncagents_scripted_model::{Recorded, Reply, Script, When};
use serde_json::{Value, json};

use crate::{
    agent::Agent,
    world::{World, asked, printed},
};

told! {
    a_child_delegates_and_is_told_once
    at_the_depth_limit_a_child_can_delegate_nothing
}

told! {
    for (claude Claude, claude_alone ClaudeAlone, codex Codex, opencode OpenCode):
    an_exact_fork_begins_with_the_messages_of_its_parent
}

told! {
    for (gemini Gemini, goose Goose):
    an_exact_fork_has_its_parents_conversation_where_the_agent_cannot_fork
}

told! {
    a_fork_knows_what_its_parent_has_read
}

/// What each answer of the model took: input, of that cached, output.
const USED: (u64, u64, u64) = (1_000, 0, 100);

/// The same as in OpenCode's own settings.
const PRICES_OF_OPENCODE: &str =
    r#"{"scripted/m": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}"#;

fn says(text: &str) -> Reply {
    let (input, cached, output) = USED;
    Reply::text(text).usage(input, cached, output)
}

mod tell {
    use super::*;

    pub(super) fn a_child_delegates_and_is_told_once(agent: Agent) {
        let task = json!({"description": "plants", "prompt": "Count the plants",
            "agent": "general"});
        let (input, cached, output) = USED;
        let launch = Reply::call(agent.our_tool("task"), task).usage(input, cached, output);
        let script = |_: &_| {
            Script::new()
                .rule(
                    asked("There are seven of them"),
                    says("I was told that there are seven."),
                )
                .rule(asked("Count the plants"), says("There are seven of them."))
                .rule(asked("Have it counted"), launch)
                .rule(
                    When::always().tools(true).contains("Have it counted"),
                    says("I wait."),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        if agent == Agent::OpenCode {
            // By it one can tell whether a sum goes on in the agent's next process.
            world.home.write("home/prices.json", PRICES_OF_OPENCODE);
            let settings = "[models]\nprices = \"../../prices.json\"\n\
                            [providers.scripted]\nbase_url = \"http://127.0.0.1:9\"\nwire = \"chat\"\n";
            world.set(settings);
        }
        let id = world.launch_free("Have it counted");
        assert_eq!(world.result(&id), "I was told that there are seven.");
        // It was told once.
        let told = world.until_asked("There are seven of them").text();
        assert_eq!(told.matches("There are seven of them").count(), 1, "{told}");
        for words in [
            "Have it counted",
            "Count the plants",
            "There are seven of them",
        ] {
            assert_eq!(world.times_asked(words), 1, "{words}");
        }
        // Only the one that is not at the limit can delegate: by our tools, and its own where it says what
        // its sub-agents ask and cost.
        let request = world.until_asked("Have it counted");
        for sign in signs(agent) {
            let is_ours = sign == agent.sign_of_our_tools();
            let has_own = !matches!(agent, Agent::Codex | Agent::OpenCode);
            let is_there = request.body.contains(&sign);
            assert_eq!(is_there, is_ours || has_own, "{sign}: {}", request.body);
        }
        delegates_nothing(&world, "Count the plants");
        // One tree.
        let list = world.json(&["list", "--all", "--json"]);
        let tasks = list.as_array().expect("tasks");
        let [child, parent] = &tasks[..] else {
            unreachable!("two tasks: {list}");
        };
        assert_eq!(parent["id"], *id);
        assert_eq!(child["parent_session"], parent["session"]);
        assert_eq!(
            (&child["depth"], &child["status"]),
            (&json!(2), &json!("completed"))
        );
        // One bill.
        let trace = world.json(&["trace", &id, "--json"]);
        assert_eq!(trace["children"][0]["task_id"], child["id"], "{trace}");
        let cost = |of: &Value| of["cost_usd"].as_f64();
        let (own, below) = (&trace["own"], &trace["children"][0]["total"]);
        assert_eq!(cost(below), agent.cost(1, USED), "{below}");
        let rest = world.requests().len() - 1;
        assert_eq!(cost(own), agent.cost(rest, USED), "{own}");
        assert_eq!(cost(&trace["total"]), agent.cost(rest + 1, USED), "{trace}");
    }

    /// What a request has in it that can delegate.
    fn signs(agent: Agent) -> Vec<String> {
        let own = agent.signs_of_own_sub_agents().iter();
        let mut signs: Vec<String> = own.map(|&sign| sign.to_owned()).collect();
        signs.push(agent.sign_of_our_tools());
        signs
    }

    /// Neither by our tools nor by its own.
    fn delegates_nothing(world: &World, asked: &str) {
        let request = world.until_asked(asked);
        for sign in signs(world.agent) {
            assert!(!request.body.contains(&sign), "{sign}: {}", request.body);
        }
    }

    pub(super) fn at_the_depth_limit_a_child_can_delegate_nothing(agent: Agent) {
        let script =
            |_: &_| Script::new().rule(asked("Name the colour"), Reply::text("It is blue."));
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.set("[limits]\ndepth = 1\n");
        let id = world.launch_free("Name the colour");
        assert_eq!(world.result(&id), "It is blue.");
        delegates_nothing(&world, "Name the colour");
    }

    /// Where both are the same program, the agent itself forks its conversation.
    pub(super) fn an_exact_fork_begins_with_the_messages_of_its_parent(agent: Agent) {
        let Some(request) = forked(agent, "exact") else {
            return;
        };
        let text = request.text();
        assert!(request.turn() > 0, "its parent's answers are messages");
        assert!(!text.contains("<inherited_context>"), "{text}");
        // It knows that it is not its parent, and what its job is.
        assert!(
            request.last().contains("background agent"),
            "{}",
            request.last()
        );
    }

    pub(super) fn an_exact_fork_has_its_parents_conversation_where_the_agent_cannot_fork(
        agent: Agent,
    ) {
        let Some(request) = forked(agent, "exact") else {
            return;
        };
        let text = request.text();
        assert!(text.contains("<inherited_context>"), "{text}");
    }

    pub(super) fn a_fork_knows_what_its_parent_has_read(agent: Agent) {
        let Some(request) = forked(agent, "graduated") else {
            return;
        };
        let text = request.text();
        assert!(text.contains("<inherited_context>"), "{text}");
        assert!(text.contains("notes.md"), "{text}");
    }

    /// What the model of a fork is asked first.
    fn forked(agent: Agent, preset: &str) -> Option<Recorded> {
        let task = json!({"description": "look", "prompt": "Say what you inherited",
            "agent": "general", "fork": true});
        let launch = Reply::call(agent.our_tool("task"), task);
        let script = |home: &crate::home::Home| {
            Script::new()
                .rule(
                    asked("the vault is under the oak"),
                    Reply::text("All is told."),
                )
                .rule(
                    asked("Say what you inherited"),
                    Reply::text("the vault is under the oak"),
                )
                .rule(
                    asked("Remember SESAME"),
                    agent.reads(&home.path("project/notes.md")),
                )
                .rule(printed("the plants are dry"), launch)
                .rule(
                    When::always().tools(true).contains("Remember SESAME"),
                    Reply::text("I wait."),
                )
        };
        let world = World::new(agent, script)?;
        world.set(&format!("[fork]\npreset = \"{preset}\"\n"));
        world.home.write("project/notes.md", "the plants are dry\n");
        let id = world.launch_free("Remember SESAME");
        assert_eq!(world.result(&id), "All is told.");
        let request = world.until_asked("Say what you inherited");
        let text = request.text();
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| unreachable!("no {words}: {text}"))
        };
        assert!(at("SESAME") < at("Say what you inherited"), "{text}");
        // Gemini CLI does not say what it has read.
        if agent != Agent::Gemini {
            let read = at("the plants are dry");
            assert!(at("SESAME") < read, "{text}");
            assert!(read < at("Say what you inherited"), "{text}");
        }
        assert_eq!(text.matches("SESAME").count(), 1, "{text}");
        Some(request)
    }
}
