//! A session folded from its entries: what the model is shown, and where the run stands.

use std::collections::BTreeMap;

use super::{
    Answer, Call, End, Entry, Filed, LastTurn, Run, Stop, ToolOutcome, Turn, Usage,
    compaction::summary_shown, reread::Reads, run::is_useful,
};
use crate::{
    id::{AgentName, ModelName, PostId},
    last_turn,
    progress::Totals,
};

/// A session as its entries say.
///
/// What is shown to the model only ever grows at its end (until a compaction), so that each
/// request begins with all of the one before it, in this process or the next.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// What answers have been given to, and the answers.
    turns: Vec<Turn>,
    /// The calls of the newest answer. Their results are shown when all are there.
    calls: Vec<OpenCall>,
    /// Which files `turns` has the text of.
    reads: Reads,
    /// How many turns were there before the child of a fork went its own way.
    inherited: usize,
    /// The first of them is the parent's conversation as a text.
    inherits_text: bool,
    /// What was said to the model since, with the number of its entry.
    unread: Vec<(u64, String)>,
    newest: u64,
    newest_answer: u64,
    run: Option<Run>,
    ended: BTreeMap<PostId, (End, Option<String>)>,
    totals: Totals,
    usage: Usage,
    /// What the window held after the newest answer.
    context: u64,
    /// How the newest answer ended.
    last: Option<Last>,
    /// How many answers there were since the last compaction, if there was one.
    since_compaction: Option<u64>,
    model: Option<ModelName>,
    agent: Option<AgentName>,
}

/// How the newest answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    pub stop: Stop,
    pub says: bool,
    /// It says something, or wants something done.
    pub useful: bool,
    /// It wants something done.
    pub calls: bool,
}

/// A call of the newest answer.
#[derive(Debug, Clone)]
struct OpenCall {
    call: Call,
    began: bool,
    outcome: Option<ToolOutcome>,
}

/// What a request shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The newest entry in it.
    pub seen: u64,
    pub turns: Vec<Turn>,
}

/// What a call of the parent's newest answer has come to, for a child that was forked in the
/// middle of it.
const OF_THE_PARENT: &str = "Not part of this conversation: it was still running when this \
    background agent was forked. Its result goes to the agent that asked for it.";

/// What became of a call that had no result when its run was stopped.
const STOPPED: &str = "Stopped: the run was ended before this tool had a result.";

impl Conversation {
    /// Takes in the next entry of the session.
    pub fn take(&mut self, filed: &Filed) {
        self.newest = filed.seq;
        match &filed.entry {
            Entry::Inherited {
                preamble, context, ..
            } => {
                self.say(filed.seq, format!("{preamble}\n\n{context}"));
                self.inherited = self.turns.len() + self.calls.len() + self.unread.len();
                self.inherits_text |= self.inherited == 1;
            }
            Entry::Prompted {
                post,
                text,
                agent,
                model,
                chain: _,
            } => {
                self.say(filed.seq, text.clone());
                self.drop_waiting_calls();
                self.agent = Some(agent.clone());
                self.model = model.clone().or(self.model.take());
                self.run = Some(Run::of(post.clone()));
            }
            Entry::AgentSession { .. } => {}
            Entry::Notice {
                visible, hidden, ..
            } => self.say(filed.seq, format!("{visible}\n\n{hidden}")),
            Entry::Nudged { text } => {
                self.say(filed.seq, text.clone());
                if let Some(run) = &mut self.run {
                    run.nudges += 1;
                }
            }
            Entry::LastTurn { why, fails } => {
                self.forget_waiting_calls();
                self.say(filed.seq, last_turn::request(why));
                if let Some(run) = &mut self.run {
                    run.last_turn = Some(LastTurn {
                        why: why.clone(),
                        fails: *fails,
                        over: false,
                    });
                }
            }
            Entry::FellBack(fallback) => {
                self.model = Some(fallback.to.clone());
                if let Some(run) = &mut self.run {
                    run.fallbacks.push(fallback.clone());
                }
            }
            Entry::Answered { seen, answer } => {
                self.answered(*seen, answer);
                self.newest_answer = filed.seq;
            }
            Entry::ToolBegan { call } => {
                if let Some(open) = self.open(call) {
                    open.began = true;
                }
            }
            Entry::ToolEnded { call, outcome } => self.tool_ended(call, outcome),
            Entry::Compacted { answer, .. } => self.compacted(answer),
            Entry::Ended {
                prompt,
                end,
                answer,
            } => self.ended(prompt, end, answer.clone()),
        }
    }

