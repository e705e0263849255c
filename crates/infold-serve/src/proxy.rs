//! A proxied request: accepted, sent, retried if the provider refuses it, answered and recorded.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use infold_provider::{
    BodyPart, ForwardError, ForwardRequest, ForwardResponse, Forwarder, ResponseBody,
};
use infold_wire::provider_error::{
    ClientError, RefusalCause, classify, error_message, reports_overflow, write_client_error,
};
use infold_wire::request_options::is_long_context_beta;
use infold_wire::{ProviderError, Wire};
use tokio::task::spawn_blocking;

use crate::body_reader::{self, BodyError};
use crate::client_body::{ClientBody, Response};
use crate::content_coding::ContentCoding;
use crate::conversations::{Blocking, CallStage};
use crate::exchange_recorder::{ExchangeRecorder, catch_panic};
use crate::headers::ClientKeys;
use crate::reply_tee::{ReplyStart, ReplyTee};
use crate::route::{Destination, Route};
use crate::server::ServerState;
use crate::translate::LostParts;
use crate::upstream::Upstream;
use crate::{
    ConversationError, IncomingBody, ModelCall, OutgoingBody, OutgoingPart, agent, headers,
    translate,
};

/// The most of an error body that is read: more than is looked at.
const MAX_ERROR_BODY_BYTES: usize = 128 << 10;

/// A request on its way through.
pub(crate) struct ProxiedRequest<'f> {
    pub state: &'f Arc<ServerState>,
    pub forward: &'f Forwarder,
    pub upstream: &'f Upstream,
    pub wire: Wire,
    pub route: &'f Route,
    pub parts: &'f Parts,
    /// As the client sent it.
    pub body: IncomingBody,
    /// What of it the provider's wire has no words for.
    pub lost: LostParts,
}

/// What a provider answered instead of a reply.
struct ProviderRefusal {
    status: StatusCode,
    /// What it means, as far as it says so.
    trouble: ProviderError,
    /// What it says, unpacked.
    said: Bytes,
    /// The same for the client, byte for byte.
    response: Response,
}

impl ProviderRefusal {
    /// What happened, for people.
    fn told(&self) -> String {
        let why = error_message(&self.said).unwrap_or_default();
        match self.status.is_success() {
            true if self.said.is_empty() => "the reply is empty".to_owned(),
            _ => format!("the provider answered {}: {why}", self.status),
        }
    }

