//! Ways around the rules that were tried, as tables: a row is a trick, and one line. A rule that
//! lets something pass must not let more pass; one that stops must stop what it names in all the
//! ways that it promises. A shell has more, and those are for the sandbox.

use asyncagents_core::agent::{Kind, Mode, Permissions, Reach, Rule, Tools, Verdict};

fn rules(text: &str) -> Vec<Rule> {
    Rule::list(text).expect("rules")
}

/// A trick on a rule that lets commands pass: its name, a command that is meant by the rules, and
/// one that is not, however much it looks like it.
type Trick = (&'static str, &'static str, &'static str);

const ALLOWED: &str =
    "bash(git diff*) bash(cargo test *) bash(scripts/*) bash(npm run:*) bash(ls) Bash(cat docs/*)";

#[test]
fn a_rule_lets_no_more_pass_than_it_says() {
    let permissions = Permissions {
        allow: rules(ALLOWED),
        ..Permissions::default()
    };
    // A skill or an agent that may use no more than this.
    let tools = Tools {
        only: Some(rules(ALLOWED)),
        ..Tools::default()
    };
    let mut wrong = Vec::new();
    for (name, meant, trick) in PASSING {
        assert_eq!(
            permissions.judge("bash", Kind::Run, meant),
            Verdict::Allow,
            "{name}: {meant} is meant"
        );
        assert!(tools.allows("bash", Kind::Run, meant), "{name}: {meant}");
        let asked = Verdict::Ask { by_rule: false };
        if permissions.judge("bash", Kind::Run, trick) != asked
            || tools.allows("bash", Kind::Run, trick)
        {
            wrong.push((name, trick));
        }
    }
    assert!(wrong.is_empty(), "these passed: {wrong:#?}");
}

#[rustfmt::skip]
const PASSING: &[Trick] = &[
    // More than one command.
    ("semicolon", "git diff", "git diff; rm -rf x"),
    ("semicolon_without_blanks", "git diff", "git diff;rm x"),
    ("and", "git diff", "git diff && rm x"),
    ("or", "git diff", "git diff || rm x"),
    ("pipe", "git diff", "git diff | sh"),
    ("pipe_of_both", "git diff", "git diff |& sh"),
    ("background", "git diff", "git diff & rm x"),
    ("at_the_end", "git diff", "git diff &"),
    ("line_break", "git diff", "git diff\nrm x"),
    ("windows_line_break", "git diff", "git diff\r\nrm x"),
    ("carriage_return", "git diff", "git diff\rrm x"),
    ("continued_line", "git diff", "git diff \\\n; rm x"),
    ("comment_and_line_break", "git diff", "git diff # fine\nrm x"),
    ("line_break_in_quotes", "git diff", "git diff 'a\nb'"),
    ("before_it", "git diff", "rm x; git diff"),
    ("line_break_before_it", "git diff", "rm x\ngit diff"),
    ("function", "ls", "ls() { rm x; }; ls"),
    ("alias", "ls", "alias ls='rm x'\nls"),
    ("here_document", "git diff", "git diff <<E\n$(rm x)\nE"),
    ("here_string", "git diff", "git diff <<< x"),
    // Parts that the shell works out.
    ("substitution", "git diff", "git diff $(rm x)"),
    ("substitution_in_quotes", "git diff", "git diff \"$(rm x)\""),
    ("backticks", "git diff", "git diff `rm x`"),
    ("backticks_in_quotes", "git diff", "git diff \"`rm x`\""),
    ("variable", "git diff", "git diff $X"),
    ("variable_in_braces", "git diff", "git diff ${X:-y}"),
    ("assigned_in_passing", "git diff", "git diff ${X:=y}"),
    ("indirect", "git diff", "git diff ${!X}"),
    ("transformed", "git diff", "git diff ${X@P}"),
    ("arithmetic", "git diff", "git diff $((x[$(rm x)]))"),
    ("quoted_by_the_shell", "git diff", "git diff $'\\x2d\\x2doutput=x'"),
    ("translated", "git diff", "git diff $\"x\""),
    ("process_in", "git diff", "git diff <(rm x)"),
    ("process_out", "git diff", "git diff >(rm x)"),
    ("subshell", "git diff", "git diff (rm x)"),
    ("braces", "git diff", "git diff {a,b}"),
    // Files.
    ("write", "git diff", "git diff > x"),
    ("append", "git diff", "git diff >> x"),
    ("write_both", "git diff", "git diff &> x"),
    ("clobber", "git diff", "git diff >| x"),
    ("descriptor", "git diff", "git diff 2>x"),
    ("read_and_write", "git diff", "git diff <> x"),
    ("read", "git diff", "git diff < x"),
    // Something before it.
    ("variable_for_it", "git diff", "GIT_EXTERNAL_DIFF=x git diff"),
    ("preload", "cargo test -q", "LD_PRELOAD=./x.so cargo test -q"),
    ("path", "ls", "PATH=. ls"),
    ("sudo", "ls", "sudo ls"),
    ("env", "git diff", "env X=1 git diff"),
    ("exec", "git diff", "exec git diff"),
    ("eval", "git diff", "eval git diff"),
    ("shell", "git diff", "bash -c 'git diff'"),
    ("xargs", "git diff", "xargs git diff"),
    ("not", "git diff", "! git diff"),
    ("time", "git diff", "time git diff"),
    // Another command that looks like it.
    ("longer_word", "ls", "lsof"),
    ("more_arguments", "ls", "ls x"),
    ("longer_program", "cargo test -q", "cargo testify -q"),
    ("word_and_colon", "npm run build", "npm runaway"),
    ("other_folder", "git diff", "./git diff"),
    ("absolute", "ls", "/tmp/ls"),
    ("options_first", "git diff", "git -c diff.external=x diff"),
    ("capitals", "ls", "LS"),
    ("two_blanks", "git diff", "git  diff"),
    ("tab", "git diff", "git\tdiff"),
    ("vertical_tab", "git diff", "git\u{b}diff"),
    ("wide_blank", "git diff", "git\u{a0}diff"),
    ("ideographic_blank", "git diff", "git\u{3000}diff"),
    ("invisible_blank", "git diff", "git\u{200b} diff"),
    ("look_alike", "ls", "ⅼs"),
    ("wide_letters", "ls", "ｌｓ"),
    ("combining_mark", "ls", "ls\u{301}"),
    ("direction", "ls", "\u{202e}ls"),
    ("byte_order_mark", "ls", "\u{feff}ls"),
    ("quotes", "ls", "'l's"),
    ("backslash", "ls", "\\ls"),
    ("empty_quotes", "git diff", "git\"\" diff"),
    // Out of the folder that a rule speaks of.
    ("parent", "scripts/a", "scripts/../x"),
    ("parent_twice", "scripts/a", "scripts/../../bin/sh"),
    ("parent_of_itself", "scripts/a", "scripts/./../x"),
    ("parent_with_slashes", "scripts/a", "scripts//..//x"),
    ("parent_in_quotes", "scripts/a", "scripts/'..'/x"),
    ("parent_in_half_quotes", "scripts/a", "scripts/.\".\"/x"),
    ("parent_with_backslash", "scripts/a", "scripts/\\.\\./x"),
    ("parent_with_empty_quotes", "scripts/a", "scripts/.''./x"),
    ("parent_by_question_mark", "scripts/a", "scripts/.?/x"),
    ("parent_by_star", "scripts/a", "scripts/.*/x"),
    ("parent_by_bracket", "scripts/a", "scripts/.[.]/x"),
    ("parent_later", "cat docs/a", "cat docs/a ../x"),
    ("parent_in_an_option", "cat docs/a", "cat docs/a --from=../x"),
    ("parent_in_a_list", "cat docs/a", "cat docs/a x:../y"),
    ("parent_at_the_end", "cat docs/a", "cat docs/a/.."),
    ("other_folder_like_it", "scripts/a", "scripts.d/a"),
    ("from_elsewhere", "scripts/a", "../scripts/a"),
    ("absolute_folder", "scripts/a", "/scripts/a"),
    ("home", "scripts/a", "~/scripts/a"),
    ("here", "scripts/a", "./scripts/a"),
];

/// A rule that stops `git push` or wants to be asked about it means all of these.
#[test]
fn a_rule_that_stops_finds_the_command() {
    let permissions = Permissions {
        mode: Mode::Yolo,
        allow: rules("bash"),
        ask: rules("bash(npm publish*)"),
        deny: rules("bash(git push*)"),
    };
    let tools = Tools {
        not: rules("Bash(git push:*)"),
        ..Tools::default()
    };
    let mut wrong = Vec::new();
    for (name, trick) in STOPPED {
        let denied = trick.replace("{it}", "git push");
        let asked = trick.replace("{it}", "npm publish");
        let harmless = trick.replace("{it}", "git log");
        let judge = |command: &str| permissions.judge("bash", Kind::Run, command);
        if !matches!(judge(&denied), Verdict::Deny(_)) {
            wrong.push((name, denied.clone()));
        }
        if tools.allows("bash", Kind::Run, &denied) {
            wrong.push((name, format!("allowed to an agent: {denied}")));
        }
        if judge(&asked) != (Verdict::Ask { by_rule: true }) {
            wrong.push((name, asked));
        }
        assert_eq!(judge(&harmless), Verdict::Allow, "{name}: {harmless}");
        assert!(tools.allows("bash", Kind::Run, &harmless), "{name}");
    }
    assert!(wrong.is_empty(), "these passed: {wrong:#?}");
}

#[rustfmt::skip]
const STOPPED: &[(&str, &str)] = &[
    ("file_first", "> log {it}"),
    ("file_first_close", ">log {it}"),
    ("number_first", "2>&1 {it}"),
    ("clobber_first", ">| log {it}"),
    ("input_first", "< file {it}"),
    ("both_first", "< file > log {it}"),
    ("plain", "{it}"),
    ("arguments", "{it} --force x y"),
    ("blanks_around", "  {it}  "),
    ("tab_before", "\t{it}"),
    ("line_break_before", "\n{it}"),
    ("after_semicolon", "true; {it}"),
    ("after_semicolon_without_blank", "true;{it}"),
    ("before_semicolon", "{it}; true"),
    ("after_and", "true && {it}"),
    ("after_or", "false || {it}"),
    ("after_pipe", "yes | {it}"),
    ("before_pipe", "{it} | cat"),
    ("after_background", "true & {it}"),
    ("in_the_background", "{it} &"),
    ("second_line", "true\n{it}"),
    ("second_windows_line", "true\r\n{it}\r\n"),
    ("after_a_comment", "# fine\n{it}"),
    ("before_a_comment", "{it} # fine"),
    ("subshell", "({it})"),
    ("subshell_with_blanks", "( {it} )"),
    ("group", "{ {it}; }"),
    ("substitution", "echo $({it})"),
    ("substitution_in_quotes", "echo \"$({it})\""),
    ("nested_substitution", "echo $(echo $({it}))"),
    ("backticks", "echo `{it}`"),
    ("process", "cat <({it})"),
    ("process_out", "ls > >({it})"),
    ("here_document", "bash <<E\n{it}\nE"),
    ("in_a_here_document", "cat <<E\n$({it})\nE"),
    ("condition", "if {it}; then true; fi"),
    ("then", "if true; then {it}; fi"),
    ("else", "if false; then true; else {it}; fi"),
    ("elif", "if false; then true; elif {it}; then true; fi"),
    ("loop", "for x in 1; do {it}; done"),
    ("while", "while {it}; do true; done"),
    ("until", "until {it}; do true; done"),
    ("choice", "case x in x) {it};; esac"),
    ("function", "f() { {it}; }; f"),
    ("not", "! {it}"),
    ("time", "time {it}"),
    ("sudo", "sudo {it}"),
    ("env", "env {it}"),
    ("command", "command {it}"),
    ("exec", "exec {it}"),
    ("nohup", "nohup {it}"),
    ("nice", "nice {it}"),
    ("builtin", "builtin {it}"),
    ("eval", "eval {it}"),
    ("variable", "X=1 {it}"),
    ("variables", "X=1 Y=2 {it}"),
    ("variable_and_sudo", "X=1 sudo {it}"),
    ("env_and_variable", "env X=1 {it}"),
    ("many_before", "! time sudo nice nohup env X=1 {it}"),
    ("output", "{it} > x"),
    ("input", "{it} < x"),
    ("both_outputs", "{it} &> x"),
];

/// Files that a rule keeps from all tools that show them, and their names from searches.
#[test]
fn a_rule_about_reading_finds_the_file() {
    let permissions = Permissions {
        mode: Mode::Yolo,
        allow: rules("read grep glob"),
        deny: rules("Read(./.env) read(keys/) read(**/*.pem) read(a/*/c)"),
        ..Permissions::default()
    };
    let mut wrong = Vec::new();
    for (path, kept) in READ {
        for tool in ["read", "Read", "grep", "glob", "GREP"] {
            let denied = permissions.judge(tool, Kind::Read, path) != Verdict::Allow;
            let hidden = permissions.reach(tool, ".", path) == Reach::Hide;
            if (denied, hidden) != (*kept, *kept) {
                wrong.push((tool, path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A path as tools name it, and whether a rule keeps it.
#[rustfmt::skip]
const READ: &[(&str, bool)] = &[
    (".env", true),
    (".env/nested", true),
    (".environment", false),
    ("a/.env", false),
    ("keys", true),
    ("keys/id", true),
    ("keys/old/id", true),
    ("keys/two words/id", true),
    ("keys/line\nbreak", true),
    ("keys;x/id", false),
    ("keysmith/id", false),
    ("old/keys/id", false),
    ("x.pem", true),
    ("a/x.pem", true),
    ("a/b/x.pem", true),
    ("x.pem/y", true),
    ("x.pem.txt", false),
    ("a/b/c", true),
    ("a/b/d/c", true),
    ("a/b/c/d", true),
    ("a/c", false),
];

/// What decides what others run is asked about, where files may be changed freely.
#[test]
fn files_that_decide_what_runs_are_asked_about() {
    let permissions = Permissions {
        mode: Mode::AutoEdit,
        ..Permissions::default()
    };
    for tool in ["edit", "write"] {
        for path in GUARDED {
            let verdict = permissions.judge(tool, Kind::Edit, path);
            assert_eq!(verdict, Verdict::Ask { by_rule: true }, "{tool} {path}");
        }
        for path in FREE {
            let verdict = permissions.judge(tool, Kind::Edit, path);
            assert_eq!(verdict, Verdict::Allow, "{tool} {path}");
        }
    }
}

const GUARDED: &[&str] = &[
    ".git",
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.git/config",
    "/elsewhere/.git/info/attributes",
    ".claude/settings.json",
    ".claude/agents/x.md",
    ".opencode/plugin/x.js",
    ".asyncagents/agents/x.md",
    ".agents/skills/x/SKILL.md",
    "asyncagents.toml",
    "a/b/asyncagents.toml",
];

const FREE: &[&str] = &[
    "src/main.rs",
    "git/config",
    "src/.gitignore",
    "asyncagents.toml.example",
    "x.git/config",
    "claude/settings.json",
];

/// A rule that is written in an odd way means nothing else than it seems to.
#[test]
fn rules_mean_what_they_seem_to() {
    for (text, tool, target, passes) in MEANINGS {
        let rule: Rule = text.parse().expect("a rule");
        let passed = rule.lets_pass(tool, Kind::Run, target);
        assert_eq!(passed, *passes, "{text}: {tool} {target}");
    }
}

#[rustfmt::skip]
const MEANINGS: &[(&str, &str, &str, bool)] = &[
    ("bash", "bash", "rm x", true),
    ("BASH", "bash", "rm x", true),
    ("Bash(*)", "bash", "rm x", true),
    ("bash()", "bash", "rm x", true),
    ("bash(:*)", "bash", "rm x", true),
    ("bash( git log )", "bash", "git log", true),
    ("bash(git log)", "bash", "git log -p", false),
    ("bash(git log*)", "bash", "git log -p", true),
    ("bash(git:*)", "bash", "git", true),
    ("bash(git:*)", "bash", "git log", true),
    ("bash(git:*)", "bash", "gitk", false),
    ("bash(git *)", "bash", "gitk", false),
    ("bash(git*)", "bash", "gitk", true),
    ("bash(* --help)", "bash", "git --help", true),
    ("bash(* --help)", "bash", "rm x; git --help", false),
    ("bash(git * x)", "bash", "git add x", true),
    ("bash(git * x)", "bash", "git x", false),
    ("bash(a*a)", "bash", "a", false),
    ("bash(.)", "bash", "x", false),
    ("bash(g?t)", "bash", "git", false),
    ("bash([a-z]*)", "bash", "git", false),
    ("bas*", "bash", "rm x", true),
    ("bas", "bash", "rm x", false),
    ("bashful", "bash", "rm x", false),
    ("read", "bash", "rm x", false),
];
