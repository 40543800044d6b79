//! Who may do what, and who is asked.

use std::sync::{Arc, Mutex, atomic::Ordering};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{Mode, Preview},
    lock::lock,
};
use asyncagents_engine::{Approver, Question, Reply as Answer};
use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::{
    delegating::launch,
    harness::{Harness, Plan},
};

/// A person who always says the same and remembers what was asked.
struct Person {
    says: Answer,
    asked: Arc<Mutex<Vec<Question>>>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: Question) -> Answer {
        let mut asked = lock(&self.asked);
        asked.push(question);
        self.says.clone()
    }
}

fn asking(says: Option<Answer>) -> (Plan, Arc<Mutex<Vec<Question>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let person = says.map(|says| {
        let asked = asked.clone();
        Arc::new(Person { says, asked }) as Arc<dyn Approver>
    });
    let plan = Plan {
        approver: person,
        settings: Box::new(|settings| settings.permissions.mode = Mode::Ask),
        ..Plan::default()
    };
    (plan, asked)
}

fn writes_twice() -> Script {
    Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "a"})),
        )
        .rule(
            When::turn(1),
            Reply::call("write", json!({"path": "b.txt", "content": "b"})),
        )
        .rule(When::turn(2), Reply::text("Done."))
}

#[rstest]
#[case::yes(Some(Answer::Yes), 2, "ab", "")]
#[case::always(Some(Answer::Always), 1, "ab", "")]
#[case::no(Some(Answer::No("the user says no: not there".to_owned())), 2, "", "not permitted: the user says no: not there")]
#[case::nobody(None, 0, "", "nobody can be asked here")]
#[tokio::test]
async fn a_change_is_asked_for(
    #[case] says: Option<Answer>,
    #[case] times: usize,
    #[case] written: &str,
    #[case] told: &str,
) {
    let (plan, asked) = asking(says);
    let harness = Harness::with(writes_twice(), plan).await;
    assert_eq!(harness.run("Write").await.said(), "Done.");
    let asked = lock(&asked).clone();
    assert_eq!(asked.len(), times, "{asked:?}");
    if let Some(first) = asked.first() {
        assert_eq!(
            (first.tool.as_str(), first.target.as_str()),
            ("write", "a.txt")
        );
        assert!(!first.background);
    }
    assert_eq!(harness.read("a.txt") + &harness.read("b.txt"), written);
    let last = harness.model.requests().pop().expect("a request").last();
    assert!(last.contains(told), "{last}");
    harness.close().await;
}

#[rstest]
#[case::bash(
    "bash",
    json!({"command": "\n".repeat(30) + "true"}),
    Preview::Command("\n".repeat(30) + "true")
)]
#[case::write(
    "write",
    json!({"path": "a.txt", "content": "a\n".repeat(30)}),
    Preview::Write { content: "a\n".repeat(30) }
)]
#[case::edit(
    "edit",
    json!({"path": "a.txt", "old": "a\n".repeat(30), "new": "b", "replace_all": "true"}),
    Preview::Edit { old: "a\n".repeat(30), new: "b".to_owned(), everywhere: true }
)]
#[tokio::test]
async fn a_question_has_all_that_would_be_done(
    #[case] tool: &str,
    #[case] arguments: serde_json::Value,
    #[case] details: Preview,
) {
    let script = Script::new()
        .rule(When::turn(0), Reply::call(tool, arguments))
        .rule(When::turn(1), Reply::text("Then not."));
    let (plan, asked) = asking(Some(Answer::No("the user says no".to_owned())));
    let harness = Harness::with(script, plan).await;
    harness.run("Do it").await.said();
    let asked = lock(&asked).clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].preview, details);
    harness.close().await;
}

#[tokio::test]
async fn the_question_of_another_tool_has_its_arguments() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("child", "Delete it", false)),
        )
        .rule(When::turn(1), Reply::text("Then not."));
    let (mut plan, asked) = asking(Some(Answer::No("the user says no".to_owned())));
    plan.settings = Box::new(|settings| {
        let rule = "asyncagents_task".parse().expect("a rule");
        settings.permissions.ask = vec![rule];
    });
    let harness = Harness::with(script, plan).await;
    harness.run("Delegate").await.said();
    let asked = lock(&asked).clone();
    let Preview::Arguments(arguments) = &asked[0].preview else {
        panic!("{asked:?}");
    };
    assert_eq!(asked[0].target, "child");
    let prompt = ("prompt".to_owned(), "Delete it".to_owned());
    assert!(arguments.contains(&prompt), "{arguments:?}");
    assert!(arguments.iter().all(|(name, _)| name != "description"));
    harness.close().await;
}

