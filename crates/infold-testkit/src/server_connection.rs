//! A connection that can be dropped from the inside.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const RESET: u8 = 2;

/// Cuts the connection that a request came on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cutter(Arc<AtomicU8>);

impl Cutter {
    /// Stops writing; the peer sees an end, or a reset.
    pub fn cut(&self, reset: bool) {
        let how = if reset { RESET } else { CLOSED };
        self.0.store(how, Ordering::SeqCst);
    }

    fn state(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Accepts connections that can be cut.
pub(crate) struct CuttableListener(pub TcpListener);

impl Listener for CuttableListener {
    type Io = ServerConnection;
    type Addr = Cutter;

    async fn accept(&mut self) -> (ServerConnection, Cutter) {
        let (stream, _): (TcpStream, SocketAddr) = Listener::accept(&mut self.0).await;
        // Small events must leave at once; a socket that cannot do that still works.
        let _ = stream.set_nodelay(true);
        let cutter = Cutter::default();
        let connection = ServerConnection {
            stream,
            cutter: cutter.clone(),
        };
        (connection, cutter)
    }

    fn local_addr(&self) -> io::Result<Cutter> {
        Ok(Cutter::default())
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Cutter {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Cutter {
        stream.remote_addr().clone()
    }
}

/// A connection.
pub(crate) struct ServerConnection {
    stream: TcpStream,
    cutter: Cutter,
}

impl ServerConnection {
    fn check(&self) -> io::Result<()> {
        match self.cutter.state() {
            OPEN => Ok(()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        if self.cutter.state() == RESET {
            // Without it the peer sees a plain end, which is a cut as well.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for ServerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ServerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
