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
const TOO_LARGE: [&str; 5] = [
    "request exceeds the maximum size",
    "request payload size exceeds",
    "request entity too large",
    "payload too large",
    "too many total text bytes",
];

/// A text of a conversation may have at least this many characters wherever there is a limit; what
/// must be shorter is a name, an id or a key, and folding does not shorten those.
const MIN_TEXT_LIMIT_CHARS: u64 = 100_000;

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
        return matches!(status, 400 | 413).then_some(Trouble::Unexplained { status });
    }
    // A rate limit that is smaller than this one request. As "too many requests" it is a rate
    // limit like any other; else no waiting helps, a shorter request does. Its limit is not the
    // model's: the size is left out so that nobody takes it for that.
    if status != 429 && said.states_any(&["request too large for"]) {
        let (tokens, limit) = (said.number_after("requested"), said.number_after("limit"));
        if tokens > limit && limit.is_some() {
            return Some(too_long(None, limit));
        }
    }
    if said.has_code(&CODES) {
        return Some(with_numbers(status, said));
    }
    // Rate limits and failures speak of tokens, limits and length too, and whoever says what is
    // wrong with a message may quote it.
    if busy || said.has_code(&ELSE) {
        return None;
    }
    if said.has_code(&["request_too_large"]) || said.states_any(&TOO_LARGE) || is_long_text(said) {
        return Some(Trouble::TooLarge);
    }
    let states = !is_about_output(said) && said.states_any(&TOO_LONG);
    if states || status == 413 && said.says("token") {
        return Some(with_numbers(status, said));
    }
    None
}

/// Says whether a text of the conversation is too long, and not a name or an id.
fn is_long_text(said: &Said) -> bool {
    let limit = said
        .stated_after("string too long")
        .and_then(|rest| rest.split_once("maximum length"))
        .and_then(|(_, rest)| number(rest));
    limit.is_some_and(|limit| limit >= MIN_TEXT_LIMIT_CHARS)
}

/// Says whether only the length asked of the reply is wrong, however short the request.
fn is_about_output(said: &Said) -> bool {
    said.says_any(&[
        "maximum allowed number of output tokens",
        "completion tokens, whereas you provided",
        "maxoutputtokens",
    ])
}

/// Says whether the length asked of the reply is part of what is too long.
pub(super) fn counts_reply(said: &Said) -> bool {
    parts(said).is_some()
}

/// An overflow with the numbers that are named.
fn with_numbers(status: u16, said: &Said) -> Trouble {
    let find = |words: &[&str]| words.iter().find_map(|words| said.number_after(words));
    let parts = parts(said);
    let limit = said.limit.or(parts.as_ref().and_then(|parts| parts.limit));
    let limit = limit.or_else(|| find(&LIMITS));
    let mut tokens = said.tokens;
    if let Some(Parts { input, output, .. }) = parts {
        let both = input.saturating_add(output);
        // A request that takes less than half of the window is not what is too long.
        if let Some(limit) = limit.filter(|limit| input < limit / 2) {
            return Trouble::ReplyTooLong {
                tokens: both,
                limit,
            };
        }
        tokens = tokens.or(Some(both));
    }
    // What comes as a rate limit or a failure says nothing certain of the model: without a size,
    // its limit is not remembered.
    let is_certain = status != 429 && status < 500;
    let tokens = tokens.or_else(|| find(&TOKENS)).filter(|_| is_certain);
    too_long(tokens, limit)
}

/// The request and the reply asked for, where they are told apart.
struct Parts {
    input: u64,
    output: u64,
    /// How many there may be, if that follows.
    limit: Option<u64>,
}

fn parts(said: &Said) -> Option<Parts> {
    // 199999 + 8192 > 200000
    if let Some(rest) = said.stated_after("exceed context limit:") {
        let (left, limit) = rest.split_once('>')?;
        let (input, output) = left.split_once('+')?;
        return Some(Parts {
            input: number(input)?,
            output: number(output)?,
            limit: number(limit),
        });
    }
    let (input, output) = [
        ("you passed", "requested"),
        ("your request has", "is too large:"),
        ("given:", "tokens and"),
    ]
    .into_iter()
    .find_map(|(input, output)| Some((said.number_after(input)?, said.number_after(output)?)))
    .or_else(|| {
        // you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion)
        let total = said.number_after("you requested")?;
        let (before, _) = said
            .stated_after("you requested")?
            .split_once(" in the completion")?;
        let output = number(before.rsplit([' ', '(']).next()?)?;
        Some((total.checked_sub(output)?, output))
    })?;
    Some(Parts {
        input,
        output,
        limit: None,
    })
}

fn too_long(tokens: Option<u64>, limit: Option<u64>) -> Trouble {
    Trouble::TooLong { tokens, limit }
}
