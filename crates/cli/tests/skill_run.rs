//! `asyncagents skill run` and `asyncagents trace`: the real binary against a scripted model over
//! real HTTP, with the real sandbox.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Gate, ModelServer, Reply, Script, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home, a project with skills, and a model that plays a script.
struct Home {
    folder: TempDir,
    model: ModelServer,
    _runtime: tokio::runtime::Runtime,
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
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn skill(&self, name: &str, head: &str, body: &str) {
        let folder = self.path(".claude/skills").join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("---\nname: {name}\n{head}\n---\n{body}\n");
        fs::write(folder.join("SKILL.md"), text).expect("written");
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
            // Where the kernel has no sandbox, skills' commands run only if they may do so freely.
            .env("ASYNCAGENTS_PERMISSIONS_ALLOW", "bash(cat *),bash(sleep *)")
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

fn lines(output: &Output) -> Vec<Value> {
    let lines = text(&output.stdout);
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("lines of JSON")
}

/// What a run told that was stopped by Ctrl-C.
fn interrupted(run: Child) -> Vec<Value> {
    let pid = Pid::from_raw(i32::try_from(run.id()).expect("a number")).expect("a process");
    kill_process(pid, Signal::INT).expect("sent");
    let stopped = run.wait_with_output().expect("ends");
    assert_eq!(stopped.status.code(), Some(4), "{stopped:?}");
    lines(&stopped)
}

const FORK: &str = "description: Counts.\ncontext: fork";

fn counting() -> Script {
    Script::new()
        .rule(
            When::turn(0),
            Reply::call("glob", json!({"pattern": "*.txt"})).and_text("Let me look."),
        )
        .rule(
            When::turn(1),
            Reply::text("There is one file.").usage(300, 100, 20),
        )
}

#[test]
fn a_forked_skill_answers_and_its_trace_can_be_looked_up() {
    let home = Home::new(counting());
    fs::write(home.path("one.txt"), "1").expect("written");
    home.skill("count", FORK, "Count the files.");
    let output = home.run(&["skill", "run", "count", "all", "of", "them"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "Let me look.\nThere is one file.");
    let shown = text(&output.stderr);
    assert!(
        shown.starts_with("Spawning sub-agent for skill: count (task_"),
        "{shown}"
    );
    assert!(shown.contains("\n· glob *.txt\n"), "{shown}");
    let chain = shown.split("Full trace: ").nth(1).expect("a trace");
    let chain = chain.split(';').next().expect("an ID");

    let tree = home.ask(&["trace", chain]);
    let drawn: Vec<&str> = tree.lines().collect();
    assert!(
        drawn[0].starts_with("✓ skill count: all of them · general · completed · "),
        "{tree}"
    );
    assert!(drawn[0].contains("2 answers, 1 tool call"), "{tree}");
    assert!(drawn[1].contains("model    test/model"), "{tree}");
    assert!(drawn[1].ends_with("Let me look."), "{tree}");
    assert!(drawn[3].contains("(100 cached) in, 20 out"), "{tree}");
    assert_eq!(drawn[4], "└─ answer: There is one file.");

    let json: Value = serde_json::from_str(&home.ask(&["trace", chain, "--json"])).expect("JSON");
    assert_eq!(json["chain_id"], chain);
    assert_eq!(json["skill"], "count");
    assert_eq!(json["status"], "completed");
    assert_eq!(json["request"], "all of them");
    assert_eq!(json["steps"][1]["result"], "one.txt\n");
    assert_eq!(json["total"]["turns"], 2);
    // By its task too; and the newest runs are listed.
    let task = json["task_id"].as_str().expect("an ID");
    assert_eq!(home.ask(&["trace", task]), tree);
    assert_eq!(home.ask(&["trace", &format!("{task}-subagent-1")]), tree);
    assert!(home.ask(&["trace"]).contains(chain));
    assert!(home.ask(&["list"]).contains("skill count: all of them"));
}

#[test]
fn programs_get_exactly_the_events_of_the_specification() {
    let home = Home::new(counting());
    home.skill("count", FORK, "Count the files.");
    let output = home.run(&["skill", "run", "count", "all", "--json"]);
    let events = lines(&output);
    let task = events[0]["task_id"].clone();
    let chain = events[1]["message_parts"][1]["text"].clone();
    assert_eq!(
        events,
        [
            json!({
                "type": "status",
                "task_id": task,
                "state": "RUNNING",
                "message": "Spawning sub-agent for skill: count",
            }),
            json!({
                "type": "message",
                "task_id": task,
                "message_parts": [
                    {"text": "Sub-agent completed: There is one file."},
                    {"text": chain},
                ],
            }),
            json!({"type": "done", "task_id": task, "final_state": "COMPLETED"}),
        ]
    );
    assert!(
        chain
            .as_str()
            .is_some_and(|text| text.starts_with("Full trace: "))
    );

    let home = Home::new(counting());
    home.skill("count", FORK, "Count the files.");
    let output = home.run(&["skill", "run", "count", "--json", "--sub-agent-events"]);
    let events = lines(&output);
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "status",
            "sub_agent",
            "sub_agent",
            "sub_agent",
            "message",
            "done"
        ]
    );
    let sub_task = events[1]["task_id"].as_str().expect("an ID");
    let task = events[0]["task_id"].as_str().expect("an ID");
    assert_eq!(sub_task, format!("{task}-subagent-1"));
    assert_eq!(events[2]["step"]["tool"], "glob");
}

/// The criterion "Logging for sub-agent spawn/completion", with metrics per sub-agent.
#[test]
fn seed_004_logging_for_sub_agent_spawn_and_completion() {
    let home = Home::new(counting());
    home.skill(
        "count",
        &format!("{FORK}\nmax-iterations: 20"),
        "Count the files.",
    );
    let log = home.path("log");
    let file = format!("log.file={}", log.display());
    let output = home.run(&[
        "-c",
        &file,
        "-c",
        "log.level=info",
        "skill",
        "run",
        "count",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let log = fs::read_to_string(log).expect("a log");
    let line = |words: &str| {
        log.lines()
            .find(|line| line.contains(words))
            .expect("a line")
    };
    let spawned = line("sub-agent spawned");
    for field in [
        "gen_ai.operation.name=\"invoke_agent\"",
        "gen_ai.agent.name=general",
        "asyncagents.skill=\"count\"",
        "asyncagents.iterations=10",
        "asyncagents.depth=1",
    ] {
        assert!(spawned.contains(field), "{field}: {spawned}");
    }
    let ended = line("sub-agent ended");
    for field in [
        "gen_ai.usage.input_tokens=",
        "gen_ai.usage.cache_read.input_tokens=100",
        "gen_ai.usage.output_tokens=",
        "gen_ai.client.operation.duration=",
        "asyncagents.outcome=\"completed\"",
        "asyncagents.turns=2",
        "asyncagents.tool_calls=1",
        "asyncagents.chain.id=",
    ] {
        assert!(ended.contains(field), "{field}: {ended}");
    }
    assert!(!ended.contains("error.type"), "{ended}");
    // Nobody knows it.
    assert!(!ended.contains("cost_usd"), "{ended}");
}

#[test]
fn an_inherited_skill_runs_as_a_task_of_its_own() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Short it is.")));
    let head = "description: How we write.\nallowed-tools: Bash(cat *)";
    home.skill(
        "style",
        head,
        "Write about $0.\n!`cat ${CLAUDE_SKILL_DIR}/words.txt`",
    );
    fs::write(home.path(".claude/skills/style/words.txt"), "Be brief.\n").expect("written");
    assert_eq!(home.ask(&["skill", "run", "style", "cats"]), "Short it is.");
    let request = &home.model.requests()[0];
    let asked = request.last();
    assert!(
        asked.starts_with("Write about cats.\nBe brief.\n\nThe files of this skill are in "),
        "{asked}"
    );
}

#[test]
fn wrong_names_refused_commands_and_failures_are_told() {
    let home = Home::new(Script::new().rule(When::always(), Reply::status(400).message("no")));
    home.skill("count", FORK, "Count.");
    home.skill("theirs", "description: x\nuser-invocable: false", "x");
    home.skill(
        "sly",
        &format!("{FORK}\nallowed-tools: Read"),
        "!`touch evil`",
    );
    let said = |args: &[&str]| {
        let output = home.run(args);
        assert_eq!(text(&output.stdout), "", "{output:?}");
        (output.status.code(), text(&output.stderr))
    };
    let (code, why) = said(&["skill", "run", "cuont"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        why,
        "asyncagents: SKILL_NOT_FOUND: there is no skill `cuont`; there are count and sly"
    );
    let (code, why) = said(&["skill", "run", "theirs"]);
    assert_eq!(code, Some(2));
    assert!(
        why.starts_with("asyncagents: NOT_INVOCABLE: the skill `theirs` is for agents"),
        "{why}"
    );
    let (code, why) = said(&["skill", "run", "sly"]);
    assert_eq!(code, Some(2));
    assert!(why.contains("its command `touch evil` is refused"), "{why}");
    assert!(!home.path("evil").exists());
    let (code, why) = said(&["skill", "run", "count"]);
    assert_eq!(code, Some(4));
    assert!(why.contains("asyncagents: SUBAGENT_ERROR: "), "{why}");
    let chain = why.split("Full trace: ").nth(1).expect("a trace");
    let tree = home.ask(&["trace", chain.trim_end_matches(')')]);
    assert!(
        tree.starts_with("✗ skill count · general · error · "),
        "{tree}"
    );
    for more in [&[][..], &["--json"]] {
        let asked = ["skill", "run", "count", "--model", "nobody/none"];
        let (code, why) = said(&[&asked[..], more].concat());
        assert_eq!(code, Some(2), "{why}");
        assert!(why.contains("nobody"), "{why}");
    }
    let (code, why) = said(&["trace", "nothing"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        why,
        "asyncagents: there is no run `nothing`; `asyncagents trace` shows the newest"
    );
}

#[test]
fn a_run_is_followed_while_it_works_and_stopped_by_ctrl_c() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(When::turn(0), Reply::call("glob", json!({"pattern": "*"})))
        .rule(When::turn(1), Reply::text("Never.").behind(&gate));
    let home = Home::new(script);
    home.skill("slow", FORK, "Be slow.");
    let mut command = home.command(&["skill", "run", "slow", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    home.until("it is asked again", || home.model.requests().len() == 2);
    let listed: Value = serde_json::from_str(&home.ask(&["trace", "--json"])).expect("JSON");
    let chain = listed[0]["chain_id"].as_str().expect("an ID").to_owned();
    assert_eq!(listed[0]["status"], "running");
    let followed = home
        .command(&["trace", &chain, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let events = interrupted(child);
    assert_eq!(events[1]["error_code"], "SUBAGENT_ERROR");
    assert_eq!(events[2]["final_state"], "FAILED");
    let followed = lines(&followed.wait_with_output().expect("ends"));
    let kinds: Vec<&str> = followed
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(kinds, ["step", "step", "end"]);
    assert_eq!(followed[2]["status"], "cancelled");
}

#[test]
fn a_run_that_comes_to_nothing_says_why() {
    let look = Reply::call("glob", json!({"pattern": "*.txt"})).and_text("Let me try.");
    let home = Home::new(Script::new().rule(When::always(), look));
    home.skill("count", FORK, "Count.");
    let output = home.run(&["-c", "skills.max_iterations=6", "skill", "run", "count"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let shown = text(&output.stderr);
    let why = "Sub-agent completed: Failed: the limit of 3 answers is reached";
    assert!(shown.contains(why), "{shown}");
    assert_eq!(text(&output.stdout), ["Let me try."; 3].join("\n"));
}

#[test]
fn a_skill_that_is_stopped_before_it_begins_does_not_begin() {
    let home = Home::new(Script::new());
    home.skill(
        "slow",
        &format!("{FORK}\nallowed-tools: Bash(sleep *)"),
        "!`sleep 4`",
    );
    let mut command = home.command(&["skill", "run", "slow", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let sleeps = || {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id()));
        let threads = threads.expect("a process").flatten();
        let mut children = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
        children.any(|children| children.is_ok_and(|children| !children.is_empty()))
    };
    home.until("its command runs", sleeps);
    let events = interrupted(child);
    assert_eq!(events[0]["error_code"], "SUBAGENT_ERROR");
    assert_eq!(events[0]["error_message"], "it was stopped before it began");
    assert_eq!(events[1]["final_state"], "FAILED");
    assert_eq!(home.ask(&["list"]), "No background tasks found");
}

#[test]
fn programs_are_told_the_end_also_of_what_cannot_begin() {
    let home = Home::new(Script::new());
    home.skill("odd", &format!("{FORK}\nagent: Wizard"), "x");
    let output = home.run(&["skill", "run", "odd", "--json"]);
    let events = lines(&output);
    assert_eq!(events[0]["error_code"], "SUBAGENT_ERROR");
    let why = events[0]["error_message"].as_str().expect("a reason");
    assert!(
        why.starts_with("there is no agent `Wizard`; there are "),
        "{why}"
    );
    assert_eq!(events[1]["final_state"], "FAILED");
    assert_eq!(output.status.code(), Some(4));
}

/// What the model was first asked.
fn first_prompt(home: &Home) -> String {
    home.model.requests().first().expect("a request").text()
}

#[test]
fn the_words_of_a_shell_stay_the_same_words() {
    let said = |words: &[&str]| {
        let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
        home.skill("args", "description: x", "A=$0 B=$1 C=$2 ALL=$ARGUMENTS");
        home.ask(&[&["skill", "run", "args"], words].concat());
        let prompt = first_prompt(&home);
        let line = prompt.lines().find(|line| line.contains("A="));
        line.expect("its line").to_owned()
    };
    assert_eq!(
        said(&["hello world", "second"]),
        "A=hello world B=second C=$2 ALL=\"hello world\" second"
    );
    // One word is what a person wanted to say.
    assert_eq!(
        said(&["'hello world' second"]),
        "A=hello world B=second C=$2 ALL='hello world' second"
    );
}

/// A skill of the user's, outside of the project, with a file beside it.
#[test]
fn a_skill_reads_its_own_files_wherever_it_is() {
    let home = Home::new(
        Script::new()
            .rule(
                When::turn(0),
                Reply::call("read", json!({"path": "~/.claude/skills/pdf/reference.md"})),
            )
            .rule(
                When::turn(1),
                Reply::call(
                    "write",
                    json!({"path": "~/.claude/skills/pdf/reference.md", "content": "x"}),
                ),
            )
            .rule(When::turn(2), Reply::text("Done.")),
    );
    let folder = home.folder.path().join("home/.claude/skills/pdf");
    for (context, agent) in [("fork", "general-purpose"), ("inherit", "nobody")] {
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("reference.md"), "ZEBRA\n").expect("written");
        let head = format!("name: PDF Tools\ndescription: x\ncontext: {context}\nagent: {agent}");
        let text = format!("---\n{head}\n---\nSession ${{CLAUDE_SESSION_ID}}, =B5*(1+$B$6).\n");
        fs::write(folder.join("SKILL.md"), text).expect("written");
        let before = home.model.requests().len();
        home.ask(&["skill", "run", "PDF", "merge", "--permission", "yolo"]);
        let requests = home.model.requests();
        let asked = requests[before].body.clone();
        assert!(asked.contains("=B5*(1+$B$6)."), "{asked}");
        assert!(asked.contains("Session ses_"), "{asked}");
        let files = format!("The files of this skill are in {};", folder.display());
        assert!(asked.contains(&files), "{asked}");
        assert!(requests[before + 1].last().contains("ZEBRA"), "{context}");
        let refused = requests[before + 2].last();
        assert!(refused.contains("outside of the workspace"), "{refused}");
        let kept = fs::read_to_string(folder.join("reference.md")).expect("there");
        assert_eq!(kept, "ZEBRA\n", "it may only be read");
    }
}

/// The example of Claude Code's documentation: a script beside the skill, allowed by its path.
#[test]
fn a_script_of_a_skill_is_allowed_by_its_path() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    home.skill(
        "check",
        &format!("{FORK}\nallowed-tools: Bash(cat ${{CLAUDE_SKILL_DIR}}/*)"),
        "```!\ncat ${CLAUDE_SKILL_DIR}/notes.md\n\ncat ${CLAUDE_SKILL_DIR}/more.md\n```",
    );
    let folder = home.path(".claude/skills/check");
    fs::write(folder.join("notes.md"), "NOTES\n").expect("written");
    fs::write(folder.join("more.md"), "MORE\n").expect("written");
    home.ask(&["skill", "run", "check"]);
    let system = home.model.requests()[0].system();
    assert!(
        system.contains("SKILL INSTRUCTIONS:\nNOTES\nMORE\n"),
        "{system}"
    );
}

#[test]
fn a_user_is_told_of_a_model_that_is_not_used() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    // No key for one, and a project may not choose the other's provider.
    let mine = home.folder.path().join("home/.claude/skills/mine");
    fs::create_dir_all(&mine).expect("made");
    let text_of = |model: &str| format!("---\n{FORK}\nmodel: {model}\n---\nGo.\n");
    fs::write(mine.join("SKILL.md"), text_of("haiku")).expect("written");
    home.skill("theirs", &format!("{FORK}\nmodel: haiku"), "Go.");
    let told = |name: &str| {
        let output = home.run(&["skill", "run", name]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let shown = text(&output.stderr);
        shown.lines().next().unwrap_or_default().to_owned()
    };
    let mine = told("mine");
    assert!(
        mine.starts_with("the skill's model `haiku` is not used: "),
        "{mine}"
    );
    assert_eq!(
        told("theirs"),
        "the skill's model `haiku` is not used: a project may not name one of another provider"
    );
}
