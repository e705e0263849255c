//! An MCP server: started on demand, started again after a failure, called within limits of time and size.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use infold_provider::{HttpAddress, Secret};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::adapter::{
    Handshake, HandshakeError, McpConnection, RequestError, ServerTool, connect_http, connect_stdio,
};
use super::line_limit::LineLimit;
use super::process::{ProcessSettings, ServerProcess};
use super::restart::{RestartPolicy, RestartRefusal};
use crate::failure::CallProblem;
use crate::{McpServer, McpTransport};

/// An MCP server, running or not, and its state.
#[derive(Debug)]
pub(crate) struct ServerHandle {
    name: String,
    transport: Transport,
    timeout: Duration,
    max_tools: usize,
    max_message_bytes: usize,
    state: Mutex<ConnectionState>,
    /// True once the toolbox is shut down.
    is_shut_down: watch::Sender<bool>,
}

/// How a server is reached.
#[derive(Debug)]
enum Transport {
    Process(ProcessSettings),
    Http {
        address: Box<HttpAddress>,
        headers: HeaderMap,
    },
}

#[derive(Debug, Default)]
struct ConnectionState {
    running: Option<Arc<RunningServer>>,
    restarts: RestartPolicy,
    /// Why the last start failed.
    last_failure: Option<String>,
    /// The last list of tools. It is offered while the server is down too, so that the tools of requests do not change.
    listed: ToolListing,
}

/// The tools of a server, and the problems with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolListing {
    pub tools: Vec<ServerTool>,
    pub problem: Option<String>,
}

/// A server that runs.
#[derive(Debug)]
struct RunningServer {
    connection: McpConnection,
    /// `None` for a server that is reached over HTTP, and after the process was stopped.
    process: Mutex<Option<ServerProcess>>,
    is_line_too_long: Arc<AtomicBool>,
    is_listed: AtomicBool,
}

/// Settings that all servers of a toolbox share.
#[derive(Clone, Debug)]
pub(crate) struct SharedSettings {
    pub environment: Vec<(OsString, OsString)>,
    pub directory: Option<PathBuf>,
    pub max_tools: usize,
    pub max_result_bytes: usize,
}

/// How long a server has to answer whether it still works, after a call took too long.
const MAX_PING_TIME: Duration = Duration::from_secs(5);

/// How long closing a connection may take.
const MAX_CLOSE_TIME: Duration = Duration::from_secs(2);

