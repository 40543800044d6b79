//! `asyncagents run` and `asyncagents demo`: the real binary against a scripted model over
//! real HTTP. Only the model is not real.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Fault, ModelServer, Recorded, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "run/answering.rs"]
mod answering;
#[path = "run/approving.rs"]
mod approving;
#[path = "run/commands.rs"]
mod commands;
#[path = "run/encrypting.rs"]
mod encrypting;
#[path = "run/pruning.rs"]
mod pruning;
#[path = "run/seeing.rs"]
mod seeing;
#[path = "run/terminal.rs"]
mod terminal;
#[path = "run/trusting.rs"]
mod trusting;
#[path = "run/typing.rs"]
mod typing;

/// A home and a workspace of its own, and a model that plays a script.
struct Home {
    folder: TempDir,
    model: ModelServer,
    runtime: tokio::runtime::Runtime,
}

impl Home {
    fn new(script: Script) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let model = runtime
            .block_on(ModelServer::start(script))
            .expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["work", "home"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        Self {
            folder,
            model,
            runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        let config = format!("providers.test.base_url={}", self.model.url());
        command
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("ASYNCAGENTS_MODEL", "test/model")
            .env("ASYNCAGENTS_PERMISSIONS_MODE", "yolo")
            .env("ASYNCAGENTS_WORKER_LEASE", "600ms")
            .env("ASYNCAGENTS_WORKER_IDLE", "1s")
            .args(["-c", &config, "-c", "providers.test.wire=anthropic"])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("runs")
    }

    /// Runs something that must succeed; returns what it answers.
    fn ask(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        text(&output.stdout)
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("starts")
    }

    /// Waits until the model has got such requests.
    fn wait_for(&self, what: impl Fn(&[Recorded]) -> bool) {
        let patience = Duration::from_secs(30);
        let waited = async { tokio::time::timeout(patience, self.model.wait_for(what)).await };
        let waited = self.runtime.block_on(waited);
        waited.expect("the model never gets that request");
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Ends a process as no process can prevent.
fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("gone");
}

#[test]
fn the_demo_tells_the_whole_story() {
    let home = tempfile::tempdir().expect("a folder");
    let kept = home.path().join("kept");
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .args(["demo", "--keep"])
        .arg(&kept)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    let (said, shown) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("The shop is ready."), "{said}");
    assert!(shown.contains("resumed"), "one is resumed: {shown}");
    assert!(shown.contains("⊘"), "one is cancelled: {shown}");
    assert!(shown.contains("with 4 background tasks"), "{shown}");
    for command in ["asyncagents run", "asyncagents task", "asyncagents config"] {
        assert!(shown.contains(command), "{command}: {shown}");
    }

    // What was done is on the disk.
    let file = |name: &str| fs::read_to_string(kept.join("shop").join(name)).expect("a file");
    assert!(file("cart.sh").contains("(100 - discount) / 100"));
    assert!(file("test.sh").contains("half price"));
    assert!(file("CHANGES.md").contains("100 instead of 90"));
    let tests = Command::new("sh")
        .arg("test.sh")
        .current_dir(kept.join("shop"))
        .output()
        .expect("runs");
    assert!(tests.status.success(), "{tests:?}");

    // What the model got: a fork carries the parent's tool output, a fresh child nothing.
    let requests = fs::read_to_string(kept.join("requests.jsonl")).expect("requests");
    let requests: Vec<Value> = requests
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let first_of = |prompt: &str| {
        let wanted = json!(prompt).to_string();
        let wanted = wanted.trim_matches('"');
        let is_it = |request: &&Value| {
            let messages = request["messages"].as_array().expect("messages");
            messages.len() == 1 && messages[0].to_string().contains(wanted)
        };
        requests.iter().find(is_it).expect(prompt).to_string()
    };
    for forked in [
        "Fix the discount.\nWhat the test",
        "Write the release notes.\nOne line",
        "Measure a day of orders.\nRun",
    ] {
        let request = first_of(forked);
        assert!(request.contains("<inherited_context>"), "{forked}");
        assert!(request.contains("expected 90, got 100"), "{forked}");
        assert!(request.contains("# What an order costs"), "{forked}");
    }
    let fresh = first_of("Give a second opinion.\nLook");
    assert!(!fresh.contains("expected 90, got 100"));
    assert!(!fresh.contains("What an order costs"));
    // The resumed child still has its first answer.
    let resumed = requests.iter().map(Value::to_string);
    let mut resumed = resumed
        .filter(|request| request.contains("Add a check for half price to test.sh and run it."));
    assert!(resumed.any(|request| request.contains("Fixed: cart.sh now applies the discount")));
    // Every end was told once.
    let last = requests
        .iter()
        .map(Value::to_string)
        .max_by_key(String::len);
    let last = last.expect("a request");
    for told in [
        "Fix the discount",
        "Write the release notes",
        "Second opinion",
    ] {
        let told = format!("Agent \\\"{told}\\\" finished");
        assert_eq!(last.matches(&told).count(), 1, "{told}");
    }
    assert_eq!(last.matches("cancelled after").count(), 1);
    assert_eq!(last.matches("Resume #1 completed").count(), 1);
}

#[test]
fn the_demo_keeps_nothing_and_leaves_nothing_running() {
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .arg("demo")
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let left: Vec<PathBuf> = fs::read_dir(home.path())
        .expect("read")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(processes_with("sleep 600", home.path()).is_empty());
}

/// The processes whose command line has this and whose folder is below that.
fn processes_with(what: &str, below: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").expect("processes").flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let folder = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        if line.contains(what) && folder.starts_with(below) {
            found.push(line);
        }
    }
    found
}

