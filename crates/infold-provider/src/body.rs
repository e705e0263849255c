use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// A request that lies in a file, or is small.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// Read while it is sent; each time it is sent it is opened again.
    File(&'a Path),
    /// As a file, but with another beginning: what must not lie on a disk is not in the file.
    Spliced {
        /// What is sent first.
        head: Vec<u8>,
        /// What follows it, from here on.
        file: &'a Path,
        /// How much of the file the head stands for.
        skip: u64,
    },
    /// Held in memory.
    Bytes(Vec<u8>),
}

/// A request that can be sent more than once.
#[derive(Clone)]
pub(crate) enum Source {
    File {
        head: Bytes,
        path: PathBuf,
        skip: u64,
    },
    Bytes(Bytes),
}

impl From<Body<'_>> for Source {
    fn from(body: Body<'_>) -> Source {
        match body {
            Body::File(path) => Source::File {
                head: Bytes::new(),
                path: path.to_owned(),
                skip: 0,
            },
            Body::Spliced { head, file, skip } => Source::File {
                head: head.into(),
                path: file.to_owned(),
                skip,
            },
            Body::Bytes(bytes) => Source::Bytes(bytes.into()),
        }
    }
}

/// How much of a request was handed over to be sent.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    sent: Arc<AtomicU64>,
    total: u64,
}

impl Progress {
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn is_complete(&self) -> bool {
        self.sent() >= self.total
    }
}

impl Source {
    /// Opens it to be sent once.
    pub async fn open(&self) -> io::Result<(reqwest::Body, Progress)> {
        let (head, path, skip) = match self {
            Source::File { head, path, skip } => (head.clone(), path.clone(), *skip),
            Source::Bytes(bytes) => return Ok((bytes.clone().into(), Progress::default())),
        };
        let open = move || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(skip))?;
            let rest = file.metadata()?.len().saturating_sub(skip);
            Ok::<_, io::Error>((file, rest))
        };
        let (file, rest) = tokio::task::spawn_blocking(open)
            .await
            .map_err(io::Error::other)??;
        let total = head.len() as u64 + rest;
        let (sender, pieces) = mpsc::channel(1);
        // Reads one piece ahead while another is sent. It ends with the file, or when
        // nobody wants the pieces any more.
        tokio::task::spawn_blocking(move || {
            if head.is_empty() || sender.blocking_send(Ok(head)).is_ok() {
                read(file, rest, &sender);
            }
        });
        let sent = Arc::new(AtomicU64::new(0));
        let body = FileBody {
            pieces,
            left: total,
            sent: sent.clone(),
        };
        Ok((reqwest::Body::wrap(body), Progress { sent, total }))
    }
}

/// Large enough that a copy is no slower than the disk, small enough to hold three.
const PIECE: u64 = 512 << 10;

fn read(mut file: File, total: u64, pieces: &mpsc::Sender<io::Result<Bytes>>) {
    let mut left = total;
    while left > 0 {
        let size = left.min(PIECE);
        let mut piece = Vec::with_capacity(size as usize);
        let read = (&mut file).take(size).read_to_end(&mut piece);
        let piece = match read {
            Ok(read) if read as u64 == size => Ok(Bytes::from(piece)),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the request became shorter while it was sent",
            )),
            Err(error) => Err(error),
        };
        left = if piece.is_ok() { left - size } else { 0 };
        if pieces.blocking_send(piece).is_err() {
            return;
        }
    }
}

/// A file on its way, with a length that is known before.
struct FileBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
    sent: Arc<AtomicU64>,
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pieces.poll_recv(context));
        Poll::Ready(piece.map(|piece| {
            let piece = piece?;
            let size = piece.len() as u64;
            self.left -= size;
            self.sent.fetch_add(size, Ordering::Relaxed);
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
