//! How sessions of the small OpenCode 2 ask their user, and what becomes of the answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time;

use crate::{
    build::PermissionKey,
    fake::{FakeOpenCode, not_found},
    working::Broken,
};

/// How often a session looks for its answer.
const PAUSE: Duration = Duration::from_millis(10);

impl FakeOpenCode {
    pub(crate) async fn ask_permission(&self, id: &str) -> Result<(), Broken> {
        let message = self.begin(id);
        self.call(id, &message, "shell", json!({"command": "ls"}));
        let asked = self.next_id("per");
        let permission = json!({"id": asked, "sessionID": id, "action": "shell", "resources": ["ls"], "save": ["ls *"]});
        self.with(id, |it| it.permissions.push(permission.clone()));
        self.emit("permission.asked", permission);
        let reply = self.replied(id, &asked).await;
        let refused = reply["reply"] == json!("reject");
        if refused && !reply["message"].is_string() {
            return Err(self.refuse(id, &message, "The user declined this tool call"));
        }
        let error = json!({"type": "tool.execution", "message": "Unable to execute command: ls"});
        let state = if refused {
            json!({"status": "error", "input": {}, "error": error})
        } else {
            json!({"status": "completed", "input": {}, "content": []})
        };
        self.end_call(id, &message, state);
        self.end_step(id, &message, "tool-calls");
        self.step(id, "stop", json!([{"type": "text", "text": "listed"}]));
        Ok(())
    }

    pub(crate) async fn ask_form(&self, id: &str) -> Result<(), Broken> {
        let message = self.begin(id);
        self.call(id, &message, "question", json!({}));
        let asked = self.next_id("frm");
        let options = json!([{"value": "red", "label": "red"}, {"value": "blue", "label": "blue"}]);
        let form = json!({"id": asked, "sessionID": id, "title": "Questions", "fields": [
            {"key": "q0", "title": "Colour", "description": "Which colour?", "type": "string",
             "options": options, "custom": true},
            {"key": "q1", "title": "Sizes", "description": "Which sizes?", "type": "multiselect",
             "options": [{"value": "s", "label": "s"}, {"value": "l", "label": "l"}]},
            {"key": "q2", "title": "How many?", "type": "integer"},
            {"key": "q3", "title": "Sure?", "type": "boolean"},
        ]});
        self.with(id, |it| it.forms.push(form.clone()));
        self.emit("form.created", json!({"form": form}));
        let reply = self.replied(id, &asked).await;
        if reply.is_null() {
            return Err(self.refuse(id, &message, "The user dismissed this question"));
        }
        let content = json!([{"type": "text", "text": reply.to_string()}]);
        self.end_call(
            id,
            &message,
            json!({"status": "completed", "input": {}, "content": content}),
        );
        self.end_step(id, &message, "tool-calls");
        self.step(
            id,
            "stop",
            json!([{"type": "text", "text": reply.to_string()}]),
        );
        Ok(())
    }

    /// Waits for the answer to a question.
    async fn replied(&self, id: &str, asked: &str) -> Value {
        loop {
            let reply = self.with(id, |it| it.replies.remove(asked)).flatten();
            match reply {
                Some(reply) => return reply,
                None => time::sleep(PAUSE).await,
            }
        }
    }

    /// A refusal ends the turn, and its event looks like a server that ends.
    fn refuse(&self, id: &str, message: &str, why: &str) -> Broken {
        let error = json!({"type": "aborted", "message": why});
        self.end_call(
            id,
            message,
            json!({"status": "error", "input": {}, "error": error}),
        );
        let error = json!({"type": "aborted", "message": "Step interrupted"});
        self.change(id, message, |it| {
            it["finish"] = json!("error");
            it["error"] = error.clone();
        });
        let data = json!({"assistantMessageID": message, "error": error});
        self.tell(id, "session.step.failed", data);
        Broken(Value::Null)
    }

    pub(crate) fn permit(&self, id: &str, asked: &str, body: &Value) -> (u16, Value) {
        let invalid = |why: &str| (400, json!({"_tag": "InvalidRequestError", "message": why}));
        let (reply, decision) = (&body["reply"], &body["decision"]);
        let given = match self.build.permission_key {
            PermissionKey::Reply => reply,
            PermissionKey::Decision => decision,
            PermissionKey::DecisionOnly if !reply.is_null() => return invalid("reply"),
            PermissionKey::DecisionOnly => decision,
        };
        if given.is_null() {
            return invalid("Missing key");
        }
        let open = self.with(id, |it| {
            let open = it
                .permissions
                .iter()
                .any(|it| it["id"].as_str() == Some(asked));
            it.permissions.retain(|it| it["id"].as_str() != Some(asked));
            let reply = json!({"reply": given, "message": body["message"]});
            if open {
                it.replies.insert(asked.to_owned(), reply);
            }
            open
        });
        if open != Some(true) {
            return not_found("PermissionNotFoundError");
        }
        self.tell(
            id,
            "permission.replied",
            json!({"requestID": asked, "reply": given}),
        );
        (204, Value::Null)
    }

    /// Answers a form, or dismisses it.
    pub(crate) fn fill(&self, id: &str, form: &str, answer: Option<&Value>) -> (u16, Value) {
        let was_settled = self.with(id, |it| it.settled_forms.contains(form));
        if was_settled == Some(true) {
            return (
                409,
                json!({"_tag": "FormAlreadySettledError", "message": "settled"}),
            );
        }
        let open = self.with(id, |it| {
            let open = it.forms.iter().any(|it| it["id"].as_str() == Some(form));
            it.forms.retain(|it| it["id"].as_str() != Some(form));
            if open {
                it.settled_forms.insert(form.to_owned());
                let reply = answer.cloned().unwrap_or_default();
                it.replies.insert(form.to_owned(), reply);
            }
            open
        });
        if open != Some(true) {
            return not_found("FormNotFoundError");
        }
        let kind = match answer {
            Some(_) => "form.replied",
            None => "form.cancelled",
        };
        self.tell(id, kind, json!({"id": form}));
        (204, Value::Null)
    }
}
