//! The requests that follow look-ups.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use infold_provider::{BodyPart, ForwardResponse};
use infold_store::RefusalLine;
use infold_wire::lookup::{
    HeldCall, HeldKind, NO_LOOKUP_LEFT, NoAnswer, PendingResult, RoundOutcome, reply_in_place,
    strip_calls, withdraw_offer, write_follow_up, write_results,
};
use infold_wire::provider_error::ClientError;
use infold_wire::{Json, Reply, ReplyError, StopReason, Wire};
use tokio::task::spawn_blocking;

use super::Lookups;
use super::answer::answer;
use super::form::{ReplyForm, in_form};
use crate::IncomingBody;
use crate::client_body::Response;
use crate::decoded_body::decoded;
use crate::locked;
use crate::proxy::ProxiedRequest;
use crate::route::Route;
use crate::server::ServerState;
use crate::translate::LostParts;

/// The number of requests after the first of a turn; the last of them offers no more look-ups.
const MAX_FOLLOW_UPS: usize = 4;

/// The requests of one turn: the first, and those after look-ups.
pub(crate) struct LookupRounds {
    state: Arc<ServerState>,
    wire: Wire,
    route: Route,
    parts: Parts,
    lookups: Lookups,
    /// The last request.
    sent: Vec<BodyPart>,
    /// The first request, once another follows it.
    first: Option<Bytes>,
    follow_ups: usize,
    /// The proxy writes the last reply: the model did not stop looking things up, or was cut off while it did.
    is_ours: bool,
}

/// The reason that no reply follows a look-up.
pub(crate) enum FollowUpError {
    /// Infold could not ask again.
    Internal(String),
    /// The reply ends too early, or is none.
    Broken(String),
    /// The provider used a content coding that is unknown here, so look-ups cannot be separated from the rest of the
    /// reply.
    Unreadable(String),
    /// The provider did not answer; this is the response to the client.
    Unreachable(Box<Response>),
}

impl FollowUpError {
    /// Returns the error of an incomplete or invalid reply. Bytes that cannot be read are not repeated: they may belong
    /// to a look-up.
    pub fn broken(error: Option<ReplyError>) -> FollowUpError {
        let why = match error {
            Some(
                error @ (ReplyError::Cut { .. } | ReplyError::Empty | ReplyError::TooLarge { .. }),
            ) => error.to_string(),
            Some(_) => "it cannot be read".to_owned(),
            None => "it ends too early".to_owned(),
        };
        FollowUpError::Broken(format!("the reply of the provider broke: {why}"))
    }

    pub fn client_error(&self) -> ClientError {
        match self {
            FollowUpError::Internal(why) => ClientError::Failed(why.clone()),
            FollowUpError::Broken(why) => ClientError::Unreachable(why.clone()),
            FollowUpError::Unreadable(coding) => ClientError::Unreachable(format!(
                "the reply of the provider is compressed in a way that is not known here (`{coding}`); without the recall tools it passes as it is, so they are not offered to this model any more"
            )),
            FollowUpError::Unreachable(_) => {
                ClientError::Unreachable("the provider gave no answer after a look-up".to_owned())
            }
        }
    }
}

