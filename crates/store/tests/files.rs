//! The database is a file, and files have a hard life. Whatever is wrong with one gets a
//! clear error, and the file is left as it was.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use asyncagents_core::{
    agent::{Effort, End, Entry, Filed, Tools},
    budget::Budget,
    event::Launched,
    host_ref::HostRef,
    id::TaskId,
    moment::Moment,
    port::{
        Content, Fate, Journal, Post, PostKind, Session, StoreErrorKind, Stored, query, transact,
    },
    question::Reply,
    skill::{Role, Terms},
    task::{Brief, Context, Place, Task},
    trace::TraceTotals,
};
use asyncagents_store::{Options, Sqlite};
use rstest::rstest;
use rusqlite::Connection;
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    (folder, path)
}

fn launched(parent: &str) -> Launched {
    Launched {
        place: Place {
            parent: parent.into(),
            above: None,
            root: parent.into(),
            depth: 1,
            outside: None,
            above_in: None,
        },
        brief: Brief {
            description: "one".to_owned(),
            agent: "general".into(),
            model: None,
            effort: None,
            context: Context::Fresh,
            host: HostRef::from("scripted").into(),
        },
        prompt: "do it ".repeat(100),
        fork: None,
        budget: Budget::default(),
        batch: 0,
        owner: None,
        chain: None,
        from: None,
        role: None,
    }
}

async fn write<T: Send + 'static>(
    store: &Sqlite,
    work: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> Stored<T> {
    transact(store, work).await
}

async fn launch(store: &Sqlite, n: u128) -> Stored<Task> {
    write(store, move |journal| {
        journal.insert(TaskId::from_random(n), launched("main"), Moment::default())
    })
    .await
}

async fn tasks(store: &Sqlite) -> usize {
    let found = write(store, |journal| Ok(journal.tasks_of(None)?.len()));
    found.await.expect("a count")
}

/// A file with a few hundred tasks in it, closed.
async fn filled(path: &Path) {
    let store = Sqlite::open(path).expect("a store");
    for n in 0..300 {
        launch(&store, n).await.expect("launched");
    }
    drop(store);
    // The last connection to close takes the file beside it away.
    let beside = path.with_file_name("tasks.db-wal");
    while beside.exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_new_file_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _) = folder();
    let path = folder.path().join("deep/below/tasks.db");
    let store = Sqlite::open(&path).expect("a store");
    launch(&store, 1).await.expect("launched");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_file_name("tasks.db-wal")), 0o600);
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
}

