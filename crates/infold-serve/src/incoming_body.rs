//! The body of a request, in memory or spooled.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

/// The body of a client's request.
#[derive(Clone, Debug)]
pub enum IncomingBody {
    /// A small body.
    InMemory(Bytes),
    /// A large body, in a temporary file without a name.
    Spooled {
        /// The file.
        file: Arc<File>,
        /// How long it is.
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

    /// Says whether it is parsed in less than a millisecond.
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
