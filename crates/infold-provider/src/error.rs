//! Errors of calls, with texts that contain no key.

use std::borrow::Cow;

use infold_wire::ProviderError;
use infold_wire::provider_error::{self, RefusalCause};

use crate::Endpoint;

/// The reason that a call gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallError {
    /// The kind of error, which determines the reaction.
    pub trouble: ProviderError,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The description of the error, with the provider's message; never a key.
    pub text: String,
    /// The number of requests that were made.
    pub requests: u32,
}

/// The bytes of a provider's message that are repeated.
const MAX_MESSAGE_BYTES: usize = 2000;

impl CallError {
    /// Returns the error of a call without a response; `what` follows the provider's name.
    pub(crate) fn silent(
        trouble: ProviderError,
        to: &Endpoint,
        url: &str,
        what: &str,
    ) -> CallError {
        let text = format!("{} ({url}) {what}", to.name);
        CallError {
            trouble,
            status: None,
            text: redact_keys(to, &text),
            requests: 1,
        }
    }

    /// Returns the error of a provider that answered with one, in its status or within its reply.
    pub(crate) fn answered(
        trouble: ProviderError,
        to: &Endpoint,
        url: &str,
        status: u16,
        body: &[u8],
    ) -> CallError {
        // Keys are taken out before the text is cut: part of a key would not be recognised.
        let message =
            provider_error::error_message(body).map(|text| shorten(&redact_keys(to, &text)));
        let message = message.unwrap_or_else(|| "without a message".to_owned());
        let what = match status {
            200..=299 => format!("failed while it answered: {message}"),
            _ => format!("answered {status}: {message}"),
        };
        CallError {
            status: Some(status),
            ..CallError::silent(trouble, to, url, &what)
        }
    }

    /// Returns a local failure, or one that no retry cures.
    pub(crate) fn refused(
        refused: RefusalCause,
        to: &Endpoint,
        url: &str,
        what: &str,
    ) -> CallError {
        CallError::silent(ProviderError::Refused(refused), to, url, what)
    }
}

/// Returns a text as one line, cut if it is long.
fn shorten(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.len() > MAX_MESSAGE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_MESSAGE_BYTES));
        line.push('…');
    }
    line
}

/// Takes keys out of a text: the provider's own, and all that looks like one.
///
/// Providers repeat the key they refuse, whole or with its middle starred; gateways repeat
/// headers and addresses.
pub fn redact_keys(to: &Endpoint, text: &str) -> String {
    let mut text = text.to_owned();
    let is_secret = |secret: &Cow<'_, str>| secret.len() >= MIN_SECRET_BYTES;
    for secret in to.secrets().filter(is_secret) {
        text = text.replace(&*secret, PLACEHOLDER);
        text = redact_cut_secret(&text, &secret);
    }
    let part_of_key = |c: char| c.is_ascii_alphanumeric() || "-_*.…+/=".contains(c);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut last = "";
    while let Some(start) = rest.find(part_of_key) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c| !part_of_key(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        clean.push_str(before);
        let credentials = is_scheme(last) && before == " " && is_mixed(word);
        for piece in word.split_inclusive(['+', '/', '=']) {
            let (piece, sign) = piece.split_at(piece.trim_end_matches(['+', '/', '=']).len());
            let secret = credentials || looks_secret(piece);
            clean.push_str(if secret { PLACEHOLDER } else { piece });
            clean.push_str(if credentials { "" } else { sign });
            if credentials {
                break;
            }
        }
        last = word;
        rest = after;
    }
    clean.push_str(rest);
    clean
}

const PLACEHOLDER: &str = "(key)";

/// A shorter text is no secret, and replacing it would leave no text.
const MIN_SECRET_BYTES: usize = 4;

/// Replaces the start of a secret where a text was cut within it.
fn redact_cut_secret(text: &str, secret: &str) -> String {
    let mut parts = text.split('…');
    let mut clean = String::with_capacity(text.len());
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        let starts = secret.char_indices().map(|(end, _)| &secret[..end]).rev();
        let cut = starts.take_while(|start| start.len() >= MIN_SECRET_BYTES);
        match { cut }.find_map(|start| part.strip_suffix(start)) {
            Some(rest) => clean.extend([rest, PLACEHOLDER]),
            None => clean.push_str(part),
        }
        clean.push('…');
    }
    clean + last
}

/// Says whether a word announces a key in a header.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Says whether a word is unlike one of a language: "Basic access" has no key.
fn is_mixed(word: &str) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    word.len() >= 8
        && inner.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
        && word.contains(|c: char| c.is_ascii_lowercase())
}

fn looks_secret(word: &str) -> bool {
    let long = |start: &str| word.starts_with(start) && word.len() >= start.len() + 4;
    ["sk-", "sk_", "AIza", "gsk_", "xai-", "hf_", "pplx-"]
        .into_iter()
        .any(long)
        || word.contains("***")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    #[test]
    fn keys_are_taken_out_and_words_are_left() {
        let key = Secret::new("canary+key/1==".to_owned());
        let to = Endpoint::new("x", "openai", None, Some(key)).unwrap();
        let clean = |text| redact_keys(&to, text);
        assert_eq!(
            clean("Bearer canary+key/1==, canary+key/1=="),
            "Bearer (key), (key)"
        );
        assert_eq!(
            clean("provided: sk-proj-*******wxyz. You"),
            "provided: (key) You"
        );
        assert_eq!(clean("AIzaSyD-abc_123"), "(key)");
        assert_eq!(clean("key=abcd***wxyz!"), "key=(key)!");
        assert_eq!(clean("begins `xx canary+k…`"), "begins `xx (key)…`");
        assert_eq!(clean("a can… of it …"), "a can… of it …");
        assert_eq!(
            clean("sent Authorization: Basic dXNlcjpw+c3Mv/Zw== to it"),
            "sent Authorization: Basic (key) to it"
        );
        assert_eq!(clean("/v1?key=sk-abcdefgh&x=1"), "/v1?key=(key)&x=1");
        for plain in [
            "Basic authentication is wanted",
            "Authorization: Bearer YOUR_KEY",
        ] {
            assert_eq!(clean(plain), plain);
        }
        let plain = "the model `gpt-4.1-mini` (risk-free, ask-me, sk-) é… costs 3*4";
        assert_eq!(clean(plain), plain);
    }

    #[test]
    fn what_an_address_holds_is_taken_out_too() {
        let base = "https://me:canary-pass%21@host/v1?api_key=canary-query&api-version=2024-10-21";
        let to = Endpoint::new("x", "openai", Some(base), None).unwrap();
        assert_eq!(
            redact_keys(
                &to,
                "canary-pass%21 canary-pass! canary-query 2024-10-21 me host"
            ),
            "(key) (key) (key) 2024-10-21 me host"
        );
    }

    #[test]
    fn a_key_too_short_to_be_one_leaves_the_text_alone() {
        let to = Endpoint::new("x", "openai", None, Some(Secret::new("x".to_owned()))).unwrap();
        assert_eq!(redact_keys(&to, "next"), "next");
    }

    #[test]
    fn a_long_message_is_one_short_line() {
        let said = format!("one\n  two {}", "é".repeat(5000));
        let line = shorten(&said);
        assert!(line.starts_with("one two é") && line.len() < MAX_MESSAGE_BYTES + 4);
    }
}
