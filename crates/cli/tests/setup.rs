//! `asyncagents setup opencode`, as a user types it. Files are real; OpenCode is a script that
//! says it listens where the test answers.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    future::pending,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use asyncagents_core::tool_set;
use asyncagents_hosts::plugin;
use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use rstest::rstest;
use serde_json::json;
use tempfile::TempDir;

const TOOLS: [&str; 8] = [
    "asyncagents_task",
    "asyncagents_output",
    "asyncagents_list",
    "asyncagents_cancel",
    "asyncagents_message",
    "asyncagents_answer",
    "asyncagents_clear",
    "asyncagents_skill",
];

/// A user with a project, and nothing else.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Where a repository begins, OpenCode looks no further up.
        fs::create_dir_all(folder.path().join("project/.git")).expect("a project");
        Self { folder }
    }

    /// Without links, as programs see it.
    fn path(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("a folder");
        folder.join(name)
    }

    fn user_file(&self) -> PathBuf {
        self.path("config/opencode/plugins/asyncagents.js")
    }

    fn project_file(&self) -> PathBuf {
        self.path("project/.opencode/plugins/asyncagents.js")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .args(["setup", "opencode"]);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command().args(args))
    }

    fn write(&self, file: &Path, text: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, text).expect("written");
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    answer: String,
    remarks: String,
}

impl Said {
    fn of(command: &mut Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self {
            code: status.code(),
            answer: text(stdout).trim_end().to_owned(),
            remarks: text(stderr),
        }
    }

    #[track_caller]
    fn done(self, answer: &str) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.answer, answer, "{self:?}");
        self
    }

    /// One sentence, and nothing done.
    #[track_caller]
    fn refused(&self, code: i32, why: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.answer, "", "{self:?}");
        let line = format!("asyncagents: {why}\n");
        assert_eq!(self.remarks, line, "{self:?}");
    }

    #[track_caller]
    fn remarks(&self, what: &str) {
        assert!(self.remarks.contains(what), "no `{what}`: {self:?}");
    }
}

/// What the plugin should be when a program is named.
fn rendered(program: &str) -> String {
    plugin::render(program, &tool_set::specs_with_skill("asyncagents_", None))
}

fn current() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_asyncagents"));
    let program = program.canonicalize().expect("a program");
    rendered(program.to_str().expect("text"))
}

#[test]
fn it_is_installed_once_and_removed_without_a_trace() {
    let home = Home::new();
    let file = home.user_file();
    let path = file.display();
    let said = home.run(&[]).done(&format!("{path} is installed."));
    said.remarks("restart OpenCode");
    said.remarks("`asyncagents setup opencode --check`");
    said.remarks("in a build folder");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
    let mode = fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o400, 0o400, "{mode:o}");
    let other = fs::read_dir(file.parent().expect("a folder")).expect("read");
    assert_eq!(other.count(), 1, "nothing is left of the writing");

    let before = fs::metadata(&file).expect("there").ino();
    home.run(&["--user"])
        .done(&format!("{path} is up to date."));
    let after = fs::metadata(&file).expect("there").ino();
    assert_eq!(before, after, "it was not written again");

    home.run(&["--remove"])
        .done(&format!("{path} is removed. Restart OpenCode."));
    assert!(!home.path("config/opencode/plugins").exists());
    assert!(home.path("config/opencode").exists(), "OpenCode's own");
    let nothing = format!("There is no plugin to remove: {path} is not there.");
    home.run(&["--remove"]).done(&nothing);
}

#[test]
fn an_older_one_is_updated() {
    let home = Home::new();
    let file = home.user_file();
    home.write(&file, &rendered("/somewhere/else/asyncagents"));
    let said = home
        .run(&[])
        .done(&format!("{} is updated.", file.display()));
    said.remarks("restart OpenCode");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
}

const ONLY_ONE: &str = "OpenCode would load both";

