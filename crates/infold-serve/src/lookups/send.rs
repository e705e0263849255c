//! Sends a request that offers look-ups, and takes them out of its answer.

use http::header::CONTENT_LENGTH;
use infold_provider::{BodyPart, ForwardResponse, ResponseBody};
use infold_wire::lookup::{HeldCalls, ReplyFilter};
use infold_wire::{Delivery, Json, Wire};

use super::Lookups;
use super::body::LookupBody;
use super::rounds::{FollowUpError, LookupRounds};
use super::whole::{pass_whole, read_whole};
use crate::client_body::Response;
use crate::conversations::Blocking;
use crate::exchange_recorder::ExchangeRecorder;
use crate::proxy::{ProxiedRequest, complaint, has_stream_type};
use crate::{ConversationError, Exchange, ModelCall, OutgoingBody};

impl ProxiedRequest<'_> {
    /// Sends a request once, and returns its answer without look-ups; or why there is none, and what the client is told.
    pub async fn send_with_lookups(
        &self,
        sent: Vec<BodyPart>,
        is_packed: bool,
        lookups: Option<Lookups>,
    ) -> Result<ForwardResponse, (&'static str, Box<Response>)> {
        let held = lookups.as_ref().map(Lookups::held_calls);
        let rounds = lookups.map(|lookups| LookupRounds::new(self, lookups, sent.clone()));
        let unreachable = |response| ("the provider could not be reached", response);
        let answer = self
            .send(sent, true, is_packed)
            .await
            .map_err(unreachable)?;
        let (Some(held), Some(rounds)) = (held, rounds) else {
            return Ok(answer);
        };
        let answered = without_lookups(self.wire, answer, held, rounds).await;
        answered.map_err(|error| match error {
            FollowUpError::Unreachable(response) => (
                "the provider could not be reached after a look-up",
                response,
            ),
            error => {
                let response = complaint(self.wire, false, &error.client_error());
                ("the reply broke after a look-up", Box::new(response))
            }
        })
    }
}

/// Returns an answer without look-ups: they are answered before it, or on its way.
async fn without_lookups(
    wire: Wire,
    answer: ForwardResponse,
    held: HeldCalls,
    rounds: LookupRounds,
) -> Result<ForwardResponse, FollowUpError> {
    if !answer.status.is_success() {
        return Ok(answer);
    }
    let mut answer = rounds.decoded(answer)?;
    if !has_stream_type(&answer.headers) {
        let body = read_whole(answer.body).await?;
        let is_stream = is_events(&body) || wire == Wire::Ollama && Json::parse(&body).is_err();
        answer.body = body.into();
        if !is_stream {
            return pass_whole(answer, held, rounds).await;
        }
    }
    let filter = ReplyFilter::new(wire, Delivery::Stream, held);
    answer.headers.remove(CONTENT_LENGTH);
    answer.body = ResponseBody::new(LookupBody::new(answer.body, filter, rounds));
    Ok(answer)
}

/// Says whether a body is a stream of events, whatever its headers call it.
fn is_events(body: &[u8]) -> bool {
    let starts = [&b"data:"[..], b"event:", b"id:", b"retry:", b":"];
    let body = body.trim_ascii_start();
    starts.iter().any(|start| body.starts_with(start))
}

/// The provider refused a request: returns it without the tools, if it had them.
pub(crate) async fn retry_without_lookups(
    call: &ModelCall,
    recorder: ExchangeRecorder,
) -> (ExchangeRecorder, Option<Option<OutgoingBody>>) {
    if recorder.look(Exchange::offers_lookups) != Some(true) {
        return (recorder, None);
    }
    let call = call.clone();
    let plain = move |exchange: &mut Exchange| exchange.without_lookups(&call);
    recorder.work("fold", plain).await
}

impl Exchange {
    /// Says whether tools are offered for looking up what is hidden.
    pub(crate) fn offers_lookups(&self) -> bool {
        let lookups = self.lookups.as_ref();
        lookups.is_some_and(|lookups| lookups.offer.is_some())
    }

    /// Returns the request without the tools; none if it had none.
    fn without_lookups(
        &mut self,
        call: &ModelCall,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        if !self.offers_lookups() {
            return Ok(None);
        }
        self.lookups = None;
        self.lookups_refused = true;
        let open = self.core.pool.lease(self.task)?;
        self.fit(call, open, Blocking::Allowed)
    }
}
