//! Writes the frame of a request: all of it but its messages.

mod cache_markers;
mod system_text;

pub use cache_markers::{
    MAX_CACHE_MARKERS, add_cache_marker, count_cache_markers, remove_cache_markers,
};

pub use system_text::{append_to_system, system_members};

use crate::{Form, Json, JsonKind, Message, Wire, quote};
use cache_markers::CACHE_MARKER;

/// A request without its messages, in the form of its wire.
///
/// A request is [`RequestFrame::head`], the messages with commas between them, and [`RequestFrame::TAIL`].
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFrame {
    /// The wire.
    pub wire: Wire,
    /// The model.
    pub model: String,
    /// The system prompt, unless it is a message: texts, as JSON strings.
    pub system: Vec<String>,
    /// A text about the task that follows the system prompt, wherever the wire has that.
    pub context: Option<String>,
    /// Tool definitions in the form of the wire: a JSON array.
    pub tools: Option<String>,
    /// The choice of a tool, as [`crate::tools::write_tool_choice`] writes it.
    pub tool_choice: Option<String>,
    /// The maximum length of the reply.
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Further parameters in the form of the wire: paths such as `generationConfig.topP`, and JSON.
    pub settings: Vec<(&'static str, String)>,
    /// The model's window, for servers that load it with one.
    pub window: Option<u64>,
    /// Whether the reply is streamed.
    pub stream: bool,
    /// Whether the system prompt is marked for the provider's cache.
    pub cache: bool,
    /// Whether the request goes to OpenAI itself, which has its own names for some members.
    pub official: bool,
}

/// The maximum length of a reply where the wire demands one and none is set.
const DEFAULT_MAX_TOKENS: u64 = 4096;

impl RequestFrame {
    /// The bytes behind the messages.
    pub const TAIL: &str = "]}";

    /// Returns the frame of a streamed request without any parameters.
    pub fn new(wire: Wire, model: &str) -> RequestFrame {
        RequestFrame {
            wire,
            model: model.to_owned(),
            system: Vec::new(),
            context: None,
            tools: None,
            tool_choice: None,
            max_tokens: None,
            temperature: None,
            settings: Vec::new(),
            window: None,
            stream: true,
            cache: true,
            official: false,
        }
    }

    /// Returns the bytes before the messages.
    pub fn head(&self) -> String {
        let mut head = String::from("{");
        match self.wire {
            Wire::Chat => self.put_chat(&mut head),
            Wire::Responses => self.put_responses(&mut head),
            Wire::Anthropic => self.put_anthropic(&mut head),
            Wire::Gemini => self.put_gemini(&mut head),
            Wire::Ollama => self.put_ollama(&mut head),
        }
        head
    }

    fn put_chat(&self, head: &mut String) {
        self.put_model(head);
        let limit = if self.official {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        put(head, limit, self.max_tokens);
        put(head, "temperature", self.temperature);
        head.push_str(&self.settings(""));
        if self.stream {
            put(head, "stream_options", Some(r#"{"include_usage":true}"#));
        }
        self.put_tools(head, "tool_choice");
        head.push_str(r#""messages":["#);
    }

    fn put_responses(&self, head: &mut String) {
        self.put_model(head);
        put(head, "max_output_tokens", self.max_tokens);
        put(head, "temperature", self.temperature);
        head.push_str(&self.settings(""));
        put_group(head, "text", &self.settings("text"));
        put_group(head, "reasoning", &self.settings("reasoning"));
        // The conversation is stored here, so reasoning must come back to be sent again.
        if !self.settings.iter().any(|(name, _)| *name == "store") {
            put(head, "store", Some("false"));
        }
        if self.official {
            put(head, "include", Some(r#"["reasoning.encrypted_content"]"#));
        }
        self.put_tools(head, "tool_choice");
        head.push_str(r#""input":["#);
    }

    fn put_anthropic(&self, head: &mut String) {
        self.put_model(head);
        put(
            head,
            "max_tokens",
            Some(self.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)),
        );
        put(head, "temperature", self.temperature);
        head.push_str(&self.settings(""));
        put_group(head, "output_config", &self.settings("output_config"));
        if !self.system.is_empty() {
            let last = self.system.len() - 1;
            let blocks = self.system.iter().enumerate().map(|(at, text)| {
                let marker = if self.cache && at == last {
                    CACHE_MARKER
                } else {
                    ""
                };
                format!(r#"{{"type":"text","text":{text}{marker}}}"#)
            });
            let blocks: Vec<String> = blocks.collect();
            put(head, "system", Some(format!("[{}]", blocks.join(","))));
        }
        self.put_tools(head, "tool_choice");
        head.push_str(r#""messages":["#);
    }

    fn put_gemini(&self, head: &mut String) {
        if !self.system.is_empty() {
            let parts = self
                .system
                .iter()
                .map(|text| format!(r#"{{"text":{text}}}"#));
            let parts: Vec<String> = parts.collect();
            let system = format!(r#"{{"parts":[{}]}}"#, parts.join(","));
            put(head, "systemInstruction", Some(system));
        }
        let mut settings = String::new();
        put(&mut settings, "maxOutputTokens", self.max_tokens);
        put(&mut settings, "temperature", self.temperature);
        settings.push_str(&self.settings("generationConfig"));
        put_group(head, "generationConfig", &settings);
        self.put_tools(head, "toolConfig");
        head.push_str(r#""contents":["#);
    }

    fn put_ollama(&self, head: &mut String) {
        self.put_model(head);
        let mut options = String::new();
        put(&mut options, "num_ctx", self.window);
        put(&mut options, "num_predict", self.max_tokens);
        put(&mut options, "temperature", self.temperature);
        options.push_str(&self.settings("options"));
        put_group(head, "options", &options);
        head.push_str(&self.settings(""));
        put(head, "tools", self.tools.as_deref());
        head.push_str(r#""messages":["#);
    }

    /// Returns the further parameters within an object, or outside of all objects if it has no name.
    fn settings(&self, group: &str) -> String {
        let mut members = String::new();
        for (path, value) in &self.settings {
            let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
            if outer == group {
                put(&mut members, name, Some(value));
            }
        }
        members
    }

    fn put_model(&self, head: &mut String) {
        put(head, "model", Some(quote(&self.model)));
        put(head, "stream", Some(self.stream));
    }

    fn put_tools(&self, head: &mut String, choice: &str) {
        put(head, "tools", self.tools.as_deref());
        if self.tools.is_some() {
            put(head, choice, self.tool_choice.as_deref());
        }
    }
}

/// Appends a member, if it has a value.
fn put(head: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        head.push_str(&format!(r#""{name}":{value},"#));
    }
}

/// Appends an object of members, if there are any.
fn put_group(head: &mut String, name: &str, members: &str) {
    if let Some(members) = members.strip_suffix(',') {
        put(head, name, Some(format!("{{{members}}}")));
    }
}

/// Members of hosted tools and servers that hold credentials, in lower case.
const CREDENTIALS: &str = "authorization authorization_token authentication headers extra_headers \
    api_key apikey api_key_string apikeystring access_token client_secret password token secret";

/// Members that are schemas: names in them are those of a tool's arguments.
const SCHEMAS: &str = "parameters input_schema inputschema parametersjsonschema schema properties";

/// Members that are addresses, which may hold a password or a key.
const ADDRESSES: &str = "url server_url uri endpoint";

/// Ranges of a text, and their replacements.
type Replacements = Vec<(std::ops::Range<usize>, String)>;

/// Returns a member of a request, such as its tools, with credentials blanked, so that it may be stored.
pub fn blank_credentials(value: &str) -> String {
    let blanks = blanks(value);
    String::from_utf8_lossy(&crate::splice(value.as_bytes(), &blanks)).into_owned()
}

/// Returns the credentials in a member of a request, such as its tools: the texts that [`blank_credentials`] does not
/// store.
pub fn credentials(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (range, _) in blanks(value) {
        let Some(text) = Json::parse(&value.as_bytes()[range])
            .ok()
            .and_then(Json::text)
        else {
            continue;
        };
        // A header may hold a scheme before its key.
        let key = text.rsplit(' ').next().unwrap_or_default();
        found.extend([text.to_string(), key.to_owned()]);
    }
    found
}

fn blanks(value: &str) -> Replacements {
    let mut blanks = Replacements::new();
    let mut rest: Vec<Json<'_>> = Json::parse(value.as_bytes()).into_iter().collect();
    while let Some(json) = rest.pop() {
        rest.extend(json.elements());
        for (name, value) in json.members() {
            let name = String::from_utf8_lossy(&name.name()).to_ascii_lowercase();
            let is = |names: &str| names.split_whitespace().any(|it| it == name);
            if is(CREDENTIALS) {
                blank_texts(value, &mut blanks);
            } else if is(ADDRESSES) && value.kind() == JsonKind::String {
                let public = public_address(&value.text().unwrap_or_default());
                blanks.extend(public.map(|public| (value.range(), quote(&public))));
            } else if !is(SCHEMAS) {
                rest.push(value);
            }
        }
    }
    blanks.sort_by_key(|(at, _)| at.start);
    blanks
}

/// Blanks all texts in a value.
fn blank_texts(value: Json<'_>, blanks: &mut Replacements) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value.kind() {
            JsonKind::String => blanks.push((value.range(), quote(""))),
            JsonKind::Object => rest.extend(value.members().map(|(_, value)| value)),
            JsonKind::Array => rest.extend(value.elements()),
            _ => {}
        }
    }
}

/// Returns an address without user and query, which may hold secrets; none if it has neither.
fn public_address(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let place = rest.split('?').next().unwrap_or(rest);
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    (host != authority || place != rest).then(|| format!("{scheme}://{host}{path}"))
}

/// Returns a chat message with only the members that every chat provider knows; `None` if it has no others.
///
/// Some providers refuse a message for members of another provider, with [`crate::ProviderError::PlainMessages`]. Then
/// the same messages are sent once more, plain. The remaining members keep their bytes. A refusal with no content
/// beside it becomes the content.
pub fn plain_chat(message: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(message).ok()?;
    let json = message.json();
    if message.form() != Form::Turn {
        return None;
    }
    let [role, calls, function, refusal] =
        json.pick(["role", "tool_calls", "function_call", "refusal"]);
    let is_function = role.is_some_and(|role| role.is("function"));
    let keeps = |name: Json<'_>| match &*name.name() {
        b"role" | b"content" | b"tool_calls" | b"tool_call_id" => true,
        b"name" => is_function,
        // The deprecated form of `tool_calls`; some clients send it beside those, as null.
        b"function_call" => function.is_some_and(|call| !call.is_null()),
        _ => false,
    };
    if json.members().all(|(name, _)| keeps(name)) {
        return None;
    }
    let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
    let mut content = None;
    let has_calls = calls.is_some_and(|calls| calls.elements().next().is_some());
    let is_absent = message.content().is_none_or(Json::is_null);
    if is_absent && !has_calls && function.is_none_or(Json::is_null) {
        let refusal = refusal.filter(|refusal| refusal.kind() == JsonKind::String);
        content = Some(refusal.map_or_else(|| quote(crate::EMPTY_PLACEHOLDER), raw));
    }
    let kept = json.members().filter(|(name, _)| keeps(*name));
    let kept = kept.filter(|(name, _)| content.is_none() || !name.is("content"));
    let mut members: Vec<String> = kept
        .map(|(name, value)| format!("{}:{}", raw(name), raw(value)))
        .collect();
    members.extend(content.iter().map(|text| format!(r#""content":{text}"#)));
    Some(format!("{{{}}}", members.join(",")).into_bytes())
}

/// Returns the texts of a system message, as JSON strings, without blank ones, which providers refuse.
pub fn system_texts(message: &Message<'_>) -> Vec<String> {
    let json = message.json();
    let Some(content) = message.content().or_else(|| json.get("parts")) else {
        return Vec::new();
    };
    let texts = strings(content).into_iter();
    texts
        .filter(|text| !Json::checked(text.as_bytes()).is_blank())
        .collect()
}

/// Returns a text, the texts of a list, or those of its blocks, as JSON strings.
pub fn strings(json: Json<'_>) -> Vec<String> {
    let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
    let text = |json: Json<'_>| match json.kind() {
        JsonKind::String => Some(raw(json)),
        _ => json
            .get("text")
            .filter(|text| text.kind() == JsonKind::String)
            .map(raw),
    };
    match json.kind() {
        JsonKind::Array => json.elements().filter_map(text).collect(),
        _ => text(json).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(frame: &RequestFrame) -> String {
        let request = frame.head() + RequestFrame::TAIL;
        assert!(Json::parse(request.as_bytes()).is_ok(), "{request}");
        request
    }

    fn full(wire: Wire) -> RequestFrame {
        RequestFrame {
            system: vec![r#""be brief""#.to_owned(), r#""caf\u00e9""#.to_owned()],
            tools: Some("[1]".to_owned()),
            tool_choice: Some(r#"{"a":1}"#.to_owned()),
            max_tokens: Some(100),
            temperature: Some(0.5),
            window: Some(8192),
            ..RequestFrame::new(wire, "m")
        }
    }

    #[test]
    fn a_head_says_what_its_wire_has_words_for() {
        let all: Vec<String> = Wire::ALL.map(|wire| whole(&full(wire))).to_vec();
        insta::assert_snapshot!(all.join("\n"), @r#"
        {"model":"m","stream":true,"max_tokens":100,"temperature":0.5,"stream_options":{"include_usage":true},"tools":[1],"tool_choice":{"a":1},"messages":[]}
        {"model":"m","stream":true,"max_output_tokens":100,"temperature":0.5,"store":false,"tools":[1],"tool_choice":{"a":1},"input":[]}
        {"model":"m","stream":true,"max_tokens":100,"temperature":0.5,"system":[{"type":"text","text":"be brief"},{"type":"text","text":"caf\u00e9","cache_control":{"type":"ephemeral"}}],"tools":[1],"tool_choice":{"a":1},"messages":[]}
        {"systemInstruction":{"parts":[{"text":"be brief"},{"text":"caf\u00e9"}]},"generationConfig":{"maxOutputTokens":100,"temperature":0.5},"tools":[1],"toolConfig":{"a":1},"contents":[]}
        {"model":"m","stream":true,"options":{"num_ctx":8192,"num_predict":100,"temperature":0.5},"tools":[1],"messages":[]}
        "#);
    }

    #[test]
    fn a_head_with_nothing_to_say_is_short() {
        let all: Vec<String> = Wire::ALL
            .map(|wire| whole(&RequestFrame::new(wire, "m")))
            .to_vec();
        insta::assert_snapshot!(all.join("\n"), @r#"
        {"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}
        {"model":"m","stream":true,"store":false,"input":[]}
        {"model":"m","stream":true,"max_tokens":4096,"messages":[]}
        {"contents":[]}
        {"model":"m","stream":true,"messages":[]}
        "#);
    }

    #[test]
    fn credentials_of_tools_are_blanked_and_nothing_else() {
        let tools = r#"[{"type":"mcp","server_url":"u","authorization":"s3cret","headers":{"X-Key":"s3cret", "Y":"s3cret"}},{"name":"get","input_schema":{"properties":{"headers":{"type":"object"}}}}]"#;
        insta::assert_snapshot!(blank_credentials(tools), @r#"[{"type":"mcp","server_url":"u","authorization":"","headers":{"X-Key":"", "Y":""}},{"name":"get","input_schema":{"properties":{"headers":{"type":"object"}}}}]"#);
        assert_eq!(blank_credentials("[]"), "[]");
        let deep = r#"{"tools":[{"mcpServers":[{"transport":{"Headers":{"a":"s3cret"},"url":"https://u:s3cret@h/p?token=s3cret"}}]},{"url":"https://h/p"}],"data_sources":[{"authentication":{"key":"s3cret"}}],"api_key":"s3cret","max_tokens":3,"n":"token"}"#;
        insta::assert_snapshot!(blank_credentials(deep), @r#"{"tools":[{"mcpServers":[{"transport":{"Headers":{"a":""},"url":"https://h/p"}}]},{"url":"https://h/p"}],"data_sources":[{"authentication":{"key":""}}],"api_key":"","max_tokens":3,"n":"token"}"#);
    }

    #[test]
    fn a_plain_message_has_what_every_chat_provider_knows() {
        let plain = |text: &str| {
            plain_chat(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        insta::assert_snapshot!(plain(r#"{"role":"assistant", "content":"caf\u00e9","reasoning_content":"hm","refusal":null,"tool_calls":[{"id":"a", "type":"function","function":{"name":"ls","arguments":"{}"}}],"annotations":[]}"#).unwrap(), @r#"{"role":"assistant","content":"caf\u00e9","tool_calls":[{"id":"a", "type":"function","function":{"name":"ls","arguments":"{}"}}]}"#);
        insta::assert_snapshot!(plain(r#"{"role":"tool","tool_call_id":"a","name":"ls","content":"x"}"#).unwrap(), @r#"{"role":"tool","tool_call_id":"a","content":"x"}"#);
        insta::assert_snapshot!(plain(r#"{"role":"assistant","content":null,"refusal":"no"}"#).unwrap(), @r#"{"role":"assistant","content":"no"}"#);
        insta::assert_snapshot!(plain(r#"{"role":"assistant","content":null,"reasoning":"hm"}"#).unwrap(), @r#"{"role":"assistant","content":"(empty)"}"#);
        for plain_already in [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"function","name":"f","content":"x"}"#,
            r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
            r#"{"type":"reasoning","id":"r","summary":[]}"#,
            "no JSON",
        ] {
            assert_eq!(plain(plain_already), None);
        }
    }

    #[test]
    fn a_system_prompt_has_no_blank_texts() {
        let texts = |text: &str| system_texts(&Message::parse(text.as_bytes()).unwrap());
        assert!(texts(r#"{"role":"system","content":" \n"}"#).is_empty());
        assert_eq!(
            texts(
                r#"{"role":"system","content":[{"type":"text","text":""},"a",{"type":"text","text":"b"}]}"#
            ),
            [r#""a""#, r#""b""#]
        );
        assert_eq!(
            texts(r#"{"role":"system","parts":[{"text":"\t"},{"text":"c"}]}"#),
            [r#""c""#]
        );
    }
}
