//! Why a request is refused, word for word.

use asyncagents_core::{
    agent::Effort, id::TaskId, model_choice::KnownModels, refusal::Refusal, task::Status,
};

/// One of each kind. A kind without a row here does not compile.
macro_rules! one_of_each {
    ($($kind:ident $fields:tt)+) => {
        fn one_of_each() -> Vec<(&'static str, Refusal)> {
            let kind = |refusal: &Refusal| match refusal {
                $(Refusal::$kind { .. } => stringify!($kind),)+
            };
            let all = vec![$(Refusal::$kind $fields,)+];
            all.into_iter().map(|refusal| (kind(&refusal), refusal)).collect()
        }
    };
}

fn task() -> TaskId {
    TaskId::from_random(7)
}

one_of_each! {
    ForkWithResume {}
    EmptyPrompt {}
    PromptTooLong {}
    EmptyMessage {}
    MessageTooLong {}
    TooLateToTell { task: task(), status: Status::Completed }
    SummingUp { task: task() }
    NotAsking { task: task() }
    UnknownQuestion { task: task(), asked: "3".to_owned(), open: vec!["0b1c2d: May I?".to_owned(), "3e4f50: Which?".to_owned()] }
    WhichQuestion { task: task(), open: vec!["0b1c2d: May I?".to_owned()] }
    BeingAnswered { task: task(), question: "May I?".to_owned() }
    Unfit { task: task(), question: "May I?".to_owned(), why: "it asks for a permission: answer `once`, `always` or `reject`".to_owned() }
    OnlyAPersonPermits { always: false, question: "May I run `make`?".to_owned() }
    InAgentsShell { agent: "OpenCode" }
    UnknownAgentsShell { agent: "OpenCode", what: "answer" }
    NotAtTerminal {}
    NotBelow { task: task(), what: "answer" }
    Missing { name: "agent", hint: "say which agent works on the task" }
    OutOfRange { name: "timeout", value: "601".to_owned(), allowed: "0 to 600 seconds" }
    UnknownAgent { agent: "genral".into(), known: vec!["explore".into(), "general".into()] }
    UnknownModel { model: "anthropic/claud".into(), why: Some("anthropic needs a key: set ANTHROPIC_API_KEY".to_owned()), known: KnownModels::near("anthropic/claud", (0..20).map(|n| format!("ollama/model-{n:02}").into())) }
    ModelNotAllowed { model: "openai/gpt".into(), agent: Some("review".into()), allowed: vec!["anthropic/*".to_owned(), "ollama/*".to_owned()] }
    UnknownEffort { model: "ollama/qwen3".into(), effort: Effort::High, known: vec![Effort::Low, Effort::Medium] }
    EffortNotKnown { why: "this host does not say what its models have" }
    TooDeep { depth: 4, limit: 3 }
    TooMany { limit: 20 }
    CallerStopped { status: Status::Cancelled }
    NotBoundBySkill { task: task(), skill: "review".to_owned() }
    SkillNotAllowed { by: "review".to_owned(), skill: "deploy".to_owned() }
    NoBudget { what: "tokens", whose: "your" }
    UnknownTask { asked: "task_1234".to_owned() }
    UnknownChain { asked: "0198c0de".to_owned() }
    Ambiguous { asked: "task_4".to_owned(), matches: vec!["task_4f1c29a0".to_owned(), "task_4f2d11b7".to_owned()] }
    StillRunning { task: task(), status: Status::Resumed }
    AlreadyEnded { task: task(), status: Status::Error }
    NeverBegan { task: task() }
    UnknownMessage { task: task(), message: "msg_9".to_owned() }
    SessionGone { task: task(), session: "ses_1".into() }
}

#[test]
fn every_refusal_is_worded_as_it_was() {
    let all = one_of_each().into_iter();
    let lines = all.map(|(name, refusal)| format!("{name} ({:?}): {refusal}\n", refusal.kind()));
    insta::assert_snapshot!("refusals", lines.collect::<String>());
}

/// What was asked for may come from a file, and goes back to a model that pays for it.
#[test]
fn a_refusal_quotes_only_the_beginning_of_a_long_text() {
    let long = "x".repeat(2_000_000);
    let models = (0..500).map(|number| format!("provider/model-{number}").into());
    let refusals = [
        Refusal::UnknownTask {
            asked: long.clone(),
        },
        Refusal::UnknownChain {
            asked: long.clone(),
        },
        Refusal::UnknownQuestion {
            task: task(),
            asked: long.clone(),
            open: Vec::new(),
        },
        Refusal::UnknownMessage {
            task: task(),
            message: long.clone(),
        },
        Refusal::OutOfRange {
            name: "effort",
            value: long.clone(),
            allowed: "low",
        },
        Refusal::UnknownAgent {
            agent: long.as_str().into(),
            known: Vec::new(),
        },
        Refusal::UnknownModel {
            model: long.as_str().into(),
            why: None,
            known: KnownModels::near(&long, models),
        },
        Refusal::ModelNotAllowed {
            model: long.as_str().into(),
            agent: None,
            allowed: Vec::new(),
        },
    ];
    for refusal in refusals {
        let said = refusal.to_string();
        assert!(
            said.contains("xxx…") && said.len() < 500,
            "{} bytes",
            said.len()
        );
    }
}