    /// Ends what was taken in so far as the parent's part: from here on it is a child's
    /// conversation, which begins with the parent's own messages.
    pub fn branch(&mut self) {
        for open in &mut self.calls {
            let theirs = || ToolOutcome::Done(OF_THE_PARENT.to_owned());
            open.outcome.get_or_insert_with(theirs);
        }
        self.newest = 0;
        self.unread.iter_mut().for_each(|(seq, _)| *seq = 0);
        self.run = None;
        self.ended.clear();
        self.totals = Totals::default();
        self.usage = Usage::default();
        self.model = None;
        self.agent = None;
        self.last = None;
    }

    /// How many of the turns that are shown first are the parent's, with the remark that ends them:
    /// all children of one fork begin with them.
    pub fn inherited(&self) -> usize {
        self.inherited
    }

    /// The parent's conversation as a text, if it begins with that.
    pub fn beginning(&self) -> Option<&str> {
        let unread = self.unread.first().map(|(_, text)| text.as_str());
        let first = match self.turns.first() {
            Some(Turn::Said(text)) => Some(text.as_str()),
            Some(Turn::Answered(_) | Turn::Result { .. }) => None,
            None => unread,
        };
        first.filter(|_| self.inherits_text)
    }

    /// What the model is shown next.
    pub fn shown(&self) -> Shown {
        let mut turns = self.settled();
        let unread = self.unread.iter();
        turns.extend(unread.map(|(_, text)| Turn::Said(text.clone())));
        Shown {
            seen: self.newest,
            turns,
        }
    }

    /// What the model has been shown and has done, without what it has not read yet.
    pub fn settled(&self) -> Vec<Turn> {
        let mut turns = self.turns.clone();
        turns.extend(self.results().0);
        turns
    }

    /// What came of the calls of the newest answer, as the turns after `turns`; and which files
    /// have been read with them.
    fn results(&self) -> (Vec<Turn>, Reads) {
        let before = self.turns.len();
        let mut reads = self.reads.clone();
        let mut results: Vec<Turn> = Vec::with_capacity(self.calls.len());
        for OpenCall { call, outcome, .. } in &self.calls {
            let outcome = outcome.clone().unwrap_or(ToolOutcome::Unknown);
            let earlier = |at: usize| match at.checked_sub(before) {
                Some(at) => results.get(at),
                None => self.turns.get(at),
            };
            let outcome = reads.shown((call, outcome), before + results.len(), earlier);
            let call = call.clone();
            results.push(Turn::Result { call, outcome });
        }
        (results, reads)
    }

    /// The newest entry.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The entry of the newest answer, which made the calls that are open.
    pub fn newest_answer(&self) -> u64 {
        self.newest_answer
    }

    /// The run that is not over.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// How the run of a prompt ended, and the last thing that was said in it.
    pub fn end_of(&self, prompt: &PostId) -> Option<&(End, Option<String>)> {
        self.ended.get(prompt)
    }

    /// The calls that have no result, and whether each had begun.
    pub fn open_calls(&self) -> impl Iterator<Item = (&Call, bool)> {
        let open = self.calls.iter().filter(|open| open.outcome.is_none());
        open.map(|open| (&open.call, open.began))
    }

    /// Which call of the newest answer this is: of equal ones the first that has no result.
    pub fn number_of(&self, call: &Call) -> Option<usize> {
        let is_it = |open: &OpenCall| open.outcome.is_none() && open.call == *call;
        self.calls.iter().position(is_it)
    }

    /// Whether the model has something to read: results, or something that was said.
    pub(super) fn has_news(&self) -> bool {
        !self.calls.is_empty() || !self.unread.is_empty()
    }

    /// About how many tokens the next request has.
    pub fn weight(&self) -> u64 {
        let (results, _) = self.results();
        let results = results.iter().map(|turn| match turn {
            Turn::Result { outcome, .. } => outcome.text().len(),
            Turn::Said(_) | Turn::Answered(_) => 0,
        });
        let unread = self.unread.iter().map(|(_, text)| text.len());
        let bytes: usize = results.chain(unread).sum();
        self.context.saturating_add(bytes as u64 / 4)
    }

    /// How the newest answer ended.
    pub fn last(&self) -> Option<Last> {
        self.last
    }

    /// Whether a summary would make it shorter. If it was summarised a moment ago, what fills
    /// the window is something else: the system prompt, or the tools.
    pub(super) fn can_compact(&self) -> bool {
        self.turns.len() > 1 && self.since_compaction.is_none_or(|answers| answers > 2)
    }

