//! A proxied request: accepted, sent, retried if the provider refuses it, answered and recorded.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use infold_provider::{BodyPart, ForwardError, ForwardRequest, ForwardResponse, Forwarder};
use infold_wire::provider_error::{
    ClientError, RefusalCause, classify, error_message, reports_overflow, write_client_error,
};
use infold_wire::{ProviderError, Wire};
use tokio::task::spawn_blocking;

use crate::body::{BodyError, read_body};
use crate::client_body::{ClientBody, ReplyStart, ReplyTee, Response, read_up_to};
use crate::content_coding::decode_beginning;
use crate::conversations::{Blocking, CallStage};
use crate::exchange_recorder::{ExchangeRecorder, catch_panic};
use crate::headers::ClientKeys;
use crate::lookups::retry_without_lookups;
use crate::route::{Destination, Route};
use crate::server::ServerState;
use crate::translate::LostParts;
use crate::upstream::Upstream;
use crate::{
    ConversationError, Exchange, IncomingBody, ModelCall, OutgoingBody, OutgoingPart, headers,
};

/// The most of an error body that is read: more than is looked at.
pub(crate) const MAX_ERROR_BODY_BYTES: usize = 128 << 10;

/// A request on its way through.
pub(crate) struct ProxiedRequest<'f> {
    pub state: &'f Arc<ServerState>,
    pub forward: &'f Forwarder,
    pub upstream: &'f Upstream,
    pub wire: Wire,
    pub route: &'f Route,
    pub parts: &'f Parts,
    /// The body as the client sent it.
    pub body: IncomingBody,
    /// Parts that the provider's wire cannot express.
    pub lost: LostParts,
}

/// A provider's answer that is not a reply.
struct ProviderRefusal {
    status: StatusCode,
    /// The meaning of the refusal, as far as the provider states it.
    error: ProviderError,
    /// The decompressed body.
    body: Bytes,
    /// The answer is a stream without a byte.
    is_empty_stream: bool,
    /// The same answer for the client, byte for byte.
    response: Response,
}

/// The result of sending a request.
enum SendOutcome {
    /// The response for the client.
    Answered(Box<Response>),
    /// The provider refused the request; the exchange continues.
    Refused(Box<ProviderRefusal>, ExchangeRecorder),
}

impl ProviderRefusal {
    /// Describes it for people.
    fn describe(&self) -> String {
        if self.status.is_success() && self.body.is_empty() {
            return "the reply is empty".to_owned();
        }
        let why = error_message(&self.body).unwrap_or_default();
        format!("the provider answered {}: {why}", self.status)
    }

    /// Says whether a request may have been refused for how it was folded. Keys, models and
    /// quotas are not: the provider says so.
    fn may_be_of_the_fold(&self, error: &ProviderError) -> bool {
        let refused = matches!(
            error,
            ProviderError::Refused(RefusalCause::Request)
                | ProviderError::PlainMessages
                | ProviderError::AlternateRoles
                | ProviderError::BoundThinking
        );
        refused && self.is_of_the_request()
    }

    /// Says whether something in the request was refused.
    fn is_of_the_request(&self) -> bool {
        matches!(self.status.as_u16(), 400 | 422)
    }
}

/// Passes a request on to its provider, and the answer back.
pub(crate) async fn pass(
    state: &Arc<ServerState>,
    request: Request<Incoming>,
    route: &Route,
    wire: Wire,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_body(body, &state.limits).await {
        Ok(body) => body,
        Err(error) => return untaken(state, wire, &error),
    };
    state.metrics.moved(body.len(), 0);
    let way = ProxiedRequest {
        state,
        forward: &state.forward,
        upstream: state.upstreams.of(wire),
        wire,
        route,
        parts: &parts,
        body,
        lost: LostParts::default(),
    };
    let mut response = match &route.to {
        Destination::Model { .. } => way.call().await,
        _ => match way.look_for_call().await {
            Some(refusal) => refusal,
            None => way.through(false).await,
        },
    };
    add_headers(&mut response, way.lost.header());
    response
}

