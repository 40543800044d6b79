//! The API of OpenCode 2.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    api::{Api, Child, Prompt, text},
    message::{Call, Message, Speaker},
    playbook::OUR_SESSIONS,
    serve::Serve,
};

pub(super) struct V2;

impl Api for V2 {
    fn events_path(&self) -> &'static str {
        "/api/event"
    }

    fn event_data(&self) -> &'static str {
        "data"
    }

    fn open(&self, serve: &Serve<'_>) {
        let folder = serve.world.path("project");
        let folder = folder.to_str().expect("a path that can be said");
        let path = format!("/api/agent?location[directory]={folder}");
        serve.get(&path).is(200);
    }

    fn create(&self, serve: &Serve<'_>) -> String {
        let folder = serve.world.path("project");
        let wanted = json!({"title": "A parent", "location": {"directory": folder}});
        let session = serve.post("/api/session", wanted).is(200);
        text(&session["data"]["id"])
    }

    fn prompt(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) {
        admit(serve, session, prompt);
    }

    fn ask(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) -> String {
        let prompt = admit(serve, session, prompt);
        let path = format!("/api/session/{session}/message/{prompt}");
        serve.world.until("the prompt is read", || {
            (serve.get(&path).status == 200).then_some(())
        });
        serve.world.until("the answer is there", || {
            let mut messages = self.history(serve, session);
            let newest = messages.pop()?;
            let is_done = newest.is_complete && self.is_idle(serve, session);
            is_done.then_some(newest.text)
        })
    }

    fn messages(&self, serve: &Serve<'_>, session: &str) -> Vec<Message> {
        // In this order, since a message moves from the one to the other.
        let waiting = serve.get(&format!("/api/session/{session}/inbox")).is(200);
        let mut messages = self.history(serve, session);
        let known: BTreeSet<String> = messages.iter().map(|known| known.id.clone()).collect();
        let waiting = list(&waiting).iter().map(waiting_message);
        messages.extend(waiting.filter(|waiting| !known.contains(&waiting.id)));
        let info = serve.get(&format!("/api/session/{session}")).is(200);
        for told in messages.iter_mut().filter(|one| one.by == Speaker::User) {
            told.agent = text(&info["data"]["agent"]);
            told.model = text(&info["data"]["model"]["id"]);
        }
        messages
    }

    fn history(&self, serve: &Serve<'_>, session: &str) -> Vec<Message> {
        raw_messages(serve, session)
            .iter()
            .filter_map(message)
            .collect()
    }

    fn is_idle(&self, serve: &Serve<'_>, session: &str) -> bool {
        let active = serve.get("/api/session/active").is(200);
        active["data"].get(session).is_none()
    }

    fn children(&self, serve: &Serve<'_>, session: &str) -> Vec<Child> {
        let sessions = serve.get("/api/session?limit=200").is(200);
        let journal = serve.world.asyncagents(&["list", "--json"]);
        let tasks: Vec<Value> = serde_json::from_str(&journal).expect("tasks");
        let is_below = |id: &str| {
            let mut tasks = tasks.iter().filter(|task| task["session"] == id);
            tasks.any(|task| task["parent_session"] == session)
        };
        let children = list(&sessions).iter().filter_map(|found| {
            let id = text(&found["id"]);
            let ours = id.starts_with(OUR_SESSIONS) && is_below(&id);
            ours.then(|| Child {
                id,
                title: text(&found["title"]),
                parent: session.to_owned(),
            })
        });
        children.collect()
    }

    fn abort(&self, serve: &Serve<'_>, session: &str) {
        let path = format!("/api/session/{session}/interrupt");
        let answer = serve.post(&path, json!({}));
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }

    fn delete(&self, serve: &Serve<'_>, session: &str) {
        let answer = serve.delete(&format!("/api/session/{session}"));
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }

    fn exists(&self, serve: &Serve<'_>, session: &str) -> bool {
        serve.get(&format!("/api/session/{session}")).status == 200
    }

    fn summarize(&self, serve: &Serve<'_>, session: &str) {
        let before = compactions(serve, session);
        let path = format!("/api/session/{session}/compact");
        let answer = serve.post(&path, json!({}));
        assert!((200..300).contains(&answer.status), "{answer:?}");
        serve.world.until("the summary is there", || {
            (compactions(serve, session) > before).then_some(())
        });
    }

    fn permissions(&self, serve: &Serve<'_>, session: &str) -> Vec<String> {
        let path = format!("/api/session/{session}/permission");
        let asked = serve.get(&path).is(200);
        let asked = list(&asked).iter();
        asked.map(|asked| text(&asked["id"])).collect()
    }

    fn permit(&self, serve: &Serve<'_>, session: &str, question: &str, reply: &str) {
        let path = format!("/api/session/{session}/permission/{question}/reply");
        // Newer releases call it a decision; what they do not know they ignore.
        let answer = serve.post(&path, json!({"reply": reply, "decision": reply}));
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }
}

