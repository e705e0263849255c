//! Proves that an agent's requests arrive: its own program, its configuration, a scripted model.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use infold_setup::{Agent, SetupRecord, Syntax, get, read};
use serde_json::Value;

use super::scripted_model::{SENTENCE, ScriptedModel};
use super::{Context, programs};

/// The result of a proof.
pub enum Proof {
    /// The request is a task of a directory of its own.
    Seen { task: String, seconds: f64 },
    /// It could not be tried.
    Skipped(String),
    /// It was tried, and no request was seen, or the agent failed.
    Failed(String),
}

/// How long an agent may take for one sentence.
const PATIENCE: Duration = Duration::from_secs(180);

/// The prompt for the agent.
const PROMPT: &str = "Hello from infold setup";

/// Stands for a key: the scripted model asks for none.
const KEY: &str = "no-key-is-needed";

/// Runs the agent's program once, in a home directory with copies of the configuration that was written.
///
/// Nothing of what is stored elsewhere is used: no login, no history. The copies point to a proxy of
/// their own with a temporary directory of tasks, behind which a scripted model answers.
pub fn prove(context: &Context<'_>, agent: Agent, state: &SetupRecord) -> Proof {
    let Some(program) = programs::find(agent).into_iter().next() else {
        return Proof::Skipped(format!("{} is not on the path", agent.programs()[0]));
    };
    let Some(record) = state.of(agent.name()) else {
        return Proof::Skipped("it was not set up".to_owned());
    };
    match try_it(context, agent, &program, record) {
        Ok(proof) => proof,
        Err(error) => Proof::Failed(error.to_string()),
    }
}

