//! The server: listens, limits the requests of each client, and answers requests until it is stopped.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use infold_provider::{Forwarder, Secret};
use infold_store::TaskError;
use infold_wire::Wire;
use infold_wire::provider_error::ClientError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client_body::{ClientBody, Response};
use crate::headers::{AccessDenied, AccessPolicy};
use crate::metrics::{InFlight, Metrics};
use crate::route::{Destination, Route};
use crate::unrecorded_paths::UnrecordedPaths;
use crate::{Api, Conversations, LiveEvents, Upstreams, locked, proxy};

/// The addresses and limits of the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on. Port 0 is any free port.
    pub address: SocketAddr,
    /// The token that clients must send. An address that other machines can reach requires one.
    pub token: Option<Secret>,
    /// The names under which clients may reach it, besides those of this machine.
    pub names: Vec<String>,
    /// The providers.
    pub upstreams: Upstreams,
    /// Its limits.
    pub limits: ServerLimits,
}

/// The limits of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The most bytes of a body.
    pub body: u64,
    /// The body size in bytes from which on a body is spooled to a file.
    pub spool: usize,
    /// The most bytes of a request's headers.
    pub headers: usize,
    /// The time limit for headers, and for an idle connection.
    pub header_time: Duration,
    /// The time limit between two parts of a body.
    pub body_idle: Duration,
    /// The time limit for a whole body.
    pub body_time: Duration,
    /// The time limit for a provider's silence, before and during its answer; `None` means no limit.
    pub silence: Option<Duration>,
    /// The number of concurrent requests of one client.
    pub per_client: usize,
    /// The time for which replies may continue after the server was told to stop.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            body: 256 << 20,
            spool: 1 << 20,
            headers: 64 << 10,
            header_time: Duration::from_secs(75),
            body_idle: Duration::from_secs(30),
            body_time: Duration::from_secs(600),
            silence: Some(Duration::from_secs(30 * 60)),
            per_client: 512,
            grace: Duration::from_secs(20),
        }
    }
}

/// The reason that the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines can reach the address, and no token is required.
    #[error("{0} can be reached from other machines, and there is no token to keep them out")]
    NoToken(IpAddr),
    /// A token that is easily guessed.
    #[error("the token has fewer than {0} characters")]
    ShortToken(usize),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The tasks cannot be had.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// A token with fewer characters is no secret.
const MIN_TOKEN_BYTES: usize = 16;

/// The state that all requests share.
pub(crate) struct ServerState {
    pub conversations: Conversations,
    pub api: Api,
    pub upstreams: Upstreams,
    pub limits: ServerLimits,
    pub access: AccessPolicy,
    pub forward: Forwarder,
    pub metrics: Arc<Metrics>,
    pub permits: Arc<Permits>,
    pub unrecorded: UnrecordedPaths,
}

/// The proxy, listening.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<ServerState>,
}

