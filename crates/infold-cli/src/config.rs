mod source;
mod trust;
mod effective;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use infold::Config;
use infold::config::{ConfigEntry, ConfigError, Layer, RestrictedKey};
use infold::profile::{Origin, Setting};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, cells, count, one_line, paint, say, table};
use source::{FILE_NAME, Sources};

/// What `infold config` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "The configuration is the file that --config or INFOLD_CONFIG names. Without one it is ~/.config/infold/config.yaml\nand ./config.yaml over it, of which commands, hooks, providers, keys, addresses and directories count only if you trust it.\n\nExamples:\n  infold config show\n  infold config check config.yaml\n  infold config trust"
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
        /// The file; without it, those in use
        file: Option<PathBuf>,
    },
    /// Let a project's config.yaml run commands, choose providers and directories, until it changes
    #[command(
        after_help = "Lists what that allows, and asks nothing. Trust holds for these bytes at this place: any change of the file ends it.\nFiles that its commands run may change all the same.\n\nExamples:\n  infold config trust --dry-run\n  infold config trust\n  infold config trust ~/work/api/config.yaml --json"
    )]
    Trust {
        /// The file [default: ./config.yaml]
        file: Option<PathBuf>,
        /// List what it would allow, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Take that back
    #[command(
        after_help = "Examples:\n  infold config untrust\n  infold config untrust ~/work/api/config.yaml"
    )]
    Untrust {
        /// The file [default: ./config.yaml]
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
        ConfigCommand::Show => show(&Sources::find(named)?, contexts, out),
        ConfigCommand::Check { file } => check(Sources::find(file.as_deref().or(named))?, out),
        ConfigCommand::Trust { file, dry_run } => trust::trust(file.as_deref(), *dry_run, out),
        ConfigCommand::Untrust { file } => trust::untrust(file.as_deref(), out),
    }
}

/// The configuration in effect. Warns once if there is a file of which not all counts.
pub fn load(
    named: Option<&Path>,
    contexts: Option<PathBuf>,
    json: bool,
) -> Result<Config, Failure> {
    let sources = Sources::find(named)?;
    let parsed = sources.parse()?;
    warn_of_project(&sources, &parsed.ignored, json);
    Ok(placed(parsed.config, contexts))
}

/// Warns that the project's file could not be read, or is not trusted and what is ignored of it.
fn warn_of_project(sources: &Sources, ignored: &[RestrictedKey], json: bool) {
    let text = match &sources.unreadable {
        Some(why) => why.clone(),
        None if ignored.is_empty() => return,
        None => not_trusted(ignored),
    };
    Failure::new(Kind::Usage, text).warn(json);
}

/// Names the keys that are ignored, and the command that would allow them.
fn not_trusted(ignored: &[RestrictedKey]) -> String {
    const MAX_KEYS: usize = 20;
    let keys = ignored.iter().take(MAX_KEYS).map(|it| it.key.as_str());
    let keys: Vec<&str> = keys.collect();
    let more = match ignored.len().saturating_sub(MAX_KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{FILE_NAME} is not trusted; ignored: {}{more}; `infold config trust` lists and allows them",
        keys.join(", ")
    )
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
    match contexts.filter(|dir| *dir != base.value) {
        Some(dir) => *base = Setting::call(dir),
        None if base.origin == Origin::Default => base.value = usual_contexts(),
        None => {}
    }
    config
}

/// Where tasks are if nobody says it: in the user's data directory, so that all are together and none is left in somebody's
/// repository; or here, where some are already.
fn usual_contexts() -> PathBuf {
    let here = PathBuf::from("./contexts");
    if here.join("tasks.db").is_file() {
        return here;
    }
    let data = source::user_directory("XDG_DATA_HOME", ".local/share");
    data.map_or(here, |data| data.join("contexts"))
}

fn show(sources: &Sources, contexts: Option<PathBuf>, out: &mut Out) -> Result<(), Failure> {
    let parsed = sources.parse()?;
    let entries = effective::entries(&placed(parsed.config, contexts))?;
    if out.is_json() {
        for entry in &entries {
            out.object(&json!({"key": entry.key, "value": entry.value, "origin": entry.origin.to_string()}))?;
        }
    } else {
        let origin = |entry: &ConfigEntry| match entry.value {
            Value::Null => String::new(),
            _ => with_tilde(one_line(&entry.origin.to_string())),
        };
        let widest = |column: &dyn Fn(&ConfigEntry) -> String| {
            let cells = entries.iter().map(|entry| cells(&column(entry)));
            cells.max().unwrap_or(0)
        };
        let used = widest(&|entry| one_line(&entry.key)) + widest(&origin) + 4;
        let room = out.width().saturating_sub(used).max(20);
        let row = |entry: &ConfigEntry| {
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
    if sources.files.is_empty() {
        let text = "no configuration file; these are the defaults";
        say(out.is_json(), paint(DIM, text));
    }
    for source in &sources.files {
        let trust = if source.trusted { "" } else { ", not trusted" };
        let text = format!("from {}{trust}", one_line(&source.name));
        say(out.is_json(), paint(DIM, text));
    }
    tell(sources, &parsed.warnings, &parsed.ignored, out);
    Ok(())
}

/// A path with a short name for the home directory, so that the line after it is in view.
pub fn with_tilde(path: String) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let rest = path.strip_prefix(&home).filter(|_| !home.is_empty());
    match rest.filter(|rest| rest.starts_with('/')) {
        Some(rest) => format!("~{rest}"),
        None => path,
    }
}

fn check(mut sources: Sources, out: &mut Out) -> Result<(), Failure> {
    let ignored = Config::restricted_keys(&sources.layers()).unwrap_or_default();
    // Whoever checks a file wants to know of all of it.
    for source in &mut sources.files {
        source.trusted = true;
    }
    let layers: Vec<Layer<'_>> = sources.layers();
    let warnings = match Config::parse_layers(&layers, &|name| std::env::var(name).ok()) {
        Ok(parsed) => parsed.warnings,
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
    tell(&sources, &warnings, &ignored, out);
    if sources.files.is_empty() {
        say(out.is_json(), paint(DIM, "no configuration file"));
    }
    let files: Vec<&str> = sources.files.iter().map(|it| it.name.as_str()).collect();
    if out.is_json() {
        let file = files.last();
        return out
            .object(&json!({"file": file, "files": files, "ok": true, "warnings": warnings}));
    }
    files
        .iter()
        .try_for_each(|file| out.line(format!("{} is fine", one_line(file))))
}

/// Says what else the person should know.
fn tell(sources: &Sources, warnings: &[String], ignored: &[RestrictedKey], out: &Out) {
    let passed_over = "config.yaml is another program's: it has no context_storage, llm, profiles, summarizer, serve or redact; --config config.yaml reads it all the same";
    if sources.passed_over {
        say(out.is_json(), paint(DIM, passed_over));
    }
    for warning in warnings {
        Failure::new(Kind::Usage, warning).warn(out.is_json());
    }
    warn_of_project(sources, ignored, out.is_json());
}
