//! What a session that was made for a task may use, in an OpenCode that has no rules for sessions.
//! It narrows what OpenCode's own permissions let pass, and never widens that.

use std::path::{Component, Path, PathBuf};

use asyncagents_core::agent::{Kind, Rule, Tools};
use serde_json::Value;

/// What OpenCode's own sub-agents are launched with. Nothing of them is counted, queued, cancelled or
/// asked with the task that launches them, so a task has our tools for that and not this one.
const OWN_SUB_AGENTS: &str = "subagent";

/// What binds a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// What the names of our tools begin with.
    pub prefix: String,
    /// Whether tasks may be launched from it. At the depth limit they may not.
    pub may_delegate: bool,
    /// The tools of the skills above it and of its own, each of which binds it, by the names that
    /// the skills have for them.
    pub tools: Vec<Tools>,
}

/// A call that OpenCode is about to make.
#[derive(Debug, Clone, Copy)]
pub struct ToolUse<'a> {
    pub tool: &'a str,
    /// The folder of the session, which paths are relative to.
    pub folder: Option<&'a str>,
    /// The arguments, as the model wrote them.
    pub input: &'a Value,
}

impl Bounds {
    /// Whether the model is offered a tool, by OpenCode's name for it.
    pub fn offers(&self, tool: &str) -> bool {
        let names = self.names(tool);
        self.has(tool) && self.limits().all(|limit| limit.offers(&names))
    }

    /// Whether its calls have to be permitted one by one: a tool may be offered for some uses, and
    /// a program that the model writes can call tools that it is not offered.
    pub fn guards_calls(&self) -> bool {
        !self.may_delegate || !self.tools.is_empty()
    }

    /// Whether a call may be made.
    ///
    /// # Errors
    /// Why not, for the model.
    pub fn permit(&self, call: &ToolUse<'_>) -> Result<(), String> {
        let tool = call.tool;
        if !self.offers(tool) {
            return Err(format!("`{tool}` is not among the tools of this task"));
        }
        let names = self.names(tool);
        let uses = Uses::of(&names[0], call);
        if self.limits().all(|limit| limit.allows(&names, &uses)) {
            return Ok(());
        }
        let stated = self.limits().filter_map(|limit| limit.uses(&names));
        let stated: Vec<String> = stated.collect();
        let stated = if stated.is_empty() {
            "it is restricted".to_owned()
        } else {
            stated.join("; ")
        };
        Err(format!(
            "this task may not use `{tool}` in this way: {stated}"
        ))
    }

    fn has(&self, tool: &str) -> bool {
        tool != OWN_SUB_AGENTS && (self.may_delegate || !tool.starts_with(&self.prefix))
    }

    /// The limits in our names for tools.
    fn limits(&self) -> impl Iterator<Item = Limit> {
        let limit = |tools: &Tools| Limit(tools.called_with(&self.prefix));
        self.tools.iter().map(limit)
    }

    /// What a tool of OpenCode 2 is called in rules: by our name for it first, then by its own.
    fn names(&self, tool: &str) -> Vec<String> {
        let ours = tool.strip_prefix(&self.prefix);
        let called = match (ours, tool) {
            (Some("skill"), _) => "skill",
            (_, "shell") => "bash",
            (_, "patch" | "apply_patch" | "multiedit") => "edit",
            (_, "list" | "ls") => "glob",
            (_, "todowrite" | "todoread") => "todo",
            (_, other) => other,
        };
        let mut names = vec![called.to_owned()];
        if called != tool {
            names.push(tool.to_owned());
        }
        names
    }
}

/// The tools of one skill.
struct Limit(Tools);

impl Limit {
    fn offers(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.listed().offers(name))
            && names.iter().all(|name| self.unlisted().offers(name))
    }

    fn allows(&self, names: &[String], uses: &Uses) -> bool {
        let Uses { kind, targets } = uses;
        let Some(targets) = targets else {
            // What a pattern means for this call is not known: only rules without one let it pass,
            // and every rule about the tool stops it.
            let names_it = |rule: &Rule| names.iter().any(|name| rule.names(name));
            let whole = |rule: &Rule| rule.pattern().is_none() && names_it(rule);
            let only = self.0.only.as_ref();
            return only.is_none_or(|rules| rules.iter().any(whole))
                && !self.0.not.iter().any(names_it);
        };
        let passes = |name: &String, target: &String| self.listed().allows(name, *kind, target);
        let kept = |name: &String, target: &String| self.unlisted().allows(name, *kind, target);
        targets.iter().all(|target| {
            names.iter().any(|name| passes(name, target))
                && names.iter().all(|name| kept(name, target))
        }) && !self.shows_hidden(names, targets)
    }

    /// Whether a search goes through files that are kept from being read: OpenCode would show
    /// their lines.
    fn shows_hidden(&self, names: &[String], folders: &[String]) -> bool {
        let searches = names.iter().any(|name| name == "grep");
        let about = |rule: &&Rule| rule.names("read") || rule.names("grep");
        let patterns = self.0.not.iter().filter(about).filter_map(Rule::pattern);
        let reaches = |pattern: &str| {
            let fixed = pattern.split('*').next().unwrap_or_default();
            let within = |folder: &String| folder == "." || fixed.starts_with(folder.as_str());
            fixed.is_empty() || folders.iter().any(within)
        };
        searches && patterns.into_iter().any(reaches)
    }

    fn uses(&self, names: &[String]) -> Option<String> {
        names.iter().find_map(|name| self.0.uses(name))
    }

    /// What is listed, without what is excluded.
    fn listed(&self) -> Tools {
        let only = self.0.only.clone();
        Tools {
            only,
            ..Tools::default()
        }
    }

    fn unlisted(&self) -> Tools {
        let not = self.0.not.clone();
        Tools {
            not,
            ..Tools::default()
        }
    }
}

