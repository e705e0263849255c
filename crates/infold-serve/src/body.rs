//! Request bodies: read within limits, in memory or spooled, and assembled from parts of the client's bytes.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use infold_provider::BodyPart;
use infold_wire::envelope::Envelope;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::ServerLimits;
use crate::content_coding::ContentCoding;

/// The body of a client's request.
#[derive(Clone, Debug)]
pub enum IncomingBody {
    /// A small body.
    InMemory(Bytes),
    /// A large body, in a temporary file without a name.
    Spooled {
        /// The file.
        file: Arc<File>,
        /// The length in bytes.
        len: u64,
    },
}

impl IncomingBody {
    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            IncomingBody::InMemory(bytes) => bytes.len() as u64,
            IncomingBody::Spooled { len, .. } => *len,
        }
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says whether parsing takes less than a millisecond.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self, IncomingBody::InMemory(bytes) if bytes.len() <= 256 << 10)
    }

    /// Returns a reader of all of it.
    pub(crate) fn reader(&self) -> IncomingBodyReader<'_> {
        IncomingBodyReader { body: self, at: 0 }
    }

    /// Returns a part of it.
    pub fn part(&self, range: &Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let size = || io::Error::new(io::ErrorKind::UnexpectedEof, "no such part of the body");
        let start = usize::try_from(range.start).map_err(|_| size())?;
        let end = usize::try_from(range.end).map_err(|_| size())?;
        match self {
            IncomingBody::InMemory(bytes) => {
                Ok(Cow::Borrowed(bytes.get(start..end).ok_or_else(size)?))
            }
            IncomingBody::Spooled { file, len } => {
                if range.end > *len || start > end {
                    return Err(size());
                }
                let mut part = vec![0; end - start];
                file.read_exact_at(&mut part, range.start)?;
                Ok(Cow::Owned(part))
            }
        }
    }
}

/// Reads a body.
pub(crate) struct IncomingBodyReader<'b> {
    body: &'b IncomingBody,
    at: u64,
}

impl io::Read for IncomingBodyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (self.body.len() - self.at).min(out.len() as u64);
        let part = self.body.part(&(self.at..self.at + len))?;
        out[..part.len()].copy_from_slice(&part);
        self.at += len;
        Ok(part.len())
    }
}

/// A request body to send: parts of the client's body, and inserted bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingBody {
    parts: Vec<OutgoingPart>,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingPart {
    /// A range of the client's body.
    Client(Range<u64>),
    /// Inserted bytes.
    Inserted(Bytes),
}

impl OutgoingBody {
    /// Returns the client's body as it came.
    pub fn untouched(body: &IncomingBody) -> OutgoingBody {
        OutgoingBody {
            parts: vec![OutgoingPart::Client(0..body.len())],
        }
    }

    /// Joins parts; adjacent ranges become one.
    pub fn new(parts: impl IntoIterator<Item = OutgoingPart>) -> OutgoingBody {
        let mut all: Vec<OutgoingPart> = Vec::new();
        for part in parts {
            match (all.last_mut(), part) {
                (_, part) if part.is_empty() => {}
                (Some(OutgoingPart::Client(last)), OutgoingPart::Client(next))
                    if last.end == next.start =>
                {
                    last.end = next.end;
                }
                (_, part) => all.push(part),
            }
        }
        OutgoingBody { parts: all }
    }

    /// Puts bytes in the place of a range of the client's body, if that is a part of it.
    pub(crate) fn replace(self, range: Range<u64>, with: Bytes) -> OutgoingBody {
        let mut with = Some(with);
        let mut parts = Vec::with_capacity(self.parts.len() + 2);
        for part in self.parts {
            match part {
                OutgoingPart::Client(client)
                    if with.is_some() && client.start <= range.start && range.end <= client.end =>
                {
                    parts.push(OutgoingPart::Client(client.start..range.start));
                    parts.extend(with.take().map(OutgoingPart::Inserted));
                    parts.push(OutgoingPart::Client(range.end..client.end));
                }
                part => parts.push(part),
            }
        }
        OutgoingBody::new(parts)
    }

    /// Adds a member behind the last value of the client's request.
    pub(crate) fn add_member(self, envelope: &Envelope, name: &str, value: &[u8]) -> OutgoingBody {
        let members = envelope.members.iter().map(|(_, range)| range.end);
        // There is at least the list of messages.
        let end = members.fold(envelope.list.end, u64::max);
        let name = format!(",{}:", infold_wire::quote(name));
        self.replace(end..end, [name.as_bytes(), value].concat().into())
    }

    /// Returns its parts in order.
    pub fn parts(&self) -> &[OutgoingPart] {
        &self.parts
    }

