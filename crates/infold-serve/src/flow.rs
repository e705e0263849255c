use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use infold_provider::Stream;
use tokio::time::{Sleep, sleep};

use crate::ApiBody;
use crate::seat::Seat;
use crate::tee::Tee;

/// The body of a response to a client.
pub(crate) struct Flow {
    from: From,
    /// Taken by the request until its response has ended.
    seat: Option<Seat>,
    /// Why it broke off, and until when that waits.
    broken: Option<(BodyError, Pin<Box<Sleep>>)>,
}

type BodyError = Box<dyn Error + Send + Sync>;

/// What came before a break is on its way: the connection is closed when it had time to leave, because
/// what is written and not sent is lost with it.
const BREAK_DELAY: Duration = Duration::from_millis(20);

/// An answer to a client.
pub(crate) type Response = http::Response<Flow>;

enum From {
    /// All of it is here.
    Held(Bytes),
    /// It is passed on, with what was read of it before.
    Passed(Bytes, Stream),
    /// It is passed on, and read on the side.
    Tee(Box<Tee>),
    /// It is made here, bit by bit.
    Made(ApiBody),
}

impl Flow {
    /// A body that is made here, perhaps bit by bit.
    pub fn api(body: ApiBody) -> Flow {
        Flow::of(From::Made(body))
    }

    /// A body that is passed on, behind what was read of it before.
    pub fn passed(read: Bytes, rest: Stream) -> Flow {
        Flow::of(From::Passed(read, rest))
    }

    pub fn tee(tee: Tee) -> Flow {
        Flow::of(From::Tee(Box::new(tee)))
    }

    pub fn seated(&mut self, seat: Seat) {
        self.seat = Some(seat);
    }

    fn went(&mut self, data: &Bytes) {
        if let Some(seat) = &mut self.seat {
            seat.sent += data.len() as u64;
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

    fn of(from: From) -> Flow {
        Flow {
            from,
            seat: None,
            broken: None,
        }
    }
}

impl<B: Into<Bytes>> std::convert::From<B> for Flow {
    fn from(bytes: B) -> Flow {
        Flow::of(From::Held(bytes.into()))
    }
}

impl Body for Flow {
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
            From::Held(bytes) | From::Passed(bytes, _) => std::mem::take(bytes),
            _ => Bytes::new(),
        };
        if !held.is_empty() {
            self.went(&held);
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        let frame = match &mut self.from {
            From::Held(_) => Poll::Ready(None),
            From::Passed(_, rest) => Pin::new(rest).poll_frame(context).map_err(Into::into),
            From::Tee(tee) => tee.poll_frame(context).map_err(Into::into),
            From::Made(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        };
        if let Poll::Ready(Some(Err(error))) = frame {
            self.broken = Some((error, Box::pin(sleep(BREAK_DELAY))));
            return self.poll_broken(context);
        }
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.went(data);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            From::Held(bytes) => bytes.is_empty(),
            From::Passed(bytes, rest) => bytes.is_empty() && rest.is_end_stream(),
            From::Tee(tee) => tee.is_end(),
            From::Made(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Held(bytes) => SizeHint::with_exact(bytes.len() as u64),
            From::Made(body) => body.size_hint(),
            // What the provider said of it stands in the headers.
            _ => SizeHint::default(),
        }
    }
}
