//! Sends a request that offers look-ups, and takes them out of its answer.

use infold_provider::{BodyPart, ForwardResponse, ResponseBody};
use infold_wire::lookup::{HeldCalls, ReplyFilter};
use infold_wire::{Delivery, Wire};

use super::Lookups;
use super::body::LookupBody;
use super::form;
use super::rounds::{FollowUpError, LookupRounds};
use super::whole::pass_whole;
use crate::client_body::Response;
use crate::conversations::Blocking;
use crate::exchange_recorder::ExchangeRecorder;
use crate::proxy::{ProxiedRequest, complaint};
use crate::{ConversationError, Exchange, ModelCall, OutgoingBody};

impl ProxiedRequest<'_> {
    /// Sends a request once, and returns its answer without look-ups; or the reason that there is none, and the
    /// client's response.
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

/// Returns an answer without look-ups: they are answered before it, or while it is streamed.
async fn without_lookups(
    wire: Wire,
    answer: ForwardResponse,
    held: HeldCalls,
    rounds: LookupRounds,
) -> Result<ForwardResponse, FollowUpError> {
    if !answer.status.is_success() {
        return Ok(answer);
    }
    let (mut answer, is_stream) = form::open(wire, rounds.decoded(answer)?).await?;
    if !is_stream {
        return pass_whole(answer, held, rounds).await;
    }
    let filter = ReplyFilter::new(wire, Delivery::Stream, held);
    answer.body = ResponseBody::new(LookupBody::new(answer.body, filter, rounds));
    Ok(answer)
}

/// The provider refused a request: returns it without the tools, if it had them.
pub(crate) async fn retry_without_lookups(
    call: &ModelCall,
    recorder: ExchangeRecorder,
) -> (ExchangeRecorder, Option<Option<OutgoingBody>>) {
    if recorder.with_exchange(Exchange::offers_lookups) != Some(true) {
        return (recorder, None);
    }
    let call = call.clone();
    let plain = move |exchange: &mut Exchange| exchange.without_lookups(&call);
    recorder.run_blocking("fold", plain).await
}

impl Exchange {
    /// Says whether tools for looking up hidden messages are offered.
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
        self.lookups_refused = true;
        let mut open = self.core.pool.lease(self.task)?;
        // The lookups before the refusal were paid for.
        if let Some(lookups) = self.lookups.take().and_then(|lookups| lookups.take()) {
            self.record_earlier_usage(&mut open, &lookups.usages)?;
        }
        self.fit(call, open, Blocking::Allowed)
    }
}