/// What a call would do, and with what; nothing if that is not known.
struct Uses {
    kind: Kind,
    targets: Option<Vec<String>>,
}

impl Uses {
    fn of(name: &str, call: &ToolUse<'_>) -> Self {
        let text = |keys: &[&str]| {
            let mut found = keys.iter().filter_map(|key| call.input.get(key)?.as_str());
            found.next().map(str::to_owned)
        };
        let path = || text(&["path", "filePath", "file_path"]);
        let located = |path: String| located(&path, call.folder);
        let one = |target: Option<String>| target.map(|target| vec![target]);
        let (kind, targets) = match (name, call.tool) {
            ("bash", _) => (Kind::Run, one(text(&["command"]))),
            ("edit", "patch" | "apply_patch") => {
                let patch = text(&["patchText", "patch", "input"]);
                let files = patch.and_then(|patch| patched(&patch));
                let files = files.map(|files| files.into_iter().map(located).collect());
                (Kind::Edit, files)
            }
            ("edit" | "write", _) => (Kind::Edit, one(path().map(located))),
            ("read", _) => (Kind::Read, one(path().map(located))),
            ("grep" | "glob", _) => {
                let folder = path().map_or_else(|| ".".to_owned(), located);
                (Kind::Read, Some(vec![folder]))
            }
            ("skill", _) => (Kind::Note, one(text(&["name", "id"]))),
            ("task", _) => (Kind::Note, one(text(&["agent"]))),
            ("webfetch", _) => (Kind::Note, one(text(&["url"]))),
            ("websearch", _) => (Kind::Note, one(text(&["query"]))),
            _ => (Kind::Note, None),
        };
        Self { kind, targets }
    }
}

/// A path as rules have it: relative to the folder if it lies there, without detours.
fn located(path: &str, folder: Option<&str>) -> String {
    let root = Path::new(folder.unwrap_or("/"));
    let mut plain = PathBuf::new();
    for part in root.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    let inside = folder.and_then(|_| plain.strip_prefix(root).ok());
    match inside.unwrap_or(&plain).to_string_lossy().into_owned() {
        here if here.is_empty() => ".".to_owned(),
        there => there,
    }
}

