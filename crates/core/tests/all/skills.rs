//! Skills, as their authors and users meet them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Kind, Rule},
    skill::{
        Body, Catalog, Flaw, Found, Layer, Piece, Skill, SkillContext, Surroundings, disclose,
        isolated, iterations,
    },
    sub_agent_report::SubAgentReport,
    task::Outcome,
};
use rstest::rstest;

fn parse(text: &str) -> Skill {
    Skill::parse("greet", text).expect("a skill")
}

fn flaws(text: &str) -> Vec<String> {
    let flaws = Skill::parse("greet", text).expect_err("a bad skill");
    let shown = |flaw: Flaw| format!("{}: {}", flaw.line, flaw.why);
    flaws.into_iter().map(shown).collect()
}

#[test]
fn every_key_means_what_it_says_in_either_spelling() {
    let kebab = "---\nname: greet\ndescription: Says hello.\nlicense: MIT\ncompatibility: needs git\n\
        metadata: {by: us, year: 2026}\nallowed-tools: [Read, 'Bash(git log *)']\n\
        disallowed-tools: Write\ncontext: fork\nagent: Explore\nmodel: fast\nmax-iterations: 20\n\
        max-retries-per-tool: 2\ntimeout-per-iteration: 500ms\ntimeout: 90\n\
        disable-model-invocation: true\nuser-invocable: false\nargument-hint: '[who]'\n\
        arguments: [who, when]\nwhen_to_use: At the door.\nbackground: false\npriority: 7\n\
        tags: [a, b]\n---\n# Hello\n\nSay hello.\n";
    let skill = parse(kebab);
    let manifest = &skill.manifest;
    assert_eq!(manifest.name, "greet");
    assert_eq!(manifest.description, "Says hello.");
    assert_eq!(manifest.license.as_deref(), Some("MIT"));
    assert_eq!(manifest.compatibility.as_deref(), Some("needs git"));
    assert_eq!(
        manifest.metadata.get("year").map(String::as_str),
        Some("2026")
    );
    let only = manifest.tools.only.as_deref().expect("a list");
    let only: Vec<String> = only.iter().map(ToString::to_string).collect();
    assert_eq!(only, ["read", "bash(git log *)"]);
    assert_eq!(manifest.tools.not, [Rule::tool("write")]);
    assert_eq!(manifest.context, SkillContext::Isolated);
    assert_eq!(manifest.agent.as_deref(), Some("Explore"));
    assert_eq!(manifest.model.as_deref(), Some("fast"));
    assert_eq!(manifest.max_iterations, Some(20));
    assert_eq!(manifest.max_retries, Some(2));
    assert_eq!(manifest.iteration_time, Some(Duration::from_millis(500)));
    assert_eq!(manifest.time, Some(Duration::from_secs(90)));
    assert!(!manifest.for_model);
    assert!(!manifest.for_user);
    assert_eq!(manifest.argument_hint.as_deref(), Some("[who]"));
    assert_eq!(manifest.arguments, ["who", "when"]);
    assert_eq!(manifest.when_to_use.as_deref(), Some("At the door."));
    assert_eq!(manifest.background, Some(false));
    assert_eq!(manifest.priority, 7);
    assert_eq!(manifest.tags, ["a", "b"]);
    assert_eq!(manifest.unknown, Vec::<String>::new());
    let (head, body) = kebab.split_once("\n---\n").expect("a head");
    let snake: Vec<String> = head
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key, value)) => format!("{}: {value}", key.replace('-', "_")),
            None => line.to_owned(),
        })
        .collect();
    assert_eq!(parse(&format!("{}\n---\n{body}", snake.join("\n"))), skill);
}