/// Appends to a file: running it twice would show.
fn append(path: &str, and_then: &str) -> Reply {
    Reply::call(
        "bash",
        json!({"command": format!("echo done >> {path}{and_then}")}),
    )
}

#[test]
fn killed_while_the_model_answers_and_continued() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(When::turn(1).times(1), Reply::fault(Fault::Hang))
        .rule(When::turn(1), append("log", ""))
        .rule(When::turn(2), Reply::text("Twice, as wanted."));
    let home = Home::new(script);
    let child = home.start(&["run", "Append twice"]);
    home.wait_for(|requests| requests.len() == 2);
    kill(child);
    assert_eq!(home.ask(&["run", "--continue"]), "Twice, as wanted.");
    assert_eq!(home.read("log"), "done\ndone\n");
}

#[test]
fn killed_while_a_tool_runs_and_continued() {
    let script = Script::new()
        .rule(
            When::turn(0),
            append("log", "; echo begun > begun; sleep 60"),
        )
        .rule(
            When::turn(1).last("Interrupted: the process ended while this tool was running"),
            Reply::text("It ran once; I leave it at that."),
        );
    let home = Home::new(script);
    let child = home.start(&["run", "Append once"]);
    home.until("the tool begins", || home.path("begun").exists());
    kill(child);
    home.until("nothing of it is left", || {
        processes_with("sleep 60", home.folder.path()).is_empty()
    });
    assert_eq!(
        home.ask(&["run", "--continue"]),
        "It ran once; I leave it at that."
    );
    assert_eq!(home.read("log"), "done\n", "it was not run again");
}

#[test]
fn killed_between_steps_and_continued() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(
            When::turn(1).times(1),
            Reply::status(429).retry_after("60").message("later"),
        )
        .rule(When::turn(1), append("log", ""))
        .rule(When::turn(2), Reply::text("Done."));
    let home = Home::new(script);
    let child = home.start(&["run", "Append twice"]);
    // The result is saved, nothing is running, and nothing is being asked.
    home.wait_for(|requests| requests.len() == 2 && requests[1].status == 429);
    kill(child);
    assert_eq!(home.ask(&["run", "--continue"]), "Done.");
    assert_eq!(home.read("log"), "done\ndone\n");
    let nothing = home.run(&["run", "--continue"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("has nothing left to do; say what to do next"));
}

#[test]
fn killed_with_children_at_work_and_continued() {
    let launch = |n: usize| json!({"description": format!("child {n}"), "prompt": format!("Child:\n{n}"), "agent": "general", "fork": n == 1});
    let script = Script::new()
        .rule(When::turn(0).first("Child:\n"), append("log", ""))
        .rule(
            When::turn(1).first("Child:\n").times(3),
            Reply::fault(Fault::Hang),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("child done"))
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch(1))
                .and_call("asyncagents_task", launch(2))
                .and_call("asyncagents_task", launch(3)),
        )
        .rule(
            When::always().contains("All 3 tasks finished"),
            Reply::text("All three."),
        )
        .rule(When::always(), Reply::text("waiting"));
    let home = Home::new(script);
    let child = home.start(&["run", "Three children"]);
    let hang = |requests: &[Recorded]| {
        let of_children = requests
            .iter()
            .filter(|request| request.text().contains("Child:\n"));
        of_children.filter(|request| request.turn() == 1).count() == 3
    };
    home.wait_for(hang);
    kill(child);
    let answer = home.ask(&["run", "--continue"]);
    assert!(answer.ends_with("All three."), "{answer}");
    assert_eq!(
        home.read("log"),
        "done\ndone\ndone\n",
        "each child appended once"
    );
    let last = home
        .model
        .requests()
        .into_iter()
        .max_by_key(|request| request.turn());
    let told = last.expect("a request").text();
    for n in 1..=3 {
        let notice = format!("Agent \"child {n}\" finished");
        assert_eq!(told.matches(&notice).count(), 1, "{told}");
    }
}

