//! Connections that can be cut at any moment.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Accepts connections that can be cut.
pub(crate) struct CuttableListener {
    pub(crate) socket: TcpListener,
    /// Turns true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// One connection. It fails when the server stops or when it is cut.
pub(crate) struct Connection {
    socket: TcpStream,
    switch: CutSwitch,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Cuts one connection.
#[derive(Clone, Default)]
pub(crate) struct CutSwitch(Arc<AtomicBool>);

impl CutSwitch {
    /// From now on nothing is sent; the next attempt closes the connection.
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Listener for CuttableListener {
    type Io = Connection;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (socket, _) = Listener::accept(&mut self.socket).await;
        // Only speed depends on it.
        let _ = socket.set_nodelay(true);
        let connection = Connection {
            socket,
            switch: CutSwitch::default(),
            stopped: Box::pin(stopped(self.stopped.clone())),
        };
        (connection, ())
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(())
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for CutSwitch {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().switch.clone()
    }
}

/// Waits until the server stops or is gone.
pub(crate) async fn stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

impl Connection {
    fn intact(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.switch.0.load(Ordering::Acquire) && self.stopped.as_mut().poll(context).is_ready()
        {
            // The future is over; the switch remembers it.
            self.switch.cut();
        }
        if self.switch.0.load(Ordering::Acquire) {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.intact(context)?;
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.intact(context)?;
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.intact(context)?;
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
