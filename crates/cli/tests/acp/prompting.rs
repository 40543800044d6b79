//! A prompt, and what an editor sees of it.

use agent_client_protocol::v1::schema::{
    ContentBlock, Diff, EmbeddedResource, EmbeddedResourceResource, PlanEntryStatus, PromptRequest,
    ResourceLink, SessionUpdate, StopReason, TextResourceContents, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolKind,
};
use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::json;

use crate::{
    editor::{Editor, content_of, ended, is_done},
    home::Home,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_says_what_it_is_and_can_do() {
    let home = Home::new(Script::new()).await;
    let editor = Editor::start(&home).await;
    let said = serde_json::to_value(&editor.initialized).expect("JSON");
    let shown = serde_json::to_string_pretty(&said).expect("JSON");
    insta::assert_snapshot!(shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_thoughts_and_calls_are_streamed() {
    let edit = json!({"path": "notes.txt", "old": "one", "new": "two"});
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("I look first.")
                .reasoning("Where is it?")
                .and_call("read", json!({"path": "notes.txt"})),
        )
        .rule(When::turn(1), Reply::call("edit", edit))
        .rule(
            When::turn(2),
            Reply::call("bash", json!({"command": "cat notes.txt"})),
        )
        .rule(When::turn(3), Reply::text("Done.").usage(30, 20, 7));
    let home = Home::new(script).await;
    home.write("notes.txt", "one\n");
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let answer = editor.prompt(&session, "Change it").await;
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(home.read("notes.txt"), "two\n");
    assert_eq!(editor.said(&session), "I look first.Done.");
    let thought = |update: &SessionUpdate| matches!(update, SessionUpdate::AgentThoughtChunk(_));
    assert!(editor.updates(&session).iter().any(thought));
    let calls = editor.calls(&session);
    let shown = calls.iter().map(|call| (call.kind, call.title.as_str()));
    let expected = [
        (ToolKind::Read, "read notes.txt"),
        (ToolKind::Edit, "edit notes.txt"),
        (ToolKind::Execute, "cat notes.txt"),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    assert!(calls.iter().all(is_done), "{calls:?}");
    let [read, edit, bash] = calls.as_slice() else {
        panic!("{calls:?}");
    };
    assert!(content_of(read).contains("one"), "{read:?}");
    assert_eq!(read.raw_input, Some(json!({"path": "notes.txt"})));
    assert_eq!(
        read.locations,
        [ToolCallLocation::new(home.path("notes.txt"))]
    );
    let diff = Diff::new(home.path("notes.txt"), "two").old_text("one".to_owned());
    assert_eq!(edit.content, [ToolCallContent::Diff(diff)]);
    assert!(content_of(bash).contains("two"), "{bash:?}");
    let usage = answer.usage.expect("usage");
    assert!(usage.output_tokens >= 7, "{usage:?}");
    assert!(usage.cached_read_tokens >= Some(20), "{usage:?}");
    let used = |update: &SessionUpdate| matches!(update, SessionUpdate::UsageUpdate(used) if used.used > 0 && used.size > used.used);
    assert!(editor.updates(&session).iter().any(used));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_embedded_files_reach_the_model() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Seen."))).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let file = format!("file://{}", home.path("a.rs").display());
    let resource = TextResourceContents::new("fn main() {}", file.clone());
    let resource = EmbeddedResourceResource::TextResourceContents(resource);
    let prompt = vec![
        ContentBlock::from("Compare "),
        ContentBlock::ResourceLink(ResourceLink::new("b.rs", "file:///elsewhere/b.rs")),
        ContentBlock::from(" with "),
        ContentBlock::Resource(EmbeddedResource::new(resource)),
    ];
    let request = PromptRequest::new(session.clone(), prompt);
    let answer = editor.agent.send_request(request).block_task().await;
    assert_eq!(answer.expect("an answer").stop_reason, StopReason::EndTurn);
    let sent = home.newest();
    assert!(
        sent.contains("Compare [@b.rs](/elsewhere/b.rs) with"),
        "{sent}"
    );
    assert!(sent.contains("fn main() {}"), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_notes_down_is_the_plan() {
    let items = json!({"items": [
        {"text": "Read", "status": "done"},
        {"text": "Write", "status": "doing"},
        {"text": "Test", "status": "pending"},
    ]});
    let script = Script::new()
        .rule(When::turn(0), Reply::call("todo", items))
        .rule(When::always(), Reply::text("Noted."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Plan it").await;
    let plan = editor.plan(&session);
    let expected = [
        ("Read", PlanEntryStatus::Completed),
        ("Test", PlanEntryStatus::Pending),
        ("Write", PlanEntryStatus::InProgress),
    ];
    assert_eq!(
        plan,
        expected
            .map(|(text, status)| (text.to_owned(), status))
            .into()
    );
    assert_eq!(editor.calls(&session), [], "the plan is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_that_come_during_a_turn_are_done_in_their_order() {
    let gate = Gate::closed();
    let waiting = ["Second", "Third", "Fourth", "Fifth", "Sixth"];
    let script = waiting.iter().fold(Script::new(), |script, prompt| {
        script.rule(
            When::always().last(*prompt),
            Reply::text(format!("{prompt}.")),
        )
    });
    let script = script.rule(
        When::always().last("First"),
        Reply::text("First.").behind(&gate),
    );
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let mut begun = vec![editor.begin(&session, "First")];
    home.wait_for(|requests| requests.len() == 1).await;
    begun.extend(waiting.map(|prompt| editor.begin(&session, prompt)));
    // Whatever is answered after it was read after the prompts.
    editor.session(&home).await;
    gate.open();
    for prompt in begun {
        let answer = ended(prompt).await.expect("an answer");
        assert_eq!(answer.stop_reason, StopReason::EndTurn);
    }
    assert_eq!(
        editor.said(&session),
        "First.Second.Third.Fourth.Fifth.Sixth."
    );
    assert!(
        home.newest().contains("First."),
        "the last one knows the first"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_work_at_once_and_know_nothing_of_each_other() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().first("Apples"),
            Reply::text("Red.").behind(&gate),
        )
        .rule(When::always().first("Pears"), Reply::text("Green."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let (apples, pears) = (editor.session(&home).await, editor.session(&home).await);
    let slow = editor.begin(&apples, "Apples?");
    home.wait_for(|requests| requests.len() == 1).await;
    editor.prompt(&pears, "Pears?").await;
    assert_eq!(editor.said(&pears), "Green.");
    assert_eq!(editor.said(&apples), "");
    gate.open();
    ended(slow).await.expect("an answer");
    assert_eq!(editor.said(&apples), "Red.");
    assert_eq!(editor.said(&pears), "Green.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_and_one_that_fails_are_told_apart() {
    let script = Script::new()
        .rule(
            When::always().lacks("Fail"),
            Reply::text("").stop("refusal"),
        )
        .rule(When::always(), Reply::status(400).message("no such model"));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let refused = editor.prompt(&session, "Refuse").await;
    assert_eq!(refused.stop_reason, StopReason::Refusal);
    let failed = ended(editor.begin(&session, "Fail")).await;
    let why = failed.expect_err("an error").message;
    assert!(why.contains("no such model"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_answers_is_told_as_such() {
    let script = Script::new()
        .rule(When::always().tools(false), Reply::text("So far so good."))
        .rule(
            When::always(),
            Reply::call("bash", json!({"command": "true"})),
        );
    let home = Home::new(script).await;
    let mut command = home.command(&["acp"]);
    command.env("ASYNCAGENTS_RUN_MAX_TURNS", "3");
    let editor = Editor::start_with(command).await;
    let session = editor.session(&home).await;
    let answer = editor.prompt(&session, "Go on for ever").await;
    assert_eq!(answer.stop_reason, StopReason::MaxTurnRequests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_before_it_runs_is_shown_as_failed() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("fly", json!({})))
        .rule(When::always(), Reply::text("Then not."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Fly").await;
    let call = editor.call(&session, "fly");
    assert_eq!(call.status, ToolCallStatus::Failed);
    assert!(content_of(&call).contains("there is no tool"), "{call:?}");
}
