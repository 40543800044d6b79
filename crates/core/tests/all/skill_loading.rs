//! Skills that other agents load are loaded, with remarks; names in every script; names that
//! are traps.

use std::{path::PathBuf, sync::Arc};

use asyncagents_core::{
    agent::agent_meant,
    skill::{Catalog, Flaw, Found, Layer, Skill, SkillContext},
    unknown_names::{Here, unknown_names},
};
use rstest::rstest;

fn parse(text: &str) -> Skill {
    Skill::parse("greet", text).expect("a skill")
}

fn shown(flaws: &[Flaw]) -> Vec<String> {
    let shown = |flaw: &Flaw| format!("{}: {}", flaw.line, flaw.why);
    flaws.iter().map(shown).collect()
}

#[test]
fn unknown_keys_are_kept_ignored_and_remarked_on() {
    let head = "name: greet\ndescription: x\nhooks: {before: x}\nVersion: 1.2\nallowedTools: Read\n\
        tools: Read\npermissions: all\nshell: bash";
    let skill = parse(&format!("---\n{head}\n---\nx"));
    assert_eq!(
        skill.manifest.unknown,
        [
            "allowedTools",
            "hooks",
            "permissions",
            "shell",
            "tools",
            "Version"
        ]
    );
    assert_eq!(
        shown(&skill.remarks),
        [
            "4: `hooks` does something in Claude Code, not here",
            "6: the key `allowedTools` means nothing here; did you mean `allowed-tools`?",
            "7: the key `tools` means nothing here; did you mean `allowed-tools`?",
            "8: the key `permissions` means nothing here",
        ]
    );
}

/// What the standard refuses is told, and so is what is odd.
#[rstest]
#[case::no_head("no head", &["1: it does not begin with a line `---`"], &[])]
#[case::open_head("---\nname: greet\n", &["1: its head has no end: a line `---` is missing"],
    &["1: it is used without its head, by you alone: no model is offered it"])]
#[case::no_yaml("---\nname: greet\ndescription: [a\n---\nx",
    &["3: its head is not YAML: unclosed bracket '['"],
    &["3: it is used without its head, by you alone: no model is offered it"])]
#[case::display_name("---\nname: Greet People\ndescription: x\n---\nx",
    &["2: `name`: `Greet People` is refused; allowed: 1 to 64 small letters, digits and single hyphens between them"], &[])]
#[case::hyphen("---\nname: -greet\ndescription: x\n---\nx",
    &["2: `name`: `-greet` is refused; allowed: 1 to 64 small letters, digits and single hyphens between them"], &[])]
#[case::context("---\nname: greet\ndescription: x\ncontext: |\n  !git\n  log\n---\nx", &[],
    &["4: `context`: `!git log` means nothing here, only inherit and fork do"])]
#[case::tool("---\nname: greet\ndescription: x\nallowed-tools: Read Bash(git\n---\nx", &[],
    &["4: `allowed-tools`: `Bash(git` is no rule; rules look like `bash`, `bash(cargo test*)` or `edit(src/*)`; it is not allowed"])]
#[case::no_body("---\nname: greet\ndescription: x\n---\n\n", &[],
    &["4: it has nothing to say below its head"])]
#[case::nothing_said("---\ntags: a\n---\nx", &[], &[
    "1: it has no `description`, which the Agent Skills standard requires",
    "1: it has no `name`, which the Agent Skills standard requires",
])]
#[case::colon("---\nname: greet\ndescription: Use when: it rains\n---\nx", &[],
    &["3: it is not quite YAML, and other tools will not read it: a value with `: ` in it needs quotes around it"])]
