//! `infold serve` and `infold wrap`: start the proxy.

mod watch;

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use infold::checkpoint::FileHistory;
use infold::config::Secret;
use infold::profile::Setting;
use infold::summarizer::SummarizerChoice;
use infold::{Config, Connector, Strategy};
use infold_provider::{Client, RetryPolicy, percent_encode};
use infold_serve::{
    Conversations, Options, ServeError, Server, ServerLimits, UpstreamError, Upstreams,
};
use infold_setup::is_loopback;
use infold_store::{Contexts, Durability};
use infold_wire::Wire;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch as watch_channel;
use tracing_subscriber::filter::LevelFilter;

use crate::config::with_tilde;
use crate::error::{CliError, CliResult};
use crate::fold_options::parse_tokens;
use crate::output::{Output, note, print_stderr};
use crate::signals::StopSignals;

/// The default port of `infold serve`.
pub const DEFAULT_PORT: u16 = 7333;

/// The arguments of `infold serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The port; 0 for any free port [default: 7333]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; one that other machines can reach requires a token [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Another host name that clients may use for this machine
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The environment variable with the token that clients must send
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    /// Wait for a line on standard input, then run in a session of its own without a terminal
    #[arg(long, hide = true)]
    detached: bool,
    #[command(flatten)]
    proxy: ProxyArgs,
}

/// The arguments of the proxy.
#[derive(Debug, Args)]
struct ProxyArgs {
    /// The upstream: an address for every API, API=ADDRESS, or API=PROVIDER; an upstream of another API is written as anthropic=openai+http://host
    #[arg(long, value_name = "[API=]URL")]
    upstream: Vec<String>,
    /// The configured provider that receives the requests of its API
    #[arg(long, value_name = "NAME", env = "INFOLD_PROVIDER")]
    provider: Option<String>,
    /// The window of all models in tokens, such as 8000, 32k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    window: Option<u64>,
    /// What to keep and the form of the summary: infold, roo, gemini, file or truncate
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,
    /// The summarizer: extractive, model, model:NAME, or command:… which reads the transcript on standard input
    #[arg(long, value_name = "SUMMARIZER")]
    summarizer: Option<String>,
    /// Trace every request on stderr
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text")]
    trace: Option<TraceFormat>,
}

/// The format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Text
    Text,
    /// JSON, one object per line
    Json,
}

/// The arguments of `infold wrap`.
#[derive(Debug, Args)]
pub struct WrapArgs {
    /// A name for the conversation, to continue it next time
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep the files of the current directory when the agent's calls may have changed them
    #[arg(long)]
    checkpoints: bool,
    #[command(flatten)]
    proxy: ProxyArgs,
    /// The agent and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    agent: Vec<OsString>,
}

/// `infold serve`
pub fn serve(
    contexts: &Contexts,
    config: &Config,
    args: &ServeArgs,
    out: &mut Output,
) -> CliResult {
    if args.detached {
        return detach();
    }
    let set = &config.serve;
    let port = args.port.or(set.port.as_ref().map(|set| set.value));
    let host = args.host.or(set.host.as_ref().map(|set| set.value));
    let host = host.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let mut names: Vec<String> = set.names.iter().map(|set| set.value.clone()).collect();
    names.extend(args.allow_host.iter().cloned());
    let address = SocketAddr::new(host, port.unwrap_or(DEFAULT_PORT));
    start_tracing(args.proxy.trace, LevelFilter::WARN)?;
    let listen = ListenOptions {
        address,
        names,
        token: token(config, args)?,
    };
    let proxy = RunningProxy::start(contexts, config, &args.proxy, listen)?;
    // Listen for signals before the address is printed: the reader may send one at once.
    let signals = StopSignals::listen(&proxy.runtime);
    let base = proxy.server.url();
    if out.is_json() {
        let address = proxy.server.address();
        out.object(&json!({
            "listening": base, "host": address.ip().to_string(), "port": address.port(),
            "environment": variables(&base).map(|(name, value)| json!({"name": name, "value": value})),
        }))?;
        out.finish()?;
    } else {
        print_stderr(format!("listening on {base}"));
        let root = std::path::absolute(contexts.root()).unwrap_or(contexts.root().to_owned());
        let root = with_tilde(root.display().to_string());
        note(false, format!("recording in {root}"));
        for line in proxy.upstream_lines().into_iter().chain(exports(&base)) {
            note(false, line);
        }
    }
    let (runtime, server, stop) = (proxy.runtime, proxy.server, proxy.stop);
    if !out.is_json()
        && let Some(listener) = server.events().listen()
    {
        runtime.spawn(watch::print_folds(listener));
    }
    let stopped = async move {
        let Ok(mut signals) = signals else {
            return std::future::pending().await;
        };
        signals.recv().await;
        print_stderr("stopping when the current replies have ended; repeat to stop now");
        let _ = stop.send(true);
        tokio::spawn(signals.exit_on_next());
    };
    runtime.block_on(server.run(stopped));
    Ok(())
}

