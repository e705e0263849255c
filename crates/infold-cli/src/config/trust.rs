//! `infold config trust`: which project files may set restricted keys.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use infold::Config;
use infold::config::{ConfigSource, RestrictedKey};
use serde_json::json;

use super::files::{ConfigFile, FILE_NAME, unreadable, user_directory};
use crate::error::{CliError, CliResult};
use crate::output::{Output, count, note, say};

/// Returns whether the user trusts a file with exactly these bytes.
pub fn is_trusted(path: &Path, bytes: &[u8]) -> bool {
    let Ok(Some(entry)) = absolute_path(path).map(|absolute| entry_of(&absolute)) else {
        return false;
    };
    let hash = blake3::hash(bytes).to_hex();
    fs::read_to_string(entry).is_ok_and(|text| text.lines().next() == Some(hash.as_str()))
}

/// `infold config trust`
pub fn trust(file: Option<&Path>, dry_run: bool, out: &mut Output) -> CliResult {
    let path = file.unwrap_or(Path::new(FILE_NAME));
    if path.file_name() != Some(FILE_NAME.as_ref()) {
        let text = format!("only a file named {FILE_NAME} needs trust");
        return Err(
            CliError::usage(text).hint("--config FILE reads any other file, with all of its keys")
        );
    }
    let source = ConfigFile::open_regular(path).map_err(unreadable(path))?;
    let user = ConfigFile::of_user()?;
    let absolute = absolute_path(path).map_err(unreadable(path))?;
    let shown = absolute.display();
    if source.is_among(user.as_slice()) {
        if out.is_json() {
            let file = shown.to_string();
            return out.object(&json!({"file": file, "trusted": true, "keys": []}));
        }
        say(
            false,
            format!("{shown} is your own configuration and needs no trust"),
        );
        return Ok(());
    }
    let mut layers: Vec<ConfigSource<'_>> = user.iter().map(ConfigFile::layer).collect();
    layers.push(ConfigSource {
        trusted: false,
        ..source.layer()
    });
    let keys = Config::restricted_keys(&layers).map_err(super::first_error)?;
    if !out.is_json() {
        say(
            false,
            format!(
                "{shown} sets {} that only a trusted file may set:",
                count(keys.len() as u64, "key")
            ),
        );
        // Values are not cut: the relevant part of a command may be at its end.
        for RestrictedKey { key, value, line } in &keys {
            out.line(format!("{}:{line}  {key} = {value}", source.name))?;
        }
        out.finish()?;
    }
    if dry_run {
        note(out.is_json(), "dry run: nothing was changed");
    } else {
        record(&absolute, source.text.as_bytes())?;
        say(
            out.is_json(),
            format!("trusted until the file changes; `infold config untrust {shown}` revokes this"),
        );
    }
    if out.is_json() {
        let keys: Vec<_> = keys
            .iter()
            .map(|it| json!({"key": it.key, "value": it.value, "line": it.line}))
            .collect();
        let trusted = is_trusted(path, source.text.as_bytes());
        let file = shown.to_string();
        out.object(&json!({"file": file, "trusted": trusted, "keys": keys}))?;
    }
    Ok(())
}

/// `infold config untrust`
pub fn untrust(file: Option<&Path>, out: &mut Output) -> CliResult {
    let path = file.unwrap_or(Path::new(FILE_NAME));
    let absolute = absolute_path(path).map_err(unreadable(path))?;
    let shown = absolute.display();
    let removed = match entry_of(&absolute).map(fs::remove_file) {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(not_recorded(&error));
        }
        removed => matches!(removed, Some(Ok(()))),
    };
    if !removed {
        return Err(CliError::no(format!("{shown} was not trusted")));
    }
    if out.is_json() {
        return out.object(&json!({"file": shown.to_string(), "trusted": false}));
    }
    out.line(format!("{shown} is no longer trusted"))
}

/// Returns the absolute path of a file, with links resolved in its directory only.
///
/// A link is not its target: trust in a file does not extend to another directory, where its
/// commands would run.
fn absolute_path(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = fs::canonicalize(dir.unwrap_or(Path::new(".")))?;
    Ok(dir.join(path.file_name().unwrap_or_default()))
}

/// Returns the file that holds the hash of the bytes trusted at a path.
///
/// Each path has a separate file, so that concurrent commands do not conflict.
fn entry_of(absolute: &Path) -> Option<PathBuf> {
    let dir = user_directory("XDG_STATE_HOME", ".local/state")?;
    let name = blake3::hash(absolute.as_os_str().as_bytes()).to_hex();
    Some(dir.join("trusted").join(name.as_str()))
}

/// Records which bytes are trusted at a path, readable and writable by this user only.
fn record(absolute: &Path, bytes: &[u8]) -> CliResult {
    let Some(entry) = entry_of(absolute) else {
        let text = "there is no home directory to record trust in";
        return Err(
            CliError::usage(text).hint("set HOME, or name the file with --config each time")
        );
    };
    let write = || {
        let dir = entry.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // A temporary file has mode 0600, and gets its name when it is complete.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        let hash = blake3::hash(bytes).to_hex();
        writeln!(file, "{hash}\n{}", absolute.display())?;
        file.persist(&entry)?;
        Ok(())
    };
    write().map_err(|error| not_recorded(&error))
}

fn not_recorded(error: &io::Error) -> CliError {
    CliError::store(format!("trust could not be recorded: {error}")).hint(
        "it is stored in $XDG_STATE_HOME/infold/trusted, or else in ~/.local/state/infold/trusted",
    )
}
