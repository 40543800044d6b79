//! What a child does on one prompt, and when.

use std::time::Duration;

use asyncagents_core::{
    budget::Spent, digest::digest, progress::Observation, question::Question, task::Outcome,
};

use super::script::{Script, Step};

/// A child asks one thing at a time.
const QUESTION: &str = "question";

/// What a child does on one prompt, with the time since the prompt.
pub(super) struct Plan {
    pub(super) seen: Vec<(Duration, Observation)>,
    /// The tools among them, with their parameters.
    pub(super) calls: Vec<(Duration, String, String)>,
    pub(super) end: Option<(Duration, Outcome, Option<String>)>,
}

impl Plan {
    /// What the script says about this prompt.
    pub(super) fn new(script: &Script, prompt: &str, inherited: usize) -> Self {
        let fits = |when: &Option<String>| when.as_ref().is_none_or(|words| prompt.contains(words));
        let child = script.children.iter().find(|child| fits(&child.when));
        let steps = child.map_or(&[][..], |child| &child.steps);
        let mut time = Duration::ZERO;
        let mut seen = Vec::new();
        let mut calls = Vec::new();
        for step in steps {
            match step {
                Step::Wait(pause) => time += *pause,
                Step::Tool { name, input } => {
                    let (tool, call) = (name.clone(), digest(&[name, input]));
                    calls.push((time, name.clone(), input.clone()));
                    seen.push((time, Observation::ToolCalled { tool, call }));
                }
                Step::Turn { tokens, cost } => {
                    let (tokens, cost) = (*tokens, *cost);
                    seen.push((time, Observation::Turned(Spent::answer(tokens, cost, 0))));
                }
                Step::Ask(question) => {
                    let (id, question) = (QUESTION.to_owned(), Question::permission(question));
                    seen.push((time, Observation::Asked { id, question }));
                }
                Step::Answered => {
                    let id = QUESTION.to_owned();
                    seen.push((time, Observation::Answered { id }));
                }
                Step::Answer(text) => {
                    let answer = text
                        .replace("{prompt}", prompt)
                        .replace("{inherited}", &inherited.to_string());
                    let end = Some((time, Outcome::Completed, Some(answer)));
                    return Self { seen, calls, end };
                }
                Step::Fail(why) => {
                    let failed = Outcome::Failed { why: why.clone() };
                    let end = Some((time, failed, None));
                    return Self { seen, calls, end };
                }
                Step::Hang => {
                    return Self {
                        seen,
                        calls,
                        end: None,
                    };
                }
            }
        }
        let answer = format!("Done: {prompt}");
        let end = Some((time, Outcome::Completed, Some(answer)));
        Self { seen, calls, end }
    }
}
