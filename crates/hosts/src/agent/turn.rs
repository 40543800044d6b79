//! What happens in a turn of another agent, as entries of its session and as what is reported of it.
//! Agents tell pieces of texts and news of tools; an answer of the model is what came between them.

use std::collections::HashSet;

use asyncagents_core::{
    agent::{Answer, Block, Call, Entry, Stop, ToolOutcome, Usage},
    budget::Cost,
    digest::digest,
    id::ModelName,
    progress::Observation,
};

use super::{ToolNews, TurnEnd, TurnStop, WireEvent, tool_label};

/// How much is kept of a text, a thought, the input of a call or what came of it, in bytes. An agent
/// may never stop talking, and all of it would be kept here and in the journal.
const MOST_TEXT: usize = 1 << 20;

/// How much of what calls print is kept until they have a result, in bytes.
const MOST_PRINTED: usize = 16 << 20;

/// How many calls of a turn can be without a result.
const MOST_CALLS: usize = 1_000;

/// How many calls of a turn are known by their names after they have ended.
const MOST_ENDED: usize = 10_000;

/// What a model's tokens cost, if that is known.
pub type Prices = dyn Fn(&ModelName, Usage) -> Option<Cost> + Send + Sync;

/// A turn that is under way.
pub(super) struct Turn {
    /// The answer that is not complete yet.
    text: String,
    thought: String,
    calls: Vec<OpenCall>,
    /// The newest entry of what it was said at its beginning. What it is told in the middle counts when the
    /// turn is over: until then only its process may know it.
    said: u64,
    /// What the window holds with it, if that was said.
    context: Option<u64>,
    /// What it held after the answer before.
    pub(super) window: u64,
    /// The tokens of what it is told at its beginning, about.
    fresh: u64,
    /// Calls of answers that are complete, and have no result.
    running: Vec<OpenCall>,
    /// The calls that have a result. Some agents tell more of them later.
    ended: HashSet<String>,
    /// The tokens of the answers before, in this turn.
    counted: u64,
    /// What they have cost, by our own table.
    charged: Cost,
    /// What the agent says that the turn has cost so far.
    cost: Option<Cost>,
    /// What it says that the session has cost, if it says only that.
    sum: Option<Cost>,
    pub(super) model: ModelName,
}

struct OpenCall {
    id: String,
    name: String,
    input: String,
    /// Whether that is what the tool gets. Else two that look alike need not be.
    is_exact: bool,
    /// What it has printed so far.
    printed: String,
    is_reported: bool,
}

/// What came of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Something for the session.
    File(Entry),
    /// Something for who follows it.
    Report(Observation),
}

impl Turn {
    /// A turn of a model that is told `fresh` tokens beside those in its window.
    pub(super) fn begin(model: ModelName, (window, fresh): (u64, u64), said: u64) -> Self {
        Self {
            text: String::new(),
            thought: String::new(),
            calls: Vec::new(),
            said,
            context: None,
            window,
            fresh,
            running: Vec::new(),
            ended: HashSet::new(),
            counted: 0,
            charged: Cost::default(),
            cost: None,
            sum: None,
            model,
        }
    }

    /// Takes in what happened.
    pub(super) fn take(&mut self, event: WireEvent, prices: &Prices) -> Vec<Step> {
        let mut steps = Vec::new();
        match event {
            WireEvent::Text(text) => {
                self.next_answer(prices, &mut steps);
                add(&mut self.text, &text);
            }
            WireEvent::Thought(text) => {
                self.next_answer(prices, &mut steps);
                add(&mut self.thought, &text);
            }
            WireEvent::Tool(news) => self.tool(news, prices, &mut steps),
            WireEvent::Context(tokens) => self.context = Some(tokens),
            WireEvent::Model(model) => self.model = tool_label(&model).as_str().into(),
            WireEvent::Spent(cost) => self.costs(cost),
            WireEvent::CostSum(sum) => self.sum = Some(sum),
            WireEvent::Asked(_)
            | WireEvent::Withdrawn(_)
            | WireEvent::Disobeyed(_)
            | WireEvent::Alive => {}
        }
        steps
    }

