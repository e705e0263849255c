//! What a provider's error means: what to do about it. And errors of our own, as a provider says them.

mod complain;
mod doubt;
mod length;
mod own;
mod plain;
mod said;
mod wait;

use std::time::Duration;

pub use complain::{Complaint, complain};
pub use doubt::RequestSize;
use said::Said;

use crate::Wire;

/// An error of a provider, sorted by what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It has no time now: ask again later, not before this long.
    Busy {
        /// What it asks to wait.
        after: Option<Duration>,
    },
    /// The request is too long for the model: fold harder and ask again.
    TooLong {
        /// How many tokens it has, as the provider counts.
        tokens: Option<u64>,
        /// How many there may be.
        limit: Option<u64>,
    },
    /// The request would fit if it did not ask for so long a reply: ask for a shorter one.
    ReplyTooLong {
        /// How many tokens the request and the reply have, as the provider counts.
        tokens: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The request has too many bytes: fold harder and ask again.
    TooLarge,
    /// It wants the roles of user and assistant to alternate.
    Alternate,
    /// It refuses thinking that was signed behind other messages than now: leave it out, and ask again.
    Bound,
    /// It takes only plain messages: leave out members it does not know, and ask again.
    ///
    /// What to leave out is what [`crate::request::plain_chat`] leaves out.
    Plain,
    /// A person must act.
    Refused(Refused),
    /// Nothing is said, or only by a web server: see [`Trouble::explain`].
    Unexplained {
        /// The status that came, 200 for a stream in which nothing came.
        status: u16,
    },
    /// The connection or the reply broke: ask again.
    Broken,
}

/// What a person must act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key is missing, wrong, or may not do this.
    Key,
    /// There is no such model, or not for this key.
    Model,
    /// There is no money left, or the plan does not allow it.
    Quota,
    /// The address is wrong: nothing of that kind is there.
    Address,
    /// The request is refused as it is.
    Request,
}

