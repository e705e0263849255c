//! Requests to a provider of another wire than the client's, and the translation of its answers.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use http::{HeaderMap, Method, StatusCode};
use infold::config::SERVED_APIS;
use infold_provider::{BodyPart, ForwardRequest, ForwardResponse, ResponseBody, percent_decode};
use infold_translate::{TranslateTarget, TranslatedRequest, translate};
use infold_wire::provider_error::{
    ClientError, classify, error_message, is_overloaded, write_client_error,
};
use infold_wire::{Delivery, ProviderError, Wire};
use tokio::task::spawn_blocking;

use crate::body::decode_body;
use crate::client_body::{Response, read_up_to};
use crate::content_coding::decode_beginning;
use crate::decoded_body::decoded;
use crate::headers::key;
use crate::locked;
use crate::proxy::{MAX_ERROR_BODY_BYTES, ProxiedRequest};
use crate::route::Destination;
use crate::translated_reply::{TranslatedReply, whole};
use crate::{IncomingBody, ModelCall, Upstream, headers};

/// Parts of a request that the provider's wire cannot express.
#[derive(Debug, Default)]
pub(crate) struct LostParts(Mutex<BTreeSet<String>>);

/// The longest header that names it.
const MAX_HEADER_CHARS: usize = 1000;

impl LostParts {
    /// Returns the response header that names them.
    pub fn header(&self) -> Vec<(&'static str, String)> {
        let all: Vec<String> = locked(&self.0).iter().cloned().collect();
        let plain = |char: char| match char {
            ' '..='~' => char,
            _ => '?',
        };
        let text: String = all
            .join("; ")
            .chars()
            .map(plain)
            .take(MAX_HEADER_CHARS)
            .collect();
        if text.is_empty() {
            Vec::new()
        } else {
            vec![("x-infold-lost", text)]
        }
    }
}

/// Returns the configured model: the client's model name means nothing to another provider.
pub(crate) fn model(upstream: &Upstream, wire: Wire) -> Option<String> {
    let own = upstream.provider.model.as_ref()?;
    upstream.is_foreign(wire).then(|| own.value.clone())
}

/// Says whether a call goes to a provider that speaks another wire.
pub(crate) fn is_translated(call: &ModelCall) -> bool {
    let api = match call.provider.api.value.as_str() {
        "lmstudio" => "openai",
        api => api,
    };
    SERVED_APIS[call.wire as usize] != api
}