impl Server {
    /// Binds the address. Requests are answered only in [`Server::run`].
    ///
    /// `conversations` is opened once the server's address is known, because locks of tasks contain it.
    pub async fn bind(
        options: Options,
        conversations: impl FnOnce(&str) -> Result<Conversations, TaskError>,
    ) -> Result<Server, ServeError> {
        let address = options.address;
        match &options.token {
            None if !address.ip().is_loopback() => return Err(ServeError::NoToken(address.ip())),
            Some(token) if token.reveal().len() < MIN_TOKEN_BYTES => {
                return Err(ServeError::ShortToken(MIN_TOKEN_BYTES));
            }
            _ => {}
        }
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|source| ServeError::Bind { address, source })?;
        let conversations = conversations(&base(address))?;
        let silence = options.limits.silence;
        let metrics = conversations.metrics();
        let state = Arc::new(ServerState {
            api: Api::new(conversations.clone(), options.limits.clone()),
            conversations,
            upstreams: options.upstreams,
            limits: options.limits,
            access: AccessPolicy::new(address, options.names, options.token),
            forward: Forwarder::new(silence),
            metrics,
            permits: Arc::default(),
            unrecorded: UnrecordedPaths::default(),
        });
        Ok(Server {
            listener,
            address,
            state,
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for clients on this machine.
    pub fn url(&self) -> String {
        base(self.address)
    }

    /// Returns the live events of the server.
    pub fn events(&self) -> LiveEvents {
        self.state.conversations.events()
    }

    /// Answers until `stop`; then lets replies under way end, for a while.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (tell, told) = watch::channel(false);
        let mut open = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stop => break,
                Some(_) = open.join_next(), if !open.is_empty() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    open.spawn(serve(Arc::clone(&self.state), stream, peer, told.clone()));
                }
                Err(error) => {
                    // Usually there are too many open files: other connections must end first.
                    tracing::warn!(%error, "no connection was accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.listener);
        self.state.conversations.events().end();
        let _ = tell.send(true);
        let all = async { while open.join_next().await.is_some() {} };
        if tokio::time::timeout(self.state.limits.grace, all)
            .await
            .is_err()
        {
            tracing::warn!("replies under way were cut off");
            open.shutdown().await;
        }
        let conversations = self.state.conversations.clone();
        let _ = tokio::task::spawn_blocking(move || conversations.close()).await;
    }
}

/// Returns the URL at which this machine reaches a server that listens there.
fn base(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Answers the requests of one connection.
async fn serve(
    state: Arc<ServerState>,
    stream: TcpStream,
    peer: SocketAddr,
    mut told: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(state.limits.header_time)
        .max_buf_size(state.limits.headers.max(8 << 10));
    let answer = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, std::convert::Infallible>(answer(&state, peer.ip(), request).await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // The server stops: this connection ends with its reply.
        () = async { drop(told.wait_for(|stop| *stop).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Answers one request.
async fn answer(state: &Arc<ServerState>, client: IpAddr, request: Request<Incoming>) -> Response {
    let path = request.uri().path();
    let route = Route::read(request.method(), path, request.headers());
    let wire = route.as_ref().ok().and_then(Route::wire);
    let most = state.limits.per_client;
    let (method, path) = (request.method().clone(), path.to_owned());
    let permit = state
        .permits
        .take(client, most, &state.metrics, method, path);
    let Some(mut permit) = permit else {
        let why = format!("this client has {most} requests under way already");
        return proxy::complaint(wire.unwrap_or(Wire::Chat), false, &ClientError::Busy(why));
    };
    permit.wire = wire;
    let mut response = respond(state, request, route).await;
    permit.status = response.status().as_u16();
    let told = |name| response.headers().get(name)?.to_str().ok();
    permit.task = told("x-infold-task").map(str::to_owned);
    permit.folds = told("x-infold-folds").and_then(|folds| folds.parse().ok());
    response.body_mut().hold_permit(permit);
    response
}

async fn respond(
    state: &Arc<ServerState>,
    mut request: Request<Incoming>,
    route: Result<Route, crate::route::BadPath>,
) -> Response {
    let wire = route.as_ref().ok().and_then(Route::wire);
    let keyed = match wire {
        Some(wire) => state.upstreams.of(wire).endpoint.key().is_some(),
        // Requests to the proxy itself need no provider's key.
        None => true,
    };
    // The connection's own limit is checked only between reads, and may be exceeded.
    let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    let long: usize = request.headers().iter().map(size).sum();
    let admitted = if long > state.limits.headers {
        Err(AccessDenied {
            status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            why: "the headers are longer than they may be",
        })
    } else {
        state.access.admit(&request, keyed)
    };
    if let Err(refusal) = admitted {
        return refused(wire, &refusal);
    }
    let route = match route {
        Ok(route) => route,
        Err(bad) => {
            let what = ClientError::Request(bad.0.to_owned());
            return proxy::complaint(Wire::Chat, false, &what);
        }
    };
    match (&route.to, wire) {
        (Destination::Ours, _) => {
            // Forward the path without the prefix for the proxy.
            if let Some(uri) = moved(request.uri(), &route.path) {
                *request.uri_mut() = uri;
            }
            state.api.answer(request).await.map(ClientBody::api)
        }
        (Destination::Root, _) | (_, None) => root(request.method()),
        (_, Some(wire)) if is_websocket(request.headers()) => refuse_websocket(wire),
        (_, Some(wire)) => proxy::pass(state, request, &route, wire).await,
    }
}

/// Says whether a request asks for a WebSocket.
fn is_websocket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(UPGRADE).iter();
    let mut protocols = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Refuses a WebSocket with 426, the one status after which Codex falls back to plain requests
/// at once; after any other it retries for several seconds.
fn refuse_websocket(wire: Wire) -> Response {
    let why = "WebSockets are not supported here: send plain HTTP requests".to_owned();
    let mut response = proxy::complaint(wire, false, &ClientError::Request(why));
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    // A response with this status has to name the protocol that would be accepted.
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// An address with another path.
fn moved(uri: &Uri, path: &str) -> Option<Uri> {
    let query = uri.query().map(|query| format!("?{query}"));
    let whole = format!("{path}{}", query.unwrap_or_default());
    whole.parse().ok()
}

/// Answers the root, where clients check that a server is there.
fn root(method: &Method) -> Response {
    let text = "infold is running: Ollama is running here too, and so are the other APIs\n";
    let mut response = if *method == Method::HEAD {
        Response::new(ClientBody::from(""))
    } else {
        Response::new(ClientBody::from(text))
    };
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Says no, in the words of the wire if there is one.
fn refused(wire: Option<Wire>, refusal: &AccessDenied) -> Response {
    tracing::warn!(
        status = refusal.status.as_u16(),
        why = refusal.why,
        "refused"
    );
    let why = refusal.why.to_owned();
    let what = match refusal.status {
        StatusCode::UNAUTHORIZED => ClientError::Key(why),
        StatusCode::FORBIDDEN => ClientError::Forbidden(why),
        _ => ClientError::Request(why),
    };
    let mut response = proxy::complaint(wire.unwrap_or(Wire::Chat), false, &what);
    *response.status_mut() = refusal.status;
    response
}

/// The number of requests in progress for each client.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    in_use: Mutex<HashMap<IpAddr, usize>>,
}

/// The permit for a request to be in progress. Dropped when its response has ended in any way.
pub(crate) struct Permit {
    permits: Arc<Permits>,
    metrics: Arc<Metrics>,
    client: IpAddr,
    began: Instant,
    _under_way: InFlight,
    /// The method and path of the request.
    pub method: Method,
    pub path: String,
    /// The wire of the request, once known.
    pub wire: Option<Wire>,
    /// The status of the response.
    pub status: u16,
    /// The task that the answer names, and how many folds were sent in its place.
    pub task: Option<String>,
    pub folds: Option<u64>,
    /// The bytes that were sent to the client.
    pub sent: u64,
}

/// The status that servers log if the client disconnected before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Permits {
    /// Returns a permit, unless the client has the maximum already.
    pub fn take(
        self: &Arc<Permits>,
        client: IpAddr,
        most: usize,
        metrics: &Arc<Metrics>,
        method: Method,
        path: String,
    ) -> Option<Permit> {
        let mut in_use = locked(&self.in_use);
        let count = in_use.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Permit {
            permits: Arc::clone(self),
            metrics: Arc::clone(metrics),
            client,
            began: Instant::now(),
            _under_way: metrics.begin(),
            method,
            path,
            wire: None,
            // The client went away before there was a response.
            status: CLIENT_CLOSED_REQUEST,
            task: None,
            folds: None,
            sent: 0,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.count(self.wire, self.status, took);
        self.metrics.moved(0, self.sent);
        if self.status == CLIENT_CLOSED_REQUEST {
            self.metrics.disconnected();
        }
        tracing::info!(
            method = %self.method,
            path = self.path,
            wire = self.wire.map(Wire::name),
            status = self.status,
            task = self.task,
            folds = self.folds,
            bytes = self.sent,
            ms = took.as_micros() as f64 / 1000.0,
            "answered"
        );
        let mut in_use = locked(&self.permits.in_use);
        if let Some(count) = in_use.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                in_use.remove(&self.client);
            }
        }
    }
}
