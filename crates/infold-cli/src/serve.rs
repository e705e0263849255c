mod watch;

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use infold::config::Secret;
use infold::profile::Setting;
use infold::summarizer::SummarizerChoice;
use infold::{Config, Connector, Strategy};
use infold_provider::{Client, RetryPolicy, percent_encode};
use infold_serve::{Conversations, Limits, Options, ServeError, Server, UpstreamError, Upstreams};
use infold_store::{Contexts, Durability};
use infold_wire::Wire;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch as watch_channel;
use tracing_subscriber::filter::LevelFilter;

use crate::config::with_tilde;
use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, aside, paint, say};
use crate::settings::tokens;

/// The port that `infold serve` has when nothing else is said.
pub const PORT: u16 = 7333;

/// What `infold serve` takes.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; 0 for any port that is free [default: 7333]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; one that other machines can reach wants a token [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Another name that clients may call this machine by
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The variable that holds the token which clients must send
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// What both ways to start the proxy take.
#[derive(Debug, Args)]
struct Common {
    /// Where requests go: an address for every API, or API=ADDRESS, or API=PROVIDER; what speaks another API is named before its address, as in anthropic=openai+http://host
    #[arg(long, value_name = "[API=]URL")]
    upstream: Vec<String>,
    /// The provider of the configuration that requests of its API go to
    #[arg(long, value_name = "NAME", env = "INFOLD_PROVIDER")]
    provider: Option<String>,
    /// How many tokens models take, such as 8000, 32k or 1m, whatever they are
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    window: Option<u64>,
    /// What to keep and how the summary looks: infold, roo, gemini, file or truncate
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,
    /// Who writes summaries: extractive, model, model:NAME, or command:… with the transcript on its standard input
    #[arg(long, value_name = "WHO")]
    summarizer: Option<String>,
    /// Tell of every request, on stderr
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text")]
    trace: Option<Trace>,
}

/// How traces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Trace {
    /// For people
    Text,
    /// For machines, one object a line
    Json,
}

/// What `infold wrap` takes.
#[derive(Debug, Args)]
pub struct WrapArgs {
    /// What to call the conversation, so that it is the same one next time
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    common: Common,
    /// The agent and what it takes
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
    out: &mut Out,
) -> Result<(), Failure> {
    let set = &config.serve;
    let port = args.port.or(set.port.as_ref().map(|set| set.value));
    let host = args.host.or(set.host.as_ref().map(|set| set.value));
    let host = host.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let mut names: Vec<String> = set.names.iter().map(|set| set.value.clone()).collect();
    names.extend(args.allow_host.iter().cloned());
    let address = SocketAddr::new(host, port.unwrap_or(PORT));
    trace(args.common.trace, LevelFilter::WARN)?;
    let place = Place {
        address,
        names,
        token: token(config, args)?,
    };
    let house = House::open(contexts, config, &args.common, place)?;
    // Before anybody is told that there is something to stop.
    let signals = {
        let _inside = house.runtime.enter();
        (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        )
    };
    let base = house.server.url();
    if out.is_json() {
        let address = house.server.address();
        out.object(&json!({
            "listening": base, "host": address.ip().to_string(), "port": address.port(),
            "environment": variables(&base).map(|(name, value)| json!({"name": name, "value": value})),
        }))?;
        out.finish()?;
    } else {
        aside(format!("listening on {base}"));
        let root = std::path::absolute(contexts.root()).unwrap_or(contexts.root().to_owned());
        let root = with_tilde(root.display().to_string());
        say(false, paint(DIM, format!("recording in {root}")));
        for line in house.sends_to() {
            say(false, paint(DIM, line));
        }
        for line in exports(&base) {
            say(false, paint(DIM, line));
        }
    }
    let House {
        runtime,
        server,
        stop,
        ..
    } = house;
    if !out.is_json()
        && let Some(listener) = server.events().listen()
    {
        runtime.spawn(watch::tell_folds(listener));
    }
    let stopped = async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        aside("stopping when the replies under way have ended; again to stop now");
        let _ = stop.send(true);
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // All that is recorded stays, as it does when the process is killed.
            std::process::exit(Kind::Interrupted as i32);
        });
    };
    runtime.block_on(server.run(stopped));
    Ok(())
}