/// Starts the server in a session of its own, in this process, once `infold setup` has recorded it.
///
/// The end of standard input says that setup was killed before that: then no server is started.
fn detach() -> CliResult {
    // A process that leads a group cannot make a session; it was put there on purpose.
    let _ = rustix::process::setsid();
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    if read.is_err() || line.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(CliError::store)?;
    let words = std::env::args_os().skip(1);
    let error = std::process::Command::new(program)
        .args(words.filter(|word| word != DETACHED))
        .stdin(std::process::Stdio::null())
        .exec();
    Err(CliError::store(format!(
        "the server cannot be started: {error}"
    )))
}

/// The option with which `infold setup` starts a server.
pub const DETACHED: &str = "--detached";

/// `infold wrap`: returns the exit code of the agent.
pub fn wrap(contexts: &Contexts, config: &Config, args: &WrapArgs) -> CliResult<u8> {
    // Traces would be printed over the agent's screen.
    start_tracing(args.proxy.trace, LevelFilter::OFF)?;
    let listen = ListenOptions {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        names: Vec::new(),
        // The agent would not send one.
        token: None,
    };
    let config = &wrapped_config(contexts, config, args.checkpoints)?;
    let proxy = RunningProxy::start(contexts, config, &args.proxy, listen)?;
    let base = match &args.name {
        Some(name) => format!("{}/t/{}", proxy.server.url(), percent_encode(name)),
        None => proxy.server.url(),
    };
    let (program, rest) = args.agent.split_first().expect("clap demands an agent");
    let mut command = tokio::process::Command::new(program);
    command.args(flags(program, &base)).args(rest);
    for (name, value) in variables(&base) {
        command.env(name, value);
    }
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, without_proxy(std::env::var(name).ok()));
    }
    let (runtime, server, stop) = (proxy.runtime, proxy.server, proxy.stop);
    let tasks = watch::TaskActivity::default();
    if let Some(listener) = server.events().listen() {
        runtime.spawn(tasks.clone().watch(listener));
    }
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let served = runtime.spawn(server.run(async move {
        let _ = end.await;
    }));
    let code = runtime.block_on(async {
        let mut child = command.spawn().map_err(|error| {
            let name = Path::new(program).display();
            CliError::usage(format!("{name} could not be started: {error}"))
                .hint("`infold wrap -- PROGRAM ARGUMENTS`, as you would start it without Infold")
        })?;
        wait_for_agent(&mut child)
            .await
            .map_err(|error| CliError::no(format!("the agent's exit status is unknown: {error}")))
    });
    let _ = (ended.send(()), stop.send(true));
    let _ = runtime.block_on(served);
    tasks.print();
    code
}

/// Returns the configuration with the workspace of the agent, if checkpoints are on.
fn wrapped_config(contexts: &Contexts, config: &Config, keeps_files: bool) -> CliResult<Config> {
    let mut config = config.clone();
    config.serve.checkpoints = None;
    if keeps_files {
        let workspace = std::env::current_dir().map_err(|error| {
            CliError::usage(format!("the current directory is unknown: {error}"))
                .hint("--checkpoints keeps the files of the directory that the command runs in")
        })?;
        for text in FileHistory::new(contexts).open(&workspace)?.notes {
            note(false, text);
        }
        config.serve.checkpoints = Some(Setting::call(workspace));
    }
    Ok(config)
}

/// Adds this machine to the hosts that are reached without the network's HTTP proxy.
fn without_proxy(set: Option<String>) -> String {
    let set = set.filter(|hosts| !hosts.is_empty());
    let own = "127.0.0.1,localhost";
    match set {
        Some(hosts) => format!("{hosts},{own}"),
        None => own.to_owned(),
    }
}

