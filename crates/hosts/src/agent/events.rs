//! What happens in a session, on its way from whoever reads the agent to the session's driver. An agent that says
//! more than its driver takes in is not read for a while.

use std::sync::Arc;

use asyncagents_core::agent::ToolOutcome;
use tokio::sync::{mpsc, watch};

use super::{Asked, WireEvent};

/// How many bytes of events may wait for the driver before no more is read.
const MOST_WAITING: usize = 4 << 20;

/// What an event takes beside its texts.
const EVENT_SIZE: usize = 200;

/// A sender and a receiver of events.
pub fn events() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(watch::Sender::new(0));
    (
        EventSender {
            events: sender,
            waiting: waiting.clone(),
        },
        EventReceiver {
            events: receiver,
            waiting,
        },
    )
}

/// Sends what happens in a session.
#[derive(Clone)]
pub struct EventSender {
    events: mpsc::UnboundedSender<WireEvent>,
    waiting: Arc<watch::Sender<usize>>,
}

impl EventSender {
    /// Sends an event. Without a receiver there is nothing to do.
    pub fn send(&self, event: WireEvent) {
        let size = size(&event);
        // First: it may be received at once.
        self.waiting.send_modify(|waiting| *waiting += size);
        if self.events.send(event).is_err() {
            self.waiting.send_modify(|waiting| *waiting -= size);
        }
    }

    /// Waits until there is room for more events.
    pub async fn room(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender is here.
        let _ = waiting.wait_for(|waiting| *waiting < MOST_WAITING).await;
    }
}

/// Receives what happens in a session.
pub struct EventReceiver {
    events: mpsc::UnboundedReceiver<WireEvent>,
    waiting: Arc<watch::Sender<usize>>,
}

impl EventReceiver {
    /// The next event, or nothing if there will be none.
    pub async fn recv(&mut self) -> Option<WireEvent> {
        let event = self.events.recv().await;
        event.inspect(|event| self.took(event))
    }

    /// The events that are here now. More may come as fast as they are taken.
    pub fn take_waiting(&mut self) -> Vec<WireEvent> {
        let here = self.events.len();
        let events = std::iter::from_fn(|| self.try_recv());
        events.take(here).collect()
    }

    /// The next event, if one is here.
    pub fn try_recv(&mut self) -> Option<WireEvent> {
        let event = self.events.try_recv().ok();
        event.inspect(|event| self.took(event))
    }

    fn took(&self, event: &WireEvent) {
        let size = size(event);
        self.waiting.send_modify(|waiting| *waiting -= size);
    }
}

fn size(event: &WireEvent) -> usize {
    let texts = match event {
        WireEvent::Text(text) | WireEvent::Thought(text) | WireEvent::Model(text) => text.len(),
        WireEvent::Tool(news) => {
            let outcome = match &news.outcome {
                Some(ToolOutcome::Done(text) | ToolOutcome::Failed(text)) => text.len(),
                _ => 0,
            };
            let told = [&news.input, &news.described, &news.printed];
            let told = told.into_iter().flatten().map(String::len);
            news.id.len() + told.sum::<usize>() + outcome
        }
        WireEvent::Asked(ask) => match &ask.what {
            Asked::Call(call) => call.target.len() + call.details.len(),
            Asked::Form(question) => question.text.len(),
        },
        WireEvent::Context(_)
        | WireEvent::CostSum(_)
        | WireEvent::Spent(_)
        | WireEvent::Withdrawn(_)
        | WireEvent::Disobeyed(_)
        | WireEvent::Alive => 0,
    };
    EVENT_SIZE + texts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_agent_is_not_read_while_its_driver_is_behind() {
        let (sender, mut receiver) = events();
        let text = "x".repeat(1 << 20);
        for _ in 0..4 {
            sender.room().await;
            sender.send(WireEvent::Text(text.clone()));
        }
        let hour = Duration::from_secs(3_600);
        assert!(timeout(hour, sender.room()).await.is_err());
        assert!(receiver.recv().await.is_some());
        assert!(timeout(hour, sender.room()).await.is_ok());
        while receiver.try_recv().is_some() {}
        assert_eq!(*sender.waiting.borrow(), 0);
    }
}
