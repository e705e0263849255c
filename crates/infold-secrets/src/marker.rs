//! Markers: the texts that replace secrets.

/// Returns the marker of a secret.
pub fn marker(rule: &str) -> String {
    format!("{MARKER_START}{rule}]")
}

/// Returns whether a text has a marker in it.
pub fn contains_marker(text: &str) -> bool {
    let ends = text.split(MARKER_START).skip(1);
    ends.filter_map(|rest| rest.split_once(']'))
        .any(|(rule, _)| is_id(rule))
}

/// Says whether a text can be the id of a rule.
fn is_id(rule: &str) -> bool {
    let mut bytes = rule.bytes();
    !rule.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

const MARKER_START: &str = "[redacted:";

/// Returns whether a match is nothing but markers and punctuation around them. Some rules match markers, too, and those
/// must not be redacted again.
pub(crate) fn is_redacted(secret: &[u8]) -> bool {
    let Ok(mut rest) = std::str::from_utf8(secret) else {
        return false;
    };
    let is_punctuation = |text: &str| !text.contains(char::is_alphanumeric);
    let mut is_marked = false;
    while let Some((before, after)) = rest.split_once(MARKER_START) {
        let Some((rule, after)) = after.split_once(']') else {
            return false;
        };
        if !is_punctuation(before) || !is_id(rule) {
            return false;
        }
        (rest, is_marked) = (after, true);
    }
    is_marked && is_punctuation(rest)
}
