//! The door for agents that ask nobody by their protocol: a hook of theirs runs before each call, is a
//! process of ours, and waits here for the answer.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{mpsc, oneshot},
    time,
};

use crate::proxy::{DoorStream, TwoWay};

/// How long a hook may wait, and so a person for whom it asks. Agents go on without a hook that has not
/// ended in time, so ours has ended before that.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600 - 60);

/// How much a hook may be given, in bytes, and how long it may take to say it.
const LONGEST_INPUT: u64 = 1 << 20;
const INPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a hook was given, and who waits for what it is to print.
pub struct HookCall {
    pub input: Vec<u8>,
    pub answer: oneshot::Sender<String>,
}

/// A door, and where what comes in by it comes out.
pub fn hook_door() -> (Arc<dyn DoorStream>, mpsc::UnboundedReceiver<HookCall>) {
    let (calls, asked) = mpsc::unbounded_channel();
    (Arc::new(HookDoor(calls)), asked)
}

struct HookDoor(mpsc::UnboundedSender<HookCall>);

#[async_trait]
impl DoorStream for HookDoor {
    /// A hook that gets no answer forbids its call.
    async fn serve(&self, mut stream: Box<dyn TwoWay>) {
        let mut input = Vec::new();
        let mut bounded = (&mut stream).take(LONGEST_INPUT);
        let read = time::timeout(INPUT_TIMEOUT, bounded.read_to_end(&mut input)).await;
        if !matches!(read, Ok(Ok(_))) {
            return;
        }
        let (answer, answered) = oneshot::channel();
        if self.0.send(HookCall { input, answer }).is_err() {
            return;
        }
        if let Ok(Ok(words)) = time::timeout(ANSWER_TIMEOUT, answered).await {
            let _ = stream.write_all(words.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}