#[case::effort("---\nname: greet\ndescription: x\neffort: huge\nmetadata: none\n---\nx", &[], &[
    "4: `effort`: `huge` means nothing here, only low, medium, high, xhigh and max do",
    "5: `metadata`: expected keys and values",
])]
fn what_others_load_is_loaded(
    #[case] text: &str,
    #[case] refused: &[&str],
    #[case] remarks: &[&str],
) {
    let skill = parse(text);
    assert_eq!(shown(&skill.refused_elsewhere), refused);
    assert_eq!(shown(&skill.remarks), remarks);
    assert_eq!(skill.manifest.name, "greet");
    assert_eq!(skill.manifest.context, SkillContext::Inherit);
}

#[test]
fn a_head_that_cannot_be_read_hides_the_skill_from_models() {
    let skill = parse("---\ndisable-model-invocation: true\ntags: [a\n---\nDeploy.");
    assert!(!skill.manifest.for_model && skill.manifest.for_user);
    assert_eq!(skill.manifest.description, "Deploy.");
    let all_body = parse("Deploy.\n\n---\nx: y\n---");
    assert!(all_body.manifest.for_model);
    assert_eq!(all_body.body, "Deploy.\n\n---\nx: y\n---");
}

#[rstest]
#[case::chinese("技能", "技能", "技能", None)]
#[case::cyrillic("мой-навык", "мой-навык", "мой-навык", None)]
#[case::accents("café", "cafe\u{301}", "café", None)]
#[case::wide("ｄｅｐｌｏｙ", "deploy", "deploy", None)]
fn names_of_every_script_are_names(
    #[case] name: &str,
    #[case] folder: &str,
    #[case] expected: &str,
    #[case] title: Option<&str>,
) {
    let skill = named(name, folder);
    assert_eq!(skill.refused_elsewhere, []);
    assert_eq!(skill.remarks, []);
    assert_eq!(skill.manifest.name, expected);
    assert_eq!(skill.manifest.title.as_deref(), title);
}

/// A name for people is shown, and the folder's is what a skill is called by.
#[rstest]
#[case::capitals("Мой-Навык", "x", "x", Some("Мой-Навык"))]
#[case::blanks(
    "Writing Rules",
    "writing-rules",
    "writing-rules",
    Some("Writing Rules")
)]
#[case::folder_with_blanks("Writing Rules", "Writing Rules", "Writing Rules", None)]
#[case::no_folder("Writing Rules", "", "Writing Rules", None)]
#[case::turned("a\u{202e}b", "x", "x", Some("ab"))]
#[case::lines("a\nb", "x", "x", Some("a b"))]
#[case::escape("\u{1b}[2Jx", "x", "x", Some("[2Jx"))]
#[case::path("../../etc", "x", "x", Some("../../etc"))]
fn names_for_people_are_shown(
    #[case] name: &str,
    #[case] folder: &str,
    #[case] expected: &str,
    #[case] title: Option<&str>,
) {
    let skill = named(name, folder);
    assert_eq!(skill.refused_elsewhere.len(), 1);
    assert_eq!(skill.manifest.name, expected);
    assert_eq!(skill.manifest.title.as_deref(), title);
}

fn named(name: &str, folder: &str) -> Skill {
    let head = serde_json::json!({"name": name, "description": "x"});
    Skill::parse(folder, &format!("---\n{head}\n---\nx")).expect("a skill")
}

#[test]
fn a_skill_is_found_in_any_spelling_and_by_people_also_by_its_other_names() {
    let skill = named("Über Rules", "ÜBER-café");
    let catalog = Catalog::new(vec![Found {
        layer: Layer::User,
        place: 0,
        file: PathBuf::from("/skills/ÜBER-café/SKILL.md"),
        plugin: None,
        skill: Ok(Arc::new(skill)),
    }]);
    for name in ["über-café", "/ÜBER-CAFÉ", "u\u{308}ber-cafe\u{301}"] {
        assert!(catalog.get(name).is_ok(), "{name}");
    }
    assert!(catalog.get("über rules").is_err());
    assert!(catalog.get_for_person("über rules").is_ok());
    assert!(catalog.get_for_person("rules").is_err());
}

