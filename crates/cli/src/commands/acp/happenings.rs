//! What happens in a session of the built-in agent, for the protocol.

use async_trait::async_trait;
use asyncagents_core::agent::Call;
use asyncagents_engine::{Live, LiveEvents};
use asyncagents_server::acp::{Happening, Happenings};
use futures_util::FutureExt;

pub(super) struct LiveHappenings(pub(super) LiveEvents);

#[async_trait]
impl Happenings for LiveHappenings {
    async fn next(&mut self) -> Option<Happening> {
        loop {
            if let Some(happening) = happening(self.0.next().await?) {
                return Some(happening);
            }
        }
    }

    fn next_now(&mut self) -> Option<Happening> {
        self.next().now_or_never().flatten()
    }
}

/// Nothing for what an editor does not show.
fn happening(live: Live) -> Option<Happening> {
    Some(match live {
        Live::Text(text) => Happening::Text(text),
        Live::Reasoning(text) => Happening::Thought(text),
        Live::Answered => Happening::Answered,
        Live::Retrying(why) => Happening::Retrying(why),
        Live::Tool {
            call, name, input, ..
        } => Happening::CallBegan(Call {
            id: call,
            name,
            input,
        }),
        Live::Lines(lines) => {
            let all = lines.first.into_iter().chain(lines.last);
            Happening::Printed(all.collect())
        }
        Live::ToolEnded {
            call,
            name,
            error,
            result,
        } => Happening::CallEnded {
            call,
            name,
            failed: error.is_some(),
            result: result.or(error).unwrap_or_default(),
        },
        Live::Ended(_) => Happening::Ended,
        Live::Notice(_) | Live::CommandQueued | Live::Compacting | Live::Waiting => return None,
    })
}