/// Sorts an error by its status and what its body says.
///
/// An error inside a stream has the status of the stream, 200; then what it says
/// is all there is to go by. `retry_after` is what the headers ask to wait.
pub fn sort(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Trouble {
    let said = Said::read(body);
    let status = match status {
        200..=299 => said.status.unwrap_or(status),
        _ => status,
    };
    // What is sure comes first, whatever the status: services send the same words
    // with different numbers, and a full account even as "too many requests".
    if said.is_html() {
        return by_status(status, retry_after, &said);
    }
    if plain::is_meant(status, &said) {
        return Trouble::Plain;
    }
    if status == 402 || said.has_code(&QUOTA) || said.says_any(&NO_MONEY) {
        return Trouble::Refused(Refused::Quota);
    }
    // No patience makes a machine larger.
    if said.says("requires more system memory") {
        return Trouble::Refused(Refused::Request);
    }
    // The templates of local models raise this as an error of the server.
    if said.says("alternat") && said.says_any(&["role", "assistant", "between user"]) {
        return Trouble::Alternate;
    }
    if said.says("block is bound to a different conversation") {
        return Trouble::Bound;
    }
    let length = length::sort(status, &said, is_busy(status, &said));
    length.unwrap_or_else(|| by_status(status, retry_after, &said))
}

/// Returns what an error body says to a person: the provider's own message, if it has one.
pub fn message(body: &[u8]) -> Option<String> {
    let said = Said::read(body);
    (!said.is_html() && !said.message.is_empty()).then_some(said.message)
}

/// Says whether a client of this wire is told by these words that its request is too long, so
/// that nobody has to put it differently.
///
/// What is said of the reply's length is nowhere put differently: clients that know it shorten
/// the reply, and a size made up of both would mislead the others.
pub fn tells_overflow(wire: Wire, body: &[u8]) -> bool {
    let said = Said::read(body);
    let known = match wire {
        Wire::Anthropic => said.states_any(&["prompt is too long"]),
        Wire::Chat => {
            said.has_code(&["context_length_exceeded"])
                || said.states_any(&["maximum context length"])
        }
        Wire::Responses => said.has_code(&["context_length_exceeded"]),
        Wire::Gemini => said.states_any(&["exceeds the maximum number of tokens allowed"]),
        Wire::Ollama => true,
    };
    known || said.has_code(&["request_too_large"]) || length::counts_reply(&said)
}

/// Says whether a provider has more to do than it can, as opposed to more than the client may ask.
pub fn is_overloaded(status: u16, body: &[u8]) -> bool {
    const CODES: [&str; 4] = [
        "overloaded_error",
        "overloaded",
        "engine_overloaded",
        "unavailable",
    ];
    matches!(status, 503 | 529) || Said::read(body).has_code(&CODES)
}

/// Codes of an account that has nothing left.
const QUOTA: [&str; 5] = [
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit_reached",
    "billing_error",
    "insufficient_balance",
];

/// What is said where there is no such code. Gemini asks every hurried caller to
/// check plan and billing, so those words are not here.
const NO_MONEY: [&str; 5] = [
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "billing hard limit",
    "reached your specified api usage limits",
];

/// Codes that ask for patience.
const BUSY: [&str; 19] = [
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limited",
    "too_many_requests",
    "throttlingexception",
    "resource_exhausted",
    "overloaded_error",
    "overloaded",
    "engine_overloaded",
    "server_error",
    "internal_server_error",
    "internal_error",
    "internal",
    "api_error",
    "unavailable",
    "service_unavailable",
    "timeout_error",
    "deadline_exceeded",
    "aborted",
];

const KEY: [&str; 7] = [
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "unauthenticated",
    "unauthorized",
    "permission_error",
    "permission_denied",
];

/// What is said of a key where there is no such code.
const BAD_KEY: [&str; 2] = ["api key not valid", "api key expired"];

const NO_MODEL: [&str; 7] = [
    "model not exist",
    "not a valid model",
    "invalid model name",
    "unknown model",
    "no endpoints found for",
    "try pulling it first",
    "no models loaded",
];

/// What is said of an address that leads nowhere; LM Studio says it with a 200.
const NO_PLACE: [&str; 2] = ["invalid url (", "unexpected endpoint or method"];

/// Says whether the provider asks for patience.
fn is_busy(status: u16, said: &Said) -> bool {
    match status {
        408 | 409 | 425 | 429 => true,
        // Not implemented: whoever answers is no model API.
        501 => false,
        500.. => true,
        401 | 403 | 404 => false,
        _ => said.has_code(&BUSY) || said.says_any(&["per minute", "please wait"]),
    }
}

/// What is left to go by when the body has no words that we know.
fn by_status(status: u16, retry_after: Option<Duration>, said: &Said) -> Trouble {
    if is_busy(status, said) {
        let after = retry_after.or_else(|| wait::asked(said));
        return Trouble::Busy { after };
    }
    if said.has_code(&["model_not_found"]) {
        return Trouble::Refused(Refused::Model);
    }
    if matches!(status, 401 | 403) || said.has_code(&KEY) || said.says_any(&BAD_KEY) {
        return Trouble::Refused(Refused::Key);
    }
    if status == 413 {
        return Trouble::Unexplained { status };
    }
    let elsewhere = said.is_html() || said.says_any(&NO_PLACE);
    if elsewhere || matches!(status, 300..=399 | 405 | 410 | 501) {
        return Trouble::Refused(Refused::Address);
    }
    match status {
        404 if said.speaks_of("model") => Trouble::Refused(Refused::Model),
        404 => Trouble::Refused(Refused::Address),
        _ if said.says_any(&NO_MODEL) => Trouble::Refused(Refused::Model),
        // A reply that had begun, and ended in words we do not know.
        200..=299 => Trouble::Broken,
        _ => Trouble::Refused(Refused::Request),
    }
}
