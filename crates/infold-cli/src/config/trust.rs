use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use infold::Config;
use infold::config::{Layer, RestrictedKey};
use serde_json::json;

use super::source::{FILE_NAME, Source, unreadable, user_directory};
use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, count, paint, say};

/// Whether the user trusts a file with exactly these bytes.
pub fn is_trusted(path: &Path, bytes: &[u8]) -> bool {
    let Ok(Some(entry)) = place_of(path).map(|place| entry_of(&place)) else {
        return false;
    };
    let hash = blake3::hash(bytes).to_hex();
    fs::read_to_string(entry).is_ok_and(|text| text.lines().next() == Some(hash.as_str()))
}

/// `infold config trust`
pub fn trust(file: Option<&Path>, dry_run: bool, out: &mut Out) -> Result<(), Failure> {
    let path = file.unwrap_or(Path::new(FILE_NAME));
    if path.file_name() != Some(FILE_NAME.as_ref()) {
        let text = format!("only a {FILE_NAME} needs trust");
        return Err(Failure::new(Kind::Usage, text)
            .hint("--config FILE reads any other file, and all of its keys count"));
    }
    let source = Source::open_regular(path).map_err(unreadable(path))?;
    let user = Source::of_user()?;
    let place = place_of(path).map_err(unreadable(path))?;
    let shown = place.display();
    if source.is_among(user.as_slice()) {
        if out.is_json() {
            let file = shown.to_string();
            return out.object(&json!({"file": file, "trusted": true, "keys": []}));
        }
        say(
            false,
            format!("{shown} is your own configuration: it needs no trust"),
        );
        return Ok(());
    }
    let mut layers: Vec<Layer<'_>> = user.iter().map(Source::layer).collect();
    layers.push(Layer {
        trusted: false,
        ..source.layer()
    });
    let keys = Config::restricted_keys(&layers).map_err(super::first)?;
    if !out.is_json() {
        say(
            false,
            format!(
                "{shown} sets {} that only a trusted file may set:",
                count(keys.len() as u64, "key")
            ),
        );
        // Uncut: what a command does may stand at its end.
        for RestrictedKey { key, value, line } in &keys {
            out.line(format!("{}:{line}  {key} = {value}", source.name))?;
        }
        out.finish()?;
    }
    if dry_run {
        say(out.is_json(), paint(DIM, "dry run: nothing was changed"));
    } else {
        remember(&place, source.text.as_bytes())?;
        say(
            out.is_json(),
            format!(
                "trusted until the file changes; `infold config untrust {shown}` takes it back"
            ),
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
pub fn untrust(file: Option<&Path>, out: &mut Out) -> Result<(), Failure> {
    let path = file.unwrap_or(Path::new(FILE_NAME));
    let place = place_of(path).map_err(unreadable(path))?;
    let shown = place.display();
    let removed = match entry_of(&place).map(fs::remove_file) {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(not_remembered(&error));
        }
        removed => matches!(removed, Some(Ok(()))),
    };
    if !removed {
        return Err(Failure::new(Kind::No, format!("{shown} was not trusted")));
    }
    if out.is_json() {
        return out.object(&json!({"file": shown.to_string(), "trusted": false}));
    }
    out.line(format!("{shown} is not trusted any more"))
}

/// Where a file is. Links in its directory's path are resolved. The file itself may be a link:
/// trust in the file that it leads to does not extend to another directory, whose commands it
/// would run.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = fs::canonicalize(dir.unwrap_or(Path::new(".")))?;
    Ok(dir.join(path.file_name().unwrap_or_default()))
}

/// The file that says which bytes are trusted at a place.
///
/// Each place has its own, so that two commands at once do not undo each other.
fn entry_of(place: &Path) -> Option<PathBuf> {
    let dir = user_directory("XDG_STATE_HOME", ".local/state")?;
    let name = blake3::hash(place.as_os_str().as_bytes()).to_hex();
    Some(dir.join("trusted").join(name.as_str()))
}

/// Remembers which bytes are trusted at a place, for this user alone to read and write.
fn remember(place: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let Some(entry) = entry_of(place) else {
        let text = "there is no home directory in which trust could be remembered";
        return Err(Failure::new(Kind::Usage, text)
            .hint("set HOME, or name the file with --config each time"));
    };
    let write = || {
        let dir = entry.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // Created with mode 0600, and complete before it has its name.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        let hash = blake3::hash(bytes).to_hex();
        writeln!(file, "{hash}\n{}", place.display())?;
        file.persist(&entry)?;
        Ok(())
    };
    write().map_err(|error| not_remembered(&error))
}

fn not_remembered(error: &io::Error) -> Failure {
    Failure::new(Kind::Store, format!("trust could not be recorded: {error}")).hint(
        "it is kept in $XDG_STATE_HOME/infold/trusted, or else in ~/.local/state/infold/trusted",
    )
}
