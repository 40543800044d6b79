//! A skill's tools as rules of a session. A skill narrows what its agent may do; it never
//! widens it.

use asyncagents_core::agent::{TASK_TOOLS, Tools, glob::fits};

use super::wire::Rule;
pub(crate) use super::wire::Rule as SkillRule;

/// What OpenCode asks about beside tools. A skill has no say in it.
const NOT_TOOLS: [&str; 2] = ["external_directory", "doom_loop"];

/// The rules for a sub-agent that has these tools. `theirs` are those that its agent and its
/// parent have, the last that fits counting; `prefix` is what our tools' names begin with.
pub(crate) fn rules(tools: &Tools, theirs: &[Rule], prefix: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Some(only) = &tools.only {
        rules.push(Rule::new("*", "*", "deny"));
        for kept in NOT_TOOLS {
            rules.extend(own(theirs, kept));
        }
        for listed in only {
            for permission in permissions(listed.tool_name(), prefix) {
                match listed.pattern() {
                    // What such a pattern means for each of them is not known.
                    Some(_) if permission.contains('*') => {}
                    None => rules.extend(own(theirs, &permission)),
                    Some(pattern) => {
                        let action = action(theirs, &permission, pattern);
                        rules.push(Rule::new(&permission, pattern, &action));
                        // What is forbidden or asked for in particular stays so.
                        let narrower = own(theirs, &permission).into_iter();
                        rules.extend(
                            narrower.filter(|rule| rule.pattern != "*" && rule.action != "allow"),
                        );
                    }
                }
            }
        }
    }
    for listed in &tools.not {
        for permission in permissions(listed.tool_name(), prefix) {
            rules.push(Rule::new(
                &permission,
                listed.pattern().unwrap_or("*"),
                "deny",
            ));
        }
    }
    rules
}

