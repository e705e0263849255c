//! The requests that follow look-ups.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use infold_provider::{BodyPart, ForwardResponse};
use infold_store::RefusalLine;
use infold_wire::lookup::{
    HeldCall, HeldKind, PendingResult, RoundOutcome, strip_calls, write_follow_up, write_results,
};
use infold_wire::provider_error::ClientError;
use infold_wire::{Json, Reply, Wire};
use tokio::task::spawn_blocking;

use super::Lookups;
use super::answer::answer;
use crate::IncomingBody;
use crate::client_body::Response;
use crate::locked;
use crate::proxy::ProxiedRequest;
use crate::route::Route;
use crate::server::ServerState;
use crate::translate::LostParts;

/// So many requests follow the first of a turn; the last of them offers no more look-ups.
const MAX_FOLLOW_UPS: usize = 4;

/// The requests of one turn: the first, and those that follow look-ups.
pub(crate) struct LookupRounds {
    state: Arc<ServerState>,
    wire: Wire,
    route: Route,
    parts: Parts,
    lookups: Lookups,
    /// The last request.
    sent: Vec<BodyPart>,
    follow_ups: usize,
}

/// Why no reply follows a look-up.
pub(crate) enum FollowUpError {
    /// Infold could not ask again.
    Internal(String),
    /// The provider did not answer; this is what a client is told.
    Unreachable(Box<Response>),
}

impl FollowUpError {
    pub fn client_error(&self) -> ClientError {
        match self {
            FollowUpError::Internal(why) => ClientError::Failed(why.clone()),
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
            follow_ups: 0,
        }
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Says whether calls are judged before the client gets them.
    pub fn is_judged(&self) -> bool {
        self.lookups.judge.is_some()
    }

    /// Says whether another request follows a round.
    pub fn goes_on(&self, outcome: &RoundOutcome) -> bool {
        outcome.waits_for_lookups() && self.follow_ups < MAX_FOLLOW_UPS
    }

    /// Answers the look-ups of a round, and asks again.
    pub async fn follow_up(
        &mut self,
        outcome: RoundOutcome,
    ) -> Result<ForwardResponse, FollowUpError> {
        let internal = |why: &str| FollowUpError::Internal(why.to_owned());
        let Ok(reply) = outcome.reply else {
            return Err(internal("a reply with look-ups broke"));
        };
        let results = self.answers(&outcome.calls.held).await;
        let answers: Vec<_> = outcome.calls.held.iter().zip(results).collect();
        let results = write_results(self.wire, &answers);
        let sent = std::mem::take(&mut self.sent);
        let body = self.request(Vec::new()).gathered(sent, false).await;
        let body = body.map_err(|error| internal(&format!("the request was lost: {error}")))?;
        let mut added = sendable(self.wire, &body, &reply);
        added.extend(results);
        self.follow_ups += 1;
        let is_last = self.follow_ups == MAX_FOLLOW_UPS;
        let last_offer = self.lookups.offer.as_ref().filter(|_| is_last);
        let body = write_follow_up(self.wire, &body, &added, last_offer);
        let body = Bytes::from(body.ok_or_else(|| internal("the request cannot be read"))?);
        {
            let mut record = locked(&self.lookups.record);
            record.messages.extend(added);
            record.usages.extend(reply.usage);
        }
        self.sent = vec![BodyPart::Bytes(body)];
        let sent = self.sent.clone();
        let answer = self.request(Vec::new()).send(sent, true, false).await;
        answer.map_err(FollowUpError::Unreachable)
    }

    /// The reply is whole: remembers what was said, and answers look-ups beside calls of the client's.
    pub async fn conclude(&mut self, outcome: RoundOutcome) {
        let Ok(reply) = outcome.reply else { return };
        let calls = outcome.calls;
        if calls.held.is_empty() && self.follow_ups == 0 {
            return;
        }
        let mut results = Vec::new();
        // Without calls for the client no request follows in which a result could stand.
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
        let messages: Vec<Vec<u8>> = match is_beside {
            true => reply.messages,
            false => reply
                .messages
                .iter()
                .filter_map(|it| strip_calls(&outcome.held, it))
                .collect(),
        };
        let mut record = locked(&self.lookups.record);
        if self.follow_ups > 0 || is_beside {
            record.messages.extend(messages);
        }
        record.results = results;
        record.usages.extend(reply.usage);
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
            let answers = answer(&core, lookups.task, &calls, &mut room);
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
