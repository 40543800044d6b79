//! Sessions of one engine in folders of their own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{agent::Mode, id::SessionId, lock::lock, port::transact};
use asyncagents_engine::{Approver, Question, Reply as Answer};
use asyncagents_scripted_model::{Reply, Script, When};
use asyncagents_store::Sqlite;
use serde_json::json;

use crate::harness::{Harness, Plan};

/// A person who allows everything for good, and remembers where something was asked.
#[derive(Default)]
struct Person(Mutex<Vec<SessionId>>);

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: Question) -> Answer {
        let mut asked = lock(&self.0);
        asked.push(question.session);
        Answer::Always
    }
}

/// What a session does that is prompted so: it writes a file twice, reads that of the other session
/// through a link, and one that a rule keeps.
fn works(script: Script, prompt: &str) -> Script {
    let write = |content: &str| Reply::call("write", json!({"path": "a.txt", "content": content}));
    let read = |path: &str| Reply::call("read", json!({"path": path}));
    script
        .rule(When::turn(0).first(prompt), write("first"))
        .rule(When::turn(1).first(prompt), write(prompt))
        .rule(When::turn(2).first(prompt), read("other/a.txt"))
        .rule(When::turn(3).first(prompt), read("kept/key"))
        .rule(When::turn(4).first(prompt), Reply::text("Done."))
}

#[tokio::test]
async fn two_sessions_work_each_in_its_own_folder() {
    let person = Arc::new(Person::default());
    let plan = Plan {
        approver: Some(person.clone()),
        settings: Box::new(|settings| {
            let rule = |text: &str| text.parse().expect("a rule");
            settings.session_folders = vec![settings.workspace.with_file_name("tree")];
            settings.permissions.ask = vec![rule("write(a.txt)")];
            settings.permissions.deny = vec![rule("read(kept/*)")];
        }),
        ..Plan::default()
    };
    let script = works(works(Script::new(), "At home"), "In the tree");
    let harness = Harness::with(script, plan).await;
    let work = harness.path("").canonicalize().expect("a folder");
    let tree = harness
        .folder
        .path()
        .canonicalize()
        .expect("a folder")
        .join("tree");
    fs::create_dir(&tree).expect("a folder");
    for (folder, other) in [(&work, &tree), (&tree, &work)] {
        fs::create_dir(folder.join("kept")).expect("a folder");
        fs::write(folder.join("kept/key"), "KEY").expect("written");
        symlink(other, folder.join("other")).expect("a link");
    }

    let home = harness.begin("general").await;
    let other = in_folder(&harness, &home, &tree).await;
    for (session, text) in [(&home, "At home"), (&other, "In the tree")] {
        let prompt = harness.prompt(session, text).await;
        assert_eq!(harness.ended(session, &prompt).await.said(), "Done.");
        let last = harness.bodies(text).pop().expect("a request");
        assert!(
            last.contains("other/a.txt is outside of the workspace"),
            "{last}"
        );
        assert!(
            last.contains("the rule `read(kept/*)` forbids it"),
            "{last}"
        );
        assert!(!last.contains("KEY"), "{last}");
    }
    assert_eq!(harness.read("a.txt"), "At home");
    let written = fs::read_to_string(tree.join("a.txt"));
    assert_eq!(written.expect("written"), "In the tree");
    // What was allowed for good in one folder is asked for in the other, once.
    let asked = lock(&person.0).clone();
    assert_eq!(asked, [home, other]);
    harness.close().await;
}

/// Nothing is done elsewhere instead.
#[tokio::test]
async fn a_session_whose_folder_is_gone_has_no_tools_that_touch_files() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "x"})),
        )
        .rule(When::turn(1), Reply::text("Then not."));
    let plan = Plan {
        settings: Box::new(|settings| {
            settings
                .session_folders
                .push(settings.workspace.join("gone"))
        }),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let home = harness.begin("general").await;
    let work = harness.path("").canonicalize().expect("a folder");
    let gone = in_folder(&harness, &home, &work.join("gone")).await;
    let prompt = harness.prompt(&gone, "Write").await;
    assert_eq!(harness.ended(&gone, &prompt).await.said(), "Then not.");
    let last = harness.model.requests().pop().expect("a request").last();
    assert!(
        last.contains("the folder of this session cannot be used"),
        "{last}"
    );
    assert!(!harness.path("a.txt").exists() && !harness.path("gone").exists());
    harness.close().await;
}

/// The database may have been changed by somebody else.
#[tokio::test]
async fn a_folder_that_only_the_database_names_is_not_worked_in() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "x"})),
        )
        .rule(When::turn(1), Reply::text("Done."));
    let plan = Plan {
        settings: Box::new(|settings| settings.permissions.mode = Mode::AutoEdit),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let home = harness.begin("general").await;
    let named = elsewhere.path().canonicalize().expect("a folder");
    let session = in_folder(&harness, &home, &named).await;
    let prompt = harness.prompt(&session, "Write").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Done.");
    assert_eq!(harness.read("a.txt"), "x");
    assert!(!named.join("a.txt").exists());
    harness.close().await;
}

/// A session like another, in this folder.
async fn in_folder(harness: &Harness, like: &SessionId, folder: &Path) -> SessionId {
    let mut session = harness.engine.session(like).await.expect("there");
    session.id = SessionId::from(format!("{like}0"));
    session.workspace = folder.display().to_string();
    let id = session.id.clone();
    let store = Sqlite::open(harness.folder.path().join("db")).expect("opened");
    let begun = transact(&store, move |journal| journal.begin_session(&session));
    begun.await.expect("begun");
    id
}
