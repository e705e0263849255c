//! `infold config`, and the configuration that the other commands load.

mod files;
mod trust;
mod effective;

pub use files::user_directory;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use infold::Config;
use infold::config::{ConfigEntry, ConfigError, ConfigSource, RestrictedKey};
use infold::profile::{Origin, Setting};
use serde_json::{Value, json};

use crate::error::{CliError, CliResult};
use crate::output::{Output, cells, count, format_table, note, one_line};
use files::{ConfigFiles, FILE_NAME};

/// The arguments of `infold config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every value in effect and where it was set; keys are not shown
    Show,
    /// Check a configuration; exits with 2 if it is wrong
    Check {
        /// The file [default: the files in use]
        file: Option<PathBuf>,
    },
    /// Trust a project's config.yaml to set commands, providers and directories, until it changes
    Trust {
        /// The file [default: ./config.yaml]
        file: Option<PathBuf>,
        /// List what would be allowed, without changing anything
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop trusting a file
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
    out: &mut Output,
) -> CliResult {
    match &args.command {
        ConfigCommand::Show => show(&ConfigFiles::find(named)?, contexts, out),
        ConfigCommand::Check { file } => check(ConfigFiles::find(file.as_deref().or(named))?, out),
        ConfigCommand::Trust { file, dry_run } => trust::trust(file.as_deref(), *dry_run, out),
        ConfigCommand::Untrust { file } => trust::untrust(file.as_deref(), out),
    }
}

/// Returns the configuration in effect. Warns if part of a file is ignored.
pub fn load(named: Option<&Path>, contexts: Option<PathBuf>, json: bool) -> CliResult<Config> {
    let files = ConfigFiles::find(named)?;
    let parsed = files.parse()?;
    warn_of_project(&files, &parsed.ignored, json);
    Ok(with_contexts(parsed.config, contexts))
}

/// Warns that the project's file could not be read, or that part of it is ignored.
fn warn_of_project(files: &ConfigFiles, ignored: &[RestrictedKey], json: bool) {
    let text = match &files.unreadable {
        Some(why) => why.clone(),
        None if ignored.is_empty() => return,
        None => not_trusted(ignored),
    };
    CliError::usage(text).warn(json);
}

/// Describes which keys are ignored, and the command that would allow them.
fn not_trusted(ignored: &[RestrictedKey]) -> String {
    const MAX_LISTED_KEYS: usize = 20;
    let keys = ignored
        .iter()
        .take(MAX_LISTED_KEYS)
        .map(|it| it.key.as_str());
    let keys: Vec<&str> = keys.collect();
    let more = match ignored.len().saturating_sub(MAX_LISTED_KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{FILE_NAME} is not trusted; ignored: {}{more}; `infold config trust` lists and allows them",
        keys.join(", ")
    )
}

/// Reports the first of several errors, and how many more there are.
fn first_error(errors: Vec<ConfigError>) -> CliError {
    let more = errors.len() - 1;
    let Some(error) = errors.first() else {
        return CliError::usage("the configuration is wrong");
    };
    let failure = CliError::usage(error);
    match (error.problem.hint(), more) {
        (_, 1..) => failure.hint(format!(
            "{}; `infold config check` shows all",
            count(more as u64, "more error")
        )),
        (Some(hint), 0) => failure.hint(hint),
        (None, 0) => failure.hint(
            "correct it, or use --config /dev/null to ignore it; docs/CONFIG.md lists all keys",
        ),
    }
}

/// Sets the contexts directory: the one of the flag, the configured one, or the default.
fn with_contexts(mut config: Config, contexts: Option<PathBuf>) -> Config {
    let base = &mut config.context_storage.base_dir;
    match contexts.filter(|dir| *dir != base.value) {
        Some(dir) => *base = Setting::call(dir),
        None if base.origin == Origin::Default => base.value = default_contexts(),
        None => {}
    }
    config
}

/// Returns ./contexts if it holds tasks, else a directory in the user's data directory, so that no
/// tasks are left in repositories.
fn default_contexts() -> PathBuf {
    let here = PathBuf::from("./contexts");
    if here.join("tasks.db").is_file() {
        return here;
    }
    let data = files::user_directory("XDG_DATA_HOME", ".local/share");
    data.map_or(here, |data| data.join("contexts"))
}

fn show(files: &ConfigFiles, contexts: Option<PathBuf>, out: &mut Output) -> CliResult {
    let parsed = files.parse()?;
    let entries = effective::entries(&with_contexts(parsed.config, contexts))?;
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
        for line in format_table(&rows, &[], out.width()) {
            out.line(line)?;
        }
    }
    out.finish()?;
    if files.all.is_empty() {
        let text = "no configuration file; these are the defaults";
        note(out.is_json(), text);
    }
    for file in &files.all {
        let trust = if file.trusted { "" } else { ", not trusted" };
        let text = format!("from {}{trust}", one_line(&file.name));
        note(out.is_json(), text);
    }
    print_warnings(files, &parsed.warnings, &parsed.ignored, out);
    Ok(())
}

/// Abbreviates the home directory in a path.
pub fn with_tilde(path: String) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let rest = path.strip_prefix(&home).filter(|_| !home.is_empty());
    match rest.filter(|rest| rest.starts_with('/')) {
        Some(rest) => format!("~{rest}"),
        None => path,
    }
}

fn check(mut files: ConfigFiles, out: &mut Output) -> CliResult {
    let ignored = Config::restricted_keys(&files.layers()).unwrap_or_default();
    // A check covers restricted keys too.
    for file in &mut files.all {
        file.trusted = true;
    }
    let layers: Vec<ConfigSource<'_>> = files.layers();
    let warnings = match Config::parse_layers(&layers, &|name| std::env::var(name).ok()) {
        Ok(parsed) => parsed.warnings,
        Err(errors) => {
            // The last error becomes the error of the command.
            let (last, others) = errors.split_last().expect("a refusal has a reason");
            for error in others {
                CliError::usage(error).report(out.is_json());
            }
            let failure = CliError::usage(last);
            return Err(match last.problem.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            });
        }
    };
    print_warnings(&files, &warnings, &ignored, out);
    if files.all.is_empty() {
        note(out.is_json(), "no configuration file");
    }
    let files: Vec<&str> = files.all.iter().map(|it| it.name.as_str()).collect();
    if out.is_json() {
        let file = files.last();
        return out
            .object(&json!({"file": file, "files": files, "ok": true, "warnings": warnings}));
    }
    files
        .iter()
        .try_for_each(|file| out.line(format!("{} is valid", one_line(file))))
}

/// Prints the warnings about the files.
fn print_warnings(
    files: &ConfigFiles,
    warnings: &[String],
    ignored: &[RestrictedKey],
    out: &Output,
) {
    if files.is_foreign {
        let text = "config.yaml belongs to another program: it has no context_storage, llm, profiles, summarizer, serve, redact, recall or layers; --config config.yaml reads it anyway";
        note(out.is_json(), text);
    }
    for warning in warnings {
        CliError::usage(warning).warn(out.is_json());
    }
    warn_of_project(files, ignored, out.is_json());
}