#[test]
fn what_is_not_said_has_a_default() {
    let skill = parse("---\n---\n# Hello\n\nSay hello\nto everyone.\n\nTwice.");
    let manifest = &skill.manifest;
    assert_eq!(manifest.name, "greet");
    assert_eq!(manifest.description, "Say hello to everyone.");
    assert_eq!(manifest.context, SkillContext::Inherit);
    assert_eq!(manifest.tools.only, None);
    assert_eq!(
        (manifest.agent.as_ref(), manifest.model.as_ref()),
        (None, None)
    );
    assert!(manifest.for_model && manifest.for_user);
    let inherits = parse("---\nmodel: Inherit\n---\nx").manifest.model;
    assert_eq!(inherits.as_deref(), Some("inherit"));
}

#[rstest]
#[case::crlf(
    "---\r\nname: greet\r\ndescription: Hi.\r\n---\r\nOne.\r\nTwo.\r\n",
    "One.\nTwo."
)]
#[case::bom("\u{feff}---\nname: greet\ndescription: Hi.\n---\nOne.\n", "One.")]
#[case::no_newline("---\nname: greet\ndescription: Hi.\n---\nOne.", "One.")]
#[case::blanks_behind_fences("--- \nname: greet\ndescription: Hi.\n---  \nOne.", "One.")]
fn files_of_every_editor_are_read(#[case] text: &str, #[case] body: &str) {
    let skill = parse(text);
    assert_eq!(skill.manifest.description, "Hi.");
    assert_eq!(skill.body, body);
}

#[rstest]
#[case("---\nmax-iterations: 0\ntimeout: soon\nmax-retries-per-tool: 11\n---\nx", &[
    "2: `max-iterations`: `0` is refused; allowed: 1 to 100",
    "3: `timeout`: `soon` is refused; allowed: 500ms, 30s, 5m, 1h, or seconds, up to 24h",
    "4: `max-retries-per-tool`: `11` is refused; allowed: 0 to 10",
])]
#[case("---\ndisallowed-tools: Read Bash(git\n---\nx", &["2: `disallowed-tools`: `Bash(git` is no rule; rules look like `bash`, `bash(cargo test*)` or `edit(src/*)`"])]
#[case("---\nallowed-tools: Read\nallowed_tools: Write\n---\nx", &["3: `allowed_tools` and `allowed-tools` are the same key"])]
#[case("---\nuser-invocable: maybe\n---\nx", &["2: `user-invocable`: `maybe` is refused; allowed: true or false"])]
fn a_bad_skill_says_every_flaw_with_its_line(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(flaws(text), expected);
}

#[test]
fn a_head_that_grows_while_it_is_read_is_not_read() {
    let mut head = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (one, other) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let again = vec![format!("*{one}"); 9].join(", ");
        head.push_str(&format!("{other}: &{other} [{again}]\n"));
    }
    let skill = parse(&format!("---\n{head}---\nx"));
    let why = &skill.refused_elsewhere[0].why;
    assert!(why.contains("too large or too complex"), "{why}");
    assert_eq!(skill.manifest.unknown, Vec::<String>::new());
}

/// The same tools, however they are written.
#[rstest]
#[case("[Read, 'Bash(git log --oneline *)', Grep]")]
#[case("Read Bash(git log --oneline *) Grep")]
#[case("Read, Bash(git log --oneline *), Grep")]
#[case("READ,bash(git log --oneline *),gREP")]
#[case("\n  - read\n  - bash(git log --oneline:*)\n  - Grep")]
fn allowed_tools_are_the_same_when_listing_and_when_calling(#[case] written: &str) {
    let skill = parse(&format!("---\nallowed-tools: {written}\n---\nx"));
    let tools = skill.manifest.tools.called_here();
    let offered = |tool: &&str| tools.offers(tool);
    let all = ["read", "write", "edit", "glob", "grep", "bash", "todo"];
    let offered: Vec<&str> = all.into_iter().filter(offered).collect();
    assert_eq!(offered, ["read", "grep", "bash"]);
    for tool in all {
        let kind = if tool == "bash" {
            Kind::Run
        } else {
            Kind::Read
        };
        let allowed = tools.allows(tool, kind, "git log --oneline -5");
        assert_eq!(allowed, offered.contains(&tool), "{tool}");
    }
    assert!(!tools.allows("bash", Kind::Run, "git push"));
}