/// Answers in the words of a wire.
pub(crate) fn complaint(wire: Wire, stream: bool, what: &ClientError) -> Response {
    let (status, kind, body) = write_client_error(wire, stream, what);
    let mut response = Response::new(ClientBody::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn untaken(state: &ServerState, wire: Wire, error: &BodyError) -> Response {
    let limit = state.limits.body;
    let what = match error {
        BodyError::TooLarge(bytes) => ClientError::TooLarge {
            bytes: *bytes,
            limit,
        },
        BodyError::Slow => ClientError::Request("the request did not come in time".to_owned()),
        BodyError::Broken(why) => ClientError::Request(format!("the request broke off: {why}")),
        BodyError::Disk(error) => {
            state.metrics.failed("spool");
            tracing::error!(%error, "a large request could not be recorded");
            ClientError::Failed("no room here for a request as large as this".to_owned())
        }
    };
    let mut response = complaint(wire, false, &what);
    if let BodyError::Slow = error {
        *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    }
    response
}

impl ProxiedRequest<'_> {
    /// Passes a call of a model on: recognised, recorded, folded if it must be; and its reply, which is recorded.
    async fn call(&self) -> Response {
        let Some((call, unpacked)) = self.read_call().await else {
            let why = "the request cannot be read";
            return match self.refused_by_policy(why) {
                Some(refusal) => refusal,
                None => self.through(true).await,
            };
        };
        let began = Instant::now();
        let accepted = self.accept(&call).await;
        self.state.metrics.added(began.elapsed());
        let (mut outgoing, mut recorder) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                return match self.refused_by_policy(&why) {
                    Some(refusal) => refusal,
                    None => self.unrecorded(call, unpacked).await,
                };
            }
        };
        recorder.begin_checkpoint(&self.state.conversations.core, &call);
        let is_stream = recorder
            .with_exchange(|exchange| exchange.is_stream())
            .unwrap_or(false);
        let mut empty_streams = 0;
        let mut fell_back = false;
        loop {
            let is_untouched = outgoing.parts() == [OutgoingPart::Client(0..call.body.len())];
            let sent = if unpacked && is_untouched {
                // A compressed body that was not changed is sent compressed.
                OutgoingBody::untouched(&self.body).bytes_of(&self.body)
            } else {
                outgoing.bytes_of(&call.body)
            };
            let is_packed = !unpacked || is_untouched;
            let refusal = match self.attempt(sent, is_packed, is_stream, recorder).await {
                SendOutcome::Answered(response) => return *response,
                SendOutcome::Refused(refusal, unused) => {
                    recorder = unused;
                    *refusal
                }
            };
            if refusal.is_empty_stream {
                // One known server always answers a request that is too long this way; any other may do it once by
                // accident.
                empty_streams += 1;
                if empty_streams == 1 {
                    continue;
                }
            }
            let error = refusal.error.clone();
            let explained = recorder.with_exchange(|exchange| exchange.explain(error));
            let error = explained.unwrap_or(ProviderError::Broken);
            let is_overflow = matches!(
                error,
                ProviderError::TooLong { .. } | ProviderError::TooLarge
            );
            let is_quirk = matches!(
                error,
                ProviderError::AlternateRoles | ProviderError::BoundThinking
            );
            let mut retry = None;
            if !is_overflow && !is_quirk && refusal.is_of_the_request() {
                // Some models support no tools.
                (recorder, retry) = retry_without_lookups(&call, recorder).await;
                if let Some(Some(again)) = retry {
                    outgoing = again;
                    continue;
                }
            }
            // If the client's own bytes were refused, too, the client gets the refusal.
            if !fell_back && (is_overflow || !is_untouched && is_quirk) {
                let (error, call) = (error.clone(), call.clone());
                let adapt = move |exchange: &mut Exchange| exchange.adapt(&call, &error);
                (recorder, retry) = recorder.run_blocking("fold", adapt).await;
            }
            if retry.as_ref().is_none_or(Option::is_none)
                && !is_untouched
                && refusal.may_be_of_the_fold(&error)
            {
                let (why, call) = (recorder.shortened(&refusal.describe()), call.clone());
                let fall_back = move |exchange: &mut Exchange| exchange.fall_back(&call, &why);
                (recorder, retry) = recorder.run_blocking("fold", fall_back).await;
                fell_back = retry.as_ref().is_some_and(Option::is_some);
            }
            match retry.flatten() {
                Some(again) => outgoing = again,
                None if is_overflow => return self.too_long(recorder, &error, is_stream, refusal),
                None => {
                    recorder.fail(&refusal.describe());
                    return refusal.response;
                }
            }
        }
    }

    /// Sends a request once.
    async fn attempt(
        &self,
        sent: Vec<BodyPart>,
        is_packed: bool,
        is_stream: bool,
        mut recorder: ExchangeRecorder,
    ) -> SendOutcome {
        let lookups = recorder.with_exchange(|exchange| exchange.lookups.clone());
        let sent = self.send_with_lookups(sent, is_packed, lookups.flatten());
        let answer = match sent.await {
            Ok(answer) => answer,
            Err((why, response)) => {
                recorder.fail(why);
                return SendOutcome::Answered(response);
            }
        };
        let status = answer.status;
        if !status.is_success() {
            let (read, rest) = read_up_to(answer.body, MAX_ERROR_BODY_BYTES).await;
            let body = decode_beginning(&answer.headers, &read, MAX_ERROR_BODY_BYTES);
            let refusal = ProviderRefusal {
                status,
                error: classify(status.as_u16(), None, &body),
                body,
                is_empty_stream: false,
                response: answered(status, &answer.headers, ClientBody::passed(read, rest)),
            };
            return SendOutcome::Refused(Box::new(refusal), recorder);
        }
        // The snapshot precedes the reply in the log, and the client changes no file before it has the reply.
        recorder.wait_for_checkpoint().await;
        let is_stream = is_stream || has_stream_type(&answer.headers);
        let headers = recorder
            .with_exchange(|exchange| exchange.headers())
            .unwrap_or_default();
        let mut tee = ReplyTee::new(self.wire, is_stream, &answer.headers, answer.body, recorder);
        let (error, body, is_empty_stream) = match tee.open().await {
            // No bytes were forwarded yet, so the client can get an error.
            Err(error) => return SendOutcome::Answered(Box::new(self.unreachable(&error))),
            Ok(ReplyStart::TooLong(error, body)) => (error, body, false),
            Ok(ReplyStart::Empty) if is_stream && self.upstream.endpoint.wire == Wire::Chat => {
                let status = status.as_u16();
                (ProviderError::Unexplained { status }, Vec::new(), true)
            }
            Ok(_) => {
                tee.accepted();
                let mut response = answered(status, &answer.headers, ClientBody::tee(tee));
                add_headers(&mut response, headers);
                return SendOutcome::Answered(Box::new(response));
            }
        };
        let Some(recorder) = tee.give_up() else {
            let what = ClientError::Failed("the reply was lost on its way".to_owned());
            return SendOutcome::Answered(Box::new(complaint(self.wire, false, &what)));
        };
        let refusal = ProviderRefusal {
            status,
            error,
            body: body.into(),
            is_empty_stream,
            response: answered(status, &answer.headers, ClientBody::tee(tee)),
        };
        SendOutcome::Refused(Box::new(refusal), recorder)
    }

    /// Handles a request for which nothing more can be folded: returns the provider's error, in the client's wire.
    fn too_long(
        &self,
        recorder: ExchangeRecorder,
        error: &ProviderError,
        stream: bool,
        refusal: ProviderRefusal,
    ) -> Response {
        recorder.fail("the request is too long, whatever is folded");
        match error {
            ProviderError::TooLong { tokens, limit }
                if !reports_overflow(self.wire, &refusal.body) =>
            {
                let (tokens, limit) = (*tokens, *limit);
                complaint(self.wire, stream, &ClientError::TooLong { tokens, limit })
            }
            _ => refusal.response,
        }
    }

    /// Records and folds a call; on failure returns the reason, and the call is forwarded unchanged.
    async fn accept(&self, call: &ModelCall) -> Result<(OutgoingBody, ExchangeRecorder), String> {
        let Parts { headers, uri, .. } = self.parts;
        let keys = Arc::new(ClientKeys::of(headers, uri, &self.upstream.endpoint));
        let carry = move |state: &ServerState, call: &ModelCall, stage, blocking| {
            Ok::<_, ConversationError>(
                match state.conversations.advance(call, stage, blocking)? {
                    // The recorder is made at once: if the client goes away before this result is used, dropping it
                    // records the exchange as failed.
                    CallStage::Ready(outgoing, exchange) => {
                        let metrics = Arc::clone(&state.metrics);
                        Ok((
                            outgoing,
                            ExchangeRecorder::new(exchange, metrics, Arc::clone(&keys)),
                        ))
                    }
                    stage => Err(stage),
                },
            )
        };
        let hasty =
            catch_panic(|| carry(self.state, call, CallStage::Received, Blocking::Forbidden));
        let taken = match hasty {
            // The rest takes its time.
            Some(Ok(Err(stage))) => {
                let (state, call) = (Arc::clone(self.state), call.clone());
                let rest = spawn_blocking(move || carry(&state, &call, stage, Blocking::Allowed));
                rest.await.ok()
            }
            taken => taken,
        };
        match taken {
            Some(Ok(Ok(taken))) => return Ok(taken),
            Some(Err(ConversationError::Policy(why))) => return Err(why),
            // The provider will report the error in the request.
            Some(Err(ConversationError::Request(why))) => {
                tracing::debug!(why, "cannot be recorded");
                return Err(why);
            }
            Some(Err(error)) => tracing::error!(%error, "cannot be recorded"),
            Some(Ok(Err(_))) | None => tracing::error!("cannot be recorded"),
        }
        self.state.metrics.failed("take");
        Err("it could not be recorded".to_owned())
    }

    /// Forwards a call that cannot be recorded. The folds of its conversation are applied nevertheless: unfolded it may
    /// be too long for the model.
    async fn unrecorded(&self, call: ModelCall, unpacked: bool) -> Response {
        let (state, read) = (Arc::clone(self.state), call.clone());
        let folded =
            spawn_blocking(move || catch_panic(|| state.conversations.fold_unrecorded(&read)))
                .await;
        match folded {
            Ok(Some(Ok(Some(outgoing)))) => {
                let parts = outgoing.bytes_of(&call.body);
                self.pass(parts, true, !unpacked).await
            }
            _ => self.through(true).await,
        }
    }

    /// Forwards the request and the answer unchanged.
    async fn through(&self, reads: bool) -> Response {
        let whole = OutgoingBody::untouched(&self.body).bytes_of(&self.body);
        self.pass(whole, reads, true).await
    }

    /// Sends parts of a body, and passes the answer on as it comes.
    async fn pass(&self, parts: Vec<BodyPart>, reads: bool, packed: bool) -> Response {
        match self.send(parts, reads, packed).await {
            Ok(answer) => {
                let flow = ClientBody::passed(Bytes::new(), answer.body);
                answered(answer.status, &answer.headers, flow)
            }
            Err(response) => *response,
        }
    }

    /// Sends parts of a body, which may still be packed as the client packed it.
    pub async fn send(
        &self,
        parts: Vec<BodyPart>,
        reads: bool,
        packed: bool,
    ) -> Result<ForwardResponse, Box<Response>> {
        if self.upstream.is_foreign(self.wire) {
            return self.send_translated(parts, packed).await;
        }
        let uri = &self.parts.uri;
        let endpoint = &self.upstream.endpoint;
        let token = self.state.access.token();
        let mut headers = headers::outward(&self.parts.headers, uri, endpoint, token, reads);
        if !packed {
            headers.remove(CONTENT_ENCODING);
        }
        let passing = ForwardRequest {
            method: self.parts.method.clone(),
            path: self.route.path.clone(),
            query: headers::query(uri, token),
            headers,
            parts,
        };
        self.forwarded(passing).await
    }

    /// Sends a prepared request.
    pub async fn forwarded(
        &self,
        passing: ForwardRequest,
    ) -> Result<ForwardResponse, Box<Response>> {
        let endpoint = &self.upstream.endpoint;
        let answer = self.forward.send(endpoint, passing).await;
        let answer = answer.map_err(|error| Box::new(self.unreachable(&error)))?;
        let status = answer.status;
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            let what = format!(
                "{} at {} points elsewhere ({status}), and requests are not sent there; is the address right?",
                endpoint.name,
                endpoint.base()
            );
            let what = ClientError::Unreachable(what);
            return Err(Box::new(complaint(self.wire, false, &what)));
        }
        Ok(answer)
    }

    fn unreachable(&self, error: &ForwardError) -> Response {
        let endpoint = &self.upstream.endpoint;
        let (name, base) = (&endpoint.name, endpoint.base());
        tracing::warn!(provider = %name, %error, "no answer");
        let what = format!("{name} ({base}) gives no answer: {error}");
        let what = if error.is_timeout() {
            ClientError::Late(what)
        } else {
            ClientError::Unreachable(what)
        };
        complaint(self.wire, false, &what)
    }
}

fn answered(status: StatusCode, headers: &HeaderMap, flow: ClientBody) -> Response {
    let mut response = Response::new(flow);
    *response.status_mut() = status;
    *response.headers_mut() = headers::inward(headers);
    response
}

/// Says whether a reply comes bit by bit.
pub(crate) fn has_stream_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let starts = |start: &str| {
        let kind = kind.and_then(|kind| kind.get(..start.len()));
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case(start.as_bytes()))
    };
    starts("text/event-stream") || starts("application/x-ndjson")
}

/// Adds the headers that describe an exchange to the client.
fn add_headers(response: &mut Response, headers: Vec<(&'static str, String)>) {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
}
