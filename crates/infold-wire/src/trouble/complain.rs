use crate::{Wire, quote};

/// Something to tell a client that no provider said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// The request does not fit into the model's window, whatever is folded.
    TooLong {
        /// How many tokens it has, if the provider said so.
        tokens: Option<u64>,
        /// How many there may be, if the provider said so.
        limit: Option<u64>,
    },
    /// The request has too many bytes.
    TooLarge {
        /// How many it has, as far as they were read.
        bytes: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The request is wrong.
    Request(String),
    /// The key is missing or wrong.
    Key(String),
    /// Who asks may not.
    Forbidden(String),
    /// There is no such thing.
    NotFound(String),
    /// There is no room now: later.
    Busy(String),
    /// The provider has more to do than it can: later.
    Overloaded(String),
    /// The provider cannot be reached.
    Unreachable(String),
    /// The provider took too long.
    Late(String),
    /// Something went wrong here.
    Failed(String),
}

/// Status, content type and body of a complaint, in the words that a client of this wire knows.
///
/// `stream` says whether a stream was asked for: on Responses a request that is too long
/// is accepted, and fails as a stream.
pub fn complain(wire: Wire, stream: bool, what: &Complaint) -> (u16, &'static str, Vec<u8>) {
    let status = what.status();
    let message = quote(&what.message(wire));
    let body = match wire {
        Wire::Responses if stream && matches!(what, Complaint::TooLong { .. }) => {
            return (200, "text/event-stream", failed_response(&message));
        }
        Wire::Chat | Wire::Responses => {
            let (kind, code) = what.openai();
            let code = code.map_or("null".to_owned(), quote);
            format!(
                r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":{code}}}}}"#
            )
        }
        Wire::Anthropic => {
            let kind = what.anthropic();
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
        }
        Wire::Gemini => {
            let state = what.gemini();
            format!(r#"{{"error":{{"code":{status},"message":{message},"status":"{state}"}}}}"#)
        }
        Wire::Ollama => format!(r#"{{"error":{message}}}"#),
    };
    (status, "application/json", body.into_bytes())
}

impl Complaint {
    fn status(&self) -> u16 {
        match self {
            Complaint::TooLong { .. } | Complaint::Request(_) => 400,
            Complaint::Key(_) => 401,
            Complaint::Forbidden(_) => 403,
            Complaint::NotFound(_) => 404,
            Complaint::TooLarge { .. } => 413,
            Complaint::Busy(_) => 429,
            Complaint::Overloaded(_) => 529,
            Complaint::Failed(_) => 500,
            Complaint::Unreachable(_) => 502,
            Complaint::Late(_) => 504,
        }
    }

    /// Clients know by these words that a request is too long, and look for the numbers in them.
    fn message(&self, wire: Wire) -> String {
        let (tokens, limit) = match self {
            Complaint::TooLong {
                tokens: Some(tokens),
                limit: Some(limit),
            } => (tokens, limit),
            // A size that nobody named is not made up.
            Complaint::TooLong { .. } => return without_sizes(wire).to_owned(),
            Complaint::TooLarge { bytes, limit } => {
                return format!("request exceeds the maximum size: {bytes} bytes > {limit} bytes");
            }
            Complaint::Request(message)
            | Complaint::Key(message)
            | Complaint::Forbidden(message)
            | Complaint::NotFound(message)
            | Complaint::Busy(message)
            | Complaint::Overloaded(message)
            | Complaint::Unreachable(message)
            | Complaint::Late(message)
            | Complaint::Failed(message) => return message.clone(),
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

    /// OpenAI's type, and its code if there is one.
    fn openai(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Complaint::TooLong { .. } => ("invalid_request_error", Some("context_length_exceeded")),
            Complaint::TooLarge { .. } => ("invalid_request_error", Some("request_too_large")),
            Complaint::Request(_) | Complaint::NotFound(_) => ("invalid_request_error", None),
            Complaint::Key(_) => ("invalid_request_error", Some("invalid_api_key")),
            Complaint::Forbidden(_) => ("permission_error", Some("permission_denied")),
            Complaint::Busy(_) => ("rate_limit_error", Some("rate_limit_exceeded")),
            Complaint::Overloaded(_) => ("server_error", Some("overloaded")),
            Complaint::Unreachable(_) | Complaint::Late(_) | Complaint::Failed(_) => {
                ("server_error", None)
            }
        }
    }

    fn anthropic(&self) -> &'static str {
        match self {
            Complaint::TooLong { .. } | Complaint::Request(_) => "invalid_request_error",
            Complaint::TooLarge { .. } => "request_too_large",
            Complaint::Key(_) => "authentication_error",
            Complaint::Forbidden(_) => "permission_error",
            Complaint::NotFound(_) => "not_found_error",
            Complaint::Busy(_) => "rate_limit_error",
            Complaint::Overloaded(_) => "overloaded_error",
            Complaint::Late(_) => "timeout_error",
            Complaint::Unreachable(_) | Complaint::Failed(_) => "api_error",
        }
    }

    fn gemini(&self) -> &'static str {
        match self {
            Complaint::TooLong { .. } | Complaint::TooLarge { .. } | Complaint::Request(_) => {
                "INVALID_ARGUMENT"
            }
            Complaint::Key(_) => "UNAUTHENTICATED",
            Complaint::Forbidden(_) => "PERMISSION_DENIED",
            Complaint::NotFound(_) => "NOT_FOUND",
            Complaint::Busy(_) => "RESOURCE_EXHAUSTED",
            Complaint::Overloaded(_) | Complaint::Unreachable(_) => "UNAVAILABLE",
            Complaint::Late(_) => "DEADLINE_EXCEEDED",
            Complaint::Failed(_) => "INTERNAL",
        }
    }
}

/// What a client of this wire knows an overflow by, where no sizes are named.
fn without_sizes(wire: Wire) -> &'static str {
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

/// The stream of a response that failed because its input is too long.
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
    use crate::trouble::{Refused, Trouble, sort};
    use crate::{Delivery, Json, Reader, ReplyError};

    fn sorted(wire: Wire, what: &Complaint) -> Trouble {
        let (status, kind, body) = complain(wire, false, what);
        assert_eq!(kind, "application/json");
        Json::parse(&body).expect("a complaint is JSON");
        sort(status, None, &body)
    }

    #[test]
    fn what_we_say_is_understood_as_what_it_is() {
        let sorts = |what: Complaint, trouble: Trouble| {
            for wire in Wire::ALL {
                assert_eq!(sorted(wire, &what), trouble, "{wire}: {what:?}");
            }
        };
        for sizes in [(Some(213_462), Some(200_000)), (None, None)] {
            let (tokens, limit) = sizes;
            let long = Trouble::TooLong { tokens, limit };
            sorts(Complaint::TooLong { tokens, limit }, long);
        }
        let (bytes, limit) = (99_999_999, 200_000);
        sorts(Complaint::TooLarge { bytes, limit }, Trouble::TooLarge);
        let text = || "say \"why\"\n".to_owned();
        let busy = || Trouble::Busy { after: None };
        sorts(Complaint::Busy(text()), busy());
        sorts(Complaint::Overloaded(text()), busy());
        sorts(Complaint::Unreachable(text()), busy());
        sorts(Complaint::Late(text()), busy());
        sorts(Complaint::Failed(text()), busy());
        sorts(Complaint::Key(text()), Trouble::Refused(Refused::Key));
        sorts(Complaint::Forbidden(text()), Trouble::Refused(Refused::Key));
        let request = Trouble::Refused(Refused::Request);
        sorts(Complaint::Request(text()), request);
        let address = Trouble::Refused(Refused::Address);
        sorts(Complaint::NotFound(text()), address);
    }

    #[test]
    fn too_long_a_stream_of_responses_fails_as_a_stream() {
        let what = Complaint::TooLong {
            tokens: Some(9000),
            limit: Some(8192),
        };
        let (status, kind, body) = complain(Wire::Responses, true, &what);
        assert_eq!((status, kind), (200, "text/event-stream"));
        let mut reader = Reader::new(Wire::Responses, Delivery::Stream);
        let Err(ReplyError::Failed { body }) = reader.push(&body, &mut |_| {}) else {
            panic!("it reads as a failure");
        };
        let long = Trouble::TooLong {
            tokens: Some(9000),
            limit: Some(8192),
        };
        assert_eq!(sort(200, None, &body), long);
        // Only streams of Responses do so.
        assert_eq!(complain(Wire::Chat, true, &what).0, 400);
        let busy = Complaint::Busy("later".to_owned());
        assert_eq!(complain(Wire::Responses, true, &busy).0, 429);
    }

    #[test]
    fn the_words_are_those_of_the_wire() {
        let what = Complaint::TooLong {
            tokens: Some(213_462),
            limit: Some(200_000),
        };
        let said = |wire| {
            let body = complain(wire, false, &what).2;
            String::from_utf8(body).expect("JSON is UTF-8")
        };
        insta::assert_snapshot!(said(Wire::Chat), @r#"{"error":{"message":"This model's maximum context length is 200000 tokens. However, you requested 213462 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}"#);
        insta::assert_snapshot!(said(Wire::Anthropic), @r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#);
        insta::assert_snapshot!(said(Wire::Gemini), @r#"{"error":{"code":400,"message":"The input token count (213462) exceeds the maximum number of tokens allowed (200000).","status":"INVALID_ARGUMENT"}}"#);
        insta::assert_snapshot!(said(Wire::Ollama), @r#"{"error":"This model's maximum context length is 200000 tokens. However, you requested 213462 tokens. Please reduce the length of the messages."}"#);
    }
}
