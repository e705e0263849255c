//! A request body, read as it comes: however long, little of it is kept.

use std::hash::{DefaultHasher, Hasher};

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;

/// Bodies up to this size are recorded whole.
pub(crate) const RECORDED: usize = 1 << 20;
/// Bodies up to this size are read and checked as a provider would.
pub(crate) const UNDERSTOOD: usize = 8 << 20;
/// How much of the start and of the end of any body is kept.
const ENDS: usize = 4 << 10;

/// The body of a request.
pub(crate) struct Upload {
    pub len: u64,
    pub hash: u64,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// The whole body, unless it is larger than the limit.
    pub whole: Option<Vec<u8>>,
    pub cut: bool,
}

/// Reads a body to its end, or to where the client went away.
pub(crate) async fn read(body: Body) -> Upload {
    let mut chunks = body.into_data_stream();
    let mut hash = DefaultHasher::new();
    let mut upload = Upload {
        len: 0,
        hash: 0,
        head: Vec::new(),
        tail: Vec::new(),
        whole: Some(Vec::new()),
        cut: false,
    };
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => {
                hash.write(&chunk);
                upload.add(&chunk);
            }
            Err(_) => {
                upload.cut = true;
                break;
            }
        }
    }
    upload.hash = hash.finish();
    upload
}

impl Upload {
    fn add(&mut self, chunk: &Bytes) {
        self.len += chunk.len() as u64;
        let room = ENDS - self.head.len();
        self.head.extend_from_slice(&chunk[..room.min(chunk.len())]);
        let last = &chunk[chunk.len().saturating_sub(ENDS)..];
        self.tail.extend_from_slice(last);
        self.tail.drain(..self.tail.len().saturating_sub(ENDS));
        match &mut self.whole {
            Some(whole) if whole.len() + chunk.len() <= UNDERSTOOD => {
                whole.extend_from_slice(chunk);
            }
            whole => *whole = None,
        }
    }
}
