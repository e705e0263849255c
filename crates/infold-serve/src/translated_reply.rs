//! A reply that is translated to the client's wire as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use infold_provider::{ForwardError, ResponseBody};
use infold_translate::ReplyRelay;
use infold_wire::provider_error::{ClientError, write_client_error};
use infold_wire::reply::Delivery;
use infold_wire::{ReplyError, ReplyReader, Wire, quote};
use uuid::Uuid;

use crate::translate::refusal;

/// A reply that is translated to another wire while it is streamed.
#[derive(Debug)]
pub(crate) struct TranslatedReply {
    upstream: ResponseBody,
    /// Until the reply is whole, or has failed.
    reader: Option<ReplyReader>,
    relay: ReplyRelay,
    to: Wire,
    id: String,
    ended: bool,
}

impl TranslatedReply {
    /// `model` is the model that the client requested.
    pub fn new(
        upstream: ResponseBody,
        [from, to]: [Wire; 2],
        form: Delivery,
        model: &str,
    ) -> TranslatedReply {
        let id = Uuid::new_v4().simple().to_string();
        TranslatedReply {
            upstream,
            reader: Some(ReplyReader::new(from, form)),
            relay: ReplyRelay::new(to, model, &id[..24]),
            to,
            id: id[..24].to_owned(),
            ended: false,
        }
    }

    /// Sends usage as a separate chunk at the end of a chat.
    pub fn with_usage_apart(mut self, apart: bool) -> TranslatedReply {
        self.relay = self.relay.with_usage_apart(apart);
        self
    }

    /// Translates some of the provider's bytes. Content before an error among them is translated too.
    fn hear(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let relay = &mut self.relay;
        reader.push(data, &mut |delta| out.extend(relay.delta(&delta)))?;
        if reader.is_complete() {
            out.extend(self.finish()?);
        }
        Ok(())
    }

    /// Translates the end of the reply.
    fn finish(&mut self) -> Result<Vec<u8>, ReplyError> {
        let Some(reader) = self.reader.take() else {
            return Ok(Vec::new());
        };
        let told = self.relay.finish(&reader.finish()?);
        let lost = self.relay.lost();
        if !lost.is_empty() {
            tracing::debug!(?lost, "not all of the reply could be told");
        }
        Ok(told)
    }

    /// Returns the error of a failed reply; nothing if there was no reply at all, since an empty body shows that.
    fn fail(&mut self, error: &ReplyError) -> Vec<u8> {
        self.reader = None;
        if *error == ReplyError::Empty {
            return Vec::new();
        }
        let what = match error {
            ReplyError::Failed { body } => refusal(StatusCode::BAD_GATEWAY, body).1,
            error => ClientError::Failed(format!("the reply of the provider broke: {error}")),
        };
        stream_error(self.to, &what, self.relay.next_sequence())
    }
}

/// Writes an error as the end of a stream; `next` is the number of its next event if it has begun, on the wire that has them
/// numbered.
pub(crate) fn stream_error(to: Wire, what: &ClientError, next: Option<u64>) -> Vec<u8> {
    let (_, _, body) = write_client_error(to, false, what);
    let body = String::from_utf8_lossy(&body).into_owned();
    match (to, what) {
        // A response that is too long fails as a whole, and its clients look for that.
        (Wire::Responses, ClientError::TooLong { .. }) if next.is_none() => {
            write_client_error(to, true, what).2
        }
        (Wire::Responses, _) => {
            let text =
                infold_wire::provider_error::error_message(body.as_bytes()).unwrap_or_default();
            let event = format!(
                r#"{{"type":"error","code":"server_error","message":{},"param":null,"sequence_number":{}}}"#,
                quote(&text),
                next.unwrap_or_default()
            );
            format!("event: error\ndata: {event}\n\n").into_bytes()
        }
        (Wire::Anthropic, _) => format!("event: error\ndata: {body}\n\n").into_bytes(),
        (Wire::Chat | Wire::Gemini, _) => format!("data: {body}\n\n").into_bytes(),
        (Wire::Ollama, _) => format!("{body}\n").into_bytes(),
    }
}

impl Body for TranslatedReply {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        while !self.ended {
            let mut told = Vec::new();
            let heard = match ready!(Pin::new(&mut self.upstream).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.hear(&data, &mut told),
                    Err(_) => continue,
                },
                // A break behind the end of a reply is ignored.
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(self.reader.take().map(|_| Err(error)));
                }
                None => {
                    self.ended = true;
                    self.finish().map(|end| told.extend(end))
                }
            };
            if let Err(error) = heard {
                told.extend(self.fail(&error));
            }
            if !told.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(told.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// Returns a whole reply as one body of the other wire; or the provider's error.
pub(crate) async fn whole(mut relayed: TranslatedReply) -> Result<Vec<u8>, Vec<u8>> {
    let said = |error: ReplyError| match error {
        ReplyError::Failed { body } => body,
        error => error.to_string().into_bytes(),
    };
    let mut told = Vec::new();
    loop {
        match relayed.upstream.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    relayed.hear(&data, &mut told).map_err(said)?;
                }
            }
            Some(Err(error)) if relayed.reader.is_some() => {
                return Err(error.to_string().into_bytes());
            }
            Some(Err(_)) | None => break,
        }
    }
    told.extend(relayed.finish().map_err(said)?);
    let mut reader = ReplyReader::new(relayed.to, Delivery::Stream);
    let read = reader.push(&told, &mut |_| {});
    let mut reply = read.and_then(|()| reader.finish()).map_err(said)?;
    reply.id = Some(relayed.id);
    Ok(infold_translate::write_reply(relayed.to, &reply))
}