#[rstest]
#[case("[]", &[])]
#[case("''", &[])]
#[case("~", &["read", "write"])]
fn no_tools_and_no_list_are_different(#[case] written: &str, #[case] expected: &[&str]) {
    let tools = parse(&format!("---\nallowed-tools: {written}\n---\nx"))
        .manifest
        .tools;
    let offered = ["read", "write"]
        .into_iter()
        .filter(|tool| tools.offers(tool));
    assert_eq!(offered.collect::<Vec<_>>(), expected);
}

#[test]
fn skills_in_rules_are_named_in_any_spelling() {
    let rule: Rule = "Skill(/Deploy)".parse().expect("a rule");
    assert!(rule.lets_pass("skill", Kind::Note, "deploy"));
}

#[test]
fn disallowed_tools_are_taken_away() {
    let text = "---\nallowed-tools: Read Bash(git *)\ndisallowed-tools: Bash(git push *)\n---\nx";
    let tools = parse(text).manifest.tools.called_here();
    assert!(tools.allows("bash", Kind::Run, "git log"));
    assert!(!tools.allows("bash", Kind::Run, "git push"));
    assert!(!tools.allows("bash", Kind::Run, "git push --force"));
    assert!(tools.offers("bash"));
}

/// What a pattern lets pass, and what looks like it and is something else.
#[rstest]
#[case("Bash(git:*)", "git", true)]
#[case("Bash(git:*)", "git status --short", true)]
#[case("Bash(git:*)", "gitk", false)]
#[case("Bash(git:*)", "git-evil", false)]
#[case("Bash(git:*)", "/tmp/git status", false)]
#[case("Bash(git:*)", "./git status", false)]
#[case("Bash(git:*)", "git status; id", false)]
#[case("Bash(git:*)", "git status & id", false)]
#[case("Bash(git:*)", "git status && id", false)]
#[case("Bash(git:*)", "git status | sh", false)]
#[case("Bash(git:*)", "git status\nid", false)]
#[case("Bash(git:*)", "git log $(id)", false)]
#[case("Bash(git:*)", "git log `id`", false)]
#[case("Bash(git:*)", "git log ${x}", false)]
#[case("Bash(git:*)", "git log > /etc/passwd", false)]
#[case("Bash(git:*)", "git log <(id)", false)]
#[case("Bash(git:*)", "X=1 git log", false)]
#[case("Bash(git:*)", "\tgit log", true)]
#[case("Bash(git:*)", "git\tlog", false)]
#[case("Bash(scripts/*)", "scripts/check.sh", true)]
#[case("Bash(scripts/*)", "scripts/../evil.sh", false)]
#[case("Bash(scripts/*)", "scripts/x ../../etc", false)]
#[case("Bash(bash scripts/*)", "bash scripts/.\"\"./evil.sh", false)]
#[case("Bash(bash scripts/*)", "bash scripts/.\\./evil.sh", false)]
#[case("Bash(bash scripts/*)", "bash scripts/.?/evil.sh", false)]
#[case("Bash(cat docs/*)", "cat docs/x --x=../secret", false)]
#[case("Bash(cat docs/*)", "cat docs/.[!a]/secret", false)]
#[case("Bash(cat docs/*)", "cat docs/*.md", true)]
#[case("Bash(cat docs/*)", "cat docs/v1.2/x", true)]
#[case("Bash(git diff *)", "git diff main..feature", true)]
#[case("Bash(*)", "anything; at all", true)]
fn a_pattern_lets_pass_what_it_means(
    #[case] rule: &str,
    #[case] command: &str,
    #[case] passes: bool,
) {
    let rule: Rule = rule.parse().expect("a rule");
    assert_eq!(rule.lets_pass("bash", Kind::Run, command), passes);
}

