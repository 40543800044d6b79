//! What skills and traces cost: finding 2,000 skills, and opening a trace of 10,000 steps.
//!
//! `cargo bench -p asyncagents-runtime --bench skills` prints what is in `docs/benchmarks.md`.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use asyncagents_core::{
    agent::{Answer, Block, Call, End, Entry, Stop, ToolOutcome, Usage},
    budget::Cost,
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    moment::Moment,
    port::{Host, HostError, Journal, Session, Store},
    skill::disclose,
};
use asyncagents_runtime::{
    Hosts, Manager, Settings, SkillAround, SkillDirs, SkillPlaces, SystemClock,
};
use asyncagents_store::Sqlite;

const SKILLS: usize = 2_000;
const STEPS: usize = 10_000;
const TIMES: usize = 15;

fn main() {
    finding();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(tracing());
}

/// Skills as people write them: ten keys, and two pages of instructions.
fn write_skills(project: &Path) {
    for number in 0..SKILLS {
        let folder = project.join(format!(".claude/skills/skill-{number:04}"));
        fs::create_dir_all(&folder).expect("a folder");
        let head = format!(
            "---\nname: skill-{number:04}\ndescription: Does the work number {number}, carefully \
             and step by step. Use when the user asks for it.\ncontext: fork\nagent: Explore\n\
             allowed-tools:\n  - Read\n  - Grep\n  - Bash(git log --oneline *)\nmax-iterations: 20\n\
             timeout: 5m\nmodel: inherit\npriority: {}\ntags: [work, number]\n---\n\n# Work\n\n",
            number % 7
        );
        let body = "Read the files concerned, and say what you found.\n".repeat(80);
        fs::write(folder.join("SKILL.md"), head + &body).expect("written");
    }
}

fn finding() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("a project");
    write_skills(folder.path());
    let places = SkillPlaces::usual(&SkillAround {
        workspace: Some(folder.path()),
        ..SkillAround::default()
    });
    let (mut first, mut second, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let dirs = SkillDirs::new(places.clone());
        let begun = Instant::now();
        assert_eq!(dirs.catalog().skills.len(), SKILLS);
        first.push(begun.elapsed());
        let begun = Instant::now();
        let catalog = dirs.catalog();
        second.push(begun.elapsed());
        let begun = Instant::now();
        disclose(&catalog).expect("skills");
        shown.push(begun.elapsed());
    }
    println!("{SKILLS} skills");
    report("found for the first time", first);
    report("found again", second);
    report("as a model is shown them", shown);
}

struct NoHosts;

#[async_trait::async_trait]
impl Hosts for NoHosts {
    fn serves(&self, _: &HostRef) -> bool {
        false
    }

    fn open(&self, _: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        Err(HostError::Unreachable("there is none".to_owned()))
    }
}

async fn tracing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Sqlite::open(folder.path().join("tasks.db")).expect("a store"));
    let work = Box::new(|journal: &mut dyn Journal| {
        write_run(journal);
        true
    });
    store.write(work).await.expect("written");
    let settings = Settings::default();
    let manager = Manager::new(store, Arc::new(NoHosts), Arc::new(SystemClock), settings);
    let mut opened = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        let trace = manager.trace("0198").await.expect("a trace");
        opened.push(begun.elapsed());
        assert_eq!(trace.steps.len(), STEPS);
    }
    println!("a trace of {STEPS} steps");
    report("opened", opened);
}

/// A run in which the model calls one tool after another.
fn write_run(journal: &mut dyn Journal) {
    let id = SessionId::from("ses_bench");
    let session = Session {
        id: id.clone(),
        task: None,
        title: "a long run".to_owned(),
        agent: "general".into(),
        model: "test/model".into(),
        system: String::new(),
        delegates: true,
        workspace: "/work".to_owned(),
        terms: None,
        base: None,
        begun: Moment::from_millis(1),
    };
    journal.begin_session(&session).expect("begun");
    let mut file = |at: i64, entry: Entry| {
        let at = Moment::from_millis(at);
        journal.file(&id, &entry, at).expect("filed")
    };
    file(
        1,
        Entry::Prompted {
            post: "prompt".into(),
            text: "Go".to_owned(),
            agent: "general".into(),
            model: None,
            chain: Some("0198-bench".into()),
        },
    );
    for number in 0..STEPS / 2 {
        let at = 10 * i64::try_from(number).expect("few");
        let call = Call {
            id: format!("call {number}"),
            name: "read".to_owned(),
            input: format!(r#"{{"path":"src/file-{number}.rs"}}"#),
        };
        let answer = Answer {
            model: "test/model".into(),
            blocks: vec![Block::Text("Next.".to_owned()), Block::Call(call.clone())],
            stop: Stop::Tools,
            usage: Usage {
                input: 900,
                cache_read: 800,
                cache_write: 0,
                output: 20,
            },
            cost: Some(Cost(120)),
        };
        let seen = file(at + 5, Entry::Answered { seen: 1, answer });
        assert!(seen > 0);
        file(
            at + 9,
            Entry::ToolEnded {
                call: call.id,
                outcome: ToolOutcome::Done("fn main() {}\n".repeat(150)),
            },
        );
    }
    file(
        i64::MAX / 2,
        Entry::Ended {
            prompt: "prompt".into(),
            end: End::Answered,
            answer: Some("Done.".to_owned()),
        },
    );
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!(
        "  {what}: median {:.1} ms, worst {:.1} ms, best {:.1} ms",
        milliseconds(times[times.len() / 2]),
        milliseconds(times[times.len() - 1]),
        milliseconds(times[0]),
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