#[tokio::test]
async fn the_question_of_a_background_task_reaches_the_one_who_is_there() {
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("write", json!({"path": "c.txt", "content": "c"})),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("done"))
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("child", "Child:\nx", false)),
        )
        .rule(When::always(), Reply::text("ok"));
    let (plan, asked) = asking(Some(Answer::Yes));
    let harness = Harness::with(script, plan).await;
    harness.run("Delegate").await.said();
    let asked = lock(&asked).clone();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].background);
    assert_eq!(asked[0].title, "child");
    assert_eq!(harness.read("c.txt"), "c");
    harness.close().await;
}

#[tokio::test]
async fn an_agent_has_the_prompt_the_tools_and_the_limit_of_its_file() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "a"})),
        )
        .rule(When::turn(1), Reply::call("read", json!({"path": "x"})))
        .rule(
            When::turn(2).last("This is your last turn"),
            Reply::text("In sum: nothing."),
        );
    let harness = Harness::new(script).await;
    std::fs::create_dir_all(harness.path(".asyncagents/agents")).expect("made");
    harness.write(
        ".asyncagents/agents/poet.md",
        "---\ndescription: writes verse\ntools: Read\nmax_turns: 3\n---\nYou answer in verse.\n",
    );
    let session = harness.begin("poet").await;
    let prompt = harness.prompt(&session, "Go").await;
    assert_eq!(
        harness.ended(&session, &prompt).await.said(),
        "In sum: nothing."
    );
    let requests = harness.model.requests();
    assert!(requests[0].system().starts_with("You answer in verse."));
    assert_eq!(requests[0].tool_names(), ["read"]);
    assert!(
        requests[1]
            .last()
            .contains("there is no tool `write` here; there are read")
    );
    assert_eq!(harness.read("a.txt"), "");
    harness.close().await;
}

#[tokio::test]
async fn explore_and_plan_cannot_change_anything() {
    for agent in ["explore", "plan"] {
        let harness = Harness::new(Script::new().rule(When::always(), Reply::text("Seen."))).await;
        let session = harness.begin(agent).await;
        let prompt = harness.prompt(&session, "Look").await;
        harness.ended(&session, &prompt).await.said();
        let names = harness.model.requests()[0].tool_names();
        assert_eq!(names, ["read", "glob", "grep", "todo"], "{agent}");
        harness.close().await;
    }
}

#[tokio::test]
async fn a_rule_that_asks_every_time_is_not_answered_for_good() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "a"})),
        )
        .rule(
            When::turn(1),
            Reply::call("write", json!({"path": "ci/x", "content": "x"})),
        )
        .rule(
            When::turn(2),
            Reply::call("write", json!({"path": "ci/y", "content": "y"})),
        )
        .rule(When::turn(3), Reply::text("Done."));
    let (mut plan, asked) = asking(Some(Answer::Always));
    plan.settings = Box::new(|settings| {
        settings.permissions.mode = Mode::Ask;
        settings.permissions.ask = vec!["edit(ci/*)".parse().expect("a rule")];
    });
    let harness = Harness::with(script, plan).await;
    harness.run("Write").await.said();
    let asked = lock(&asked).clone();
    let targets: Vec<&str> = asked
        .iter()
        .map(|question| question.target.as_str())
        .collect();
    assert_eq!(targets, ["a.txt", "ci/x", "ci/y"]);
    assert_eq!(asked[0].always, "every write in this run");
    assert_eq!(asked[1].always, "exactly this");
    harness.close().await;
}

