//! Live events and long lists as streams.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use infold_store::LogError;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::reply::Stop;
use crate::live_events::{EventListener, LiveItem};

/// The bytes that are sent at once.
const PIECE: usize = 64 << 10;
/// The pieces that are queued for a reader.
const PIECES: usize = 4;
/// The time limit of a reader for one piece; a slow reader occupies a thread.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval of keep-alive comments to readers of changes.
const ALIVE: Duration = Duration::from_secs(15);

/// A body that is produced while it is sent.
pub struct Stream(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let received = self.0.poll_recv(context);
        received.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The writer's end of a body, for a thread that may block.
pub struct Pipe {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Pipe {
    /// A pipe and its other end.
    pub fn new() -> (Pipe, Stream) {
        let (sender, receiver) = mpsc::channel(PIECES);
        let buffer = Vec::new();
        (Pipe { sender, buffer }, Stream(receiver))
    }

    /// Writes; waits if the reader is slow.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < PIECE {
            Ok(())
        } else {
            self.flush()
        }
    }

    /// Sends the buffered bytes.
    pub fn flush(&mut self) -> Result<(), Stop> {
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        self.send(Ok(piece))
    }

    /// Aborts the body, so that it does not look complete.
    pub fn fail(&mut self, error: &LogError) {
        let _ = self.flush();
        let _ = self.send(Err(io::Error::other(error.to_string())));
    }

    fn send(&self, piece: io::Result<Bytes>) -> Result<(), Stop> {
        let send = self.sender.send_timeout(piece, PATIENCE);
        Handle::current().block_on(send).map_err(|_| Stop::Gone)
    }
}

/// Live events as server-sent events, until the reader disconnects or the server stops.
pub fn watch(mut listener: EventListener, task: Option<Uuid>) -> Stream {
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let mut text = ": infold\n\n".to_owned();
        loop {
            if sender.send(Ok(Bytes::from(text))).await.is_err() {
                return;
            }
            let silence = Instant::now() + ALIVE;
            text = loop {
                let heard = tokio::select! {
                    () = sender.closed() => return,
                    heard = timeout_at(silence, listener.next()) => heard,
                };
                match heard {
                    Err(_) => break ": still here\n\n".to_owned(),
                    Ok(None) => return,
                    Ok(Some(heard)) => {
                        if let Some(event) = event(&heard, task) {
                            break event;
                        }
                    }
                }
            };
        }
    });
    Stream(receiver)
}

fn event(heard: &LiveItem, task: Option<Uuid>) -> Option<String> {
    match heard {
        LiveItem::Missed(count) => Some(format!("event: lagged\ndata: {{\"missed\":{count}}}\n\n")),
        LiveItem::Event(change) if task.is_none_or(|task| task == change.task) => {
            // A line break would end the event, and means nothing in JSON.
            let json = change.json.replace(['\n', '\r'], " ");
            let (task, what) = (change.task, change.name);
            Some(format!(
                "event: {what}\ndata: {{\"task\":\"{task}\",\"change\":{json}}}\n\n"
            ))
        }
        LiveItem::Event(_) => None,
    }
}
