//! What a session is told while it works, and when it has done.

use asyncagents_core::{
    id::TaskId,
    notify::Message,
    port::{Delivery, Host, Notice},
};
use asyncagents_scripted_model::{Reply, Script, When};

use crate::harness::Harness;

/// It could say something of it only when it is prompted again, so it is not taken.
#[tokio::test]
async fn a_message_to_a_session_that_has_done_is_not_taken() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Go").await;
    harness.ended(&session, &prompt).await;
    let id = TaskId::from_random(7).message(9);
    let message = Notice {
        id: id.clone(),
        message: Message {
            visible: "left".to_owned(),
            hidden: String::new(),
        },
    };
    let delivered = harness.engine.deliver(&session, message).await;
    assert_eq!(delivered, Ok(Delivery::NotNow));
    assert_eq!(harness.engine.confirm(&session, &id).await, Ok(false));
    harness.close().await;
}