#[tokio::test]
async fn the_agent_of_a_prompt_decides_what_may_be_done() {
    let script = Script::new()
        .rule(When::turn(0), Reply::text("Hello."))
        .rule(
            When::turn(1),
            Reply::call("write", json!({"path": "a.txt", "content": "a"})),
        )
        .rule(
            When::turn(2).last("may not use write"),
            Reply::text("Only looked."),
        );
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Hello").await;
    harness.ended(&session, &prompt).await.said();
    let prompt = harness
        .prompt_as(&session, "Look only", "explore")
        .await
        .expect("taken");
    assert_eq!(
        harness.ended(&session, &prompt).await.said(),
        "Only looked."
    );
    assert_eq!(harness.read("a.txt"), "");
    let error = harness
        .prompt_as(&session, "x", "wizard")
        .await
        .expect_err("refused");
    assert!(
        error.to_string().contains("there is no agent wizard"),
        "{error}"
    );
    harness.close().await;
}

#[tokio::test]
async fn instructions_that_lead_out_of_the_project_are_not_read() {
    let harness = Harness::new(Script::new().rule(When::always(), Reply::text("Seen."))).await;
    std::fs::write(harness.folder.path().join("id_rsa"), "PRIVATE KEY").expect("written");
    std::os::unix::fs::symlink(
        harness.folder.path().join("id_rsa"),
        harness.path("AGENTS.md"),
    )
    .expect("linked");
    harness.write("CLAUDE.md", "Be brief.");
    harness.run("Look").await.said();
    let system = harness.model.requests()[0].system();
    assert!(!system.contains("PRIVATE KEY"), "{system}");
    assert!(system.contains("Be brief."), "{system}");
    harness.close().await;
}

/// What the model is told of one call, in a project with a secret and a diary.
async fn searched(says: Option<Answer>, tool: &str, input: serde_json::Value) -> (String, usize) {
    let script = Script::new()
        .rule(When::turn(0), Reply::call(tool, input))
        .rule(When::turn(1), Reply::text("Done."));
    let (mut plan, asked) = asking(says);
    plan.settings = Box::new(|settings| {
        settings.permissions.mode = Mode::Yolo;
        settings.permissions.deny = vec!["read(.env)".parse().expect("a rule")];
        settings.permissions.ask = vec!["read(notes/*)".parse().expect("a rule")];
    });
    let harness = Harness::with(script, plan).await;
    std::fs::create_dir_all(harness.path("notes")).expect("made");
    harness.write(".env", "KEY=SECRET 1\n");
    harness.write("notes/diary.md", "SECRET 2\n");
    harness.write("code.rs", "// no SECRET\n");
    harness.run("Search").await.said();
    let told = harness.model.requests().pop().expect("a request").last();
    harness.close().await;
    let asked = lock(&asked).len();
    (told, asked)
}

#[rstest]
#[case::the_file(".env", "not permitted: the rule `read(.env)` forbids it")]
#[case::by_another_way("notes/../.env", "not permitted: the rule `read(.env)` forbids it")]
#[case::asked_in_vain("notes/diary.md", "grep has to be allowed by a person")]
#[tokio::test]
async fn what_may_not_be_read_may_not_be_searched(#[case] path: &str, #[case] refusal: &str) {
    let (told, _) = searched(None, "grep", json!({"pattern": "SECRET", "path": path})).await;
    assert!(told.contains(refusal), "{told}");
    assert!(!told.contains("SECRET "), "{told}");
}

#[tokio::test]
async fn a_search_passes_over_what_may_not_be_read() {
    let (told, asked) = searched(Some(Answer::Yes), "grep", json!({"pattern": "SECRET"})).await;
    let all = "code.rs:1:// no SECRET\n\
        [1 file left out: reading has to be allowed first; name a file with `path` to ask for it]\n\
        [1 file left out: a rule forbids reading]\n";
    assert!(told.contains(all), "{told}");
    assert!(!told.contains("SECRET "), "{told}");
    assert_eq!(
        asked, 0,
        "nobody is asked about a folder that anybody may search"
    );
}

#[tokio::test]
async fn a_search_in_what_has_to_be_asked_for_is_asked_for() {
    let diary = json!({"pattern": "SECRET", "path": "notes/diary.md"});
    let (told, asked) = searched(Some(Answer::Yes), "grep", diary).await;
    assert!(told.contains("notes/diary.md:1:SECRET 2"), "{told}");
    assert_eq!(asked, 1);
}

