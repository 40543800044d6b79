use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    budget::Cost,
    fork::{Limits, Parent, fork},
    port::Session,
    progress::Totals,
    read::Format,
    skill::{Catalog, Flaw, Layer, Listed, Skill},
    tokens,
};
use asyncagents_views::{
    AdoptedView, CheckView, CheckedSkill, ClearedView, DoctorView, FindingState, FindingView,
    ForkView, KeyView, ModelView, ModelsView, ProviderView, PrunedView, SessionView, SettingView,
    SkillDetails, SkillsView,
};

use crate::{made_up, printed};

const FULL: &str = "---
name: review
display-name: Code review
description: Reviews code
when-to-use: before a merge
context: fork
agent: plan
model: anthropic/claude
effort: high
allowed-tools: Read, Bash(git log:*)
disallowed-tools: Write
max-iterations: 7
max-retries-per-tool: 2
timeout-per-iteration: 30s
timeout: 5m
background: false
disable-model-invocation: true
argument-hint: FILE
arguments: [file]
priority: 3
tags: [code, review]
license: MIT
compatibility: git
metadata:
  author: somebody
colour: blue
---
Review $file.
";

const PLAIN: &str = "---\nname: plain\ndescription: Says hello\n---\nSay hello.\n";

fn listed(name: &str, text: &str, shadowed_by: Option<&str>) -> Listed {
    Listed {
        layer: Layer::Project,
        file: format!("/skills/{name}/SKILL.md").into(),
        plugin: None,
        skill: Arc::new(Skill::parse(name, text).expect("a skill")),
        shadowed_by: shadowed_by.map(Into::into),
    }
}

fn flaw() -> Flaw {
    Flaw {
        line: 2,
        why: "`name` is missing".to_owned(),
    }
}

pub(crate) fn catalog() -> Catalog {
    Catalog {
        skills: vec![
            listed("review", FULL, None),
            listed("plain", PLAIN, Some("/other/SKILL.md")),
        ],
        broken: vec![("/skills/broken/SKILL.md".into(), vec![flaw()])],
    }
}

#[test]
fn skills() {
    let catalog = catalog();
    let all: Vec<&Listed> = catalog.skills.iter().collect();
    insta::assert_snapshot!("list", printed([SkillsView::new(&all, &catalog)]));
    let details = all.into_iter().map(SkillDetails::from);
    insta::assert_snapshot!("details", printed(details));
    let flaws = [flaw()];
    let checked = vec![
        CheckedSkill::new("a/SKILL.md".to_owned(), Some("a"), &[], &flaws),
        CheckedSkill::new("b/SKILL.md".to_owned(), None, &flaws, &[]),
    ];
    insta::assert_snapshot!("check", printed([CheckView::new(checked)]));
}

#[test]
fn models() {
    let known = ModelView {
        model: Some("anthropic/claude".to_owned()),
        price_known: Some(true),
        usable: true,
        window: Some(200_000),
        ..ModelView::default()
    };
    let unknown = ModelView {
        error: Some("there is no provider `x`".to_owned()),
        model: Some("x/y".to_owned()),
        name: Some("fast".to_owned()),
        ..ModelView::default()
    };
    let provider = |name: &str, key| ProviderView {
        base_url: "https://example.com".to_owned(),
        key,
        name: name.to_owned(),
        usable: true,
    };
    let variable = KeyView {
        is_set: Some(true),
        source: "variable",
        variable: Some("ANTHROPIC_API_KEY".to_owned()),
    };
    let none = KeyView {
        is_set: None,
        source: "none",
        variable: None,
    };
    let name = Some("best".to_owned());
    let view = ModelsView {
        default: known.clone(),
        aliases: vec![ModelView { name, ..known }, unknown],
        providers: vec![provider("anthropic", variable), provider("ollama", none)],
    };
    insta::assert_snapshot!(printed([view]));
}

#[test]
fn a_session() {
    let session = Session {
        id: "ses_1".into(),
        task: None,
        title: "Why is it slow?".to_owned(),
        agent: "general".into(),
        model: "anthropic/claude".into(),
        system: String::new(),
        delegates: true,
        workspace: "/shop".to_owned(),
        terms: None,
        base: None,
        begun: made_up::BEGUN,
    };
    let used = Totals {
        tokens: 640,
        cost: Cost(12_345),
        unpriced: 0,
        turns: 3,
        by_tool: [("read".to_owned(), 1), ("bash".to_owned(), 1)].into(),
    };
    insta::assert_snapshot!(printed([SessionView::new(&session, "idle", &used)]));
}

#[test]
fn a_fork() {
    let text = r#"{"info": {"id": "ses_1"}, "messages": [{"info": {"id": "msg_1", "role": "user"},
        "parts": [{"type": "text", "text": "Hello"}]}]}"#;
    let parent = Parent::new(Format::OpenCode.read(text).expect("a session"));
    let fork = fork(&parent, &Limits::default(), tokens::o200k).expect("a fork");
    let (reading, forking) = (Duration::from_nanos(1_234_567), Duration::from_micros(15));
    insta::assert_snapshot!(printed([ForkView::new(&fork, reading, forking)]));
}

#[test]
fn small_answers() {
    let setting = SettingView {
        about: "how deep tasks may be nested".to_owned(),
        key: "limits.depth".to_owned(),
        source: "default".to_owned(),
        value: "5".to_owned(),
    };
    let cleared = ClearedView {
        cleared: 3,
        stopped: 1,
    };
    let adopted = AdoptedView {
        adopted: "/data/tasks.db".into(),
        ended: 2,
    };
    let pruned = PrunedView {
        bytes_after: Some(1_000),
        bytes_before: Some(5_000),
        deleted: true,
        sessions: 2,
        tasks: 3,
    };
    let all = [
        printed([setting]),
        printed([cleared]),
        printed([adopted]),
        printed([pruned]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_a_doctor_found() {
    let ok = FindingView {
        about: "database",
        mend: None,
        state: FindingState::Ok,
        text: "/data/tasks.db, format 6, 176 KiB, yours".to_owned(),
    };
    let note = FindingView {
        about: "models",
        mend: None,
        state: FindingState::Note,
        text: "no key for any provider".to_owned(),
    };
    let problem = FindingView {
        about: "plugin",
        mend: Some("`asyncagents setup` installs it".to_owned()),
        state: FindingState::Problem,
        text: "the plugin is not installed here".to_owned(),
    };
    let checks = vec![ok, note, problem];
    let well = false;
    insta::assert_snapshot!(printed([DoctorView { checks, well }]));
}
