//! The answer to one question in a session of its own.

use std::time::Duration;

use asyncagents_core::{
    budget::Spent,
    id::{PostId, SessionId},
    lifecycle::Standing,
    port::{Host, HostError, Inspection, OneAnswer},
};
use tokio::time;

/// How often the session is inspected.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for the answer of a session that was prompted. Nothing if there will be none.
pub(crate) async fn wait_for(
    host: &impl Host,
    session: &SessionId,
    prompt: &PostId,
) -> Result<Option<OneAnswer>, HostError> {
    loop {
        time::sleep(POLL_INTERVAL).await;
        let Inspection {
            standing, totals, ..
        } = host.inspect(session, prompt).await?;
        match standing {
            Standing::Working | Standing::Unprompted => {}
            Standing::Gone | Standing::Interrupted | Standing::ModelUnavailable(_) => {
                return Ok(None);
            }
            Standing::Done { answer, .. } => {
                let totals = totals.unwrap_or_default();
                return Ok(Some(OneAnswer {
                    text: answer.unwrap_or_default(),
                    spent: Spent::answer(totals.tokens, totals.cost, totals.unpriced),
                }));
            }
        }
    }
}
