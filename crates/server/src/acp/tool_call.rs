//! A call of a tool as the client shows it.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolKind,
};
use asyncagents_core::{
    agent::{Call, Preview},
    shorten::short_line,
};
use serde_json::Value;

/// The tool whose calls are shown as the plan.
pub(super) const TODO: &str = "todo";

/// How long a title is.
const MOST_OF_TITLE: usize = 120;

/// A call that begins. `prefix` is that of the tools for background tasks.
pub(super) fn shown(id: &str, call: &Call, folder: &Path, prefix: &str) -> ToolCall {
    let input: Option<Value> = serde_json::from_str(&call.input).ok();
    let arguments = Arguments(input.as_ref());
    ToolCall::new(id.to_owned(), title(&call.name, &arguments, prefix))
        .name(call.name.clone())
        .kind(kind(&call.name))
        .content(change(&call.name, &arguments, folder))
        .locations(locations(&arguments, folder))
        .raw_input(input.clone())
}

/// A call that a person is asked about, before it begins.
pub(super) fn asked(
    id: &str,
    tool: &str,
    target: &str,
    preview: &Preview,
    folder: &Path,
) -> ToolCall {
    let file = folder.join(target);
    let (content, locations): (ToolCallContent, _) = match preview {
        Preview::Command(command) => (fenced(command).into(), Vec::new()),
        Preview::Write { content } => (
            Diff::new(&file, content.clone()).into(),
            vec![ToolCallLocation::new(&file)],
        ),
        Preview::Edit { old, new, .. } => (
            Diff::new(&file, new.clone()).old_text(old.clone()).into(),
            vec![ToolCallLocation::new(&file)],
        ),
        Preview::Arguments(arguments) => {
            let lines = arguments
                .iter()
                .map(|(name, value)| format!("{name}: {value}"));
            (lines.collect::<Vec<_>>().join("\n").into(), Vec::new())
        }
    };
    ToolCall::new(id.to_owned(), titled(tool, target))
        .name(tool.to_owned())
        .kind(kind(tool))
        .content(vec![content])
        .locations(locations)
}

/// What came of a call. What a change looks like was shown when it began, and stays.
pub(super) fn result(name: &str, failed: bool, text: &str) -> Option<Vec<ToolCallContent>> {
    let is_change = matches!(kind(name), ToolKind::Edit) && !failed;
    let content: ToolCallContent = match kind(name) {
        ToolKind::Execute | ToolKind::Read | ToolKind::Search => fenced(text).into(),
        _ => text.to_owned().into(),
    };
    (!is_change).then(|| vec![content])
}

/// What a command has printed so far.
pub(super) fn printed<'l>(lines: impl Iterator<Item = &'l String>) -> Vec<ToolCallContent> {
    let lines: Vec<&str> = lines.map(String::as_str).collect();
    vec![fenced(&lines.join("\n")).into()]
}

/// The arguments of a call, which a model has written.
struct Arguments<'a>(Option<&'a Value>);

impl<'a> Arguments<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0?.get(name)?.as_str()
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "glob" | "grep" => ToolKind::Search,
        "bash" => ToolKind::Execute,
        TODO => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

fn title(tool: &str, arguments: &Arguments, prefix: &str) -> String {
    let about = match tool {
        "glob" | "grep" => "pattern",
        "bash" => "command",
        "skill" => "name",
        _ if tool.strip_prefix(prefix) == Some("task") => "description",
        _ if tool.starts_with(prefix) => "task_id",
        _ => "path",
    };
    titled(tool, arguments.text(about).unwrap_or_default())
}

fn titled(tool: &str, target: &str) -> String {
    let target = short_line(target, MOST_OF_TITLE);
    match (tool, target.as_str()) {
        (tool, "") => tool.to_owned(),
        ("bash", command) => command.to_owned(),
        (tool, target) => format!("{tool} {target}"),
    }
}

fn locations(arguments: &Arguments, folder: &Path) -> Vec<ToolCallLocation> {
    let path: Option<PathBuf> = arguments.text("path").map(|path| folder.join(path));
    path.into_iter().map(ToolCallLocation::new).collect()
}

/// What a call changes, if it changes a file.
fn change(tool: &str, arguments: &Arguments, folder: &Path) -> Vec<ToolCallContent> {
    let Some(path) = arguments.text("path").map(|path| folder.join(path)) else {
        return Vec::new();
    };
    let diff = match (tool, arguments.text("new"), arguments.text("content")) {
        ("edit", Some(new), _) => {
            let old = arguments.text("old").unwrap_or_default();
            Diff::new(path, new).old_text(old.to_owned())
        }
        ("write", _, Some(content)) => Diff::new(path, content),
        _ => return Vec::new(),
    };
    vec![diff.into()]
}

/// A text that is not Markdown, for clients that show Markdown.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, input: &str) -> Call {
        Call {
            id: "call_1".to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
        }
    }

    #[test]
    fn an_edit_is_shown_with_its_place_and_what_it_changes() {
        let call = call("edit", r#"{"path": "src/a.rs", "old": "1", "new": "2"}"#);
        let shown = shown("call_1", &call, Path::new("/work"), "asyncagents_");
        assert_eq!(shown.title, "edit src/a.rs");
        assert_eq!(shown.kind, ToolKind::Edit);
        assert_eq!(shown.locations, [ToolCallLocation::new("/work/src/a.rs")]);
        let diff = Diff::new("/work/src/a.rs", "2").old_text("1".to_owned());
        assert_eq!(shown.content, [diff.into()]);
    }

    #[test]
    fn what_a_model_wrote_wrongly_is_still_a_call() {
        for input in ["", "[1]", r#"{"path": 7}"#, "{"] {
            let shown = shown(
                "x",
                &call("write", input),
                Path::new("/work"),
                "asyncagents_",
            );
            assert_eq!((shown.title.as_str(), shown.content.len()), ("write", 0));
        }
    }

    #[test]
    fn a_fence_is_longer_than_those_in_the_text() {
        assert_eq!(fenced("a\n```\n"), "````\na\n```\n````");
    }
}
