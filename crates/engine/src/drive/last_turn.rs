//! The budget of a session's task, and the last turn that is kept back of it.

use std::time::Duration;

use asyncagents_core::{
    agent::{Answer, Conversation, End, Entry, Turn, Usage, UsedUp},
    budget::{Budget, Cost, Limit, Spent},
    last_turn::{self, Allowance},
    progress::Observation,
    task::State,
};
use asyncagents_models::{Model, ModelError};
use tokio::time::{self, Instant};

use super::{Driven, Driver, ask::Stream};
use crate::Live;

/// The least that is left to a model for its answer.
const SHORTEST_ANSWER: u64 = 300;

/// How many tokens of the conversation a shortened request has at least.
const LEAST_CONTEXT: u64 = 1_000;

/// A clock may be this far behind another.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

/// The system prompt for a shortened conversation. The session's own would take what there is for
/// the answer.
const SYSTEM: &str = "You are a coding agent whose budget is used up. What follows is your own \
    work so far, shortened.";

/// What the task of a session may use, as the journal says.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunBudget {
    budget: Budget,
    /// What the tasks below the task have spent.
    below: Spent,
    /// What the task and those below it had spent when the run began.
    before: Spent,
    ran: Duration,
    read_at: Instant,
}

impl RunBudget {
    /// How often the model may answer.
    pub(super) fn turns(&self) -> Option<u64> {
        self.budget.turns
    }

    /// When the work has to be over, for the last turn to begin.
    pub(super) fn work_deadline(&self) -> Option<Instant> {
        let most = self.budget.for_work().time?;
        Some(self.read_at + most.saturating_sub(self.ran))
    }

    /// What is used up. The journal may not know yet what the session itself has just spent.
    pub(super) fn used_up(&self, conversation: &Conversation) -> UsedUp {
        let spent = self.spent(conversation);
        let cost = conversation.run().map_or(Cost(0), |run| run.newest_cost);
        let next = Spent {
            tokens: conversation.weight(),
            cost,
            ..Spent::default()
        };
        let late = self
            .budget
            .for_work()
            .out_of_time(self.ran + CLOCK_TOLERANCE);
        let calls = self
            .budget
            .tool_calls
            .filter(|most| spent.tool_calls > *most);
        UsedUp {
            time: late.map(|_| self.budget.used_up(Limit::Time)),
            answers: last_turn::next_is_too_much(self.budget, spent, next),
            tool_calls: calls.map(|_| self.budget.used_up(Limit::ToolCalls)),
        }
    }

    fn spent(&self, conversation: &Conversation) -> Spent {
        let totals = conversation.totals();
        let own = Spent {
            tokens: totals.tokens,
            cost: totals.cost,
            unpriced: totals.unpriced,
            turns: totals.turns,
            tool_calls: totals.by_tool.values().sum(),
        };
        own.plus(self.below).beyond(self.before)
    }

    fn allowance(&self, conversation: &Conversation) -> Option<Allowance> {
        let left = self.budget.left(self.spent(conversation), self.ran);
        Allowance::of(self.budget, left)
    }
}

/// What a last turn is asked with.
struct LastRequest {
    turns: Vec<Turn>,
    /// The conversation does not fit and was shortened.
    shortened: bool,
    max_output: Option<u64>,
    /// How long the answer may take.
    within: Duration,
}

impl Driver {
    /// What the task of the session may still use, if it has one that runs.
    pub(super) async fn run_budget(&self) -> Driven<Option<RunBudget>> {
        let Some(task) = self.session.task.clone() else {
            return Ok(None);
        };
        let read = self.shared.read(move |journal| Ok(journal.task(&task)?));
        let Some(task) = read.await? else {
            return Ok(None);
        };
        let runs = matches!(task.state, State::Running { .. });
        let now = self.shared.now();
        Ok(runs.then(|| RunBudget {
            budget: task.budget,
            below: task.below,
            before: task.spent_before,
            ran: task.ran(now),
            read_at: Instant::now(),
        }))
    }