/// Waits for the agent and forwards signals that do not come from the terminal.
async fn wait_for_agent(child: &mut tokio::process::Child) -> std::io::Result<u8> {
    use std::os::unix::process::ExitStatusExt as _;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let status = loop {
        let name = tokio::select! {
            status = child.wait() => break status?,
            _ = interrupt.recv() => "INT",
            _ = quit.recv() => "QUIT",
            _ = terminate.recv() => "TERM",
            _ = hang_up.recv() => "HUP",
        };
        // The terminal sent these to the agent too, which is in the same process group.
        let is_from_terminal = matches!(name, "INT" | "QUIT");
        if let (false, Some(id)) = (is_from_terminal, child.id()) {
            let kill = tokio::process::Command::new("kill")
                .args(["-s", name, "--", &id.to_string()])
                .status();
            let _ = kill.await;
        }
    };
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.unwrap_or(1).try_into().unwrap_or(1))
}

/// The address of a server, and who may use it.
struct ListenOptions {
    address: SocketAddr,
    names: Vec<String>,
    token: Option<Secret>,
}

/// The limit of blocking threads: more than the requests of one client, which may all wait for
/// the same task, so that other clients still get a thread.
const MAX_BLOCKING_THREADS: usize = 1024;

/// A listening server and its runtime.
struct RunningProxy {
    runtime: Runtime,
    server: Server,
    upstreams: Upstreams,
    stop: watch_channel::Sender<bool>,
}

impl RunningProxy {
    fn start(
        contexts: &Contexts,
        config: &Config,
        args: &ProxyArgs,
        listen: ListenOptions,
    ) -> CliResult<RunningProxy> {
        let config = &with_flags(config, args)?;
        let upstreams = Upstreams::new(config, &args.upstream, args.provider.as_deref())?;
        refuse_loop(&upstreams, listen.address)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .build()
            .map_err(|error| CliError::provider(format!("no threads: {error}")))?;
        let (stop, stopped) = watch_channel::channel(false);
        let client = {
            let _guard = runtime.enter();
            Client::new(RetryPolicy::default())?
        };
        let connector = Connector::new(client, runtime.handle().clone(), stopped);
        // Clients resend their history, so requests do not wait for the disk; writes are synced a moment later.
        let contexts = Contexts::new(contexts.root(), Durability::Never)
            .keeping_files(contexts.checkpoint_settings().clone())
            .telling(|text| tracing::warn!("{text}"));
        let shared_config = Arc::new(config.clone());
        let open = move |address: &str| {
            Conversations::new(contexts.keeping()?.at(address), shared_config, connector)
        };
        let options = Options {
            address: listen.address,
            token: listen.token,
            names: listen.names,
            upstreams: upstreams.clone(),
            limits: limits(config),
        };
        let server = runtime.block_on(Server::bind(options, open))?;
        Ok(RunningProxy {
            runtime,
            server,
            upstreams,
            stop,
        })
    }

    /// Describes where requests go, one line per address.
    fn upstream_lines(&self) -> Vec<String> {
        let mut all: Vec<(String, Vec<&str>)> = Vec::new();
        for wire in Wire::ALL {
            let base = self.upstreams.of(wire).endpoint.base();
            match all.iter_mut().find(|(known, _)| *known == base) {
                Some((_, wires)) => wires.push(wire.name()),
                None => all.push((base, vec![wire.name()])),
            }
        }
        let line =
            |(base, wires): (String, Vec<&str>)| format!("sending {} to {base}", wires.join(", "));
        all.into_iter().map(line).collect()
    }
}

/// Refuses an upstream that is the server itself: a request would never end.
fn refuse_loop(upstreams: &Upstreams, own: SocketAddr) -> CliResult {
    if own.port() == 0 || !(own.ip().is_loopback() || own.ip().is_unspecified()) {
        return Ok(());
    }
    for wire in Wire::ALL {
        let base = upstreams.of(wire).endpoint.base();
        if is_loopback(&base, own.port()) {
            let name = wire.name();
            let text = format!("the upstream of {name} is this server itself: {base}");
            return Err(CliError::usage(text)
                .hint("--upstream or serve.upstreams names where requests go on"));
        }
    }
    Ok(())
}

/// Applies the flags to the configuration.
fn with_flags(config: &Config, args: &ProxyArgs) -> CliResult<Config> {
    let mut config = config.clone();
    config.forget_environment_addresses();
    if let Some(window) = args.window {
        config.environment.window = Some(Setting::call(window));
    }
    if let Some(strategy) = &args.strategy {
        config.environment.strategy = Some(Setting::call(strategy.name.to_owned()));
    }
    if let Some(who) = &args.summarizer {
        SummarizerChoice::read(who)?;
        config.summarizer.name = Setting::call(who.clone());
    }
    Ok(config)
}

