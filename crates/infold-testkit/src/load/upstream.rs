//! A model server that answers immediately, for load tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::connection::{LoadConnection, find};
use super::reply::{self, FixedReply};

/// A model server that says one thing, at once: it must not be what is slow.
#[derive(Clone, clap::Args)]
pub struct LoadUpstream {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How many pieces its reply has
    #[arg(long, default_value_t = reply::PIECES)]
    pieces: usize,
    /// Milliseconds between two pieces of a stream
    #[arg(long, default_value_t = 0)]
    pause: u64,
}

impl LoadUpstream {
    /// Serves until it is stopped; `ready` is told where.
    pub fn run(self, ready: impl FnOnce(&str) -> Result<(), String>) -> Result<(), String> {
        let port = self.port;
        let at = |error: io::Error| format!("port {port}: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(at)?;
        runtime.block_on(async {
            let (listener, address) = self.listen().map_err(at)?;
            ready(&format!("ready at http://{address}\n"))?;
            self.serve(listener).await;
            Ok(())
        })
    }

    pub(super) fn listen(&self) -> io::Result<(TcpListener, SocketAddr)> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, self.port).into())?;
        // The 128 callers that may wait by default are fewer than call at once; the others
        // would try again after a second.
        let listener = socket.listen(4_096)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    }

    pub(super) fn serve(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let answers = Arc::new(Answers::new(self));
        async move {
            loop {
                // A caller that left while it waited is no reason to stop.
                let Ok((socket, _)) = listener.accept().await else {
                    continue;
                };
                let answers = Arc::clone(&answers);
                // A broken connection needs no report: the other side counts the failure.
                tokio::spawn(async move { answers.serve(socket).await.ok() });
            }
        }
    }
}

/// The bytes of both answers, made once.
struct Answers {
    whole: Vec<u8>,
    /// The parts that are written one at a time, as a model writes its tokens.
    stream: Vec<Vec<u8>>,
    pause: Duration,
}

impl Answers {
    fn new(upstream: &LoadUpstream) -> Answers {
        let reply = FixedReply::of(upstream.pieces);
        let whole = reply.whole();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            whole.len()
        );
        let mut stream: Vec<_> = reply.events().iter().map(|event| chunk(event)).collect();
        let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
        stream[0].splice(..0, begin.bytes());
        stream.push(chunk(b""));
        Answers {
            whole: [head.as_bytes(), whole].concat(),
            stream,
            pause: Duration::from_millis(upstream.pause),
        }
    }

    async fn serve(&self, socket: TcpStream) -> io::Result<()> {
        let mut line = LoadConnection::new(socket)?;
        while let Some(message) = line.read().await? {
            if asks_for_stream(message.body()) {
                for (number, part) in self.stream.iter().enumerate() {
                    if number > 0 && !self.pause.is_zero() {
                        tokio::time::sleep(self.pause).await;
                    }
                    line.write(part).await?;
                }
            } else {
                line.write(&self.whole).await?
            }
        }
        Ok(())
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let size = format!("{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat()
}

/// Reads both ends of the body only: rewritten bodies have the other members there.
fn asks_for_stream(body: &[u8]) -> bool {
    const END: usize = 512;
    let says = |part: &[u8]| {
        let sign = &b"\"stream\":"[..];
        let rest = find(part, sign).map(|at| part[at + sign.len()..].trim_ascii_start());
        rest.is_some_and(|rest| rest.starts_with(b"true"))
    };
    says(&body[..body.len().min(END)]) || says(&body[body.len().saturating_sub(END)..])
}

#[cfg(test)]
impl LoadUpstream {
    pub(super) fn new(port: u16, pieces: usize, pause: u64) -> LoadUpstream {
        LoadUpstream {
            port,
            pieces,
            pause,
        }
    }
}