    /// The agent counts its money itself.
    pub(super) fn costs(&mut self, more: Cost) {
        self.cost = Some(self.cost.unwrap_or_default() + more);
    }

    /// The turn is over. What it used and was not counted goes to its last answer. `seen` is the newest entry
    /// that the agent has got.
    pub(super) fn end(
        &mut self,
        end: Option<&TurnEnd>,
        seen: u64,
        prices: &Prices,
        costs: &mut CostCounter,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let whole = end.and_then(|end| end.usage);
        let left = whole.map(|whole| self.not_counted(whole));
        let has_more = left.is_some_and(|left| left.context() > 0)
            || self.context.is_some_and(|context| context > self.window)
            || self.cost.is_some()
            || self.sum.is_some();
        if self.is_empty() && !has_more {
            return steps;
        }
        // Some agents say only what the last answer took.
        let left = left.filter(|left| left.context() > 0);
        let usage = left.unwrap_or_else(|| self.counted_now());
        let priced = match whole {
            Some(whole) => prices(&self.model, whole),
            None => prices(&self.model, usage).map(|last| self.charged + last),
        };
        if let Some(sum) = self.sum.take() {
            self.costs(costs.take(sum, priced));
        }
        let cost = self.cost.take().or(priced);
        let cost = cost.map(|cost| cost - self.charged);
        let stop = match end.map(|end| &end.stop) {
            Some(TurnStop::Finished) => Stop::Finished,
            // It was not the end of what it had to say. How the run ends is saved after this, and who
            // reads only this must not take it for a success.
            Some(TurnStop::Cancelled | TurnStop::Failed(_)) | None => Stop::Tools,
        };
        if end.is_some() {
            self.said = self.said.max(seen);
        }
        self.flush(usage, (cost, stop), &mut steps);
        steps
    }

    /// Whether a call is at work, so that the agent has nothing to say.
    pub(super) fn has_open_calls(&self) -> bool {
        !self.running.is_empty() || self.calls.iter().any(|call| call.is_reported)
    }

    /// The calls that have no result; none is open any more.
    pub(super) fn lose_calls(&mut self) -> Vec<Step> {
        let lost = |call: OpenCall| {
            Step::File(Entry::ToolEnded {
                call: call.id,
                outcome: ToolOutcome::Unknown,
            })
        };
        self.running.drain(..).map(lost).collect()
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thought.is_empty() && self.calls.is_empty()
    }

    fn not_counted(&self, whole: Usage) -> Usage {
        let left = whole.context().saturating_sub(self.counted);
        let beside = whole.context() - whole.input;
        match left.checked_sub(beside) {
            Some(input) => Usage { input, ..whole },
            None => Usage {
                input: left,
                ..Usage::default()
            },
        }
    }

    /// A model that has called tools and speaks again was asked again.
    fn next_answer(&mut self, prices: &Prices, steps: &mut Vec<Step>) {
        if !self.calls.is_empty() {
            self.flush_counted(prices, steps);
        }
    }

    fn tool(&mut self, news: ToolNews, prices: &Prices, steps: &mut Vec<Step>) {
        if self.ended.contains(&news.id) {
            return;
        }
        let is_it = |call: &OpenCall| call.id == news.id;
        let is_over = news.outcome.is_some();
        let open = self.running.iter().chain(&self.calls);
        let kept: usize = open.map(|call| call.printed.len()).sum();
        let room = MOST_PRINTED.saturating_sub(kept);
        if let Some(call) = self.running.iter_mut().find(|call| is_it(call)) {
            call.update(&news, room, steps);
        } else {
            let at = self.calls.iter().position(is_it);
            if at.is_none() && self.calls.len() + self.running.len() >= MOST_CALLS {
                return;
            }
            let at = at.unwrap_or_else(|| {
                self.calls.push(OpenCall::new(&news.id));
                self.calls.len() - 1
            });
            if let Some(call) = self.calls.get_mut(at) {
                call.update(&news, room, steps);
            }
            if is_over {
                self.flush_counted(prices, steps);
            }
        }
        if let Some(outcome) = news.outcome {
            let mut over = self.running.extract_if(.., |call| call.id == news.id);
            let printed = over.next().map(|call| call.printed).unwrap_or_default();
            drop(over);
            let outcome = printed_before(printed, outcome);
            if self.ended.len() < MOST_ENDED {
                self.ended.insert(news.id.clone());
            }
            steps.push(Step::File(Entry::ToolEnded {
                call: news.id,
                outcome: shortened(outcome),
            }));
        }
    }

