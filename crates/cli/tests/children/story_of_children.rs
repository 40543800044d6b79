//! What users do with children of other vendors: one table of agents and stories.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rustix::process::Pid;
use serde_json::json;

use crate::{
    agent::Agent,
    processes,
    world::{World, asked, printed},
};

told! {
    a_task_and_a_follow_up
    a_fork_knows_what_the_parent_found
    a_question_is_asked_and_answered
    what_is_refused_is_not_done
    a_message_reaches_a_child_at_work
    a_child_is_cancelled_and_its_processes_go
    two_at_once_have_their_own_answers
    a_worker_that_is_killed_before_the_first_answer
    a_worker_that_is_killed_in_a_tool
    an_adapter_that_is_killed_in_a_tool
    a_worker_that_is_killed_while_it_asks
    a_message_survives_a_kill
    nothing_secret_is_on_a_command_line
    nothing_but_its_model_is_reached
}

told! {
    for (claude Claude, claude_alone ClaudeAlone, codex Codex):
    a_message_is_told_in_the_middle_of_a_turn
}

/// The user's settings of an agent are for its own sessions.
#[rstest::rstest]
fn what_a_user_has_allowed_an_agent_is_asked_about_here(
    #[values(Agent::Claude, Agent::ClaudeAlone, Agent::Gemini, Agent::OpenCode)] agent: Agent,
) {
    let Some(world) = World::new(agent, tell::makes_something(agent)) else {
        return;
    };
    let all = json!({"permissions": {"allow": ["Bash", "Bash(echo *)", "Edit", "Write"]}});
    world
        .home
        .write("home/.claude/settings.json", &all.to_string());
    let file = "home/.config/opencode/opencode.json";
    let known = std::fs::read_to_string(world.home.path(file)).expect("settings");
    let mut settings: serde_json::Value = serde_json::from_str(&known).expect("JSON");
    let all = json!({"*": "allow", "bash": {"*": "allow", "echo *": "allow"}, "edit": "allow"});
    settings["permission"] = all.clone();
    settings["agent"] = json!({"build": {"permission": all}, "plan": {"permission": all}});
    world.home.write(file, &settings.to_string());
    let file = "home/.gemini/settings.json";
    let known = std::fs::read_to_string(world.home.path(file)).expect("settings");
    let mut settings: serde_json::Value = serde_json::from_str(&known).expect("JSON");
    settings["tools"] = json!({"allowed": ["run_shell_command", "write_file"]});
    world.home.write(file, &settings.to_string());
    let id = world.launch("Make it");
    let question = world.question(&id);
    world.reject(&id, &question);
    assert_eq!(world.result(&id), "I may not.");
    assert!(!tell::made(&world));
    let explore = ["--agent", "explore", "--permission", "yolo", "Make it"];
    let id = world.launched(&explore);
    assert_eq!(world.result(&id), "I may not.");
    assert!(!tell::made(&world), "it may only read");
    let requests = world.requests();
    let last = requests.last().expect("a request").last();
    // In our words, or in those of Claude Code's adapter, of OpenCode and of Gemini CLI.
    let is_refused = [
        "may only read",
        "User refused permission",
        "rejected permission",
        "not found in registry",
    ];
    assert!(
        is_refused.iter().any(|words| last.contains(words)),
        "{last}"
    );
}

/// As for the built-in agent.
#[test]
fn a_fork_from_the_shell_has_the_newest_conversation() {
    let script = |_: &_| {
        Script::new()
            .rule(When::always().model("parent"), Reply::text("I see."))
            .rule(asked("Say what you inherited"), Reply::text("SESAME"))
    };
    let Some(world) = World::new(Agent::Codex, script) else {
        return;
    };
    world.conversation("A hint for whoever is asked: SESAME");
    let id = world.launched(&["--fork", "Say what you inherited"]);
    assert_eq!(world.result(&id), "SESAME");
    let text = world.until_asked("Say what you inherited").text();
    assert_eq!(text.matches("SESAME").count(), 1, "{text}");
}

