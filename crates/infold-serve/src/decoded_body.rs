//! The body of a provider's answer, decoded if it came with a content coding that was not requested.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body, Frame};
use infold_provider::{ForwardError, ForwardResponse, ResponseBody};

use crate::content_coding::{ContentCoding, StreamDecoder};

/// A body that is decoded as it comes.
struct DecodedBody {
    upstream: ResponseBody,
    decoder: StreamDecoder,
    ended: bool,
}

/// Returns an answer without its content coding; fails with the name of an unknown coding.
///
/// Replies that are parsed are requested without a coding, but not every server respects that.
pub(crate) fn decoded(mut answer: ForwardResponse) -> Result<ForwardResponse, String> {
    match ContentCoding::of(&answer.headers) {
        Some(ContentCoding::Identity) => Ok(answer),
        Some(coding) => {
            answer.headers.remove(CONTENT_ENCODING);
            answer.headers.remove(CONTENT_LENGTH);
            answer.body = ResponseBody::new(DecodedBody {
                upstream: answer.body,
                decoder: StreamDecoder::new(coding),
                ended: false,
            });
            Ok(answer)
        }
        None => {
            let name = answer.headers.get(CONTENT_ENCODING);
            let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
            Err(name.unwrap_or_default())
        }
    }
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        let this = &mut *self;
        while !this.ended {
            let decoded = match ready!(Pin::new(&mut this.upstream).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.decoder.push(&data),
                    Err(_) => continue,
                },
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.ended = true;
                    this.decoder.finish()
                }
            };
            match decoded {
                Ok(plain) if plain.is_empty() => {}
                Ok(plain) => return Poll::Ready(Some(Ok(Frame::data(plain)))),
                Err(error) => {
                    this.ended = true;
                    let text = format!("it cannot be decoded: {error}");
                    return Poll::Ready(Some(Err(ForwardError::unreadable(text))));
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
