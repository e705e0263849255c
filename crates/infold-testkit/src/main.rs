//! `infold-testkit`: a model server to try things with, without a key, and trials of a store.

mod load;
mod trials;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use infold_testkit::{Faults, Forge, ForgeState, Model, Script, Seen, Server, errors, read_steps};
use infold_wire::quote;

/// A scripted model server on loopback that speaks every wire.
#[derive(Parser)]
#[command(name = "infold-testkit", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves on 127.0.0.1 until it is stopped
    #[command(after_help = EXAMPLES)]
    Serve(Box<Serve>),
    /// Lists the errors that a script can name
    Errors,
    /// Serves issues, pull and merge requests as GitHub and GitLab do, on 127.0.0.1 until it is stopped
    Forge(ForgeArgs),
    /// Sends many requests and prints how long the answers took
    Load(load::Load),
    /// Serves one answer as fast as it can, for `load`
    LoadUpstream(load::LoadUpstream),
    /// Fails or kills every command at its file calls, one at a time, and checks what is left
    SweepFaults(trials::SweepFaults),
    /// Cuts the power at every moment of recorded sessions and checks what a disk may have kept
    PowerCuts(trials::CutPower),
    /// Damages every file of a store in every way and checks what commands make of it
    FuzzStore(trials::FuzzStore),
}

const EXAMPLES: &str = "Examples:
  infold-testkit serve --port 4010
  infold-testkit serve --window 4096                 # answers `too long` as each provider would
  infold-testkit serve --script steps.jsonl          # lines such as {\"say\":\"Hello\"}
  infold-testkit serve --agent --lenient             # for agents that bring their own tools
  infold-testkit serve --record requests.jsonl       # one line for each request, keys left out
  infold-testkit serve --faults seed=7,disconnect=0.1,busy=0.1,slow=0.05