/// In our sandbox Codex asks by a hook: what only reads is free, and a profile that only reads does
/// nothing else.
#[test]
fn codex_explores_and_changes_nothing() {
    let runs = |command| Agent::Codex.runs_in_our_sandbox(command);
    let script = |_: &_| {
        Script::new()
            .rule(asked("may only read"), Reply::text("I have looked."))
            .rule(asked("the plants are dry"), runs("echo wet > notes.md"))
            .rule(asked("Look around"), runs("cat notes.md | head -1"))
    };
    let Some(world) = World::new(Agent::Codex, script) else {
        return;
    };
    world.home.write("project/notes.md", "the plants are dry\n");
    let arguments = ["--agent", "explore", "--permission", "ask", "Look around"];
    let id = world.launched(&arguments);
    assert_eq!(world.result(&id), "I have looked.");
    let notes = std::fs::read_to_string(world.home.path("project/notes.md"));
    assert_eq!(notes.expect("read"), "the plants are dry\n");
}

/// What a rule forbids is not asked, and not done, whatever the mode is.
#[test]
fn codex_is_held_to_rules() {
    let runs = |command| Agent::Codex.runs_in_our_sandbox(command);
    let script = |_: &_| {
        Script::new()
            .rule(asked("the rule"), Reply::text("I may not."))
            .rule(asked("Push it"), runs("touch pushed && git push"))
    };
    let Some(world) = World::new(Agent::Codex, script) else {
        return;
    };
    let rules = "[permissions]\ndeny = [\"bash(git push*)\"]\n";
    world.home.write("project/asyncagents.toml", rules);
    let id = world.launch_free("Push it");
    assert_eq!(world.result(&id), "I may not.");
    assert!(!world.home.path("project/pushed").exists());
}

/// OpenCode talks to itself over a port of this machine: another user could run commands by it.
#[test]
fn nobody_else_talks_to_an_opencode() {
    let Some((world, _)) = World::at_work_for_ever(Agent::OpenCode, Script::new()) else {
        return;
    };
    let port = world.until("it listens", || {
        world.processes("opencode").into_iter().find_map(|pid| {
            let line = processes::command_line(pid);
            let (_, port) = line.split_once("--port")?;
            let digits = port.trim_matches(|c: char| !c.is_ascii_digit());
            digits.parse::<u16>().ok()
        })
    });
    for path in ["/session", "/permission"] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        BufReader::new(stream)
            .read_line(&mut answer)
            .expect("answered");
        assert!(answer.contains(" 401 "), "{path}: {answer}");
    }
}

/// What an agent does that others do not.
mod only {
    use super::*;

    /// It would allow all commands from then on, past the user's rules.
    #[test]
    fn goose_asks_about_each_command_also_after_always() {
        let agent = Agent::Goose;
        let script = |_: &_| {
            Script::new()
                .rule(printed("it-is-more"), Reply::text("Both are there."))
                .rule(printed("it-is-made"), agent.runs("echo it-is-more"))
                .rule(asked("Make both"), agent.runs("echo it-is-made"))
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let id = world.launch("Make both");
        let first = world.question(&id);
        world.answer(&id, &first, "always");
        let second = world.until("it asks again", || {
            let question = world.question(&id);
            (question != first).then_some(question)
        });
        world.permit(&id, &second);
        assert_eq!(world.result(&id), "Both are there.");
    }

    /// Nobody would be asked about what they do, and here not even their start is.
    #[test]
    fn goose_gets_no_sub_agents_of_its_own() {
        let script = |_: &_| {
            let work = json!({"instructions": "Do as I say"});
            Script::new()
                .rule(asked("Do as I say"), Reply::text("It is done."))
                .rule(asked("Delegate it"), Reply::call("delegate", work))
                .rule(
                    When::always().tools(true).contains("Delegate it"),
                    Reply::text("I may not."),
                )
        };
        let Some(world) = World::new(Agent::Goose, script) else {
            return;
        };
        let id = world.launch_free("Delegate it");
        assert_eq!(world.result(&id), "I may not.");
        assert_eq!(world.times_asked("Do as I say"), 0);
    }
}

mod tell {
    use super::*;