    /// Returns the bytes to send, given the client's body.
    pub(crate) fn bytes_of(&self, body: &IncomingBody) -> Vec<BodyPart> {
        let part = |piece: &OutgoingPart| match (piece, body) {
            (OutgoingPart::Inserted(bytes), _) => BodyPart::Bytes(bytes.clone()),
            (OutgoingPart::Client(range), IncomingBody::InMemory(bytes)) => {
                let len = bytes.len() as u64;
                let (start, end) = (range.start.min(len), range.end.min(len));
                BodyPart::Bytes(bytes.slice(start as usize..end as usize))
            }
            (OutgoingPart::Client(range), IncomingBody::Spooled { file, .. }) => BodyPart::File {
                file: Arc::clone(file),
                range: range.clone(),
            },
        };
        let pieces = self.parts.iter().filter(|piece| !piece.is_empty());
        pieces.map(part).collect()
    }

    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(OutgoingPart::len).sum()
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl OutgoingPart {
    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            OutgoingPart::Client(range) => range.end.saturating_sub(range.start),
            OutgoingPart::Inserted(bytes) => bytes.len() as u64,
        }
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason that a body was refused.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The body exceeds this number of bytes.
    TooLarge(u64),
    /// No bytes arrived for too long.
    Slow,
    /// The client went away.
    Broken(String),
    /// The body could not be written to the spool file.
    Disk(io::Error),
}

/// Reads a body; a large one goes to a file that has no name.
pub(crate) async fn read_body(
    mut body: Incoming,
    limits: &ServerLimits,
) -> Result<IncomingBody, BodyError> {
    let said = body.size_hint().exact();
    if let Some(said) = said.filter(|said| *said > limits.body) {
        return Err(BodyError::TooLarge(said));
    }
    let mut spool = Spool::new(limits);
    // Reserve for a usual body only: a client may announce more than it sends.
    let usual = said.unwrap_or(0).min(128 << 10);
    spool.held.reserve(usual as usize);
    let end = Instant::now() + limits.body_time;
    loop {
        let until = end.min(Instant::now() + limits.body_idle);
        let frame = timeout_at(until, body.frame()).await;
        let Some(frame) = frame.map_err(|_| BodyError::Slow)? else {
            break;
        };
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            // A body that arrived in one piece is used without a copy.
            let is_whole = spool.len() == 0 && Some(data.len() as u64) == said;
            if is_whole && data.len() <= limits.spool {
                return Ok(IncomingBody::InMemory(data));
            }
            spool.push(&data).map_err(BodyError::TooLarge)?;
            if spool.is_full() {
                spool = spool.spilled().await?;
            }
        }
    }
    if spool.file.is_some() {
        spool = spool.spilled().await?;
    }
    spool.end().map_err(BodyError::Disk)
}

/// A body as it grows: in memory at first, then in a file.
struct Spool {
    held: BytesMut,
    file: Option<(File, u64)>,
    max_bytes: u64,
    max_held: usize,
}

impl Spool {
    fn new(limits: &ServerLimits) -> Spool {
        Spool {
            held: BytesMut::new(),
            file: None,
            max_bytes: limits.body,
            max_held: limits.spool,
        }
    }

    fn len(&self) -> u64 {
        let written = self.file.as_ref().map_or(0, |(_, len)| *len);
        written + self.held.len() as u64
    }

    fn is_full(&self) -> bool {
        self.held.len() > self.max_held
    }

    /// Adds bytes; fails with the resulting length if that is too large.
    fn push(&mut self, data: &[u8]) -> Result<(), u64> {
        let len = self.len() + data.len() as u64;
        if len > self.max_bytes {
            return Err(len);
        }
        self.held.extend_from_slice(data);
        Ok(())
    }

    /// Moves the bytes in memory to the file.
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

    /// Does the same on a thread that may block.
    async fn spilled(mut self) -> Result<Spool, BodyError> {
        let spilled = spawn_blocking(move || self.spill().map(|()| self));
        let spilled = spilled.await.map_err(io::Error::other);
        spilled.and_then(|it| it).map_err(BodyError::Disk)
    }

    fn end(mut self) -> io::Result<IncomingBody> {
        if self.file.is_some() && !self.held.is_empty() {
            self.spill()?;
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

/// Decompresses a body; returns none if its coding is unknown.
pub(crate) fn decode_body(
    headers: &HeaderMap,
    body: &IncomingBody,
    limits: &ServerLimits,
) -> io::Result<Option<IncomingBody>> {
    let coding = match ContentCoding::of(headers) {
        None => return Ok(None),
        Some(ContentCoding::Identity) => return Ok(Some(body.clone())),
        Some(coding) => coding,
    };
    let mut spool = Spool::new(limits);
    io::copy(&mut coding.decode(body.reader()), &mut spool)?;
    spool.end().map(Some)
}

/// Receives decompressed bytes: a small body can expand to a very large one.
impl io::Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes)
            .map_err(|_| io::Error::other("it becomes too large when it is unpacked"))?;
        if self.is_full() {
            self.spill()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
