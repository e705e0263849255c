use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use infold_wire::Wire;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::Secret;

/// Where a provider is, and how it is spoken to.
#[derive(Clone)]
pub struct Endpoint {
    /// What it is called in the configuration.
    pub name: String,
    /// The form of its messages.
    pub wire: Wire,
    api: Api,
    /// Up to the version; the query of the address as given is kept.
    base: Url,
    key: Option<Secret>,
}

/// Why a provider cannot be spoken to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// There is no such API.
    #[error("`{name}` speaks no API `{api}` (known: {})", Api::NAMES.join(", "))]
    Api {
        /// The provider.
        name: String,
        /// What it is said to speak.
        api: String,
    },
    /// The address is none. It is not repeated: it may hold a password.
    #[error("`base_url` of `{name}` is no address of the web: {reason}")]
    Address {
        /// The provider.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key cannot be sent.
    #[error("the key of `{name}` has characters that no key has")]
    Key {
        /// The provider.
        name: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    LmStudio,
}

impl Api {
    const ALL: [Api; 6] = [
        Api::OpenAi,
        Api::Responses,
        Api::Anthropic,
        Api::Gemini,
        Api::Ollama,
        Api::LmStudio,
    ];
    const NAMES: [&str; 6] = [
        "openai",
        "responses",
        "anthropic",
        "gemini",
        "ollama",
        "lmstudio",
    ];

    fn named(name: &str) -> Option<Api> {
        let at = Api::NAMES.iter().position(|known| *known == name)?;
        Some(Api::ALL[at])
    }

    fn wire(self) -> Wire {
        match self {
            Api::OpenAi | Api::LmStudio => Wire::Chat,
            Api::Responses => Wire::Responses,
            Api::Anthropic => Wire::Anthropic,
            Api::Gemini => Wire::Gemini,
            Api::Ollama => Wire::Ollama,
        }
    }

    /// Where it is when nothing else is said.
    fn home(self) -> &'static str {
        match self {
            Api::OpenAi | Api::Responses => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com/v1",
            Api::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Api::Ollama => "http://127.0.0.1:11434/api",
            Api::LmStudio => "http://127.0.0.1:1234/v1",
        }
    }

    /// What the path of a base ends with.
    fn version(self) -> &'static str {
        match self {
            Api::Gemini => "v1beta",
            Api::Ollama => "api",
            _ => "v1",
        }
    }

    /// What people copy along with a base.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Api::OpenAi | Api::LmStudio => &["/chat/completions"],
            Api::Responses => &["/responses"],
            Api::Anthropic => &["/messages"],
            Api::Gemini => &["/models"],
            Api::Ollama => &["/api/chat", "/api", "/v1"],
        }
    }
}

impl Endpoint {
    /// Describes a provider; `api` is openai, responses, anthropic, gemini, ollama or lmstudio.
    ///
    /// A base may have its version (`/v1`, `/v1beta`, Ollama's `/api`) or lack it. One with
    /// another version (`/api/paas/v4`) is taken as it is.
    pub fn new(
        name: &str,
        api: &str,
        base_url: Option<&str>,
        key: Option<Secret>,
    ) -> Result<Endpoint, EndpointError> {
        let name = name.to_owned();
        let Some(known) = Api::named(api) else {
            let api = api.to_owned();
            return Err(EndpointError::Api { name, api });
        };
        let base = match base(known, base_url.unwrap_or(known.home())) {
            Ok(base) => base,
            Err(reason) => return Err(EndpointError::Address { name, reason }),
        };
        // Files and variables end in a line break more often than keys do.
        let key = key.map(|key| Secret::new(key.reveal().trim().to_owned()));
        let key = key.filter(|key| !key.reveal().is_empty());
        if key
            .as_ref()
            .is_some_and(|key| header(key.reveal()).is_none())
        {
            return Err(EndpointError::Key { name });
        }
        Ok(Endpoint {
            name,
            wire: known.wire(),
            api: known,
            base,
            key,
        })
    }

    /// Returns where requests are posted, for people: without what the base has of passwords and query.
    pub fn url(&self, model: &str, stream: bool) -> String {
        public(self.target(model, stream))
    }

    /// Returns where the provider is, for people.
    pub fn base(&self) -> String {
        public(self.base.clone())
    }

    /// Says whether this is OpenAI's own service, where some parameters have other names.
    pub fn is_openai_itself(&self) -> bool {
        matches!(self.api, Api::OpenAi | Api::Responses) && self.is_home()
    }

    /// Says whether it answers only with a key: the services of the makers do.
    pub fn needs_key(&self) -> bool {
        !matches!(self.api, Api::Ollama | Api::LmStudio) && self.is_home()
    }