impl ServerHandle {
    pub fn new(settings: McpServer, shared: SharedSettings) -> Result<ServerHandle, String> {
        let transport = match settings.transport {
            McpTransport::Command {
                command,
                environment,
            } => {
                if command.is_empty() {
                    return Err("`command` is empty".to_owned());
                }
                let own = environment.into_iter();
                let own = own.map(|(name, value)| (name.into(), value.reveal().to_owned().into()));
                Transport::Process(ProcessSettings {
                    command,
                    environment: shared.environment.into_iter().chain(own).collect(),
                    directory: shared.directory,
                })
            }
            McpTransport::Http { url, headers } => Transport::Http {
                address: HttpAddress::new(&settings.name, &url)
                    .map(Box::new)
                    .map_err(|_| "`url` is no HTTP address".to_owned())?,
                headers: header_map(&headers)?,
            },
        };
        Ok(ServerHandle {
            name: settings.name,
            transport,
            timeout: settings.timeout,
            max_tools: shared.max_tools,
            // A text in JSON may be twice as long, with its escapes.
            max_message_bytes: shared
                .max_result_bytes
                .saturating_mul(2)
                .max(MIN_MESSAGE_BYTES),
            state: Mutex::default(),
            is_shut_down: watch::Sender::new(false),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tools of the server, which is started if it does not run.
    pub async fn tools(&self) -> ToolListing {
        let running = self.running().await;
        let listed = match &running {
            Ok(running) if !running.needs_listing() => {
                return self.state.lock().await.listed.clone();
            }
            Ok(running) => self.list(running).await,
            Err(reason) => Err(reason.clone()),
        };
        let mut state = self.state.lock().await;
        match listed {
            Ok(listed) => state.listed = listed,
            Err(reason) => state.listed.problem = Some(reason),
        }
        state.listed.clone()
    }

    async fn list(&self, running: &Arc<RunningServer>) -> Result<ToolListing, String> {
        let request = running.connection.list_tools(self.max_tools);
        let listed = match timeout(self.timeout, request).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(RequestError::Answered(text) | RequestError::Unreadable(text))) => {
                return Err(format!("it does not list its tools: {text}"));
            }
            Ok(Err(RequestError::Lost(text))) => {
                let words = self.discard(running).await;
                return Err(format!("it ended while it listed its tools: {text}{words}"));
            }
            Err(_) => {
                let words = self.discard(running).await;
                let seconds = self.timeout.as_secs_f64();
                return Err(format!(
                    "it did not list its tools within {seconds} s{words}"
                ));
            }
        };
        running.is_listed.store(true, Ordering::Relaxed);
        let more = listed.has_more.then(|| {
            format!(
                "it has more than {} tools; the rest is not offered",
                self.max_tools
            )
        });
        let malformed = (listed.malformed > 0).then(|| {
            let count = listed.malformed;
            format!(
                "{count} of its tools are not described as the protocol requires, and not offered"
            )
        });
        let problems: Vec<String> = more.into_iter().chain(malformed).collect();
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        Ok(ToolListing {
            tools: listed.tools,
            problem,
        })
    }

    /// Calls a tool. An error contains the output of the tool, or the reason why there is none.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, CallProblem> {
        let name = &self.name;
        let running = self.running().await.map_err(|reason| {
            CallProblem::new(format!(
                "the MCP server `{name}` is not available: {reason}"
            ))
        })?;
        let request = running.connection.call(tool, arguments);
        match timeout(self.timeout, request).await {
            Ok(Ok(output)) => {
                self.state.lock().await.restarts.worked();
                if output.is_error {
                    return Err(tool_failure(output.text));
                }
                Ok(output.text)
            }
            Ok(Err(RequestError::Answered(text))) => {
                self.state.lock().await.restarts.worked();
                Err(CallProblem::new(format!(
                    "the MCP server `{name}` refused the call: {text}"
                )))
            }
            Ok(Err(RequestError::Unreadable(text))) => {
                self.state.lock().await.restarts.worked();
                Err(CallProblem::new(format!(
                    "the MCP server `{name}` answered, but not with a result that can be read ({text}). The call may have had an effect"
                )))
            }
            Ok(Err(RequestError::Lost(text))) => {
                let words = self.discard(&running).await;
                Err(CallProblem::new(format!(
                    "the MCP server `{name}` failed during the call, which may have had an effect: {text}{words}. The next call starts it again"
                )))
            }
            Err(_) => {
                let is_alive = running.connection.answers_within(MAX_PING_TIME).await;
                let after = if is_alive {
                    "the server was told to stop it"
                } else {
                    self.discard(&running).await;
                    "the server answers nothing else either and was stopped; the next call starts it again"
                };
                Err(CallProblem::new(format!(
                    "the MCP server `{name}` did not answer within {} s: {after}. The call may have had an effect",
                    self.timeout.as_secs_f64()
                )))
            }
        }
    }

    /// Returns the running server, and starts it if it does not run.
    async fn running(&self) -> Result<Arc<RunningServer>, String> {
        let mut state = self.state.lock().await;
        if *self.is_shut_down.borrow() {
            return Err("it was shut down".to_owned());
        }
        if let Some(running) = &state.running {
            if !running.connection.is_closed() {
                return Ok(Arc::clone(running));
            }
            state.running = None;
            state.restarts.failed(Instant::now());
        }
        let last = || match &state.last_failure {
            Some(failure) => format!(" ({failure})"),
            None => String::new(),
        };
        match state.restarts.check(Instant::now()) {
            Ok(()) => {}
            Err(RestartRefusal::Wait(wait)) => {
                let seconds = wait.as_secs_f64().ceil();
                return Err(format!(
                    "it failed{}; the next try is in {seconds} s",
                    last()
                ));
            }
            Err(RestartRefusal::GivenUp) => {
                return Err(format!(
                    "it failed too often and is not started again{}",
                    last()
                ));
            }
        }
        let mut is_shut_down = self.is_shut_down.subscribe();
        let started = tokio::select! {
            started = self.start() => started,
            _ = is_shut_down.wait_for(|is_shut_down| *is_shut_down) => {
                return Err("it was shut down".to_owned());
            }
        };
        match started {
            Ok(running) => {
                let running = Arc::new(running);
                state.running = Some(Arc::clone(&running));
                Ok(running)
            }
            Err(reason) => {
                state.restarts.failed(Instant::now());
                state.last_failure = Some(reason.clone());
                Err(reason)
            }
        }
    }

    async fn start(&self) -> Result<RunningServer, String> {
        match self.connect(Handshake::Initialize).await {
            Err(error) if error.is_refusal => self
                .connect(Handshake::Discover)
                .await
                // The error of the usual handshake is more informative.
                .map_err(|_| error.text),
            connected => connected.map_err(|error| error.text),
        }
    }