#[rstest]
#[case::text(b"this is my shopping list\n".to_vec())]
#[case::zeros(vec![0; 10_000])]
#[case::half_a_header(b"SQLite format 3\0".to_vec())]
#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone(#[case] content: Vec<u8>) {
    let (_folder, path) = folder();
    fs::write(&path, &content).expect("written");
    let error = Sqlite::open(&path).err().expect("an error");
    assert!(error.kind() == StoreErrorKind::NotADatabase, "{error}");
    assert_eq!(fs::read(&path).expect("read"), content);
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let (_folder, path) = folder();
    let theirs = Connection::open(&path).expect("theirs");
    theirs
        .execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')")
        .expect("written");
    drop(theirs);
    let before = fs::read(&path).expect("read");
    let error = Sqlite::open(&path).err().expect("an error");
    assert!(error.kind() == StoreErrorKind::NotOurs, "{error}");
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[tokio::test]
async fn a_file_that_claims_to_be_ours_without_a_format_is_left_alone() {
    let (_folder, path) = folder();
    filled(&path).await;
    let planted = Connection::open(&path).expect("open");
    planted
        .pragma_update(None, "user_version", 0)
        .expect("as if it were new");
    drop(planted);
    let before = fs::read(&path).expect("read");
    let error = Sqlite::open(&path).err().expect("an error");
    assert!(error.kind() == StoreErrorKind::NotOurs, "{error}");
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[tokio::test]
async fn code_in_a_file_does_not_run() {
    let (_folder, path) = folder();
    filled(&path).await;
    let planted = Connection::open(&path).expect("open");
    planted
        .execute_batch(
            "CREATE TABLE seen (what TEXT);
             CREATE TRIGGER spy AFTER INSERT ON events BEGIN INSERT INTO seen VALUES ('ran'); END;",
        )
        .expect("planted");
    drop(planted);
    let store = Sqlite::open(&path).expect("opened");
    launch(&store, 77_777).await.expect("launched");
    let looked = Connection::open(&path).expect("open");
    let seen: i64 = looked
        .query_row("SELECT count(*) FROM seen", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(seen, 0);
}

#[tokio::test]
async fn a_newer_format_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    filled(&path).await;
    let newer = Connection::open(&path).expect("open");
    newer.pragma_update(None, "user_version", 99).expect("set");
    drop(newer);
    let before = fs::read(&path).expect("read");
    let error = Sqlite::open(&path).err().expect("an error");
    let said = error.to_string();
    assert!(
        said.ends_with("has format 99, and this version knows formats up to 8"),
        "{said}"
    );
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[rstest]
#[case::cut_in_the_header(50)]
#[case::cut_after_the_first_page(4_096)]
#[case::cut_in_the_middle(100_000)]
#[tokio::test]
async fn a_truncated_file_is_recognised_and_left_as_it_is(#[case] length: usize) {
    let (_folder, path) = folder();
    filled(&path).await;
    let whole = fs::read(&path).expect("read");
    assert!(whole.len() > length);
    fs::write(&path, &whole[..length]).expect("written");
    let error = Sqlite::open(&path).err().expect("an error");
    let recognised = matches!(
        error.kind(),
        StoreErrorKind::Damaged | StoreErrorKind::NotADatabase
    );
    assert!(recognised, "{error}");
    assert_eq!(fs::read(&path).expect("read"), whole[..length]);
}

#[tokio::test]
async fn a_file_that_is_damaged_inside_says_so_when_it_is_read() {
    let (_folder, path) = folder();
    filled(&path).await;
    let mut content = fs::read(&path).expect("read");
    let middle = content.len() / 3;
    let end = content.len() - 4_096;
    content[middle..end].fill(0xA5);
    fs::write(&path, &content).expect("written");
    // It may look well from outside.
    let Ok(store) = Sqlite::open(&path) else {
        return;
    };
    let read = write(&store, |journal| journal.tasks_of(None)).await;
    let error = read.expect_err("damaged");
    assert!(error.kind() == StoreErrorKind::Damaged, "{error}");
}

#[tokio::test]
async fn a_copy_made_while_it_is_open_is_a_database_of_its_own() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).expect("a store");
    for n in 0..50 {
        launch(&store, n).await.expect("launched");
    }
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).expect("copied");
    fs::copy(
        path.with_file_name("tasks.db-wal"),
        copy.with_file_name("copy.db-wal"),
    )
    .expect("copied");
    let copied = Sqlite::open(&copy).expect("a store");
    assert_eq!(tasks(&copied).await, 50);
    launch(&copied, 1_000).await.expect("launched");
    assert_eq!(tasks(&copied).await, 51);
    assert_eq!(tasks(&store).await, 50, "the first is not touched");
}