    /// What the session has used in all.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The tokens it has used, by kind.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The model of the newest prompt that named one, or the one that took its place.
    pub fn model(&self) -> Option<&ModelName> {
        self.model.as_ref()
    }

    /// Who does what the newest prompt says.
    pub fn agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    fn say(&mut self, seq: u64, text: String) {
        self.unread.push((seq, text));
    }

    /// The call of this name that has no result. A model may use a name twice.
    fn open(&mut self, call: &str) -> Option<&mut OpenCall> {
        let mut calls = self.calls.iter_mut();
        calls.find(|open| open.call.id == call && open.outcome.is_none())
    }

    fn tool_ended(&mut self, call: &str, outcome: &ToolOutcome) {
        let stopped = |open: &&mut OpenCall| {
            open.call.id == call
                && open
                    .outcome
                    .as_ref()
                    .is_some_and(|outcome| outcome.text() == STOPPED)
        };
        if let Some(open) = self.open(call) {
            open.outcome = Some(outcome.clone());
            let (call, began) = (open.call.clone(), open.began);
            if let Some(run) = &mut self.run {
                run.called(&call, began, outcome);
            }
        } else if let Some(open) = self.calls.iter_mut().find(stopped) {
            // It was running when its run was ended, and has come to an end all the same.
            open.outcome = Some(outcome.clone());
        }
    }

    /// What a run that broke off had not begun is not done for the next one.
    fn drop_waiting_calls(&mut self) {
        for open in self.calls.iter_mut().filter(|open| !open.began) {
            let stopped = || ToolOutcome::Failed(STOPPED.to_owned());
            open.outcome.get_or_insert_with(stopped);
        }
    }

    /// What was not begun before the last turn is not done, and does not count as done.
    fn forget_waiting_calls(&mut self) {
        for open in &self.calls {
            if open.began || open.outcome.is_some() {
                continue;
            }
            if let Some(made) = self.totals.by_tool.get_mut(&open.call.name) {
                *made = made.saturating_sub(1);
            }
        }
        self.totals.by_tool.retain(|_, made| *made > 0);
        self.drop_waiting_calls();
    }

    fn answered(&mut self, seen: u64, answer: &Answer) {
        let (results, reads) = self.results();
        self.turns.extend(results);
        self.reads = reads;
        // What came while the model was answering is read after its answer.
        let (before, after) = std::mem::take(&mut self.unread)
            .into_iter()
            .partition::<Vec<_>, _>(|(seq, _)| *seq <= seen);
        self.unread = after;
        let before = before.into_iter().map(|(_, text)| Turn::Said(text));
        self.turns.extend(before);
        self.turns.push(Turn::Answered(answer.clone()));
        let open = |call: &Call| OpenCall {
            call: call.clone(),
            began: false,
            outcome: None,
        };
        self.calls = answer.calls().map(open).collect();
        self.count(answer);
        self.context = answer.usage.context();
        let before = self.last.replace(Last {
            stop: answer.stop,
            says: !answer.text().trim().is_empty(),
            useful: is_useful(answer),
            calls: answer.calls().next().is_some(),
        });
        let goes_on = before.is_some_and(|before| before.stop == Stop::Length && !before.calls);
        self.since_compaction = self.since_compaction.map(|answers| answers + 1);
        // What is called in the last turn is not run.
        let last = self.run.as_ref().is_some_and(|run| run.last_turn.is_some());
        for call in answer.calls().filter(|_| !last) {
            *self.totals.by_tool.entry(call.name.clone()).or_default() += 1;
        }
        if let Some(run) = &mut self.run {
            run.note(answer, goes_on);
        }
    }

    fn compacted(&mut self, answer: &Answer) {
        self.count(answer);
        let summary = summary_shown(&answer.text());
        self.context = summary.len() as u64 / 4;
        self.turns = vec![Turn::Said(summary)];
        self.calls.clear();
        self.reads = Reads::default();
        self.inherited = 0;
        self.inherits_text = false;
        self.last = None;
        self.since_compaction = Some(0);
    }

    fn count(&mut self, answer: &Answer) {
        self.usage = self.usage.plus(answer.usage);
        self.totals.add(answer.spent());
    }

    fn ended(&mut self, prompt: &PostId, end: &End, answer: Option<String>) {
        self.run.take_if(|run| run.prompt == *prompt);
        self.ended.insert(prompt.clone(), (end.clone(), answer));
        for open in &mut self.calls {
            let stopped = || ToolOutcome::Failed(STOPPED.to_owned());
            open.outcome.get_or_insert_with(stopped);
        }
        self.last = None;
    }
}
