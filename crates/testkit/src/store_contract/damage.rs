//! Rows that were changed behind the back of the store.

use std::sync::Arc;

use asyncagents_core::{
    agent::Entry,
    event::Event,
    port::{Journal, StoreErrorKind, Stored},
};

use super::{
    Site, on_new, read,
    samples::{at, id, launched_with_all, notice, session_with_all, task_with},
};

const UNKNOWN: &str = "unheard-of";

type Look = fn(&mut dyn Journal) -> Stored<()>;

fn task(journal: &mut dyn Journal) -> Stored<()> {
    journal.task(&id(1)).map(drop)
}

fn events(journal: &mut dyn Journal) -> Stored<()> {
    journal.events(&id(1)).map(drop)
}

fn notices(journal: &mut dyn Journal) -> Stored<()> {
    journal.posts(&id(1)).map(drop)
}

fn entries(journal: &mut dyn Journal) -> Stored<()> {
    journal.entries(&"ses_1".into(), 0, u64::MAX).map(drop)
}

fn session(journal: &mut dyn Journal) -> Stored<()> {
    journal.session(&"ses_1".into()).map(drop)
}

/// One of everything.
async fn fill(site: &Arc<dyn Site>) {
    on_new(site, |journal| {
        let task = task_with(journal, 1, launched_with_all(), &[Event::Started])?;
        journal.post(&task, &notice(&task), at(1))?;
        journal.begin_session(&session_with_all("ses_1"))?;
        let entry = Entry::Nudged {
            text: "Go on.".to_owned(),
        };
        journal.file(&"ses_1".into(), &entry, at(1))?;
        Ok(())
    })
    .await;
}

/// A read fails with damage, and names the table, the row and these words.
async fn is_found(site: &Arc<dyn Site>, sql: &str, look: Look, words: &[&str]) {
    fill(site).await;
    site.tamper(sql);
    let error = read(&site.open(), look).await.expect_err(sql);
    assert_eq!(error.kind(), StoreErrorKind::Damaged, "{sql}: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{sql}: {error}");
    }
    site.tamper(
        "DELETE FROM tasks; DELETE FROM events; DELETE FROM notices; DELETE FROM sessions; \
         DELETE FROM entries; DELETE FROM chains",
    );
}

pub(super) async fn an_unknown_word_is_damage_and_names_its_row(site: Arc<dyn Site>) {
    let one = id(1).to_string();
    for (table, column, look, row) in [
        ("tasks", "state", task as Look, &*one),
        ("tasks", "stage", task, &one),
        ("tasks", "context", task, &one),
        ("notices", "state", notices, "notice.0"),
        ("notices", "kind", notices, "notice.0"),
    ] {
        let sql = format!("UPDATE {table} SET {column} = '{UNKNOWN}'");
        is_found(&site, &sql, look, &[table, row, column, UNKNOWN]).await;
    }
    for (table, column, from, look, row) in [
        ("tasks", "skill", "high", task as Look, &*one),
        ("sessions", "terms", "high", session, "ses_1"),
        ("events", "body", "launched", events, &one),
        ("events", "body", "messages", events, &one),
        ("events", "body", "high", events, &one),
        ("entries", "body", "nudged", entries, "ses_1"),
    ] {
        let sql = format!("UPDATE {table} SET {column} = replace({column}, '{from}', '{UNKNOWN}')");
        is_found(&site, &sql, look, &[table, row, UNKNOWN]).await;
    }
}

pub(super) async fn a_broken_record_is_damage_and_names_its_row(site: Arc<dyn Site>) {
    let one = id(1).to_string();
    for (table, column, look, row) in [
        ("tasks", "tools", task as Look, &*one),
        ("tasks", "skill", task, &one),
        ("sessions", "terms", session, "ses_1"),
        ("events", "body", events, &one),
        ("entries", "body", entries, "ses_1"),
    ] {
        let sql = format!("UPDATE {table} SET {column} = '{{'");
        is_found(&site, &sql, look, &[table, row]).await;
    }
    // A rule that cannot be parsed must not be taken for no rule.
    let sql = "UPDATE tasks SET skill = replace(skill, '\"write\"', '\"write(\"')";
    is_found(&site, sql, task, &["tasks", &one]).await;
    // A state without what belongs to it.
    let sql = "UPDATE tasks SET since = NULL";
    is_found(&site, sql, task, &["tasks", &one, "since"]).await;
}
