//! The user's rules, as they are when a child begins.

use std::fs;

use asyncagents_scripted_model::{Reply, Script, When};

use crate::{
    agent::Agent,
    world::{World, asked},
};

told! {
    for (claude Claude, claude_alone ClaudeAlone, codex Codex):
    a_rule_that_is_written_later_counts_for_the_next_task
}

told! {
    a_rule_about_reading_holds
}

told! {
    variables_of_a_project_are_not_in_the_environment_of_commands
}

// Codex has a sandbox of its own then, which lets it read everything.
told! {
    for (claude Claude, claude_alone ClaudeAlone):
    without_a_sandbox_nothing_outside_of_the_folder_is_read_unasked
}

mod tell {
    use super::*;

    const SETTINGS: &str = "home/.config/asyncagents/asyncagents.toml";

    pub(super) fn a_rule_that_is_written_later_counts_for_the_next_task(agent: Agent) {
        let make = agent.runs_in_our_sandbox("touch made.txt");
        let script = |_: &_| {
            Script::new().rule(asked("Make it"), make).rule(
                When::always().tools(true).contains("Make it"),
                Reply::text("So be it."),
            )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let made = world.home.path("project/made.txt");
        let settings = fs::read_to_string(world.home.path(SETTINGS)).expect("settings");
        let with = |rules: &str| settings.replace("allow = [\"bash(cat *)\"]", rules);
        world
            .home
            .write(SETTINGS, &with("allow = [\"bash(touch *)\"]"));
        let id = world.launch("Make it");
        assert_eq!(world.result(&id), "So be it.");
        assert!(made.exists());
        fs::remove_file(&made).expect("removed");
        world
            .home
            .write(SETTINGS, &with("deny = [\"bash(touch *)\"]"));
        let id = world.launch("Make it");
        assert_eq!(world.result(&id), "So be it.");
        assert!(!made.exists());
    }

    pub(super) fn a_rule_about_reading_holds(agent: Agent) {
        let script = |home: &crate::home::Home| {
            let (secret, open) = (home.path("project/.env"), home.path("project/notes.txt"));
            Script::new()
                .rule(asked("Read the notes"), agent.reads(&open))
                .rule(asked("Read the secret"), agent.reads(&secret))
                .rule(
                    asked("Read it by a command"),
                    agent.runs_in_our_sandbox("cat .env"),
                )
                .rule(
                    When::always().tools(true).contains("Read "),
                    Reply::text("That is what there is."),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let settings = fs::read_to_string(world.home.path(SETTINGS)).expect("settings");
        let rules = "deny = [\"read(.env)\", \"bash(cat *.env)\"]";
        let settings = settings.replace("allow = [\"bash(cat *)\"]", rules);
        world.home.write(SETTINGS, &settings);
        world.home.write("project/.env", "KEY=sesame\n");
        world.home.write("project/notes.txt", "Mind the gap\n");
        for prompt in ["Read the secret", "Read it by a command"] {
            let id = world.launch(prompt);
            assert_eq!(world.result(&id), "That is what there is.");
        }
        let id = world.launch("Read the notes");
        if matches!(agent, Agent::Codex | Agent::Goose) {
            // They read by commands, and nobody can tell which files a command reads.
            let question = world.question(&id);
            world.permit(&id, &question);
        }
        assert_eq!(world.result(&id), "That is what there is.");
        let requests = world.requests();
        let is_told = |text: &str| requests.iter().any(|request| request.text().contains(text));
        assert!(is_told("Mind the gap"));
        assert!(!is_told("sesame"));
    }

    /// They could decide what a command does that the user has allowed.
    pub(super) fn variables_of_a_project_are_not_in_the_environment_of_commands(agent: Agent) {
        let script = |_: &_| {
            Script::new()
                .rule(
                    asked("Say what is set"),
                    agent
                        .runs_in_our_sandbox("echo \"[it is: ${PAGER_OF_THIS-unset}]\" > said.txt"),
                )
                .rule(
                    When::always().tools(true).contains("Say what is set"),
                    Reply::text("It is said."),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/.env", "PAGER_OF_THIS=evil\n");
        let id = world.launch_free("Say what is set");
        assert_eq!(world.result(&id), "It is said.");
        let said = fs::read_to_string(world.home.path("project/said.txt"));
        assert_eq!(said.expect("it is there"), "[it is: unset]\n");
    }

    pub(super) fn without_a_sandbox_nothing_outside_of_the_folder_is_read_unasked(agent: Agent) {
        let script = |home: &crate::home::Home| {
            let secret = home.path("home/.ssh/id_rsa");
            let reads = format!("cat {}", secret.display());
            Script::new()
                .rule(asked("Read the key"), agent.runs(&reads))
                .rule(
                    When::always().tools(true).contains("Read the key"),
                    Reply::text("I may not."),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let settings = fs::read_to_string(world.home.path(SETTINGS)).expect("settings");
        let settings = settings.replace("allow = [\"bash(cat *)\"]", "");
        let settings = format!("{settings}[hosts.{}]\nsandbox = false\n", agent.name());
        world.home.write(SETTINGS, &settings);
        world.home.write("home/.ssh/id_rsa", "open sesame\n");
        let id = world.launch("Read the key");
        let question = world.question(&id);
        let list = world.asyncagents(&["list"]).printed;
        assert!(list.contains("unsandboxed"), "{list}");
        world.reject(&id, &question);
        assert_eq!(world.result(&id), "I may not.");
        let requests = world.requests();
        let is_told = |text: String| text.contains("open sesame");
        assert!(!requests.iter().any(|request| is_told(request.text())));
    }
}