impl ProxiedRequest<'_> {
    /// Sends the client's request in the provider's wire, and returns the answer in the client's.
    pub async fn send_translated(
        &self,
        parts: Vec<BodyPart>,
        packed: bool,
    ) -> Result<ForwardResponse, Box<Response>> {
        let body = match self.gathered(parts, packed).await {
            Ok(body) => body,
            Err(error) => {
                let what = format!("the request could not be read: {error}");
                return Ok(self.complains(&ClientError::Request(what)));
            }
        };
        let Destination::Model { model, stream, .. } = &self.route.to else {
            return self.answer_auxiliary(body).await;
        };
        let (from, provider) = (self.wire, &self.upstream.provider);
        let endpoint = &self.upstream.endpoint;
        // Without this, Gemini's streams are one JSON list, even if it has a single element.
        let query = self.parts.uri.query().unwrap_or_default();
        let listed = *stream == Some(true) && !query.split('&').any(|pair| pair == "alt=sse");
        let own = self::model(self.upstream, from);
        let window = provider.context_length.as_ref().map(|set| set.value);
        let aim = TranslateTarget {
            to: endpoint.wire,
            model: own.or_else(|| model.clone()),
            stream: stream.map(|stream| stream && !listed),
            window: window.filter(|_| endpoint.wire == Wire::Ollama),
            official: endpoint.is_openai_itself(),
        };
        let asked_for = model.clone();
        let told = spawn_blocking(move || translate(from, &body, &aim)).await;
        let told = match told {
            Ok(Ok(told)) => told,
            Ok(Err(error)) => return Ok(self.complains(&ClientError::Request(error.to_string()))),
            Err(_) => {
                let what = "the request could not be translated".to_owned();
                return Ok(self.complains(&ClientError::Failed(what)));
            }
        };
        self.note(&told);
        let asked_for = asked_for.unwrap_or_else(|| told.model.clone());
        let streams = told.frame.stream;
        let (path, query) = endpoint.path(&told.frame.model, streams);
        let passing = ForwardRequest {
            method: Method::POST,
            path,
            query: query.map(str::to_owned),
            headers: self.translated_headers(),
            parts: vec![BodyPart::Bytes(told.body.into())],
        };
        let answer = self.forwarded(passing).await?;
        if !answer.status.is_success() {
            let (read, _) = read_up_to(answer.body, MAX_ERROR_BODY_BYTES).await;
            let said = decode_beginning(&answer.headers, &read, MAX_ERROR_BODY_BYTES);
            return Ok(self.refused(answer.status, &answer.headers, &said));
        }
        let answer = match decoded(answer) {
            Ok(answer) => answer,
            Err(coding) => {
                let what = format!(
                    "the reply of the provider is compressed in a way that is not known here (`{coding}`)"
                );
                return Ok(self.complains(&ClientError::Unreachable(what)));
            }
        };
        let form = if streams {
            Delivery::Stream
        } else {
            Delivery::Whole
        };
        let relayed = TranslatedReply::new(answer.body, [endpoint.wire, from], form, &asked_for);
        let relayed = relayed.with_usage_apart(told.wants_usage);
        if streams {
            let kind = match from {
                Wire::Ollama => "application/x-ndjson",
                _ => "text/event-stream; charset=utf-8",
            };
            return Ok(answered(StatusCode::OK, kind, ResponseBody::new(relayed)));
        }
        Ok(match whole(relayed).await {
            Ok(body) => {
                let body = if listed {
                    [b"[", &*body, b"]"].concat()
                } else {
                    body
                };
                answered(StatusCode::OK, JSON, Bytes::from(body).into())
            }
            Err(body) => self.refused(StatusCode::BAD_GATEWAY, &HeaderMap::new(), &body),
        })
    }

    /// Returns an error of the proxy as an answer.
    pub fn complains(&self, what: &ClientError) -> ForwardResponse {
        let (status, kind, body) = write_client_error(self.wire, false, what);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        answered(status, kind, Bytes::from(body).into())
    }

    /// Translates a provider's error for the client.
    pub fn refused(&self, status: StatusCode, headers: &HeaderMap, said: &[u8]) -> ForwardResponse {
        if let ProviderError::Unexplained { .. } = classify(status.as_u16(), None, said) {
            // There is nothing to put in other words.
            let kind = headers.get(CONTENT_TYPE).cloned();
            return ForwardResponse {
                status,
                headers: kind.map(|kind| (CONTENT_TYPE, kind)).into_iter().collect(),
                body: Bytes::copy_from_slice(said).into(),
            };
        }
        let (status, what) = refusal(status, said);
        let (_, kind, body) = write_client_error(self.wire, false, &what);
        let mut answer = answered(status, kind, Bytes::from(body).into());
        let kept = [RETRY_AFTER, HeaderName::from_static("retry-after-ms")];
        for name in kept {
            if let Some(value) = headers.get(&name) {
                answer.headers.insert(name, value.clone());
            }
        }
        answer
    }

    /// The headers of a request to the provider: nothing that is meant for another one.
    pub fn translated_headers(&self) -> HeaderMap {
        let endpoint = &self.upstream.endpoint;
        let mut all = endpoint.headers();
        all.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        all.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(agent) = self.parts.headers.get(USER_AGENT) {
            all.insert(USER_AGENT, agent.clone());
        }
        if endpoint.key().is_none() {
            let given = self.key();
            all.extend(given.and_then(|key| endpoint.key_header(&key)));
        }
        all
    }

    /// Returns the client's key from the header of its API.
    fn key(&self) -> Option<String> {
        let token = self.state.access.token();
        let given = headers::KEYS
            .iter()
            .flat_map(|name| self.parts.headers.get_all(name))
            .filter(|value| !token.is_some_and(|token| token.is_in(value)))
            .find_map(|value| std::str::from_utf8(key(value.as_bytes())).ok());
        let query = headers::query(&self.parts.uri, token).unwrap_or_default();
        let in_query = query.split('&').find_map(|pair| pair.strip_prefix("key="));
        given
            .map(str::to_owned)
            .or_else(|| in_query.map(percent_decode))
    }

    fn note(&self, told: &TranslatedRequest) {
        if told.lost.is_empty() {
            return;
        }
        let (from, to) = (self.wire.name(), told.frame.wire.name());
        let what: Vec<&str> = told.lost.iter().map(String::as_str).collect();
        tracing::info!(
            from,
            to,
            lost = what.join("; "),
            "not all could be carried over"
        );
        locked(&self.lost.0).extend(told.lost.iter().cloned());
    }

    /// Returns the whole body, decompressed.
    pub async fn gathered(&self, parts: Vec<BodyPart>, packed: bool) -> io::Result<Vec<u8>> {
        let packed = packed && self.parts.headers.contains_key(CONTENT_ENCODING);
        let (headers, limits) = (self.parts.headers.clone(), self.state.limits.clone());
        let gathered = spawn_blocking(move || {
            let mut whole = Vec::new();
            for part in parts {
                match part {
                    BodyPart::Bytes(bytes) => whole.extend_from_slice(&bytes),
                    BodyPart::File { file, range } => {
                        let start = whole.len();
                        whole.resize(start + (range.end - range.start) as usize, 0);
                        file.read_exact_at(&mut whole[start..], range.start)?;
                    }
                }
            }
            if !packed {
                return Ok(whole);
            }
            let plain = decode_body(&headers, &IncomingBody::InMemory(whole.into()), &limits)?;
            let plain = plain.ok_or_else(|| io::Error::other("it is packed in an unknown way"))?;
            Ok(plain.part(&(0..plain.len()))?.into_owned())
        });
        gathered.await.map_err(io::Error::other)?
    }
}

