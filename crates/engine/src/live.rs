//! What a person who watches sees of a session while it works. Nothing depends on it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use asyncagents_core::{agent::End, lock::lock};
use tokio::sync::Notify;

use crate::PrintedLines;

/// Something worth showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// The model is saying this.
    Text(String),
    /// The model is thinking this.
    Reasoning(String),
    /// An answer is complete.
    Answered,
    /// An answer broke off or was refused, and the request is retried. What was streamed of the
    /// answer is void.
    Retrying(String),
    /// A tool begins.
    Tool {
        /// The model's name for the call.
        call: String,
        name: String,
        /// What the call touches or runs.
        target: String,
        /// The parameters, as the model wrote them.
        input: String,
        /// A person was asked about the call and has seen all of it.
        approved: bool,
    },
    /// A tool has printed this.
    Lines(PrintedLines),
    /// A tool has ended, or was not run at all.
    ToolEnded {
        /// The model's name for the call.
        call: String,
        name: String,
        /// What went wrong, in a line.
        error: Option<String>,
        /// What the model gets, unless the watcher is far behind.
        result: Option<String>,
    },
    /// A background task has ended, which the session is notified of.
    Notice(String),
    /// A command waits until fewer of others run.
    CommandQueued,
    /// The conversation is summarised.
    Compacting,
    /// The run waits for background tasks.
    Waiting,
    /// The run is over.
    Ended(End),
}

/// A stream of what happens in a session.
pub struct LiveEvents(Arc<Queue>);

impl LiveEvents {
    /// The next event; `None` when no more can come.
    pub async fn next(&mut self) -> Option<Live> {
        loop {
            let more = self.0.more.notified();
            {
                let mut waiting = lock(&self.0.waiting);
                if let Some(live) = waiting.take() {
                    return Some(live);
                }
                if waiting.no_sender {
                    return None;
                }
            }
            more.await;
        }
    }
}

impl Drop for LiveEvents {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0.waiting);
        waiting.no_receiver = true;
        waiting.events.clear();
    }
}

/// The end that an engine writes to.
pub(crate) struct LiveSender(Arc<Queue>);

impl LiveSender {
    /// Sends an event. False if the watcher is gone.
    pub(crate) fn send(&self, live: Live) -> bool {
        let mut waiting = lock(&self.0.waiting);
        if waiting.no_receiver {
            return false;
        }
        waiting.add(live);
        self.0.more.notify_one();
        true
    }
}

impl Drop for LiveSender {
    fn drop(&mut self) {
        lock(&self.0.waiting).no_sender = true;
        self.0.more.notify_one();
    }
}

pub(crate) fn channel() -> (LiveSender, LiveEvents) {
    let queue = Arc::new(Queue::default());
    (LiveSender(queue.clone()), LiveEvents(queue))
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    more: Notify,
}

/// How much may wait for a slow watcher, in bytes: more than the longest answer. Work does not wait
/// for a watcher, so what is more is left out.
const MOST_WAITING: usize = 16_000_000;

/// What an event counts for besides its text.
const EVENT: usize = 100;

/// The events that wait for the watcher.
#[derive(Default)]
struct Waiting {
    events: VecDeque<Live>,
    bytes: usize,
    /// Something was left out since the last event.
    left_out: bool,
    no_receiver: bool,
    no_sender: bool,
}

impl Waiting {
    fn add(&mut self, mut live: Live) {
        if self.bytes + bytes_of(&live) > MOST_WAITING {
            match &mut live {
                // The watcher relies on what says that something is over or void.
                Live::ToolEnded { result, .. } => *result = None,
                live if text_of(live) > 0 => {
                    self.left_out = true;
                    return;
                }
                _ => {}
            }
        }
        if std::mem::take(&mut self.left_out) {
            let why = "what came meanwhile was left out: it came faster than it could be shown";
            self.push(Live::Lines(PrintedLines::one(why)));
        }
        self.push(live);
    }

