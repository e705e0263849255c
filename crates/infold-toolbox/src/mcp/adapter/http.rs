//! Streamable HTTP over the project's HTTP client, with bounded responses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use infold_provider::{ForwardError, ForwardResponse, HttpAddress, ResponseBody};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Sends the messages of one connection.
#[derive(Clone, Debug)]
pub struct HttpClient {
    address: HttpAddress,
    /// Headers of every request.
    headers: HeaderMap,
    max_response_bytes: usize,
}

type HttpError = StreamableHttpError<ForwardError>;

/// Returns the options of the transport. The address is that of the client.
pub fn transport_config() -> StreamableHttpClientTransportConfig {
    // A session that the server dropped is an error here: the connection is then opened again, as after any
    // failure, and no call is sent twice.
    StreamableHttpClientTransportConfig::default().reinit_on_expired_session(false)
}

impl HttpClient {
    pub fn new(address: HttpAddress, headers: HeaderMap, max_response_bytes: usize) -> HttpClient {
        HttpClient {
            address,
            headers,
            max_response_bytes,
        }
    }

    async fn send(
        &self,
        method: Method,
        body: Option<Bytes>,
        session: Option<Arc<str>>,
        token: Option<String>,
        added: HashMap<HeaderName, HeaderValue>,
    ) -> Result<ForwardResponse, HttpError> {
        let mut headers = self.headers.clone();
        headers.extend(added);
        let accepted = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
        let token = token.map(|token| format!("Bearer {token}"));
        let own = [
            (ACCEPT, Some(accepted)),
            (
                HeaderName::from_static("mcp-session-id"),
                session.map(|id| id.to_string()),
            ),
            (AUTHORIZATION, token),
            (
                CONTENT_TYPE,
                body.as_ref().map(|_| JSON_MIME_TYPE.to_owned()),
            ),
        ];
        for (name, value) in own {
            let Some(value) = value else { continue };
            let value = HeaderValue::from_str(&value)
                .map_err(|_| unexpected("a header that cannot be sent"))?;
            headers.insert(name, value);
        }
        let sent = self.address.send(method, headers, body).await;
        sent.map_err(StreamableHttpError::Client)
    }

    /// Reads a response whole.
    async fn read(&self, body: ResponseBody) -> Result<Bytes, HttpError> {
        let limit = self.max_response_bytes;
        match Limited::new(body, limit).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) => Err(unexpected(format!("its response cannot be read: {error}"))),
        }
    }

    /// Reads a response as events.
    fn events(&self, body: ResponseBody) -> BoxStream<'static, Result<Sse, SseError>> {
        let limited = Limited::new(body, self.max_response_bytes);
        SseStream::new(limited.map_err(McpBodyError)).boxed()
    }
}

/// Why the body of a response ended early.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct McpBodyError(Box<dyn std::error::Error + Send + Sync>);

impl StreamableHttpClient for HttpClient {
    type Error = ForwardError;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let has_session = session.is_some();
        let response = self
            .send(Method::POST, Some(body), session, token, headers)
            .await?;
        let status = response.status;
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && !is_request || status == StatusCode::ACCEPTED {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.headers.get(HEADER_SESSION_ID);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        if status.is_success() && is_kind(&response, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(response.body),
                session,
            ));
        }
        let body = self.read(response.body).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) if status.is_success() => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            // An error of the protocol may come with any status.
            Ok(message @ ServerJsonRpcMessage::Error(_)) if !is_authorization(status) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ => Err(status_error(status, &body)),
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        // Whether a server lets a session be deleted is its own business.
        self.send(Method::DELETE, None, Some(session), token, headers)
            .await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let last_event = last_event.and_then(|id| HeaderValue::from_str(&id).ok());
        if let (Some(id), Ok(name)) = (last_event, HEADER_LAST_EVENT_ID.parse()) {
            headers.insert(name, id);
        }
        let response = self
            .send(Method::GET, None, session, token, headers)
            .await?;
        if response.status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status.is_success() || !is_kind(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(status_error(response.status, b""));
        }
        Ok(self.events(response.body))
    }
}

fn is_kind(response: &ForwardResponse, mime_type: &str) -> bool {
    let kind = response.headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(mime_type.as_bytes()))
}

fn is_authorization(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn status_error(status: StatusCode, body: &[u8]) -> HttpError {
    const MAX_SHOWN_CHARS: usize = 300;
    let body = String::from_utf8_lossy(body);
    let body: String = body.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let hint = if is_authorization(status) {
        " (it wants other `headers`)"
    } else {
        ""
    };
    unexpected(format!("HTTP {status}{hint} {body}").trim_end().to_owned())
}

fn unexpected(text: impl Into<Cow<'static, str>>) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}