#[test]
fn a_session_goes_on_with_what_it_knows() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("read", json!({"path": "a.txt"})))
        .rule(When::turn(1), Reply::text("It says blue."))
        .rule(When::turn(2), Reply::text("Blue, as I said."));
    let home = Home::new(script);
    fs::write(home.path("a.txt"), "blue\n").expect("written");
    assert_eq!(home.ask(&["run", "Which colour?"]), "It says blue.");
    assert_eq!(
        home.ask(&["run", "--continue", "Which again?"]),
        "Blue, as I said."
    );
    let last = home.model.requests().pop().expect("a request");
    assert!(last.text().contains("blue"));
}

#[test]
fn json_tells_everything_in_lines() {
    let launch = json!({"description": "child", "prompt": "Child:\nx", "agent": "explore"});
    let script = Script::new()
        .rule(
            When::always().first("Child:\n"),
            Reply::text("child done").usage(50, 0, 5),
        )
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch).usage(100, 0, 10),
        )
        .rule(When::always(), Reply::text("ok").usage(200, 100, 20));
    let home = Home::new(script);
    let output = home.ask(&["run", "--json", "Delegate"]);
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(kinds.first(), Some(&"session"));
    assert_eq!(kinds.last(), Some(&"end"));
    assert!(
        kinds.contains(&"tool") && kinds.contains(&"told"),
        "{kinds:?}"
    );
    let end = lines.last().expect("an end");
    assert_eq!(end["answer"], "ok");
    assert_eq!(end["error"], Value::Null);
    assert_eq!(end["tasks"].as_array().map(Vec::len), Some(1));
    // The sum over the tree is what the model has counted.
    let of_lead = home.model.requests().len() as u64 - 1;
    assert_eq!(end["tokens"], 110 + 55 + (of_lead - 1) * 220);
}

#[test]
fn without_waiting_the_tasks_go_on_in_a_worker() {
    let launch = json!({"description": "child", "prompt": "Child:\nx", "agent": "general"});
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call(
                "bash",
                json!({"command": "while [ ! -e go ]; do sleep 0.02; done; echo done >> log"}),
            ),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("child done"))
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(When::turn(1), Reply::text("Launched."))
        .rule(
            When::always().last("Agent \"child\""),
            Reply::text("I was told."),
        );
    let home = Home::new(script);
    let output = home.run(&["run", "--no-wait", "Delegate"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "Launched.");
    assert!(
        text(&output.stderr).contains("1 of them go on"),
        "{output:?}"
    );
    fs::write(home.path("go"), "").expect("written");
    let tasks: Value = serde_json::from_str(&home.ask(&["list", "--json"])).expect("JSON");
    let id = tasks[0]["id"].as_str().expect("an ID").to_owned();
    let result = home.run(&["output", &id, "--block"]);
    assert_eq!(result.status.code(), Some(0), "{result:?}");
    // The lead hears of it when it goes on.
    home.until("the notice is there", || {
        let said = home.run(&["run", "--continue", "What came of it?"]);
        text(&said.stdout).contains("I was told.")
    });
}

#[test]
fn a_task_from_the_shell_is_done_by_the_built_in_agent() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(When::turn(1), Reply::text("Appended."));
    let home = Home::new(script);
    let answer = home.ask(&["task", "--follow", "Append"]);
    assert!(answer.contains("Appended."), "{answer}");
    assert_eq!(home.read("log"), "done\n");
}

