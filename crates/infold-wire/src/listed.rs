use crate::{Json, Kind, Wire, quote};

/// A model that a provider says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, as a request gives it.
    pub name: String,
    /// How many tokens it takes, where the list says so.
    pub window: Option<u64>,
}

impl Listed {
    /// Says whether a request that names this model means it.
    pub fn is(&self, name: &str) -> bool {
        // Ollama's names have a tag, and the usual one need not be said.
        self.name == name || self.name.strip_suffix(":latest") == Some(name)
    }
}

/// Where the window is said, the one in force before the one that could be.
const WINDOWS: [&str; 7] = [
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "inputTokenLimit",
    "max_input_tokens",
];

/// Reads a provider's list of models, in the form of any wire; none if it is no such list.
pub fn listed(body: &[u8]) -> Option<Vec<Listed>> {
    let json = Json::parse(body).ok()?;
    let [data, models] = json.pick(["data", "models"]);
    let list = data.or(models).filter(|list| list.kind() == Kind::Array)?;
    Some(list.elements().filter_map(model).collect())
}

/// Writes a list of models as a provider of this wire would; `by` is who has them.
pub fn list(wire: Wire, by: &str, models: &[Listed]) -> Vec<u8> {
    let by = quote(by);
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
    let end = |model: Option<&Listed>| model.map_or("null".to_owned(), |it| quote(&it.name));
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

/// Reads the window that a model of Ollama's was made with; none if it has the server's own.
pub fn set_window(body: &[u8]) -> Option<u64> {
    let parameters = Json::parse(body).ok()?.get("parameters")?.text()?;
    let set = parameters.lines().find_map(|line| {
        let value = line.trim().strip_prefix("num_ctx")?;
        value.trim().parse().ok()
    });
    set.filter(|window| *window > 0)
}

fn model(json: Json<'_>) -> Option<Listed> {
    let [id, name, meta, verbs] = json.pick(["id", "name", "meta", "supportedGenerationMethods"]);
    // Gemini lists models that only count or embed, too.
    if verbs.is_some_and(|verbs| !verbs.elements().any(|verb| verb.is("generateContent"))) {
        return None;
    }
    let name = id.or(name)?.text()?;
    let number = |value: Json<'_>| value.number().filter(|n| *n >= 1.0).map(|n| n as u64);
    let said = json.pick(WINDOWS);
    let in_force = meta.and_then(|meta| meta.get("n_ctx"));
    Some(Listed {
        name: name.strip_prefix("models/").unwrap_or(&name).to_owned(),
        window: in_force
            .into_iter()
            .chain(said.into_iter().flatten())
            .find_map(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_reads_the_same() {
        let models: Vec<Listed> = ["a", "b/c:latest"]
            .map(|name| Listed {
                name: name.to_owned(),
                window: Some(4096),
            })
            .to_vec();
        for wire in Wire::ALL {
            let read = listed(&list(wire, "local", &models)).expect("a list");
            let names = |list: &[Listed]| list.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&read), names(&models), "{wire}");
        }
    }

    fn names(body: &str) -> String {
        let list = listed(body.as_bytes()).expect("a list");
        let show = |model: &Listed| match model.window {
            Some(window) => format!("{} {window}", model.name),
            None => model.name.clone(),
        };
        list.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_window_of_a_model_is_the_one_set_and_not_the_one_trained() {
        let show = r#"{"parameters":"stop   \"x\"\nnum_ctx                        8192\ntemperature 1","model_info":{"llama.context_length":131072}}"#;
        assert_eq!(set_window(show.as_bytes()), Some(8192));
        for none in [
            r#"{"model_info":{"llama.context_length":131072}}"#,
            r#"{"parameters":"num_ctx 0"}"#,
            r#"{"parameters":"num_ctx many"}"#,
            "",
        ] {
            assert_eq!(set_window(none.as_bytes()), None, "{none}");
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
            assert_eq!(listed(none.as_bytes()), None, "{none}");
        }
    }
}