    /// Says whether it runs on this machine.
    pub fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// All that must not be printed: the key, and what the address holds of passwords and keys.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Cow<'_, str>> {
        const NAMES: [&str; 6] = ["key", "token", "secret", "sig", "auth", "pass"];
        let key = self.key.iter().map(|key| Cow::Borrowed(key.reveal()));
        let password = self.base.password().into_iter();
        let password = password.flat_map(|it| [Cow::Borrowed(it), unescaped(it).into()]);
        let query = self.base.query_pairs().filter_map(|(name, value)| {
            let name = name.to_lowercase();
            NAMES.iter().any(|it| name.contains(it)).then_some(value)
        });
        key.chain(password).chain(query)
    }

    /// Where requests are posted.
    pub(crate) fn target(&self, model: &str, stream: bool) -> Url {
        match self.api {
            Api::OpenAi | Api::LmStudio => self.at("/chat/completions", None),
            Api::Responses => self.at("/responses", None),
            Api::Anthropic => self.at("/messages", None),
            Api::Ollama => self.at("/chat", None),
            Api::Gemini => {
                let (verb, query) = verb(stream);
                let (folder, name) = folder(model);
                self.at(&format!("/{folder}/{}:{verb}", escaped(name)), query)
            }
        }
    }

    /// The path and the query of a call, as a client of this API writes them.
    pub fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        match self.api {
            Api::OpenAi | Api::LmStudio => ("/v1/chat/completions".to_owned(), None),
            Api::Responses => ("/v1/responses".to_owned(), None),
            Api::Anthropic => ("/v1/messages".to_owned(), None),
            Api::Ollama => ("/api/chat".to_owned(), None),
            Api::Gemini => {
                let (verb, query) = verb(stream);
                let (folder, name) = folder(model);
                let path = format!("/v1beta/{folder}/{}:{verb}", escaped(name));
                (path, query)
            }
        }
    }

    /// The path and the query of the list of models, as a client of this API writes them.
    pub fn list_path(&self) -> (&'static str, Option<&'static str>) {
        match self.api {
            Api::OpenAi | Api::Responses | Api::LmStudio => ("/v1/models", None),
            Api::Anthropic => ("/v1/models", Some("limit=1000")),
            Api::Gemini => ("/v1beta/models", Some("pageSize=1000")),
            Api::Ollama => ("/api/tags", None),
        }
    }

    /// Where the list of models is, best first.
    pub(crate) fn lists(&self) -> Vec<Url> {
        match self.api {
            Api::OpenAi | Api::Responses => vec![self.at("/models", None)],
            Api::Anthropic => vec![self.at("/models", Some("limit=1000"))],
            Api::Gemini => vec![self.at("/models", Some("pageSize=1000"))],
            Api::Ollama => vec![self.at("/tags", None)],
            // Its own list has the windows.
            Api::LmStudio => {
                let mut own = self.base.clone();
                let path = own.path().trim_end_matches("/v1").to_owned();
                own.set_path(&format!("{path}/api/v0/models"));
                vec![own, self.at("/models", None)]
            }
        }
    }

    /// Where a request goes that a client made to this API elsewhere.
    ///
    /// Bases have a version or lack it, and clients have one of their own.
    pub(crate) fn place(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/');
        let (root, own) = match base.rsplit_once('/') {
            Some((root, last)) if is_version(last) || last == self.api.version() => (root, last),
            _ => (base, ""),
        };
        // A client may have the whole path of the base in its own.
        let path = match path.strip_prefix(root) {
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        };
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        // Gemini has several versions side by side, and a client knows which one it means.
        let version = match self.api == Api::Gemini && own.starts_with("v1") {
            true => first,
            false => own,
        };
        // Gemini's address of OpenAI's API has Gemini's version, which is not the one to replace.
        let other = self.api == Api::Ollama || rest.starts_with("openai/");
        let path = match is_version(first) && !other {
            true if own.is_empty() => format!("{root}/{rest}"),
            true => format!("{root}/{version}/{rest}"),
            false => format!("{root}/{path}"),
        };
        url.set_path(&path);
        if let Some(query) = query {
            let own = url.query().map(|own| format!("{own}&{query}"));
            url.set_query(Some(own.as_deref().unwrap_or(query)));
        }
        url
    }

    /// The header that holds the key, if there is one.
    pub fn key(&self) -> Option<(HeaderName, HeaderValue)> {
        self.spelled(self.key.as_ref()?.reveal())
    }

    /// The header in which this API takes a key.
    pub fn spelled(&self, key: &str) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self.api {
            Api::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Api::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            _ => (AUTHORIZATION, format!("Bearer {key}")),
        };
        Some((name, header(&text)?))
    }

    /// The headers that every call has, the key among them if there is one.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.api == Api::Anthropic {
            let version = HeaderName::from_static("anthropic-version");
            headers.insert(version, HeaderValue::from_static("2023-06-01"));
        }
        headers.extend(self.key());
        headers
    }

    fn is_home(&self) -> bool {
        let home = Url::parse(self.api.home()).ok();
        home.is_some_and(|home| home.host_str() == self.base.host_str())
    }

    fn at(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        if let Some(query) = query {
            let own = url.query().map(|own| format!("{own}&{query}"));
            url.set_query(Some(own.as_deref().unwrap_or(query)));
        }
        url
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base", &public(self.base.clone()))
            .field("key", &self.key)
            .finish()
    }
}

