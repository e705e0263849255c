//! Reads the options of a request: members beside its messages that the proxy acts on.

use crate::message::as_bool;
use crate::{Json, JsonKind, Wire};

/// The options of a request that the proxy acts on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// The model. Gemini has it in the path, not here.
    pub model: Option<String>,
    /// Whether the reply is to be streamed. Gemini has that in the path, not here.
    pub stream: bool,
    /// The most tokens the reply may have.
    pub max_tokens: Option<u64>,
    /// The stored response or conversation that this request continues.
    pub previous: Option<String>,
    /// The client's id of its session.
    pub session: Option<String>,
    /// The names of the tools, in order. The provider's own tools have no name: their types are listed.
    pub tool_names: Vec<String>,
    /// The window that Ollama is to give the model.
    pub num_ctx: Option<u64>,
    /// Whether the request asks for a window of a million tokens. Anthropic's own API has that in a header, not here.
    pub long_context: bool,
}

/// Returns whether a name of a beta feature of Anthropic's is that of the window of a million tokens.
pub fn is_long_context_beta(name: &str) -> bool {
    name.trim().starts_with("context-1m-")
}

impl RequestOptions {
    /// Reads the options; `member` returns the JSON of a member of the request, if there is one.
    ///
    /// Malformed members count as missing: the provider will refuse them.
    pub fn read(wire: Wire, member: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> RequestOptions {
        let mut read = MemberReader(member);
        let mut options = RequestOptions {
            tool_names: tool_names(wire, &mut read),
            max_tokens: max_tokens(wire, &mut read),
            session: session(wire, &mut read),
            ..RequestOptions::default()
        };
        if wire != Wire::Gemini {
            options.model = read.text("model");
            // Ollama streams by default.
            let stream = read.find("stream", as_bool);
            options.stream = stream.unwrap_or(wire == Wire::Ollama);
        }
        match wire {
            Wire::Responses => options.previous = previous(&mut read),
            Wire::Ollama => options.num_ctx = read.number(&["options"], &["num_ctx"]),
            Wire::Anthropic => options.long_context = read.names_long_context(),
            Wire::Chat | Wire::Gemini => {}
        }
        options
    }
}

/// Reads members of a request, from the function that finds them.
struct MemberReader<'m>(&'m mut dyn FnMut(&str) -> Option<Vec<u8>>);

impl MemberReader<'_> {
    /// Returns what `read` returns for a member; none if it is missing or malformed.
    fn find<T>(&mut self, name: &str, read: impl FnOnce(Json<'_>) -> Option<T>) -> Option<T> {
        let bytes = (self.0)(name)?;
        read(Json::parse(&bytes).ok()?)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.find(name, text)
    }

    /// Says whether the body asks for the window of a million tokens: some clouds that offer Anthropic's models have
    /// the names of beta features there.
    fn names_long_context(&mut self) -> bool {
        let named = self.find("anthropic_beta", |json| {
            let mut names = json.elements().filter_map(Json::text);
            Some(names.any(|name| is_long_context_beta(&name)))
        });
        named == Some(true)
    }

    /// Reads a number within an object; each may have several names.
    fn number(&mut self, objects: &[&str], names: &[&str]) -> Option<u64> {
        let within = |json: Json<'_>| names.iter().find_map(|name| count(json.get(name)?));
        objects.iter().find_map(|object| self.find(object, within))
    }
}

fn text(json: Json<'_>) -> Option<String> {
    json.text().map(|text| text.into_owned())
}

/// Reads a number; none if it is negative, which means "no limit" where it is allowed.
fn count(json: Json<'_>) -> Option<u64> {
    let number = json.number().filter(|number| *number >= 0.0)?;
    Some(number as u64)
}

fn max_tokens(wire: Wire, read: &mut MemberReader<'_>) -> Option<u64> {
    let names: &[&str] = match wire {
        Wire::Chat => &["max_completion_tokens", "max_tokens"],
        Wire::Anthropic => &["max_tokens"],
        Wire::Responses => &["max_output_tokens"],
        Wire::Gemini => {
            let objects = ["generationConfig", "generation_config"];
            return read.number(&objects, &["maxOutputTokens", "max_output_tokens"]);
        }
        Wire::Ollama => return read.number(&["options"], &["num_predict"]),
    };
    names.iter().find_map(|name| read.find(name, count))
}

/// Reads the stored response or conversation that a request of the wire responses continues.
fn previous(read: &mut MemberReader<'_>) -> Option<String> {
    let conversation = |json: Json<'_>| text(json.get("id").unwrap_or(json));
    let response = read.text("previous_response_id");
    response.or_else(|| read.find("conversation", conversation))
}

fn session(wire: Wire, read: &mut MemberReader<'_>) -> Option<String> {
    match wire {
        Wire::Chat | Wire::Responses => read.text("prompt_cache_key"),
        Wire::Anthropic => read.find("metadata", |json| {
            session_in_user_id(&json.get("user_id")?.text()?)
        }),
        Wire::Gemini | Wire::Ollama => None,
    }
    .filter(|session| !session.is_empty())
}

