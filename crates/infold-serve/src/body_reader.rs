//! Reads request bodies within limits: small ones into memory, large ones into a spool.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::content_coding::ContentCoding;
use crate::{IncomingBody, Limits};

/// Why a body was not taken.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It has more bytes than it may.
    TooLarge(u64),
    /// It did not go on for too long.
    Slow,
    /// The client went away.
    Broken(String),
    /// It could not be kept.
    Disk(io::Error),
}

/// Reads a body; a large one goes to a file that has no name.
pub(crate) async fn read_body(
    mut body: Incoming,
    limits: &Limits,
) -> Result<IncomingBody, BodyError> {
    let said = body.size_hint().exact();
    if let Some(said) = said.filter(|said| *said > limits.body) {
        return Err(BodyError::TooLarge(said));
    }
    let mut spool = Spool::new(limits);
    // Enough for what is usual; what somebody says of a body is not yet a body.
    spool
        .held
        .reserve(said.unwrap_or(0).min(128 << 10) as usize);
    let end = Instant::now() + limits.body_time;
    loop {
        let until = end.min(Instant::now() + limits.body_idle);
        let frame = timeout_at(until, body.frame()).await;
        let Some(frame) = frame.map_err(|_| BodyError::Slow)? else {
            break;
        };
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            // A body that came in one piece is taken as it is.
            if spool.len() == 0 && Some(data.len() as u64) == said && !spool.is_full(&data) {
                return Ok(IncomingBody::InMemory(data));
            }
            spool.push(data).await?;
        }
    }
    spool.end().await
}

/// A body as it grows.
struct Spool<'l> {
    limits: &'l Limits,
    held: BytesMut,
    file: Option<(File, u64)>,
}

impl Spool<'_> {
    fn new(limits: &Limits) -> Spool<'_> {
        Spool {
            limits,
            held: BytesMut::new(),
            file: None,
        }
    }

    fn len(&self) -> u64 {
        let written = self.file.as_ref().map_or(0, |(_, len)| *len);
        written + self.held.len() as u64
    }

    fn is_full(&self, more: &Bytes) -> bool {
        self.held.len() + more.len() > self.limits.spool
    }

    async fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        let len = self.len() + data.len() as u64;
        if len > self.limits.body {
            return Err(BodyError::TooLarge(len));
        }
        let full = self.is_full(&data);
        self.held.extend_from_slice(&data);
        if full {
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), BodyError> {
        let (piece, file) = (self.held.split().freeze(), self.file.take());
        let written = spawn_blocking(move || {
            let (mut file, len) = match file {
                Some(file) => file,
                None => (tempfile::tempfile()?, 0),
            };
            file.write_all(&piece)?;
            Ok::<_, io::Error>((file, len + piece.len() as u64))
        });
        let written = written.await.map_err(io::Error::other).and_then(|it| it);
        self.file = Some(written.map_err(BodyError::Disk)?);
        Ok(())
    }

    async fn end(mut self) -> Result<IncomingBody, BodyError> {
        if self.file.is_some() && !self.held.is_empty() {
            self.write().await?;
        }
        Ok(match self.file {
            None => IncomingBody::InMemory(self.held.freeze()),
            Some((file, len)) => IncomingBody::Spooled {
                file: Arc::new(file),
                len,
            },
        })
    }
}

/// What a compressed body says; nothing if it is compressed in a way that is not known.
pub(crate) fn decode_body(
    headers: &HeaderMap,
    body: &IncomingBody,
    limits: &Limits,
) -> io::Result<Option<IncomingBody>> {
    let coding = match ContentCoding::of(headers) {
        None => return Ok(None),
        Some(ContentCoding::Identity) => return Ok(Some(body.clone())),
        Some(coding) => coding,
    };
    let mut sink = Sink {
        held: Vec::new(),
        file: None,
        limits: limits.clone(),
    };
    io::copy(&mut coding.decode(body.reader()), &mut sink)?;
    sink.end().map(Some)
}

/// Where a body goes that grows while it is read: a small one can stand for a very large one.
struct Sink {
    held: Vec<u8>,
    file: Option<(File, u64)>,
    limits: Limits,
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.as_ref().map_or(0, |(_, len)| *len);
        if written + (self.held.len() + bytes.len()) as u64 > self.limits.body {
            return Err(io::Error::other("it becomes too large when it is unpacked"));
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > self.limits.spool {
            self.spill()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn spill(&mut self) -> io::Result<()> {
        let (file, len) = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((tempfile::tempfile()?, 0)),
        };
        file.write_all(&self.held)?;
        *len += self.held.len() as u64;
        self.held.clear();
        Ok(())
    }

    fn end(mut self) -> io::Result<IncomingBody> {
        if self.file.is_some() {
            self.spill()?;
        }
        Ok(match self.file {
            None => IncomingBody::InMemory(self.held.into()),
            Some((file, len)) => IncomingBody::Spooled {
                file: Arc::new(file),
                len,
            },
        })
    }
}