#[tokio::test]
async fn a_file_that_someone_else_holds_is_locked_and_then_works_again() {
    let (_folder, path) = folder();
    filled(&path).await;
    let options = Options {
        busy_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let store = Sqlite::open_with(&path, options).expect("a store");
    let theirs = Connection::open(&path).expect("open");
    theirs.execute_batch("BEGIN EXCLUSIVE").expect("held");
    let error = launch(&store, 1_000).await.expect_err("locked");
    assert!(error.kind() == StoreErrorKind::Locked, "{error}");
    theirs.execute_batch("ROLLBACK").expect("let go");
    launch(&store, 1_000).await.expect("launched");
}

#[tokio::test]
async fn a_folder_is_no_file() {
    let (folder, _) = folder();
    let error = Sqlite::open(folder.path()).err().expect("an error");
    assert!(error.kind() == StoreErrorKind::CannotOpen, "{error}");
}

/// What the seventh format and later ones have changed, changed back.
const SIXTH_FORMAT: &str = include_str!("on_disk/sixth_format.sql");

/// What the third format and later ones up to the sixth have added, taken away.
const WITHOUT_SKILLS: &str = "ALTER TABLE notices DROP COLUMN kind; ALTER TABLE notices DROP COLUMN run; \
    ALTER TABLE notices DROP COLUMN question; ALTER TABLE notices DROP COLUMN reply; \
    ALTER TABLE tasks DROP COLUMN settings; ALTER TABLE tasks DROP COLUMN seal; \
    DROP TABLE identity; ALTER TABLE owners DROP COLUMN boot; ALTER TABLE owners DROP COLUMN steady; \
    DROP TABLE chains; ALTER TABLE tasks DROP COLUMN skill; \
    ALTER TABLE tasks DROP COLUMN chain; ALTER TABLE sessions DROP COLUMN terms;";

#[tokio::test]
async fn a_file_of_the_second_format_keeps_its_tasks_and_takes_skills() {
    let (_folder, path) = folder();
    filled(&path).await;
    let older = Connection::open(&path).expect("open");
    older
        .execute_batch(&format!(
            "{SIXTH_FORMAT} {WITHOUT_SKILLS} PRAGMA user_version = 2;"
        ))
        .expect("as the second version left it");
    drop(older);
    let store = Sqlite::open(&path).expect("opened");
    let terms = Terms {
        skill: "look".to_owned(),
        tools: Tools {
            only: Some(vec!["bash(git log *)".parse().expect("a rule")]),
            not: vec!["write".parse().expect("a rule")],
            within: Vec::new(),
        },
        iterations: 7,
        retries: 2,
        iteration_time: Some(Duration::from_millis(500)),
        model: Some("test/fast".into()),
        effort: Some(Effort::High),
    };
    let mut launched = launched("main");
    launched.chain = Some("0198-aa".into());
    launched.role = Some(Role {
        terms: terms.clone(),
        instructions: "Look.".to_owned(),
    });
    let expected = launched.role.clone();
    let (old, task, role, chains) = write(&store, move |journal| {
        let old = journal.tasks_of(None)?;
        let task = journal.insert(
            TaskId::from_random(999),
            launched.clone(),
            Moment::from_millis(5),
        )?;
        let read = journal.task(&task.id)?.expect("there");
        assert_eq!(read, task);
        let role = journal.launched(&task.id)?.expect("launched").role;
        let chains = journal.chains_beginning_with("0198")?;
        Ok((old, task, role, chains))
    })
    .await
    .expect("written");
    assert!(
        old.iter()
            .all(|task| task.chain.is_none() && task.skill.is_none())
    );
    assert!(!old.is_empty());
    assert_eq!(task.skill, Some(terms));
    assert_eq!(role, expected);
    assert_eq!(chains.len(), 1);
}

#[tokio::test]
async fn a_file_of_the_fifth_format_keeps_its_notices_and_takes_answers() {
    let (_folder, path) = folder();
    filled(&path).await;
    let older = Connection::open(&path).expect("open");
    let insert = "INSERT INTO notices (id, task, parent, host, visible, hidden, state, not_before, attempts) \
         SELECT id || '.notice.0', id, parent, host, 'it ended', '', 'pending', 1, 0 FROM tasks LIMIT 1;";
    older
        .execute_batch(&format!(
            "{SIXTH_FORMAT} {insert} ALTER TABLE notices DROP COLUMN kind; ALTER TABLE notices DROP COLUMN run; \
             ALTER TABLE notices DROP COLUMN question; ALTER TABLE notices DROP COLUMN reply; \
             PRAGMA user_version = 5;"
        ))
        .expect("as the fifth version left it");
    drop(older);
    let store = Sqlite::open(&path).expect("opened");
    let posts = write(&store, move |journal| {
        let mut found = Vec::new();
        for task in journal.tasks_of(None)? {
            for post in journal.posts(&task.id)? {
                let answer = Post {
                    id: task.id.answer(9),
                    to: "child".into(),
                    run: 0,
                    content: Content::Answer {
                        question: "q".to_owned(),
                        reply: Reply::Once,
                    },
                };
                journal.post(&task, &answer, Moment::from_millis(1))?;
                found.push(post);
                found.extend(journal.posts(&task.id)?.pop());
            }
        }
        Ok(found)
    });
    let posts = posts.await.expect("written");
    let kinds: Vec<PostKind> = posts.iter().map(|post| post.kind).collect();
    assert_eq!(kinds, [PostKind::Notice, PostKind::Answer]);
    assert!(
        posts
            .iter()
            .all(|post| post.fate == Fate::Pending && post.run == 0)
    );
}

#[tokio::test]
async fn a_file_of_the_first_format_keeps_its_tasks_and_takes_sessions() {
    let (_folder, path) = folder();
    filled(&path).await;
    let older = Connection::open(&path).expect("open");
    older
        .execute_batch(&format!(
            "{SIXTH_FORMAT} {WITHOUT_SKILLS} DROP TABLE entries; DROP TABLE sessions; PRAGMA user_version = 1;"
        ))
        .expect("as the first version left it");
    drop(older);
    let store = Sqlite::open(&path).expect("opened");
    let session = session("ses_1");
    let (kept, begun) = write(&store, move |journal| {
        journal.begin_session(&session)?;
        Ok((
            !journal.tasks_of(None)?.is_empty(),
            journal.session(&session.id)?,
        ))
    })
    .await
    .expect("written");
    assert!(kept);
    assert_eq!(
        begun.map(|session| session.title).as_deref(),
        Some("a story")
    );
}

/// The text of an entry: long, and not the same all over.
fn long_text() -> String {
    let lines = (0..2_000).map(|n| format!("line {n}, ärgerlich \u{1F600}\n"));
    lines.collect()
}

#[tokio::test]
async fn a_file_of_the_sixth_format_keeps_its_conversations() {
    let (_folder, path) = folder();
    filled(&path).await;
    let older = Connection::open(&path).expect("open");
    older
        .execute_batch(&format!("{SIXTH_FORMAT} PRAGMA user_version = 6;"))
        .expect("as the sixth version left it");
    let texts = ["short".to_owned(), long_text(), "x".repeat(600)];
    for (text, seq) in texts.iter().zip(1..) {
        let body = serde_json::json!({"kind": "nudged", "text": text}).to_string();
        let sql = "INSERT INTO entries VALUES ('ses_1', ?1, ?1 * 10, NULL, 'nudged', ?2)";
        older.execute(sql, (seq, body)).expect("written");
    }
    // A run of two answers, as its lines were written then.
    let lines = include_str!("on_disk/entries.jsonl").lines();
    let line = |kind: &str| {
        let mut lines = lines.clone();
        let found = lines.find(|line| line.starts_with(&format!(r#"{{"kind":"{kind}""#)));
        found.unwrap_or_default().to_owned()
    };
    for (kind, seq) in ["prompted", "answered", "answered"].iter().zip(1..) {
        let sql = "INSERT INTO entries VALUES ('ses_2', ?1, 5, ?2, ?3, ?4)";
        let post = (*kind == "prompted").then_some("p");
        let values = (seq, post, kind, line(kind));
        older.execute(sql, values).expect("written");
    }
    drop(older);
    let store = Sqlite::open(&path).expect("opened");
    let run = write(&store, |journal| {
        let entries = journal.entries(&"ses_2".into(), 0, u64::MAX)?;
        let read = entries
            .iter()
            .map(|filed| TraceTotals::of_entry(&filed.entry));
        let read = read.fold(TraceTotals::default(), TraceTotals::plus);
        Ok((read, journal.run_summary(&"ses_2".into(), &"p".into())?))
    });
    let (read, summary) = run.await.expect("read");
    assert_eq!(read.spent.turns, 2);
    assert_eq!(summary.expect("the run").used, read);
    let entries = write(&store, |journal| {
        let last = Entry::Nudged {
            text: "and later".to_owned(),
        };
        journal.file(&"ses_1".into(), &last, Moment::from_millis(40))?;
        journal.entries(&"ses_1".into(), 0, u64::MAX)
    });
    let entries = entries.await.expect("read");
    let expected = texts.into_iter().chain(["and later".to_owned()]).zip(1..);
    let expected: Vec<Filed> = expected
        .map(|(text, seq)| Filed {
            seq,
            at: Moment::from_millis(i64::try_from(seq).expect("small") * 10),
            entry: Entry::Nudged { text },
        })
        .collect();
    assert_eq!(entries, expected);
    drop(store);
    let looked = Connection::open(&path).expect("open");
    let number = |sql: &str| looked.query_row(sql, [], |row| row.get::<_, i64>(0));
    let packed = number("SELECT count(*) FROM entries WHERE packed IS NOT NULL AND body IS NULL");
    assert_eq!(packed, Ok(2), "what is long");
    let left = number("SELECT count(*) FROM sqlite_master WHERE name = 'entries_before'");
    assert_eq!(left, Ok(0));
    let check = looked.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.as_deref(), Ok("ok"));
}

#[tokio::test]
async fn a_conversation_takes_hardly_more_room_than_its_text() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path).expect("a store");
    // What tools and models say: words, in entries of many lengths.
    const WORDS: [&str; 16] = [
        "let ", "task", " = ", "self.", "journal", "(", ")?;\n", "    ", "match ", "Some(", "read",
        "fn ", "-> ", "Result<", "the ", "// ",
    ];
    let texts = |n: usize| {
        let mut state = u64::try_from(n).expect("small") + 1;
        let words = std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            WORDS[usize::try_from(state >> 60).expect("small")]
        });
        words.take(50 + n * 37 % 2_000).collect::<String>()
    };
    write(&store, move |journal| {
        for n in 0..1_000 {
            let session = format!("ses_{}", n / 20);
            let entry = Entry::Nudged { text: texts(n) };
            journal.file(&session.as_str().into(), &entry, Moment::from_millis(1))?;
        }
        Ok(())
    })
    .await
    .expect("written");
    drop(store);
    let text: usize = (0..1_000).map(|n| texts(n).len()).sum();
    let file = fs::metadata(&path).expect("a file").len();
    let file = usize::try_from(file).expect("small");
    assert!(file * 10 <= text * 11, "{file} bytes for {text} of text");
}