/// Finds the session in a user id: Claude Code puts it there, as JSON or at the end.
fn session_in_user_id(user: &str) -> Option<String> {
    if let Ok(json) = Json::parse(user.as_bytes()) {
        return text(json.get("session_id")?);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    Some(session.to_owned())
}

/// Reads the names of the tools.
fn tool_names(wire: Wire, read: &mut MemberReader<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut add_names = |json: Json<'_>| {
        // Gemini accepts a single object instead of a list.
        let single = (json.kind() == JsonKind::Object).then_some(json);
        for tool in json.elements().chain(single) {
            match wire {
                Wire::Gemini => add_gemini_names(tool, &mut names),
                _ => names.extend(tool_name(tool)),
            }
        }
        // The names are in the list: `find` has nothing to return.
        None::<()>
    };
    read.find("tools", &mut add_names);
    if wire == Wire::Chat {
        // Functions are the predecessors of tools.
        read.find("functions", &mut add_names);
    }
    names
}

/// Reads the name of a tool, which has several places; the type, if it has none.
fn tool_name(tool: Json<'_>) -> Option<String> {
    let [name, function, custom, kind] = tool.pick(["name", "function", "custom", "type"]);
    let inner = || text(function.or(custom)?.get("name")?);
    name.and_then(text).or_else(inner).or_else(|| text(kind?))
}

/// Adds the names of Gemini's tools: those of functions are in a list, and the provider's own tools are members.
fn add_gemini_names(tool: Json<'_>, names: &mut Vec<String>) {
    for (kind, value) in tool.members() {
        match &*kind.name() {
            b"functionDeclarations" | b"function_declarations" => {
                let functions = value.elements();
                names.extend(functions.filter_map(|function| text(function.get("name")?)));
            }
            _ => names.extend(text(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;

    fn options(wire: Wire, body: &str) -> RequestOptions {
        let list = crate::envelope::list_name(wire);
        let body = format!(r#"{{"{list}":[],{body}}}"#);
        let envelope = Envelope::of(wire, body.as_bytes()).expect("a request");
        RequestOptions::read(wire, &mut |name| {
            let range = envelope.member(name)?;
            Some(body.as_bytes()[range.start as usize..range.end as usize].to_vec())
        })
    }

    #[test]
    fn each_wire_asks_in_its_own_words() {
        let chat = options(
            Wire::Chat,
            r#""model":"gpt","stream":true,"max_tokens":5,"max_completion_tokens":7,"prompt_cache_key":"k","tools":[{"type":"function","function":{"name":"ls"}},{"type":"custom","custom":{"name":"grep"}}],"functions":[{"name":"old"}]"#,
        );
        assert_eq!(
            chat,
            RequestOptions {
                model: Some("gpt".into()),
                stream: true,
                max_tokens: Some(7),
                session: Some("k".into()),
                tool_names: vec!["ls".into(), "grep".into(), "old".into()],
                ..RequestOptions::default()
            }
        );
        let responses = options(
            Wire::Responses,
            r#""model":"gpt","max_output_tokens":9,"previous_response_id":"resp_1","tools":[{"type":"function","name":"shell"},{"type":"web_search"}]"#,
        );
        assert_eq!(responses.max_tokens, Some(9));
        assert_eq!(responses.previous.as_deref(), Some("resp_1"));
        assert_eq!(responses.tool_names, ["shell", "web_search"]);
        let talk = |body| options(Wire::Responses, body).previous;
        assert_eq!(talk(r#""conversation":"c""#).as_deref(), Some("c"));
        assert_eq!(talk(r#""conversation":{"id":"d"}"#).as_deref(), Some("d"));
        assert_eq!(talk(r#""previous_response_id":null"#), None);
        let gemini = options(
            Wire::Gemini,
            r#""model":"x","stream":true,"generationConfig":{"maxOutputTokens":11},"tools":{"functionDeclarations":[{"name":"a"},{"name":"b"}],"googleSearch":{}}"#,
        );
        assert_eq!((gemini.model, gemini.stream), (None, false));
        assert_eq!(gemini.max_tokens, Some(11));
        assert_eq!(gemini.tool_names, ["a", "b", "googleSearch"]);
        let ollama = options(
            Wire::Ollama,
            r#""model":"q","options":{"num_ctx":8192,"num_predict":-1}"#,
        );
        assert!(ollama.stream && ollama.tool_names.is_empty());
        assert_eq!((ollama.num_ctx, ollama.max_tokens), (Some(8192), None));
        assert!(!options(Wire::Ollama, r#""stream":false"#).stream);
    }

    #[test]
    fn a_session_is_found_in_the_name_of_a_user() {
        let session = |user: &str| {
            let user = crate::quote(user);
            options(
                Wire::Anthropic,
                &format!(r#""metadata":{{"user_id":{user}}}"#),
            )
            .session
        };
        let id = "0a1b2c3d-0000-4000-8000-000000000001";
        let old = format!("user_abc_account_def_session_{id}");
        assert_eq!(session(&old).as_deref(), Some(id));
        let new = format!(r#"{{"device_id":"d","account_uuid":"","session_id":"{id}"}}"#);
        assert_eq!(session(&new).as_deref(), Some(id));
        assert_eq!(session("somebody"), None);
        assert_eq!(session("user_session_"), None);
    }

    #[test]
    fn what_is_malformed_is_not_there() {
        let body =
            r#""model":7,"stream":"yes","max_tokens":"many","metadata":[],"tools":[1,{"name":2}]"#;
        assert_eq!(options(Wire::Anthropic, body), RequestOptions::default());
        let broken = RequestOptions::read(Wire::Chat, &mut |_| Some(b"{\"x".to_vec()));
        assert_eq!(broken, RequestOptions::default());
    }
}
