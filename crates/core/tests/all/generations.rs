//! A child inherits the same of a conversation, whichever OpenCode it was in.

use asyncagents_core::transcript::Outcome;
use asyncagents_testkit::opencode2::{Session, text, tool, tool_error, tool_running};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    properties::{self, Came, Conversation, Piece, Turn},
    reading2::forked,
};

/// The same conversation, as OpenCode 2 has it. It has no names for a kept tail.
fn session_of(conversation: &Conversation) -> Session {
    let last = conversation.turns.len().saturating_sub(1);
    let turns = conversation.turns.iter().enumerate();
    turns.fold(Session::new(), |session, (at, turn)| match turn {
        Turn::User(said) => session.user(said),
        Turn::Agent(pieces) if conversation.in_flight && at == last => {
            session.agent_in_flight(pieces.iter().map(part).collect())
        }
        Turn::Agent(pieces) => session.agent(pieces.iter().map(part).collect()),
        Turn::Compacted { summary, .. } => session.compacted(summary, ""),
        Turn::CompactionFailed(_) => session.compaction_failed(),
    })
}

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Said(said) => text(said),
        Piece::Called {
            tool: name,
            param,
            came,
        } => {
            let input = json!({"p": param});
            match came {
                Came::Output(output) => tool(name, input, output),
                Came::Error(error) => tool_error(name, input, error),
                Came::Cleared => tool(name, input, Outcome::CLEARED),
                Came::Nothing => tool_running(name, input),
            }
        }
    }
}

/// The same conversation, with nothing kept beside its summaries.
fn without_tails(mut conversation: Conversation) -> Conversation {
    for turn in &mut conversation.turns {
        if let Turn::Compacted { tail, .. } = turn {
            *tail = 0;
        }
    }
    conversation
}

proptest! {
    #![proptest_config(properties::cases(4))]

    #[test]
    fn a_child_inherits_the_same_of_both_generations(
        conversation in properties::conversation(40, 1),
        numbers in properties::numbers(),
    ) {
        let conversation = without_tails(conversation);
        let limits = numbers.limits();
        let first = super::forked(&properties::session(&conversation), &limits);
        let session = session_of(&conversation);
        for saved in [session.json(), session.page(), session.export().to_string()] {
            let second = forked(&saved, &limits);
            prop_assert_eq!(&second.context, &first.context);
            prop_assert_eq!(&second.stats.results, &first.stats.results);
        }
    }
}
