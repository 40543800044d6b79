//! What a skill may use: folders in its patterns, blocks of commands, and everything below it.

use asyncagents_core::{
    agent::{Kind, Rule, Tools},
    skill::{Skill, Surroundings, Terms, filled_tools, lets_run, tools_below},
    tool_set::specs,
};
use rstest::rstest;

fn tools_of(head: &str) -> Tools {
    let skill = Skill::parse("greet", &format!("---\n{head}\n---\nx"));
    skill.expect("a skill").manifest.tools
}

fn tools(only: &str, not: &str) -> Tools {
    let list = |rules: &str| Rule::list(rules).expect("rules");
    Tools {
        only: Some(list(only)).filter(|rules| !rules.is_empty()),
        not: list(not),
        within: Vec::new(),
    }
}

fn terms(only: &str, not: &str) -> Terms {
    Terms {
        skill: "x".to_owned(),
        tools: tools(only, not),
        iterations: 5,
        retries: 3,
        iteration_time: None,
        model: None,
        effort: None,
    }
}

/// Who may launch tasks may do with them what there is to do, and who may not has none of it.
#[test]
fn task_stands_for_every_tool_for_background_tasks() {
    let names: Vec<String> = specs("bg_").into_iter().map(|spec| spec.name).collect();
    let (only, not) = (tools("Task", ""), tools("", "Task"));
    for tools in [only.called_here(), only.called_with("bg_")] {
        assert!(names.iter().all(|name| tools.offers(name)), "{tools:?}");
    }
    for tools in [not.called_here(), not.called_with("bg_")] {
        assert!(!names.iter().any(|name| tools.offers(name)), "{tools:?}");
    }
    // A tool of others ends like one of them.
    assert!(!only.called_with("bg_").offers("chat_message"));
    assert!(not.called_with("bg_").offers("chat_message"));
}

#[rstest]
#[case::not(&[("", "Bash, Write")], "", "read", "x", true)]
#[case::not_bash(&[("", "Bash, Write")], "", "bash", "ls", false)]
#[case::only(&[("Read, Task", "")], "", "bash", "ls", false)]
#[case::only_patterns(&[("Bash(git *), Task", "")], "", "bash", "git log", true)]
#[case::other_command(&[("Bash(git *), Task", "")], "", "bash", "rm x", false)]
#[case::both(&[("Bash(git *)", "")], "Bash(git log *)", "bash", "git log -1", true)]
#[case::outer_narrower(&[("Bash(git log *)", "")], "Bash", "bash", "git push", false)]
#[case::two_above(&[("Bash(git *)", ""), ("", "Bash(git push *)")], "Bash", "bash", "git push", false)]
#[case::two_above_allow(&[("Bash(git *)", ""), ("", "Bash(git push *)")], "Bash", "bash", "git log", true)]
#[case::other_names(&[("TodoWrite", "")], "", "todo", "", true)]
#[case::all(&[("*", "")], "", "bash", "ls", true)]
fn tools_of_a_skill_bind_everything_below_it(
    #[case] above: &[(&str, &str)],
    #[case] own: &str,
    #[case] tool: &str,
    #[case] target: &str,
    #[case] allowed: bool,
) {
    let innermost_first = above.iter().rev().map(|(only, not)| terms(only, not));
    let within = tools_below(&innermost_first.collect::<Vec<_>>());
    let tools = terms(own, "").over(&Tools::default().bounded(&within));
    let kind = match tool {
        "bash" => Kind::Run,
        _ => Kind::Read,
    };
    assert_eq!(tools.allows(tool, kind, target), allowed);
    assert!(tools.offers(tool) || !allowed);
}

#[test]
fn a_skill_without_limits_binds_nothing() {
    assert_eq!(tools_below(&[terms("", "")]), []);
}

