//! The form of a reply's body, detected by its first bytes: the content type is not always right.

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

/// The form in which a reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    Stream,
    Whole,
    /// A list of chunks: Gemini's streams without `alt=sse`.
    List,
}

/// The kind of a body, judged by its beginning.
enum StartKind {
    Json,
    Events,
    /// Neither, or too few bytes to decide.
    Other,
}

/// The beginnings of lines in a stream of events.
const EVENT_STARTS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// The bytes behind white space that are enough to recognise a stream of events.
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

/// Returns an answer and whether its body is a stream. Of a stream only the beginning was read.
pub(super) async fn open(
    wire: Wire,
    mut answer: ForwardResponse,
) -> Result<(ForwardResponse, bool), FollowUpError> {
    let has_stream_type = has_stream_type(&answer.headers);
    let (read, is_open, failed) = read_start(&mut answer.body, has_stream_type).await;
    let is_stream = match StartKind::of(&read) {
        // Lines of JSON are the stream of one wire.
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
        answer.headers.remove(CONTENT_LENGTH);
        return Ok((answer, true));
    }
    let body = read_whole(answer.body).await?;
    let is_stream = wire == Wire::Ollama && has_many_lines(&body);
    // The body becomes shorter without the lookups.
    answer.headers.remove(CONTENT_LENGTH);
    answer.body = body.into();
    Ok((answer, is_stream))
}

/// Returns an answer in the form in which the rounds before it came.
pub(super) async fn in_form(
    wire: Wire,
    answer: ForwardResponse,
    form: ReplyForm,
) -> Result<ForwardResponse, FollowUpError> {
    let (mut answer, is_stream) = open(wire, without_mark(answer).await).await?;
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
    // A body that is no reply is passed on unchanged, and the next reader reports the error.
    answer.body = match read.and_then(|()| reader.finish()) {
        Ok(reply) => Bytes::from(form.write(wire, &reply)).into(),
        Err(_) => body.into(),
    };
    answer.headers.remove(CONTENT_LENGTH);
    Ok(answer)
}

/// Returns an answer without a UTF-8 byte order mark, which would end up in the middle of the client's body.
async fn without_mark(mut answer: ForwardResponse) -> ForwardResponse {
    let (read, is_open, failed) = read_start(&mut answer.body, true).await;
    let behind = read.len() - behind_blank(&read).len();
    answer.body = ResponseBody::new(ReadBody {
        read: Some(read.slice(behind..)).filter(|read| !read.is_empty()),
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
        let start = behind_blank(&read);
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
        let start = behind_blank(read);
        if matches!(start.first(), Some(b'{' | b'[')) {
            return StartKind::Json;
        }
        if EVENT_STARTS.iter().any(|it| start.starts_with(it)) {
            return StartKind::Events;
        }
        StartKind::Other
    }
}

/// Returns a text without white space and the mark of UTF-8 before it.
fn behind_blank(bytes: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let bytes = bytes.trim_ascii_start();
    if MARK.starts_with(bytes) {
        return b"";
    }
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    bytes.trim_ascii_start()
}

/// Returns whether a body has several lines, of which the first is an object.
fn has_many_lines(body: &[u8]) -> bool {
    let body = behind_blank(body).trim_ascii_end();
    let Some(end) = memchr::memchr2(b'\r', b'\n', body) else {
        return false;
    };
    let first = Json::parse(&body[..end]);
    first.is_ok_and(|first| first.kind() == JsonKind::Object)
}

/// Reads a whole body.
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

/// A body of which the beginning was read.
struct ReadBody {
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