    /// What an answer took, as far as the agent says: what was in the window before is mostly read
    /// from the provider's cache. Of a session's first request all is there but what it is told: the
    /// agent's own prompt is that of its other sessions. Nothing that is counted here can be taken back
    /// when the agent says what the turn has cost, so it is rather too little.
    fn counted_now(&mut self) -> Usage {
        let context = self.context.take().unwrap_or_default();
        let cached = match self.window {
            0 => context.saturating_sub(self.fresh),
            window => window,
        };
        let cache_read = cached.min(context);
        Usage {
            input: context - cache_read,
            cache_read,
            ..Usage::default()
        }
    }

    fn flush_counted(&mut self, prices: &Prices, steps: &mut Vec<Step>) {
        let usage = self.counted_now();
        // What it cost is told, or reckoned again, for the whole turn at its end.
        let cost = prices(&self.model, usage);
        self.charged += cost.unwrap_or_default();
        self.flush(usage, (cost, Stop::Finished), steps);
    }

    fn flush(&mut self, usage: Usage, (cost, last): (Option<Cost>, Stop), steps: &mut Vec<Step>) {
        let mut blocks = Vec::new();
        if !self.thought.is_empty() {
            let text = std::mem::take(&mut self.thought);
            blocks.push(Block::Reasoning { text, raw: None });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text(std::mem::take(&mut self.text)));
        }
        for call in &mut self.calls {
            call.report(steps);
            blocks.push(Block::Call(Call {
                id: call.id.clone(),
                name: call.name.clone(),
                input: call.input.clone(),
            }));
        }
        let stop = if self.calls.is_empty() {
            last
        } else {
            Stop::Tools
        };
        self.running.append(&mut self.calls);
        self.counted = self.counted.saturating_add(usage.context());
        self.window = usage.context().max(self.context.take().unwrap_or(0));
        let seen = self.said;
        let answer = Answer {
            model: self.model.clone(),
            blocks,
            stop,
            usage,
            cost,
        };
        steps.push(Step::Report(Observation::Turned(answer.spent())));
        steps.push(Step::File(Entry::Answered { seen, answer }));
    }
}

impl OpenCall {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: "tool".to_owned(),
            input: "{}".to_owned(),
            is_exact: false,
            printed: String::new(),
            is_reported: false,
        }
    }

    fn update(&mut self, news: &ToolNews, room: usize, steps: &mut Vec<Step>) {
        if let Some(name) = &news.name {
            self.name = tool_label(name);
        }
        if let Some(input) = &news.input {
            // A part of it would be no JSON.
            if input.len() <= MOST_TEXT {
                self.input.clone_from(input);
            }
            self.is_exact = true;
        } else if let Some(described) = news.described.as_ref().filter(|_| !self.is_exact)
            && described.len() <= MOST_TEXT
        {
            self.input.clone_from(described);
        }
        if let Some(printed) = &news.printed {
            add(
                &mut self.printed,
                &printed[..printed.floor_char_boundary(room)],
            );
        }
        // Some agents tell the name first and what it is called with later.
        if news.began || news.outcome.is_some() {
            self.report(steps);
        }
    }

    fn report(&mut self, steps: &mut Vec<Step>) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let call = if self.is_exact {
            digest(&[&self.name, &self.input])
        } else {
            digest(&[&self.name, &self.input, &self.id])
        };
        let tool = self.name.clone();
        steps.push(Step::Report(Observation::ToolCalled { tool, call }));
    }
}