#[test]
fn there_is_one_copy_however_often_it_is_installed() {
    let home = Home::new();
    let (user, project) = (home.user_file(), home.project_file());
    let said = home.run(&["--project"]);
    said.done(&format!("{} is installed.", project.display()));
    home.run(&[]).done(&format!(
        "{} was another copy and is removed: {ONLY_ONE}.\n{} is installed.",
        project.display(),
        user.display()
    ));
    assert!(!home.path("project/.opencode").exists());
    // The user's copy serves the project, and a second one would switch OpenCode 2 off there.
    home.run(&["--project"]).done(&format!(
        "{} serves this folder too, so it gets none of its own: {ONLY_ONE}. `asyncagents setup \
         opencode` updates that one.",
        user.display()
    ));
    assert!(!project.exists());
    let renamed = project.with_file_name("mine.ts");
    home.write(&renamed, &rendered("/old"));
    home.run(&["--project"]);
    assert!(!renamed.exists(), "a copy under another name is one too");
    assert_eq!(fs::read_to_string(&user).expect("read"), current());
}

#[test]
fn a_copy_of_an_older_version_goes_from_where_that_put_it() {
    let home = Home::new();
    let old = home.path("config/opencode/plugin/asyncagents.js");
    let other = old.with_file_name("mine.js");
    home.write(&old, &rendered("/old"));
    home.write(&other, "export const Mine = async () => ({});\n");
    home.run(&[]).done(&format!(
        "{} was another copy and is removed: {ONLY_ONE}.\n{} is installed.",
        old.display(),
        home.user_file().display()
    ));
    assert!(!old.exists() && other.exists());
    // A copy in one environment's folder gives way to the one that all have.
    let own = home.path("elsewhere/plugin/asyncagents.js");
    home.write(&own, &rendered("/old"));
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(&mut command);
    assert!(
        said.answer
            .ends_with(&format!("{} is up to date.", home.user_file().display()))
    );
    assert!(!own.exists(), "{said:?}");
}