/// `infold wrap`: the exit code is the agent's.
pub fn wrap(contexts: &Contexts, config: &Config, args: &WrapArgs) -> Result<u8, Failure> {
    // What is told would be told into the agent's own picture.
    trace(args.common.trace, LevelFilter::OFF)?;
    let place = Place {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        names: Vec::new(),
        // The agent knows of none.
        token: None,
    };
    let house = House::open(contexts, config, &args.common, place)?;
    let base = match &args.name {
        Some(name) => format!("{}/t/{}", house.server.url(), percent_encode(name)),
        None => house.server.url(),
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
    let House {
        runtime,
        server,
        stop,
        ..
    } = house;
    let tasks = watch::Tasks::default();
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
            Failure::new(Kind::Usage, format!("{name} could not be started: {error}"))
                .hint("`infold wrap -- PROGRAM ARGUMENTS`, as you would start it without infold")
        })?;
        wait(&mut child).await.map_err(|error| {
            Failure::new(
                Kind::No,
                format!("nobody knows how the agent ended: {error}"),
            )
        })
    });
    let _ = (ended.send(()), stop.send(true));
    let _ = runtime.block_on(served);
    tasks.tell();
    code
}

/// Hosts that are reached without a proxy: those that were, and this machine, or else the agent's requests would go to the
/// proxy of its network.
fn without_proxy(set: Option<String>) -> String {
    let set = set.filter(|hosts| !hosts.is_empty());
    let own = "127.0.0.1,localhost";
    match set {
        Some(hosts) => format!("{hosts},{own}"),
        None => own.to_owned(),
    }
}

/// Waits for the agent. What a terminal sends reaches it as it reaches us; the rest we pass on.
async fn wait(child: &mut tokio::process::Child) -> std::io::Result<u8> {
    use std::os::unix::process::ExitStatusExt as _;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let status = loop {
        let told = tokio::select! {
            status = child.wait() => break status?,
            _ = interrupt.recv() => "INT",
            _ = quit.recv() => "QUIT",
            _ = terminate.recv() => "TERM",
            _ = hang_up.recv() => "HUP",
        };
        // From the keyboard it went to the whole group already; twice would be once too often.
        let typed = matches!(told, "INT" | "QUIT");
        if let (false, Some(id)) = (typed, child.id()) {
            let kill = tokio::process::Command::new("kill")
                .args(["-s", told, "--", &id.to_string()])
                .status();
            let _ = kill.await;
        }
    };
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.unwrap_or(1).try_into().unwrap_or(1))
}

/// Where a server listens, and for whom.
struct Place {
    address: SocketAddr,
    names: Vec<String>,
    token: Option<Secret>,
}

/// How many threads there may be for what takes its time: more than one client may have requests
/// under way, which may all wait for one task. Those of others still get one.
const THREADS: usize = 1024;

/// A server that listens, and what it runs on.
struct House {
    runtime: Runtime,
    server: Server,
    upstreams: Upstreams,
    stop: watch_channel::Sender<bool>,
}

impl House {
    fn open(
        contexts: &Contexts,
        config: &Config,
        args: &Common,
        place: Place,
    ) -> Result<House, Failure> {
        let config = &configured(config, args)?;
        let upstreams = Upstreams::new(config, &args.upstream, args.provider.as_deref())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()
            .map_err(|error| Failure::new(Kind::Provider, format!("no threads: {error}")))?;
        let (stop, stopped) = watch_channel::channel(false);
        let client = {
            let _inside = runtime.enter();
            Client::new(RetryPolicy::default())?
        };
        let board = Connector::new(client, runtime.handle().clone(), stopped);
        // What a client was told it sends again, so nobody waits for the disk; a moment later all of it is there.
        let contexts = Contexts::new(contexts.root(), Durability::Never)
            .telling(|text| tracing::warn!("{text}"));
        let config_of_desk = Arc::new(config.clone());
        let desk = move |address: &str| {
            Conversations::new(contexts.keeping()?.at(address), config_of_desk, board)
        };
        let options = Options {
            address: place.address,
            token: place.token,
            names: place.names,
            upstreams: upstreams.clone(),
            limits: limits(config),
        };
        let server = runtime.block_on(Server::bind(options, desk))?;
        Ok(House {
            runtime,
            server,
            upstreams,
            stop,
        })
    }

