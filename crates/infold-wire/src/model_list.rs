//! A provider's list of models, read and written for every wire.

use crate::{Json, JsonKind, Wire, quote};

/// A model of a provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// The model's name, as a request gives it.
    pub name: String,
    /// The model's window in tokens, if the list contains it.
    pub window: Option<u64>,
}

impl ListedModel {
    /// Returns whether a request for `name` means this model.
    pub fn is(&self, name: &str) -> bool {
        // Ollama's names have a tag, and `latest` may be left out.
        self.name == name || self.name.strip_suffix(":latest") == Some(name)
    }
}

/// Members that hold the window: that of the loaded model before the possible one.
const WINDOW_MEMBERS: [&str; 7] = [
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "inputTokenLimit",
    "max_input_tokens",
];

/// Reads a provider's list of models, in the form of any wire; `None` for any other text.
pub fn read_model_list(body: &[u8]) -> Option<Vec<ListedModel>> {
    let json = Json::parse(body).ok()?;
    let [data, models] = json.pick(["data", "models"]);
    let list = data
        .or(models)
        .filter(|list| list.kind() == JsonKind::Array)?;
    Some(list.elements().filter_map(read_model).collect())
}

/// Writes a list of models as a provider of this wire would; `owner` is the provider.
pub fn write_model_list(wire: Wire, owner: &str, models: &[ListedModel]) -> Vec<u8> {
    let by = quote(owner);
    let written = models.iter().map(|model| {
        let name = quote(&model.name);
        let window = |key: &str| match model.window {
            Some(window) => format!(r#","{key}":{window}"#),
            None => String::new(),
        };
        match wire {
            Wire::Chat | Wire::Responses => {
                let window = window("context_length");
                format!(r#"{{"id":{name},"object":"model","created":0,"owned_by":{by}{window}}}"#)
            }
            Wire::Anthropic => format!(
                r#"{{"type":"model","id":{name},"display_name":{name},"created_at":"1970-01-01T00:00:00Z"}}"#
            ),
            Wire::Gemini => {
                let (long, window) = (quote(&format!("models/{}", model.name)), window("inputTokenLimit"));
                format!(
                    r#"{{"name":{long},"displayName":{name},"supportedGenerationMethods":["generateContent","countTokens"]{window}}}"#
                )
            }
            Wire::Ollama => format!(
                r#"{{"name":{name},"model":{name},"modified_at":"1970-01-01T00:00:00Z","size":0,"digest":"","details":{{"format":"","family":"","families":null,"parameter_size":"","quantization_level":""}}}}"#
            ),
        }
    });
    let written: Vec<String> = written.collect();
    let all = written.join(",");
    let end = |model: Option<&ListedModel>| model.map_or("null".to_owned(), |it| quote(&it.name));
    let (first, last) = (end(models.first()), end(models.last()));
    let body = match wire {
        Wire::Chat | Wire::Responses => format!(r#"{{"object":"list","data":[{all}]}}"#),
        Wire::Anthropic => {
            format!(r#"{{"data":[{all}],"has_more":false,"first_id":{first},"last_id":{last}}}"#)
        }
        Wire::Gemini | Wire::Ollama => format!(r#"{{"models":[{all}]}}"#),
    };
    body.into_bytes()
}

/// Reads the window set in a model of Ollama's; none if it has the server's default.
pub fn read_ollama_window(body: &[u8]) -> Option<u64> {
    let parameters = Json::parse(body).ok()?.get("parameters")?.text()?;
    let set = parameters.lines().find_map(|line| {
        let value = line.trim().strip_prefix("num_ctx")?;
        value.trim().parse().ok()
    });
    set.filter(|window| *window > 0)
}

fn read_model(json: Json<'_>) -> Option<ListedModel> {
    let [id, name, meta, verbs] = json.pick(["id", "name", "meta", "supportedGenerationMethods"]);
    // Gemini also lists models that only count or embed.
    if verbs.is_some_and(|verbs| !verbs.elements().any(|verb| verb.is("generateContent"))) {
        return None;
    }
    let name = id.or(name)?.text()?;
    let number = |value: Json<'_>| value.number().filter(|n| *n >= 1.0).map(|n| n as u64);
    let loaded = meta.and_then(|meta| meta.get("n_ctx"));
    let windows = json.pick(WINDOW_MEMBERS).into_iter().flatten();
    Some(ListedModel {
        name: name.strip_prefix("models/").unwrap_or(&name).to_owned(),
        window: loaded.into_iter().chain(windows).find_map(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_reads_the_same() {
        let models: Vec<ListedModel> = ["a", "b/c:latest"]
            .map(|name| ListedModel {
                name: name.to_owned(),
                window: Some(4096),
            })
            .to_vec();
        for wire in Wire::ALL {
            let read = read_model_list(&write_model_list(wire, "local", &models)).expect("a list");
            let names =
                |list: &[ListedModel]| list.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&read), names(&models), "{wire}");
        }
    }

    fn names(body: &str) -> String {
        let list = read_model_list(body.as_bytes()).expect("a list");
        let show = |model: &ListedModel| match model.window {
            Some(window) => format!("{} {window}", model.name),
            None => model.name.clone(),
        };
        list.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_window_of_a_model_is_the_one_set_and_not_the_one_trained() {
        let show = r#"{"parameters":"stop   \"x\"\nnum_ctx                        8192\ntemperature 1","model_info":{"llama.context_length":131072}}"#;
        assert_eq!(read_ollama_window(show.as_bytes()), Some(8192));
        for none in [
            r#"{"model_info":{"llama.context_length":131072}}"#,
            r#"{"parameters":"num_ctx 0"}"#,
            r#"{"parameters":"num_ctx many"}"#,
            "",
        ] {
            assert_eq!(read_ollama_window(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn lists_of_every_provider_are_read() {
        for (body, expected) in [
            (
                r#"{"object":"list","data":[{"id":"gpt-4o","object":"model"}]}"#,
                "gpt-4o",
            ),
            (
                r#"{"models":[{"name":"x"}],"data":[{"id":"smollm2","meta":{"n_ctx":1024,"n_ctx_train":8192}}]}"#,
                "smollm2 1024",
            ),
            (r#"{"data":[{"id":"m","max_model_len":4096}]}"#, "m 4096"),
            (
                r#"{"data":[{"id":"m","max_context_length":8192,"loaded_context_length":4096},{"id":"n","max_context_length":8192}]}"#,
                "m 4096, n 8192",
            ),
            (
                r#"{"data":[{"type":"model","id":"claude-x","display_name":"Claude X"}],"has_more":false}"#,
                "claude-x",
            ),
            (
                r#"{"models":[{"name":"models/gemini-x","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}"#,
                "gemini-x 1048576",
            ),
            (
                r#"{"models":[{"name":"llama3:8b","model":"llama3:8b","size":1}]}"#,
                "llama3:8b",
            ),
            (r#"{"data":[]}"#, ""),
        ] {
            assert_eq!(names(body), expected, "{body}");
        }
        for none in [
            "",
            "[]",
            "{}",
            r#"{"error":"Unexpected endpoint"}"#,
            r#"{"data":1}"#,
        ] {
            assert_eq!(read_model_list(none.as_bytes()), None, "{none}");
        }
    }
}