#[test]
fn a_project_leaves_the_plugin_to_the_copy_that_all_environments_load() {
    let home = Home::new();
    home.run(&[]);
    let user = home.user_file();
    let own = home.path("elsewhere/plugins/asyncagents.js");
    home.write(&own, &rendered("/old"));
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(command.arg("--project"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let removed = format!("{} was another copy and is removed", own.display());
    assert!(said.answer.contains(&removed), "{said:?}");
    assert_eq!(fs::read_to_string(&user).expect("read"), current());
    assert!(!own.exists() && !home.project_file().exists());
}

#[test]
fn a_copy_that_only_a_link_makes_is_told_of() {
    let home = Home::new();
    home.run(&[]);
    let link = home.path("config/opencode/plugin");
    symlink("plugins", &link).expect("linked");
    let said = home.run(&[]);
    said.remarks("plugin/asyncagents.js is the same file by a link");
    assert!(home.user_file().exists());
    home.run(&["--remove"]);
    assert!(!home.user_file().exists());
}

#[test]
fn what_else_is_in_the_folder_stays() {
    let home = Home::new();
    let other = home.path("project/.opencode/plugins/mine.js");
    home.write(&other, "export const Mine = async () => ({});\n");
    let file = other.with_file_name("asyncagents.js");
    let installed = format!("{} is installed.", file.display());
    home.run(&["--project"]).done(&installed);
    home.run(&["--project", "--remove"])
        .done(&format!("{} is removed. Restart OpenCode.", file.display()));
    assert!(other.exists());
}

#[test]
fn the_folder_of_opencode_can_be_another_one() {
    let home = Home::new();
    let file = home.path("elsewhere/plugins/asyncagents.js");
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(&mut command).done(&format!("{} is installed.", file.display()));
    said.remarks("while OPENCODE_CONFIG_DIR is set");
    let mut command = home.command();
    command.env_remove("XDG_CONFIG_HOME");
    let file = home
        .folder
        .path()
        .join(".config/opencode/plugins/asyncagents.js");
    Said::of(&mut command).done(&format!("{} is installed.", file.display()));
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_updated() {
    let home = Home::new();
    let real = home.path("dotfiles/asyncagents.js");
    home.write(&real, &rendered("/old"));
    let file = home.user_file();
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    symlink(&real, &file).expect("linked");
    home.run(&[])
        .done(&format!("{} is updated.", file.display()));
    assert!(file.is_symlink());
    assert_eq!(fs::read_to_string(&real).expect("read"), current());
}

#[test]
fn settings_that_name_it_too_are_worth_a_remark() {
    let home = Home::new();
    let settings = home.path("project/opencode.jsonc");
    home.write(
        &settings,
        "{ // \"x\"\n\"plugin\": [\"./asyncagents.js\"] }\n",
    );
    let unused = home.path("config/opencode/opencode.json");
    home.write(&unused, "{\n  // \"plugin\": [\"./asyncagents.js\"]\n}\n");
    let said = home.run(&[]);
    said.remarks(&format!("{} names asyncagents.js", settings.display()));
    assert!(!said.remarks.contains("opencode.json names"), "{said:?}");
    let copy = home.path("project/asyncagents.js");
    home.write(&copy, &rendered("/old"));
    let said = home.run(&[]);
    said.remarks(&format!(
        "names {} among its plugins",
        home.path("project/./asyncagents.js").display()
    ));
    said.remarks("take the entry out");
}

/// Something else where the plugin should be.
enum Other {
    File,
    FileWithTheMarkBelow,
    NotText,
    Folder,
    DeadLink,
}

#[rstest]
#[case(Other::File, "not a file that asyncagents wrote")]
#[case(Other::FileWithTheMarkBelow, "not a file that asyncagents wrote")]
#[case(Other::NotText, "not a file that asyncagents wrote")]
#[case(Other::Folder, "a folder")]
#[case(Other::DeadLink, "a link that leads nowhere")]
fn what_is_not_ours_is_left_alone(#[case] other: Other, #[case] what: &str) {
    let home = Home::new();
    let file = home.user_file();
    let below = format!("export default 1\n// {}\n", plugin::MARK);
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    match other {
        Other::File => fs::write(&file, "export default 1\n").expect("written"),
        Other::FileWithTheMarkBelow => fs::write(&file, below).expect("written"),
        Other::NotText => fs::write(&file, b"\xff\xfe").expect("written"),
        Other::Folder => fs::create_dir(&file).expect("a folder"),
        Other::DeadLink => symlink(home.path("nowhere"), &file).expect("linked"),
    }
    let before = fs::read(&file).ok();
    let why = format!(
        "{} is {what}; it was left alone. Move it away and try again",
        file.display()
    );
    home.run(&[]).refused(2, &why);
    home.run(&["--remove"]).refused(2, &why);
    assert!(file.symlink_metadata().is_ok());
    assert_eq!(fs::read(&file).ok(), before);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_left_alone() {
    let home = Home::new();
    let wall = home.path("project/.opencode");
    home.write(&wall, "mine");
    let why = format!(
        "{} is a file, not a folder; it was left alone. Move it away and try again",
        wall.display()
    );
    home.run(&["--project"]).refused(2, &why);
    let file = home.project_file();
    let nothing = format!(
        "There is no plugin to remove: {} is not there.",
        file.display()
    );
    home.run(&["--project", "--remove"]).done(&nothing);
    assert_eq!(fs::read_to_string(wall).expect("read"), "mine");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_clear_error() {
    let home = Home::new();
    let folder = home.path("config/opencode/plugins");
    let file = folder.join("asyncagents.js");
    home.write(&file, &rendered("/old"));
    // Permissions do not bind root; and whoever else it is has to find the program.
    let program = home.path("asyncagents");
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents")]);
    assert!(install.arg(&program).status().expect("it runs").success());
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    set(&home.path(""), 0o755);
    set(&folder, 0o555);
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["setup", "opencode"]).args(args);
        command.env_clear().env("HOME", "/nowhere");
        command.env("XDG_CONFIG_HOME", home.path("config"));
        if fs::metadata("/proc/self").expect("own").uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        Said::of(command.current_dir("/"))
    };
    let path = file.display();
    run(&[]).refused(
        1,
        &format!("{path} cannot be written: you may not write there; nothing was changed"),
    );
    let removing = run(&["--remove"]);
    assert_eq!(removing.code, Some(1), "{removing:?}");
    removing.remarks(&format!(
        "{path} cannot be removed: you may not write there"
    ));
    let text = fs::read_to_string(&file).expect("read");
    assert_eq!(text, rendered("/old"));
    set(&folder, 0o755);
}

#[rstest]
#[case::no_home(None, "HOME is not set")]
#[case::relative(Some("here"), "XDG_CONFIG_HOME is not an absolute path")]
fn without_a_configuration_folder_there_is_the_project(
    #[case] config: Option<&str>,
    #[case] why: &str,
) {
    let home = Home::new();
    let command = || {
        let mut command = home.command();
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command.envs(config.map(|config| ("XDG_CONFIG_HOME", config)));
        command
    };
    let why = format!("{why}, so there is no configuration folder; --project needs none");
    Said::of(&mut command()).refused(2, &why);
    Said::of(command().arg("--remove")).refused(2, &why);
    let installed = format!("{} is installed.", home.project_file().display());
    Said::of(command().arg("--project")).done(&installed);
}

#[rstest]
#[case(&["setup", "emacs"], "emacs")]
#[case(&["setup", "opencode", "--user", "--project"], "--project")]
#[case(&["setup", "opencode", "--remove", "--check"], "--check")]
#[case(&["setup", "opencode", "--opencode-bin", "x"], "--check")]
fn wrong_words_are_refused_with_what_is_wrong(#[case] args: &[&str], #[case] named: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    let said = Said::of(command.args(args));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.remarks.starts_with("error: "), "{said:?}");
    said.remarks(named);
}

#[test]
fn a_path_with_quotes_and_spaces_is_named_as_it_is() {
    let home = Home::new();
    let program = home.path("a \"folder\"\\with é/asyncagents");
    fs::create_dir(program.parent().expect("a folder")).expect("a folder");
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents")]);
    assert!(install.arg(&program).status().expect("it runs").success());
    let mut command = Command::new(&program);
    command.env_clear().env("HOME", home.path(""));
    let said = Said::of(command.args(["setup", "opencode"]).current_dir("/"));
    assert!(!said.remarks.contains("build folder"), "{said:?}");
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let mut check = opencode.check(&home);
    check.env_remove("XDG_CONFIG_HOME");
    let said = Said::of(&mut check);
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = format!("program: {}, asyncagents ", program.display());
    assert!(said.answer.contains(&line), "{said:?}");
}

/// A program `opencode`, and the server it says it is.
struct FakeOpencode {
    bin: PathBuf,
    /// Keeps the server alive.
    _runtime: tokio::runtime::Runtime,
    asked: Arc<AtomicUsize>,
}

/// What a fake does otherwise than the real one.
#[derive(Clone, Copy, Default)]
struct Quirks {
    /// The first question is never answered.
    hangs_first: bool,
    /// How long the plugins take.
    loading: Duration,
    /// Whether OpenCode 2 could not load ours; nothing if it lists no plugins at all.
    plugin_failed: Option<bool>,
    /// Its list is that of a later release.
    is_release: bool,
}

/// What OpenCode 2 lists.
fn plugins(ours: &Path, quirks: Quirks) -> serde_json::Value {
    let state = match quirks.plugin_failed {
        Some(true) => json!({"status": "failed", "error": "Error: boom\n    at …"}),
        _ => json!({"status": "active"}),
    };
    let mut plugin = if quirks.is_release {
        json!({"state": state})
    } else {
        state
    };
    plugin["source"] = json!({"type": "local", "path": ours});
    json!([{"id": "opencode.skill", "source": {"type": "builtin"}, "status": "active"}, plugin])
}

impl FakeOpencode {
    fn new(home: &Home, version: &str, tools: &[&str]) -> Self {
        Self::with(home, version, tools, Quirks::default())
    }

    fn with(home: &Home, version: &str, tools: &[&str], quirks: Quirks) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(listener).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let key = home.path("key");
        let tools = json!(tools);
        let listed = home.user_file();
        let answer = move |uri: Uri, headers: HeaderMap| async move {
            let before = count.fetch_add(1, Ordering::SeqCst);
            if quirks.hangs_first && before == 0 {
                pending::<()>().await;
            }
            let key = fs::read_to_string(key).expect("a key");
            if headers.get("authorization").map(|sent| sent.as_bytes()) != Some(key.as_bytes()) {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            match uri.path() {
                "/global/health" => Json(json!({"healthy": true})).into_response(),
                "/api/plugin" if quirks.plugin_failed.is_none() => {
                    Json(json!({"data": []})).into_response()
                }
                "/api/plugin" => Json(json!({"data": plugins(&listed, quirks)})).into_response(),
                "/experimental/tool/ids" => {
                    tokio::time::sleep(quirks.loading).await;
                    Json(tools).into_response()
                }
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        };
        let server = axum::serve(listener, Router::new().fallback(answer));
        runtime.spawn(async { server.await });
        // What it starts has to end with it.
        let script = format!(
            "#!/bin/sh\n\
             test \"$1\" = --version && echo {version} && exit\n\
             case \"$*\" in 'serve --port 0 --hostname 127.0.0.1'*) ;; *) exit 3;; esac\n\
             printf 'Basic %s' $(printf 'opencode:%s' $OPENCODE_SERVER_PASSWORD | base64 -w 0) > {}\n\
             pwd > {}\n\
             echo Something else; echo \"$COMPLAINT\" >&2\n\
             sleep 300 & echo $$ $! > {}\n\
             echo opencode server listening on {url}\n\
             wait\n",
            home.path("key").display(),
            home.path("cwd").display(),
            home.path("pids").display(),
        );
        Self {
            bin: program(home, &script),
            _runtime: runtime,
            asked,
        }
    }

    fn check(&self, home: &Home) -> Command {
        check_with(home, &self.bin)
    }
}

/// Makes a script a program. Another process writes it: a program that a process of this test
/// still has open for writing cannot be started.
fn program(home: &Home, script: &str) -> PathBuf {
    let (text, folder) = (home.path("script"), home.path("bin"));
    fs::write(&text, script).expect("written");
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("opencode");
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(text).arg(&program);
    assert!(install.status().expect("runs").success());
    program
}

fn check_with(home: &Home, opencode: &Path) -> Command {
    let mut command = home.command();
    let folder = opencode.parent().expect("a folder").display().to_string();
    command.arg("--check");
    command.env("PATH", format!("{folder}:/usr/bin:/bin"));
    command
}

/// Whether what the fake started has ended.
fn nothing_is_left(home: &Home) -> bool {
    let pids = fs::read_to_string(home.path("pids")).expect("started");
    let mut pids = pids.split_whitespace();
    pids.all(|pid| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Whoever inherits what has ended may not have looked yet.
        state.is_empty() || state.contains(") Z ")
    })
}

#[test]
fn a_check_says_what_there_is_and_that_the_tools_are_seen() {
    let home = Home::new();
    home.run(&[]);
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let program = Path::new(env!("CARGO_BIN_EXE_asyncagents"));
    let program = program.canonicalize().expect("a program");
    let mut lines = vec![
        format!(
            "OpenCode: {}, version 1.18.33: supported",
            opencode.bin.display()
        ),
        format!("plugin: {}, up to date", home.user_file().display()),
        format!(
            "program: {}, asyncagents {}",
            program.display(),
            env!("CARGO_PKG_VERSION")
        ),
    ];
    lines.extend(TOOLS.map(|tool| format!("tool {tool}: seen by OpenCode")));
    lines.push("All 8 tools are seen.".to_owned());
    let said = Said::of(&mut opencode.check(&home)).done(&lines.join("\n"));
    assert_eq!(said.remarks, "");
    assert!(nothing_is_left(&home));
    let folder = fs::read_to_string(home.path("cwd")).expect("read");
    assert_eq!(Path::new(folder.trim()), home.path("project"));
}

#[test]
fn a_check_asks_again_and_says_why_it_takes_long() {
    let home = Home::new();
    home.run(&["--project"]);
    let quirks = Quirks {
        hangs_first: true,
        loading: Duration::from_secs(6),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "1.18.33", &TOOLS, quirks);
    let mut check = home.command();
    check.args(["--check", "--opencode-bin"]).arg(&opencode.bin);
    let said = Said::of(&mut check);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.remarks("Waiting for OpenCode: it may be installing @opencode-ai/plugin");
    assert_eq!(opencode.asked.load(Ordering::SeqCst), 3);
}

#[rstest]
#[case("3.0.0", "not supported")]
#[case("1.17.9", "not supported")]
#[case("v1.18.0-beta.2", "supported")]
#[case("1.20.1", "supported")]
#[case("local", "not supported")]
fn a_check_knows_the_versions_it_can_work_with(#[case] version: &str, #[case] known: &str) {
    let home = Home::new();
    home.run(&[]);
    let opencode = FakeOpencode::new(&home, version, &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    let code = if known == "supported" { 0 } else { 1 };
    assert_eq!(said.code, Some(code), "{said:?}");
    let line = format!(", version {version}: {known}");
    assert!(said.answer.contains(&line), "{said:?}");
}

#[test]
fn a_check_says_what_to_do_when_tools_are_missing() {
    let home = Home::new();
    let opencode = FakeOpencode::new(&home, "1.18.33", &["bash", "read"]);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    let missing = format!("plugin: {} is not there", home.user_file().display());
    assert!(said.answer.contains(&missing), "{said:?}");
    let not_seen = "tool asyncagents_skill: not seen by OpenCode";
    assert!(said.answer.ends_with(not_seen), "{said:?}");
    said.remarks("OpenCode sees none of the tools: the plugin is not there; `asyncagents setup opencode` installs it");
    assert!(nothing_is_left(&home));

    home.run(&["--project"]);
    let said = Said::of(&mut opencode.check(&home));
    said.remarks("it has not loaded the plugin and does not say why");
    for switch in ["OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG"] {
        let said = Said::of(opencode.check(&home).env(switch, "1"));
        said.remarks(&format!("{switch} is set, and keeps it from loading"));
    }
    let complaint = "level=ERROR message=\"failed to load plugin\" \
        path=file:///x/plugin/asyncagents.js error=\"no such module\"";
    let said = Said::of(opencode.check(&home).env("COMPLAINT", complaint));
    said.remarks("it could not load the plugin: \"no such module\"");
    // Where it should be is said. For that no OpenCode is started among a project's plugins.
    let said = Said::of(opencode.check(&home).arg("--user"));
    said.remarks("the plugin is not there");
    let folder = fs::read_to_string(home.path("cwd")).expect("read");
    assert!(!Path::new(folder.trim()).starts_with(home.path("project")));

    let some = FakeOpencode::new(&home, "1.18.33", &TOOLS[..3]);
    home.write(&home.project_file(), &format!("// {}\n", plugin::MARK));
    let said = Said::of(&mut some.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks("does not see 5 of the 8 tools: the plugin is not of this version; `asyncagents setup opencode --project` updates it");
}

#[test]
fn a_check_sees_that_the_program_is_gone() {
    let home = Home::new();
    home.write(&home.user_file(), &rendered("/nowhere/asyncagents"));
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    let line = "program: /nowhere/asyncagents cannot be started: No such file";
    assert!(said.answer.contains(line), "{said:?}");
    said.remarks("OpenCode sees the tools, but the program that the plugin names cannot be used");
}

#[test]
fn a_check_runs_no_program_that_a_project_names() {
    let home = Home::new();
    let proof = home.project_file().with_file_name("ran");
    let named = program(
        &home,
        &format!("#!/bin/sh\ntouch {}\necho x 1\n", proof.display()),
    );
    home.write(&home.project_file(), &rendered(&named.to_string_lossy()));
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    assert!(said.answer.contains("and was not run"), "{said:?}");
    assert!(!proof.exists());
}

#[rstest]
#[case::ends(
    "echo 'database is locked' >&2; exit 1",
    "OpenCode ended before it had answered; the last it said: database is locked"
)]
#[case::silent("exit 1", "OpenCode ended before it had answered, and said nothing")]
#[case::nobody(
    "echo opencode server listening on http://127.0.0.1:1; sleep 300",
    "OpenCode does not answer: "
)]
#[case::ends_later(
    "echo opencode server listening on http://127.0.0.1:1; sleep 0.3; echo oops >&2",
    "OpenCode ended before it had answered; the last it said: oops"
)]
fn a_check_says_why_opencode_gave_no_answer(#[case] serve: &str, #[case] why: &str) {
    let home = Home::new();
    let script = format!("#!/bin/sh\ntest \"$1\" = --version && echo 1.18.33 && exit\n{serve}\n");
    let opencode = program(&home, &script);
    let said = Said::of(&mut check_with(&home, &opencode));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks(&format!("asyncagents: {why}"));
}

