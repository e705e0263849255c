//! A model server on loopback that stops when it is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::respond::Responder;
use crate::send::send;
use crate::server_connection::{CuttableListener, Cutter};
use crate::upload::{self, RECORDED, Upload};
use crate::{Refusal, Script, Seen, Step, Tally};

/// A model server on loopback. It stops when it is dropped.
///
/// It has a thread of its own, so that synchronous tests can use it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<ServerRecord>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the server.
#[derive(Debug)]
struct ServerRecord {
    responder: Responder,
    seen: Vec<Seen>,
    /// How many bytes of bodies are kept, and from which request on.
    kept: usize,
    oldest: usize,
}

/// How many bytes of bodies are kept; of older requests the ends and the hash are.
const KEPT: usize = 256 << 20;

impl Server {
    /// Starts on a free port.
    ///
    /// # Panics
    ///
    /// If loopback has none.
    pub fn start(script: Script) -> Server {
        Server::start_on(0, script).expect("loopback has a free port")
    }

    /// Starts on this port.
    pub fn start_on(port: u16, script: Script) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let state = Arc::new(Mutex::new(ServerRecord {
            responder: Responder::new(script),
            seen: Vec::new(),
            kept: 0,
            oldest: 0,
        }));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("infold-testkit".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = serve(listener, shared) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Server {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.state).seen.clone()
    }

    /// Returns the last request.
    pub fn last(&self) -> Option<Seen> {
        lock(&self.state).seen.last().cloned()
    }

    /// Returns the last request for a reply. A client may ask for other things in between, such as
    /// the window of a model.
    pub fn last_call(&self) -> Option<Seen> {
        let state = lock(&self.state);
        let mut last = state.seen.iter().rev();
        last.find(|seen| seen.wire().is_some()).cloned()
    }

    /// Returns how many requests there were.
    pub fn count(&self) -> usize {
        lock(&self.state).seen.len()
    }

    /// Appends a step to the script.
    pub fn then(&self, step: Step) {
        lock(&self.state).responder.script.steps.push_back(step);
    }

    /// Returns how many steps are left.
    pub fn left(&self) -> usize {
        lock(&self.state).responder.script.steps.len()
    }

    /// Takes the requests that were refused as invalid since this was last asked.
    pub fn take_refusals(&self) -> Vec<Refusal> {
        std::mem::take(&mut lock(&self.state).responder.refusals)
    }

    /// Returns the counts of random faults so far.
    pub fn faults(&self) -> Tally {
        lock(&self.state).responder.tally
    }

    /// Waits until the server ends, which is when the process does.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the server was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
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
fn lock(state: &Mutex<ServerRecord>) -> MutexGuard<'_, ServerRecord> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: std::net::TcpListener, state: Arc<Mutex<ServerRecord>>) -> io::Result<()> {
    let listener = CuttableListener(TcpListener::from_std(listener)?);
    let app = Router::new().fallback(handle).with_state(state);
    let service = app.into_make_service_with_connect_info::<Cutter>();
    axum::serve(listener, service).await
}

async fn handle(
    State(state): State<Arc<Mutex<ServerRecord>>>,
    ConnectInfo(cutter): ConnectInfo<Cutter>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut upload = upload::read(body).await;
    let whole = upload.whole.take();
    let answer = {
        let mut record = lock(&state);
        let seen = record.add(&parts, upload, whole.as_deref());
        if seen.cut {
            // The client is gone.
            return Response::default();
        }
        record.responder.answer(&seen, whole.as_deref())
    };
    drop(whole);
    match answer.outgoing {
        Some(outgoing) => send(outgoing, &answer.pace, cutter).await,
        None => std::future::pending().await,
    }
}

impl ServerRecord {
    fn add(&mut self, parts: &Parts, upload: Upload, whole: Option<&[u8]>) -> Seen {
        let headers = parts.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        let seen = Seen {
            number: self.seen.len() as u64 + 1,
            at: SystemTime::now(),
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            len: upload.len,
            hash: upload.hash,
            body: whole.filter(|it| it.len() <= RECORDED).map(<[u8]>::to_vec),
            head: upload.head,
            tail: upload.tail,
            cut: upload.cut,
        };
        self.seen.push(seen.clone());
        self.kept += seen.body.as_ref().map_or(0, Vec::len);
        while self.kept > KEPT {
            let body = self.seen[self.oldest].body.take();
            self.kept -= body.map_or(0, |body| body.len());
            self.oldest += 1;
        }
        if let Some(watch) = &mut self.responder.script.watch {
            watch(&seen);
        }
        seen
    }
}
