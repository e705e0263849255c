//! How each provider says no.

use infold_wire::{Wire, quote};

use crate::count::Counted;
use crate::reply_request::ReplyRequest;
use crate::send::{Outgoing, Sent};

/// The error of a request, in the words of its provider.
#[derive(Debug)]
pub(crate) struct BadRequest {
    pub message: String,
    pub param: String,
    pub code: &'static str,
}

impl BadRequest {
    pub fn new(
        message: impl Into<String>,
        param: impl Into<String>,
        code: &'static str,
    ) -> BadRequest {
        BadRequest {
            message: message.into(),
            param: param.into(),
            code,
        }
    }
}

/// An error in the shape of a wire. `code` is empty where there is none.
pub(crate) fn error(wire: Wire, status: u16, kind: &str, wrong: &BadRequest) -> Outgoing {
    let message = quote(&wrong.message);
    let or_null = |text: &str| {
        if text.is_empty() {
            "null".to_owned()
        } else {
            quote(text)
        }
    };
    let body = match wire {
        Wire::Chat | Wire::Responses => format!(
            r#"{{"error":{{"message":{message},"type":"{kind}","param":{},"code":{}}}}}"#,
            or_null(&wrong.param),
            or_null(wrong.code)
        ),
        Wire::Anthropic => format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}},"request_id":"req_testkit"}}"#
        ),
        Wire::Gemini => {
            format!(r#"{{"error":{{"code":{status},"message":{message},"status":"{kind}"}}}}"#)
        }
        Wire::Ollama => format!(r#"{{"error":{message}}}"#),
    };
    json(status, body)
}

/// A response with this JSON.
pub(crate) fn json(status: u16, body: String) -> Outgoing {
    Outgoing {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Sent::Whole(body.into_bytes()),
    }
}

/// The request is not valid.
pub(crate) fn invalid(wire: Wire, wrong: &BadRequest) -> Outgoing {
    let kind = match wire {
        Wire::Gemini => "INVALID_ARGUMENT",
        _ => "invalid_request_error",
    };
    error(wire, 400, kind, wrong)
}