fn filled(body: &str, arguments: &str) -> Vec<Piece> {
    let names = ["issue".to_owned(), "branch".to_owned()];
    let around = Surroundings {
        arguments,
        skill_dir: "/skills/my skill",
        session: "ses_1",
        project_dir: "/project",
        plugin_root: None,
        effort: "high",
    };
    Body::parse(body, &names).fill(&around).expect("filled")
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

fn command(text: &str) -> Piece {
    Piece::Command(text.to_owned())
}

#[rstest]
#[case("Fix $ARGUMENTS now.", "12 main", "Fix 12 main now.")]
#[case("Fix $0 on $1.", "12 main", "Fix 12 on main.")]
#[case("Fix $ARGUMENTS[0] on $ARGUMENTS[1].", "12 main", "Fix 12 on main.")]
#[case("Fix $issue on $branch.", "12 main", "Fix 12 on main.")]
#[case("Fix $1.", "12 'my branch'", "Fix my branch.")]
// A number without an argument is text, and receives nothing.
#[case("Fix $7 and $ARGUMENTS[7], $0.", "12", "Fix $7 and $ARGUMENTS[7], 12.")]
#[case("=B5*(1+$B$6)", "", "=B5*(1+$B$6)")]
#[case("=B5*(1+$B$6)", "now", "=B5*(1+$B$6)\n\nARGUMENTS: now")]
#[case("On [$branch].", "12", "On [].")]
#[case(
    "In ${CLAUDE_SKILL_DIR}, ${CLAUDE_PROJECT_DIR}, ${CLAUDE_SESSION_ID}, ${CLAUDE_EFFORT}.",
    "",
    "In /skills/my skill, /project, ses_1, high."
)]
#[case("${CLAUDE_PLUGIN_ROOT}/x", "", "${CLAUDE_PLUGIN_ROOT}/x")]
#[case(
    "{baseDir}/x, ${baseDir}/x, {other}",
    "",
    "/skills/my skill/x, ${baseDir}/x, {other}"
)]
// One backslash keeps what asks for an argument, and nothing else.
#[case(
    r"Type \$ARGUMENTS, \$0, \$issue, \$1.00 or \$100. $0",
    "a",
    "Type $ARGUMENTS, $0, $issue, $1.00 or $100. a"
)]
#[case(r"\\$0 \\\$0 \$HOME \x", "a", r"\\a \\\a \$HOME \x")]
#[case(r"\${CLAUDE_PROJECT_DIR}", "", r"\/project")]
#[case("Fix $0 of $1.", "it's b", "Fix it's of b.")]
#[case(
    "Costs $5.20, ${OTHER}, $HOME and $ARGUMENTSX.",
    "",
    "Costs $5.20, ${OTHER}, $HOME and $ARGUMENTSX."
)]
#[case("No place.", "12 main", "No place.\n\nARGUMENTS: 12 main")]
#[case("No place.", "  ", "No place.")]
#[case("$0 only.", "one two", "one only.")]
#[case(
    "Say $ARGUMENTS.",
    "$0 \\$1 ${CLAUDE_PROJECT_DIR}",
    "Say $0 \\$1 ${CLAUDE_PROJECT_DIR}."
)]
fn a_body_is_filled_in_once(#[case] body: &str, #[case] arguments: &str, #[case] expected: &str) {
    assert_eq!(filled(body, arguments), [text(expected)]);
}

