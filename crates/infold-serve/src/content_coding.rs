//! Bodies without the content coding they were sent in.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write as _};

use brotli_decompressor::{Decompressor, DecompressorWriter};
use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A content coding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The largest window that a zstd frame may have as a content coding (RFC 9659): memory is
/// reserved for it before a single byte is decoded.
const MAX_ZSTD_WINDOW_BYTES: u64 = 8 << 20;

/// The bytes of a coded body that are read at a time.
const READ_BYTES: usize = 64 << 10;

impl ContentCoding {
    /// Returns the coding that headers name; `None` if it is unknown.
    pub fn of(headers: &HeaderMap) -> Option<ContentCoding> {
        let name = headers.get(CONTENT_ENCODING).map(|it| it.as_bytes());
        let name = name.unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match name.as_slice() {
            b"" | b"identity" => Some(ContentCoding::Identity),
            b"gzip" | b"x-gzip" => Some(ContentCoding::Gzip),
            b"deflate" => Some(ContentCoding::Deflate),
            b"br" => Some(ContentCoding::Brotli),
            b"zstd" => Some(ContentCoding::Zstd),
            _ => None,
        }
    }

    /// Returns a reader of the decoded body. The caller limits how much is read.
    pub fn decode<'r>(self, body: impl Read + 'r) -> Box<dyn Read + 'r> {
        match self {
            ContentCoding::Identity => Box::new(body),
            ContentCoding::Gzip => Box::new(MultiGzDecoder::new(body)),
            ContentCoding::Deflate => Box::new(DeflateReader::Unread(Some(body))),
            ContentCoding::Brotli => Box::new(Decompressor::new(body, READ_BYTES)),
            ContentCoding::Zstd => Box::new(ZstdReader::new(body)),
        }
    }
}

/// Decodes a body as it comes.
pub(crate) enum StreamDecoder {
    Identity,
    Gzip(Box<write::MultiGzDecoder<Vec<u8>>>),
    Deflate(Box<DeflateWriter>),
    Brotli(Box<DecompressorWriter<Vec<u8>>>),
    /// All bytes so far: the decoder returns the last part of a frame only at its end.
    Zstd(Vec<u8>),
}

/// The limit of a zstd body, both coded and decoded.
const MAX_COLLECTED_BYTES: u64 = infold_wire::reply::MAX_REPLY_BYTES;

impl StreamDecoder {
    pub fn new(coding: ContentCoding) -> StreamDecoder {
        match coding {
            ContentCoding::Identity => StreamDecoder::Identity,
            ContentCoding::Gzip => {
                StreamDecoder::Gzip(Box::new(write::MultiGzDecoder::new(Vec::new())))
            }
            ContentCoding::Deflate => {
                StreamDecoder::Deflate(Box::new(DeflateWriter::Unread(Vec::new())))
            }
            ContentCoding::Brotli => {
                StreamDecoder::Brotli(Box::new(DecompressorWriter::new(Vec::new(), READ_BYTES)))
            }
            ContentCoding::Zstd => StreamDecoder::Zstd(Vec::new()),
        }
    }

    /// Says whether decoded bytes are returned as coded ones arrive, and not only at the end.
    pub fn flows(&self) -> bool {
        !matches!(self, StreamDecoder::Zstd(_))
    }

    /// Takes more of the body; returns as much of it decoded as can be had.
    pub fn push(&mut self, coded: &Bytes) -> io::Result<Bytes> {
        let decoded = match self {
            StreamDecoder::Identity => return Ok(coded.clone()),
            StreamDecoder::Gzip(decoder) => {
                decoder.write_all(coded)?;
                decoder.flush()?;
                std::mem::take(decoder.get_mut())
            }
            StreamDecoder::Deflate(decoder) => decoder.push(coded)?,
            StreamDecoder::Brotli(decoder) => {
                decoder.write_all(coded)?;
                decoder.flush()?;
                std::mem::take(decoder.get_mut())
            }
            StreamDecoder::Zstd(all) => {
                all.extend_from_slice(coded);
                if all.len() as u64 > MAX_COLLECTED_BYTES {
                    return Err(io::Error::other("it is too large"));
                }
                Vec::new()
            }
        };
        Ok(decoded.into())
    }

    /// The body has ended: returns what is left of it.
    pub fn finish(&mut self) -> io::Result<Bytes> {
        let StreamDecoder::Zstd(all) = self else {
            return Ok(Bytes::new());
        };
        let all = std::mem::take(all);
        let mut plain = Vec::new();
        let decoder = ContentCoding::Zstd.decode(&all[..]);
        let mut decoder = decoder.take(MAX_COLLECTED_BYTES + 1);
        decoder.read_to_end(&mut plain)?;
        if plain.len() as u64 > MAX_COLLECTED_BYTES {
            return Err(io::Error::other("it is too large"));
        }
        Ok(plain.into())
    }
}