/// Adds to a text that is kept, as long as there is room.
fn add(text: &mut String, more: &str) {
    let room = MOST_TEXT.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

fn printed_before(mut printed: String, outcome: ToolOutcome) -> ToolOutcome {
    let joined = |text: String| {
        if !printed.is_empty() && !text.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed.push_str(&text);
        printed
    };
    match outcome {
        ToolOutcome::Done(text) => ToolOutcome::Done(joined(text)),
        ToolOutcome::Failed(text) => ToolOutcome::Failed(joined(text)),
        ToolOutcome::Unknown => ToolOutcome::Unknown,
    }
}

fn shortened(outcome: ToolOutcome) -> ToolOutcome {
    let short = |mut text: String| {
        text.truncate(text.floor_char_boundary(MOST_TEXT));
        text
    };
    match outcome {
        ToolOutcome::Done(text) => ToolOutcome::Done(short(text)),
        ToolOutcome::Failed(text) => ToolOutcome::Failed(short(text)),
        other => other,
    }
}

/// What an agent says its session has cost: a sum that goes on after a load, or begins anew. Claude
/// Code's does either, and does not say which: it begins anew where its process before was killed,
/// or could not save the sum, as in our sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CostCounter {
    /// The newest sum that this process has told.
    newest: Option<Cost>,
    /// What the session had cost before this process.
    before: Cost,
}

impl CostCounter {
    pub(super) fn new(before: Cost) -> Self {
        Self {
            newest: None,
            before,
        }
    }

    /// What was spent since the last sum. The first one of a process is what is nearer to the price of
    /// its tokens, if that is known; else all of it, for a budget must not be exceeded unnoticed.
    pub(super) fn take(&mut self, sum: Cost, priced: Option<Cost>) -> Cost {
        let more = match self.newest {
            Some(newest) => sum - newest,
            None => self.first(sum, priced),
        };
        self.newest = Some(sum);
        more
    }

