//! The body of a response to a client. A model's reply is parsed while it is forwarded, and recorded once complete.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use infold_provider::{ForwardError, ResponseBody};
use infold_wire::provider_error::{classify, error_message};
use infold_wire::{Delivery, ProviderError, ReplyError, ReplyReader, Wire};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, timeout};

use crate::ApiBody;
use crate::content_coding::{ContentCoding, StreamDecoder};
use crate::exchange_recorder::ExchangeRecorder;
use crate::server::Permit;

/// The body of a response to a client.
pub(crate) struct ClientBody {
    from: BodySource,
    /// Taken by the request until its response has ended.
    permit: Option<Permit>,
    /// The error that broke the body, and the delay before it is reported.
    broken: Option<(BoxedError, Pin<Box<Sleep>>)>,
}

type BoxedError = Box<dyn Error + Send + Sync>;

/// The pause before a connection is broken off, so that the bytes written before the break are still sent.
const BREAK_DELAY: Duration = Duration::from_millis(20);

/// An answer to a client.
pub(crate) type Response = http::Response<ClientBody>;

enum BodySource {
    /// The whole body.
    Whole(Bytes),
    /// A forwarded body, behind the bytes that were read of it before.
    Upstream(Bytes, ResponseBody),
    /// A forwarded body that is parsed at the same time.
    ReplyTee(Box<ReplyTee>),
    /// A body that the API produces piece by piece.
    Api(ApiBody),
}

impl ClientBody {
    /// A body that is made here, perhaps bit by bit.
    pub fn api(body: ApiBody) -> ClientBody {
        ClientBody::of(BodySource::Api(body))
    }

    /// Returns a forwarded body, behind the bytes that were read of it before.
    pub fn passed(read: Bytes, rest: ResponseBody) -> ClientBody {
        ClientBody::of(BodySource::Upstream(read, rest))
    }

    pub fn tee(tee: ReplyTee) -> ClientBody {
        ClientBody::of(BodySource::ReplyTee(Box::new(tee)))
    }