#[rstest]
#[case("!`git status`", "", vec![command("git status")])]
#[case("Now: !`git status`\nDone.", "", vec![text("Now: "), command("git status"), text("\nDone.")])]
#[case("a!`git status`", "", vec![text("a!`git status`")])]
#[case("`!`git status", "", vec![text("`!`git status")])]
#[case("!``", "", vec![text("!``")])]
#[case("!`git\nstatus`", "", vec![text("!`git\nstatus`")])]
#[case("\\!`git status`", "", vec![text("!`git status`")])]
#[case("!`git log $0`", "main", vec![command("git log main")])]
#[case(r"!`grep -E '\.rs$' $0`", "x", vec![command(r"grep -E '\.rs$' x")])]
#[case("!`git log $0`", "'a b'", vec![command("git log 'a b'")])]
#[case("!`git log $ARGUMENTS`", "-5 --oneline", vec![command("git log -5 --oneline")])]
#[case("!`cat ${CLAUDE_SKILL_DIR}/x`", "", vec![command("cat '/skills/my skill'/x")])]
// What came from arguments is a word to the shell, and no command to the body.
#[case("!`git log $0`", "\"x; id\"", vec![command("git log 'x; id'")])]
#[case("!`git log $0`", "$(id)", vec![command("git log '$(id)'")])]
#[case("!`git log $0`", "\"it's; id\"", vec![command(r"git log 'it'\''s; id'")])]
// Without an argument it is what a shell makes of nothing; in single quotes it is the author's.
#[case("!`git log $0 -5`", "", vec![command("git log  -5")])]
#[case("!`git log \"$0\"`", "", vec![command("git log \"\"")])]
#[case("!`awk '{print $1}' x`", "", vec![command("awk '{print $1}' x")])]
// A block is one command of several lines.
#[case("```!\nnode --version\n\ngit status\n```\nDone.", "", vec![command("node --version\n\ngit status"), text("\nDone.")])]
#[case("  ```!\n  git log $0\n  ```", "x;id", vec![text("  "), command("git log 'x;id'")])]
#[case("a ```!\nid\n```", "", vec![text("a ```!\nid\n```")])]
#[case("```! sh\nid\n```", "", vec![text("```! sh\nid\n```")])]
#[case("```!\nid", "", vec![text("```!\nid")])]
#[case("```!\n\n```", "", vec![text("```!\n\n```")])]
#[case("$ARGUMENTS", "\n```!\nid\n```", vec![text("```!\nid\n```")])]
#[case("Say $ARGUMENTS", "!`id`", vec![text("Say !`id`")])]
#[case("$ARGUMENTS", "\n!`id`", vec![text("!`id`")])]
#[case("No place.", "!`id`", vec![text("No place.\n\nARGUMENTS: !`id`")])]
// Quotes of the author hold it together, and hold it in.
#[case("!`grep \"$0\" src`", "'two words'", vec![command(r#"grep ""'two words'"" src"#)])]
#[case("!`grep \"$0\" src`", "plain", vec![command(r#"grep "plain" src"#)])]
#[case("!`grep \"$0\" src`", "$(id;uname)", vec![command(r#"grep ""'$(id;uname)'"" src"#)])]
#[case("!`grep \"for $ARGUMENTS\" src`", "a\"; id", vec![command(r#"grep "for "'a"; id'"" src"#)])]
#[case("!`grep '$0' src`", "\"x'; id #\"", vec![command(r"grep 'x'\''; id #' src")])]
// A backtick within ends the command.
#[case("!`echo `id``", "", vec![command("echo"), text("id``")])]
fn commands_are_the_authors_alone(
    #[case] body: &str,
    #[case] arguments: &str,
    #[case] expected: Vec<Piece>,
) {
    assert_eq!(filled(body, arguments), expected);
}