#[test]
fn a_check_without_an_opencode_says_how_to_name_it() {
    let home = Home::new();
    let said = Said::of(home.command().arg("--check").env("PATH", home.path("")));
    said.refused(
        1,
        "there is no `opencode` on the PATH; install OpenCode, or name it with --opencode-bin",
    );
    let mut named = home.command();
    named
        .arg("--check")
        .env("ASYNCAGENTS_OPENCODE_BIN", "/nowhere");
    Said::of(&mut named).refused(
        2,
        "/nowhere is not a program; name OpenCode with --opencode-bin",
    );
    let mute = program(&home, "#!/bin/sh\nexit 7\n");
    let said = Said::of(&mut check_with(&home, &mute));
    said.refused(
        1,
        &format!(
            "{} does not say its version: it ended with exit status: 7",
            mute.display()
        ),
    );
}

#[test]
fn a_check_that_is_stopped_leaves_nothing_running() {
    let home = Home::new();
    let quirks = Quirks {
        loading: Duration::from_secs(300),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "1.18.33", &TOOLS, quirks);
    let mut check = opencode.check(&home);
    let check = check.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut check = check.expect("runs");
    let begun = Instant::now();
    while opencode.asked.load(Ordering::SeqCst) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "never asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut kill = Command::new("kill");
    kill.args(["-INT", &check.id().to_string()]);
    assert!(kill.status().expect("runs").success());
    assert_eq!(check.wait().expect("ends").code(), Some(1));
    assert!(nothing_is_left(&home));
}

