//! What a request asks for, beside its messages.

use crate::{Json, Kind, Wire};

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// The model. Gemini has it in the path, not here.
    pub model: Option<String>,
    /// The reply is to come bit by bit. Gemini has that in the path, not here.
    pub stream: bool,
    /// The most tokens the reply may have.
    pub max_tokens: Option<u64>,
    /// What the service keeps and this request goes on from: a response or a conversation.
    pub previous: Option<String>,
    /// The client's own name for its session.
    pub session: Option<String>,
    /// What the tools to call are called, in order; those of the provider's own by their type.
    pub tool_names: Vec<String>,
    /// The window that Ollama is to give the model.
    pub num_ctx: Option<u64>,
    /// It asks for a window of a million tokens. Anthropic itself has that in a header, not here.
    pub long_context: bool,
}

/// Says whether the name of a beta feature of Anthropic's is that of a window of a million tokens.
pub fn is_long_context_beta(name: &str) -> bool {
    name.trim().starts_with("context-1m-")
}

impl Params {
    /// Reads them; `member` gives the JSON of a member of the request, if there is one.
    ///
    /// What is malformed counts as not there: to refuse it is the provider's business.
    pub fn read(wire: Wire, member: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Params {
        let mut read = Members(member);
        let tool_names = tool_names(wire, &mut read);
        let apart = wire == Wire::Gemini;
        Params {
            model: read.text("model").filter(|_| !apart),
            stream: match wire {
                Wire::Gemini => false,
                Wire::Ollama => read.word("stream") != Some(false),
                _ => read.word("stream") == Some(true),
            },
            max_tokens: max_tokens(wire, &mut read),
            previous: (wire == Wire::Responses)
                .then(|| previous(&mut read))
                .flatten(),
            session: session(wire, &mut read),
            tool_names,
            num_ctx: (wire == Wire::Ollama)
                .then(|| read.number(&["options"], &["num_ctx"]))
                .flatten(),
            long_context: wire == Wire::Anthropic && read.names_long_context(),
        }
    }
}

/// The members of a request.
struct Members<'m>(&'m mut dyn FnMut(&str) -> Option<Vec<u8>>);

impl Members<'_> {
    /// What `read` finds in a member that is there and is JSON.
    fn find<T>(&mut self, name: &str, read: impl FnOnce(Json<'_>) -> Option<T>) -> Option<T> {
        let bytes = (self.0)(name)?;
        read(Json::parse(&bytes).ok()?)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.find(name, text)
    }

    fn word(&mut self, name: &str) -> Option<bool> {
        self.find(name, |json| {
            (json.kind() == Kind::Bool).then(|| json.is_true())
        })
    }

    /// Some clouds have the names of beta features in the body.
    fn names_long_context(&mut self) -> bool {
        let named = self.find("anthropic_beta", |json| {
            let mut names = json.elements().filter_map(Json::text);
            Some(names.any(|name| is_long_context_beta(&name)))
        });
        named == Some(true)
    }

    /// A number within an object; each may have several names.
    fn number(&mut self, objects: &[&str], names: &[&str]) -> Option<u64> {
        let within = |json: Json<'_>| names.iter().find_map(|name| whole(json.get(name)?));
        objects.iter().find_map(|object| self.find(object, within))
    }
}

fn text(json: Json<'_>) -> Option<String> {
    json.text().map(|text| text.into_owned())
}

/// A number of something. Less than none means "no limit" where it is allowed.
fn whole(json: Json<'_>) -> Option<u64> {
    let number = json.number().filter(|number| *number >= 0.0)?;
    Some(number as u64)
}

fn max_tokens(wire: Wire, read: &mut Members<'_>) -> Option<u64> {
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
    names.iter().find_map(|name| read.find(name, whole))
}

fn previous(read: &mut Members<'_>) -> Option<String> {
    let conversation = |json: Json<'_>| text(json.get("id").unwrap_or(json));
    let response = read.text("previous_response_id");
    response.or_else(|| read.find("conversation", conversation))
}

fn session(wire: Wire, read: &mut Members<'_>) -> Option<String> {
    match wire {
        Wire::Chat | Wire::Responses => read.text("prompt_cache_key"),
        Wire::Anthropic => read.find("metadata", |json| in_user(&json.get("user_id")?.text()?)),
        Wire::Gemini | Wire::Ollama => None,
    }
    .filter(|session| !session.is_empty())
}