    /// Where requests go, a line for each address.
    fn sends_to(&self) -> Vec<String> {
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

/// The configuration, with what this call says instead.
fn configured(config: &Config, args: &Common) -> Result<Config, Failure> {
    let mut config = config.clone();
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

/// What the server bears, as far as the configuration says it.
fn limits(config: &Config) -> Limits {
    let mut limits = Limits::default();
    if let Some(set) = &config.serve.upstream_idle {
        limits.silence = (set.value > 0).then(|| Duration::from_secs(set.value));
    }
    limits
}

fn token(config: &Config, args: &ServeArgs) -> Result<Option<Secret>, Failure> {
    let Some(variable) = &args.token_env else {
        return Ok(config.serve.token.as_ref().map(|set| set.value.clone()));
    };
    match std::env::var(variable).ok().filter(|it| !it.is_empty()) {
        Some(token) => Ok(Some(Secret::new(token))),
        None => Err(
            Failure::new(Kind::Usage, format!("the variable {variable} is not set"))
                .hint("set it to a long random text, such as `openssl rand -hex 32` prints"),
        ),
    }
}

/// What clients read their base address from.
fn variables(base: &str) -> [(&'static str, String); 6] {
    [
        ("ANTHROPIC_BASE_URL", base.to_owned()),
        ("OPENAI_BASE_URL", format!("{base}/v1")),
        ("OPENAI_API_BASE", format!("{base}/v1")),
        ("OPENAI_HOST", base.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", base.to_owned()),
        ("OLLAMA_HOST", base.to_owned()),
    ]
}

/// The same, to be copied into a shell, with whom it is for.
fn exports(base: &str) -> Vec<String> {
    let whom = [
        "Claude Code, the Anthropic SDKs",
        "the OpenAI SDKs",
        "aider",
        "goose",
        "Gemini CLI",
        "Ollama clients",
    ];
    let export = |((name, value), whom): ((&str, String), &str)| {
        format!("  {:<58}  # {whom}", format!("export {name}={value}"))
    };
    variables(base).into_iter().zip(whom).map(export).collect()
}

/// What an agent must be told on its command line, because it reads no variable.
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
    // It refuses to start if it is to read a key that is not there; then ours is sent.
    if std::env::var_os("OPENAI_API_KEY").is_some() {
        settings.push("model_providers.infold.env_key=\"OPENAI_API_KEY\"".to_owned());
    }
    let flag = |setting: String| [OsString::from("-c"), OsString::from(setting)];
    settings.into_iter().flat_map(flag).collect()
}

/// Begins to tell, as much as was asked for.
fn trace(form: Option<Trace>, quiet: LevelFilter) -> Result<(), Failure> {
    let said = std::env::var("INFOLD_LOG").ok();
    let said = said.filter(|level| !level.is_empty());
    let level = match (&said, form) {
        (Some(level), _) => level.parse().map_err(|_| {
            Failure::new(Kind::Usage, format!("INFOLD_LOG is no level: `{level}`"))
                .hint("off, error, warn, info, debug or trace")
        })?,
        (None, Some(_)) => LevelFilter::INFO,
        (None, None) => quiet,
    };
    let to = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    // Only the first one is heard, and there is only one.
    let _ = match form {
        Some(Trace::Json) => to.json().flatten_event(true).try_init(),
        _ => to.try_init(),
    };
    Ok(())
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Failure {
        Failure::new(Kind::Usage, error).hint(
            "--upstream http://127.0.0.1:8080, --upstream anthropic=https://host, or a provider of config.yaml",
        )
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let hint = match error {
            ServeError::Task(error) => return Failure::from(error),
            ServeError::NoToken(_) => {
                "set a variable to a long random text and name it: --token-env INFOLD_TOKEN; or stay on 127.0.0.1"
            }
            ServeError::ShortToken(_) => "`openssl rand -hex 32` prints a good one",
            ServeError::Bind { .. } => "--port 0 takes any port that is free",
        };
        Failure::new(Kind::Usage, error).hint(hint)
    }
}