#[test]
fn ctrl_c_once_stops_everything_in_good_order() {
    let launch = json!({"description": "child", "prompt": "Child:\nx", "agent": "general"});
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("bash", json!({"command": "echo > begun; sleep 60"})),
        )
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(When::always(), Reply::text("waiting"));
    let home = Home::new(script);
    let mut command = home.command(&["run", "Delegate"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("starts");
    home.until("the child's tool begins", || home.path("begun").exists());
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        text(&output.stderr).contains("stopping; Ctrl-C again ends at once"),
        "{output:?}"
    );
    let tasks: Value = serde_json::from_str(&home.ask(&["list", "--json"])).expect("JSON");
    assert_eq!(tasks[0]["status"], "cancelled");
    home.until("nothing of it is left", || {
        processes_with("sleep 60", home.folder.path()).is_empty()
    });
}

#[rstest]
#[case::no_prompt(&["run"], "say what to do: asyncagents run")]
#[case::empty_prompt(&["run", "  "], "the prompt is empty; say what to do")]
#[case::unknown_provider(&["run", "x", "--model", "nowhere/y"], "`nowhere/y` is not a known model")]
#[case::missing_key(&["run", "x", "--model", "anthropic/claude-sonnet-4-5"], "ANTHROPIC_API_KEY")]
#[case::no_model_at_all(&["-c", "model=auto", "run", "x"], "asyncagents demo")]
#[case::task_without_key(&["-c", "model=auto", "task", "x"], "ANTHROPIC_API_KEY")]
#[case::unknown_agent(&["run", "x", "--agent", "wizard"], "there is no agent wizard; there are explore, general, plan")]
#[case::unknown_session(&["run", "x", "--session", "ses_1"], "there is no session ses_1")]
#[case::nothing_to_continue(&["run", "--continue"], "this folder has no session to go on with")]
#[case::wrong_mode(&["run", "x", "--permission", "maybe"], "ask, auto-edit or yolo")]
#[case::wrong_address(&["-c", "providers.x.base_url=nowhere", "config"], "an address that begins with http:// or https://")]
#[case::wrong_wire(&["-c", "providers.x.wire=telegraph", "config"], "anthropic, responses or chat")]
#[case::provider_without_address(&["-c", "providers.x.key_env=X", "run", "x", "--model", "x/y"], "set providers.x.base_url")]
#[case::wrong_rule(&["-c", "permissions.allow=bash(", "config"], "rules look like")]
fn wrong_input_is_told_and_nothing_is_begun(#[case] args: &[&str], #[case] why: &str) {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("never")));
    let output = home.run(args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains(why), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(home.model.requests().is_empty());
}

#[test]
fn an_endpoint_that_is_not_there_is_named_without_its_secrets() {
    let home = Home::new(Script::new());
    let output = home
        .command(&["run", "x", "--model", "gone/model"])
        .env("GONE_KEY", "very-secret")
        .args([
            "-c",
            "providers.gone.base_url=http://user:pass@127.0.0.1:9/v1",
            "-c",
            "providers.gone.key_env=GONE_KEY",
        ])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("127.0.0.1:9"), "{said}");
    assert!(
        !said.contains("very-secret") && !said.contains("pass@"),
        "{said}"
    );
}

#[test]
fn a_project_cannot_loosen_what_protects_its_user() {
    let home = Home::new(Script::new());
    for (setting, key) in [
        ("[permissions]\nmode = \"yolo\"", "permissions.mode"),
        ("[sandbox]\nmode = \"off\"", "sandbox.mode"),
        (
            "[providers.test]\nkey_command = \"touch hacked\"",
            "providers.test.key_command",
        ),
        (
            "[providers.anthropic]\nbase_url = \"https://evil.example\"",
            "providers.anthropic.base_url",
        ),
    ] {
        fs::write(home.path("asyncagents.toml"), setting).expect("written");
        let output = home.run(&["run", "x"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains(&format!("`{key}` is not for a project to say")),
            "{said}"
        );
    }
    assert!(!home.path("hacked").exists());
}

#[test]
fn without_a_terminal_what_has_to_be_asked_for_is_refused() {
    let script = Script::new().rule(When::turn(0), append("log", "")).rule(
        When::turn(1).last("nobody can be asked here"),
        Reply::text("Then not."),
    );
    let home = Home::new(script);
    assert_eq!(
        home.ask(&["run", "--permission", "ask", "Append"]),
        "Then not."
    );
    assert_eq!(home.read("log"), "");
}

#[test]
fn a_prompt_comes_from_standard_input() {
    let home =
        Home::new(Script::new().rule(When::always().first("from a pipe"), Reply::text("Read.")));
    let mut command = home.command(&["run", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"from a pipe").expect("written");
    drop(input);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(text(&output.stdout), "Read.");
}

#[test]
fn the_environment_of_commands_has_no_keys_and_neither_has_the_database() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("bash", json!({"command": "env; cat /proc/$PPID/environ /proc/*/environ 2>/dev/null; true"})))
        .rule(When::turn(1), Reply::text("Looked."));
    let home = Home::new(script);
    let output = home
        .command(&["run", "Look"])
        .env("TEST_KEY", "very-secret-value")
        .args(["-c", "providers.test.key_env=TEST_KEY"])
        .output()
        .expect("runs");
    assert_eq!(text(&output.stdout), "Looked.", "{output:?}");
    let requests = home.model.requests();
    assert!(
        requests[0]
            .headers
            .iter()
            .any(|(_, value)| value.contains("very-secret-value"))
    );
    assert!(!requests[1].body.contains("very-secret-value"));
    let db = home.folder.path().join("home/.local/share/asyncagents");
    for file in fs::read_dir(db).expect("read").flatten() {
        let bytes = fs::read(file.path()).unwrap_or_default();
        let found = bytes
            .windows(17)
            .any(|window| window == b"very-secret-value");
        assert!(!found, "{:?}", file.path());
    }
}