fn try_it(
    context: &Context<'_>,
    agent: Agent,
    program: &Path,
    record: &infold_setup::AgentRecord,
) -> std::io::Result<Proof> {
    let directory = tempfile::Builder::new().prefix("infold-proof-").tempdir()?;
    let home = directory.path().join("home");
    let work = home.join("work");
    std::fs::create_dir_all(&work)?;
    let model = ScriptedModel::start()?;
    let proxy = Proxy::start(directory.path(), &model.url)?;
    let mut copies = Vec::new();
    for file in &record.files {
        if let Some(copy) = copy(context, agent, &file.file, &home, &record.base, &proxy.url)? {
            copies.push((copy, file.syntax));
        }
    }
    let began = Instant::now();
    let mut command = Command::new(program);
    command
        .args(words(agent, &copies))
        .current_dir(&work)
        .env_clear();
    for name in ["PATH", "TMPDIR", "LANG", "SHELL"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("HOME", &home)
        .env("TERM", "dumb")
        .env("NO_COLOR", "1");
    command.envs(variables(agent, &copies));
    let ran = Run::new(command, &home)?;
    let seconds = began.elapsed().as_secs_f64();
    match proxy.task_with(PROMPT)? {
        Some(task) if ran.said.contains(SENTENCE) => Ok(Proof::Seen { task, seconds }),
        Some(task) => Ok(Proof::Failed(format!(
            "its request arrived (task {task}), its answer was not printed; {}",
            ran.end()
        ))),
        None => Ok(Proof::Failed(format!("no request arrived; {}", ran.end()))),
    }
}

/// Copies a file of configuration into another home directory, with another address of the proxy.
fn copy(
    context: &Context<'_>,
    agent: Agent,
    file: &Path,
    home: &Path,
    base: &str,
    url: &str,
) -> std::io::Result<Option<PathBuf>> {
    if std::fs::canonicalize(&context.config_file).is_ok_and(|own| own == *file)
        || *file == context.config_file
    {
        return Ok(None);
    }
    let real_home = std::fs::canonicalize(&context.home)?;
    let traces = context.with_surroundings(|at| agent.traces(at));
    let real_traces = std::fs::canonicalize(&traces).unwrap_or(traces.clone());
    // A directory that a variable names is the usual one there.
    let usual = infold_setup::Surroundings {
        home,
        current: home,
        env: &|_| None,
        read: &|_| Ok(None),
    };
    let usual = agent.traces(&usual);
    let to = if let Ok(rest) = file.strip_prefix(&real_traces) {
        if rest.as_os_str().is_empty() {
            usual
        } else {
            usual.join(rest)
        }
    } else if let Ok(rest) = file.strip_prefix(&real_home) {
        home.join(rest)
    } else {
        usual.join(file.file_name().unwrap_or_default())
    };
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let text = std::fs::read_to_string(file)?;
    std::fs::write(&to, text.replace(base, url))?;
    Ok(Some(to))
}

fn value(copies: &[(PathBuf, Syntax)], name: &str, path: &[&str]) -> Option<String> {
    let (file, syntax) = copies.iter().find(|(file, _)| file.ends_with(name))?;
    let text = std::fs::read_to_string(file).ok()?;
    match get(*syntax, &text, &infold_setup::PathStep::keys(path)).ok()?? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// The arguments with which an agent answers one prompt and ends.
fn words(agent: Agent, copies: &[(PathBuf, Syntax)]) -> Vec<String> {
    let fixed: &[&str] = match agent {
        Agent::Claude => &["-p"],
        Agent::Codex => &["exec", "--skip-git-repo-check"],
        Agent::Gemini => &["-m", "gemini-2.5-flash", "-p"],
        Agent::Opencode => &["run"],
        Agent::Goose => &["run", "--no-session", "-t"],
        Agent::Aider => &[
            "--model",
            "openai/gpt-4o",
            "--no-check-update",
            "--no-analytics",
            "--no-show-release-notes",
            "--no-show-model-warnings",
            "--yes-always",
            "--no-git",
            "--no-pretty",
            "--message",
        ],
        Agent::Continue => &["-p"],
        Agent::Cline => &["--json"],
        Agent::Llm | Agent::Cursor => &[],
    };
    let mut words: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
    let mut model = |name: String| words.extend(["-m".to_owned(), name]);
    match agent {
        Agent::Opencode => {
            let name = ["opencode.json", "opencode.jsonc", "config.json"];
            let chosen = name.iter().find_map(|name| value(copies, name, &["model"]));
            let has = |provider: &str| {
                name.iter()
                    .any(|name| value(copies, name, &["provider", provider]).is_some())
            };
            let known = [
                ("anthropic", "anthropic/claude-sonnet-4-5"),
                ("openai", "openai/gpt-5"),
                ("google", "google/gemini-2.5-flash"),
            ];
            let known = known
                .iter()
                .find(|(provider, _)| has(provider))
                .filter(|_| chosen.is_none());
            if let Some((_, name)) = known {
                model((*name).to_owned());
            }
        }
        Agent::Llm => {
            let file = copies
                .iter()
                .find(|(file, _)| file.ends_with("extra-openai-models.yaml"));
            let text = file
                .and_then(|(file, _)| std::fs::read_to_string(file).ok())
                .unwrap_or_default();
            let models = read(Syntax::Yaml, &text).unwrap_or(Value::Null);
            let has_address = |model: &&Value| {
                model["api_base"]
                    .as_str()
                    .is_some_and(|url| url.contains("127.0.0.1"))
            };
            let first = models.as_array().into_iter().flatten().find(has_address);
            if let Some(id) = first.and_then(|first| first["model_id"].as_str()) {
                model(id.to_owned());
            }
        }
        _ => {}
    }
    words.push(PROMPT.to_owned());
    words
}

/// The environment of a proof: words in place of keys, and switches against requests to other places.
fn variables(agent: Agent, copies: &[(PathBuf, Syntax)]) -> Vec<(String, String)> {
    let mut all: Vec<(&str, &str)> = vec![
        ("ANTHROPIC_API_KEY", KEY),
        ("OPENAI_API_KEY", KEY),
        ("NO_PROXY", "127.0.0.1,localhost"),
    ];
    match agent {
        Agent::Claude => all.extend([
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ]),
        Agent::Codex => all.push(("CODEX_API_KEY", KEY)),
        Agent::Gemini => all.extend([
            ("GEMINI_API_KEY", KEY),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ]),
        Agent::Opencode => all.extend([
            ("GOOGLE_GENERATIVE_AI_API_KEY", KEY),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ]),
        Agent::Goose => all.extend([
            ("GOOGLE_API_KEY", KEY),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_TELEMETRY_ENABLED", "false"),
            ("GOOSE_MODE", "auto"),
        ]),
        Agent::Aider => all.push(("LITELLM_LOCAL_MODEL_COST_MAP", "True")),
        Agent::Continue => all.push(("CONTINUE_TELEMETRY_ENABLED", "0")),
        Agent::Llm | Agent::Cline | Agent::Cursor => {}
    }
    let mut all: Vec<(String, String)> = all
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if agent == Agent::Codex
        && let Some(provider) = value(copies, "config.toml", &["model_provider"])
        && let Some(name) = value(
            copies,
            "config.toml",
            &["model_providers", &provider, "env_key"],
        )
    {
        all.push((name, KEY.to_owned()));
    }
    if agent == Agent::Goose {
        let provider = value(copies, "config.yaml", &["GOOSE_PROVIDER"]);
        let is_anthropic = provider.as_deref() == Some("anthropic");
        if provider.is_none() {
            all.push(("GOOSE_PROVIDER".to_owned(), "openai".to_owned()));
        }
        if value(copies, "config.yaml", &["GOOSE_MODEL"]).is_none() {
            let model = if is_anthropic {
                "claude-sonnet-4-5"
            } else {
                "gpt-4o"
            };
            all.push(("GOOSE_MODEL".to_owned(), model.to_owned()));
        }
    }
    all
}

/// A server of Infold on a directory of its own.
struct Proxy {
    url: String,
    contexts: PathBuf,
    child: Child,
}

impl Proxy {
    fn start(directory: &Path, upstream: &str) -> std::io::Result<Proxy> {
        let contexts = directory.join("contexts");
        let mut command = infold(directory, &contexts)?;
        command.args(["serve", "--port", "0", "--json", "--upstream", upstream]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let ready: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let url = ready["listening"].as_str().unwrap_or_default().to_owned();
        let proxy = Proxy {
            url,
            contexts,
            child,
        };
        if proxy.url.is_empty() {
            return Err(std::io::Error::other(
                "the proxy of the proof did not start",
            ));
        }
        Ok(proxy)
    }

    /// Returns the task whose first message holds a text.
    fn task_with(&self, text: &str) -> std::io::Result<Option<String>> {
        let directory = self.contexts.parent().unwrap_or(Path::new("/"));
        let listed = infold(directory, &self.contexts)?
            .args(["task", "list", "--json"])
            .output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let tasks = listed
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for task in tasks {
            let id = task["uuid"].as_str().unwrap_or_default().to_owned();
            let log = infold(directory, &self.contexts)?
                .args(["recall", &id, "1..", "--json"])
                .output()?;
            if String::from_utf8_lossy(&log.stdout).contains(text) {
                return Ok(Some(id.chars().take(8).collect()));
            }
        }
        Ok(None)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, with no configuration and a directory of its own.
fn infold(directory: &Path, contexts: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .env_clear()
        .env("HOME", directory)
        .env("INFOLD_CONFIG", "/dev/null");
    command
        .env("INFOLD_CONTEXTS", contexts)
        .stdin(Stdio::null())
        .current_dir(directory);
    Ok(command)
}

/// A program that ran to its end, or was stopped.
struct Run {
    said: String,
    status: String,
}

impl Run {
    /// Runs a program to its end, and ends the processes that it left running in its home directory.
    fn new(mut command: Command, home: &Path) -> std::io::Result<Run> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let readers = [
            child.stdout.take().map(|pipe| read_all(Box::new(pipe))),
            child.stderr.take().map(|pipe| read_all(Box::new(pipe))),
        ];
        let readers: Vec<_> = readers.into_iter().flatten().collect();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status.to_string();
            }
            if began.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break format!("no end after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // A process that is left may hold the output open. One look is not enough: one that is just being started has no
        // environment yet.
        let ended = Instant::now();
        loop {
            end_leftovers(home);
            if readers.iter().all(JoinHandle::is_finished) || ended.elapsed() > LEFTOVER_PATIENCE {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = readers
            .into_iter()
            .filter(JoinHandle::is_finished)
            .filter_map(|reader| reader.join().ok())
            .collect();
        Ok(Run { said, status })
    }

    /// How it ended, and the last line that it printed.
    fn end(&self) -> String {
        let last = self.said.trim().lines().next_back().unwrap_or_default();
        format!("{}: {}", self.status, infold_wire::shorten(last, 300))
    }
}

/// How long processes that an agent left are looked for while they hold the output open.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(10);

/// Ends the processes that have this home directory: some agents leave a daemon behind.
fn end_leftovers(home: &Path) {
    let mut wanted = b"HOME=".to_vec();
    wanted.extend(home.as_os_str().as_bytes());
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let id = process.file_name().to_string_lossy().parse().ok();
        let Some(id) = id.and_then(rustix::process::Pid::from_raw) else {
            continue;
        };
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|one| one == wanted)
        {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }
}

fn read_all(mut pipe: Box<dyn std::io::Read + Send>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
