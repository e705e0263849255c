//! Forwards requests of clients to providers, and returns responses as they come.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tower::util::MapResponseLayer;

use crate::body::join_parts;
use crate::http::{HttpClients, NO_CERTIFICATES, root_cause};
use crate::{BodyPart, Endpoint};

/// Forwards requests to providers. One is enough for a process: it keeps connections open.
///
/// Unlike [`crate::Client`] it reads nothing and adds nothing. It sends a request a second time only
/// if the connection had served another before and closed without a response.
#[derive(Debug, Default)]
pub struct Forwarder {
    pooled: HttpClients,
    /// Clients that open a connection for every request.
    unpooled: HttpClients,
    /// The time for which a provider may send nothing; `None` means no limit.
    idle_timeout: Option<Duration>,
}

/// A request to forward.
#[derive(Debug)]
pub struct ForwardRequest {
    /// The method.
    pub method: Method,
    /// The path as the client has it: its version may be that of the provider's base, or missing there.
    pub path: String,
    /// The query, without its question mark.
    pub query: Option<String>,
    /// All headers except those of a single connection.
    pub headers: HeaderMap,
    /// The body, one part after the other.
    pub parts: Vec<BodyPart>,
}

/// The response of a provider.
#[derive(Debug)]
pub struct ForwardResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. Dropping it before its end ends the request.
    pub body: ResponseBody,
}

/// The body of a response, as it comes.
#[derive(Debug)]
pub struct ResponseBody(reqwest::Body);

/// The reason that a response is missing or incomplete. The text has no address, because that may contain a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ForwardError {
    text: String,
    timed_out: bool,
}

impl Forwarder {
    /// Creates a forwarder. A provider that sends nothing for longer than `idle_timeout`, before a
    /// response or within it, is given up.
    pub fn new(idle_timeout: Option<Duration>) -> Forwarder {
        Forwarder {
            idle_timeout,
            ..Forwarder::default()
        }
    }

    /// Forwards a request, and waits for the response to begin.
    ///
    /// Dropping the future ends the request.
    pub async fn send(
        &self,
        to: &Endpoint,
        request: ForwardRequest,
    ) -> Result<ForwardResponse, ForwardError> {
        let first = prepare(self.http(to, true)?, to, &request);
        let is_connected = Arc::new(AtomicBool::new(false));
        let sent = Instant::now();
        let call = IS_CONNECTED.scope(Arc::clone(&is_connected), first.send());
        let response = match call.await {
            // The provider may have closed the connection as idle before it saw the request. On a
            // connection that was made for the request, the same error may mean that it was executed.
            // And so may a close that comes late.
            Err(error)
                if is_closed(&error)
                    && !is_connected.load(Ordering::Relaxed)
                    && sent.elapsed() < STALE_WITHIN =>
            {
                prepare(self.http(to, false)?, to, &request).send().await
            }
            response => response,
        };
        let (parts, body) = http::Response::from(response?).into_parts();
        Ok(ForwardResponse {
            status: parts.status,
            headers: parts.headers,
            body: ResponseBody(body),
        })
    }

    fn http(&self, to: &Endpoint, is_pooled: bool) -> Result<&reqwest::Client, ForwardError> {
        let clients = if is_pooled {
            &self.pooled
        } else {
            &self.unpooled
        };
        let client = clients.get(to.reach(), |builder| {
            let mut builder = builder
                .no_gzip()
                .tcp_nodelay(true)
                .pool_idle_timeout(pool_idle_timeout(to))
                .connector_layer(MapResponseLayer::new(note_connection));
            if let Some(idle_timeout) = self.idle_timeout {
                builder = builder.read_timeout(idle_timeout);
            }
            if !is_pooled {
                builder = builder.pool_max_idle_per_host(0);
            }
            builder
        });
        client.map_err(|_| ForwardError {
            text: NO_CERTIFICATES.to_owned(),
            timed_out: false,
        })
    }
}

/// The time in which a request on a connection that the provider closed as idle fails.
const STALE_WITHIN: Duration = Duration::from_secs(2);

tokio::task_local! {
    /// Becomes true when a connection is made for the request that this task sends.
    static IS_CONNECTED: Arc<AtomicBool>;
}

/// Notes that a connection was made.
///
/// If a pooled connection becomes free first, that one is used, and the new one is finished by
/// another task, where nothing is noted.
fn note_connection<C>(connection: C) -> C {
    let _ = IS_CONNECTED.try_with(|is_connected| is_connected.store(true, Ordering::Relaxed));
    connection
}

fn prepare(
    client: &reqwest::Client,
    to: &Endpoint,
    request: &ForwardRequest,
) -> reqwest::RequestBuilder {
    let url = to.forward_url(&request.path, request.query.as_deref());
    let prepared = client
        .request(request.method.clone(), url)
        .headers(request.headers.clone());
    match join_parts(request.parts.clone()) {
        Some(body) => prepared.body(body),
        None => prepared,
    }
}

/// Says whether the connection closed before a response began.
fn is_closed(error: &reqwest::Error) -> bool {
    let causes = successors(error.source(), |&cause| cause.source());
    let error = causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    error.last().is_some_and(|error| {
        let is_io = || error.source().is_some_and(<dyn Error>::is::<io::Error>);
        error.is_incomplete_message() || error.is_canceled() || !error.is_user() && is_io()
    })
}

/// Returns the time for which an unused connection is kept. Small servers close theirs after 5 s, and a request in
/// transit at that moment is sent twice; a new connection to them costs nothing.
fn pool_idle_timeout(to: &Endpoint) -> Duration {
    Duration::from_secs(if to.is_local() { 4 } else { 60 })
}

impl From<reqwest::Error> for ForwardError {
    fn from(error: reqwest::Error) -> ForwardError {
        let timed_out = error.is_timeout() && !error.is_connect();
        let mut text = if error.is_connect() {
            "it cannot be reached".to_owned()
        } else if timed_out {
            "it was silent for too long".to_owned()
        } else {
            "the connection broke".to_owned()
        };
        if let Some(cause) = root_cause(&error) {
            text = format!("{text}: {cause}");
        }
        ForwardError { text, timed_out }
    }
}

impl ForwardError {
    /// Makes an error of a response that came and cannot be read.
    pub fn unreadable(text: impl Into<String>) -> ForwardError {
        ForwardError {
            text: text.into(),
            timed_out: false,
        }
    }

    /// Says whether the provider was reached, and sent nothing for too long.
    pub fn is_timeout(&self) -> bool {
        self.timed_out
    }
}

impl ResponseBody {
    /// Wraps a body that is derived from a response while that comes.
    pub fn new(
        body: impl Body<Data = Bytes, Error = ForwardError> + Send + Sync + 'static,
    ) -> ResponseBody {
        ResponseBody(reqwest::Body::wrap(body))
    }
}

impl From<reqwest::Body> for ResponseBody {
    fn from(body: reqwest::Body) -> ResponseBody {
        ResponseBody(body)
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> ResponseBody {
        ResponseBody(bytes.into())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        Pin::new(&mut self.0)
            .poll_frame(context)
            .map_err(ForwardError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
