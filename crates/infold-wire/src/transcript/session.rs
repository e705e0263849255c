//! Finds the session of an agent that a transcript records: its id, directory, branch and version.

use std::io::{BufRead, Seek};

use super::neutral::ObjectMembers;
use super::record_reader::{InputChunk, RecordReader, RecordToken, TranscriptLayout};
use super::{TranscriptError, TranscriptFormat, detect};
use crate::{Json, JsonKind};

/// A session of an agent, as far as its transcript describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSession {
    /// The id that the agent gave it.
    pub id: Option<String>,
    /// The directory in which the agent worked.
    pub cwd: Option<String>,
    /// The git branch of that directory.
    pub branch: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
}

/// The number of records that are read.
const MAX_RECORDS: usize = 64;

/// The paths of the members of a [`AgentSession`] in a format, in their order.
type SessionPaths = [&'static [&'static str]; 4];

fn paths(format: TranscriptFormat) -> Option<SessionPaths> {
    match format {
        TranscriptFormat::ClaudeCode => {
            Some([&["sessionId"], &["cwd"], &["gitBranch"], &["version"]])
        }
        TranscriptFormat::Codex => Some([
            &["payload", "id"],
            &["payload", "cwd"],
            &["payload", "git", "branch"],
            &["payload", "cli_version"],
        ]),
        TranscriptFormat::Pi => Some([&["id"], &["cwd"], &[], &[]]),
        TranscriptFormat::GeminiCli => Some([&["sessionId"], &[], &[], &[]]),
        _ => None,
    }
}

/// Finds the session in the first records; the input is at its start before and after.
pub fn find<R: BufRead + Seek>(
    format: TranscriptFormat,
    records: &mut RecordReader<R>,
    prefix: &[u8],
) -> Result<AgentSession, TranscriptError> {
    let mut session = AgentSession::default();
    let Some(paths) = paths(format) else {
        return Ok(session);
    };
    if records.layout() != TranscriptLayout::Lines {
        session.id = detect::read_member(prefix, paths[0][0]);
        return Ok(session);
    }
    let mut left = MAX_RECORDS;
    while left > 0
        && let Some(InputChunk { raw, token, .. }) = records.next_chunk()?
    {
        left -= 1;
        if let RecordToken::Record(range) = token
            && let Ok(record) = ObjectMembers::parse(&raw[range])
            && describes_session(format, &record)
        {
            session.read_record(&record, &paths);
        }
        if session.id.is_some() && (session.cwd.is_some() || format == TranscriptFormat::GeminiCli)
        {
            break;
        }
    }
    records.rewind()?;
    Ok(session)
}

/// Returns whether a record describes the session; in some formats other records have an `id`, too.
fn describes_session(format: TranscriptFormat, record: &ObjectMembers<'_>) -> bool {
    let kind = record.get("type").and_then(Json::text);
    match format {
        TranscriptFormat::Codex => kind.as_deref() == Some("session_meta"),
        TranscriptFormat::Pi => kind.as_deref() == Some("session"),
        _ => true,
    }
}

impl AgentSession {
    fn read_record(&mut self, record: &ObjectMembers<'_>, paths: &SessionPaths) {
        let members = [
            &mut self.id,
            &mut self.cwd,
            &mut self.branch,
            &mut self.version,
        ];
        for (member, path) in members.into_iter().zip(paths) {
            if member.is_none() {
                *member = text_at(record, path);
            }
        }
    }
}

fn text_at(record: &ObjectMembers<'_>, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let value = rest
        .iter()
        .try_fold(record.get(first)?, |value, name| value.get(name))?;
    let text = (value.kind() == JsonKind::String).then(|| value.text())??;
    (!text.is_empty()).then(|| text.into_owned())
}