#[rstest]
#[case::glob("glob", json!({"pattern": "**"}))]
#[case::read("read", json!({"path": "."}))]
#[tokio::test]
async fn what_may_not_be_read_is_not_listed(#[case] tool: &str, #[case] input: serde_json::Value) {
    let (told, _) = searched(None, tool, input).await;
    assert!(told.contains("code.rs") && told.contains("notes"), "{told}");
    assert!(!told.contains(".env"), "{told}");
}

#[tokio::test]
async fn an_edit_does_not_show_what_may_not_be_read() {
    let edit = json!({"path": ".env", "old": "KEY=SECRET", "new": "KEY=x"});
    let (told, _) = searched(None, "edit", edit).await;
    assert!(
        told.contains("you have not read it in this session"),
        "{told}"
    );
    assert!(!told.contains("SECRET 1"), "{told}");
}

#[tokio::test]
async fn a_file_that_may_always_be_read_is_searched_too() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("read", json!({"path": "diary"})))
        .rule(
            When::turn(1),
            Reply::call("grep", json!({"pattern": "dear"})),
        )
        .rule(When::turn(2), Reply::text("Done."));
    let (mut plan, asked) = asking(Some(Answer::Always));
    plan.settings = Box::new(|settings| {
        settings.permissions.ask = vec!["read(diary)".parse().expect("a rule")];
    });
    let harness = Harness::with(script, plan).await;
    harness.write("diary", "dear diary\n");
    harness.run("Read").await.said();
    let told = harness.model.requests().pop().expect("a request").last();
    assert!(told.contains("diary:1:dear diary"), "{told}");
    let asked = lock(&asked).len();
    assert_eq!(asked, 1);
    harness.close().await;
}

#[tokio::test]
async fn an_agent_that_may_not_read_a_file_does_not_find_it() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("grep", json!({"pattern": "SECRET"})),
        )
        .rule(When::turn(1), Reply::text("Done."));
    let harness = Harness::new(script).await;
    std::fs::create_dir_all(harness.path(".asyncagents/agents")).expect("made");
    harness.write(
        ".asyncagents/agents/careful.md",
        "---\ndescription: looks\ndisallowedTools: Read(.env)\n---\nYou look around.\n",
    );
    harness.write(".env", "KEY=SECRET 1\n");
    let session = harness.begin("careful").await;
    let prompt = harness.prompt(&session, "Go").await;
    harness.ended(&session, &prompt).await.said();
    let told = harness.model.requests().pop().expect("a request").last();
    assert!(
        told.contains("[1 file left out: a rule forbids reading]"),
        "{told}"
    );
    assert!(!told.contains("SECRET 1"), "{told}");
    harness.close().await;
}

/// Prompt, last answer and end wait for the disk, and each of three steps as often as it has to: for
/// its answer, for its result if it changed something, and before a person is asked.
#[rstest]
#[case::looks(Mode::Yolo, "read", 1)]
#[case::looks_where_changes_are_asked_for(Mode::Ask, "read", 1)]
#[case::changes(Mode::Yolo, "write", 2)]
#[case::changes_after_a_question(Mode::Ask, "write", 3)]
#[tokio::test]
async fn a_step_waits_for_the_disk_no_more_than_it_has_to(
    #[case] mode: Mode,
    #[case] tool: &str,
    #[case] waits: usize,
) {
    let script = (0..3).fold(Script::new(), |script, turn| {
        let call = match tool {
            "read" => json!({"path": format!("{turn}.txt")}),
            _ => json!({"path": format!("new-{turn}.txt"), "content": "x"}),
        };
        script.rule(When::turn(turn), Reply::call(tool, call))
    });
    let script = script.rule(When::turn(3), Reply::text("Done."));
    let (mut plan, asked) = asking(Some(Answer::Yes));
    plan.settings = Box::new(move |settings| settings.permissions.mode = mode);
    let harness = Harness::with(script, plan).await;
    (0..3).for_each(|turn| harness.write(&format!("{turn}.txt"), "x"));
    assert_eq!(harness.run("Work").await.said(), "Done.");
    assert_eq!(harness.synced.load(Ordering::SeqCst), 3 * waits + 3);
    let asks = if waits == 3 { 3 } else { 0 };
    assert_eq!(lock(&asked).len(), asks);
    harness.close().await;
}
