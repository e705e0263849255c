use super::said::Said;

/// Members of messages that some providers send and others do not know.
const MEMBERS: [&str; 12] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "annotations",
    "refusal",
    "audio",
    "images",
    "name",
    "function_call",
    "extra_content",
    "tool_name",
];

/// What is said of a member that is too much.
const EXTRA: [&str; 13] = [
    "extra inputs are not permitted",
    "extra fields not permitted",
    "additional properties are not allowed",
    "is unsupported",
    "unsupported property",
    "unsupported parameter",
    "unknown parameter",
    "unknown field",
    "unknown name",
    "unrecognized field",
    "unrecognized key",
    "unexpected field",
    "unexpected property",
];

/// Says whether a request is refused for a member of its messages that the provider does not know.
pub(super) fn is_meant(status: u16, said: &Said) -> bool {
    let extra = said.has_code(&["extra_forbidden", "unknown_parameter"]) || said.says_any(&EXTRA);
    matches!(status, 400 | 422) && extra && said.texts().any(names_member)
}

/// Says whether a text names a member of a message: in quotes, or at the end of a path.
fn names_member(text: &str) -> bool {
    let named = |member: &str| {
        text.match_indices(member).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + member.len()..].chars().next();
            before.is_some_and(|before| ".'\"`[/".contains(before))
                && after.is_none_or(|after| "'\"`]:,) \n".contains(after))
        })
    };
    text.contains("messages") && MEMBERS.into_iter().any(named)
}
