//! A call between being checked and being run, and sessions in folders of their own.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use asyncagents_core::agent::{Reach, ToolOutcome};
use asyncagents_tools::{Prepared, Sandbox, SandboxMode, Settings, Toolbox};
use serde_json::json;

use crate::workbench::{HELPER, Workbench, can_sandbox};

async fn run(prepared: Prepared) -> ToolOutcome {
    prepared.run(Arc::new(|_| Reach::Show), &|_| {}).await
}

/// The path was resolved when the call was checked. A link that is put there while a person thinks
/// does not lead the call elsewhere.
#[tokio::test]
async fn what_was_checked_is_what_is_run() {
    let bench = Workbench::new();
    bench.file("allowed/a", "harmless");
    bench.file("kept/a", "SECRET");
    let [read, list, search] = [
        ("read", json!({"path": "allowed/a"})),
        ("read", json!({"path": "allowed"})),
        ("grep", json!({"pattern": "SECRET", "path": "allowed"})),
    ]
    .map(|(tool, input)| bench.prepared(tool, &input));
    let write = bench.prepared("write", &json!({"path": "allowed/new", "content": "x"}));
    assert_eq!(read.info().target, "allowed/a");

    fs::rename(
        bench.workspace.join("allowed"),
        bench.workspace.join("away"),
    )
    .expect("moved");
    symlink("kept", bench.workspace.join("allowed")).expect("a link");
    for prepared in [read, list, search, write] {
        let why = format!(
            "{} has become something else since this call was checked",
            prepared.info().target
        );
        assert_eq!(run(prepared).await, ToolOutcome::Failed(why));
    }
    assert!(!bench.workspace.join("kept/new").exists());
}

#[tokio::test]
async fn each_session_works_in_its_own_folder() {
    let bench = Workbench::new();
    bench.file("a", "one\n");
    let folder = bench.outside.join("tree");
    fs::create_dir(&folder).expect("a folder");
    let other = bench.session_in(&folder);

    let write = json!({"path": "a", "content": "other"}).to_string();
    assert_eq!(
        other.call("write", &write, &|_| {}).await,
        ToolOutcome::Done("a created (1 line)".to_owned())
    );
    assert_eq!(bench.content("a"), "one\n");
    let first = bench.workspace.join("a");
    let read = json!({"path": &first}).to_string();
    let prepared = other.prepare("read", &read).expect("a call");
    assert_eq!(prepared.info().target, first.display().to_string());
    assert!(
        run(prepared)
            .await
            .text()
            .contains("is outside of the workspace")
    );
    let theirs = bench
        .failed("read", json!({"path": folder.join("a")}))
        .await;
    assert!(theirs.contains("is outside of the workspace"), "{theirs}");

    let link = bench.outside.join("link");
    symlink(&bench.home, &link).expect("a link");
    assert!(
        bench.toolbox.in_folder(&link).is_err(),
        "it leads elsewhere"
    );
}

#[tokio::test]
async fn the_sandbox_is_that_of_the_session() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let folder = bench.outside.join("tree");
    fs::create_dir(&folder).expect("a folder");
    let other = bench.session_in(&folder);
    let command = format!(
        "echo mine > own; pwd; echo not mine > {}/stolen",
        bench.workspace.display()
    );
    let input = json!({"command": command}).to_string();
    let outcome = other.call("bash", &input, &|_| {}).await;
    let text = outcome.text();
    assert!(text.starts_with(&folder.display().to_string()), "{text}");
    assert!(text.contains("Permission denied"), "{text}");
    assert!(folder.join("own").exists() && !bench.workspace.join("stolen").exists());

    let Sandbox::Enforced { what } = other.sandbox() else {
        panic!("it was enforced");
    };
    assert!(what.contains(&folder.display().to_string()), "{what}");
    assert!(
        !what.contains(&bench.workspace.display().to_string()),
        "{what}"
    );
}

/// A program can tell that a model has called it, and which session that was.
#[tokio::test]
async fn a_command_knows_its_session() {
    let bench = Workbench::new();
    let call = json!({"command": "echo \"[$ASYNCAGENTS_IN_SESSION]\""});
    assert!(bench.done("bash", call.clone()).await.ends_with("[]\n"));
    let named = bench.toolbox.for_session().named("ses_1");
    let answer = named.call("bash", &call.to_string(), &|_| {}).await;
    assert!(answer.text().ends_with("[ses_1]\n"), "{answer:?}");
}

/// It is in the system prompt: two runs that begin with the same bytes share a provider's cache.
#[tokio::test]
async fn a_model_is_told_the_same_of_the_sandbox_in_every_process() {
    let bench = Workbench::new();
    let Sandbox::Enforced { .. } = bench.toolbox.sandbox() else {
        return;
    };
    let mut settings = Settings::new(&bench.workspace, HELPER);
    settings.home = Some(bench.home.clone());
    let another = Toolbox::new(settings.clone()).expect("a toolbox");
    let rules = bench.toolbox.sandbox_rules();
    assert_eq!(another.sandbox_rules(), rules);
    let expected = "Commands run in a sandbox: they write only in the workspace, $TMPDIR, and do not \
        see credentials or the network.";
    assert_eq!(rules, expected);
    let text = bench.done(
        "bash",
        json!({"command": "echo x > $TMPDIR/x && cat $TMPDIR/x"}),
    );
    assert_eq!(text.await, "x\n");

    settings.allowed = vec![bench.outside.clone()];
    settings.network = true;
    let generous = Toolbox::new(settings).expect("a toolbox").sandbox_rules();
    let expected = format!(
        "Commands run in a sandbox: they write only in the workspace, $TMPDIR, {}, and do not see \
         credentials.",
        bench.outside.display()
    );
    assert_eq!(generous, expected);
    let off = Workbench::with(|settings| settings.sandbox = SandboxMode::Off);
    assert_eq!(
        off.toolbox.sandbox_rules(),
        "Commands run without a sandbox."
    );
}