    fn first(self, sum: Cost, priced: Option<Cost>) -> Cost {
        let more = sum - self.before;
        // Without tokens there is nothing to compare with.
        let priced = priced.filter(|priced| *priced > Cost::default());
        match priced {
            Some(priced) if sum >= self.before => {
                let off = |cost: Cost| cost.0.abs_diff(priced.0);
                if off(more) < off(sum) { more } else { sum }
            }
            _ => sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn prices(_: &ModelName, _: Usage) -> Option<Cost> {
        None
    }

    fn kept(steps: &[Step]) -> usize {
        let text = format!("{steps:?}");
        text.len()
    }

    fn called(id: &str) -> WireEvent {
        WireEvent::Tool(ToolNews {
            id: id.to_owned(),
            name: Some("a\nname".to_owned()),
            began: true,
            outcome: Some(ToolOutcome::Done("done".to_owned())),
            ..ToolNews::default()
        })
    }

    fn answers(steps: Vec<Step>) -> Vec<(u64, Answer)> {
        let answered = |step| match step {
            Step::File(Entry::Answered { seen, answer }) => Some((seen, answer)),
            Step::File(_) | Step::Report(_) => None,
        };
        steps.into_iter().filter_map(answered).collect()
    }

    /// If the process ends before its turn is over, it may have lost what it was told meanwhile.
    #[test]
    fn what_it_is_told_in_the_middle_counts_when_the_turn_is_over() {
        let (told_before, told_meanwhile) = (1, 5);
        let mut turn = Turn::begin("a/b".into(), (0, 0), told_before);
        let first = answers(turn.take(called("one"), &prices));
        assert_eq!(first.iter().map(|(seen, _)| *seen).collect::<Vec<_>>(), [1]);
        turn.take(WireEvent::Text("done".to_owned()), &prices);
        let end = TurnEnd {
            stop: TurnStop::Finished,
            usage: None,
        };
        let mut costs = CostCounter::new(Cost::default());
        let last = answers(turn.end(Some(&end), told_meanwhile, &prices, &mut costs));
        assert_eq!(last.iter().map(|(seen, _)| *seen).collect::<Vec<_>>(), [5]);
    }

    /// A follow-up in a new process finds what its session had said in the provider's cache.
    #[test]
    fn what_the_window_held_before_is_read_from_the_cache() {
        let mut turn = Turn::begin("a/b".into(), (100_000, 0), 1);
        turn.take(WireEvent::Context(101_000), &prices);
        let all = answers(turn.take(called("one"), &prices));
        let usage = all.first().map(|(_, answer)| answer.usage);
        let usage = usage.unwrap_or_default();
        assert_eq!((usage.input, usage.cache_read), (1_000, 100_000));
    }

    /// A price that is charged in the middle of a turn is part of what the agent says at its end.
    #[test]
    fn a_turn_costs_what_the_agent_says_though_it_called_a_tool() {
        let prices = |_: &ModelName, usage: Usage| {
            let micros = 3 * usage.input + usage.cache_read * 3 / 10 + 15 * usage.output;
            Some(Cost(micros))
        };
        let told = 500;
        let mut turn = Turn::begin("a/b".into(), (0, told), 1);
        turn.take(WireEvent::Context(21_000), &prices);
        let mut all = answers(turn.take(called("one"), &prices));
        turn.take(WireEvent::Text("done".to_owned()), &prices);
        turn.take(WireEvent::Context(21_400), &prices);
        turn.take(WireEvent::CostSum(Cost(14_200)), &prices);
        let end = TurnEnd {
            stop: TurnStop::Finished,
            usage: Some(Usage {
                input: 900,
                cache_read: 41_500,
                ..Usage::default()
            }),
        };
        let mut costs = CostCounter::new(Cost::default());
        all.extend(answers(turn.end(Some(&end), 1, &prices, &mut costs)));
        let first = all.first().and_then(|(_, answer)| answer.cost);
        assert!(
            first > Some(Cost(1_500)),
            "{first:?}: what is told is charged at once"
        );
        let whole = all.iter().filter_map(|(_, answer)| answer.cost);
        let whole = whole.fold(Cost::default(), |sum, cost| sum + cost);
        assert_eq!(whole, Cost(14_200));
    }

    /// Nothing else says what the last answer took when the process dies.
    #[test]
    fn an_answer_that_is_cut_off_has_its_price() {
        let prices = |_: &ModelName, usage: Usage| Some(Cost(usage.input));
        let mut turn = Turn::begin("a/b".into(), (0, 500), 1);
        turn.take(WireEvent::Context(500), &prices);
        let mut all = answers(turn.take(called("one"), &prices));
        turn.take(WireEvent::Context(800), &prices);
        let mut costs = CostCounter::new(Cost::default());
        all.extend(answers(turn.end(None, 1, &prices, &mut costs)));
        let costs: Vec<Option<Cost>> = all.iter().map(|(_, answer)| answer.cost).collect();
        assert_eq!(costs, [Some(Cost(500)), Some(Cost(300))]);
        assert_eq!(
            answers(turn.end(None, 1, &prices, &mut CostCounter::new(Cost::default()))),
            []
        );
    }

    /// Codex tells of the output of a command that is over.
    #[test]
    fn what_is_told_of_a_call_after_its_end_is_no_other_call() {
        let mut turn = Turn::begin("a/b".into(), (0, 0), 1);
        turn.take(called("one"), &prices);
        let late = |outcome| {
            WireEvent::Tool(ToolNews {
                id: "one".to_owned(),
                began: true,
                outcome,
                ..ToolNews::default()
            })
        };
        assert_eq!(turn.take(late(None), &prices), []);
        let done = Some(ToolOutcome::Done("done".to_owned()));
        assert_eq!(turn.take(late(done), &prices), []);
        assert!(!turn.has_open_calls());
    }

    /// Codex says the same of every part of a file that it reads.
    #[test]
    fn calls_that_are_only_described_are_no_repetition() {
        let read = |id: &str, input: Option<&str>| {
            WireEvent::Tool(ToolNews {
                id: id.to_owned(),
                name: Some("read".to_owned()),
                input: input.map(str::to_owned),
                described: Some(r#"{"title":"Read notes.md"}"#.to_owned()),
                began: true,
                ..ToolNews::default()
            })
        };
        let reported = |input| {
            let mut turn = Turn::begin("a/b".into(), (0, 0), 1);
            let all = ["one", "two"].map(|id| turn.take(read(id, input), &prices));
            let calls = all.iter().flatten().filter_map(|step| match step {
                Step::Report(Observation::ToolCalled { call, .. }) => Some(*call),
                _ => None,
            });
            calls.collect::<BTreeSet<_>>().len()
        };
        assert_eq!(reported(None), 2);
        assert_eq!(reported(Some("{}")), 1);
    }

    /// Codex tells it in pieces, and then only how the command ended.
    #[test]
    fn what_a_call_prints_comes_of_it() {
        let mut turn = Turn::begin("a/b".into(), (0, 0), 1);
        let news = |printed: &str, outcome| {
            WireEvent::Tool(ToolNews {
                id: "one".to_owned(),
                printed: Some(printed.to_owned()),
                began: true,
                outcome,
                ..ToolNews::default()
            })
        };
        turn.take(news("the plants ", None), &prices);
        turn.take(news("are dry", None), &prices);
        let failed = Some(ToolOutcome::Failed("exit code 1".to_owned()));
        let steps = turn.take(news("", failed), &prices);
        let came = steps.into_iter().find_map(|step| match step {
            Step::File(Entry::ToolEnded { outcome, .. }) => Some(outcome),
            _ => None,
        });
        let all = "the plants are dry\nexit code 1".to_owned();
        assert_eq!(came, Some(ToolOutcome::Failed(all)));
    }

    #[test]
    fn the_name_of_a_tool_is_one_line() {
        let mut turn = Turn::begin("a/b".into(), (0, 0), 1);
        let steps = turn.take(called("one"), &prices);
        let named = steps.iter().find_map(|step| match step {
            Step::Report(Observation::ToolCalled { tool, .. }) => Some(tool.as_str()),
            _ => None,
        });
        assert_eq!(named, Some("a name"));
    }

    /// What an agent says without end is not kept without end.
    #[test]
    fn an_agent_that_never_stops_talking_fills_no_memory() {
        let mut turn = Turn::begin("a/b".into(), (0, 0), 1);
        let much = "é".repeat(MOST_TEXT);
        for _ in 0..3 {
            turn.take(WireEvent::Text(much.clone()), &prices);
            turn.take(WireEvent::Thought(much.clone()), &prices);
        }
        let call = |id: usize, outcome| {
            WireEvent::Tool(ToolNews {
                id: id.to_string(),
                name: Some("bash".to_owned()),
                input: Some(format!("{much:?}")),
                began: true,
                printed: Some(much.clone()),
                outcome,
                ..ToolNews::default()
            })
        };
        let done = turn.take(call(0, Some(ToolOutcome::Done(much.clone()))), &prices);
        let (least, most) = (3 * MOST_TEXT, 3 * MOST_TEXT + 2_000);
        assert!((least - 6..most).contains(&kept(&done)), "{}", kept(&done));
        for id in 0..2 * MOST_CALLS {
            turn.take(call(id, None), &prices);
        }
        assert_eq!(turn.calls.len(), MOST_CALLS);
        let printed = turn.calls.iter().map(|call| call.printed.len());
        let printed: usize = printed.sum();
        assert!(printed <= MOST_PRINTED, "{printed}");
    }
}
