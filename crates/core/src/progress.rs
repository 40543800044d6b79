//! How far a task has come, folded from what its host reports.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    budget::{Cost, Spent},
    fallback::Fallback,
    id::ModelName,
    moment::Moment,
    question::Question,
};

/// How many of the newest tools are remembered by name.
const RECENT: usize = 5;

/// How far a task has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// What it has spent, in all its runs.
    pub spent: Spent,
    /// Of that, what its host does not count in its session.
    pub beside: Spent,
    /// Its tool calls, by name.
    pub by_tool: BTreeMap<String, u64>,
    /// The newest tools, newest last.
    pub recent: VecDeque<String>,
    /// How often its model had answered when this run began.
    pub turns_before: u64,
    /// The tool it called last, until its model answers.
    pub using: Option<String>,
    /// That tool is a command, which waits until fewer of other tasks run.
    pub command_queued: bool,
    /// Why it is still queued though there is a slot, if a worker said so.
    pub held: Option<String>,
    /// How often its worker was lost since it last made progress.
    pub worker_deaths: u64,
    /// Since when no worker has it, if one has given it back.
    pub unattended_since: Option<Moment>,
    /// When something was last heard of it.
    pub last_activity: Option<Moment>,
    /// The newest call, and how often it came in a row.
    pub repeated: Repeated,
    /// What it has asked its user and waits for, by the host's names for the questions.
    pub asking: BTreeMap<String, OpenQuestion>,
    /// How many questions it has asked, in all its runs.
    pub asked: u32,
    /// The model that took the place of its own, in this run or an earlier one.
    pub model: Option<ModelName>,
    /// Which models took the place of which in this run.
    pub fallbacks: Vec<Fallback>,
    /// How often its session was prompted in this run to go on with another model.
    pub reprompted: u32,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    pub question: Question,
    /// When it was first heard of.
    pub since: Moment,
    /// Whether the parent is told of it.
    pub told: bool,
}

/// The same call again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repeated {
    /// Tells calls apart: a digest of tool and parameters.
    pub call: u64,
    /// How often in a row.
    pub times: u64,
}

/// What a host reports about a working child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    ToolCalled {
        tool: String,
        /// A digest of tool and parameters, for telling calls apart.
        call: u64,
    },
    /// The command that it called waits until fewer of other tasks run.
    CommandQueued,
    /// That command runs now.
    CommandStarted,
    /// The model answered: see [`Spent::answer`].
    Turned(Spent),
    /// A model was asked one thing beside its session, which its host does not count there.
    AskedBeside(Spent),
    /// It asks its user something, a permission mostly, and waits.
    Asked {
        /// The host's name for the question.
        id: String,
        question: Question,
    },
    Answered {
        /// The host's name for the question.
        id: String,
    },
    /// Its host asks another model, for the one before was unavailable.
    FellBack(Fallback),
    /// What the host counts in all. It replaces what was counted from reports, of which
    /// some may have been missed or heard twice.
    Counted(Totals),
}

/// What a host counts in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Of the tokens, those whose price is not known.
    pub unpriced: u64,
    /// Answers of the model.
    pub turns: u64,
    /// Tool calls, by name.
    pub by_tool: BTreeMap<String, u64>,
}

impl Totals {
    /// Counts an answer of the model.
    pub fn add(&mut self, answer: Spent) {
        self.tokens = self.tokens.saturating_add(answer.tokens);
        self.cost += answer.cost;
        self.unpriced = self.unpriced.saturating_add(answer.unpriced);
        self.turns = self.turns.saturating_add(answer.turns);
    }

    /// The same without the names of the tools.
    pub fn spent(&self) -> Spent {
        Spent {
            tokens: self.tokens,
            cost: self.cost,
            unpriced: self.unpriced,
            turns: self.turns,
            tool_calls: self.by_tool.values().sum(),
        }
    }
}

impl Progress {
    /// What it waits for, oldest first.
    pub fn open_questions(&self) -> Vec<(&str, &OpenQuestion)> {
        let mut open: Vec<_> = (self.asking.iter())
            .map(|(id, open)| (id.as_str(), open))
            .collect();
        open.sort_by_key(|(_, open)| open.since);
        open
    }

    /// What it has waited for longest.
    pub fn oldest_question(&self) -> Option<(&str, &OpenQuestion)> {
        self.open_questions().into_iter().next()
    }

    /// Whether it waits for somebody else, an answer of its user or the commands of other tasks,
    /// and cannot make progress.
    pub fn is_waiting(&self) -> bool {
        self.command_queued || !self.asking.is_empty()
    }

    /// Takes in what was observed.
    pub fn note(&mut self, observation: &Observation, at: Moment) {
        self.last_activity = Some(at);
        match observation {
            Observation::ToolCalled { tool, call } => self.note_tool(tool, *call),
            Observation::Turned(answer) => {
                // A model that goes on has all its answers.
                self.asking.clear();
                self.using = None;
                self.command_queued = false;
                self.spent = self.spent.plus(*answer);
            }
            Observation::CommandQueued => self.command_queued = true,
            Observation::CommandStarted => self.command_queued = false,
            Observation::AskedBeside(answer) => {
                self.beside = self.beside.plus(*answer);
                self.spent = self.spent.plus(*answer);
            }
            Observation::Asked { id, question } => {
                if !self.asking.contains_key(id) {
                    self.asked = self.asked.saturating_add(1);
                }
                let open = self.asking.entry(id.clone());
                let open = open.or_insert_with(|| OpenQuestion {
                    question: question.clone(),
                    since: at,
                    told: false,
                });
                open.question.clone_from(question);
            }
            Observation::Answered { id } => {
                self.asking.remove(id);
            }
            Observation::FellBack(fallback) => self.fell_back(fallback),
            Observation::Counted(totals) => self.replace(totals),
        }
    }

    /// Another model goes on. A host may say so twice.
    pub(crate) fn fell_back(&mut self, fallback: &Fallback) {
        self.model = Some(fallback.to.clone());
        if !self.fallbacks.contains(fallback) {
            self.fallbacks.push(fallback.clone());
        }
    }

    fn note_tool(&mut self, tool: &str, call: u64) {
        self.spent.tool_calls = self.spent.tool_calls.saturating_add(1);
        *self.by_tool.entry(tool.to_owned()).or_default() += 1;
        self.using = Some(tool.to_owned());
        self.recent.push_back(tool.to_owned());
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let again = self.repeated.times > 0 && self.repeated.call == call;
        let times = if again { self.repeated.times + 1 } else { 1 };
        self.repeated = Repeated { call, times };
    }

    /// Whether a host counts something else than what is known.
    pub fn is_news(&self, totals: &Totals) -> bool {
        let spent = self.spent.beyond(self.beside);
        (spent.tokens, spent.cost, spent.turns) != (totals.tokens, totals.cost, totals.turns)
            || self.by_tool != totals.by_tool
    }

    fn replace(&mut self, totals: &Totals) {
        self.by_tool.clone_from(&totals.by_tool);
        self.spent = totals.spent().plus(self.beside);
    }
}