pub(crate) const JSON: &str = "application/json";

/// An answer that is made here.
pub(crate) fn answered(
    status: StatusCode,
    kind: &'static str,
    body: ResponseBody,
) -> ForwardResponse {
    let kind = HeaderValue::from_static(kind);
    ForwardResponse {
        status,
        headers: HeaderMap::from_iter([(CONTENT_TYPE, kind)]),
        body,
    }
}

/// Translates a provider's error for a client of another wire; a meaningful status is kept.
pub(crate) fn refusal(status: StatusCode, said: &[u8]) -> (StatusCode, ClientError) {
    let text = error_message(said).unwrap_or_else(|| {
        if said.is_empty() {
            format!("the provider answered {status}")
        } else {
            String::from_utf8_lossy(said).chars().take(500).collect()
        }
    });
    match classify(status.as_u16(), None, said) {
        ProviderError::TooLong { tokens, limit } => {
            let what = ClientError::TooLong { tokens, limit };
            return (StatusCode::BAD_REQUEST, what);
        }
        ProviderError::Busy { .. } if is_overloaded(status.as_u16(), said) => {
            // An error within a reply has no status of its own.
            let status = match status {
                StatusCode::BAD_GATEWAY => {
                    StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
                }
                status => status,
            };
            return (status, ClientError::Overloaded(text));
        }
        _ => {}
    }
    let what = match status.as_u16() {
        401 => ClientError::Key(text),
        403 => ClientError::Forbidden(text),
        404 => ClientError::NotFound(text),
        429 => ClientError::Busy(text),
        400..=499 => ClientError::Request(text),
        504 => ClientError::Late(text),
        _ => ClientError::Failed(text),
    };
    (status, what)
}