#[rstest]
#[case::loaded(
    Some(false),
    false,
    0,
    "loaded by an OpenCode 2 that was started for it",
    ""
)]
#[case::loaded_in_a_release(
    Some(false),
    true,
    0,
    "loaded by an OpenCode 2 that was started for it",
    ""
)]
#[case::failed(
    Some(true),
    false,
    1,
    "refused by",
    "could not load the plugin: Error: boom"
)]
#[case::failed_in_a_release(
    Some(true),
    true,
    1,
    "refused by",
    "could not load the plugin: Error: boom"
)]
fn a_check_asks_opencode_2_whether_it_has_loaded_the_plugin(
    #[case] plugin_failed: Option<bool>,
    #[case] is_release: bool,
    #[case] code: i32,
    #[case] answer: &str,
    #[case] remark: &str,
) {
    let home = Home::new();
    home.run(&[]);
    let quirks = Quirks {
        plugin_failed,
        is_release,
        ..Quirks::default()
    };
    let version = "opencode2 v2.0.0-source.20260819";
    let opencode = FakeOpencode::with(&home, version, &[], quirks);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(code), "{said:?}");
    let known = format!(", version {version}: supported");
    assert!(said.answer.contains(&known), "{said:?}");
    assert!(said.answer.contains(answer), "{said:?}");
    said.remarks(remark);
    assert!(nothing_is_left(&home));
}

