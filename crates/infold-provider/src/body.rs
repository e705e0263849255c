//! Request bodies: in memory, or in files that are read while they are sent.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

/// A request body that can be sent more than once.
#[derive(Clone, Debug)]
pub enum RequestBody<'a> {
    /// A file, opened again for each attempt.
    File(&'a Path),
    /// A file whose start is replaced by bytes in memory, because the start contains secrets, which are not written to
    /// disk.
    Spliced {
        /// The bytes that are sent first.
        head: Vec<u8>,
        /// The file that follows.
        file: &'a Path,
        /// The bytes of the file that the head replaces.
        skip: u64,
    },
    /// A small body in memory.
    Bytes(Vec<u8>),
}

/// A part of a body.
#[derive(Clone, Debug)]
pub enum BodyPart {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file.
    File {
        /// The file.
        file: Arc<File>,
        /// The range.
        range: Range<u64>,
    },
}

/// Counts the bytes of a request that were handed to the connection.
#[derive(Clone, Default)]
pub(crate) struct UploadProgress {
    sent: Arc<AtomicU64>,
    /// The length of the body; zero if it is in memory.
    pub total: u64,
}

impl UploadProgress {
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn is_complete(&self) -> bool {
        self.sent() >= self.total
    }
}

impl RequestBody<'_> {
    /// Opens the body to be sent once. A body in memory has no progress.
    pub(crate) async fn open(&self) -> io::Result<(reqwest::Body, UploadProgress)> {
        let (head, path, skip) = match self {
            RequestBody::File(path) => (Bytes::new(), *path, 0),
            RequestBody::Spliced { head, file, skip } => (head.clone().into(), *file, *skip),
            RequestBody::Bytes(bytes) => {
                return Ok((bytes.clone().into(), UploadProgress::default()));
            }
        };
        let path = path.to_owned();
        let open = move || {
            let file = File::open(path)?;
            // A file that has become shorter than the part to skip gives an empty range.
            let end = file.metadata()?.len().max(skip);
            Ok::<_, io::Error>((Arc::new(file), skip..end))
        };
        let (file, range) = spawn_blocking(open).await.map_err(io::Error::other)??;
        let body = PartsBody::new(vec![BodyPart::Bytes(head), BodyPart::File { file, range }]);
        let progress = UploadProgress {
            sent: body.sent.clone(),
            total: body.left,
        };
        Ok((reqwest::Body::wrap(body), progress))
    }
}

impl BodyPart {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            BodyPart::Bytes(bytes) => bytes.len() as u64,
            BodyPart::File { range, .. } => range.end.saturating_sub(range.start),
        }
    }

    /// Says whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Joins parts into a body; returns none if there are no parts.
pub(crate) fn join_parts(mut parts: Vec<BodyPart>) -> Option<reqwest::Body> {
    match parts.as_mut_slice() {
        [] => None,
        [BodyPart::Bytes(bytes)] => Some(std::mem::take(bytes).into()),
        _ => Some(reqwest::Body::wrap(PartsBody::new(parts))),
    }
}

/// How much of a file is read at once: enough to read at the speed of the disk, and little enough to have three chunks
/// in memory, one that is read ahead and those that are not sent yet.
const CHUNK_BYTES: u64 = 512 << 10;

/// A body of known length that reads one chunk of a file ahead while another is sent.
struct PartsBody {
    /// The remaining parts, the next one last.
    parts: Vec<BodyPart>,
    /// The bytes that were not handed to the connection yet.
    left: u64,
    /// The bytes that were.
    sent: Arc<AtomicU64>,
    /// The chunk that is being read by a blocking thread.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl PartsBody {
    fn new(mut parts: Vec<BodyPart>) -> PartsBody {
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        PartsBody {
            left: parts.iter().map(BodyPart::len).sum(),
            parts,
            sent: Arc::default(),
            reading: None,
        }
    }

    /// Starts to read the next chunk, if that is in a file.
    fn read_ahead(&mut self) {
        let Some(BodyPart::File { file, range }) = self.parts.last_mut() else {
            return;
        };
        let start = range.start;
        range.start = range.end.min(start.saturating_add(CHUNK_BYTES));
        let (size, file) = ((range.start - start) as usize, file.clone());
        if range.is_empty() {
            self.parts.pop();
        }
        self.reading = Some(spawn_blocking(move || {
            let mut bytes = vec![0; size];
            let read = file.read_exact_at(&mut bytes, start);
            read.map_err(|error| match error.kind() {
                kind @ io::ErrorKind::UnexpectedEof => {
                    io::Error::new(kind, "the request became shorter while it was sent")
                }
                _ => error,
            })?;
            Ok(bytes.into())
        }));
    }
}

impl http_body::Body for PartsBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        // At the first call nothing has been read ahead.
        if self.reading.is_none() {
            self.read_ahead();
        }
        let chunk = if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(context));
            self.reading = None;
            read.map_err(io::Error::other)??
        } else if let Some(BodyPart::Bytes(bytes)) = self.parts.pop() {
            bytes
        } else {
            return Poll::Ready(None);
        };
        self.read_ahead();
        self.left -= chunk.len() as u64;
        self.sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
