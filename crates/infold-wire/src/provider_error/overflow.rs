//! Recognises errors about the length of a request, and reads the sizes they name.

use std::sync::LazyLock;

use super::body::{ErrorBody, number};
use super::{ProviderError, phrases};
use crate::phrase_list::PhraseList;

static OVERFLOW_CODES: PhraseList = LazyLock::new(|| phrases("overflow codes"));
static OVERFLOW_PHRASES: PhraseList = LazyLock::new(|| phrases("overflow phrases"));
static OTHER_CODES: PhraseList = LazyLock::new(|| phrases("other codes"));
static SIZE_PHRASES: PhraseList = LazyLock::new(|| phrases("size phrases"));
static BEFORE_TOKENS: PhraseList = LazyLock::new(|| phrases("before tokens"));
static BEFORE_LIMIT: PhraseList = LazyLock::new(|| phrases("before limit"));

/// The lowest limit of conversation texts; lower ones are for names, ids and keys, which folding does not shorten.
const MIN_TEXT_LIMIT_CHARS: u64 = 100_000;

/// Classifies an error about the length of the request; `is_busy` says whether it may be a rate limit.
pub(super) fn classify(status: u16, body: &ErrorBody, is_busy: bool) -> Option<ProviderError> {
    if body.is_empty() {
        return matches!(status, 400 | 413).then_some(ProviderError::Unexplained { status });
    }
    // A rate limit that is smaller than this one request. With "too many requests" it is a rate limit like any other;
    // otherwise only a shorter request helps. Its limit is not the model's, so the size is left out.
    if status != 429 && body.states_any(&["request too large for"]) {
        let (tokens, limit) = (body.number_after("requested"), body.number_after("limit"));
        if tokens > limit && limit.is_some() {
            return Some(ProviderError::TooLong {
                tokens: None,
                limit,
            });
        }
    }
    if body.has_code(&OVERFLOW_CODES) {
        return Some(with_numbers(status, body));
    }
    // Rate limits and failures mention tokens, limits and length too, and an error about a
    // message may quote it.
    if is_busy || body.has_code(&OTHER_CODES) {
        return None;
    }
    if body.has_code(&["request_too_large"]) || body.states_any(&SIZE_PHRASES) || is_long_text(body)
    {
        return Some(ProviderError::TooLarge);
    }
    let states = !is_about_output(body) && body.states_any(&OVERFLOW_PHRASES);
    if states || status == 413 && body.says("token") {
        return Some(with_numbers(status, body));
    }
    None
}

/// Returns whether a text of the conversation is too long, and not a name or an id.
fn is_long_text(body: &ErrorBody) -> bool {
    let limit = body
        .stated_after("string too long")
        .and_then(|rest| rest.split_once("maximum length"))
        .and_then(|(_, rest)| number(rest));
    limit.is_some_and(|limit| limit >= MIN_TEXT_LIMIT_CHARS)
}

/// Returns whether only the requested reply length is wrong, even for a short request.
fn is_about_output(body: &ErrorBody) -> bool {
    body.says_any(&[
        "maximum allowed number of output tokens",
        "completion tokens, whereas you provided",
        "maxoutputtokens",
    ])
}

/// Returns whether the requested reply length is part of the overflow.
pub(super) fn counts_reply(body: &ErrorBody) -> bool {
    read_sizes(body).is_some()
}

/// Returns an overflow with the sizes that the body names.
fn with_numbers(status: u16, body: &ErrorBody) -> ProviderError {
    let find = |words: &[&str]| words.iter().find_map(|words| body.number_after(words));
    let sizes = read_sizes(body);
    let limit = body.limit.or(sizes.as_ref().and_then(|sizes| sizes.limit));
    let limit = limit.or_else(|| find(&BEFORE_LIMIT));
    let mut tokens = body.tokens;
    if let Some(OverflowSizes { input, output, .. }) = sizes {
        let both = input.saturating_add(output);
        // A request that takes less than half of the window is not too long: the reply is.
        if let Some(limit) = limit.filter(|limit| input < limit / 2) {
            return ProviderError::ReplyTooLong {
                tokens: both,
                limit,
            };
        }
        tokens = tokens.or(Some(both));
    }
    // A rate limit or a failure is no evidence about the model: without a size, its limit is not learned.
    let is_certain = status != 429 && status < 500;
    let tokens = tokens
        .or_else(|| find(&BEFORE_TOKENS))
        .filter(|_| is_certain);
    ProviderError::TooLong { tokens, limit }
}

/// The sizes of the request and of the requested reply.
struct OverflowSizes {
    input: u64,
    output: u64,
    /// The most tokens, if the text has them.
    limit: Option<u64>,
}

fn read_sizes(body: &ErrorBody) -> Option<OverflowSizes> {
    // 199999 + 8192 > 200000
    if let Some(rest) = body.stated_after("exceed context limit:") {
        let (left, limit) = rest.split_once('>')?;
        let (input, output) = left.split_once('+')?;
        return Some(OverflowSizes {
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
    .find_map(|(input, output)| Some((body.number_after(input)?, body.number_after(output)?)))
    .or_else(|| {
        // you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion)
        let total = body.number_after("you requested")?;
        let (before, _) = body
            .stated_after("you requested")?
            .split_once(" in the completion")?;
        let output = number(before.rsplit([' ', '(']).next()?)?;
        Some((total.checked_sub(output)?, output))
    })?;
    Some(OverflowSizes {
        input,
        output,
        limit: None,
    })
}
