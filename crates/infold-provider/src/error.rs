use infold_wire::Trouble;
use infold_wire::trouble::{self, Refused};

use crate::Endpoint;

/// Why a call gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallError {
    /// What to do about it.
    pub trouble: Trouble,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What happened, where, and what the provider says; never a key.
    pub text: String,
    /// How many requests were made.
    pub requests: u32,
}

/// The most of a provider's message that is repeated.
const MOST_SAID: usize = 2000;

impl CallError {
    /// Something went wrong without an answer; `what` follows the provider's name.
    pub(crate) fn silent(trouble: Trouble, to: &Endpoint, url: &str, what: &str) -> CallError {
        let text = format!("{} ({url}) {what}", to.name);
        CallError {
            trouble,
            status: None,
            text: redacted(to, &text),
            requests: 1,
        }
    }

    /// The provider answered with an error, in its status or within its reply.
    pub(crate) fn answered(
        trouble: Trouble,
        to: &Endpoint,
        url: &str,
        status: u16,
        body: &[u8],
    ) -> CallError {
        // Before it is cut: part of a key is still part of a key.
        let said = trouble::message(body).map(|said| shortened(&redacted(to, &said)));
        let said = said.unwrap_or_else(|| "without a word".to_owned());
        let what = match status {
            200..=299 => format!("failed while it answered: {said}"),
            _ => format!("answered {status}: {said}"),
        };
        CallError {
            status: Some(status),
            ..CallError::silent(trouble, to, url, &what)
        }
    }

    /// A local failure, or one that no waiting cures.
    pub(crate) fn refused(refused: Refused, to: &Endpoint, url: &str, what: &str) -> CallError {
        CallError::silent(Trouble::Refused(refused), to, url, what)
    }
}

/// One line, not too long.
fn shortened(said: &str) -> String {
    let line: Vec<&str> = said.split_whitespace().collect();
    let mut line = line.join(" ");
    if line.len() > MOST_SAID {
        let end = (0..=MOST_SAID).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

/// Takes keys out of a text: the provider's own, and whatever looks like one.
///
/// Providers repeat the key they refuse, whole or with its middle starred; gateways repeat
/// headers and addresses.
pub fn redacted(to: &Endpoint, text: &str) -> String {
    const INSTEAD: &str = "(key)";
    /// A shorter one is no secret, and replacing it would leave no text.
    const SHORTEST: usize = 4;
    let mut text = text.to_owned();
    for secret in to.secrets().filter(|secret| secret.len() >= SHORTEST) {
        text = text.replace(&*secret, INSTEAD);
        text = without_start(&text, &secret, SHORTEST, INSTEAD);
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
            clean.push_str(if secret { INSTEAD } else { piece });
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

/// Replaces the start of a secret where a text was cut within it.
fn without_start(text: &str, secret: &str, shortest: usize, instead: &str) -> String {
    let mut parts = text.split('…');
    let mut clean = String::with_capacity(text.len());
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        let starts = secret.char_indices().map(|(end, _)| &secret[..end]).rev();
        let cut = starts.take_while(|start| start.len() >= shortest);
        match { cut }.find_map(|start| part.strip_suffix(start)) {
            Some(rest) => clean.extend([rest, instead]),
            None => clean.push_str(part),
        }
        clean.push('…');
    }
    clean + last
}

/// Says whether what follows in a header is a key.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Says whether a word is none of a language: "Basic access" is no key.
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
        let clean = |text| redacted(&to, text);
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
            redacted(
                &to,
                "canary-pass%21 canary-pass! canary-query 2024-10-21 me host"
            ),
            "(key) (key) (key) 2024-10-21 me host"
        );
    }

    #[test]
    fn a_key_too_short_to_be_one_leaves_the_text_alone() {
        let to = Endpoint::new("x", "openai", None, Some(Secret::new("x".to_owned()))).unwrap();
        assert_eq!(redacted(&to, "next"), "next");
    }

    #[test]
    fn a_long_message_is_one_short_line() {
        let said = format!("one\n  two {}", "é".repeat(5000));
        let line = shortened(&said);
        assert!(line.starts_with("one two é") && line.len() < MOST_SAID + 4);
    }
}
