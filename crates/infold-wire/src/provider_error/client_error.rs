//! Writes errors of our own as the provider of a wire would.

use crate::{Wire, quote};

/// An error for a client that comes from the proxy, not from a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The request does not fit into the model's window, even after all folds.
    TooLong {
        /// The request's tokens, if the provider reported them.
        tokens: Option<u64>,
        /// The most tokens, if the provider reported them.
        limit: Option<u64>,
    },
    /// The request has too many bytes.
    TooLarge {
        /// The request's bytes, as far as they were read.
        bytes: u64,
        /// The most bytes.
        limit: u64,
    },
    /// The request is wrong.
    Request(String),
    /// The key is missing or wrong.
    Key(String),
    /// The client may not do this.
    Forbidden(String),
    /// The resource does not exist.
    NotFound(String),
    /// There are too many requests now.
    Busy(String),
    /// The provider is overloaded.
    Overloaded(String),
    /// The provider cannot be reached.
    Unreachable(String),
    /// The provider took too long.
    Late(String),
    /// The proxy failed.
    Failed(String),
}

/// Returns status, content type and body of an error, in the form of this wire.
///
/// `stream` says whether a stream was requested: on Responses a request that is too long is accepted, and fails as a
/// stream.
pub fn write_client_error(
    wire: Wire,
    stream: bool,
    error: &ClientError,
) -> (u16, &'static str, Vec<u8>) {
    let (status, codes) = error.codes();
    let [openai, code, anthropic, gemini] = codes;
    let message = quote(&error.message(wire));
    let body = match wire {
        Wire::Responses if stream && matches!(error, ClientError::TooLong { .. }) => {
            return (200, "text/event-stream", failed_response(&message));
        }
        Wire::Chat | Wire::Responses => {
            let code = if code == "null" {
                code.to_owned()
            } else {
                quote(code)
            };
            format!(
                r#"{{"error":{{"message":{message},"type":"{openai}","param":null,"code":{code}}}}}"#
            )
        }
        Wire::Anthropic => {
            format!(r#"{{"type":"error","error":{{"type":"{anthropic}","message":{message}}}}}"#)
        }
        Wire::Gemini => {
            format!(r#"{{"error":{{"code":{status},"message":{message},"status":"{gemini}"}}}}"#)
        }
        Wire::Ollama => format!(r#"{{"error":{message}}}"#),
    };
    (status, "application/json", body.into_bytes())
}

impl ClientError {
    /// Returns the HTTP status, OpenAI's type and code, Anthropic's type and Gemini's status.
    fn codes(&self) -> (u16, [&'static str; 4]) {
        let (status, codes) = match self {
            ClientError::TooLong { .. } => (
                400,
                "invalid_request_error context_length_exceeded invalid_request_error INVALID_ARGUMENT",
            ),
            ClientError::Request(_) => (
                400,
                "invalid_request_error null invalid_request_error INVALID_ARGUMENT",
            ),
            ClientError::Key(_) => (
                401,
                "invalid_request_error invalid_api_key authentication_error UNAUTHENTICATED",
            ),
            ClientError::Forbidden(_) => (
                403,
                "permission_error permission_denied permission_error PERMISSION_DENIED",
            ),
            ClientError::NotFound(_) => {
                (404, "invalid_request_error null not_found_error NOT_FOUND")
            }
            ClientError::TooLarge { .. } => (
                413,
                "invalid_request_error request_too_large request_too_large INVALID_ARGUMENT",
            ),
            ClientError::Busy(_) => (
                429,
                "rate_limit_error rate_limit_exceeded rate_limit_error RESOURCE_EXHAUSTED",
            ),
            ClientError::Failed(_) => (500, "server_error null api_error INTERNAL"),
            ClientError::Unreachable(_) => (502, "server_error null api_error UNAVAILABLE"),
            ClientError::Late(_) => (504, "server_error null timeout_error DEADLINE_EXCEEDED"),
            ClientError::Overloaded(_) => {
                (529, "server_error overloaded overloaded_error UNAVAILABLE")
            }
        };
        let mut codes = codes.split(' ');
        (status, [(); 4].map(|()| codes.next().unwrap_or("null")))
    }

    /// Clients recognise by these words that a request is too long, and look for the numbers in them.
    fn message(&self, wire: Wire) -> String {
        let (tokens, limit) = match self {
            ClientError::TooLong {
                tokens: Some(tokens),
                limit: Some(limit),
            } => (tokens, limit),
            // Without known sizes, none are made up.
            ClientError::TooLong { .. } => return overflow_without_sizes(wire).to_owned(),
            ClientError::TooLarge { bytes, limit } => {
                return format!("request exceeds the maximum size: {bytes} bytes > {limit} bytes");
            }
            ClientError::Request(message)
            | ClientError::Key(message)
            | ClientError::Forbidden(message)
            | ClientError::NotFound(message)
            | ClientError::Busy(message)
            | ClientError::Overloaded(message)
            | ClientError::Unreachable(message)
            | ClientError::Late(message)
            | ClientError::Failed(message) => return message.clone(),
        };
        match wire {
            Wire::Anthropic => format!("prompt is too long: {tokens} tokens > {limit} maximum"),
            Wire::Gemini => format!(
                "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
            ),
            Wire::Responses => format!(
                "Your input exceeds the context window of this model: you requested {tokens} tokens, and the limit for this model is {limit}. Please adjust your input and try again."
            ),
            Wire::Chat | Wire::Ollama => format!(
                "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens. Please reduce the length of the messages."
            ),
        }
    }
}

/// Returns the words by which a client of this wire recognises an overflow without sizes.
fn overflow_without_sizes(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "prompt is too long",
        Wire::Gemini => "The input token count exceeds the maximum number of tokens allowed.",
        Wire::Responses => {
            "Your input exceeds the context window of this model. Please adjust your input and try again."
        }
        Wire::Chat | Wire::Ollama => {
            "This model's maximum context length is exceeded. Please reduce the length of the messages."
        }
    }
}

/// Returns the stream of a response that failed because its input is too long.
fn failed_response(message: &str) -> Vec<u8> {
    let error = format!(r#"{{"code":"context_length_exceeded","message":{message}}}"#);
    let response = |status: &str, error: &str| {
        format!(
            r#"{{"id":"resp_infold","object":"response","created_at":0,"status":"{status}","error":{error},"incomplete_details":null,"output":[],"usage":null}}"#
        )
    };
    let event = |number: u32, kind: &str, response: String| {
        format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},\"response\":{response}}}\n\n"
        )
    };
    let mut stream = event(0, "response.created", response("in_progress", "null"));
    stream.push_str(&event(1, "response.failed", response("failed", &error)));
    stream.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_error::{ProviderError, RefusalCause, classify};
    use crate::{Delivery, Json, ReplyError, ReplyReader};

    fn sorted(wire: Wire, what: &ClientError) -> ProviderError {
        let (status, kind, body) = write_client_error(wire, false, what);
        assert_eq!(kind, "application/json");
        Json::parse(&body).expect("an error body is JSON");
        classify(status, None, &body)
    }

    #[test]
    fn what_we_say_is_understood_as_what_it_is() {
        let sorts = |what: ClientError, trouble: ProviderError| {
            for wire in Wire::ALL {
                assert_eq!(sorted(wire, &what), trouble, "{wire}: {what:?}");
            }
        };
        for sizes in [(Some(213_462), Some(200_000)), (None, None)] {
            let (tokens, limit) = sizes;
            let long = ProviderError::TooLong { tokens, limit };
            sorts(ClientError::TooLong { tokens, limit }, long);
        }
        let (bytes, limit) = (99_999_999, 200_000);
        sorts(
            ClientError::TooLarge { bytes, limit },
            ProviderError::TooLarge,
        );
        let text = || "say \"why\"\n".to_owned();
        let busy = || ProviderError::Busy { after: None };
        sorts(ClientError::Busy(text()), busy());
        sorts(ClientError::Overloaded(text()), busy());
        sorts(ClientError::Unreachable(text()), busy());
        sorts(ClientError::Late(text()), busy());
        sorts(ClientError::Failed(text()), busy());
        sorts(
            ClientError::Key(text()),
            ProviderError::Refused(RefusalCause::Key),
        );
        sorts(
            ClientError::Forbidden(text()),
            ProviderError::Refused(RefusalCause::Key),
        );
        let request = ProviderError::Refused(RefusalCause::Request);
        sorts(ClientError::Request(text()), request);
        let address = ProviderError::Refused(RefusalCause::Address);
        sorts(ClientError::NotFound(text()), address);
    }

    #[test]
    fn too_long_a_stream_of_responses_fails_as_a_stream() {
        let what = ClientError::TooLong {
            tokens: Some(9000),
            limit: Some(8192),
        };
        let (status, kind, body) = write_client_error(Wire::Responses, true, &what);
        assert_eq!((status, kind), (200, "text/event-stream"));
        let mut reader = ReplyReader::new(Wire::Responses, Delivery::Stream);
        let Err(ReplyError::Failed { body }) = reader.push(&body, &mut |_| {}) else {
            panic!("it reads as a failure");
        };
        let long = ProviderError::TooLong {
            tokens: Some(9000),
            limit: Some(8192),
        };
        assert_eq!(classify(200, None, &body), long);
        // Only streams of Responses fail this way.
        assert_eq!(write_client_error(Wire::Chat, true, &what).0, 400);
        let busy = ClientError::Busy("later".to_owned());
        assert_eq!(write_client_error(Wire::Responses, true, &busy).0, 429);
    }

    #[test]
    fn the_words_are_those_of_the_wire() {
        let what = ClientError::TooLong {
            tokens: Some(213_462),
            limit: Some(200_000),
        };
        let said = |wire| {
            let body = write_client_error(wire, false, &what).2;
            String::from_utf8(body).expect("JSON is UTF-8")
        };
        insta::assert_snapshot!(said(Wire::Chat), @r#"{"error":{"message":"This model's maximum context length is 200000 tokens. However, you requested 213462 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}"#);
        insta::assert_snapshot!(said(Wire::Anthropic), @r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#);
        insta::assert_snapshot!(said(Wire::Gemini), @r#"{"error":{"code":400,"message":"The input token count (213462) exceeds the maximum number of tokens allowed (200000).","status":"INVALID_ARGUMENT"}}"#);
        insta::assert_snapshot!(said(Wire::Ollama), @r#"{"error":"This model's maximum context length is 200000 tokens. However, you requested 213462 tokens. Please reduce the length of the messages."}"#);
    }
}