/// The key is missing or wrong. None of it is repeated but its first letters.
pub(crate) fn key(wire: Wire, given: Option<&str>) -> Outgoing {
    let start: String = given.unwrap_or_default().chars().take(3).collect();
    let (status, kind, message, code) = match (wire, given) {
        (Wire::Chat | Wire::Responses, Some(_)) => (
            401,
            "invalid_request_error",
            format!("Incorrect API key provided: {start}*****. You can find your API key at https://platform.openai.com/account/api-keys."),
            "invalid_api_key",
        ),
        (Wire::Chat | Wire::Responses, None) => (
            401,
            "invalid_request_error",
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).".to_owned(),
            "",
        ),
        (Wire::Anthropic, Some(_)) => (401, "authentication_error", "invalid x-api-key".to_owned(), ""),
        (Wire::Anthropic, None) => (401, "authentication_error", "x-api-key header is required".to_owned(), ""),
        (Wire::Gemini, Some(_)) => (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.".to_owned(), ""),
        (Wire::Gemini, None) => (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.".to_owned(), ""),
        (Wire::Ollama, _) => (401, "", "unauthorized".to_owned(), ""),
    };
    let refused = error(wire, status, kind, &BadRequest::new(message, "", code));
    match (wire, status) {
        // Its clients evaluate the reason, not the status.
        (Wire::Gemini, 400) => {
            let known = crate::errors()
                .iter()
                .find(|error| error.name == "gemini/key");
            known.map_or(refused, |error| json(status, error.body.to_owned()))
        }
        _ => refused,
    }
}

/// There is no such model.
pub(crate) fn no_model(wire: Wire, model: &str) -> Outgoing {
    let (kind, message, code) = match wire {
        Wire::Chat | Wire::Responses => (
            "invalid_request_error",
            format!("The model `{model}` does not exist or you do not have access to it."),
            "model_not_found",
        ),
        Wire::Anthropic => ("not_found_error", format!("model: {model}"), ""),
        Wire::Gemini => (
            "NOT_FOUND",
            format!(
                "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
            ),
            "",
        ),
        Wire::Ollama => ("", format!("model '{model}' not found"), ""),
    };
    error(wire, 404, kind, &BadRequest::new(message, "", code))
}

/// The request is longer than the window, if it is; Ollama never says so.
pub(crate) fn too_long(asked: &ReplyRequest, counted: &Counted, window: u64) -> Option<Outgoing> {
    let sent = counted.total();
    let most = asked.most.unwrap_or(0);
    let wire = asked.wire;
    let all = match wire {
        Wire::Chat | Wire::Anthropic => sent + most,
        _ => sent,
    };
    if all <= window || wire == Wire::Ollama {
        return None;
    }
    let code = "context_length_exceeded";
    let wrong = match wire {
        Wire::Chat => BadRequest::new(chat_too_long(counted, window, most), "messages", code),
        Wire::Responses => {
            let message = "Your input exceeds the context window of this model. Please adjust your input and try again.";
            if asked.stream {
                return Some(failed(asked, message, code));
            }
            BadRequest::new(message, "input", code)
        }
        Wire::Anthropic if sent > window => BadRequest::new(
            format!("prompt is too long: {sent} tokens > {window} maximum"),
            "",
            "",
        ),
        Wire::Anthropic => {
            let message = format!(
                "input length and `max_tokens` exceed context limit: {sent} + {most} > {window}, decrease input length or `max_tokens` and try again"
            );
            BadRequest::new(message, "", "")
        }
        Wire::Gemini | Wire::Ollama => {
            let message = format!(
                "The input token count ({sent}) exceeds the maximum number of tokens allowed ({window})."
            );
            BadRequest::new(message, "", "")
        }
    };
    Some(invalid(wire, &wrong))
}

fn chat_too_long(counted: &Counted, window: u64, most: u64) -> String {
    let (sent, tools) = (counted.total(), counted.tools());
    let messages = sent - tools;
    let start = format!("This model's maximum context length is {window} tokens. However, ");
    let functions = match tools {
        0 => String::new(),
        _ => format!(", {tools} in the functions"),
    };
    start
        + &match (most, tools) {
            (0, 0) => format!(
                "your messages resulted in {sent} tokens. Please reduce the length of the messages."
            ),
            (0, _) => format!(
                "your messages resulted in {sent} tokens ({messages} in the messages{functions}). Please reduce the length of the messages or functions."
            ),
            (_, 0) => format!(
                "you requested {} tokens ({messages} in the messages, {most} in the completion). Please reduce the length of the messages or completion.",
                sent + most
            ),
            _ => format!(
                "you requested {} tokens ({messages} in the messages{functions}, and {most} in the completion). Please reduce the length of the messages, functions, or completion.",
                sent + most
            ),
        }
}

/// A stream that begins well and says that it failed.
fn failed(asked: &ReplyRequest, message: &str, code: &str) -> Outgoing {
    let model = quote(&asked.model);
    let response = |status: &str, error: &str| {
        format!(
            r#"{{"id":"resp_failed","object":"response","created_at":0,"status":"{status}","error":{error},"incomplete_details":null,"instructions":null,"metadata":{{}},"model":{model},"output":[],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":null}}"#
        )
    };
    let event = |number: usize, kind: &str, response: &str| {
        let data =
            format!(r#"{{"type":"{kind}","sequence_number":{number},"response":{response}}}"#);
        format!("event: {kind}\ndata: {data}\n\n").into_bytes()
    };
    let open = response("in_progress", "null");
    let error = format!(r#"{{"code":"{code}","message":{}}}"#, quote(message));
    Outgoing {
        status: 200,
        headers: vec![("content-type".into(), "text/event-stream".into())],
        body: Sent::Events(vec![
            event(0, "response.created", &open),
            event(1, "response.in_progress", &open),
            event(2, "response.failed", &response("failed", &error)),
        ]),
    }
}

/// Too many requests, or the provider has too much to do.
pub(crate) fn busy(wire: Wire, overloaded: bool) -> Outgoing {
    let (status, kind, message, code) = match (wire, overloaded) {
        (Wire::Chat | Wire::Responses, false) => (
            429,
            "requests",
            "Rate limit reached for model in organization org-testkit on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20ms.",
            "rate_limit_exceeded",
        ),
        (Wire::Chat | Wire::Responses, true) => (
            503,
            "server_error",
            "The engine is currently overloaded, please try again later",
            "",
        ),
        (Wire::Anthropic, false) => (
            429,
            "rate_limit_error",
            "Number of request tokens has exceeded your per-minute rate limit",
            "",
        ),
        (Wire::Anthropic, true) => (529, "overloaded_error", "Overloaded", ""),
        (Wire::Gemini, false) => (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).",
            "",
        ),
        (Wire::Gemini, true) => (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
            "",
        ),
        (Wire::Ollama, _) => (
            503,
            "",
            "server busy, please try again.  maximum pending requests exceeded",
            "",
        ),
    };
    error(wire, status, kind, &BadRequest::new(message, "", code))
}

/// Something broke on the provider's side.
pub(crate) fn broken(wire: Wire, gateway: bool) -> Outgoing {
    if gateway {
        return Outgoing {
            status: 502,
            headers: vec![("content-type".into(), "text/html".into())],
            body: Sent::Whole(b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n".to_vec()),
        };
    }
    let (kind, message) = match wire {
        Wire::Chat | Wire::Responses => (
            "server_error",
            "The server had an error while processing your request. Sorry about that!",
        ),
        Wire::Anthropic => ("api_error", "Internal server error"),
        Wire::Gemini => (
            "INTERNAL",
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
        ),
        Wire::Ollama => ("", "llama runner process has terminated: exit status 2"),
    };
    error(wire, 500, kind, &BadRequest::new(message, "", ""))
}