/// Says something. Returns the ID of the message.
fn admit(serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) -> String {
    let at = format!("/api/session/{session}");
    if let Some(agent) = prompt.agent {
        serve.post(&format!("{at}/agent"), json!({"agent": agent}));
    }
    if let Some(model) = prompt.model {
        let model = json!({"model": {"providerID": "scripted", "id": model}});
        serve.post(&format!("{at}/model"), model);
    }
    let said = json!({"text": prompt.text});
    let admitted = serve.post(&format!("{at}/prompt"), said).is(200);
    text(&admitted["data"]["id"])
}

fn raw_messages(serve: &Serve<'_>, session: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut path = format!("/api/session/{session}/message?order=asc&limit=200");
    loop {
        let page = serve.get(&path).is(200);
        let messages = list(&page);
        all.extend_from_slice(messages);
        let Some(next) = page["cursor"]["next"].as_str() else {
            return all;
        };
        if messages.len() < 200 {
            return all;
        }
        path = format!("/api/session/{session}/message?limit=200&cursor={next}");
    }
}

fn compactions(serve: &Serve<'_>, session: &str) -> usize {
    let messages = raw_messages(serve, session);
    let summaries = messages
        .iter()
        .filter(|message| message["type"] == "compaction" && message["status"] == "completed");
    summaries.count()
}

fn list(answer: &Value) -> &[Value] {
    answer["data"].as_array().map_or(&[], Vec::as_slice)
}

/// A message, unless it is OpenCode's note that an agent or a model was chosen.
fn message(message: &Value) -> Option<Message> {
    match message["type"].as_str()? {
        "user" => Some(said(message, &message["id"])),
        "synthetic" => Some(told(message, &message["id"])),
        "assistant" => Some(answered(message)),
        "agent-switched" | "model-switched" => None,
        _ => Some(Message {
            by: Speaker::Opencode,
            ..said(message, &message["id"])
        }),
    }
}

/// A message that is admitted and that the model has not read yet.
fn waiting_message(item: &Value) -> Message {
    let payload = &item["payload"];
    if item["type"] == "synthetic" {
        told(payload, &item["id"])
    } else {
        said(payload, &item["id"])
    }
}

fn said(payload: &Value, id: &Value) -> Message {
    Message {
        id: text(id),
        by: Speaker::User,
        text: text(&payload["text"]),
        hidden: String::new(),
        calls: Vec::new(),
        agent: String::new(),
        model: String::new(),
        is_complete: false,
        is_aborted: false,
    }
}

/// What was said by nobody. The model sees the text; people see the description, which has the
/// text's beginning in one line and without Markdown, and of many lines only some.
fn told(payload: &Value, id: &Value) -> Message {
    let (shown, whole) = (text(&payload["description"]), text(&payload["text"]));
    let is_shown = |visible: &str| {
        let line = one_line(visible);
        let some = shown.split_once("… ").is_some_and(|(first, more)| {
            let last = more.split_once(" more · ").map_or(more, |(_, last)| last);
            line.starts_with(first) && line.ends_with(last)
        });
        line == shown || some
    };
    let mut ends = whole.match_indices("\n\n").map(|(at, _)| at);
    let end = ends.find(|end| is_shown(&whole[..*end]));
    let (visible, hidden) = whole.split_at(end.unwrap_or(whole.len()));
    let is_whole = is_shown(visible);
    Message {
        text: if is_whole { visible.to_owned() } else { shown },
        hidden: if is_whole {
            hidden.trim_start().to_owned()
        } else {
            whole
        },
        ..said(payload, id)
    }
}

fn one_line(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.map(str::trim).collect();
    lines.join(" · ").replace("**", "")
}

fn answered(message: &Value) -> Message {
    let content = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |kind: &'static str| content.iter().filter(move |part| part["type"] == kind);
    let texts: Vec<String> = of("text").map(|part| text(&part["text"])).collect();
    Message {
        by: Speaker::Agent,
        text: texts.join("\n"),
        calls: of("tool").map(call).collect(),
        agent: text(&message["agent"]),
        model: text(&message["model"]["id"]),
        is_complete: message["time"]["completed"].is_number(),
        is_aborted: message["error"]["type"] == "aborted",
        ..said(&Value::Null, &message["id"])
    }
}

/// A command's result is followed by a line about how it ended, which is not what it said.
fn call(part: &Value) -> Call {
    let state = &part["state"];
    let said = state["content"][0]["text"].as_str();
    let said = said.or(state["error"]["message"].as_str());
    Call {
        tool: text(&part["name"]),
        said: said.map(str::to_owned),
        began: part["time"]["ran"].as_u64(),
        ended: part["time"]["completed"].as_u64(),
    }
}