fn session(id: &str) -> Session {
    Session {
        id: id.into(),
        task: None,
        title: "a story".to_owned(),
        agent: "general".into(),
        model: "test/model".into(),
        system: "You are.".to_owned(),
        delegates: true,
        workspace: "/work".to_owned(),
        terms: None,
        base: None,
        begun: Moment::from_millis(7),
    }
}

fn run_ended(end: End, answer: Option<&str>) -> Entry {
    Entry::Ended {
        prompt: "p".into(),
        end,
        answer: answer.map(str::to_owned),
    }
}

/// Waits until nobody has the file open: a thread that has committed lets go of it a little later.
async fn closed(path: &Path) {
    let log = path.with_extension("db-wal");
    while log.exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_read_and_stays_as_it_is() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path).expect("opened");
    let filed = |journal: &mut dyn Journal| {
        journal.file(
            &"ses_1".into(),
            &run_ended(End::Aborted, None),
            Moment::from_millis(1),
        )
    };
    write(&store, filed).await.expect("written");
    drop(store);
    closed(&path).await;
    let before = fs::read(&path).expect("read");
    let store = Sqlite::open_to_read(&path).expect("opened");
    let entries = query(&store, |journal| -> Stored<usize> {
        Ok(journal.entries(&"ses_1".into(), 0, u64::MAX)?.len())
    });
    assert_eq!(entries.await, Ok(1));
    let refused = write(&store, filed).await.expect_err("refused");
    assert_eq!(refused.kind(), StoreErrorKind::ReadOnly, "{refused}");
    drop(store);
    assert_eq!(fs::read(&path).expect("read"), before);
    let nothing = Sqlite::open_to_read(path.with_file_name("none.db"));
    let nothing = nothing.err().expect("an error");
    assert_eq!(nothing.kind(), StoreErrorKind::CannotOpen);
    assert!(!path.with_file_name("none.db").exists());
}
