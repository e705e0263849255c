use std::error::Error;
use std::fs::File;
use std::io;
use std::iter::successors;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use reqwest::redirect;
use tokio::task::{JoinHandle, spawn_blocking};
use tower::util::MapResponseLayer;

use crate::Endpoint;

/// Passes requests of others on to providers, and gives back what comes, as it comes.
///
/// Unlike [`crate::Client`] it reads nothing and adds nothing. It sends a request a second time only
/// if the connection had served another before and closed without an answer. One is enough: it
/// keeps connections open.
#[derive(Debug, Default)]
pub struct Forward {
    /// By where the provider is and how it is reached; made when first needed.
    https: [OnceLock<reqwest::Client>; 4],
    /// The same without a pool: every request gets a connection of its own.
    unpooled: [OnceLock<reqwest::Client>; 4],
    /// How long a provider may be silent; for ever, if it is not said.
    silence: Option<Duration>,
}

/// A request to pass on.
#[derive(Debug)]
pub struct Passing {
    /// What is done.
    pub method: Method,
    /// To what, as the client names it: its version may be that of the provider's base, or missing there.
    pub path: String,
    /// The query, without its question mark.
    pub query: Option<String>,
    /// The headers, all of them but those that are about one connection.
    pub headers: HeaderMap,
    /// The body, one part after the other.
    pub parts: Vec<Part>,
}

/// A part of a body.
#[derive(Clone, Debug)]
pub enum Part {
    /// Held in memory.
    Bytes(Bytes),
    /// Lies in a file, and is read while it is sent.
    File {
        /// The file.
        file: Arc<File>,
        /// Where in it.
        range: Range<u64>,
    },
}

/// What a provider answers.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body. Dropped before its end, it ends the request.
    pub body: Stream,
}

/// The body of an answer, as it comes.
#[derive(Debug)]
pub struct Stream(reqwest::Body);

/// Why no answer came, or not all of it. The text has no address: that may hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ForwardError {
    text: String,
    late: bool,
}

impl Forward {
    /// Makes ready to pass on. Who is silent for longer than this, before an answer or within it,
    /// is given up.
    pub fn new(silence: Option<Duration>) -> Forward {
        // A process has one provider of cryptography; whoever came first has chosen it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Forward {
            silence,
            ..Forward::default()
        }
    }

    /// Passes a request on, and waits for the answer to begin.
    ///
    /// Dropping the future ends the request.
    pub async fn send(&self, to: &Endpoint, passing: Passing) -> Result<Answer, ForwardError> {
        let request = request(self.http(to, true)?, to, &passing);
        let is_connected = Arc::new(AtomicBool::new(false));
        let sent = Instant::now();
        let call = IS_CONNECTED.scope(Arc::clone(&is_connected), request.send());
        let response = match call.await {
            // The provider may have closed the connection as idle before it saw the request. On a
            // connection that was made for the request, the same error may mean that it was executed.
            // And so may a close that comes late.
            Err(error)
                if is_closed(&error)
                    && !is_connected.load(Ordering::Relaxed)
                    && sent.elapsed() < STALE_WITHIN =>
            {
                let unpooled = self.http(to, false)?;
                self::request(unpooled, to, &passing).send().await
            }
            response => response,
        };
        let response = http::Response::from(response.map_err(|error| reason(&error))?);
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: Stream(body),
        })
    }

    fn http(&self, to: &Endpoint, is_pooled: bool) -> Result<&reqwest::Client, ForwardError> {
        let clients = if is_pooled {
            &self.https
        } else {
            &self.unpooled
        };
        let place = usize::from(to.is_local()) * 2 + usize::from(to.is_secure());
        if let Some(http) = clients[place].get() {
            return Ok(http);
        }
        let build = |trusting| {
            let mut builder = builder(to, trusting, self.silence);
            if !is_pooled {
                builder = builder.pool_max_idle_per_host(0);
            }
            builder.build()
        };
        let built = build(true).or_else(|error| match to.is_secure() {
            true => Err(error),
            // A system without certificates can still speak without them.
            false => build(false),
        });
        let what =
            "this system has no certificates to trust (they come with the package ca-certificates)";
        let http = built.map_err(|_| ForwardError {
            text: what.to_owned(),
            late: false,
        })?;
        Ok(clients[place].get_or_init(|| http))
    }
}

/// A connection that the provider closed as idle is found closed as soon as it is used.
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

fn request(client: &reqwest::Client, to: &Endpoint, passing: &Passing) -> reqwest::RequestBuilder {
    let url = to.place(&passing.path, passing.query.as_deref());
    let request = client
        .request(passing.method.clone(), url)
        .headers(passing.headers.clone());
    match body(passing.parts.clone()) {
        Some(body) => request.body(body),
        None => request,
    }
}