    pub(super) fn a_task_and_a_follow_up(agent: Agent) {
        let script = |_: &_| {
            Script::new()
                .rule(asked("And its opposite"), Reply::text("It is orange."))
                .rule(asked("Name the colour"), Reply::text("It is blue."))
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let id = world.launch("Name the colour");
        assert_eq!(world.result(&id), "It is blue.");
        let done = world.asyncagents(&["resume", &id, "And its opposite"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        world.until_asked("And its opposite");
        let result = world.until("the next answer", || {
            let task = world.task(&id);
            let answer = task["answer"].as_str().unwrap_or_default().to_owned();
            (task["status"] == "completed" && answer.contains("orange")).then_some(answer)
        });
        assert_eq!(result, "It is orange.");
        // It knows what was said before, and was told each thing once.
        let last = world.until_asked("And its opposite");
        assert!(last.text().contains("It is blue."), "{}", last.text());
        assert_eq!(world.times_asked("Name the colour"), 1);
        assert_eq!(world.times_asked("And its opposite"), 1);
    }

    pub(super) fn a_fork_knows_what_the_parent_found(agent: Agent) {
        let task = json!({"description": "look", "prompt": "Say what you inherited", "fork": true,
            "agent": "general", "host": agent.name()});
        let parent = || When::always().model("parent");
        let script = |_: &_| {
            Script::new()
                .rule(
                    parent().last("the vault is under the oak"),
                    Reply::text("All is told."),
                )
                .rule(parent().last("is queued"), Reply::text("I wait."))
                .rule(
                    parent().last("Where is the vault"),
                    Reply::call("asyncagents_task", task),
                )
                .rule(
                    asked("Say what you inherited"),
                    Reply::text("the vault is under the oak"),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let prompt = "Where is the vault? A hint for whoever is asked: SESAME";
        let done = world.asyncagents(&["run", "--permission", "yolo", prompt]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.printed.contains("All is told."), "{done:?}");
        let request = world.until_asked("Say what you inherited");
        let text = request.text();
        let at = |words: &str| text.find(words).expect(words);
        assert!(at("SESAME") < at("Say what you inherited"), "{text}");
        assert_eq!(text.matches("SESAME").count(), 1, "{text}");
        assert_eq!(world.times_asked("Say what you inherited"), 1);
    }

    /// What the story's command leaves behind.
    pub(super) fn made(world: &World) -> bool {
        Path::new(&world.home.path("project/made.txt")).exists()
    }

    pub(super) fn makes_something(agent: Agent) -> impl FnOnce(&crate::home::Home) -> Script {
        move |_| {
            Script::new()
                .rule(printed("it-is-made"), Reply::text("It is there."))
                .rule(
                    asked("Make it"),
                    // Who is refused may be told which command that was.
                    agent.runs_in_our_sandbox("echo made > made.txt && printf 'it-is-%s' made"),
                )
                .rule(
                    When::always().tools(true).contains("Make it"),
                    Reply::text("I may not."),
                )
        }
    }

    pub(super) fn a_question_is_asked_and_answered(agent: Agent) {
        let Some(world) = World::new(agent, makes_something(agent)) else {
            return;
        };
        let id = world.launch("Make it");
        let question = world.question(&id);
        assert!(!made(&world), "nobody has allowed it");
        world.permit(&id, &question);
        assert_eq!(world.result(&id), "It is there.");
        assert!(made(&world));
    }

    pub(super) fn what_is_refused_is_not_done(agent: Agent) {
        let Some(world) = World::new(agent, makes_something(agent)) else {
            return;
        };
        let id = world.launch("Make it");
        let question = world.question(&id);
        world.reject(&id, &question);
        assert_eq!(world.result(&id), "I may not.");
        assert!(!made(&world));
    }

    pub(super) fn a_message_reaches_a_child_at_work(agent: Agent) {
        let gate = Gate::closed();
        let held = gate.clone();
        let script = move |home: &crate::home::Home| {
            Script::new()
                .rule(asked("Use the red one"), Reply::text("I used the red one."))
                .rule(
                    asked("Read and go on"),
                    agent.reads(&home.path("project/notes.md")).behind(&held),
                )
                .rule(
                    When::always().tools(true).contains("Use the red one"),
                    Reply::text("red"),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/notes.md", "notes");
        let id = world.launch("Read and go on");
        world.until_asked("Read and go on");
        let done = world.asyncagents(&["message", &id, "Use the red one"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        gate.open();
        // Some are asked anew, with that behind them, when they have answered to it.
        let result = world.result(&id);
        assert!(
            ["I used the red one.", "red"].contains(&&*result),
            "{result}"
        );
        // An agent may be asked anew when it is told something, but it is told once.
        let requests = world.requests();
        let last = requests.last().expect("a request").text();
        assert_eq!(last.matches("Use the red one").count(), 1, "{last}");
        assert_eq!(last.matches("Read and go on").count(), 1, "{last}");
    }

    /// It reads until it is told something: one that is told only after the turn reads for ever.
    pub(super) fn a_message_is_told_in_the_middle_of_a_turn(agent: Agent) {
        let script = |home: &crate::home::Home| {
            let always = || When::always().tools(true);
            Script::new()
                .rule(
                    always().contains("Use the red one"),
                    Reply::text("It is red."),
                )
                .rule(
                    always().contains("Read and read"),
                    agent.reads(&home.path("project/notes.md")),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/notes.md", "notes");
        let id = world.launch_free("Read and read");
        world.until_asked("Read and read");
        let done = world.asyncagents(&["message", &id, "Use the red one"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(world.result(&id), "It is red.");
    }

    pub(super) fn a_child_is_cancelled_and_its_processes_go(agent: Agent) {
        let Some((world, id)) = World::at_work_for_ever(agent, Script::new()) else {
            return;
        };
        let done = world.asyncagents(&["cancel", &id]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(world.ended(&id)["status"], "cancelled");
        world.until_gone("until [ -e never ]");
        world.until_gone(agent.process());
    }

    pub(super) fn two_at_once_have_their_own_answers(agent: Agent) {
        let gate = Gate::closed();
        let held = gate.clone();
        let script = move |_: &_| {
            Script::new()
                .rule(asked("Name the first"), Reply::text("Ada").behind(&held))
                .rule(asked("Name the second"), Reply::text("Grace").behind(&held))
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let (first, second) = (
            world.launch("Name the first"),
            world.launch("Name the second"),
        );
        // Neither has an answer before both are at work.
        for prompt in ["Name the first", "Name the second"] {
            world.until_asked(prompt);
        }
        gate.open();
        assert_eq!(world.result(&second), "Grace");
        assert_eq!(world.result(&first), "Ada");
        assert_eq!(world.times_asked("Name the first"), 1);
        assert_eq!(world.times_asked("Name the second"), 1);
    }

    pub(super) fn a_worker_that_is_killed_before_the_first_answer(agent: Agent) {
        let gate = Gate::closed();
        let held = gate.clone();
        let script = move |_: &_| {
            Script::new().rule(
                When::always().tools(true).contains("Name the colour"),
                Reply::text("It is blue.").behind(&held),
            )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let id = world.launch("Name the colour");
        world.until_asked("Name the colour");
        world.kill(" worker");
        // What the worker had started goes with it.
        world.until_gone(agent.process());
        gate.open();
        assert_eq!(world.result(&id), "It is blue.");
    }

    pub(super) fn a_worker_that_is_killed_in_a_tool(agent: Agent) {
        goes_on_after(agent, " worker");
    }

    pub(super) fn an_adapter_that_is_killed_in_a_tool(agent: Agent) {
        goes_on_after(agent, agent.process());
    }

    /// It is told that it was interrupted, once, and does not begin anew.
    fn goes_on_after(agent: Agent, killed: &str) {
        let goes_on = Script::new().rule(asked("interrupted"), Reply::text("I went on."));
        let Some((world, id)) = World::at_work_for_ever(agent, goes_on) else {
            return;
        };
        world.kill(killed);
        world.until_gone("until [ -e never ]");
        assert_eq!(world.result(&id), "I went on.");
        // Some agents keep nothing of an answer that was cut off, so that the task is new to the model
        // once more, but it was given once.
        let last = world.until_asked("interrupted").text();
        assert_eq!(last.matches("Work for ever").count(), 1, "{last}");
        let begun = std::fs::read_to_string(world.home.path("project/begun.txt"));
        assert_eq!(begun.expect("read"), "begun\n");
    }

    /// The question is asked again, as nothing was done.
    pub(super) fn a_worker_that_is_killed_while_it_asks(agent: Agent) {
        // That nobody could be asked may be told before the agent has ended, with the command: that is not
        // what it prints.
        let make = "echo made >> made.txt && printf it-is-%s made";
        let script = |_: &_| {
            Script::new()
                .rule(printed("it-is-made"), Reply::text("It is there."))
                .rule(asked("interrupted"), agent.runs_in_our_sandbox(make))
                .rule(asked("Make it"), agent.runs_in_our_sandbox(make))
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let id = world.launch("Make it");
        let first = world.question(&id);
        world.kill(" worker");
        world.until_gone(agent.process());
        let second = world.until("it asks again, and only that", || {
            let open = world.questions(&id);
            (open.len() == 1 && open[0] != first).then(|| open[0].clone())
        });
        world.permit(&id, &second);
        assert_eq!(world.result(&id), "It is there.");
        let made = std::fs::read_to_string(world.home.path("project/made.txt"));
        assert_eq!(made.expect("read"), "made\n");
    }

    /// Whoever has sent it was told that it was taken.
    pub(super) fn a_message_survives_a_kill(agent: Agent) {
        let goes_on = Script::new()
            .rule(asked("Use the red one"), Reply::text("I used the red one."))
            .rule(asked("interrupted"), Reply::text("I went on."));
        let Some((world, id)) = World::at_work_for_ever(agent, goes_on) else {
            return;
        };
        let done = world.asyncagents(&["message", &id, "Use the red one"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        world.kill(" worker");
        world.until_gone(agent.process());
        world.result(&id);
        let requests = world.requests();
        let last = requests.last().expect("a request").text();
        assert_eq!(last.matches("Use the red one").count(), 1, "{last}");
        assert_eq!(last.matches("Work for ever").count(), 1, "{last}");
    }

    /// Every user of the machine can read them.
    pub(super) fn nothing_secret_is_on_a_command_line(agent: Agent) {
        let Some((world, _)) = World::at_work_for_ever(agent, Script::new()) else {
            return;
        };
        let all = world.processes("");
        let proxy = |pid: &Pid| processes::variable(*pid, "HTTP_PROXY");
        let address = all.iter().find_map(proxy).expect("a proxy");
        let (_, login) = address.split_once("://").expect("an address");
        let (login, _) = login.split_once('@').expect("a login");
        let (_, password) = login.split_once(':').expect("a password");
        assert!(password.len() > 20, "{password}");
        for pid in all {
            let line = processes::command_line(pid);
            assert!(!line.contains(password), "{line}");
        }
    }

    /// The sandbox holds for what the agent runs, and for the agent.
    pub(super) fn nothing_but_its_model_is_reached(agent: Agent) {
        let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        outside.set_nonblocking(true).expect("set");
        let address = outside.local_addr().expect("bound");
        let (ip, port) = (address.ip(), address.port());
        // Whoever only sees the command has not seen what it prints.
        let command = format!(
            "(echo hi > /dev/tcp/{ip}/{port}) 2>/dev/null && printf \"it-%s\" was-reached || \
             printf \"it-%s\" is-shut"
        );
        let by_hand = command.clone();
        let script = move |_: &_| {
            Script::new()
                .rule(printed("it-is-shut"), Reply::text("It is shut."))
                .rule(printed("it-was-reached"), Reply::text("It is open."))
                .rule(
                    asked("Try the door"),
                    agent.runs_in_our_sandbox(&format!("bash -c '{command}'")),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        let id = world.launch_free("Try the door");
        assert_eq!(world.result(&id), "It is shut.");
        assert!(outside.accept().is_err(), "nobody came");
        // The door is one that opens.
        let done = Command::new("bash").args(["-c", &by_hand]).output();
        assert_eq!(done.expect("runs").stdout, b"it-was-reached");
    }
}