/// The session in the name of a user: Claude Code puts it there, as JSON or at the end.
fn in_user(user: &str) -> Option<String> {
    if let Ok(json) = Json::parse(user.as_bytes()) {
        return text(json.get("session_id")?);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    Some(session.to_owned())
}

fn tool_names(wire: Wire, read: &mut Members<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut put = |json: Json<'_>| {
        // Gemini takes one that is no list.
        let one = (json.kind() == Kind::Object).then_some(json);
        for tool in json.elements().chain(one) {
            match wire {
                Wire::Gemini => put_gemini(tool, &mut names),
                _ => names.extend(name(tool)),
            }
        }
        None::<()>
    };
    read.find("tools", &mut put);
    if wire == Wire::Chat {
        // What tools were before they were called so.
        read.find("functions", &mut put);
    }
    names
}

fn name(tool: Json<'_>) -> Option<String> {
    let [name, function, custom, kind] = tool.pick(["name", "function", "custom", "type"]);
    let inner = || text(function.or(custom)?.get("name")?);
    name.and_then(text).or_else(inner).or_else(|| text(kind?))
}

/// Gemini's tools: functions in a list, others by the name of a member.
fn put_gemini(tool: Json<'_>, names: &mut Vec<String>) {
    for (kind, value) in tool.members() {
        match &*kind.name() {
            b"functionDeclarations" | b"function_declarations" => {
                names.extend(
                    value
                        .elements()
                        .filter_map(|function| text(function.get("name")?)),
                );
            }
            _ => names.extend(text(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;

    fn params(wire: Wire, body: &str) -> Params {
        let list = crate::envelope::list_name(wire);
        let body = format!(r#"{{"{list}":[],{body}}}"#);
        let envelope = Envelope::of(wire, body.as_bytes()).expect("a request");
        Params::read(wire, &mut |name| {
            let range = envelope.member(name)?;
            Some(body.as_bytes()[range.start as usize..range.end as usize].to_vec())
        })
    }

    #[test]
    fn each_wire_asks_in_its_own_words() {
        let chat = params(
            Wire::Chat,
            r#""model":"gpt","stream":true,"max_tokens":5,"max_completion_tokens":7,"prompt_cache_key":"k","tools":[{"type":"function","function":{"name":"ls"}},{"type":"custom","custom":{"name":"grep"}}],"functions":[{"name":"old"}]"#,
        );
        assert_eq!(
            chat,
            Params {
                model: Some("gpt".into()),
                stream: true,
                max_tokens: Some(7),
                session: Some("k".into()),
                tool_names: vec!["ls".into(), "grep".into(), "old".into()],
                ..Params::default()
            }
        );
        let responses = params(
            Wire::Responses,
            r#""model":"gpt","max_output_tokens":9,"previous_response_id":"resp_1","tools":[{"type":"function","name":"shell"},{"type":"web_search"}]"#,
        );
        assert_eq!(responses.max_tokens, Some(9));
        assert_eq!(responses.previous.as_deref(), Some("resp_1"));
        assert_eq!(responses.tool_names, ["shell", "web_search"]);
        let talk = |body| params(Wire::Responses, body).previous;
        assert_eq!(talk(r#""conversation":"c""#).as_deref(), Some("c"));
        assert_eq!(talk(r#""conversation":{"id":"d"}"#).as_deref(), Some("d"));
        assert_eq!(talk(r#""previous_response_id":null"#), None);
        let gemini = params(
            Wire::Gemini,
            r#""model":"x","stream":true,"generationConfig":{"maxOutputTokens":11},"tools":{"functionDeclarations":[{"name":"a"},{"name":"b"}],"googleSearch":{}}"#,
        );
        assert_eq!((gemini.model, gemini.stream), (None, false));
        assert_eq!(gemini.max_tokens, Some(11));
        assert_eq!(gemini.tool_names, ["a", "b", "googleSearch"]);
        let ollama = params(
            Wire::Ollama,
            r#""model":"q","options":{"num_ctx":8192,"num_predict":-1}"#,
        );
        assert!(ollama.stream && ollama.tool_names.is_empty());
        assert_eq!((ollama.num_ctx, ollama.max_tokens), (Some(8192), None));
        assert!(!params(Wire::Ollama, r#""stream":false"#).stream);
    }

    #[test]
    fn a_session_is_found_in_the_name_of_a_user() {
        let session = |user: &str| {
            let user = crate::quote(user);
            params(
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
        assert_eq!(params(Wire::Anthropic, body), Params::default());
        let broken = Params::read(Wire::Chat, &mut |_| Some(b"{\"x".to_vec()));
        assert_eq!(broken, Params::default());
    }
}
