//! Who sends requests, and where it works, as far as requests tell.

use http::HeaderMap;
use http::header::USER_AGENT;
use infold_wire::Json;
use memchr::memmem;

use crate::IncomingBody;

/// So much of a body is looked at.
const MAX_BYTES: u64 = 256 << 10;

/// What agents say before the directory in which they work.
const MARKERS: [&str; 5] = [
    "Working directory: ",
    "<cwd>",
    "working in the directory: ",
    "Current working directory: ",
    "Current Working Directory (",
];

/// The name of the program that sent a request, without its version.
pub fn name(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    let name = agent.split(['/', ' ', '(']).next()?;
    let is_name = !name.is_empty() && name.len() <= 64;
    is_name.then(|| name.to_owned())
}

/// The directory in which an agent works, if its instructions name it.
pub fn directory(body: &IncomingBody) -> Option<String> {
    let part = body.part(&(0..body.len().min(MAX_BYTES))).ok()?;
    MARKERS.iter().find_map(|marker| {
        let mut found = memmem::find_iter(&part, marker.as_bytes());
        found.find_map(|at| path(&part[at + marker.len()..]))
    })
}

/// The absolute path with which a piece of a JSON string begins.
fn path(text: &[u8]) -> Option<String> {
    const MAX_PATH_BYTES: usize = 1024;
    let text = &text[..text.len().min(MAX_PATH_BYTES)];
    let ends = |at: &usize| match text[*at] {
        b'"' | b'<' | b'\n' | b')' => true,
        b'\\' => text.get(at + 1) == Some(&b'n'),
        _ => false,
    };
    let end = (0..text.len()).find(ends)?;
    let quoted = [b"\"", &text[..end], b"\""].concat();
    let path = Json::parse(&quoted).ok()?.text()?.trim().to_owned();
    let is_absolute = path.starts_with('/') || path.get(1..3) == Some(":\\");
    is_absolute.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_in_what_agents_say() {
        let found =
            |text: &str| directory(&IncomingBody::InMemory(text.as_bytes().to_vec().into()));
        let claude =
            r#"{"system":"<env>\nWorking directory: /home/me/app\nIs directory a git repo: Yes"}"#;
        assert_eq!(found(claude).as_deref(), Some("/home/me/app"));
        let codex = r#"{"input":[{"text":"<environment_context>\n  <cwd>/srv/a b</cwd>\n"}]}"#;
        assert_eq!(found(codex).as_deref(), Some("/srv/a b"));
        let windows = r#"{"system":"Working directory: C:\\code\\app\n"}"#;
        assert_eq!(found(windows).as_deref(), Some("C:\\code\\app"));
        assert_eq!(found(r#"{"system":"Working directory: unknown\n"}"#), None);
        assert_eq!(found(r#"{"system":"hello"}"#), None);
    }
}