/// Gemini's names for a call, and what it is asked for with it.
fn verb(stream: bool) -> (&'static str, Option<&'static str>) {
    match stream {
        true => ("streamGenerateContent", Some("alt=sse")),
        false => ("generateContent", None),
    }
}

/// Where Gemini has a model, and what it is called there.
fn folder(model: &str) -> (&str, &str) {
    match model.split_once('/') {
        Some((folder @ ("models" | "tunedModels"), name)) => (folder, name),
        _ => ("models", model),
    }
}

/// An address without what may be secret in it.
pub(crate) fn public(mut url: Url) -> String {
    // These fail only for addresses that have no host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let known = url
        .query()
        .filter(|query| *query == "alt=sse")
        .map(str::to_owned);
    url.set_query(known.as_deref());
    url.into()
}

/// Brings a base to the form that paths are appended to.
fn base(api: Api, given: &str) -> Result<Url, String> {
    let mut url = Url::parse(given.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it starts with neither http:// nor https://".to_owned());
    }
    url.set_fragment(None);
    let mut path = url.path().trim_end_matches('/');
    for ending in api.endings() {
        path = path
            .strip_suffix(ending)
            .unwrap_or(path)
            .trim_end_matches('/');
    }
    let versioned = api != Api::Ollama && path.split('/').any(is_version);
    let path = match versioned {
        true => path.to_owned(),
        false => format!("{path}/{}", api.version()),
    };
    url.set_path(&path);
    Ok(url)
}

/// Says whether part of a path is a version: v1, v1beta, v4.
fn is_version(part: &str) -> bool {
    let rest = part.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// A name in a path. It is somebody's text: a `?` or `/` in it must not change where a request goes.
pub fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte);
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        match plain(byte) {
            true => path.push(char::from(byte)),
            false => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// What percent signs in a part of an address stand for; what they do not is left.
pub fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    value.to_str().is_ok().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_ask_for_is_found_at_another_base() {
        for (api, base, path, place) in [
            ("openai", "", "/v1/chat/completions", "/v1/chat/completions"),
            ("openai", "/v1/", "/v1/models", "/v1/models"),
            ("openai", "/up", "/v1/models", "/up/v1/models"),
            ("openai", "/up/v4", "/v1/models", "/up/v4/models"),
            (
                "openai",
                "/v1beta/openai",
                "/v1/models",
                "/v1beta/openai/models",
            ),
            // A path that a client has behind the host alone is passed on as it is.
            ("openai", "", "/openai/v1/responses", "/openai/v1/responses"),
            (
                "openai",
                "",
                "/v1beta/openai/chat/completions",
                "/v1beta/openai/chat/completions",
            ),
            (
                "openai",
                "/v1beta/openai",
                "/v1beta/openai/chat/completions",
                "/v1beta/openai/chat/completions",
            ),
            (
                "openai",
                "/openai",
                "/openai/deployments/d/chat/completions",
                "/openai/deployments/d/chat/completions",
            ),
            ("openai", "/api/v1", "/api/v1/models", "/api/v1/models"),
            ("openai", "/ap", "/api/v1/models", "/ap/api/v1/models"),
            // What has no version is beside it.
            ("openai", "/up/v1", "/props", "/up/props"),
            (
                "anthropic",
                "",
                "/v1/messages/count_tokens",
                "/v1/messages/count_tokens",
            ),
            // A client knows which of Gemini's versions it means.
            ("gemini", "", "/v1/models/m:x", "/v1/models/m:x"),
            ("gemini", "/v1", "/v1beta/models/m:x", "/v1beta/models/m:x"),
            ("ollama", "", "/api/tags", "/api/tags"),
            ("ollama", "/up/v1", "/api/tags", "/up/api/tags"),
        ] {
            let url = format!("http://host{base}");
            let to = Endpoint::new("x", api, Some(&url), None).unwrap();
            assert_eq!(to.place(path, None).path(), place, "{api} {base} {path}");
        }
        let to = Endpoint::new("x", "openai", Some("http://host?a=1"), None).unwrap();
        assert_eq!(to.place("/v1/x", Some("b=2")).query(), Some("a=1&b=2"));
    }
}