impl fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamDecoder::Identity => "Identity",
            StreamDecoder::Gzip(_) => "Gzip",
            StreamDecoder::Deflate(_) => "Deflate",
            StreamDecoder::Brotli(_) => "Brotli",
            StreamDecoder::Zstd(_) => "Zstd",
        })
    }
}

/// Decompresses the beginning of a body: as much as can be had of so many bytes.
pub(crate) fn decode_beginning(headers: &HeaderMap, bytes: &Bytes, max_bytes: usize) -> Bytes {
    let coding = match ContentCoding::of(headers) {
        None | Some(ContentCoding::Identity) => return bytes.clone(),
        Some(coding) => coding,
    };
    let mut plain = Vec::new();
    let decoder = coding.decode(&bytes[..]);
    // A part of it is better than nothing.
    let _ = decoder.take(max_bytes as u64).read_to_end(&mut plain);
    plain.into()
}

/// Decodes a body that is called deflate as it comes: with the header of zlib, as it should be, or without.
pub(crate) enum DeflateWriter {
    /// Its first bytes, too few to tell.
    Unread(Vec<u8>),
    Zlib(write::ZlibDecoder<Vec<u8>>),
    Raw(write::DeflateDecoder<Vec<u8>>),
}

/// By so many bytes the header of zlib is known.
const ZLIB_HEADER_BYTES: usize = 2;

/// Says whether a body begins with the header of zlib: its method is deflate, and its check sum is right. No encoder begins raw
/// deflate so: that would be a block without compression whose padding is not zero.
fn has_zlib_header(start: &[u8]) -> bool {
    matches!(start, [method, flags, ..]
        if method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0)
}

impl DeflateWriter {
    fn push(&mut self, coded: &[u8]) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        if let DeflateWriter::Unread(read) = self {
            read.extend_from_slice(coded);
            if read.len() < ZLIB_HEADER_BYTES {
                return Ok(Vec::new());
            }
            start = std::mem::take(read);
            *self = if has_zlib_header(&start) {
                DeflateWriter::Zlib(write::ZlibDecoder::new(Vec::new()))
            } else {
                DeflateWriter::Raw(write::DeflateDecoder::new(Vec::new()))
            };
        }
        let coded = if start.is_empty() { coded } else { &start };
        match self {
            DeflateWriter::Unread(_) => Ok(Vec::new()),
            DeflateWriter::Zlib(decoder) => {
                decoder.write_all(coded)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            DeflateWriter::Raw(decoder) => {
                decoder.write_all(coded)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

/// The same for a body that can be read.
enum DeflateReader<R> {
    /// None while its first bytes are read.
    Unread(Option<R>),
    Zlib(ZlibDecoder<ReadBehind<R>>),
    Raw(DeflateDecoder<ReadBehind<R>>),
}

/// A body, behind its first bytes.
type ReadBehind<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

impl<R: Read> Read for DeflateReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let DeflateReader::Unread(body) = self {
            let Some(mut body) = body.take() else {
                return Ok(0);
            };
            let mut start = Vec::new();
            body.by_ref()
                .take(ZLIB_HEADER_BYTES as u64)
                .read_to_end(&mut start)?;
            let is_zlib = has_zlib_header(&start);
            let body = io::Cursor::new(start).chain(body);
            *self = if is_zlib {
                DeflateReader::Zlib(ZlibDecoder::new(body))
            } else {
                DeflateReader::Raw(DeflateDecoder::new(body))
            };
        }
        match self {
            DeflateReader::Unread(_) => Ok(0),
            DeflateReader::Zlib(decoder) => decoder.read(out),
            DeflateReader::Raw(decoder) => decoder.read(out),
        }
    }
}

/// Decodes all frames of a zstd stream; the decoder itself knows one at a time.
struct ZstdReader<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> ZstdReader<R> {
    fn new(source: R) -> ZstdReader<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_ZSTD_WINDOW_BYTES);
        ZstdReader {
            source: BufReader::with_capacity(READ_BYTES, source),
            decoder,
            in_frame: false,
        }
    }

    fn start_frame(&mut self) -> io::Result<()> {
        use FrameDecoderError::ReadFrameHeaderError as Header;
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.in_frame = true,
            Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                let mut skipped = self.source.by_ref().take(length.into());
                io::copy(&mut skipped, &mut io::sink())?;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame {
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    let decoded = self.decoder.decode_blocks(&mut self.source, one);
                    decoded.map_err(io::Error::other)?;
                }
                let read = self.decoder.read(out)?;
                if read > 0 || out.is_empty() {
                    return Ok(read);
                }
                self.in_frame = false;
            }
            if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.start_frame()?;
        }
    }
}