/// Says whether the connection closed before an answer began.
fn is_closed(error: &reqwest::Error) -> bool {
    let causes = successors(error.source(), |&cause| cause.source());
    let error = causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    error.last().is_some_and(|error| {
        let is_io = || error.source().is_some_and(<dyn Error>::is::<io::Error>);
        error.is_incomplete_message() || error.is_canceled() || !error.is_user() && is_io()
    })
}

fn builder(to: &Endpoint, trusting: bool, silence: Option<Duration>) -> reqwest::ClientBuilder {
    let mut builder = reqwest::Client::builder()
        // A request with a key and a whole conversation goes where it was meant to, or nowhere.
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_gzip()
        .connect_timeout(Duration::from_secs(15))
        // A model may think for minutes; only this tells a dead connection from a quiet one.
        .tcp_keepalive(Duration::from_secs(20))
        .tcp_nodelay(true)
        .pool_idle_timeout(idle(to))
        .connector_layer(MapResponseLayer::new(note_connection));
    if let Some(silence) = silence {
        builder = builder.read_timeout(silence);
    }
    if to.is_local() {
        // What is on this machine is not asked for through another.
        builder = builder.no_proxy();
    }
    if !trusting || to.is_local() && !to.is_secure() {
        builder = builder.tls_certs_only([]);
    }
    builder
}

/// How long a connection is kept that nothing is sent on. Small servers close theirs after 5 s,
/// and a request that is on its way just then is sent twice; a new connection to them costs nothing.
fn idle(to: &Endpoint) -> Duration {
    Duration::from_secs(if to.is_local() { 4 } else { 60 })
}

/// What happened, with what is behind it: reqwest itself says little.
fn reason(error: &reqwest::Error) -> ForwardError {
    let late = error.is_timeout() && !error.is_connect();
    let mut text = match error {
        error if error.is_connect() => "it cannot be reached".to_owned(),
        _ if late => "it was silent for too long".to_owned(),
        _ => "the connection broke".to_owned(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        // Only the last one says what the matter is.
        if error.source().is_none() {
            text = format!("{text}: {error}");
        }
        cause = error.source();
    }
    ForwardError { text, late }
}

impl ForwardError {
    /// It was reached, and was silent for too long.
    pub fn is_late(&self) -> bool {
        self.late
    }
}

impl Stream {
    /// What is made of an answer on its way.
    pub fn made(
        body: impl Body<Data = Bytes, Error = ForwardError> + Send + Sync + 'static,
    ) -> Stream {
        Stream(reqwest::Body::wrap(body))
    }
}

impl From<Bytes> for Stream {
    fn from(bytes: Bytes) -> Stream {
        Stream(bytes.into())
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map_err(|error| reason(&error))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// A body of these parts; none at all where there is nothing to send.
fn body(mut parts: Vec<Part>) -> Option<reqwest::Body> {
    match parts.as_mut_slice() {
        [] => None,
        [Part::Bytes(bytes)] => Some(std::mem::take(bytes).into()),
        _ => {
            let left = parts.iter().map(Part::len).sum();
            parts.reverse();
            Some(reqwest::Body::wrap(Parts {
                parts,
                left,
                reading: None,
            }))
        }
    }
}

impl Part {
    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::File { range, .. } => range.end.saturating_sub(range.start),
        }
    }

    /// There is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Large enough that a copy is no slower than the disk.
const PIECE: u64 = 512 << 10;

/// A body on its way, with a length that is known before.
struct Parts {
    /// What is left, the next one last.
    parts: Vec<Part>,
    left: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Parts {
    /// The next piece if it is in memory, or nothing while a file is read for it.
    fn next(&mut self) -> Option<Bytes> {
        match self.parts.pop()? {
            Part::Bytes(bytes) => Some(bytes),
            Part::File { file, range } => {
                let end = range.end.min(range.start.saturating_add(PIECE));
                let piece = range.start..end;
                if end < range.end {
                    let file = file.clone();
                    let range = end..range.end;
                    self.parts.push(Part::File { file, range });
                }
                self.reading = Some(spawn_blocking(move || {
                    let mut bytes = vec![0; (piece.end - piece.start) as usize];
                    file.read_exact_at(&mut bytes, piece.start)?;
                    Ok(bytes.into())
                }));
                None
            }
        }
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        while self.left > 0 {
            let piece = match &mut self.reading {
                Some(reading) => {
                    let read = ready!(Pin::new(reading).poll(context));
                    self.reading = None;
                    read.map_err(io::Error::other)??
                }
                None => match self.next() {
                    Some(bytes) => bytes,
                    None if self.reading.is_some() => continue,
                    None => break,
                },
            };
            if !piece.is_empty() {
                self.left = self.left.saturating_sub(piece.len() as u64);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