/// What a tool is called where OpenCode speaks of permissions.
fn permissions(tool: &str, prefix: &str) -> Vec<String> {
    let names: &[&str] = match tool {
        "write" | "multiedit" | "patch" | "apply_patch" => &["edit"],
        "ls" => &["list"],
        "shell" => &["bash"],
        "todo" | "todoread" | "todolist" => &["todowrite"],
        "task" | "agent" => {
            let ours = TASK_TOOLS.map(|name| format!("{prefix}{name}"));
            return ["task".to_owned()].into_iter().chain(ours).collect();
        }
        "skill" => return vec!["skill".to_owned(), format!("{prefix}skill")],
        other => &[other],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Everything that the agent's own rules say about a permission, in order. Its name may have
/// `*` in it; then what they say about some of those it stands for is kept as it is.
fn own(theirs: &[Rule], permission: &str) -> Vec<Rule> {
    let about = theirs.iter().filter_map(|given| {
        let named = given.permission.as_str();
        if fits(named, permission) {
            return Some(Rule::new(permission, &given.pattern, &given.action));
        }
        if fits(permission, named) {
            return Some(given.clone());
        }
        // The rule may be about some of those that the name stands for.
        let perhaps = permission.contains('*') && may_meet(permission, named);
        match given.action.as_str() {
            "deny" if perhaps => Some(given.clone()),
            "ask" if perhaps => Some(Rule::new(permission, &given.pattern, "ask")),
            _ => None,
        }
    });
    let mut rules: Vec<Rule> = about.collect();
    // OpenCode asks where there is no rule.
    let all = |rule: &Rule| rule.permission == permission && rule.pattern == "*";
    if !rules.iter().any(all) {
        rules.insert(0, Rule::new(permission, "*", "ask"));
    }
    rules
}

/// What the agent's own rules say about a use of a permission.
fn action(theirs: &[Rule], permission: &str, pattern: &str) -> String {
    let rules = own(theirs, permission);
    let mut about = rules.iter().rev();
    let last = about.find(|rule| rule.pattern == "*" || rule.pattern == pattern);
    last.map_or_else(|| "ask".to_owned(), |rule| rule.action.clone())
}

/// Whether two names with `*` in them may stand for the same permission.
fn may_meet(one: &str, other: &str) -> bool {
    let beginning = |name: &str| name.split('*').next().unwrap_or_default().to_owned();
    let (one, other) = (beginning(one), beginning(other));
    one.starts_with(&other) || other.starts_with(&one)
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::{Rule as Tool, Tools};

    use super::{Rule, rules};

    fn tools(only: Option<&[&str]>, not: &[&str]) -> Tools {
        let read = |names: &[&str]| -> Vec<Tool> {
            names.iter().filter_map(|name| name.parse().ok()).collect()
        };
        Tools {
            only: only.map(read),
            not: read(not),
            within: Vec::new(),
        }
    }

    fn shown(rules: &[Rule]) -> Vec<String> {
        let shown = rules
            .iter()
            .map(|rule| format!("{} {} {}", rule.permission, rule.pattern, rule.action));
        shown.collect()
    }

    #[test]
    fn a_skill_narrows_what_its_agent_may_do_and_widens_nothing() {
        let theirs = [
            Rule::new("*", "*", "allow"),
            Rule::new("bash", "*", "ask"),
            Rule::new("bash", "git push*", "deny"),
            Rule::new("edit", "*", "deny"),
        ];
        let rules = rules(
            &tools(
                Some(&["Read", "Bash(git:*)", "Write"]),
                &["Bash(git reset *)"],
            ),
            &theirs,
            "asyncagents_",
        );
        assert_eq!(
            shown(&rules),
            [
                "* * deny",
                "external_directory * allow",
                "doom_loop * allow",
                "read * allow",
                "bash git * ask",
                "bash git push* deny",
                "edit * allow",
                "edit * deny",
                "bash git reset * deny",
            ]
        );
    }

    #[test]
    fn names_with_stars_widen_nothing_either() {
        let theirs = [
            Rule::new("*", "*", "allow"),
            Rule::new("bash", "*", "ask"),
            Rule::new("edit", "*", "deny"),
            Rule::new("mcp_*_write", "*", "deny"),
            Rule::new("mcp_dangerous", "*", "deny"),
        ];
        let all = rules(&tools(Some(&["*"]), &[]), &theirs, "a_");
        let last = |name: &str| {
            let fits = |rule: &&Rule| super::fits(&rule.permission, name);
            all.iter().rev().find(fits).map(|rule| rule.action.clone())
        };
        assert_eq!(last("read").as_deref(), Some("allow"));
        assert_eq!(last("bash").as_deref(), Some("ask"));
        assert_eq!(last("edit").as_deref(), Some("deny"));
        assert_eq!(
            shown(&rules(&tools(Some(&["*(**)"]), &[]), &theirs, "a_")).len(),
            3
        );
        let writers = [
            Rule::new("*", "*", "allow"),
            Rule::new("*_write", "*", "ask"),
        ];
        let reads = rules(&tools(Some(&["read"]), &[]), &writers, "a_");
        assert!(!shown(&reads).contains(&"*_write * ask".to_owned()));
        let some = rules(&tools(Some(&["mcp_*"]), &[]), &theirs, "a_");
        let last = |name: &str| {
            let fits = |rule: &&Rule| super::fits(&rule.permission, name);
            some.iter().rev().find(fits).map(|rule| rule.action.clone())
        };
        assert_eq!(last("mcp_files").as_deref(), Some("allow"));
        assert_eq!(last("mcp_dangerous").as_deref(), Some("deny"));
        assert_eq!(last("mcp_files_write").as_deref(), Some("deny"));
        assert_eq!(last("bash").as_deref(), Some("deny"));
    }

    #[test]
    fn a_skill_without_a_list_has_its_agents_tools() {
        let theirs = [Rule::new("*", "*", "allow")];
        assert!(rules(&tools(None, &[]), &theirs, "a_").is_empty());
        let without = rules(&tools(None, &["Skill"]), &theirs, "a_");
        assert_eq!(shown(&without), ["skill * deny", "a_skill * deny"]);
    }
}
