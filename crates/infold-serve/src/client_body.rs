//! The body of a response to a client.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use infold_provider::ResponseBody;
use tokio::time::{Sleep, sleep};

use crate::ApiBody;
use crate::permit::Permit;
use crate::reply_tee::ReplyTee;

/// The body of a response to a client.
pub(crate) struct ClientBody {
    from: BodySource,
    /// Taken by the request until its response has ended.
    permit: Option<Permit>,
    /// Why it broke off, and until when that waits.
    broken: Option<(BodyError, Pin<Box<Sleep>>)>,
}

type BodyError = Box<dyn Error + Send + Sync>;

/// What came before a break is on its way: the connection is closed when it had time to leave, because
/// what is written and not sent is lost with it.
const BREAK_DELAY: Duration = Duration::from_millis(20);

/// An answer to a client.
pub(crate) type Response = http::Response<ClientBody>;

enum BodySource {
    /// All of it is here.
    Whole(Bytes),
    /// It is passed on, with what was read of it before.
    Upstream(Bytes, ResponseBody),
    /// It is passed on, and read on the side.
    ReplyTee(Box<ReplyTee>),
    /// It is made here, bit by bit.
    Api(ApiBody),
}

impl ClientBody {
    /// A body that is made here, perhaps bit by bit.
    pub fn api(body: ApiBody) -> ClientBody {
        ClientBody::of(BodySource::Api(body))
    }

    /// A body that is passed on, behind what was read of it before.
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

    /// Tells of a break, once what came before it had time to leave.
    fn poll_broken(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
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
    type Error = BodyError;

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
            // What the provider said of it stands in the headers.
            _ => SizeHint::default(),
        }
    }
}