    /// Asks for the last answer of a run whose budget is used up: without tools, and within what
    /// was kept back. If there is not enough for that, the newest answer counts; a model that is
    /// unavailable is replaced, and the next one is asked with what is left.
    pub(super) async fn sum_up(&mut self, model: &Model, why: String) -> Driven {
        let seen = self.conversation.newest();
        let answered = match self.last_request(model, &why).await? {
            Some(last) => self.last_answer(model, &last).await?,
            None => None,
        };
        let answer = match answered {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => return self.model_failed(&error).await,
            None => return self.finish(End::Failed { why }).await,
        };
        let turned = Observation::Turned(answer.spent());
        self.save(vec![Entry::Answered { seen, answer }]).await?;
        self.show(Live::Answered);
        self.report(vec![turned]);
        Ok(())
    }

    /// What the model says; nothing if the time for it is up.
    async fn last_answer(
        &self,
        model: &Model,
        last: &LastRequest,
    ) -> Driven<Option<Result<Answer, ModelError>>> {
        let mut request = self.whole(&last.turns);
        request.no_tools = true;
        request.max_output = last.max_output;
        if last.shortened {
            request.tools = &[];
            request.system = SYSTEM;
        }
        let asked = self.request(model, request, Stream::Shown);
        let Ok(answered) = time::timeout(last.within, asked).await else {
            self.show(Live::Retrying(
                "the time for the last turn is up".to_owned(),
            ));
            return Ok(None);
        };
        answered.map(Some)
    }

    /// What the last turn is asked with; nothing if what was kept back is not enough.
    async fn last_request(&self, model: &Model, why: &str) -> Driven<Option<LastRequest>> {
        let whole = || self.conversation.shown().turns;
        let Some(run_budget) = self.run_budget().await? else {
            return Ok(None);
        };
        let Some(allowance) = run_budget.allowance(&self.conversation) else {
            return Ok(None);
        };
        // A part of the time is left for saving the answer.
        let within = allowance.time * 9 / 10;
        let last = |turns, shortened, max_output| LastRequest {
            turns,
            shortened,
            max_output,
            within,
        };
        let Some(room) = room(allowance, model) else {
            return Ok(Some(last(whole(), false, None)));
        };
        let left = room.saturating_sub(self.conversation.weight());
        if left >= SHORTEST_ANSWER {
            return Ok(Some(last(whole(), false, Some(left))));
        }
        let answer = (room / 4).max(SHORTEST_ANSWER);
        let request = last_turn::request(why);
        let around = (SYSTEM.len() + request.len()) as u64 / 3;
        let context = room.saturating_sub(answer + around);
        if context < LEAST_CONTEXT {
            return Ok(None);
        }
        Ok(match self.shortened(context).await? {
            Ok(context) => {
                let turn = Turn::Said(format!("{context}\n\n{request}"));
                Some(last(vec![turn], true, Some(answer)))
            }
            Err(error) => {
                tracing::warn!(session = %self.session.id, error, "last turn skipped");
                None
            }
        })
    }
}

/// How many tokens a last turn may take, in and out, if that is limited.
fn room(allowance: Allowance, model: &Model) -> Option<u64> {
    let price = |usage: Usage| model.cost(usage).unwrap_or_default().0;
    let input = price(Usage {
        input: 1_000_000,
        ..Usage::default()
    });
    let output = price(Usage {
        output: 1_000_000,
        ..Usage::default()
    });
    // A quarter of it is for the answer.
    let mixed = (input * 3 + output) / 4;
    let affordable = |cost: Cost| cost.buys(1_000_000, Cost(mixed));
    let by_cost = allowance.cost.filter(|_| mixed > 0).map(affordable);
    let limits = [allowance.tokens, by_cost];
    limits.into_iter().flatten().min()
}
