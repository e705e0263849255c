//! Detects whether a reply is a stream, by the first bytes of its body and not only by its content type, which some servers
//! set wrongly. Converts a reply between the forms.
//!
//! A reply with look-ups consists of several replies of the provider. The client must get all of them in the form of the first.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use infold_provider::{ForwardError, ForwardResponse, ResponseBody};
use infold_translate::{stream_reply, write_reply};
use infold_wire::reply::MAX_REPLY_BYTES;
use infold_wire::{Delivery, Json, JsonKind, Reply, ReplyReader, Wire};

use super::rounds::FollowUpError;
use crate::proxy::has_stream_type;

/// The form of the body of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// Server-sent events, or lines of JSON.
    Stream,
    /// One JSON object.
    Whole,
    /// One JSON array of chunks, which Gemini sends for a stream without `alt=sse`.
    List,
}

/// The kind of a body, as its first bytes show it.
enum StartKind {
    Json,
    /// Server-sent events.
    Events,
    /// Neither, or too few bytes to decide.
    Other,
}

/// The beginnings of lines in a stream of server-sent events.
const EVENT_STARTS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// The number of bytes, after white space, that are enough to recognise a stream of events: the longest of [`EVENT_STARTS`].
const MAX_START_BYTES: usize = 6;

impl ReplyForm {
    /// Writes a reply in this form.
    pub fn write(self, wire: Wire, reply: &Reply) -> Vec<u8> {
        match self {
            ReplyForm::Stream => stream_reply(wire, reply, usize::MAX).concat(),
            ReplyForm::Whole => write_reply(wire, reply),
            ReplyForm::List => [b"[", &*write_reply(wire, reply), b"]"].concat(),
        }
    }
}

/// Returns an answer and whether its body is a stream. The body of a stream is still unread, apart from a beginning that the
/// returned body repeats; any other body was read as a whole.
pub(super) async fn open(
    wire: Wire,
    mut answer: ForwardResponse,
) -> Result<(ForwardResponse, bool), FollowUpError> {
    let has_stream_type = has_stream_type(&answer.headers);
    let (read, is_open, failed) = read_start(&mut answer.body, has_stream_type).await;
    let is_stream = match StartKind::of(&read) {
        // Only Ollama streams lines of JSON; for the other wires, JSON is a whole reply.
        StartKind::Json => wire == Wire::Ollama && has_stream_type,
        StartKind::Events => true,
        StartKind::Other => has_stream_type,
    };
    answer.body = ResponseBody::new(ReadBody {
        read: Some(read).filter(|read| !read.is_empty()),
        failed,
        rest: is_open.then_some(answer.body),
    });
    if is_stream {
        // The length of the body changes when the look-ups are removed.
        answer.headers.remove(CONTENT_LENGTH);
        return Ok((answer, true));
    }
    let body = read_whole(answer.body).await?;
    // A stream of Ollama's whose content type is wrong.
    let is_stream = wire == Wire::Ollama && has_many_lines(&body);
    answer.headers.remove(CONTENT_LENGTH);
    answer.body = body.into();
    Ok((answer, is_stream))
}

/// Returns an answer in the form of the replies before it, converted if the provider sent it in another one.
pub(super) async fn in_form(
    wire: Wire,
    answer: ForwardResponse,
    form: ReplyForm,
) -> Result<ForwardResponse, FollowUpError> {
    let (mut answer, is_stream) = open(wire, without_byte_order_mark(answer).await).await?;
    if is_stream == (form == ReplyForm::Stream) {
        return Ok(answer);
    }
    let body = read_whole(answer.body).await?;
    let delivery = if is_stream {
        Delivery::Stream
    } else {
        Delivery::Whole
    };
    let mut reader = ReplyReader::new(wire, delivery);
    let read = reader.push(&body, &mut |_| {});
    // A body that cannot be read as a reply is passed on unchanged: the reader that filters look-ups reports the error.
    answer.body = match read.and_then(|()| reader.finish()) {
        Ok(reply) => Bytes::from(form.write(wire, &reply)).into(),
        Err(_) => body.into(),
    };
    answer.headers.remove(CONTENT_LENGTH);
    Ok(answer)
}

