//! A home, a project and a model of a test's own, and the real Claude Code in it.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command as Started, Stdio},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use asyncagents_core::{id::PostId, question::Reply as Answer};
use asyncagents_hosts::{
    agent::{
        Ask, Connection, ErrorTail, EventReceiver, Message, MessagePart, OpenSession, Program,
        Programs, ToolServer, ToolsFor, TurnEnd, Which, Wire, WireError, WireEvent, events,
    },
    claude_code::transcript,
    claude_stream::ClaudeStream,
};
use asyncagents_scripted_model::{ModelServer, Recorded, Reply, Script, When};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::process::Command;

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// Everything around one Claude Code. When it goes, all its processes go.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) model: ModelServer,
    programs: Arc<RealPrograms>,
}

/// An open session, and what happened in it.
pub(crate) struct Open {
    pub(crate) connection: Arc<dyn Connection>,
    events: EventReceiver,
    pub(crate) seen: Vec<WireEvent>,
}

impl World {
    /// A world, unless Claude Code cannot be had here.
    pub(crate) async fn new(script: Script) -> Option<Self> {
        let Some(program) = program() else {
            let test = std::thread::current();
            let test = test.name().unwrap_or_default();
            // Past the test's own capture, so that `scripts/test` counts it.
            let line = format!("\nskipped: {test}: there is no ClaudeCode here\n");
            let _ = io::stderr().write_all(line.as_bytes());
            return None;
        };
        // Whatever else it asks beside the story.
        let script = script.rule(When::always(), Reply::text("Very well."));
        let model = ModelServer::start(script).await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
        for name in ["home/.claude", "project"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let programs = RealPrograms {
            program,
            folder: folder.path().to_owned(),
            url: model.url(),
        };
        let world = Self {
            programs: Arc::new(programs),
            folder,
            model,
        };
        // A tool that says that it runs, and then does so until it may end.
        world.write(
            "project/slow",
            "#!/bin/sh\necho run >> runs\nwhile [ ! -e go ]; do sleep 0.05; done\necho finished\n",
        );
        world.write("home/tools", TOOL_SERVER);
        Some(world)
    }

    pub(crate) fn wire(&self) -> ClaudeStream {
        ClaudeStream::new(self.programs.clone(), self.path("home/.claude"), false)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that may be run, and gives everything to the user that runs Claude Code.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        if !geteuid().is_root() {
            return;
        }
        let mut unseen = vec![self.folder.path().to_owned()];
        while let Some(path) = unseen.pop() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("given");
            if path.is_dir() {
                let entries = fs::read_dir(&path).expect("a folder").flatten();
                unseen.extend(entries.map(|entry| entry.path()));
            }
        }
    }

    pub(crate) fn session(&self, which: Which) -> OpenSession {
        OpenSession {
            ours: "ses_1".into(),
            which,
            folder: self.path("project"),
            model: None,
            instructions: None,
            reads_only: false,
            may_delegate: false,
            has_answered: false,
            ends: None,
            look_for: Vec::new(),
        }
    }

    pub(crate) async fn try_open(&self, session: &OpenSession) -> Result<Open, WireError> {
        let (sender, events) = events();
        let connection = self.wire().start(session, sender).await?;
        Ok(Open {
            connection: Arc::from(connection),
            events,
            seen: Vec::new(),
        })
    }

    pub(crate) async fn open(&self, which: Which) -> Open {
        let opened = self.try_open(&self.session(which)).await;
        opened.expect("a session")
    }

