//! What Claude Code asks before it runs a tool, and what it is answered.

use std::collections::BTreeSet;

use asyncagents_core::{
    agent::Kind,
    question::{Field, Question, QuestionKind, Reply, excerpt},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::{Ask, Asked, AskedCall};

/// The tool by which the model asks its user something.
const QUESTIONS: &str = "AskUserQuestion";

/// A question that is open, with what its answer needs.
#[derive(Debug)]
pub(super) struct OpenAsk {
    tool: String,
    input: Value,
    /// How many bytes that is.
    pub(super) size: usize,
    /// For each field of a form, the question that it is.
    fields: Vec<(Field, String)>,
}

#[derive(Deserialize)]
struct CanUseTool {
    tool_name: String,
    #[serde(default)]
    input: Value,
    mcp_server: Option<McpServer>,
}

#[derive(Deserialize)]
struct McpServer {
    name: Option<String>,
}

#[derive(Deserialize)]
struct WireQuestions {
    questions: Vec<WireQuestion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQuestion {
    question: String,
    header: Option<String>,
    #[serde(default)]
    options: Vec<WireOption>,
    #[serde(default)]
    multi_select: bool,
}

#[derive(Deserialize)]
struct WireOption {
    label: String,
}

/// What is asked; nothing if it is not about a tool. `ours` is the name of the server of our tools.
pub(super) fn read(id: &str, request: Value, ours: Option<&str>) -> Option<(Ask, OpenAsk)> {
    if request["subtype"] != "can_use_tool" {
        return None;
    }
    let asked: CanUseTool = serde_json::from_value(request).ok()?;
    let fields = if asked.tool_name == QUESTIONS {
        fields(&asked.input)
    } else {
        Vec::new()
    };
    let ask = Ask {
        id: id.to_owned(),
        what: if fields.is_empty() {
            Asked::Call(call(&asked, ours))
        } else {
            Asked::Form(form(&fields))
        },
    };
    let open = OpenAsk {
        tool: asked.tool_name,
        size: asked.input.to_string().len(),
        input: asked.input,
        fields,
    };
    Some((ask, open))
}

/// The call as rules see it.
fn call(asked: &CanUseTool, ours: Option<&str>) -> AskedCall {
    let tool = &asked.tool_name;
    let kind = kind(tool);
    let target = target(&asked.input, kind);
    let is_ours = ours.is_some_and(|ours| {
        let server = asked.mcp_server.as_ref();
        let server = server.and_then(|server| server.name.as_deref());
        tool.starts_with(&format!("mcp__{ours}__")) && server.is_none_or(|name| name == ours)
    });
    AskedCall {
        also: files(&asked.input),
        tool: tool.clone(),
        kind,
        details: details(&asked.input, kind, target.as_deref()),
        is_exact: target.is_some(),
        target: target.unwrap_or_default(),
        is_ours,
    }
}

fn kind(tool: &str) -> Option<Kind> {
    match tool {
        "Bash" | "PowerShell" | "Monitor" => Some(Kind::Run),
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => Some(Kind::Edit),
        "Read" | "Glob" | "Grep" | "LS" => Some(Kind::Read),
        _ => None,
    }
}

/// Where the inputs of tools have what they are about: those of a kind, and others, most telling first.
const COMMANDS: [&str; 1] = ["command"];
const FILES: [&str; 3] = ["file_path", "notebook_path", "path"];
const OTHERS: [&str; 7] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
];

/// To what it does something: a command, a path.
fn target(input: &Value, kind: Option<Kind>) -> Option<String> {
    let keys: &[&str] = match kind {
        Some(Kind::Run) => &COMMANDS,
        Some(Kind::Edit | Kind::Read) => &FILES,
        Some(Kind::Note) | None => &OTHERS,
    };
    let mut values = keys.iter().filter_map(|key| input[*key].as_str());
    values.next().map(str::to_owned)
}

/// Every file that a call names, whichever its tool takes.
fn files(input: &Value) -> Vec<String> {
    let named = FILES.iter().filter_map(|key| input[*key].as_str());
    named.map(str::to_owned).collect()
}

/// The rest of what it is to do: a change as lines that go and lines that come, other things as
/// they are.
fn details(input: &Value, kind: Option<Kind>, target: Option<&str>) -> String {
    let Some(input) = input.as_object() else {
        return String::new();
    };
    let mut lines = Vec::new();
    for (key, value) in input {
        match (key.as_str(), value) {
            // What the model says of a command is no part of it.
            ("description", _) if kind == Some(Kind::Run) => {}
            (key, Value::String(text)) if OTHERS.contains(&key) && Some(&**text) == target => {}
            ("old_string", Value::String(text)) => lines.extend(marked("- ", text)),
            ("new_string" | "content" | "new_source", Value::String(text)) => {
                lines.extend(marked("+ ", text));
            }
            (key, Value::String(text)) => lines.push(format!("{key}: {text}")),
            (key, value) => lines.push(format!("{key}: {value}")),
        }
    }
    lines.join("\n")
}

fn marked(mark: &str, text: &str) -> impl Iterator<Item = String> {
    let mark = mark.to_owned();
    text.lines().map(move |line| format!("{mark}{line}"))
}

/// The questions of the model to its user.
fn fields(input: &Value) -> Vec<(Field, String)> {
    // An answer is put beside them.
    let asked = input.is_object().then(|| input.clone());
    let asked: Option<WireQuestions> = asked.and_then(|asked| serde_json::from_value(asked).ok());
    let asked = asked.map(|asked| asked.questions).unwrap_or_default();
    let mut keys = BTreeSet::new();
    let field = |(at, asked): (usize, WireQuestion)| {
        let header = asked.header.filter(|header| !header.trim().is_empty());
        let number = (at + 1).to_string();
        let header = header.filter(|header| keys.insert(header.clone()));
        let field = Field {
            key: header.unwrap_or(number),
            text: excerpt(&asked.question),
            options: asked.options.into_iter().map(|one| one.label).collect(),
            custom: true,
            multiple: asked.multi_select,
        };
        (field, asked.question)
    };
    asked.into_iter().enumerate().map(field).collect()
}

fn form(fields: &[(Field, String)]) -> Question {
    let texts: Vec<&str> = fields.iter().map(|(field, _)| &*field.text).collect();
    Question {
        text: excerpt(&texts.join(" ")),
        kind: QuestionKind::Form(fields.iter().map(|(field, _)| field.clone()).collect()),
    }
}

impl OpenAsk {
    /// What Claude Code is answered.
    pub(super) fn answer(&self, reply: &Reply) -> Value {
        let is_form = !self.fields.is_empty();
        match reply {
            Reply::Once | Reply::Always if is_form => self.deny(None),
            Reply::Once | Reply::Always => allow(&self.input),
            Reply::Reject { text } => self.deny(text.as_deref()),
            Reply::Values(values) => {
                let mut answers = Map::new();
                for (field, question) in &self.fields {
                    if let Some(given) = values.get(&field.key) {
                        answers.insert(question.clone(), json!(given.join(", ")));
                    }
                }
                if answers.is_empty() {
                    return self.deny(None);
                }
                let mut input = self.input.clone();
                input["answers"] = Value::Object(answers);
                allow(&input)
            }
        }
    }

    fn deny(&self, text: Option<&str>) -> Value {
        let text = match text {
            Some(text) => text.to_owned(),
            None if self.fields.is_empty() => format!("{} is not permitted.", self.tool),
            None => "Nobody answers this. Decide yourself, and say so.".to_owned(),
        };
        json!({"behavior": "deny", "message": text})
    }
}

fn allow(input: &Value) -> Value {
    json!({"behavior": "allow", "updatedInput": input})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, input: Value, suggestions: Value) -> (Asked, OpenAsk) {
        let request = json!({
            "subtype": "can_use_tool", "tool_name": tool, "input": input,
            "permission_suggestions": suggestions, "tool_use_id": "toolu_1",
        });
        let (ask, open) = read("request-1", request, Some("asyncagents")).expect("a question");
        (ask.what, open)
    }

    fn call(what: Asked) -> AskedCall {
        match what {
            Asked::Call(call) => call,
            Asked::Form(form) => panic!("no call: {form:?}"),
        }
    }

    #[test]
    fn a_command_is_allowed_and_no_rule_of_its_own_is() {
        let suggestions = json!([
            {"type": "addRules", "behavior": "allow", "destination": "localSettings",
             "rules": [{"toolName": "Bash", "ruleContent": "cargo test:*"}]},
            {"type": "somethingNew", "destination": "localSettings"},
        ]);
        let input = json!({"command": "cargo test", "description": "Runs the tests", "timeout": 5});
        let (what, open) = asked("Bash", input.clone(), suggestions);
        let call = call(what);
        assert_eq!((call.kind, &*call.target), (Some(Kind::Run), "cargo test"));
        assert_eq!(call.details, "timeout: 5");
        assert!(!call.is_ours);
        for reply in [Reply::Once, Reply::Always] {
            let allowed = json!({"behavior": "allow", "updatedInput": input});
            assert_eq!(open.answer(&reply), allowed);
        }
        let text = Some("Not on a Friday.".to_owned());
        assert_eq!(
            open.answer(&Reply::Reject { text }),
            json!({"behavior": "deny", "message": "Not on a Friday."})
        );
    }

    #[test]
    fn a_change_is_shown_as_lines_that_go_and_come() {
        let input = json!({"file_path": "/a.rs", "old_string": "one\ntwo", "new_string": "three"});
        let mode = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        let (what, _) = asked("Edit", input, mode);
        let call = call(what);
        assert_eq!((call.kind, &*call.target), (Some(Kind::Edit), "/a.rs"));
        assert_eq!(call.details, "- one\n- two\n+ three");
    }

    #[test]
    fn our_tools_are_those_of_our_server() {
        let is_ours = |tool: &str, server: Value| {
            let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": {},
                "mcp_server": server});
            let (ask, _) = read("1", request, Some("asyncagents")).expect("a question");
            call(ask.what).is_ours
        };
        let ours = json!({"name": "asyncagents", "source": "dynamic"});
        assert!(is_ours("mcp__asyncagents__task", ours.clone()));
        assert!(is_ours("mcp__asyncagents__task", Value::Null));
        assert!(!is_ours("mcp__asyncagents__task", json!({"name": "other"})));
        assert!(!is_ours("mcp__other__task", ours));
        assert!(!is_ours("Bash", Value::Null));
    }

    #[test]
    fn a_question_of_the_model_is_a_form() {
        let input = json!({"questions": [
            {"question": "Which colour?", "header": "Colour", "multiSelect": false,
             "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
            {"question": "Which shapes?", "header": "Colour", "multiSelect": true,
             "options": [{"label": "Round"}, {"label": "Square"}]},
        ]});
        let (what, open) = asked(QUESTIONS, input.clone(), json!([]));
        let Asked::Form(question) = &what else {
            panic!("a form")
        };
        let QuestionKind::Form(fields) = &question.kind else {
            panic!("a form")
        };
        let shown: Vec<String> = fields.iter().map(Field::shown).collect();
        assert_eq!(
            shown,
            [
                "Colour: Which colour? (Red or Blue)",
                "2: Which shapes? (Round or Square)"
            ]
        );
        let values = [
            ("Colour".to_owned(), vec!["Blue".to_owned()]),
            ("2".to_owned(), vec!["Round".to_owned(), "Oval".to_owned()]),
        ];
        let answer = open.answer(&Reply::Values(values.into()));
        assert_eq!(answer["behavior"], "allow");
        assert_eq!(answer["updatedInput"]["questions"], input["questions"]);
        assert_eq!(
            answer["updatedInput"]["answers"],
            json!({"Which colour?": "Blue", "Which shapes?": "Round, Oval"})
        );
        let rejected = open.answer(&Reply::Reject { text: None });
        assert_eq!(rejected["behavior"], "deny");
    }

    #[test]
    fn other_requests_and_broken_ones_are_no_questions() {
        for request in [
            json!({"subtype": "hook_callback"}),
            json!({"subtype": "can_use_tool"}),
            json!(7),
        ] {
            assert!(read("1", request, None).is_none());
        }
        for input in [json!({"questions": 5}), json!([[{"question": "Which?"}]])] {
            let (what, open) = asked(QUESTIONS, input, json!([]));
            assert_eq!(call(what).tool, QUESTIONS);
            let values = [("1".to_owned(), vec!["Blue".to_owned()])];
            let answer = open.answer(&Reply::Values(values.into()));
            assert_eq!(answer["behavior"], "deny");
        }
    }
}