#[rstest]
#[case("!`$ARGUMENTS`", "arguments cannot say which program a command runs")]
#[case("!`\"$0\" x`", "arguments cannot say which program a command runs")]
#[case("!`X=1 $0`", "arguments cannot say which program a command runs")]
#[case("!`git$0 log`", "arguments cannot say which program a command runs")]
#[case("!`git status; $0`", "a command that takes arguments cannot use `;`")]
#[case("!`echo hi # $0`", "a command that takes arguments cannot use `#`")]
#[case(
    "!`echo \"$(grep $0 x)\"`",
    "a command that takes arguments cannot use `$`"
)]
#[case("!`echo $'a$0'`", "a command that takes arguments cannot use `$`")]
#[case(
    "```!\nls\necho '\necho $0'\n```",
    "quotes in a command that takes arguments end in their line"
)]
#[case(
    "```!\ncat <<EOF\nx $0\nEOF\n```",
    "a command that takes arguments cannot use `<`"
)]
#[case(
    "```!\necho a \\\nx $0\n```",
    "a command that takes arguments cannot use `\\`"
)]
#[case("!`cat <<$0`", "a command that takes arguments cannot use `<`")]
#[case("!`echo a\\\\ $0`", "a command that takes arguments cannot use `\\`")]
fn arguments_do_not_choose_what_runs(#[case] body: &str, #[case] why: &str) {
    let body = Body::parse(body, &[]);
    let around = Surroundings {
        arguments: "rm -rf .",
        ..Surroundings::default()
    };
    assert_eq!(body.fill(&around).expect_err("refused"), why);
}

fn found(layer: Layer, place: usize, file: &str, head: &str) -> Found {
    let text = format!("---\n{head}\n---\nDo it.");
    Found {
        layer,
        place,
        file: PathBuf::from(file),
        plugin: None,
        skill: Skill::parse("x", &text).map(Arc::new),
    }
}

#[test]
fn a_higher_layer_always_wins_and_priority_orders_within_one() {
    let catalog = Catalog::new(vec![
        found(
            Layer::Plugin,
            0,
            "/plugin/review/SKILL.md",
            "name: review\npriority: 900",
        ),
        found(
            Layer::Project,
            0,
            "/near/review/SKILL.md",
            "name: review\npriority: 1",
        ),
        found(
            Layer::Project,
            1,
            "/far/review/SKILL.md",
            "name: review\npriority: 5",
        ),
        found(Layer::Project, 1, "/far/build/SKILL.md", "name: build"),
        found(Layer::Project, 0, "/near/build/SKILL.md", "name: build"),
        found(Layer::User, 0, "/home/notes/SKILL.md", "name: notes"),
        found(Layer::User, 0, "/home/bad/SKILL.md", "timeout: soon"),
    ]);
    let file = |name: &str| catalog.get(name).expect("known").file.display().to_string();
    assert_eq!(file("review"), "/far/review/SKILL.md");
    assert_eq!(file("/Build"), "/near/build/SKILL.md");
    let active: Vec<&str> = catalog
        .active()
        .map(|listed| listed.skill.manifest.name.as_str())
        .collect();
    assert_eq!(active, ["notes", "review", "build"]);
    let shadowed = catalog
        .skills
        .iter()
        .filter(|listed| listed.shadowed_by.is_some());
    assert_eq!(shadowed.count(), 3);
    let unknown = catalog.get("nots").expect_err("unknown").to_string();
    assert_eq!(
        unknown,
        "there is no skill `nots`; there are notes, review and build"
    );
    let broken = catalog.get("bad").expect_err("broken").to_string();
    assert!(broken.starts_with("the skill `bad` cannot be used: /home/bad/SKILL.md:2: `timeout`"));
}

#[test]
fn the_model_sees_names_and_descriptions_of_what_it_may_invoke() {
    let catalog = Catalog::new(vec![
        found(
            Layer::User,
            0,
            "/a",
            "name: one\ndescription: Does one.\nargument-hint: '[file]'",
        ),
        found(
            Layer::User,
            0,
            "/b",
            "name: two\ndescription: Does two.\ndisable-model-invocation: true",
        ),
        found(
            Layer::User,
            0,
            "/c",
            "name: three\ndescription: Does three.\nwhen_to_use: Late.",
        ),
    ]);
    let shown = disclose(&catalog).expect("some");
    assert_eq!(
        shown,
        "- one: Does one. Arguments: [file]\n- three: Does three. When: Late."
    );
    assert_eq!(disclose(&Catalog::default()), None);
}

