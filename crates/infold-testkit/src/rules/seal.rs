//! Signatures of the scripted provider.

use crate::hash;

/// Returns the signature that the scripted provider issues for `text`.
///
/// It is a digest, so that a server recognises its signatures without storing them: a signature that does not
/// match the text beside it was never issued with it.
pub fn seal(text: &str) -> String {
    let digest = hash(format!("sealed by infold-testkit: {text}").as_bytes());
    format!("c2VhbGVk{digest:016x}")
}

/// Whether this signature was issued for `text`.
pub(super) fn is_sealed(text: &str, signature: &str) -> bool {
    seal(text) == signature
}