A script has one step a line; after the last the model repeats what it is told:
  {\"say\":\"Hello\"}
  {\"think\":\"Which files?\",\"call\":\"ls\",\"arguments\":{\"path\":\".\"}}
  {\"error\":\"openai/rate-limit\"}
  {\"say\":\"Never heard whole\",\"pause_ms\":50,\"cut_after_events\":3}";

#[derive(clap::Args)]
struct Serve {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How many tokens the model takes [default: any number]
    #[arg(long, value_name = "TOKENS")]
    window: Option<u64>,
    /// The key that is asked for [default: none is]
    #[arg(long)]
    key: Option<String>,
    /// A model that is there; may be repeated [default: any name will do]
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Takes requests as they come, without the checks of a provider
    #[arg(long)]
    lenient: bool,
    /// Checks every rule of the provider: all kinds of pairs, signatures, ids, places
    #[arg(long, conflicts_with = "lenient")]
    picky: bool,
    /// Answers with this error, in turn if repeated, before all else (`infold-testkit errors`)
    #[arg(long, value_name = "NAME")]
    wire_errors: Vec<String>,
    /// Steps, one JSON object a line
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// After the script, does what prompts say: please run `ls` 3 times, please say 40 words
    #[arg(long)]
    agent: bool,
    /// Reasons before it speaks; for an agent
    #[arg(long, requires = "agent")]
    think: bool,
    /// Appends each request to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Random faults: seed=N and shares of disconnect, busy, server_error, slow, malformed, empty
    #[arg(long, value_name = "KIND=SHARE,…", value_parser = read_faults)]
    faults: Option<Faults>,
}

#[derive(clap::Args)]
struct ForgeArgs {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How many open issues with the label `infold` the repository `octo/app` has
    #[arg(long, value_name = "N", default_value_t = 3)]
    issues: usize,
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve(serve) => run(*serve),
        Command::Errors => list(),
        Command::Forge(forge) => serve_forge(&forge),
        Command::Load(load) => load::run(load).and_then(|line| say(&line)),
        Command::LoadUpstream(upstream) => upstream.run(say),
        Command::SweepFaults(sweep) => sweep.run().and_then(|table| say(&table)),
        Command::PowerCuts(cuts) => cuts.run().and_then(|table| say(&table)),
        Command::FuzzStore(fuzz) => fuzz.run().and_then(|table| say(&table)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Serve) -> Result<(), String> {
    let mut lines = String::new();
    for name in &args.wire_errors {
        lines += &format!("{{\"error\":{}}}\n", quote(name));
    }
    let mut steps = read_steps(&lines).map_err(|error| error.reason)?;
    if let Some(path) = &args.script {
        let at = |reason: String| format!("{}: {reason}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        steps.extend(read_steps(&text).map_err(|error| at(error.to_string()))?);
    }
    let mut script = Script::steps(steps).model(Model {
        names: args.model,
        window: args.window,
        key: args.key,
        strict: !args.lenient,
        picky: args.picky,
        alternate: !args.picky,
        ..Model::default()
    });
    if args.agent {
        script = script.obedient(args.think);
    }
    if let Some(faults) = args.faults {
        script = script.faults(faults);
    }
    if let Some(path) = args.record {
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(at)?;
        script = script.watch(move |seen| {
            if let Err(error) = file.write_all(recorded(seen).as_bytes()) {
                eprintln!("warning: request {} is not recorded: {error}", seen.number);
            }
        });
    }
    let server = Server::start_on(args.port, script)
        .map_err(|error| format!("port {}: {error}", args.port))?;
    say(&ready(&server.url()))?;
    server.wait();
    Ok(())
}

/// Serves the repository `octo/app`, which was `octo/old-app`, and the archived `octo/attic`.
fn serve_forge(args: &ForgeArgs) -> Result<(), String> {
    let mut state = ForgeState::default();
    let app = state.add_repo("octo", "app");
    app.old_names.push("octo/old-app".to_owned());
    for at in 1..=args.issues {
        app.add_issue(&format!("issue {at}"), "Something is broken.", "infold");
    }
    app.add_request("a change", "It repairs something.", "infold");
    app.add_issue("for people", "Not for a program.", "discussion");
    state.add_repo("octo", "attic").is_archived = true;
    let token = state.token.clone();
    let forge = Forge::start_on(args.port, state)
        .map_err(|error| format!("port {}: {error}", args.port))?;
    let url = forge.url();
    say(&format!(
        "ready at {url}\n  github  base_url {url}/api/v3\n  gitlab  base_url {url}\n  token   {token}\n"
    ))?;
    forge.wait();
    Ok(())
}

fn ready(url: &str) -> String {
    format!(
        "ready at {url}
  openai, lmstudio   base_url {url}/v1
  anthropic          base_url {url}
  gemini             base_url {url}
  ollama             base_url {url}
"
    )
}

fn list() -> Result<(), String> {
    let line = |error: &infold_testkit::NamedError| {
        format!("{:<36}{:<11}{}\n", error.name, error.wire, error.status)
    };
    say(&errors().iter().map(line).collect::<String>())
}

/// Prints; a reader that went away is no error.
fn say(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// A request as a line; what may be a key is left out.
fn recorded(seen: &Seen) -> String {
    let secret = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
    let headers = seen.headers.iter().map(|(name, value)| {
        let value = if secret.contains(&name.as_str()) {
            "(left out)"
        } else {
            value
        };
        format!("{}:{}", quote(name), quote(value))
    });
    let headers: Vec<_> = headers.collect();
    let query = seen
        .query
        .split('&')
        .filter(|part| !part.starts_with("key="));
    let query: Vec<_> = query.collect();
    let body = match &seen.body {
        Some(body) => format!(r#","body":{}"#, quote(&String::from_utf8_lossy(body))),
        None => String::new(),
    };
    format!(
        "{{\"number\":{},\"method\":{},\"path\":{},\"query\":{},\"headers\":{{{}}},\"bytes\":{},\"hash\":\"{:016x}\"{body}}}\n",
        seen.number,
        quote(&seen.method),
        quote(&seen.path),
        quote(&query.join("&")),
        headers.join(","),
        seen.len,
        seen.hash
    )
}

fn read_faults(text: &str) -> Result<Faults, String> {
    let mut faults = Faults::default();
    for part in text.split(',') {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not KIND=SHARE"))?;
        if name == "seed" {
            faults.seed = value
                .parse()
                .map_err(|_| format!("`{value}` is not a number"))?;
            continue;
        }
        let share: f64 = value
            .parse()
            .map_err(|_| format!("`{value}` is not a share"))?;
        *match name {
            "disconnect" => &mut faults.disconnect,
            "busy" => &mut faults.busy,
            "server_error" => &mut faults.server_error,
            "slow" => &mut faults.slow,
            "malformed" => &mut faults.malformed,
            "empty" => &mut faults.empty,
            _ => return Err(format!("no fault is named `{name}`")),
        } = share;
    }
    let all = [
        faults.disconnect,
        faults.busy,
        faults.server_error,
        faults.slow,
        faults.malformed,
        faults.empty,
    ];
    if all.iter().all(|share| *share >= 0.0) && all.iter().sum::<f64>() <= 1.0 {
        Ok(faults)
    } else {
        Err("shares are from 0 to 1, and together at most 1".to_owned())
    }
}
