//! What children cost.

use asyncagents_scripted_model::{Reply, Script};

use crate::{
    agent::Agent,
    world::{World, asked, printed},
};

told! {
    what_a_turn_with_a_tool_costs_is_what_its_model_said
}

mod tell {
    use super::*;

    pub(super) fn what_a_turn_with_a_tool_costs_is_what_its_model_said(agent: Agent) {
        const USED: (u64, u64, u64) = (20_000, 5_000, 700);
        let (input, cached, output) = USED;
        let script = |home: &crate::home::Home| {
            let notes = home.path("project/notes.md");
            Script::new()
                .rule(
                    printed("the plants are dry"),
                    Reply::text("Water them.").usage(input, cached, output),
                )
                .rule(
                    asked("Read the notes"),
                    agent.reads(&notes).usage(input, cached, output),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/notes.md", "the plants are dry\n");
        let id = world.launch_free("Read the notes");
        assert_eq!(world.result(&id), "Water them.");
        let progress = &world.task(&id)["progress"];
        assert_eq!(world.requests().len(), 2);
        assert_eq!(
            progress["cost_usd"].as_f64(),
            agent.cost(2, USED),
            "{progress}"
        );
        // These two say only how many tokens the last answer of a turn took.
        let counted = match agent {
            Agent::Goose | Agent::OpenCode => 1,
            _ => 2,
        };
        assert_eq!(progress["tokens"], counted * (input + output), "{progress}");
        assert_eq!(progress["turns"], 2, "{progress}");
    }
}