/// Returns an answer without white space and a UTF-8 byte order mark at its beginning. The client's body has begun already,
/// so the mark would end up in its middle.
async fn without_byte_order_mark(mut answer: ForwardResponse) -> ForwardResponse {
    let (read, is_open, failed) = read_start(&mut answer.body, true).await;
    let skipped = read.len() - skip_blank(&read).len();
    answer.body = ResponseBody::new(ReadBody {
        read: Some(read.slice(skipped..)).filter(|read| !read.is_empty()),
        failed,
        rest: is_open.then_some(answer.body),
    });
    answer
}

/// Reads a body until its form is clear; returns the bytes, whether more may follow, and the error if it broke off.
async fn read_start(
    body: &mut ResponseBody,
    has_stream_type: bool,
) -> (Bytes, bool, Option<ForwardError>) {
    let mut read = BytesMut::new();
    loop {
        let start = skip_blank(&read);
        let is_known = match StartKind::of(&read) {
            StartKind::Json | StartKind::Events => true,
            StartKind::Other => {
                has_stream_type && !start.is_empty() || start.len() >= MAX_START_BYTES
            }
        };
        if is_known || read.len() as u64 > MAX_REPLY_BYTES {
            return (read.freeze(), true, None);
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&data);
                }
            }
            Some(Err(error)) => return (read.freeze(), false, Some(error)),
            None => return (read.freeze(), false, None),
        }
    }
}

impl StartKind {
    fn of(read: &[u8]) -> StartKind {
        let start = skip_blank(read);
        if matches!(start.first(), Some(b'{' | b'[')) {
            return StartKind::Json;
        }
        if EVENT_STARTS.iter().any(|it| start.starts_with(it)) {
            return StartKind::Events;
        }
        StartKind::Other
    }
}

/// Returns bytes without the white space and the UTF-8 byte order mark at their beginning. They are empty if only part of the
/// mark came yet.
fn skip_blank(bytes: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let bytes = bytes.trim_ascii_start();
    // All bytes belong to the mark, or there are none.
    if MARK.starts_with(bytes) {
        return b"";
    }
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    bytes.trim_ascii_start()
}

/// Returns whether a body has several lines, the first of which is a JSON object: lines of JSON, not one object over several
/// lines.
fn has_many_lines(body: &[u8]) -> bool {
    let body = skip_blank(body).trim_ascii_end();
    let Some(end) = memchr::memchr2(b'\r', b'\n', body) else {
        return false;
    };
    let first = Json::parse(&body[..end]);
    first.is_ok_and(|first| first.kind() == JsonKind::Object)
}

/// Reads a whole body. Fails if it breaks off, or if it is larger than a reply may be.
pub(super) async fn read_whole(mut body: ResponseBody) -> Result<Bytes, FollowUpError> {
    let broke = |why: String| FollowUpError::Broken(format!("the reply of the provider {why}"));
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broke(format!("broke: {error}")))?;
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() as u64 > MAX_REPLY_BYTES {
            return Err(broke("is too large".to_owned()));
        }
    }
    Ok(read.freeze())
}

/// A body whose beginning was read to detect its form. Yields that beginning, then the rest.
struct ReadBody {
    /// The bytes that were read and not yet yielded.
    read: Option<Bytes>,
    /// The error with which the body broke off.
    failed: Option<ForwardError>,
    /// The rest of the body; `None` if all was read.
    rest: Option<ResponseBody>,
}

impl Body for ReadBody {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        if let Some(read) = self.read.take() {
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        if let Some(failed) = self.failed.take() {
            return Poll::Ready(Some(Err(failed)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_read = self.read.is_none() && self.failed.is_none();
        is_read && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }
}
