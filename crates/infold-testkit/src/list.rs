//! Responses to requests that call no model: lists and descriptions of models, and counts of tokens.

use infold_wire::{Wire, quote};

use crate::Model;
use crate::dialect::json;
use crate::send::Outgoing;

/// The model that is listed if the server accepts any name.
const DEFAULT_MODEL_NAME: &str = "testkit";

/// Returns the response with the list of models, in the form of a wire.
pub(crate) fn models(wire: Wire, model: &Model) -> Outgoing {
    let names: Vec<&str> = if model.names.is_empty() {
        vec![DEFAULT_MODEL_NAME]
    } else {
        model.names.iter().map(String::as_str).collect()
    };
    let window = model.window.unwrap_or(128_000);
    let each = |name: &&str| {
        let quoted = quote(name);
        match wire {
            Wire::Chat | Wire::Responses => format!(
                r#"{{"id":{quoted},"object":"model","created":0,"owned_by":"infold-testkit"}}"#
            ),
            Wire::Anthropic => format!(
                r#"{{"type":"model","id":{quoted},"display_name":{quoted},"created_at":"1970-01-01T00:00:00Z"}}"#
            ),
            Wire::Gemini => format!(
                r#"{{"name":{},"displayName":{quoted},"inputTokenLimit":{window},"outputTokenLimit":8192,"supportedGenerationMethods":["generateContent","countTokens"]}}"#,
                quote(&format!("models/{name}"))
            ),
            Wire::Ollama => format!(
                r#"{{"name":{quoted},"model":{quoted},"modified_at":"1970-01-01T00:00:00Z","size":0,"digest":"0000000000000000000000000000000000000000000000000000000000000000","details":{{"parent_model":"","format":"gguf","family":"testkit","families":["testkit"],"parameter_size":"0B","quantization_level":"F16"}}}}"#
            ),
        }
    };
    let list: Vec<_> = names.iter().map(each).collect();
    let list = list.join(",");
    let (first, last) = (quote(names[0]), quote(names[names.len() - 1]));
    json(
        200,
        match wire {
            Wire::Chat | Wire::Responses => format!(r#"{{"object":"list","data":[{list}]}}"#),
            Wire::Anthropic => format!(
                r#"{{"data":[{list}],"has_more":false,"first_id":{first},"last_id":{last}}}"#
            ),
            Wire::Gemini | Wire::Ollama => format!(r#"{{"models":[{list}]}}"#),
        },
    )
}

/// Returns Ollama's description of a model (`/api/show`).
pub(crate) fn show(model: &Model) -> Outgoing {
    let window = model.window.unwrap_or(128_000);
    // Ollama reports the window of the training as `context_length` always, and `num_ctx`, with which the model runs,
    // only if it is set. A client must not take the first for the second.
    let set = model
        .window
        .map(|window| format!(r#""parameters":"num_ctx                        {window}","#));
    let set = set.unwrap_or_default();
    json(
        200,
        format!(
            r#"{{"modelfile":"",{set}"template":"{{{{ .Prompt }}}}","details":{{"parent_model":"","format":"gguf","family":"testkit","families":["testkit"],"parameter_size":"0B","quantization_level":"F16"}},"model_info":{{"general.architecture":"testkit","testkit.context_length":{window}}},"capabilities":["completion","tools","thinking"]}}"#
        ),
    )
}

/// The window with which Ollama loads a model if nothing sets another.
pub(crate) const OLLAMAS_OWN: u64 = 4096;

/// Returns Ollama's list of loaded models (`/api/ps`): one, by its name and window, or none.
pub(crate) fn loaded(model: Option<&(String, u64)>) -> Outgoing {
    let each = |(name, window): &(String, u64)| {
        let quoted = quote(name);
        format!(
            r#"{{"name":{quoted},"model":{quoted},"size":0,"digest":"0000000000000000000000000000000000000000000000000000000000000000","details":{{"parent_model":"","format":"gguf","family":"testkit","families":["testkit"],"parameter_size":"0B","quantization_level":"F16"}},"expires_at":"2100-01-01T00:00:00Z","size_vram":0,"context_length":{window}}}"#
        )
    };
    let list = model.map(each).unwrap_or_default();
    json(200, format!(r#"{{"models":[{list}]}}"#))
}

/// Returns the response with a number of tokens, in the form of a wire.
pub(crate) fn counted(wire: Wire, tokens: u64) -> Outgoing {
    let name = match wire {
        Wire::Gemini => "totalTokens",
        _ => "input_tokens",
    };
    json(200, format!(r#"{{"{name}":{tokens}}}"#))
}
