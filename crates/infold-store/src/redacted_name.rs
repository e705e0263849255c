//! Names that were redacted: of conversations, of tasks at their source, of pushes.
//!
//! A client may give a name again, so its digest is stored in its place: the name is recognised, and is not
//! written again.

use infold_wire::digest::Digest;

use crate::stored;

const START: &str = "[redacted #";
const DIGITS: usize = 32;

/// Returns the form in which a redacted name is kept. That of a name which is redacted already is the name itself.
///
/// ```
/// use infold_store::redacted_name;
///
/// let redacted = redacted_name("hunter2");
/// assert!(redacted.starts_with("[redacted #") && !redacted.contains("hunter2"));
/// assert_eq!(redacted_name(&redacted), redacted);
/// ```
pub fn redacted_name(name: &str) -> String {
    if is_redacted_name(name) {
        return name.to_owned();
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("{START}{}]", &digest[..DIGITS])
}

/// Says whether a name is in the form in which redacted ones are kept.
pub(crate) fn is_redacted_name(name: &str) -> bool {
    let digits = name
        .strip_prefix(START)
        .and_then(|rest| rest.strip_suffix(']'));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns the digest in the form in which a redacted name is kept.
pub(crate) fn name_digest(redacted: &str) -> Option<Digest> {
    let digits = redacted.strip_prefix(START)?.strip_suffix(']')?;
    stored::unhex(digits)?
}

/// The kinds of names of conversations: given by a person, or a client's own session.
pub(crate) const NAME_KINDS: [&str; 2] = ["given", "session"];

/// Splits a name of the conversation index into its kind and the name; those of one word are our own.
pub(crate) fn split_key(key: &str) -> Option<(&str, &str)> {
    key.split_once(' ')
}

/// Returns the redacted form of a name in the conversation index.
pub(crate) fn redacted_key(key: &str) -> Option<String> {
    let (kind, name) = split_key(key)?;
    Some(format!("{kind} {}", redacted_name(name)))
}