    fn push(&mut self, live: Live) {
        match (self.events.back_mut(), live) {
            // One event for many pieces: a piece has few letters, and an event takes more.
            (Some(Live::Text(before)), Live::Text(more))
            | (Some(Live::Reasoning(before)), Live::Reasoning(more)) => {
                self.bytes += more.len();
                before.push_str(&more);
            }
            (Some(Live::Lines(before)), Live::Lines(more)) => {
                self.bytes = self.bytes.saturating_sub(before.bytes());
                before.add(more);
                self.bytes += before.bytes();
            }
            (_, live) => {
                self.bytes += bytes_of(&live);
                self.events.push_back(live);
            }
        }
    }

    fn take(&mut self) -> Option<Live> {
        let live = self.events.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&live));
        Some(live)
    }
}

fn bytes_of(live: &Live) -> usize {
    EVENT + text_of(live)
}

/// How much text comes with an event.
fn text_of(live: &Live) -> usize {
    match live {
        Live::Text(text) | Live::Reasoning(text) | Live::Notice(text) => text.len(),
        Live::Lines(lines) => lines.bytes(),
        Live::Tool {
            call,
            name,
            target,
            input,
            ..
        } => call.len() + name.len() + target.len() + input.len(),
        Live::ToolEnded { result, .. } => result.as_ref().map_or(0, String::len),
        // Their texts are one line.
        Live::Answered
        | Live::Retrying(_)
        | Live::CommandQueued
        | Live::Compacting
        | Live::Waiting
        | Live::Ended(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn text(text: &str) -> Live {
        Live::Text(text.to_owned())
    }

    fn printed(line: &str) -> Live {
        Live::Lines(PrintedLines::one(line))
    }

    fn taken(events: &mut LiveEvents) -> Vec<Live> {
        let next = || events.next().now_or_never().flatten();
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn pieces_that_wait_are_joined() {
        let (sender, mut events) = channel();
        let thought = Live::Reasoning("hm".to_owned());
        for live in [
            text("a"),
            text("b"),
            thought.clone(),
            text("c"),
            Live::Answered,
            text("d"),
        ] {
            assert!(sender.send(live));
        }
        let all = [text("ab"), thought, text("c"), Live::Answered, text("d")];
        assert_eq!(taken(&mut events), all);
    }

    #[test]
    fn what_nobody_takes_does_not_grow_without_end() {
        let (sender, mut events) = channel();
        let piece = "x".repeat(1_000);
        for _ in 0..20_000 {
            sender.send(text(&piece));
            sender.send(printed(&piece));
        }
        sender.send(Live::Answered);
        let all = taken(&mut events);
        let bytes = all.iter().map(|live| match live {
            Live::Text(text) => text.len(),
            Live::Lines(lines) => lines.bytes(),
            _ => 0,
        });
        assert!(bytes.sum::<usize>() <= MOST_WAITING);
        let last = all.get(all.len() - 2..).unwrap_or_default();
        let why = |lines: &PrintedLines| lines.first.iter().any(|line| line.contains("left out"));
        assert!(matches!(last, [Live::Lines(lines), Live::Answered] if why(lines)));
        sender.send(text("more"));
        assert_eq!(taken(&mut events), [text("more")], "there is room again");
    }

    #[test]
    fn lines_that_wait_are_one_event_that_does_not_grow() {
        let (sender, mut events) = channel();
        for _ in 0..100_000 {
            sender.send(printed("y"));
        }
        sender.send(Live::Answered);
        let all = taken(&mut events);
        let [Live::Lines(lines), Live::Answered] = all.as_slice() else {
            panic!("{all:?}");
        };
        let kept = lines.first.len() + lines.last.len();
        assert!(kept < 100, "{kept}");
        assert_eq!(kept as u64 + lines.left_out, 100_000);
    }

    #[tokio::test]
    async fn both_ends_know_when_the_other_has_gone() {
        let (sender, mut events) = channel();
        sender.send(text("last"));
        drop(sender);
        assert_eq!(events.next().await, Some(text("last")));
        assert_eq!(events.next().await, None);
        let (sender, events) = channel();
        drop(events);
        assert!(!sender.send(text("to nobody")));
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let (sender, mut events) = channel();
        let waiting = tokio::spawn(async move { events.next().await });
        tokio::task::yield_now().await;
        sender.send(text("now"));
        assert_eq!(waiting.await.ok().flatten(), Some(text("now")));
    }
}