    pub fn hold_permit(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    fn count_sent(&mut self, data: &Bytes) {
        if let Some(permit) = &mut self.permit {
            permit.sent += data.len() as u64;
        }
    }

    /// Reports an error once the bytes before it had time to be sent.
    fn poll_broken(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedError>>> {
        if let Some((_, delay)) = &mut self.broken {
            ready!(delay.as_mut().poll(context));
        }
        Poll::Ready(self.broken.take().map(|(error, _)| Err(error)))
    }

    fn of(from: BodySource) -> ClientBody {
        ClientBody {
            from,
            permit: None,
            broken: None,
        }
    }
}

impl<B: Into<Bytes>> From<B> for ClientBody {
    fn from(bytes: B) -> ClientBody {
        ClientBody::of(BodySource::Whole(bytes.into()))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.broken.is_some() {
            return self.poll_broken(context);
        }
        let held = match &mut self.from {
            BodySource::Whole(bytes) | BodySource::Upstream(bytes, _) => std::mem::take(bytes),
            _ => Bytes::new(),
        };
        if !held.is_empty() {
            self.count_sent(&held);
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        let frame = match &mut self.from {
            BodySource::Whole(_) => Poll::Ready(None),
            BodySource::Upstream(_, rest) => Pin::new(rest).poll_frame(context).map_err(Into::into),
            BodySource::ReplyTee(tee) => tee.poll_frame(context).map_err(Into::into),
            BodySource::Api(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        };
        if let Poll::Ready(Some(Err(error))) = frame {
            self.broken = Some((error, Box::pin(sleep(BREAK_DELAY))));
            return self.poll_broken(context);
        }
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.count_sent(data);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            BodySource::Whole(bytes) => bytes.is_empty(),
            BodySource::Upstream(bytes, rest) => bytes.is_empty() && rest.is_end_stream(),
            BodySource::ReplyTee(tee) => tee.is_end(),
            BodySource::Api(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            BodySource::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::Api(body) => body.size_hint(),
            // The provider's headers state its length.
            _ => SizeHint::default(),
        }
    }
}

/// A reply that is parsed while it is forwarded to the client.
///
/// Its last bytes are forwarded once it is recorded: the client's next request finds it there.
pub(crate) struct ReplyTee {
    upstream: ResponseBody,
    parser: ReplyParser,
    recorder: Option<ExchangeRecorder>,
    /// Bytes to pass on, as soon as nothing is being recorded.
    ready: VecDeque<Bytes>,
    recording: Option<JoinHandle<()>>,
    bytes: u64,
    ended: bool,
}

/// The beginning of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReplyStart {
    /// An answer, or a body that looks like one.
    Answers,
    /// The error that the request was too long, and its bytes.
    TooLong(ProviderError, Vec<u8>),
    /// An empty body.
    Empty,
}

/// The limit of time, and below of bytes, for which the beginning of a reply is held back.
const MAX_HOLD_TIME: Duration = Duration::from_secs(10);
const MAX_HOLD_BYTES: u64 = 256 << 10;

impl ReplyTee {
    pub fn new(
        wire: Wire,
        stream: bool,
        headers: &HeaderMap,
        body: ResponseBody,
        recorder: ExchangeRecorder,
    ) -> ReplyTee {
        ReplyTee {
            upstream: body,
            parser: ReplyParser::new(wire, stream, headers),
            recorder: Some(recorder),
            ready: VecDeque::new(),
            recording: None,
            bytes: 0,
            ended: false,
        }
    }

    /// Reads until it is clear whether the body is an answer.
    ///
    /// A stream is held back until its first bytes; on Responses until an event after those that only announce a
    /// response. A provider that thinks longer than a moment has accepted the request.
    pub async fn open(&mut self) -> Result<ReplyStart, ForwardError> {
        let opened = timeout(MAX_HOLD_TIME, async {
            while !self.ended && self.bytes < MAX_HOLD_BYTES && self.parser.waits(self.bytes) {
                match self.upstream.frame().await {
                    Some(frame) => self.hear(frame?),
                    None => self.end(),
                }
            }
            Ok(())
        });
        if let Err(error) = opened.await.unwrap_or(Ok(())) {
            self.broke(&error);
            return Err(error);
        }
        if let Some(ReplyError::Failed { body }) = &self.parser.failed {
            let trouble = classify(200, None, body);
            if matches!(
                trouble,
                ProviderError::TooLong { .. } | ProviderError::TooLarge
            ) {
                return Ok(ReplyStart::TooLong(trouble, body.clone()));
            }
        }
        Ok(if self.ended && self.bytes == 0 {
            ReplyStart::Empty
        } else {
            ReplyStart::Answers
        })
    }

    /// This is the answer that is passed on.
    pub fn accepted(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.accepted();
        }
    }

    /// Stops recording this reply, which is no answer. It can still be forwarded.
    pub fn give_up(&mut self) -> Option<ExchangeRecorder> {
        self.recorder.take()
    }

    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        loop {
            if let Some(recording) = &mut self.recording {
                // A failed recording has reported its own error.
                let _ = ready!(Pin::new(recording).poll(context));
                self.recording = None;
            }
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.upstream).poll_frame(context)) {
                Some(Ok(frame)) => self.hear(frame),
                Some(Err(error)) => {
                    self.broke(&error);
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.end(),
            }
        }
    }

    pub fn is_end(&self) -> bool {
        self.ended && self.ready.is_empty() && self.recording.is_none()
    }

    fn hear(&mut self, frame: Frame<Bytes>) {
        let Ok(data) = frame.into_data() else {
            return;
        };
        self.bytes += data.len() as u64;
        if self.recorder.is_some() {
            self.parser.hear(&data);
        }
        self.ready.push_back(data);
        if self.parser.is_complete() || self.upstream.is_end_stream() {
            self.record();
        }
        // A connection that knows the length does not poll the body after its last byte.
        self.ended = self.upstream.is_end_stream();
    }

    fn end(&mut self) {
        self.ended = true;
        self.record();
    }