    /// Says whether a request may have been refused for how it was folded. ClientKeys, models and
    /// quotas are not: the provider says so.
    fn may_be_of_the_fold(&self, trouble: &ProviderError) -> bool {
        let refused = matches!(
            trouble,
            ProviderError::Refused(RefusalCause::Request)
                | ProviderError::PlainMessages
                | ProviderError::AlternateRoles
                | ProviderError::BoundThinking
        );
        refused && matches!(self.status.as_u16(), 400 | 422)
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
    let body = match body_reader::read_body(body, &state.limits).await {
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
        _ => {
            way.look_for_call().await;
            way.through(false).await
        }
    };
    tell(&mut response, way.lost.header());
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
            tracing::error!(%error, "a large request could not be recorder");
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
    /// A call of a model: recognised, recorder, folded if it must be, and its reply recorded.
    async fn call(&self) -> Response {
        let Some((call, unpacked)) = self.read().await else {
            return self.through(true).await;
        };
        let began = Instant::now();
        let taken = self.take(&call).await;
        self.state.metrics.added(began.elapsed());
        let Some((mut outgoing, mut recorder)) = taken else {
            return self.unrecorded(call, unpacked).await;
        };
        let stream = recorder
            .look(|exchange| exchange.is_stream())
            .unwrap_or(false);
        let mut empty = 0;
        let mut fell_back = false;
        loop {
            let untouched = outgoing.parts() == [OutgoingPart::Client(0..call.body.len())];
            let sent = match unpacked && untouched {
                // What came packed and was not changed goes on packed.
                true => parts(&self.body, &OutgoingBody::untouched(&self.body)),
                false => parts(&call.body, &outgoing),
            };
            let packed = !unpacked || untouched;
            let answer = match self.send(sent, true, packed).await {
                Ok(answer) => answer,
                Err(response) => {
                    recorder.fail("the provider could not be reached");
                    return *response;
                }
            };
            let status = answer.status;
            let refusal;
            if status.is_success() {
                let streams = stream || is_stream(&answer.headers);
                let told = recorder
                    .look(|exchange| exchange.headers())
                    .unwrap_or_default();
                let mut tee =
                    ReplyTee::new(self.wire, streams, &answer.headers, answer.body, recorder);
                let (trouble, said) = match tee.open().await {
                    Err(error) => {
                        // Nothing was passed on yet, so that it can still be said.
                        return self.unreachable(&error);
                    }
                    Ok(ReplyStart::TooLong(trouble, said)) => (trouble, said),
                    Ok(ReplyStart::Empty)
                        if streams && self.upstream.endpoint.wire == Wire::Chat =>
                    {
                        // One server answers so to a stream that is too long, always; any
                        // other may do it once, by accident.
                        empty += 1;
                        let status = status.as_u16();
                        (ProviderError::Unexplained { status }, Vec::new())
                    }
                    Ok(_) => {
                        tee.accepted();
                        let flow = ClientBody::tee(tee);
                        let mut response = answered(answer.status, &answer.headers, flow);
                        tell(&mut response, told);
                        return response;
                    }
                };
                let Some(again) = tee.give_up() else {
                    return self.gone();
                };
                recorder = again;
                if empty == 1 && said.is_empty() {
                    continue;
                }
                refusal = ProviderRefusal {
                    status,
                    trouble,
                    said: said.into(),
                    response: answered(status, &answer.headers, ClientBody::tee(tee)),
                };
            } else {
                let (read, rest) = read_error(answer.body).await;
                let said = unpack(&answer.headers, &read);
                refusal = ProviderRefusal {
                    status,
                    trouble: classify(status.as_u16(), None, &said),
                    said,
                    response: answered(status, &answer.headers, ClientBody::passed(read, rest)),
                };
            }
            let trouble = refusal.trouble.clone();
            let explained = recorder.look(|exchange| exchange.explain(trouble));
            let trouble = explained.unwrap_or(ProviderError::Broken);
            let overflows = matches!(
                trouble,
                ProviderError::TooLong { .. } | ProviderError::TooLarge
            );
            let adapts = !untouched
                && matches!(
                    trouble,
                    ProviderError::AlternateRoles | ProviderError::BoundThinking
                );
            // What the client wrote itself was refused, too: that is for the client to hear.
            if !fell_back && (overflows || adapts) {
                let (found, call) = (trouble.clone(), call.clone());
                let again;
                (recorder, again) = recorder
                    .work("fold", move |exchange| exchange.adapt(&call, &found))
                    .await;
                if let Some(again) = again.flatten() {
                    outgoing = again;
                    continue;
                }
            }
            if !untouched && refusal.may_be_of_the_fold(&trouble) {
                let (why, call) = (recorder.shortened(&refusal.told()), call.clone());
                let again;
                (recorder, again) = recorder
                    .work("fold", move |exchange| exchange.fall_back(&call, &why))
                    .await;
                if let Some(again) = again.flatten() {
                    (outgoing, fell_back) = (again, true);
                    continue;
                }
            }
            if overflows {
                return self.too_long(recorder, &trouble, stream, refusal);
            }
            recorder.fail(&refusal.told());
            return refusal.response;
        }
    }

    /// Nothing more can be folded: passes on what the provider says, or says it in the client's own
    /// words if these are not.
    fn too_long(
        &self,
        recorder: ExchangeRecorder,
        trouble: &ProviderError,
        stream: bool,
        refusal: ProviderRefusal,
    ) -> Response {
        recorder.fail("the request is too long, whatever is folded");
        match trouble {
            ProviderError::TooLong { tokens, limit }
                if !reports_overflow(self.wire, &refusal.said) =>
            {
                let (tokens, limit) = (*tokens, *limit);
                complaint(self.wire, stream, &ClientError::TooLong { tokens, limit })
            }
            _ => refusal.response,
        }
    }

    /// The call, and whether its body had to be unpacked; nothing if it cannot be read.
    async fn read(&self) -> Option<(ModelCall, bool)> {
        let Destination::Model {
            wire,
            model,
            stream,
        } = &self.route.to
        else {
            return None;
        };
        let mut body = self.body.clone();
        let mut unpacked = false;
        if self.parts.headers.contains_key(CONTENT_ENCODING) {
            let (headers, limits) = (self.parts.headers.clone(), self.state.limits.clone());
            let packed = body.clone();
            let plain =
                spawn_blocking(move || body_reader::decode_body(&headers, &packed, &limits)).await;
            match plain {
                Ok(Ok(Some(plain))) => (body, unpacked) = (plain, true),
                Ok(Ok(None)) => {
                    self.state.metrics.failed("unpack");
                    tracing::warn!(
                        "a request is packed in a way that is not read here: passed through unrecorded"
                    );
                    return None;
                }
                Ok(Err(error)) => {
                    self.state.metrics.failed("unpack");
                    tracing::warn!(%error, "a packed request could not be read: passed through unrecorded");
                    return None;
                }
                Err(_) => {
                    self.state.metrics.failed("unpack");
                    return None;
                }
            }
        }
        let call = ModelCall {
            wire: *wire,
            model: translate::model(self.upstream, *wire).or_else(|| model.clone()),
            stream: *stream,
            long_context: asks_for_long_context(&self.parts.headers),
            agent: agent::name(&self.parts.headers),
            name: self.route.name.clone(),
            provider: Arc::clone(&self.upstream.provider),
            body,
        };
        Some((call, unpacked))
    }

    /// What the conversations makes of a call; nothing if it failed, and then the call is passed on as it is.
    async fn take(&self, call: &ModelCall) -> Option<(OutgoingBody, ExchangeRecorder)> {
        let Parts { headers, uri, .. } = self.parts;
        let keys = Arc::new(ClientKeys::of(headers, uri, &self.upstream.endpoint));
        let carry = move |state: &ServerState, call: &ModelCall, stage, blocking| {
            Ok::<_, ConversationError>(
                match state.conversations.advance(call, stage, blocking)? {
                    // ExchangeRecorder at once: the client may go away before this is seen.
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
            Some(Ok(Ok(taken))) => return Some(taken),
            // Whoever it is meant for will say what is wrong with it.
            Some(Err(ConversationError::Request(why))) => {
                tracing::debug!(why, "passed through unrecorded");
                return None;
            }
            Some(Err(error)) => tracing::error!(%error, "passed through unrecorded"),
            Some(Ok(Err(_))) | None => tracing::error!("passed through unrecorded"),
        }
        self.state.metrics.failed("take");
        None
    }

    /// Warns if a request that passes unrecorded looks like a model call.
    async fn look_for_call(&self) {
        let (path, body) = (self.route.path.clone(), self.body.clone());
        if !self.state.unrecorded.needs_check(&path, self.parts, &body) {
            return;
        }
        let (state, headers) = (Arc::clone(self.state), self.parts.headers.clone());
        let looked = spawn_blocking(move || state.unrecorded.check(&path, &headers, &body));
        // It only warns: the request goes on whatever becomes of it.
        let _ = looked.await;
    }

    /// Passes a call on that cannot be recorded. The folds of its conversation apply all the same: in
    /// full it may be too long for the model.
    async fn unrecorded(&self, call: ModelCall, unpacked: bool) -> Response {
        let (state, read) = (Arc::clone(self.state), call.clone());
        let folded =
            spawn_blocking(move || catch_panic(|| state.conversations.fold_unrecorded(&read)))
                .await;
        match folded {
            Ok(Some(Ok(Some(outgoing)))) => {
                let parts = parts(&call.body, &outgoing);
                self.pass(parts, true, !unpacked).await
            }
            _ => self.through(true).await,
        }
    }

    /// Passes the request on as it is, and the answer as it comes.
    async fn through(&self, reads: bool) -> Response {
        let whole = parts(&self.body, &OutgoingBody::untouched(&self.body));
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
    async fn send(
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

    /// Sends what is ready to be sent.
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

    fn gone(&self) -> Response {
        let what = ClientError::Failed("the reply was lost on its way".to_owned());
        complaint(self.wire, false, &what)
    }
}

/// Says whether headers ask for a window of a million tokens.
fn asks_for_long_context(headers: &HeaderMap) -> bool {
    let values = headers.get_all("anthropic-beta").iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(is_long_context_beta)
}

/// The parts of what is sent.
fn parts(body: &IncomingBody, outgoing: &OutgoingBody) -> Vec<BodyPart> {
    let part = |piece: &OutgoingPart| match (piece, body) {
        (OutgoingPart::Inserted(bytes), _) => BodyPart::Bytes(bytes.clone()),
        (OutgoingPart::Client(range), IncomingBody::InMemory(bytes)) => {
            let len = bytes.len() as u64;
            let (start, end) = (range.start.min(len), range.end.min(len));
            BodyPart::Bytes(bytes.slice(start as usize..end as usize))
        }
        (OutgoingPart::Client(range), IncomingBody::Spooled { file, .. }) => BodyPart::File {
            file: Arc::clone(file),
            range: range.clone(),
        },
    };
    let pieces = outgoing.parts().iter().filter(|piece| !piece.is_empty());
    pieces.map(part).collect()
}

fn answered(status: StatusCode, headers: &HeaderMap, flow: ClientBody) -> Response {
    let mut response = Response::new(flow);
    *response.status_mut() = status;
    *response.headers_mut() = headers::inward(headers);
    response
}

/// Says whether a reply comes bit by bit.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let starts = |start: &str| kind.is_some_and(|kind| kind.starts_with(start.as_bytes()));
    starts("text/event-stream") || starts("application/x-ndjson")
}

/// Reads the beginning of an error, and leaves the rest.
pub(crate) async fn read_error(body: ResponseBody) -> (Bytes, ResponseBody) {
    read_up_to(body, MAX_ERROR_BODY_BYTES).await
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

/// What an error says, if it is packed.
pub(crate) fn unpack(headers: &HeaderMap, bytes: &Bytes) -> Bytes {
    let coding = match ContentCoding::of(headers) {
        None | Some(ContentCoding::Identity) => return bytes.clone(),
        Some(coding) => coding,
    };
    let mut plain = Vec::new();
    let decoder = coding.decode(&bytes[..]);
    // What can be read of it is better than nothing.
    let _ = decoder
        .take(MAX_ERROR_BODY_BYTES as u64)
        .read_to_end(&mut plain);
    plain.into()
}

/// Adds what the client is told of an exchange.
fn tell(response: &mut Response, told: Vec<(&'static str, String)>) {
    for (name, value) in told {
        if let Ok(value) = HeaderValue::try_from(value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
}