#[rstest]
#[case::nothing("")]
#[case::dots("..")]
#[case::control("a\u{7}b")]
#[case::turned("a\u{202e}b")]
#[case::invisible("a\u{200b}b")]
#[case::flag("-rf")]
#[case::long(&"x".repeat(10_000))]
fn a_name_that_nobody_could_type_or_see_is_refused(#[case] folder: &str) {
    for head in [
        "description: x".to_owned(),
        format!("name: {}", "Y".repeat(10_000)),
    ] {
        let flaws = Skill::parse(folder, &format!("---\n{head}\n---\nx")).expect_err("refused");
        let why = &flaws.first().expect("one").why;
        assert!(
            why.starts_with("it has no `name` that can be used"),
            "{why}"
        );
        assert!(why.chars().count() < 400);
    }
}

#[test]
fn texts_that_are_too_long_are_cut_and_told() {
    let head = format!(
        "name: greet\ndescription: {}\ncompatibility: {}",
        "d".repeat(2_000),
        "c".repeat(550)
    );
    let skill = parse(&format!("---\n{head}\n---\nx"));
    assert_eq!(skill.manifest.description.len(), 1_536);
    assert_eq!(
        shown(&skill.refused_elsewhere),
        [
            "3: `description` has 2,000 characters; allowed: 1,024",
            "4: `compatibility` has 550 characters; allowed: 500",
        ]
    );
}

#[rstest]
#[case("yes", true)]
#[case("ON", true)]
#[case("1", true)]
#[case("No", false)]
#[case("off", false)]
#[case("0", false)]
fn switches_are_written_in_many_ways(#[case] written: &str, #[case] on: bool) {
    let skill = parse(&format!("---\nuser-invocable: {written}\n---\nx"));
    assert_eq!(skill.manifest.for_user, on);
}

#[test]
fn names_that_mean_nothing_here_are_remarked_on() {
    let text = "---\nname: greet\nagent: Explroe\nmodel: nosuch\ndisallowed-tools: WebFetch\n\
        allowed-tools: Read, Bsah(git *), Task, MultiEdit, TodoWrite, LS, Skill, mcp__x\n---\nx";
    let agents = ["general".to_owned(), "explore".to_owned()];
    let tools = [
        "read",
        "edit",
        "glob",
        "bash",
        "todo",
        "skill",
        "asyncagents_task",
    ];
    let here = Here {
        agents: &agents,
        model: &|name| Some(format!("no `{name}`")),
        tools: &tools.map(str::to_owned),
    };
    assert_eq!(
        shown(&unknown_names(&parse(text), &here)),
        [
            "3: there is no agent `Explroe` here; did you mean `explore`?",
            "4: its model is not here, another is used: no `nosuch`",
            "6: there is no tool `bsah` here; did you mean `bash`?",
            "6: there is no tool `mcp__x` here",
            "5: there is no tool `webfetch` here",
        ]
    );
    let known = Here {
        model: &|_| None,
        ..here
    };
    let fine = "---\nagent: general-purpose\nmodel: inherit\n---\nx";
    assert_eq!(unknown_names(&parse(fine), &known), []);
}

#[rstest]
#[case("general-purpose", &["general", "explore"], Some("general"))]
#[case("General-Purpose", &["general"], Some("general"))]
#[case("Explore", &["general", "explore"], Some("explore"))]
#[case("claude-code-guide", &["general", "explore"], Some("explore"))]
#[case("statusline-setup", &["general", "explore"], Some("general"))]
#[case::own_agent_first("general-purpose", &["general", "General-Purpose"], Some("General-Purpose"))]
#[case::other_host("general-purpose", &["build"], None)]
#[case("wizard", &["general"], None)]
fn the_agents_of_claude_code_are_known(
    #[case] asked: &str,
    #[case] known: &[&str],
    #[case] meant: Option<&str>,
) {
    assert_eq!(agent_meant(asked, known.iter().copied()), meant);
}