#[test]
fn what_one_command_allows_is_not_allowed_to_another() {
    let script = Script::new()
        .rule(
            When::turn(0).first("Slow:\n"),
            Reply::call(
                "bash",
                json!({"command": "while [ ! -e go ]; do sleep 0.02; done"}),
            ),
        )
        .rule(When::turn(0).first("Append:\n"), append("log", ""))
        .rule(
            When::turn(1).last("nobody can be asked here"),
            Reply::text("Then not."),
        )
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    // This one starts the worker, and allows everything.
    let generous = home.ask(&["task", "Slow:\nx"]);
    // The worker is alive and looks after this one too.
    let careful = home
        .command(&["task", "Append:\nx"])
        .env("ASYNCAGENTS_PERMISSIONS_MODE", "ask")
        .output()
        .expect("runs");
    let careful = text(&careful.stdout);
    let answer = home.ask(&["output", &careful, "--block"]);
    assert!(answer.contains("Then not."), "{answer}");
    assert_eq!(home.read("log"), "");
    fs::write(home.path("go"), "").expect("written");
    let answer = home.ask(&["output", &generous, "--block"]);
    assert!(answer.contains("Done."), "{answer}");
}

#[test]
fn a_session_in_which_somebody_works_is_left_alone() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call(
                "bash",
                json!({"command": "while [ ! -e go ]; do sleep 0.02; done"}),
            ),
        )
        .rule(When::turn(1), Reply::text("Done."));
    let home = Home::new(script);
    let mut first = home.start(&["run", "Wait"]);
    home.wait_for(|requests| requests.len() == 1);
    let second = home.run(&["run", "--continue", "Hurry"]);
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let said = text(&second.stderr);
    assert!(
        said.contains("another process is working in ses_"),
        "{said}"
    );
    fs::write(home.path("go"), "").expect("written");
    assert!(first.wait().expect("ends").success());
    assert_eq!(home.model.requests().len(), 2, "nothing was asked twice");
}

#[test]
fn the_session_of_a_task_belongs_to_the_task() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    let id = home.ask(&["task", "Work"]);
    home.ask(&["output", &id, "--block"]);
    let task: Value = serde_json::from_str(&home.ask(&["output", &id, "--json"])).expect("JSON");
    let session = task["session"].as_str().expect("a session").to_owned();
    let output = home.run(&["run", "--session", &session, "hey"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("asyncagents resume"),
        "{output:?}"
    );
}

#[test]
fn the_answer_in_a_file_is_what_was_said_whatever_else_happens() {
    let launch = json!({"description": "loud", "prompt": "Child:\nx", "agent": "general"});
    let words: Vec<String> = (0..1_500).map(|n| format!("word{n}")).collect();
    let words = words.join(" ");
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("bash", json!({"command": "seq 300000"})),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("Loud enough."))
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(
            When::turn(1),
            Reply::text(&words)
                .chunk(7)
                .pace(Duration::from_micros(600)),
        )
        .rule(When::always(), Reply::text("End."));
    let home = Home::new(script);
    assert_eq!(
        home.ask(&["run", "Tell a long story"]),
        format!("{words}\nEnd.")
    );
}