    /// The requests of the conversation, not those beside it.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.model.requests();
        requests.retain(|request| !request.tool_names().is_empty());
        requests
    }

    /// In how many requests of the conversation these words are new.
    pub(crate) fn times_told(&self, words: &str) -> usize {
        let requests = self.requests();
        let told = requests
            .iter()
            .filter(|request| request.last().contains(words));
        told.count()
    }

    /// Waits until the slow tool has begun so many times.
    pub(crate) async fn until_runs(&self, times: usize) {
        until("the tool runs", || {
            let runs = fs::read_to_string(self.path("project/runs")).unwrap_or_default();
            (runs.lines().count() >= times).then_some(())
        })
        .await;
    }

    /// Waits until the file of a session has these words.
    pub(crate) async fn until_written(&self, session: &str, words: &str) {
        let config = self.path("home/.claude");
        until("it is written", || {
            let file = transcript::find(&config, session, None).expect("folders")?;
            let text = fs::read_to_string(file).expect("a file");
            text.contains(words).then_some(())
        })
        .await;
    }

    pub(crate) fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.path("project/runs")).unwrap_or_default();
        runs.lines().count()
    }

    /// Lets the slow tool end.
    pub(crate) fn go(&self) {
        fs::write(self.path("project/go"), "").expect("written");
    }

    /// Kills Claude Code, and what it has started.
    pub(crate) fn kill(&self) {
        let found = processes(self.folder.path());
        assert!(!found.is_empty(), "nothing runs");
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What is ended may just have started something.
        loop {
            let left = processes(self.folder.path());
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Open {
    /// Says something and answers what it asks before it ends.
    pub(crate) async fn says(&mut self, said: &Message, answer: &Answer) -> TurnEnd {
        let connection = self.connection.clone();
        let prompt = connection.prompt(said);
        tokio::pin!(prompt);
        let end = loop {
            tokio::select! {
                end = &mut prompt => break end.expect("an end"),
                Some(event) = self.events.recv() => {
                    if let WireEvent::Asked(ask) = &event {
                        connection.reply(&ask.id, answer);
                    }
                    self.seen.push(event);
                }
            }
        };
        while let Some(event) = self.events.try_recv() {
            self.seen.push(event);
        }
        end
    }

    /// Says something in the background. What it asks has to be answered with [`Open::allow`].
    pub(crate) fn starts(
        &self,
        said: Message,
    ) -> tokio::task::JoinHandle<Result<TurnEnd, WireError>> {
        let connection = self.connection.clone();
        tokio::spawn(async move { connection.prompt(&said).await })
    }

    /// Waits for a question.
    pub(crate) async fn asked(&mut self) -> Ask {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.recv());
            let event = event.await.expect("in time").expect("an event");
            self.seen.push(event.clone());
            if let WireEvent::Asked(ask) = event {
                return ask;
            }
        }
    }

    /// Waits for a question and allows what is asked.
    pub(crate) async fn allow(&mut self) {
        let ask = self.asked().await;
        self.connection.reply(&ask.id, &Answer::Once);
    }

    pub(crate) fn id(&self) -> String {
        self.connection.session().id.clone()
    }

    /// What it said.
    pub(crate) fn text(&self) -> String {
        let texts = self.seen.iter().filter_map(|event| match event {
            WireEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn asks(&self) -> Vec<&Ask> {
        let asks = self.seen.iter().filter_map(|event| match event {
            WireEvent::Asked(ask) => Some(ask),
            _ => None,
        });
        asks.collect()
    }
}

/// Something with a name of its own.
pub(crate) fn message(id: &str, text: &str) -> Message {
    Message {
        parts: vec![MessagePart::Text(text.to_owned())],
        id: Some(PostId::from(id)),
    }
}

/// Waits until this gives something.
pub(crate) async fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

struct RealPrograms {
    program: PathBuf,
    folder: PathBuf,
    url: String,
}

#[async_trait]
impl Programs for RealPrograms {
    async fn start(&self, arguments: &[String], tools: ToolsFor) -> Result<Program, WireError> {
        let mut command = if geteuid().is_root() {
            // Claude Code is no program for root.
            let id = NOBODY.to_string();
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
            command.arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command
            .args(arguments)
            .current_dir(self.folder.join("project"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.join("home"))
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "sk-ant-scripted-0123456789-0123456789")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| WireError::NotStarted(error.to_string()))?;
        let name = "asyncagents".to_owned();
        Ok(Program {
            input: Box::new(child.stdin.take().expect("a pipe")),
            output: Box::new(child.stdout.take().expect("a pipe")),
            errors: ErrorTail::read(child.stderr.take().expect("a pipe")),
            process: None,
            tools: (tools != ToolsFor::Nobody).then(|| ToolServer {
                name,
                command: self.folder.join("home/tools").display().to_string(),
                arguments: vec!["for-tests".to_owned()],
                environment: vec![("SECRET".to_owned(), "swordfish".to_owned())],
            }),
            hook: None,
            end: Box::new(Mutex::new(child)),
        })
    }
}

/// An MCP server with one tool, which says what it was given.
const TOOL_SERVER: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case "$line" in
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer='"result":{"tools":[{"name":"task","description":"Launches.","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) answer='"result":{"content":[{"type":"text","text":"'"$1 $SECRET"'"}]}' ;;
    *) answer='"error":{"code":-32601,"message":"unknown"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

/// Claude Code, unless it cannot be had here. The first test fetches it.
fn program() -> Option<PathBuf> {
    static FETCHED: OnceLock<()> = OnceLock::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = folder.ancestors().nth(2).expect("the repository");
    FETCHED.get_or_init(|| {
        let done = Started::new(repository.join("scripts/agents-for-tests")).status();
        assert!(done.expect("the script runs").success());
    });
    let program = repository.join("target/agents-for-tests/claude");
    program.exists().then_some(program)
}

/// All processes that were started in this folder's world: they have it in their environment.
fn processes(folder: &Path) -> Vec<Pid> {
    let folder = folder.as_os_str().as_encoded_bytes();
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let ours = all.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.windows(folder.len()).any(|part| part == folder)
    });
    let number = |name: std::ffi::OsString| Pid::from_raw(name.to_str()?.parse().ok()?);
    ours.filter_map(|process| number(process.file_name()))
        .collect()
}
