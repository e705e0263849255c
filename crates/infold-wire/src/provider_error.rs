//! Classifies the errors of providers by the reaction to them, and writes errors as a provider would.

mod body;
mod client_error;
mod overflow;
mod retry_delay;
mod unexplained;
mod unknown_member;
mod unquoted;

use std::sync::LazyLock;
use std::time::Duration;

use body::ErrorBody;
pub use client_error::{ClientError, write_client_error};
pub use unexplained::RequestSize;

use crate::Wire;
use crate::phrase_list::{self, PhraseList};

/// An error of a provider, classified by the reaction to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderError {
    /// The provider is busy: ask again later.
    Busy {
        /// The delay that it asks for.
        after: Option<Duration>,
    },
    /// The request is too long for the model: fold harder and ask again.
    TooLong {
        /// The request's tokens, as the provider counts.
        tokens: Option<u64>,
        /// The most tokens.
        limit: Option<u64>,
    },
    /// The request would fit with a shorter reply: ask for a shorter one.
    ReplyTooLong {
        /// The tokens of the request and the reply, as the provider counts.
        tokens: u64,
        /// The most tokens.
        limit: u64,
    },
    /// The request has too many bytes: fold harder and ask again.
    TooLarge,
    /// The roles of user and assistant must alternate.
    AlternateRoles,
    /// Thinking was signed behind other messages than now: leave it out, and ask again.
    BoundThinking,
    /// Messages have members that the provider does not know: leave out those that [`crate::request::plain_chat`]
    /// leaves out, and send the request again.
    PlainMessages,
    /// A person must act.
    Refused(RefusalCause),
    /// The provider gives no reason, or only a web server does: see [`ProviderError::explain`].
    Unexplained {
        /// The status that came, 200 for a stream in which nothing came.
        status: u16,
    },
    /// The connection or the reply broke: ask again.
    Broken,
}

/// The thing that a person must act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// The key is missing, wrong, or may not do this.
    Key,
    /// The model does not exist, or not for this key.
    Model,
    /// The account has no credit, or the plan does not allow the request.
    Quota,
    /// The address is wrong: it is not that of a model API.
    Address,
    /// The request itself is refused.
    Request,
}

/// Classifies an error by its status and its body.
///
/// An error inside a stream has the status of the stream, 200; then only its body
/// tells. `retry_after` is the delay that the headers ask for.
pub fn classify(status: u16, retry_after: Option<Duration>, body: &[u8]) -> ProviderError {
    let body = ErrorBody::read(body);
    let status = match status {
        200..=299 => body.status.unwrap_or(status),
        _ => status,
    };
    // Certain phrases take precedence over the status: services send the same words with different numbers, and a full
    // account even as "too many requests".
    if body.is_html() {
        return classify_by_status(status, retry_after, &body);
    }
    if unknown_member::is_reported(status, &body) {
        return ProviderError::PlainMessages;
    }
    if status == 402 || body.has_code(&QUOTA_CODES) || body.says_any(&QUOTA_PHRASES) {
        return ProviderError::Refused(RefusalCause::Quota);
    }
    // Asking again does not make a machine larger.
    if body.says("requires more system memory") {
        return ProviderError::Refused(RefusalCause::Request);
    }
    // The templates of local models raise this as an error of the server.
    if body.says("alternat") && body.says_any(&["role", "assistant", "between user"]) {
        return ProviderError::AlternateRoles;
    }
    if body.says("block is bound to a different conversation") {
        return ProviderError::BoundThinking;
    }
    let overflow = overflow::classify(status, &body, is_busy(status, &body));
    overflow.unwrap_or_else(|| classify_by_status(status, retry_after, &body))
}

/// Returns the provider's own message in an error body, if it has one.
pub fn error_message(body: &[u8]) -> Option<String> {
    let body = ErrorBody::read(body);
    (!body.is_html() && !body.message.is_empty()).then_some(body.message)
}

