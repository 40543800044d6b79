//! One client's connection, and when it has gone.

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::watch;

/// A transport that says when the client has closed it: a call that waits is given up then, for nobody
/// would hear its answer.
pub(super) struct Connection<T> {
    inner: T,
    gone: watch::Sender<bool>,
}

/// Knows whether the client has gone.
#[derive(Clone)]
pub(super) struct Gone(watch::Receiver<bool>);

impl<T> Connection<T> {
    pub(super) fn new(inner: T) -> (Self, Gone) {
        let (gone, receiver) = watch::channel(false);
        (Self { inner, gone }, Gone(receiver))
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
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
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
