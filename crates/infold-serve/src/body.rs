use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

/// The body of a request, as it came.
#[derive(Clone, Debug)]
pub enum Body {
    /// It is small.
    Held(Bytes),
    /// It lies in a file that has no name.
    Spooled {
        /// The file.
        file: Arc<File>,
        /// How long it is.
        len: u64,
    },
}

impl Body {
    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            Body::Held(bytes) => bytes.len() as u64,
            Body::Spooled { len, .. } => *len,
        }
    }

    /// There is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It is read in less than a millisecond.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self, Body::Held(bytes) if bytes.len() <= 256 << 10)
    }

    /// Reads it from its beginning.
    pub(crate) fn reader(&self) -> BodyReader<'_> {
        BodyReader { body: self, at: 0 }
    }

    /// A part of it, which lies within it.
    pub fn part(&self, range: &Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let size = || io::Error::new(io::ErrorKind::UnexpectedEof, "no such part of the body");
        let start = usize::try_from(range.start).map_err(|_| size())?;
        let end = usize::try_from(range.end).map_err(|_| size())?;
        match self {
            Body::Held(bytes) => Ok(Cow::Borrowed(bytes.get(start..end).ok_or_else(size)?)),
            Body::Spooled { file, len } => {
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

/// A body as it is read.
pub(crate) struct BodyReader<'b> {
    body: &'b Body,
    at: u64,
}

impl io::Read for BodyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (self.body.len() - self.at).min(out.len() as u64);
        let part = self.body.part(&(self.at..self.at + len))?;
        out[..part.len()].copy_from_slice(&part);
        self.at += len;
        Ok(part.len())
    }
}
