//! Recognises errors about members of messages that the provider does not know.

use std::sync::LazyLock;

use super::body::ErrorBody;
use super::phrases;
use crate::phrase_list::PhraseList;

static MEMBERS: PhraseList = LazyLock::new(|| phrases("members"));
static UNKNOWN: PhraseList = LazyLock::new(|| phrases("unknown member phrases"));

/// Returns whether a request is refused for a member of its messages that the provider does not know.
pub(super) fn is_reported(status: u16, body: &ErrorBody) -> bool {
    let codes = ["extra_forbidden", "unknown_parameter"];
    let is_unknown = body.has_code(&codes) || body.says_any(&UNKNOWN);
    matches!(status, 400 | 422) && is_unknown && body.texts().any(names_member)
}

/// Returns whether a text names a member of a message: in quotes, or at the end of a path.
fn names_member(text: &str) -> bool {
    let is_named = |member: &str| {
        text.match_indices(member).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + member.len()..].chars().next();
            before.is_some_and(|before| ".'\"`[/".contains(before))
                && after.is_none_or(|after| "'\"`]:,) \n".contains(after))
        })
    };
    text.contains("messages") && MEMBERS.iter().any(|member| is_named(member))
}
