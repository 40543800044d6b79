//! What a child does on one prompt, and when.

use std::time::Duration;

use asyncagents_core::{
    budget::Spent, digest::digest, progress::Observation, question::Question, task::Outcome,
};

use super::script::{Script, Step};

/// A child asks one thing at a time.
const QUESTION: &str = "question";

/// What a child does on one prompt, with the time since the prompt.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) seen: Vec<(Duration, Observation)>,
    /// The tools among them, with their parameters.
    pub(super) calls: Vec<(Duration, String, String)>,
    pub(super) end: Option<(Duration, Outcome, Option<String>)>,
    /// Since when its model is out of quota, why, and whether it goes on trying.
    pub(super) unavailable: Option<(Duration, String, bool)>,
}

/// A prompt, and what the child has heard since.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub(super) prompt: String,
    /// How many characters it inherited.
    pub(super) inherited: usize,
    /// The answers to its questions, by their names, with the time since the prompt.
    pub(super) replies: Vec<(String, String, Duration)>,
    /// What it was told.
    pub(super) told: Vec<String>,
}

impl Heard {
    /// A text with what it stands for.
    fn fill(&self, text: &str) -> String {
        let answer = self.replies.last().map_or("", |(_, reply, _)| reply);
        text.replace("{prompt}", &self.prompt)
            .replace("{inherited}", &self.inherited.to_string())
            .replace("{answer}", answer)
            .replace("{told}", &self.told.join("; "))
    }
}

impl Plan {
    /// What the script says about this prompt.
    pub(super) fn new(script: &Script, heard: &Heard) -> Self {
        let prompt = &heard.prompt;
        let fits = |when: &Option<String>| when.as_ref().is_none_or(|words| prompt.contains(words));
        let child = script.children.iter().find(|child| fits(&child.when));
        let steps = child.map_or(&[][..], |child| &child.steps);
        let mut plan = Self::default();
        let mut time = Duration::ZERO;
        let mut asked = 0;
        for step in steps {
            match step {
                Step::Wait(pause) => time += *pause,
                Step::Tool { name, input } => plan.call(time, name, input),
                Step::Turn { tokens, cost } => {
                    let (tokens, cost) = (*tokens, *cost);
                    plan.see(time, Observation::Turned(Spent::answer(tokens, cost, 0)));
                }
                Step::Ask(question) => {
                    let (id, question) = (QUESTION.to_owned(), Question::permission(question));
                    plan.see(time, Observation::Asked { id, question });
                }
                Step::Answered => {
                    let id = QUESTION.to_owned();
                    plan.see(time, Observation::Answered { id });
                }
                Step::AskAndWait(question) => {
                    asked += 1;
                    match plan.ask(time, asked, question, heard) {
                        Some(answered) => time = answered,
                        None => return plan,
                    }
                }
                Step::Answer(text) => {
                    let answer = Some(heard.fill(text));
                    plan.end = Some((time, Outcome::Completed, answer));
                    return plan;
                }
                Step::Fail(why) => {
                    let failed = Outcome::Failed { why: why.clone() };
                    plan.end = Some((time, failed, None));
                    return plan;
                }
                Step::Unavailable(why) | Step::Retry(why) => {
                    let failed = Outcome::Failed { why: why.clone() };
                    let retrying = matches!(step, Step::Retry(_));
                    plan.end = (!retrying).then_some((time, failed, None));
                    plan.unavailable = Some((time, why.clone(), retrying));
                    return plan;
                }
                Step::Hang => return plan,
            }
        }
        let answer = format!("Done: {prompt}");
        plan.end = Some((time, Outcome::Completed, Some(answer)));
        plan
    }

    fn see(&mut self, time: Duration, what: Observation) {
        self.seen.push((time, what));
    }

    fn call(&mut self, time: Duration, name: &str, input: &str) {
        let (tool, call) = (name.to_owned(), digest(&[name, input]));
        self.calls.push((time, tool.clone(), input.to_owned()));
        self.see(time, Observation::ToolCalled { tool, call });
    }

    /// Asks; returns when that was answered, if it was.
    fn ask(
        &mut self,
        time: Duration,
        number: u32,
        question: &Question,
        heard: &Heard,
    ) -> Option<Duration> {
        let id = format!("{QUESTION}.{number}");
        let asked = Observation::Asked {
            id: id.clone(),
            question: question.clone(),
        };
        self.see(time, asked);
        let reply = heard.replies.iter().find(|(to, ..)| *to == id);
        let answered = reply.map(|(_, _, at)| time.max(*at))?;
        self.see(answered, Observation::Answered { id });
        Some(answered)
    }
}