impl LookupRounds {
    pub fn new(
        request: &ProxiedRequest<'_>,
        lookups: Lookups,
        sent: Vec<BodyPart>,
    ) -> LookupRounds {
        LookupRounds {
            state: Arc::clone(request.state),
            wire: request.wire,
            route: request.route.clone(),
            parts: request.parts.clone(),
            lookups,
            sent,
            first: None,
            follow_ups: 0,
            is_ours: false,
        }
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Says whether calls are judged before the client gets them.
    pub fn is_judged(&self) -> bool {
        self.lookups.judge.is_some()
    }

    /// Says whether another reply follows a round.
    pub fn goes_on(&self, outcome: &RoundOutcome) -> bool {
        outcome.waits_for_lookups() && self.follow_ups <= MAX_FOLLOW_UPS
    }

    /// Answers the look-ups of a round and sends the next request; after too many rounds the proxy writes the last
    /// reply.
    ///
    /// `headers` are the response headers so far.
    pub async fn follow_up(
        &mut self,
        outcome: RoundOutcome,
        form: ReplyForm,
        headers: &HeaderMap,
    ) -> Result<ForwardResponse, FollowUpError> {
        let internal = |why: &str| FollowUpError::Internal(why.to_owned());
        let Ok(reply) = outcome.reply else {
            return Err(internal("a reply with look-ups broke"));
        };
        self.follow_ups += 1;
        // Arguments that were cut off cannot be answered, and the next reply would be cut off as well.
        let is_cut = reply.stop == StopReason::Length;
        self.is_ours = is_cut || self.follow_ups > MAX_FOLLOW_UPS;
        let held = &outcome.calls.held;
        let results = if self.is_ours {
            self.remember_refusals(held);
            held.iter().map(|call| Err(last_result(call))).collect()
        } else {
            self.answers(held).await
        };
        let answers: Vec<_> = held.iter().zip(results).collect();
        let results = write_results(self.wire, &answers);
        let sent = std::mem::take(&mut self.sent);
        let body = self.request(Vec::new()).gathered(sent, false).await;
        let body = body.map_err(|error| internal(&format!("the request was lost: {error}")))?;
        let body = Bytes::from(body);
        self.first.get_or_insert_with(|| body.clone());
        let mut added = sendable(self.wire, &body, &reply);
        added.extend(results);
        let is_last = self.follow_ups == MAX_FOLLOW_UPS;
        let last_offer = self.lookups.offer.as_ref().filter(|_| is_last);
        let body = write_follow_up(self.wire, &body, &added, last_offer);
        let body = Bytes::from(body.ok_or_else(|| internal("the request cannot be read"))?);
        {
            let mut record = locked(&self.lookups.record);
            record.add_messages(added);
            record.usages.extend(reply.usage);
        }
        if self.is_ours {
            let is_refused = |call: &HeldCall| matches!(call.kind, HeldKind::Refused(_));
            let why = if is_cut {
                NoAnswer::Cut
            } else if outcome.calls.held.iter().any(is_refused) {
                NoAnswer::Refused
            } else {
                NoAnswer::UsedUp
            };
            return Ok(in_place_of(self.wire, &reply, why, (form, headers)));
        }
        self.sent = vec![BodyPart::Bytes(body)];
        let sent = self.sent.clone();
        let answer = self.request(Vec::new()).send(sent, true, false).await;
        let mut answer = answer.map_err(FollowUpError::Unreachable)?;
        if matches!(answer.status.as_u16(), 400 | 413 | 422)
            && let Some(plain) = self.without_tools()
        {
            answer = self.ask_plainly(plain).await?;
        }
        if !answer.status.is_success() {
            return Ok(answer);
        }
        in_form(self.wire, self.decoded(answer)?, form).await
    }

    /// Returns the first request without the tools; none if it had none, or was sent so before.
    fn without_tools(&self) -> Option<Bytes> {
        let offer = self.lookups.offer.as_ref()?;
        if locked(&self.lookups.record).is_refused {
            return None;
        }
        let body = withdraw_offer(self.wire, self.first.as_ref()?, offer)?;
        Some(Bytes::from(body))
    }

    /// The provider refused the results of look-ups, after it had begun to answer: asks as if there were no tools for them.
    async fn ask_plainly(&mut self, plain: Bytes) -> Result<ForwardResponse, FollowUpError> {
        locked(&self.lookups.record).refuse();
        self.follow_ups = MAX_FOLLOW_UPS;
        self.sent = vec![BodyPart::Bytes(plain)];
        let sent = self.sent.clone();
        let answer = self.request(Vec::new()).send(sent, true, false).await;
        let answer = answer.map_err(FollowUpError::Unreachable)?;
        if answer.status.is_success() {
            let (provider, model) = &self.lookups.model;
            let core = &self.state.conversations.core;
            core.refuse_lookups(provider, model);
        }
        Ok(answer)
    }

    /// Returns an answer that can be read.
    pub fn decoded(&self, answer: ForwardResponse) -> Result<ForwardResponse, FollowUpError> {
        decoded(answer).map_err(|coding| {
            if self.is_judged() {
                return FollowUpError::Internal(format!(
                    "the reply is compressed in a way that is not known here (`{coding}`), so that its calls cannot be checked"
                ));
            }
            let (provider, model) = &self.lookups.model;
            let core = &self.state.conversations.core;
            core.refuse_lookups(provider, model);
            FollowUpError::Unreadable(coding)
        })
    }

    /// Handles a complete reply: records its messages, and answers look-ups beside calls of the client's tools.
    pub async fn conclude(&mut self, outcome: RoundOutcome) {
        let Ok(reply) = outcome.reply else { return };
        let calls = outcome.calls;
        if calls.held.is_empty() && self.follow_ups == 0 {
            return;
        }
        let mut results = Vec::new();
        // Without calls for the client no request follows that could carry a result.
        let is_beside = calls.others > 0;
        if is_beside {
            let texts = self.answers(&calls.held).await;
            for (call, text) in calls.held.iter().zip(texts) {
                let message = write_results(self.wire, &[(call, text)]).into_iter().next();
                results.extend(message.map(|message| PendingResult {
                    before: call.before,
                    message,
                }));
            }
        }
        if !is_beside {
            self.remember_refusals(&calls.held);
        }
        let messages: Vec<Vec<u8>> = if is_beside {
            reply.messages
        } else {
            let messages = reply.messages.iter();
            messages
                .filter_map(|it| strip_calls(&outcome.held, it))
                .collect()
        };
        let mut record = locked(&self.lookups.record);
        if self.follow_ups > 0 || is_beside {
            record.add_messages(messages);
        }
        record.results = results;
        // The proxy's own replies cost no tokens.
        if !self.is_ours {
            record.usages.extend(reply.usage);
        }
    }

    /// Remembers the calls that were refused, to be recorded with the reply.
    fn remember_refusals(&self, calls: &[HeldCall]) {
        let refused = calls.iter().filter_map(|call| match &call.kind {
            HeldKind::Lookup(_) => None,
            HeldKind::Refused(told) => Some(RefusalLine {
                tool: call.name.clone(),
                call: call.id.clone(),
                told: told.clone(),
            }),
        });
        locked(&self.lookups.record).refusals.extend(refused);
    }

    async fn answers(&self, calls: &[HeldCall]) -> Vec<Result<String, String>> {
        self.remember_refusals(calls);
        let (calls, lookups) = (calls.to_vec(), self.lookups.clone());
        let core = Arc::clone(&self.state.conversations.core);
        let count = calls.len();
        let answered = spawn_blocking(move || {
            let mut room = locked(&lookups.record).room;
            let names = lookups.offer.as_ref().map(|offer| offer.names.clone());
            let answers = answer(&core, lookups.task, names, &calls, &mut room);
            locked(&lookups.record).room = room;
            answers
        });
        let failed = || Err("the look-up failed".to_owned());
        let answered = answered.await;
        answered.unwrap_or_else(|_| std::iter::repeat_with(failed).take(count).collect())
    }

    fn request(&self, body: Vec<u8>) -> ProxiedRequest<'_> {
        ProxiedRequest {
            state: &self.state,
            forward: &self.state.forward,
            upstream: self.state.upstreams.of(self.wire),
            wire: self.wire,
            route: &self.route,
            parts: &self.parts,
            body: IncomingBody::InMemory(body.into()),
            lost: LostParts::default(),
        }
    }
}