/// Descriptions become shorter, all of them; names stay.
#[rstest]
#[case(20, Some(400))]
#[case(100, Some(146))]
#[case(500, Some(18))]
#[case(1_500, None)]
#[case(2_500, None)]
fn a_long_list_of_skills_has_every_name(#[case] count: usize, #[case] each: Option<usize>) {
    let many = (0..count).map(|at| {
        let long = "words ".repeat(80);
        found(
            Layer::User,
            0,
            &format!("/{at}"),
            &format!("name: skill-{at:04}\ndescription: {long}"),
        )
    });
    let shown = disclose(&Catalog::new(many.collect())).expect("some");
    let lines: Vec<&str> = shown.lines().collect();
    for (at, line) in lines.iter().take(2_000).enumerate() {
        let name = format!("- skill-{at:04}");
        let about = line.strip_prefix(&name).expect("its name");
        match each {
            Some(each) => assert!(about.chars().count().abs_diff(each) <= 5, "{about}"),
            None => assert_eq!(about, ""),
        }
    }
    assert_eq!(lines.len(), count.min(2_001));
    assert_eq!(lines.last() == Some(&"- and 500 more"), count == 2_500);
    if each.is_some() {
        assert!(shown.chars().count() <= 16_000);
    }
}

#[rstest]
#[case(20, &[10, 5, 3])]
#[case(15, &[7, 3, 3])]
#[case(100, &[50, 25, 12])]
#[case(1, &[3, 3, 3])]
fn each_level_has_half_of_the_iterations(#[case] base: u64, #[case] expected: &[u64]) {
    let depths = 0..u32::try_from(expected.len()).expect("few");
    let budgets: Vec<u64> = depths.map(|depth| iterations(base, depth)).collect();
    assert_eq!(budgets, expected);
    assert_eq!(iterations(base, u32::MAX), 3);
}

#[rstest]
#[case(500, false)]
#[case(501, true)]
fn a_summary_is_the_first_500_characters(#[case] length: usize, #[case] cut: bool) {
    for letter in ["a", "ü", "語", "🦀"] {
        let answer = letter.repeat(length);
        let said = SubAgentReport::new(&Outcome::Completed, Some(&answer), None).summary;
        let expected = if cut {
            format!("{}... (truncated)", letter.repeat(500))
        } else {
            answer
        };
        assert_eq!(said, expected);
    }
}

#[test]
fn a_summary_of_a_failure_says_why() {
    let failed = |why: &str| {
        let why = why.to_owned();
        SubAgentReport::new(&Outcome::Failed { why }, Some("half"), None).headline()
    };
    assert_eq!(failed("no model"), "Sub-agent completed: Failed: no model");
    assert_eq!(failed(""), "Sub-agent completed: Failed: Unknown error");
    let done = SubAgentReport::new(&Outcome::Completed, Some("done"), Some(&"0198".into()));
    let parts = [done.headline(), done.trace()];
    assert_eq!(parts, ["Sub-agent completed: done", "Full trace: 0198"]);
}

#[test]
fn an_isolated_prompt_names_the_skill_its_instructions_and_its_tools() {
    let prompt = isolated(
        "deep-analysis",
        "Find bugs.",
        [("read", "reads a file"), ("grep", "")],
    );
    assert_eq!(
        prompt,
        "You are a sub-agent executing the 'deep-analysis' skill.\n\n\
         SKILL INSTRUCTIONS:\nFind bugs.\n\n\
         AVAILABLE TOOLS:\n- read: reads a file\n- grep\n\n\
         Execute the task autonomously and report results when complete."
    );
    assert!(isolated("x", "y", []).contains("AVAILABLE TOOLS:\n(none)\n"));
}
