//! A code hosting server on loopback that answers as GitHub and GitLab document it, with scripted faults.

mod github;
mod gitlab;
mod reply;
mod state;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use reply::{ForgeReply, ForgeRequest, decode};
pub use state::{ForgeComment, ForgeItem, ForgeRate, ForgeRepo, ForgeState};

/// How large a request may be.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// A server of issues, pull and merge requests. Paths that begin with `/api/v4` are GitLab's, all others
/// GitHub's, with or without `/api/v3`. It stops when it is dropped.
#[derive(Debug)]
pub struct Forge {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: ForgeState,
    faults: Vec<PlannedFault>,
    seen: Vec<ReceivedCall>,
}

/// A request that the server was sent, and the status of its reply.
#[derive(Clone, Debug)]
pub struct ReceivedCall {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// All headers, as lines.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// The status that was answered.
    pub status: u16,
}

/// A fault of a server.
pub enum ForgeFault {
    /// It sends this reply, and does nothing else.
    Reply {
        /// The status.
        status: u16,
        /// Further headers.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// It carries out the request, and the connection breaks before the reply.
    LostReply,
    /// The connection breaks in the middle of the reply.
    CutReply,
    /// Its content is changed by others before it answers.
    Change(Box<dyn FnMut(&mut ForgeState) + Send>),
}

impl ForgeFault {
    /// Returns a reply with a status and a message.
    pub fn status(status: u16) -> ForgeFault {
        ForgeFault::Reply {
            status,
            headers: Vec::new(),
            body: b"{\"message\":\"Server Error\"}".to_vec(),
        }
    }
}

impl std::fmt::Debug for ForgeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ForgeFault::Reply { .. } => "Reply",
            ForgeFault::LostReply => "LostReply",
            ForgeFault::CutReply => "CutReply",
            ForgeFault::Change(_) => "Change",
        })
    }
}

#[derive(Debug)]
struct PlannedFault {
    method: &'static str,
    part: String,
    left: usize,
    fault: ForgeFault,
}

/// The part of a reply that is delivered.
enum ReplyDelivery {
    Whole,
    Lost,
    Cut,
}

impl Forge {
    /// Starts on a free port.
    ///
    /// # Panics
    ///
    /// If loopback has none.
    pub fn start(state: ForgeState) -> Forge {
        Forge::start_on(0, state).expect("loopback has a free port")
    }

    /// Starts on this port.
    pub fn start_on(port: u16, state: ForgeState) -> io::Result<Forge> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::new(Mutex::new(Shared {
            state,
            faults: Vec::new(),
            seen: Vec::new(),
        }));
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let serve = async move {
            let listener = TcpListener::from_std(listener)?;
            let app = Router::new().fallback(handle).with_state(served);
            axum::serve(listener, app).await
        };
        let thread = std::thread::Builder::new()
            .name("infold-forge".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = serve => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Forge {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Reads or changes its state.
    pub fn with<T>(&self, look: impl FnOnce(&mut ForgeState) -> T) -> T {
        look(&mut lock(&self.shared).state)
    }

    /// Lets the next `times` requests of a method fail whose address contains `part`.
    pub fn fail(&self, method: &'static str, part: &str, times: usize, fault: ForgeFault) {
        lock(&self.shared).faults.push(PlannedFault {
            method,
            part: part.to_owned(),
            left: times,
            fault,
        });
    }

    /// Returns the requests so far.
    pub fn calls(&self) -> Vec<ReceivedCall> {
        lock(&self.shared).seen.clone()
    }

    /// Returns how many requests of a method were sent whose address contains `part`.
    pub fn count(&self, method: &str, part: &str) -> usize {
        let is_meant = |call: &&ReceivedCall| call.method == method && call.target.contains(part);
        lock(&self.shared).seen.iter().filter(is_meant).count()
    }

    /// Forgets the requests so far.
    pub fn forget_calls(&self) {
        lock(&self.shared).seen.clear();
    }

    /// Waits until the server ends, which is when the process does.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the server was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The server may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A test that panicked while it looked leaves nothing half done.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn handle(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // A body that does not come whole is none.
    let body = to_bytes(body, MAX_REQUEST_BYTES).await.unwrap_or_default();
    let host = parts
        .headers
        .get("host")
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name, true), decode(value, true))
    };
    let segments = parts.uri.path().split('/').filter(|part| !part.is_empty());
    let request = ForgeRequest {
        method: parts.method,
        path: segments.map(|segment| decode(segment, false)).collect(),
        query: pairs.map(pair).collect(),
        headers: parts.headers.clone(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        base: format!("http://{host}"),
        target: parts.uri.to_string(),
    };
    let (reply, delivery) = lock(&shared).answer(request, &body);
    deliver(reply, delivery)
}

impl Shared {
    fn answer(&mut self, mut request: ForgeRequest, body: &[u8]) -> (ForgeReply, ReplyDelivery) {
        let mut delivery = ReplyDelivery::Whole;
        let mut fixed = None;
        for planned in &mut self.faults {
            let is_meant =
                planned.method == request.method.as_str() && request.target.contains(&planned.part);
            if planned.left == 0 || !is_meant {
                continue;
            }
            planned.left -= 1;
            match &mut planned.fault {
                ForgeFault::Reply {
                    status,
                    headers,
                    body,
                } => {
                    let headers = headers
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), value.clone()));
                    fixed = Some(ForgeReply {
                        status: *status,
                        headers: headers.collect(),
                        body: body.clone(),
                    });
                }
                ForgeFault::LostReply => delivery = ReplyDelivery::Lost,
                ForgeFault::CutReply => delivery = ReplyDelivery::Cut,
                ForgeFault::Change(change) => change(&mut self.state),
            }
            break;
        }
        let is_gitlab = request
            .path
            .starts_with(&["api".to_owned(), "v4".to_owned()]);
        let is_versioned = is_gitlab
            || request
                .path
                .starts_with(&["api".to_owned(), "v3".to_owned()]);
        if is_versioned {
            request.path.drain(..2);
        }
        if is_versioned && !is_gitlab {
            request.base += "/api/v3";
        }
        let reply = fixed.unwrap_or_else(|| {
            if is_gitlab {
                gitlab::respond(&mut self.state, &request)
            } else {
                github::respond(&mut self.state, &request)
            }
        });
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        };
        self.seen.push(ReceivedCall {
            method: request.method.to_string(),
            target: request.target.clone(),
            headers: request.headers.iter().map(header).collect(),
            body: String::from_utf8_lossy(body).into_owned(),
            status: reply.status,
        });
        (reply, delivery)
    }
}

/// Sends a reply; one that breaks names its whole length, and ends before it.
fn deliver(reply: ForgeReply, delivery: ReplyDelivery) -> Response {
    let length = reply.body.len();
    let body = match delivery {
        ReplyDelivery::Whole => Body::from(reply.body),
        ReplyDelivery::Lost | ReplyDelivery::Cut => {
            let sent = if matches!(delivery, ReplyDelivery::Cut) {
                length / 2
            } else {
                0
            };
            let start = Bytes::from(reply.body).slice(..sent);
            Body::from_stream(stream::iter([Ok(start), Err(io::Error::other("cut"))]))
        }
    };
    let mut response = Response::new(body);
    if let Ok(status) = reply.status.try_into() {
        *response.status_mut() = status;
    }
    let headers = response.headers_mut();
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    if !matches!(delivery, ReplyDelivery::Whole) {
        headers.insert("content-length", HeaderValue::from(length.max(1)));
    }
    response
}