    /// Records the reply, if it was not.
    fn record(&mut self) {
        let Some(recorder) = self.recorder.take() else {
            return;
        };
        match self.parser.take() {
            Ok(reply) => self.recording = recorder.record(reply),
            Err(why) => {
                // The caller of `open` decides whether the request is sent again.
                let opening = matches!(&self.parser.failed, Some(ReplyError::Failed { .. }));
                if opening || self.bytes == 0 {
                    self.recorder = Some(recorder)
                } else {
                    recorder.fail(&why)
                }
            }
        }
    }

    fn broke(&mut self, error: &ForwardError) {
        self.ended = true;
        self.conclude(|recorder| recorder.fail(&format!("the reply broke: {error}")));
    }

    fn conclude(&mut self, how: impl FnOnce(ExchangeRecorder)) {
        if let Some(recorder) = self.recorder.take() {
            how(recorder);
        }
    }
}

impl Drop for ReplyTee {
    fn drop(&mut self) {
        let failed = self.parser.failed.take();
        let ended = self.ended;
        self.conclude(|recorder| match failed {
            Some(failed) => recorder.fail(&told(&failed)),
            None if ended => recorder.fail("the reply is empty"),
            None => recorder.left(),
        });
    }
}

/// Parses a reply. If that fails, the reply still goes to the client.
#[derive(Debug)]
struct ReplyParser {
    wire: Wire,
    stream: bool,
    reader: Option<ReplyReader>,
    /// `None` if the reply has a content coding that cannot be decoded here.
    decoder: Option<StreamDecoder>,
    failed: Option<ReplyError>,
}

impl ReplyParser {
    fn new(wire: Wire, stream: bool, headers: &HeaderMap) -> ReplyParser {
        let form = if stream {
            Delivery::Stream
        } else {
            Delivery::Whole
        };
        ReplyParser {
            wire,
            stream,
            reader: Some(ReplyReader::new(wire, form)),
            // A decoder that returns its output only at the end would be too late: a connection that knows the length
            // does not poll the body after its last byte.
            decoder: ContentCoding::of(headers)
                .map(StreamDecoder::new)
                .filter(StreamDecoder::flows),
            failed: None,
        }
    }

    fn hear(&mut self, data: &Bytes) {
        match self.decoder.as_mut().map(|decoder| decoder.push(data)) {
            Some(Ok(plain)) => {
                if let (Some(reader), None) = (&mut self.reader, &self.failed) {
                    self.failed = reader.push(&plain, &mut |_| {}).err();
                }
            }
            Some(Err(_)) => self.decoder = None,
            None => {}
        }
    }

    /// Says whether the kind of the body is still unknown.
    fn waits(&self, bytes: u64) -> bool {
        if self.failed.is_some() || self.decoder.is_none() {
            return false;
        }
        let begun = self.reader.as_ref().is_none_or(ReplyReader::is_begun);
        if self.stream && self.wire != Wire::Responses {
            bytes == 0
        } else {
            !begun
        }
    }

    fn is_complete(&self) -> bool {
        self.reader.as_ref().is_some_and(ReplyReader::is_complete)
    }

    /// Returns the complete reply, or the reason that there is none.
    fn take(&mut self) -> Result<infold_wire::Reply, String> {
        if let Some(failed) = &self.failed {
            return Err(told(failed));
        }
        if self.decoder.is_none() {
            return Err("the reply is packed in a way that cannot be read here".to_owned());
        }
        let Some(reader) = self.reader.take() else {
            return Err("the reply was taken before".to_owned());
        };
        reader.finish().map_err(|error| {
            let why = told(&error);
            self.failed = Some(error);
            why
        })
    }
}

/// Describes an error in one line.
fn told(error: &ReplyError) -> String {
    match error {
        ReplyError::Failed { body } => {
            let said = error_message(body).unwrap_or_default();
            format!("the provider failed while it answered: {said}")
        }
        error => error.to_string(),
    }
}

/// Reads the beginning of a body, and leaves the rest.
pub(crate) async fn read_up_to(mut body: ResponseBody, most: usize) -> (Bytes, ResponseBody) {
    let mut read = BytesMut::new();
    while read.len() < most {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&data);
                }
            }
            Some(Err(_)) | None => break,
        }
    }
    (read.freeze(), body)
}
