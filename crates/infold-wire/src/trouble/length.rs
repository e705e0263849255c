use super::Trouble;
use super::said::{Said, number};

/// Codes that say it outright.
const CODES: [&str; 5] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "tokens_limit_reached",
];

/// Codes that say outright that it is something else.
const ELSE: [&str; 9] = [
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "moderation_blocked",
    "invalid_prompt",
    "unknown_parameter",
    "unsupported_parameter",
    "missing_required_parameter",
];

/// What is said of too many tokens, in lower case.
const TOO_LONG: [&str; 27] = [
    "maximum context length",
    "model's context length",
    "context length exceeded",
    "exceeds the context length",
    "exceeds the model's context",
    "exceeds the context window",
    "exceed the context window",
    "context window exceeds limit",
    "context size has been exceeded",
    "available context size",
    "exceed context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum number of tokens allowed",
    "greater than the context length",
    "cannot truncate prompt with n_keep",
    "trying to keep the first",
    "maximum prompt length is",
    "reduce the length of the messages",
    "reduce the length of your prompt",
    "exceeded model token limit",
    "too many tokens: size limit exceeded",
    "`max_new_tokens` must be <=",
    "prompt token count",
    "input token count",
    "too many input tokens",
];

/// What is said of too many bytes.
const TOO_LARGE: [&str; 6] = [
    "request exceeds the maximum size",
    "request payload size exceeds",
    "request entity too large",
    "payload too large",
    "too many total text bytes",
    "string too long",
];

/// Words that the number of tokens sent follows.
const TOKENS: [&str; 11] = [
    "you requested",
    "resulted in",
    "request contains",
    "prompt is too long:",
    "input token count (",
    "prompt token count of",
    "prompt contains",
    "n_keep:",
    "n_keep (",
    "request (",
    "keep the first",
];

/// Words that the number of tokens allowed follows.
const LIMITS: [&str; 17] = [
    "tokens >",
    "maximum context length is",
    "model's context length is",
    "maximum prompt length is",
    "maximum number of tokens allowed (",
    "context size (",
    "n_ctx:",
    "n_ctx (",
    "too large for model with",
    "exceeded model token limit:",
    "exceeds the limit of",
    "the limit for this model is",
    "max size:",
    "must be <=",
    "maximum is",
    "context window of",
    "context length of",
];

/// Says whether an error is about the length of the request; `busy` is what else it could be.
pub(super) fn sort(status: u16, said: &Said, busy: bool) -> Option<Trouble> {
    if said.is_empty() {
        // Some services say nothing at all, and length is what they are known to refuse so.
        return match status {
            400 => Some(too_long(None, None)),
            413 => Some(Trouble::TooLarge),
            _ => None,
        };
    }
    // A rate limit that is smaller than this one request: no waiting helps, a shorter
    // request does. Without its numbers, or with less asked than allowed, it is a
    // rate limit like any other.
    if said.states_any(&["request too large for"]) {
        let (tokens, limit) = (said.number_after("requested"), said.number_after("limit"));
        if tokens > limit && limit.is_some() {
            return Some(too_long(tokens, limit));
        }
    }
    if said.has_code(&CODES) {
        return Some(with_numbers(said));
    }
    // Rate limits and failures speak of tokens, limits and length too, and whoever says what is
    // wrong with a message may quote it.
    if busy || said.has_code(&ELSE) {
        return None;
    }
    if said.has_code(&["request_too_large"]) || said.states_any(&TOO_LARGE) {
        return Some(Trouble::TooLarge);
    }
    (!is_about_output(said) && said.states_any(&TOO_LONG))
        .then(|| with_numbers(said))
        .or_else(|| (status == 413 && said.says("token")).then(|| with_numbers(said)))
}

/// Says whether only the length asked of the reply is wrong, however short the request.
fn is_about_output(said: &Said) -> bool {
    said.says_any(&[
        "maximum allowed number of output tokens",
        "completion tokens, whereas you provided",
        "maxoutputtokens",
    ])
}

fn with_numbers(said: &Said) -> Trouble {
    let sum = sum(said);
    let find = |words: &[&str]| words.iter().find_map(|words| said.number_after(words));
    let tokens = said.tokens.or(sum.map(|sum| sum.0));
    let limit = said.limit.or(sum.and_then(|sum| sum.1));
    too_long(
        tokens.or_else(|| find(&TOKENS)),
        limit.or_else(|| find(&LIMITS)),
    )
}

/// Where the request and the reply asked for are told apart: both together, and the limit if it follows.
fn sum(said: &Said) -> Option<(u64, Option<u64>)> {
    // 199999 + 8192 > 200000
    if let Some(rest) = said.stated_after("exceed context limit:") {
        let (left, limit) = rest.split_once('>')?;
        let (input, output) = left.split_once('+')?;
        let sum = number(input)?.checked_add(number(output)?)?;
        return Some((sum, number(limit)));
    }
    let (input, output) = [
        ("you passed", "requested"),
        ("your request has", "is too large:"),
        ("given:", "tokens and"),
    ]
    .into_iter()
    .find_map(|(input, output)| Some((said.number_after(input)?, said.number_after(output)?)))?;
    Some((input.checked_add(output)?, None))
}

fn too_long(tokens: Option<u64>, limit: Option<u64>) -> Trouble {
    Trouble::TooLong { tokens, limit }
}