/// Returns the configured limits of the server.
fn limits(config: &Config) -> ServerLimits {
    let mut limits = ServerLimits::default();
    if let Some(set) = &config.serve.upstream_idle {
        limits.silence = (set.value > 0).then(|| Duration::from_secs(set.value));
    }
    limits
}

fn token(config: &Config, args: &ServeArgs) -> CliResult<Option<Secret>> {
    let Some(variable) = &args.token_env else {
        return Ok(config.serve.token.as_ref().map(|set| set.value.clone()));
    };
    match std::env::var(variable).ok().filter(|it| !it.is_empty()) {
        Some(token) => Ok(Some(Secret::new(token))),
        None => Err(
            CliError::usage(format!("the variable {variable} is not set"))
                .hint("set it to a long random text, such as `openssl rand -hex 32` prints"),
        ),
    }
}

/// The variables that clients read their base address from: name, path after the address, clients.
const CLIENT_VARIABLES: [(&str, &str, &str); 6] = [
    ("ANTHROPIC_BASE_URL", "", "Claude Code, the Anthropic SDKs"),
    ("OPENAI_BASE_URL", "/v1", "the OpenAI SDKs"),
    ("OPENAI_API_BASE", "/v1", "aider"),
    ("OPENAI_HOST", "", "goose"),
    ("GOOGLE_GEMINI_BASE_URL", "", "Gemini CLI"),
    ("OLLAMA_HOST", "", "Ollama clients"),
];

fn variables(base: &str) -> [(&'static str, String); 6] {
    CLIENT_VARIABLES.map(|(name, path, _)| (name, format!("{base}{path}")))
}

/// Returns shell lines that set the variables, with the clients that read each.
fn exports(base: &str) -> [String; 6] {
    CLIENT_VARIABLES.map(|(name, path, clients)| {
        format!(
            "  {:<58}  # {clients}",
            format!("export {name}={base}{path}")
        )
    })
}

/// Returns the flags of an agent that reads no variable.
fn flags(program: &OsStr, base: &str) -> Vec<OsString> {
    let name = Path::new(program).file_name().unwrap_or_default();
    if name != "codex" {
        return Vec::new();
    }
    let mut settings = vec![
        "model_provider=\"infold\"".to_owned(),
        "model_providers.infold.name=\"infold\"".to_owned(),
        format!("model_providers.infold.base_url=\"{base}/v1\""),
        "model_providers.infold.wire_api=\"responses\"".to_owned(),
    ];
    // Codex refuses to start if the variable is not set; then the proxy adds the configured key.
    if std::env::var_os("OPENAI_API_KEY").is_some() {
        settings.push("model_providers.infold.env_key=\"OPENAI_API_KEY\"".to_owned());
    }
    let flag = |setting: String| [OsString::from("-c"), OsString::from(setting)];
    settings.into_iter().flat_map(flag).collect()
}

/// Starts tracing at the level of INFOLD_LOG, or of the flag.
pub fn start_tracing(format: Option<TraceFormat>, quiet: LevelFilter) -> CliResult {
    let set = std::env::var("INFOLD_LOG")
        .ok()
        .filter(|level| !level.is_empty());
    let level = match (&set, format) {
        (Some(level), _) => level.parse().map_err(|_| {
            CliError::usage(format!("INFOLD_LOG is not a level: `{level}`"))
                .hint("off, error, warn, info, debug or trace")
        })?,
        (None, Some(_)) => LevelFilter::INFO,
        (None, None) => quiet,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    // This fails only if tracing was started before.
    let _ = match format {
        Some(TraceFormat::Json) => subscriber.json().flatten_event(true).try_init(),
        _ => subscriber.try_init(),
    };
    Ok(())
}

impl From<UpstreamError> for CliError {
    fn from(error: UpstreamError) -> CliError {
        CliError::usage(error).hint(
            "--upstream http://127.0.0.1:8080, --upstream anthropic=https://host, or a provider of config.yaml",
        )
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> CliError {
        let hint = match error {
            ServeError::Task(error) => return CliError::from(error),
            ServeError::NoToken(_) => {
                "set a variable to a long random text and name it: --token-env INFOLD_TOKEN; or listen on 127.0.0.1"
            }
            ServeError::ShortToken(_) => "`openssl rand -hex 32` prints a good one",
            ServeError::Bind { .. } => "--port 0 uses any free port",
        };
        CliError::usage(error).hint(hint)
    }
}
