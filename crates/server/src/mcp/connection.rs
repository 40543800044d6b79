//! One client's connection, and when it has gone.

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::watch;

/// How many answers may wait to be written. What a client asks for is not read before it reads those:
/// else this process would keep them all.
const MOST_UNSENT: usize = 200;

/// A transport that says when the client has closed it: a call that waits is given up then, for nobody
/// would hear its answer.
pub(super) struct Connection<T> {
    inner: T,
    gone: watch::Sender<bool>,
    unsent: watch::Sender<usize>,
}

/// Something that is being written.
struct Unsent(watch::Sender<usize>);

impl Unsent {
    fn new(unsent: &watch::Sender<usize>) -> Self {
        unsent.send_modify(|count| *count += 1);
        Self(unsent.clone())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Knows whether the client has gone.
#[derive(Clone)]
pub(super) struct Gone(watch::Receiver<bool>);

impl<T> Connection<T> {
    pub(super) fn new(inner: T) -> (Self, Gone) {
        let (gone, receiver) = watch::channel(false);
        let unsent = watch::Sender::new(0);
        let connection = Self {
            inner,
            gone,
            unsent,
        };
        (connection, Gone(receiver))
    }
}

impl Gone {
    /// Returns when the client has gone.
    pub(super) async fn wait(&self) {
        // If the connection is dropped, it is closed as well.
        let _ = self.0.clone().wait_for(|gone| *gone).await;
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Connection<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (unsent, sent) = (Unsent::new(&self.unsent), self.inner.send(item));
        async move {
            let sent = sent.await;
            drop(unsent);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut unsent = self.unsent.subscribe();
        // Nothing is read, and so nothing is lost, if this is given up.
        let _ = unsent.wait_for(|count| *count < MOST_UNSENT).await;
        let received = self.inner.receive().await;
        if received.is_none() {
            self.gone.send_replace(true);
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{Pending, pending},
        io,
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    /// A client that asks and does not read.
    struct ReadsNothing;

    fn message<T: serde::de::DeserializeOwned>(json: &str) -> T {
        serde_json::from_str(json).expect("a message")
    }

    impl Transport<RoleServer> for ReadsNothing {
        type Error = io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleServer>,
        ) -> impl Future<Output = io::Result<()>> + Send + 'static {
            let never: Pending<io::Result<()>> = pending();
            never
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
            Some(message(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#))
        }

        async fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_that_reads_nothing_is_not_asked_for_more() {
        let (mut connection, _gone) = Connection::new(ReadsNothing);
        let mut unread = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..MOST_UNSENT {
            let received = pin!(connection.receive()).poll(&mut cx);
            assert!(received.is_ready(), "after {}", unread.len());
            let answer = message(r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#);
            unread.push(connection.send(answer));
        }
        assert!(pin!(connection.receive()).poll(&mut cx).is_pending());
        unread.pop();
        assert!(pin!(connection.receive()).poll(&mut cx).is_ready());
    }
}
