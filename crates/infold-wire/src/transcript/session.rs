//! The session of an agent that a transcript records: its id, directory, branch and version.

use std::io::{BufRead, Seek};

use super::records::{Cut, Layout, Records, What};
use super::said::Fields;
use super::{Format, TranscriptError, detect};
use crate::{Json, Kind};

/// A session of an agent, as far as its transcript says which one it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The id that the agent gave it.
    pub id: Option<String>,
    /// The directory in which the agent worked.
    pub cwd: Option<String>,
    /// The git branch of that directory.
    pub branch: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
}

/// How many records are looked at.
const MAX_RECORDS: usize = 64;

/// The places of a format where the members of a [`Session`] stand, in their order.
type Paths = [&'static [&'static str]; 4];

fn paths(format: Format) -> Option<Paths> {
    match format {
        Format::ClaudeCode => Some([&["sessionId"], &["cwd"], &["gitBranch"], &["version"]]),
        Format::Codex => Some([
            &["payload", "id"],
            &["payload", "cwd"],
            &["payload", "git", "branch"],
            &["payload", "cli_version"],
        ]),
        Format::Pi => Some([&["id"], &["cwd"], &[], &[]]),
        Format::GeminiCli => Some([&["sessionId"], &[], &[], &[]]),
        _ => None,
    }
}

/// Looks for the session in the first records; the input is at its start before and after.
pub fn find<R: BufRead + Seek>(
    format: Format,
    records: &mut Records<R>,
    prefix: &[u8],
) -> Result<Session, TranscriptError> {
    let mut session = Session::default();
    let Some(paths) = paths(format) else {
        return Ok(session);
    };
    if records.layout() != Layout::Lines {
        session.id = detect::member(prefix, paths[0][0]);
        return Ok(session);
    }
    let mut left = MAX_RECORDS;
    while left > 0
        && let Some(Cut { raw, what, .. }) = records.next_cut()?
    {
        left -= 1;
        if let What::Record(range) = what
            && let Ok(record) = Fields::parse(&raw[range])
            && describes_session(format, &record)
        {
            session.learn(&record, &paths);
        }
        if session.id.is_some() && (session.cwd.is_some() || format == Format::GeminiCli) {
            break;
        }
    }
    records.rewind()?;
    Ok(session)
}

/// Says whether a record names the session; in some formats others have an `id` of their own.
fn describes_session(format: Format, record: &Fields<'_>) -> bool {
    let kind = record.get("type").and_then(Json::text);
    match format {
        Format::Codex => kind.as_deref() == Some("session_meta"),
        Format::Pi => kind.as_deref() == Some("session"),
        _ => true,
    }
}

impl Session {
    fn learn(&mut self, record: &Fields<'_>, paths: &Paths) {
        let members = [
            &mut self.id,
            &mut self.cwd,
            &mut self.branch,
            &mut self.version,
        ];
        for (member, path) in members.into_iter().zip(paths) {
            if member.is_none() {
                *member = at(record, path);
            }
        }
    }
}

fn at(record: &Fields<'_>, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let value = rest
        .iter()
        .try_fold(record.get(first)?, |value, name| value.get(name))?;
    let text = (value.kind() == Kind::String).then(|| value.text())??;
    (!text.is_empty()).then(|| text.into_owned())
}