/// Returns whether an error names the parameter for the length of the reply, on any wire.
pub fn mentions_reply_length(text: &str) -> bool {
    let names = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "num_predict",
    ];
    names.iter().any(|name| text.contains(name))
}

/// Returns whether a client of this wire recognises an overflow by this error body, so
/// that it need not be rephrased.
///
/// Errors about the reply's length are never rephrased: clients that know them shorten the reply, and a size that
/// includes both would mislead the others.
pub fn reports_overflow(wire: Wire, body: &[u8]) -> bool {
    let body = ErrorBody::read(body);
    let is_known = match wire {
        Wire::Anthropic => body.states_any(&["prompt is too long"]),
        Wire::Chat => {
            body.has_code(&["context_length_exceeded"])
                || body.states_any(&["maximum context length"])
        }
        Wire::Responses => body.has_code(&["context_length_exceeded"]),
        Wire::Gemini => body.states_any(&["exceeds the maximum number of tokens allowed"]),
        Wire::Ollama => true,
    };
    is_known || body.has_code(&["request_too_large"]) || overflow::counts_reply(&body)
}

/// Returns whether a provider is overloaded, as opposed to limiting the client's requests.
pub fn is_overloaded(status: u16, body: &[u8]) -> bool {
    let codes = ["overloaded_error", "overloaded", "engine_overloaded"];
    let body = ErrorBody::read(body);
    matches!(status, 503 | 529) || body.has_code(&codes) || body.has_code(&["unavailable"])
}

static QUOTA_CODES: PhraseList = LazyLock::new(|| phrases("quota codes"));
static QUOTA_PHRASES: PhraseList = LazyLock::new(|| phrases("quota phrases"));
static BUSY_CODES: PhraseList = LazyLock::new(|| phrases("busy codes"));
static KEY_CODES: PhraseList = LazyLock::new(|| phrases("key codes"));
static KEY_PHRASES: PhraseList = LazyLock::new(|| phrases("key phrases"));
static MODEL_PHRASES: PhraseList = LazyLock::new(|| phrases("model phrases"));
static ADDRESS_PHRASES: PhraseList = LazyLock::new(|| phrases("address phrases"));

fn phrases(name: &str) -> Vec<&'static str> {
    phrase_list::phrases(include_str!("provider_error/phrases.txt"), name)
}

/// Returns whether the provider asks the client to come back later.
fn is_busy(status: u16, body: &ErrorBody) -> bool {
    match status {
        408 | 409 | 425 | 429 => true,
        // Not implemented: this is no model API.
        501 => false,
        500.. => true,
        401 | 403 | 404 => false,
        _ => body.has_code(&BUSY_CODES) || body.says_any(&["per minute", "please wait"]),
    }
}

/// Classifies an error whose body has no certain sign.
fn classify_by_status(
    status: u16,
    retry_after: Option<Duration>,
    body: &ErrorBody,
) -> ProviderError {
    if is_busy(status, body) {
        let after = retry_after.or_else(|| retry_delay::find(body));
        return ProviderError::Busy { after };
    }
    let is_key =
        || matches!(status, 401 | 403) || body.has_code(&KEY_CODES) || body.says_any(&KEY_PHRASES);
    let is_address = || {
        let is_elsewhere = body.is_html() || body.says_any(&ADDRESS_PHRASES);
        is_elsewhere || matches!(status, 300..=399 | 405 | 410 | 501)
    };
    ProviderError::Refused(match status {
        _ if body.has_code(&["model_not_found"]) => RefusalCause::Model,
        _ if is_key() => RefusalCause::Key,
        413 => return ProviderError::Unexplained { status },
        _ if is_address() => RefusalCause::Address,
        404 if body.mentions("model") => RefusalCause::Model,
        404 => RefusalCause::Address,
        _ if body.says_any(&MODEL_PHRASES) => RefusalCause::Model,
        // The reply had begun, and ended in unknown words.
        200..=299 => return ProviderError::Broken,
        _ => RefusalCause::Request,
    })
}