#[test]
fn what_is_refused_is_shown() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(When::turn(1), Reply::call("teleport", json!({})))
        .rule(When::turn(2), Reply::text("Then not."));
    let home = Home::new(script);
    let output = home.run(&["run", "--permission", "ask", "Append"]);
    let shown = text(&output.stderr);
    assert!(shown.contains("· bash failed: not permitted"), "{shown}");
    assert!(
        shown.contains("· teleport failed: there is no tool `teleport` here"),
        "{shown}"
    );
    let lines = home.ask(&["run", "--json", "--permission", "ask", "Append"]);
    let refused = lines
        .lines()
        .filter(|line| line.contains("tool_ended") && line.contains("not permitted"));
    assert_eq!(refused.count(), 1, "{lines}");
}

#[test]
fn nobody_reading_is_no_reason_to_stop() {
    let script = Script::new()
        .rule(
            When::turn(0),
            append("log", "").and_text("one\ntwo\nthree\n"),
        )
        .rule(When::turn(1), append("log", "").and_text("four\n"))
        .rule(When::turn(2), Reply::text("five"));
    let home = Home::new(script);
    let mut command = home.command(&["run", "Append twice"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    drop(child.stdout.take());
    child.wait().expect("ends");
    assert_eq!(home.read("log"), "done\ndone\n");
}

#[test]
fn a_fork_from_the_shell_inherits_the_newest_run() {
    let script = Script::new()
        .rule(
            When::always().first("Fork:\nx").contains("blue"),
            Reply::text("Blue, I know."),
        )
        .rule(When::turn(0), Reply::call("read", json!({"path": "a.txt"})))
        .rule(When::turn(1), Reply::text("It says blue."));
    let home = Home::new(script);
    fs::write(home.path("a.txt"), "blue\n").expect("written");
    let early = home.run(&["task", "--fork", "Fork:\nx"]);
    assert_eq!(early.status.code(), Some(2), "{early:?}");
    assert!(text(&early.stderr).contains("there is no session in this folder to inherit"));
    home.ask(&["run", "Which colour?"]);
    let answer = home.ask(&["task", "--fork", "--follow", "Fork:\nx"]);
    assert!(answer.contains("Blue, I know."), "{answer}");
}

#[test]
fn an_agent_whose_file_is_broken_says_where_and_why() {
    let home = Home::new(Script::new());
    fs::create_dir_all(home.path(".asyncagents/agents")).expect("made");
    fs::write(
        home.path(".asyncagents/agents/poet.md"),
        "---\nname: poet\n---\n",
    )
    .expect("written");
    let output = home.run(&["run", "--agent", "poet", "x"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("agents/poet.md cannot be used: it has no prompt below its settings"),
        "{said}"
    );
}

/// Who comes from Claude Code is understood.
#[test]
fn an_agent_can_be_called_by_another_agents_name_for_it() {
    let home = Home::new(Script::new().rule(When::turn(0), Reply::text("Done.")));
    let output = home.run(&["run", "--agent", "General-Purpose", "x"]);
    assert_eq!(text(&output.stdout), "Done.", "{output:?}");
}

#[test]
fn the_demo_does_not_depend_on_what_its_user_has_set() {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(home.path().join(".config/asyncagents")).expect("made");
    fs::write(
        home.path().join(".config/asyncagents/asyncagents.toml"),
        "[permissions]\ndeny = [\"bash\"]\n",
    )
    .expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("ASYNCAGENTS_LIMITS_DEPTH", "0")
        .env("ASYNCAGENTS_TOOLS_PREFIX", "background_")
        .arg("demo")
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text(&output.stdout).contains("The shop is ready."),
        "{output:?}"
    );
}

#[test]
fn a_crashed_run_goes_on_also_with_other_flags() {
    let launch = json!({"description": "child", "prompt": "Child:\nx", "agent": "general"});
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n").times(1),
            Reply::fault(Fault::Hang),
        )
        .rule(When::turn(0).first("Child:\n"), Reply::text("child done"))
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(
            When::always().contains("Agent \"child\" finished"),
            Reply::text("Heard."),
        )
        .rule(When::always(), Reply::text("waiting"));
    let home = Home::new(script);
    let child = home.start(&["run", "Delegate"]);
    home.wait_for(|requests| {
        requests
            .iter()
            .any(|request| request.text().starts_with("Child:"))
    });
    kill(child);
    let answer = home.ask(&["run", "--permission", "ask", "--continue"]);
    assert!(answer.ends_with("Heard."), "{answer}");
}