/// Returns the result of a call after which no request follows.
fn last_result(call: &HeldCall) -> String {
    match &call.kind {
        HeldKind::Lookup(_) => NO_LOOKUP_LEFT.to_owned(),
        HeldKind::Refused(told) => told.clone(),
    }
}

/// Returns the reply that the proxy writes instead of the model.
fn in_place_of(
    wire: Wire,
    before: &Reply,
    why: NoAnswer,
    (form, headers): (ReplyForm, &HeaderMap),
) -> ForwardResponse {
    let body = form.write(wire, &reply_in_place(wire, before, why));
    ForwardResponse {
        status: StatusCode::OK,
        headers: headers.clone(),
        body: Bytes::from(body).into(),
    }
}

/// Returns the messages of a reply that can be sent back: without reasoning that only a provider that stores it would have.
fn sendable(wire: Wire, request: &[u8], reply: &Reply) -> Vec<Vec<u8>> {
    let is_stateless = || {
        let json = Json::parse(request).ok();
        let store = json.and_then(|json| json.get("store"));
        store.is_some_and(Json::is_false)
    };
    if wire != Wire::Responses || !is_stateless() {
        return reply.messages.clone();
    }
    let is_sealed = |item: &&Vec<u8>| {
        Json::parse(item).is_ok_and(|json| {
            let [kind, sealed] = json.pick(["type", "encrypted_content"]);
            let is_reasoning = kind.is_some_and(|kind| kind.is("reasoning"));
            !is_reasoning || sealed.is_some_and(|sealed| !sealed.is_null())
        })
    };
    reply.messages.iter().filter(is_sealed).cloned().collect()
}