#[test]
fn a_check_finds_the_copy_that_switches_opencode_2_off() {
    let home = Home::new();
    home.run(&[]);
    home.write(&home.project_file(), &rendered("/old"));
    let opencode = FakeOpencode::new(&home, "2.0.26", &[]);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks(&format!(
        "There is a second copy, {}: {ONLY_ONE}; `asyncagents setup opencode` leaves one.",
        home.project_file().display()
    ));
    assert!(home.project_file().exists(), "a check changes nothing");
}

/// `asyncagents setup`, with OpenCode on the PATH.
fn setup_all(home: &Home, path: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    command
        .current_dir(home.path("project"))
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.folder.path())
        .env("XDG_CONFIG_HOME", home.path("config"))
        .arg("setup");
    command
}

#[test]
fn without_a_name_what_is_installed_is_set_up_and_checked() {
    let home = Home::new();
    let quirks = Quirks {
        plugin_failed: Some(false),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "2.0.26", &[], quirks);
    let bin = opencode.bin.parent().expect("a folder").display();
    let said = Said::of(&mut setup_all(&home, &format!("{bin}:/usr/bin:/bin")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let file = home.user_file();
    let begins = format!(
        "Found OpenCode 2.0.26: {}.\nIts plugin goes to {}; nothing else is changed.\n{} is \
         installed.\n",
        opencode.bin.display(),
        file.display(),
        file.display()
    );
    assert!(said.answer.starts_with(&begins), "{said:?}");
    assert!(
        said.answer
            .ends_with("loaded by an OpenCode 2 that was started for it")
    );
    said.remarks("Next: restart OpenCode");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
}

#[test]
fn without_an_opencode_nothing_is_written_and_nothing_of_a_project_is_run() {
    let home = Home::new();
    let proof = home.path("ran");
    let script = format!("#!/bin/sh\ntouch {}\necho 1.18.33\n", proof.display());
    let trap = home.path("project/node_modules/.bin/opencode");
    fs::create_dir_all(trap.parent().expect("a folder")).expect("folders");
    fs::rename(program(&home, &script), &trap).expect("moved");
    let bin = trap.parent().expect("a folder").display();
    let path = format!("{bin}:node_modules/.bin:/usr/bin:/bin");
    let said = Said::of(&mut setup_all(&home, &path));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks("there is no OpenCode here that asyncagents works with");
    assert!(!proof.exists(), "a project's program was run");
    assert!(!home.path("config").exists());
}