/// What a folder is called is never more than its name.
#[rstest]
#[case::plain(
    "/skills/pdf",
    "${CLAUDE_SKILL_DIR}/run.sh *",
    Some("/skills/pdf/run.sh *")
)]
#[case::project(
    "/p",
    "${CLAUDE_PROJECT_DIR}/x ${CLAUDE_SKILL_DIR}",
    Some("/project/x /p")
)]
#[case::blanks(
    "/my skills",
    "${CLAUDE_SKILL_DIR}/run.sh *",
    Some("'/my skills'/run.sh *")
)]
#[case::shell("/a;id", "${CLAUDE_SKILL_DIR}/run.sh *", Some("'/a;id'/run.sh *"))]
#[case::star("/a*", "${CLAUDE_SKILL_DIR}/run.sh *", None)]
#[case::no_plugin("/a", "${CLAUDE_PLUGIN_ROOT}/run.sh *", None)]
#[case::other("/a", "${OTHER}/run.sh *", Some("${OTHER}/run.sh *"))]
fn folders_are_filled_in_in_tools(
    #[case] folder: &str,
    #[case] pattern: &str,
    #[case] expected: Option<&str>,
) {
    let around = Surroundings {
        skill_dir: folder,
        project_dir: "/project",
        ..Surroundings::default()
    };
    let tools = tools_of(&format!("allowed-tools: Bash({pattern})"));
    let tools = filled_tools(&tools, &around);
    let only = tools.only.as_deref().expect("a list");
    let only: Vec<&str> = only.iter().filter_map(Rule::pattern).collect();
    assert_eq!(only, Vec::from_iter(expected));
}

#[test]
fn a_folder_with_a_star_in_it_forbids_rather_more() {
    let around = Surroundings {
        skill_dir: "/a*",
        ..Surroundings::default()
    };
    let tools = tools_of("disallowed-tools: Read(${CLAUDE_SKILL_DIR}/x)");
    let tools = filled_tools(&tools, &around);
    assert!(!tools.allows("read", Kind::Read, "/a*/x"));
}

#[test]
fn folders_in_the_project_are_named_from_there() {
    let around = Surroundings {
        skill_dir: "/project/.claude/skills/pdf",
        project_dir: "/project",
        ..Surroundings::default()
    };
    let tools = tools_of(
        "allowed-tools: Read(${CLAUDE_SKILL_DIR}/*)\n\
         disallowed-tools: Read(${CLAUDE_SKILL_DIR}/x*)",
    );
    let tools = filled_tools(&tools, &around);
    assert!(tools.allows("read", Kind::Read, ".claude/skills/pdf/reference.md"));
    assert!(!tools.allows("read", Kind::Read, ".claude/skills/pdf/x.md"));
    assert!(!tools.allows("read", Kind::Read, "secret"));
}

#[rstest]
#[case(
    "Bash(git *), Bash(node --version)",
    "node --version\ngit status",
    true
)]
#[case("Bash(git *)", "node --version\ngit status", false)]
#[case("Bash(git *)", "# what is new\n\ngit log", true)]
#[case("Bash(git *)", "git log \\\nrm x", false)]
#[case("Bash", "for x in *; do\n echo $x\ndone", true)]
fn every_line_of_a_block_has_to_be_allowed(
    #[case] allowed: &str,
    #[case] block: &str,
    #[case] runs: bool,
) {
    assert_eq!(lets_run(&tools(allowed, ""), block), runs);
    assert!(!lets_run(&Tools::default(), block), "nothing is listed");
}

#[rstest]
#[case(
    "Bash(git log *), Bash(git show *), Read",
    "",
    "bash",
    Some("only `git log *` and `git show *`")
)]
#[case(
    "Bash(git *)",
    "Bash(git push *)",
    "bash",
    Some("only `git *`; not `git push *`")
)]
#[case("Edit(src/*)", "", "write", Some("only `src/*`"))]
#[case("Bash, Bash(git *)", "", "bash", None)]
#[case("Read", "", "read", None)]
fn a_model_is_told_which_uses_are_allowed(
    #[case] only: &str,
    #[case] not: &str,
    #[case] tool: &str,
    #[case] uses: Option<&str>,
) {
    assert_eq!(tools(only, not).uses(tool).as_deref(), uses);
}
