//! Errors as providers send them.

use infold_wire::Wire;

/// An error as a provider sends it.
#[derive(Clone, Copy, Debug)]
pub struct NamedError {
    /// Provider and kind: `openai/too-long`.
    pub name: &'static str,
    /// The wire it comes on.
    pub wire: Wire,
    /// The HTTP status.
    pub status: u16,
    /// The headers that matter.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body, to the byte.
    pub body: &'static str,
}

/// Returns the errors that are known by name.
///
/// Names that end alike need the same remedy: `too-long`, `too-large`, `rate-limit`,
/// `overloaded`, `quota`, `key`, `model`. What only sounds like `too-long` is among them.
pub fn errors() -> &'static [NamedError] {
    ERRORS
}

type Headers = &'static [(&'static str, &'static str)];

const JSON: Headers = &[("content-type", "application/json")];
const HTML: Headers = &[("content-type", "text/html")];
const EVENTS: Headers = &[("content-type", "text/event-stream")];

const fn row(
    name: &'static str,
    wire: Wire,
    status: u16,
    headers: Headers,
    body: &'static str,
) -> NamedError {
    NamedError {
        name,
        wire,
        status,
        headers,
        body,
    }
}

#[rustfmt::skip]
const ERRORS: &[NamedError] = &[
    // OpenAI chat completions.
    row("openai/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion). Please reduce the length of the messages, functions, or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#),
    row("openai/too-long-messages", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 143210 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#),
    row("openai/rate-limit", Wire::Chat, 429, &[("content-type", "application/json"), ("retry-after", "20"), ("retry-after-ms", "20000")],
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-testkit on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#),
    row("openai/rate-limit-tokens", Wire::Chat, 429, &[("content-type", "application/json"), ("retry-after-ms", "4000")],
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-testkit on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#),
    row("openai/rate-limit-too-large", Wire::Chat, 429, JSON,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-testkit on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#),
    row("openai/quota", Wire::Chat, 429, JSON,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#),
    row("openai/key", Wire::Chat, 401, JSON,
        r#"{"error":{"message":"Incorrect API key provided: sk-te*****. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#),
    row("openai/no-key", Wire::Chat, 401, JSON,
        r#"{"error":{"message":"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":null}}"#),
    row("openai/model", Wire::Chat, 404, JSON,
        r#"{"error":{"message":"The model `gpt-none` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#),
    row("openai/max-tokens", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}"#),
    row("openai/server-error", Wire::Chat, 500, JSON,
        r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}"#),
    row("openai/overloaded", Wire::Chat, 503, JSON,
        r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":null}}"#),
    // OpenAI Responses.
    row("responses/too-long-stream", Wire::Responses, 200, EVENTS,
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_failed\",\"object\":\"response\",\"created_at\":0,\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model. Please adjust your input and try again.\"},\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},\"model\":\"gpt-5\",\"output\":[],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\",\"tools\":[],\"top_p\":1.0,\"usage\":null}}\n\n"),
    row("responses/too-long", Wire::Responses, 400, JSON,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#),
    row("responses/rate-limit-stream", Wire::Responses, 200, EVENTS,
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_failed\",\"object\":\"response\",\"created_at\":0,\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached for gpt-5 in organization org-testkit on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.\"},\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},\"model\":\"gpt-5\",\"output\":[],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\",\"tools\":[],\"top_p\":1.0,\"usage\":null}}\n\n"),
    row("responses/server-error-stream", Wire::Responses, 200, EVENTS,
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_failed\",\"object\":\"response\",\"created_at\":0,\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"The model failed to generate a response.\"},\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},\"model\":\"gpt-5\",\"output\":[],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\",\"tools\":[],\"top_p\":1.0,\"usage\":null}}\n\n"),
    // Anthropic, and services with its models.
    row("anthropic/too-long", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/too-long-with-reply", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199999 + 8192 > 200000, decrease input length or `max_tokens` and try again"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/too-large", Wire::Anthropic, 413, JSON,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/alternate", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/rate-limit", Wire::Anthropic, 429, &[("content-type", "application/json"), ("retry-after", "12")],
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits; see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/overloaded", Wire::Anthropic, 529, &[("content-type", "application/json"), ("x-should-retry", "true")],
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/overloaded-stream", Wire::Anthropic, 200, EVENTS,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"),
    row("anthropic/server-error", Wire::Anthropic, 500, JSON,
        r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/key", Wire::Anthropic, 401, JSON,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/permission", Wire::Anthropic, 403, JSON,
        r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/model", Wire::Anthropic, 404, JSON,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-none"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/quota", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/usage-limit", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("anthropic/max-tokens", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#),
    row("bedrock/too-long", Wire::Anthropic, 400, JSON,
        r#"{"message":"Input is too long for requested model."}"#),
    row("bedrock/rate-limit", Wire::Anthropic, 429, JSON,
        r#"{"message":"Too many tokens, please wait before trying again."}"#),
    row("minimax/too-long", Wire::Anthropic, 400, JSON,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#),
    // Gemini.
    row("gemini/too-long", Wire::Gemini, 400, JSON,
        r#"{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#),
    row("gemini/rate-limit", Wire::Gemini, 429, JSON,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000\nPlease retry in 31.4s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_input_token_count","quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaValue":"250000"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31s"}]}}"#),
    row("gemini/overloaded", Wire::Gemini, 503, JSON,
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#),
    row("gemini/server-error", Wire::Gemini, 500, JSON,
        r#"{"error":{"code":500,"message":"An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting","status":"INTERNAL"}}"#),
    row("gemini/key", Wire::Gemini, 400, JSON,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}]}}"#),
    row("gemini/permission", Wire::Gemini, 403, JSON,
        r#"{"error":{"code":403,"message":"Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.","status":"PERMISSION_DENIED"}}"#),
    row("gemini/model", Wire::Gemini, 404, JSON,
        r#"{"error":{"code":404,"message":"models/gemini-none is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.","status":"NOT_FOUND"}}"#),
    // Ollama.
    row("ollama/too-long", Wire::Ollama, 400, JSON,
        r#"{"error":{"code":400,"message":"request (3031 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3031,"n_ctx":1024}}"#),
    row("ollama/too-long-in-a-string", Wire::Ollama, 400, JSON,
        r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (3031 tokens) exceeds the available context size (1024 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":3031,\"n_ctx\":1024}}"}"#),
    row("ollama/model", Wire::Ollama, 404, JSON,
        r#"{"error":"model 'none' not found"}"#),
    row("ollama/busy", Wire::Ollama, 503, JSON,
        r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#),
    row("ollama/server-error", Wire::Ollama, 500, JSON,
        r#"{"error":"llama runner process has terminated: exit status 2"}"#),
    row("ollama/memory", Wire::Ollama, 500, JSON,
        r#"{"error":"model requires more system memory (8.4 GiB) than is available (3.2 GiB)"}"#),
    row("ollama/error-in-stream", Wire::Ollama, 200, &[("content-type", "application/x-ndjson")],
        "{\"error\":\"an error was encountered while running the model: unexpected EOF\"}\n"),
    // Local servers that speak chat completions.
    row("llama.cpp/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"code":400,"message":"request (3031 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3031,"n_ctx":1024}}"#),
    row("llama.cpp/too-long-old", Wire::Chat, 400, JSON,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}"#),
    row("llama.cpp/loading", Wire::Chat, 503, JSON,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
    row("llama-cpp-python/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"This model's maximum context length is 1024 tokens. However, you requested 3031 tokens (2903 in the messages, 128 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#),
    row("llama-cpp-python/too-long-stream", Wire::Chat, 200, EVENTS,
        ""),
    row("lmstudio/too-long", Wire::Chat, 400, JSON,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}"#),
    row("lmstudio/too-long-cannot-truncate", Wire::Chat, 400, JSON,
        r#"{"error":"Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}"#),
    row("lmstudio/too-long-overflows", Wire::Chat, 400, JSON,
        r#"{"error":"Trying to keep the first 9119 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}"#),
    row("lmstudio/model", Wire::Chat, 404, JSON,
        r#"{"error":{"message":"No models loaded. Please load a model in the developer page or use the `lms load` command.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#),
    row("vllm/too-long", Wire::Chat, 400, JSON,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, your request has 5012 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}"#),
    // Others that speak chat completions.
    row("deepseek/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140001 tokens (136001 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#),
    row("deepseek/quota", Wire::Chat, 402, JSON,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#),
    row("openrouter/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 200123 tokens (196027 of text input, 4096 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#),
    row("openrouter/quota", Wire::Chat, 402, JSON,
        r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#),
    row("openrouter/rate-limit", Wire::Chat, 429, JSON,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"some/model:free is temporarily rate-limited upstream. Please retry shortly","provider_name":"Some"}}}"#),
    row("xai/too-long", Wire::Chat, 400, JSON,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}"#),
    row("groq/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#),
    row("groq/rate-limit", Wire::Chat, 429, &[("content-type", "application/json"), ("retry-after", "8")],
        r#"{"error":{"message":"Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_testkit` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5500, Requested 1200. Please try again in 7.2s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#),
    row("groq/rate-limit-too-large", Wire::Chat, 413, JSON,
        r#"{"error":{"message":"Request too large for model `llama-3.3-70b-versatile` in organization `org_testkit` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12000, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#),
    row("mistral/too-long", Wire::Chat, 400, JSON,
        r#"{"object":"error","message":"Prompt contains 40011 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#),
    row("kimi/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)","type":"invalid_request_error"}}"#),
    row("copilot/too-long", Wire::Chat, 400, JSON,
        r#"{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#),
    // The members in between.
    row("bare/too-long", Wire::Chat, 400, &[],
        ""),
    row("bare/too-large", Wire::Chat, 413, &[],
        ""),
    row("gateway/bad", Wire::Chat, 502, HTML,
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"),
    row("gateway/unavailable", Wire::Chat, 503, &[("content-type", "text/plain")],
        "upstream connect error or disconnect/reset before headers. reset reason: connection termination"),
    row("gateway/timeout", Wire::Chat, 504, HTML,
        "<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n<center><h1>504 Gateway Time-out</h1></center>\r\n</body>\r\n</html>\r\n"),
    row("gateway/too-large", Wire::Chat, 413, HTML,
        "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"),
];
