//! Which messages Claude Code still has to deal with. One that is sent in the middle of a turn is
//! told in it, beside the next result of a tool, or gets a turn of its own after it.

use std::collections::BTreeMap;

use asyncagents_core::{agent::Usage, id::PostId};
use uuid::Uuid;

use super::{
    message_id::{MOST_ATTEMPTS, of_post},
    record::{State, TurnResult},
};
use crate::agent::{Message, TurnEnd, TurnStop};

/// The messages of one process.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Those that were sent and are not dealt with, the oldest first.
    sent: Vec<Sent>,
    /// Whether a turn runs that has one of them.
    is_running: bool,
    /// Whether it says what becomes of messages.
    says_states: bool,
    /// Whether it was told to stop.
    is_stopped: bool,
    /// How the newest turn has ended.
    stop: Option<TurnStop>,
    usage: Option<Usage>,
    /// How often a message was taken back before it was told.
    taken_back: BTreeMap<PostId, u32>,
    /// Messages that were taken back and are sent with the next prompt.
    untold: Vec<Sent>,
}

/// A message on its way.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) uuid: String,
    pub(super) message: Message,
    state: Option<State>,
}

impl Turns {
    /// Messages that were taken back before they were told. They are given once.
    pub(super) fn take_untold(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.untold)
    }

    /// Begins with something new.
    pub(super) fn begin(&mut self) {
        (self.stop, self.usage, self.is_stopped) = (None, None, false);
    }

    /// Notes a message as sent, with the UUID that it is sent under.
    pub(super) fn send(&mut self, message: &Message) -> String {
        let attempt = |post| self.taken_back.get(post).copied().unwrap_or_default();
        let uuid = match &message.id {
            Some(post) => of_post(post, attempt(post)),
            None => Uuid::new_v4().to_string(),
        };
        self.sent.push(Sent {
            uuid: uuid.clone(),
            message: message.clone(),
            state: None,
        });
        uuid
    }

    /// Whether something is to be dealt with.
    pub(super) fn is_busy(&self) -> bool {
        !self.sent.is_empty() || self.is_running
    }

    /// It is told to stop. False if there is nothing to stop.
    pub(super) fn stop(&mut self) -> bool {
        self.is_stopped = self.is_busy();
        self.is_stopped
    }

    /// It says what becomes of a message.
    pub(super) fn heard(&mut self, uuid: &str, state: State) {
        self.says_states = true;
        let Some(at) = self.sent.iter().position(|sent| sent.uuid == uuid) else {
            return;
        };
        let was_told = self.sent[at].state == Some(State::Started);
        match state {
            State::Queued => self.sent[at].state = Some(state),
            State::Started => {
                self.sent[at].state = Some(state);
                self.is_running = true;
            }
            State::Completed => drop(self.sent.remove(at)),
            State::Cancelled | State::Discarded | State::Refused => {
                let sent = self.sent.remove(at);
                if !was_told {
                    self.take_back(sent, state);
                }
            }
            State::Unknown => {}
        }
    }

    /// It shows a message that it has. If it was not queued before, it was told before and is not
    /// told again.
    pub(super) fn shown(&mut self, uuid: &str) {
        let says_states = self.says_states;
        let is_old = |sent: &Sent| sent.uuid == uuid && sent.state.is_none() && says_states;
        self.sent.retain(|sent| !is_old(sent));
    }

    /// A turn has ended.
    pub(super) fn ended(&mut self, result: &TurnResult) {
        if !self.is_busy() {
            return;
        }
        let in_turn = |sent: &Sent| {
            sent.state == Some(State::Started) || result.user_message_uuids.contains(&sent.uuid)
        };
        let had = self.sent.len();
        self.sent.retain(|sent| !in_turn(sent));
        if !self.says_states && self.sent.len() == had {
            self.sent.remove(0);
        }
        let is_ours = self.is_running || self.sent.len() < had;
        self.is_running = false;
        // Background work of its own may begin a turn, which answers nobody.
        if !is_ours {
            return;
        }
        if let Some(usage) = result.usage {
            let before = self.usage.unwrap_or_default();
            self.usage = Some(before.plus(usage.into()));
        }
        self.stop = Some(match result.failure() {
            _ if self.is_stopped && result.was_interrupted() => TurnStop::Cancelled,
            Some(why) => TurnStop::Failed(why),
            None => TurnStop::Finished,
        });
    }

    /// How it ended, when all is dealt with.
    pub(super) fn end(&self) -> Option<TurnEnd> {
        (!self.is_busy()).then(|| TurnEnd {
            stop: self.stop.clone().unwrap_or(TurnStop::Finished),
            usage: self.usage,
        })
    }

    /// A message was not told, and its UUID is used up in this process.
    fn take_back(&mut self, sent: Sent, state: State) {
        let attempts = sent.message.id.clone().map(|post| {
            let attempts = self.taken_back.entry(post).or_default();
            *attempts += 1;
            *attempts
        });
        self.stop = Some(match state {
            State::Refused => TurnStop::Failed("Claude Code refuses the message".to_owned()),
            _ => TurnStop::Cancelled,
        });
        if attempts.unwrap_or_default() < MOST_ATTEMPTS {
            self.untold.push(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::MessagePart;

    fn message(id: &str) -> Message {
        Message {
            parts: vec![MessagePart::Text(id.to_owned())],
            id: Some(id.into()),
        }
    }

    fn result(uuids: &[&String]) -> TurnResult {
        let result = serde_json::json!({
            "subtype": "success", "usage": {"input_tokens": 10, "output_tokens": 1},
            "user_message_uuids": uuids,
        });
        serde_json::from_value(result).expect("a result")
    }

    fn interrupted() -> TurnResult {
        let result = serde_json::json!({
            "subtype": "error_during_execution", "is_error": true, "errors": ["[diagnostic]"],
        });
        serde_json::from_value(result).expect("a result")
    }

    fn stop(turns: &Turns) -> Option<TurnStop> {
        turns.end().map(|end| end.stop)
    }

    #[test]
    fn a_message_in_the_middle_of_a_turn_ends_with_it() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.heard(&first, State::Started);
        let second = turns.send(&message("second"));
        turns.heard(&second, State::Queued);
        turns.heard(&second, State::Started);
        turns.heard(&second, State::Completed);
        assert_eq!(turns.end(), None);
        turns.ended(&result(&[&first, &second]));
        assert_eq!(stop(&turns), Some(TurnStop::Finished));
        turns.heard(&first, State::Completed);
        assert_eq!(stop(&turns), Some(TurnStop::Finished));
    }

    #[test]
    fn a_message_that_comes_too_late_for_a_turn_has_one_of_its_own() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.heard(&first, State::Started);
        let second = turns.send(&message("second"));
        turns.heard(&second, State::Queued);
        turns.ended(&result(&[&first]));
        turns.heard(&first, State::Completed);
        assert_eq!(turns.end(), None);
        turns.heard(&second, State::Started);
        turns.ended(&result(&[&second]));
        let end = turns.end().expect("an end");
        assert_eq!(end.usage.map(Usage::context), Some(22));
    }

    #[test]
    fn a_message_that_was_told_before_is_over_at_once() {
        let mut turns = Turns {
            says_states: true,
            ..Turns::default()
        };
        let again = turns.send(&message("again"));
        turns.shown(&again);
        let end = turns.end().expect("an end");
        assert_eq!((end.stop, end.usage), (TurnStop::Finished, None));
        let new = turns.send(&message("new"));
        turns.heard(&new, State::Queued);
        turns.shown(&new);
        assert_eq!(turns.end(), None);
    }

    #[test]
    fn what_was_taken_back_before_it_was_told_is_kept_for_the_next_prompt() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.heard(&first, State::Started);
        let second = turns.send(&message("second"));
        turns.heard(&second, State::Queued);
        assert!(turns.stop());
        turns.heard(&second, State::Cancelled);
        turns.ended(&interrupted());
        turns.heard(&first, State::Cancelled);
        assert_eq!(stop(&turns), Some(TurnStop::Cancelled));
        let untold = turns.take_untold();
        let texts: Vec<String> = untold.iter().map(|sent| sent.message.text()).collect();
        assert_eq!(texts, ["second"]);
        assert_ne!(turns.send(&message("second")), second);
        assert!(turns.take_untold().is_empty());
    }

    #[test]
    fn a_prompt_that_is_stopped_before_it_has_begun_is_cancelled() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.heard(&first, State::Queued);
        assert!(turns.stop());
        turns.heard(&first, State::Cancelled);
        assert_eq!(stop(&turns), Some(TurnStop::Cancelled));
        assert!(!turns.stop());
    }

    /// A command in the background ends, and Claude Code goes on by itself.
    #[test]
    fn a_turn_of_its_own_is_not_the_end_of_ours() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.heard(&first, State::Queued);
        turns.ended(&result(&[]));
        assert_eq!(turns.end(), None);
        turns.heard(&first, State::Started);
        turns.ended(&result(&[&first]));
        let end = turns.end().expect("an end");
        assert_eq!(end.usage.map(Usage::context), Some(11));
    }

    #[test]
    fn without_news_of_messages_each_turn_is_one() {
        let mut turns = Turns::default();
        let first = turns.send(&message("first"));
        turns.shown(&first);
        turns.send(&message("second"));
        turns.ended(&result(&[]));
        assert_eq!(turns.end(), None);
        turns.ended(&result(&[]));
        assert_eq!(stop(&turns), Some(TurnStop::Finished));
    }
}
