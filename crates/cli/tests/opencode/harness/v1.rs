//! The API of OpenCode 1.

use serde_json::{Value, json};

use super::{
    api::{Api, Child, Prompt, text},
    message::{Call, Message, Speaker},
    playbook::FIRST_MODEL,
    serve::Serve,
};

pub(super) struct V1;

impl Api for V1 {
    fn events_path(&self) -> &'static str {
        "/event"
    }

    fn event_data(&self) -> &'static str {
        "properties"
    }

    // Listening to its events is enough.
    fn open(&self, _serve: &Serve<'_>) {}

    fn create(&self, serve: &Serve<'_>) -> String {
        let session = serve.post("/session", json!({"title": "A parent"})).is(200);
        text(&session["id"])
    }

    fn prompt(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) {
        let path = format!("/session/{session}/prompt_async");
        serve.post(&path, body(prompt)).is(204);
    }

    fn ask(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) -> String {
        let path = format!("/session/{session}/message");
        message(&serve.post(&path, body(prompt)).is(200)).text
    }

    fn messages(&self, serve: &Serve<'_>, session: &str) -> Vec<Message> {
        let messages = serve.get(&format!("/session/{session}/message")).is(200);
        let messages = messages.as_array().expect("messages");
        messages.iter().map(message).collect()
    }

    // Nothing waits anywhere else.
    fn history(&self, serve: &Serve<'_>, session: &str) -> Vec<Message> {
        self.messages(serve, session)
    }

    fn is_idle(&self, serve: &Serve<'_>, session: &str) -> bool {
        let status = serve.get("/session/status").is(200);
        status.get(session).is_none()
    }

    fn children(&self, serve: &Serve<'_>, session: &str) -> Vec<Child> {
        let sessions = serve.get(&format!("/session/{session}/children")).is(200);
        let sessions = sessions.as_array().expect("sessions").iter();
        let child = |child: &Value| Child {
            id: text(&child["id"]),
            title: text(&child["title"]),
            parent: text(&child["parentID"]),
        };
        sessions.map(child).collect()
    }

    fn abort(&self, serve: &Serve<'_>, session: &str) {
        let path = format!("/session/{session}/abort");
        serve.post(&path, json!({})).is(200);
    }

    fn delete(&self, serve: &Serve<'_>, session: &str) {
        serve.delete(&format!("/session/{session}")).is(200);
    }

    fn exists(&self, serve: &Serve<'_>, session: &str) -> bool {
        serve.get(&format!("/session/{session}")).status == 200
    }

    fn summarize(&self, serve: &Serve<'_>, session: &str) {
        let model = json!({"providerID": "scripted", "modelID": FIRST_MODEL});
        let path = format!("/session/{session}/summarize");
        serve.post(&path, model).is(200);
    }

    fn permissions(&self, serve: &Serve<'_>, _session: &str) -> Vec<String> {
        let asked = serve.get("/permission").is(200);
        let asked = asked.as_array().expect("questions").iter();
        asked.map(|asked| text(&asked["id"])).collect()
    }

    fn permit(&self, serve: &Serve<'_>, _session: &str, question: &str, reply: &str) {
        let path = format!("/permission/{question}/reply");
        serve.post(&path, json!({"reply": reply})).is(200);
    }
}

fn body(prompt: &Prompt<'_>) -> Value {
    let mut body = json!({"parts": [{"type": "text", "text": prompt.text}]});
    if let Some(agent) = prompt.agent {
        body["agent"] = json!(agent);
    }
    if let Some(model) = prompt.model {
        body["model"] = json!({"providerID": "scripted", "modelID": model});
    }
    body
}

fn message(message: &Value) -> Message {
    let info = &message["info"];
    let is_agents = info["role"] == "assistant";
    let texts = |synthetic: bool| {
        let parts = parts(message).filter(move |part| part["type"] == "text");
        let parts = parts.filter(move |part| (part["synthetic"] == true) == synthetic);
        let texts: Vec<String> = parts.map(|part| text(&part["text"])).collect();
        texts.join("\n")
    };
    let model = if is_agents {
        &info["modelID"]
    } else {
        &info["model"]["modelID"]
    };
    let calls = parts(message).filter(|part| part["type"] == "tool");
    Message {
        id: text(&info["id"]),
        by: if is_agents {
            Speaker::Agent
        } else {
            Speaker::User
        },
        text: texts(false),
        hidden: texts(true),
        calls: calls.map(call).collect(),
        agent: text(&info["agent"]),
        model: text(model),
        is_complete: is_agents && info["time"]["completed"].is_number(),
        is_aborted: info["error"]["name"] == "MessageAbortedError",
    }
}

fn call(part: &Value) -> Call {
    let state = &part["state"];
    let said = state["output"].as_str().or(state["error"].as_str());
    Call {
        tool: text(&part["tool"]),
        said: said.map(str::to_owned),
        began: state["time"]["start"].as_u64(),
        ended: state["time"]["end"].as_u64(),
    }
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message["parts"].as_array().into_iter().flatten()
}
