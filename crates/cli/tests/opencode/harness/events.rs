//! What OpenCode says is happening, as it comes.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use asyncagents_core::lock::lock;

use reqwest::{Method, Response};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::serve::Serve;

/// All events since it was made.
pub(super) struct Events {
    seen: Arc<Mutex<Vec<Value>>>,
    listening: JoinHandle<()>,
}

impl Events {
    /// Those of a server.
    pub(super) fn from(serve: &Serve<'_>) -> Self {
        // For as long as the server lasts.
        const ALWAYS: Duration = Duration::from_secs(24 * 60 * 60);
        // A request that comes while the socket is being opened is never answered, even if the
        // server has said that it listens.
        const SOON: Duration = Duration::from_secs(3);
        let (world, path) = (serve.world, serve.world.opencode.api().events_path());
        let stream = world.until("the server takes listeners", || {
            let asked = serve.request(Method::GET, path).timeout(ALWAYS);
            let answered = async { tokio::time::timeout(SOON, asked.send()).await };
            world.runtime.block_on(answered).ok()?.ok()
        });
        let seen = Arc::default();
        let listening = listen(stream, Arc::clone(&seen));
        let listening = world.runtime.spawn(listening);
        Self { seen, listening }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Vec<Value>> {
        lock(&self.seen)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(mut stream: Response, seen: Arc<Mutex<Vec<Value>>>) {
    let mut unread = Vec::new();
    // It ends with the server, properly or not.
    while let Ok(Some(bytes)) = stream.chunk().await {
        unread.extend_from_slice(&bytes);
        while let Some(end) = unread.windows(2).position(|end| end == b"\n\n") {
            let event: Vec<u8> = unread.drain(..end + 2).collect();
            if let Some(event) = data_of(&event) {
                let mut seen = lock(&seen);
                seen.push(event);
            }
        }
    }
}

/// What stands behind `data:`.
fn data_of(event: &[u8]) -> Option<Value> {
    let mut lines = event.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data:"))?;
    serde_json::from_slice(data).ok()
}