    async fn connect(&self, handshake: Handshake) -> Result<RunningServer, HandshakeError> {
        match &self.transport {
            Transport::Process(settings) => self.connect_process(settings, handshake).await,
            Transport::Http { address, headers } => {
                let limit = self.max_message_bytes;
                let connecting = connect_http(address, headers, limit, handshake);
                let connection = self.in_time(connecting).await?;
                Ok(RunningServer::new(connection, None, Arc::default()))
            }
        }
    }

    async fn connect_process(
        &self,
        settings: &ProcessSettings,
        handshake: Handshake,
    ) -> Result<RunningServer, HandshakeError> {
        let (mut process, stdout, stdin) = ServerProcess::start(settings).map_err(|error| {
            let program = settings.command.first().map_or("", String::as_str);
            HandshakeError::new(format!("`{program}` cannot be started: {error}"))
        })?;
        let is_line_too_long = Arc::new(AtomicBool::new(false));
        let output = LineLimit::new(
            stdout,
            self.max_message_bytes,
            Arc::clone(&is_line_too_long),
        );
        match self.in_time(connect_stdio(output, stdin, handshake)).await {
            Ok(connection) => Ok(RunningServer::new(
                connection,
                Some(process),
                is_line_too_long,
            )),
            Err(error) => {
                let words = quoted(&process.last_words().await);
                Err(HandshakeError {
                    text: format!("{}{words}", error.text),
                    ..error
                })
            }
        }
    }

    async fn in_time(
        &self,
        connecting: impl Future<Output = Result<McpConnection, HandshakeError>>,
    ) -> Result<McpConnection, HandshakeError> {
        timeout(self.timeout, connecting).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs_f64();
            Err(HandshakeError::new(format!(
                "it did not start within {seconds} s"
            )))
        })
    }

    /// Stops a server that failed; the next call starts it again. Returns its last output for an error message.
    async fn discard(&self, running: &Arc<RunningServer>) -> String {
        let mut state = self.state.lock().await;
        let is_current = |current: &Arc<RunningServer>| Arc::ptr_eq(current, running);
        if state.running.as_ref().is_some_and(is_current) {
            state.running = None;
            state.restarts.failed(Instant::now());
        }
        let process = running.process.lock().await.take();
        let mut words = match process {
            Some(mut process) => quoted(&process.last_words().await),
            None => String::new(),
        };
        if running.is_line_too_long.load(Ordering::Relaxed) {
            let limit = self.max_message_bytes;
            words = format!(" (it sent a message of more than {limit} bytes){words}");
        }
        state.last_failure = Some(format!("it ended{words}"));
        words
    }

    /// Ends the server, for good.
    pub async fn shut_down(&self) {
        self.is_shut_down.send_replace(true);
        let running = self.state.lock().await.running.take();
        let Some(running) = running else {
            return;
        };
        let process = running.process.lock().await.take();
        // A call that still waits keeps the connection open. Dropping `process` kills its server in that case.
        if let Ok(running) = Arc::try_unwrap(running) {
            running.connection.close(MAX_CLOSE_TIME).await;
            if let Some(process) = process {
                process.end().await;
            }
        }
    }
}

/// Messages may be this long even if the limit of results is small, because a list of tools may be long.
const MIN_MESSAGE_BYTES: usize = 16 << 20;

impl RunningServer {
    fn new(
        connection: McpConnection,
        process: Option<ServerProcess>,
        is_line_too_long: Arc<AtomicBool>,
    ) -> RunningServer {
        RunningServer {
            connection,
            process: Mutex::new(process),
            is_line_too_long,
            is_listed: AtomicBool::new(false),
        }
    }

    fn needs_listing(&self) -> bool {
        // The notice of a change is taken in any case, so that it does not cause a second listing. One that came during
        // the last listing is found now.
        if self.connection.take_list_changed() {
            self.is_listed.store(false, Ordering::Relaxed);
        }
        !self.is_listed.load(Ordering::Relaxed)
    }
}

/// Returns headers in the form in which they are sent, marked as sensitive so that they are never printed.
fn header_map(headers: &[(String, Secret)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = |_| format!("the header `{name}` has characters that cannot be sent");
        let key: HeaderName = name.parse().map_err(|_| bad(()))?;
        let mut value: HeaderValue = value.reveal().parse().map_err(|_| bad(()))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// Returns the problem of a call whose tool reported an error: the first line as the reason, and all of the output.
fn tool_failure(text: String) -> CallProblem {
    const MAX_REASON_CHARS: usize = 200;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let reason: String = line
        .unwrap_or("the tool failed and did not say why")
        .chars()
        .take(MAX_REASON_CHARS)
        .collect();
    let output = (!text.trim().is_empty() && text != reason).then_some(text);
    CallProblem { reason, output }
}

/// Returns the last output of a process for an error message.
fn quoted(words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    format!("; it wrote: {words}")
}
