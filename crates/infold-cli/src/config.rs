use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use infold::Config;
use infold::config::{ConfigError, Entry};
use infold::profile::Set;
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, cells, count, one_line, paint, say, table};

/// What `infold config` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is the one --config or INFOLD_CONFIG names, else ./config.yaml, else ~/.config/infold/config.yaml.\n\nExamples:\n  infold config show\n  infold config check config.yaml"
)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Every value in effect and where it was set; keys are not shown
    #[command(after_help = "Examples:\n  infold config show\n  infold config show --json")]
    Show,
    /// Check a configuration; exits with 2 if it is wrong
    #[command(
        after_help = "Examples:\n  infold config check\n  infold config check team.yaml --json"
    )]
    Check {
        /// The file; without it, the one in use
        file: Option<PathBuf>,
    },
}

/// `infold config …`
pub fn run(
    args: &ConfigArgs,
    named: Option<&Path>,
    contexts: Option<PathBuf>,
    out: &mut Out,
) -> Result<(), Failure> {
    match &args.command {
        ConfigCommand::Show => show(&source(named)?, contexts, out),
        ConfigCommand::Check { file } => check(&source(file.as_deref().or(named))?, out),
    }
}

/// The configuration in effect.
pub fn load(named: Option<&Path>, contexts: Option<PathBuf>) -> Result<Config, Failure> {
    let (config, _) = source(named)?.parse().map_err(first)?;
    Ok(placed(config, contexts))
}

/// A configuration as it was found.
struct Source {
    /// Its name, if there is one.
    file: Option<String>,
    text: String,
    /// Another program's, found on the way.
    passed_over: bool,
}

impl Source {
    fn parse(&self) -> Result<(Config, Vec<String>), Vec<ConfigError>> {
        let file = self.file.as_deref().unwrap_or_default();
        Config::parse(file, &self.text, &|name| std::env::var(name).ok())
    }
}

/// Finds and reads the file. Missing is fine, unless it was named.
fn source(named: Option<&Path>) -> Result<Source, Failure> {
    let found = |path: &Path, text: String| Source {
        file: Some(path.display().to_string()),
        text,
        passed_over: false,
    };
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        let text = read(path).map_err(unreadable(path))?;
        return Ok(found(path, text));
    }
    let here = Path::new("config.yaml");
    let mut passed_over = false;
    // Not ours to complain of, if it may be another program's.
    match read(here) {
        Ok(text) if Config::is_ours(&text) => return Ok(found(here, text)),
        Ok(_) => passed_over = true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => passed_over = true,
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    if let Some(home) = home {
        let path = Path::new(&home).join(".config/infold/config.yaml");
        match read(&path) {
            Ok(text) => {
                return Ok(Source {
                    passed_over,
                    ..found(&path, text)
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path)(error)),
        }
    }
    Ok(Source {
        file: None,
        text: String::new(),
        passed_over,
    })
}

/// No configuration is longer; the library refuses what is.
const LIMIT: u64 = (1 << 20) + 1;

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(LIMIT)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| {
        let text = format!("{} could not be read: {error}", path.display());
        Failure::new(Kind::Usage, text)
            .hint("--config or INFOLD_CONFIG names the file; /dev/null goes without")
    }
}

/// The first of several errors.
fn first(errors: Vec<ConfigError>) -> Failure {
    let more = errors.len() - 1;
    let Some(error) = errors.first() else {
        return Failure::new(Kind::Usage, "the configuration is wrong");
    };
    let failure = Failure::new(Kind::Usage, error);
    match (error.problem.hint(), more) {
        (_, 1..) => failure.hint(format!(
            "{}; `infold config check` shows all",
            count(more as u64, "more error")
        )),
        (Some(hint), 0) => failure.hint(hint),
        (None, 0) => failure
            .hint("correct it, or go without: --config /dev/null; docs/CONFIG.md lists all keys"),
    }
}

/// The contexts directory that a flag names comes before the configured one.
fn placed(mut config: Config, contexts: Option<PathBuf>) -> Config {
    let base = &mut config.context_storage.base_dir;
    if let Some(dir) = contexts.filter(|dir| *dir != base.value) {
        *base = Set::call(dir);
    }
    config
}

fn show(source: &Source, contexts: Option<PathBuf>, out: &mut Out) -> Result<(), Failure> {
    let (config, warnings) = source.parse().map_err(first)?;
    let entries = placed(config, contexts).entries();
    if out.is_json() {
        for entry in &entries {
            out.object(&json!({"key": entry.key, "value": entry.value, "origin": entry.origin.to_string()}))?;
        }
    } else {
        let origin = |entry: &Entry| match entry.value {
            Value::Null => String::new(),
            _ => one_line(&entry.origin.to_string()),
        };
        let widest = |column: &dyn Fn(&Entry) -> String| {
            let cells = entries.iter().map(|entry| cells(&column(entry)));
            cells.max().unwrap_or(0)
        };
        let used = widest(&|entry| one_line(&entry.key)) + widest(&origin) + 4;
        let room = out.width().saturating_sub(used).max(20);
        let row = |entry: &Entry| {
            let value = match &entry.value {
                Value::Null => "-".to_owned(),
                Value::String(text) => infold_wire::shorten(text, room),
                other => infold_wire::shorten(&other.to_string(), room),
            };
            [one_line(&entry.key), value, origin(entry)]
        };
        let rows: Vec<[String; 3]> = entries.iter().map(row).collect();
        for line in table(&rows, &[], out.width()) {
            out.line(line)?;
        }
    }
    out.finish()?;
    match &source.file {
        Some(file) => say(out.is_json(), paint(DIM, format!("from {file}"))),
        None => say(
            out.is_json(),
            paint(DIM, "no configuration file; these are the defaults"),
        ),
    }
    tell(source, &warnings, out);
    Ok(())
}

fn check(source: &Source, out: &mut Out) -> Result<(), Failure> {
    let Some(file) = &source.file else {
        tell(source, &[], out);
        say(out.is_json(), paint(DIM, "no configuration file"));
        return match out.is_json() {
            true => out.object(&json!({"file": null, "ok": true, "warnings": []})),
            false => Ok(()),
        };
    };
    let warnings = match source.parse() {
        Ok((_, warnings)) => warnings,
        Err(errors) => {
            // The last one is the command's own error.
            let (last, others) = errors.split_last().expect("a refusal has a reason");
            for error in others {
                Failure::new(Kind::Usage, error).report(out.is_json());
            }
            let failure = Failure::new(Kind::Usage, last);
            return Err(match last.problem.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            });
        }
    };
    tell(source, &warnings, out);
    if out.is_json() {
        return out.object(&json!({"file": file, "ok": true, "warnings": warnings}));
    }
    out.line(format!("{} is fine", one_line(file)))
}

/// Says what else the person should know.
fn tell(source: &Source, warnings: &[String], out: &Out) {
    let passed_over = "config.yaml is another program's: it has no context_storage, llm, profiles or summarizer; --config config.yaml reads it all the same";
    if source.passed_over {
        say(out.is_json(), paint(DIM, passed_over));
    }
    for warning in warnings {
        Failure::new(Kind::Usage, warning).warn(out.is_json());
    }
}