/// The files that a patch is about; nothing if it names none.
fn patched(patch: &str) -> Option<Vec<String>> {
    const NAMES: [&str; 4] = [
        "*** Add File:",
        "*** Update File:",
        "*** Delete File:",
        "*** Move to:",
    ];
    let named = |line: &str| {
        let line = line.trim();
        let mut names = NAMES.iter().filter_map(|name| line.strip_prefix(name));
        names.next().map(|file| file.trim().to_owned())
    };
    let files: Vec<String> = patch.lines().filter_map(named).collect();
    (!files.is_empty()).then_some(files)
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::{Rule, Tools};
    use serde_json::{Value, json};

    use super::{Bounds, ToolUse};

    fn tools(only: Option<&[&str]>, not: &[&str]) -> Tools {
        let read = |names: &[&str]| -> Vec<Rule> {
            names.iter().filter_map(|name| name.parse().ok()).collect()
        };
        Tools {
            only: only.map(read),
            not: read(not),
            within: Vec::new(),
        }
    }

    fn bounds(tools: Vec<Tools>) -> Bounds {
        Bounds {
            prefix: "asyncagents_".to_owned(),
            may_delegate: true,
            tools,
        }
    }

    fn permits(bounds: &Bounds, tool: &str, input: Value) -> bool {
        let folder = Some("/home/user/project");
        let input = &input;
        let call = ToolUse {
            tool,
            folder,
            input,
        };
        bounds.permit(&call).is_ok()
    }

    #[test]
    fn a_skill_has_the_tools_that_it_lists() {
        let bounds = bounds(vec![tools(Some(&["Read", "Bash(git:*)", "Write"]), &[])]);
        let offered = ["read", "shell", "write", "edit", "patch", "grep", "execute"];
        let offered = offered.into_iter().filter(|tool| bounds.offers(tool));
        assert_eq!(offered.collect::<Vec<_>>(), ["read", "shell", "write"]);
        assert!(permits(&bounds, "shell", json!({"command": "git status"})));
        assert!(!permits(&bounds, "shell", json!({"command": "gitk"})));
        assert!(!permits(
            &bounds,
            "shell",
            json!({"command": "git status; rm x"})
        ));
        assert!(!permits(&bounds, "shell", json!({})));
        assert!(!permits(&bounds, "grep", json!({"pattern": "x"})));
    }

    #[test]
    fn paths_are_those_of_the_sessions_folder() {
        let bounds = bounds(vec![tools(Some(&["Edit(src/*)"]), &["Edit(src/key*)"])]);
        let edit = |path: &str| permits(&bounds, "edit", json!({"path": path}));
        assert!(edit("src/a.rs") && edit("./src/a.rs") && edit("/home/user/project/src/a.rs"));
        assert!(!edit("src/../secret") && !edit("/etc/src/x") && !edit("src/x/../key.rs"));
        let patch = |text: &str| permits(&bounds, "patch", json!({"patchText": text}));
        assert!(patch(
            "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n"
        ));
        assert!(!patch(
            "*** Update File: src/a.rs\n*** Move to: ../b.rs\n@@\n"
        ));
        assert!(!patch("something else"));
    }

    #[test]
    fn a_search_does_not_show_what_may_not_be_read() {
        let bounds = bounds(vec![tools(None, &["Read(secrets/*)"])]);
        let grep = |path: Value| permits(&bounds, "grep", json!({"pattern": "x", "path": path}));
        assert!(grep(json!("src")));
        assert!(!grep(json!("secrets")) && !grep(json!(".")) && !grep(Value::Null));
        assert!(!permits(&bounds, "read", json!({"path": "secrets/key"})));
        assert!(permits(&bounds, "read", json!({"path": "src/key"})));
    }

    #[test]
    fn every_skill_above_binds() {
        let outer = tools(Some(&["Bash(git:*)", "Read"]), &[]);
        let bounds = bounds(vec![outer, tools(Some(&["Bash"]), &["Bash(git push:*)"])]);
        assert!(bounds.offers("shell") && !bounds.offers("read"));
        assert!(permits(&bounds, "shell", json!({"command": "git log"})));
        assert!(!permits(&bounds, "shell", json!({"command": "git push x"})));
        assert!(!permits(&bounds, "shell", json!({"command": "ls"})));
    }

    #[test]
    fn delegation_is_a_tool_too() {
        let task = bounds(vec![tools(Some(&["Task"]), &[])]);
        let ours = [
            "asyncagents_task",
            "asyncagents_list",
            "asyncagents_message",
            "asyncagents_answer",
            "asyncagents_skill",
            "subagent",
            // Another's, which only ends alike.
            "slack_send_message",
        ];
        let offered = ours.into_iter().filter(|tool| task.offers(tool));
        // OpenCode's own would be beside all limits.
        let wanted = [
            "asyncagents_task",
            "asyncagents_list",
            "asyncagents_message",
            "asyncagents_answer",
        ];
        assert_eq!(offered.collect::<Vec<_>>(), wanted);
        assert!(!bounds(Vec::new()).offers("subagent"));
        let skill = bounds(vec![tools(Some(&["Skill(review)"]), &[])]);
        assert!(permits(&skill, "skill", json!({"id": "review"})));
        assert!(permits(
            &skill,
            "asyncagents_skill",
            json!({"name": "review"})
        ));
        assert!(!permits(
            &skill,
            "asyncagents_skill",
            json!({"name": "other"})
        ));
        let without = bounds(vec![tools(None, &["Skill"])]);
        assert!(!without.offers("skill") && !without.offers("asyncagents_skill"));
        let leaf = Bounds {
            may_delegate: false,
            ..bounds(Vec::new())
        };
        assert!(!leaf.offers("asyncagents_task") && leaf.offers("shell"));
        assert!(leaf.guards_calls() && !bounds(Vec::new()).guards_calls());
    }

    #[test]
    fn what_a_pattern_means_must_be_known() {
        let unknown = bounds(vec![tools(Some(&["mcp_x(a*)", "mcp_y"]), &["mcp_z(b*)"])]);
        assert!(permits(&unknown, "mcp_y", json!({"q": "a"})));
        assert!(!permits(&unknown, "mcp_x", json!({"q": "a"})));
        let stopped = bounds(vec![tools(None, &["mcp_z(b*)"])]);
        assert!(!permits(&stopped, "mcp_z", json!({})));
    }
}
