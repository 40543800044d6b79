//! One prompt, from the moment it is taken until its run is over.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use agent_client_protocol::{
    Error,
    v1::schema::{
        Cost, PromptResponse, SessionInfoUpdate, SessionUpdate, StopReason, Usage, UsageUpdate,
    },
};
use asyncagents_core::{
    agent::{self, End, Entry, Filed, Stop},
    budget::Price,
    id::PostId,
    lock::lock,
};
use tokio::{sync::mpsc, time};

use super::{
    AgentError, Happening, PromptRun,
    session::{Cancelled, Session},
};

/// So much of a prompt is the title of its session.
const TITLE_CHARS: usize = 80;

/// How often it is looked whether a run is over that does not say so: another process may have taken
/// the session over.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

impl Session {
    /// Runs a prompt until it and its background tasks are done.
    pub(super) async fn run_turn(
        self: &Arc<Self>,
        text: String,
        cancelled: &mut Cancelled,
    ) -> Result<PromptResponse, Error> {
        self.ensure_begun(&text, cancelled).await?;
        let place = self.place();
        let before = self.agent.used(&place).await?.tokens;
        lock(&self.updates).plan.begin_turn();
        self.begin_tasks().await;
        if cancelled.is_now().await {
            self.cancel_tasks().await;
            return Ok(PromptResponse::new(StopReason::Cancelled));
        }
        let (flush, flushes) = mpsc::unbounded_channel();
        *lock(&self.flush) = Some(flush);
        let run = self.agent.prompt(&place, text).await?;
        let prompt = run.prompt.clone();
        let ended = self.follow(run, flushes, cancelled).await;
        *lock(&self.flush) = None;
        let left_open = lock(&self.updates).close_calls();
        self.send_all(left_open);
        self.look_at_tasks().await;
        let tokens = self.tell_usage().await?;
        let stop = self.stop_reason(&prompt, ended?).await?;
        Ok(PromptResponse::new(stop).usage(usage(before, tokens)))
    }

    /// The session is in the journal from its first prompt on. One that another process drives is waited for,
    /// unless the client cancels.
    async fn ensure_begun(&self, text: &str, cancelled: &mut Cancelled) -> Result<(), Error> {
        let place = self.place();
        if self.is_begun() {
            return tokio::select! {
                biased;
                () = cancelled.wait() => Ok(()),
                free = self.agent.until_free(&place) => Ok(free?),
            };
        }
        let first_line = text.lines().find(|line| !line.trim().is_empty());
        let title: String = first_line
            .unwrap_or_default()
            .trim()
            .chars()
            .take(TITLE_CHARS)
            .collect();
        self.agent.begin(&place, title.clone()).await?;
        self.begun.store(true, Ordering::SeqCst);
        let info = SessionInfoUpdate::new().title(title);
        self.send(SessionUpdate::SessionInfoUpdate(info));
        Ok(())
    }

    /// Shows what happens until the run is over. Nothing if the client has cancelled it.
    async fn follow(
        self: &Arc<Self>,
        mut run: PromptRun,
        mut flushes: mpsc::UnboundedReceiver<tokio::sync::oneshot::Sender<()>>,
        cancelled: &mut Cancelled,
    ) -> Result<Option<End>, Error> {
        let mut looks = time::interval(LOOK_INTERVAL);
        let mut is_cancelled = false;
        loop {
            let next = async {
                self.unsent.room().await;
                run.happenings.next().await
            };
            let may_be_over = tokio::select! {
                happening = next => match happening {
                    Some(happening) => {
                        let ends = happening == Happening::Ended;
                        self.show(happening);
                        ends
                    }
                    None => true,
                },
                Some(done) = flushes.recv() => {
                    self.show_all(&mut run);
                    // Who asked may have gone.
                    let _ = done.send(());
                    false
                }
                _ = looks.tick() => true,
                () = cancelled.wait(), if !is_cancelled => {
                    is_cancelled = true;
                    // First the session that launches tasks.
                    self.agent.abort(&self.place()).await?;
                    self.cancel_tasks().await;
                    true
                }
            };
            if may_be_over && let Some(end) = self.agent.end_of(&self.place(), &run.prompt).await? {
                self.show_all(&mut run);
                return Ok((!is_cancelled).then_some(end));
            }
        }
    }

    fn show_all(&self, run: &mut PromptRun) {
        while let Some(happening) = run.happenings.next_now() {
            self.show(happening);
        }
    }

    fn show(&self, happening: Happening) {
        // Under the lock, so that the client sees updates in their order.
        let mut updates = lock(&self.updates);
        let told = updates.of(happening);
        self.send_all(told);
    }

    /// Tells the client what the session has used; returns its tokens.
    pub(super) async fn tell_usage(&self) -> Result<agent::Usage, AgentError> {
        let used = self.agent.used(&self.place()).await?;
        let cost = match used.price {
            Price::Known(cost) | Price::AtLeast(cost) => Some(Cost::new(cost.dollars(), "USD")),
            Price::Unknown => None,
        };
        let update = UsageUpdate::new(used.context, used.window).cost(cost);
        self.send(SessionUpdate::UsageUpdate(update));
        Ok(used.tokens)
    }

    /// Why the turn is over, or what went wrong.
    async fn stop_reason(&self, prompt: &PostId, end: Option<End>) -> Result<StopReason, Error> {
        let end = match end {
            None | Some(End::Aborted) => return Ok(StopReason::Cancelled),
            Some(end) => end,
        };
        let entries = self.agent.entries(&self.folder, &self.id).await?;
        let run = Run::of(&entries, prompt);
        match end {
            End::Answered if run.was_limited => Ok(StopReason::MaxTurnRequests),
            End::Answered if run.stop == Some(Stop::Length) => Ok(StopReason::MaxTokens),
            End::Answered | End::Aborted => Ok(StopReason::EndTurn),
            End::Failed { .. } if run.stop == Some(Stop::Refused) => Ok(StopReason::Refusal),
            End::Failed { .. } if run.was_limited => Ok(StopReason::MaxTurnRequests),
            End::Failed { why } | End::Broken { why } => Err(AgentError::Failed(why).into()),
        }
    }
}

/// What the entries of a run say of its end.
struct Run {
    /// A limit was reached, and the model was asked to sum up.
    was_limited: bool,
    /// How its last answer ended.
    stop: Option<Stop>,
}

impl Run {
    fn of(entries: &[Filed], prompt: &PostId) -> Self {
        let is_prompt = |filed: &Filed| filed.entry.post() == Some(prompt);
        let begin = entries.iter().position(is_prompt).unwrap_or_default();
        let mut run = Self {
            was_limited: false,
            stop: None,
        };
        for filed in entries.iter().skip(begin) {
            match &filed.entry {
                Entry::LastTurn { .. } => run.was_limited = true,
                Entry::Answered { answer, .. } => run.stop = Some(answer.stop),
                _ => {}
            }
        }
        run
    }
}

/// The tokens of one turn.
fn usage(before: agent::Usage, after: agent::Usage) -> Usage {
    let input = after.input.saturating_sub(before.input);
    let output = after.output.saturating_sub(before.output);
    let read = after.cache_read.saturating_sub(before.cache_read);
    let written = after.cache_write.saturating_sub(before.cache_write);
    Usage::new(input + output + read + written, input, output)
        .cached_read_tokens(read)
        .cached_write_tokens(written)
}
