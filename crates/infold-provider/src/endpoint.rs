//! The address of a provider's API, and the paths and headers of its calls.

use std::borrow::Cow;
use std::fmt;

use infold_wire::Wire;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::Secret;
use crate::http::Reach;

/// The address of a provider, and the API it speaks.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's name in the configuration.
    pub name: String,
    /// The form of its messages.
    pub wire: Wire,
    api: ApiKind,
    /// The base address with the version; a query in the configured address is kept.
    base: Url,
    key: Option<Secret>,
}

/// The reason that an endpoint is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The API is unknown.
    #[error("`{name}` has the unknown API `{api}` (known: {})", APIS.join(", "))]
    Api {
        /// The provider.
        name: String,
        /// The API as configured.
        api: String,
    },
    /// The address is invalid. It is not repeated: it may hold a password.
    #[error("`base_url` of `{name}` is no HTTP address: {reason}")]
    Address {
        /// The provider.
        name: String,
        /// The error in the address.
        reason: String,
    },
    /// The key cannot be sent.
    #[error("the key of `{name}` has characters that no header can hold")]
    Key {
        /// The provider.
        name: String,
    },
}

/// The names of the APIs, which are also names of providers.
pub const APIS: [&str; 6] = [
    "openai",
    "responses",
    "anthropic",
    "gemini",
    "ollama",
    "lmstudio",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApiKind {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    LmStudio,
}

impl ApiKind {
    /// The kinds in the order of [`APIS`].
    const ALL: [ApiKind; 6] = {
        use ApiKind::{Anthropic, Gemini, LmStudio, Ollama, OpenAi, Responses};
        [OpenAi, Responses, Anthropic, Gemini, Ollama, LmStudio]
    };

    fn from_name(name: &str) -> Option<ApiKind> {
        let position = APIS.iter().position(|known| *known == name)?;
        Some(ApiKind::ALL[position])
    }

    fn wire(self) -> Wire {
        match self {
            ApiKind::OpenAi | ApiKind::LmStudio => Wire::Chat,
            ApiKind::Responses => Wire::Responses,
            ApiKind::Anthropic => Wire::Anthropic,
            ApiKind::Gemini => Wire::Gemini,
            ApiKind::Ollama => Wire::Ollama,
        }
    }

    /// Returns the address of the API's own service, or the usual local one.
    fn home(self) -> &'static str {
        match self {
            ApiKind::OpenAi | ApiKind::Responses => "https://api.openai.com/v1",
            ApiKind::Anthropic => "https://api.anthropic.com/v1",
            ApiKind::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            ApiKind::Ollama => "http://127.0.0.1:11434/api",
            ApiKind::LmStudio => "http://127.0.0.1:1234/v1",
        }
    }

    /// Returns the last segment of a base's path.
    fn version(self) -> &'static str {
        match self {
            ApiKind::Gemini => "v1beta",
            ApiKind::Ollama => "api",
            _ => "v1",
        }
    }

    /// Returns the path and the query of a call, below the base.
    fn call(self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        let path = match self {
            ApiKind::OpenAi | ApiKind::LmStudio => "/chat/completions",
            ApiKind::Responses => "/responses",
            ApiKind::Anthropic => "/messages",
            ApiKind::Ollama => "/chat",
            ApiKind::Gemini => {
                let (verb, query) = if stream {
                    ("streamGenerateContent", Some("alt=sse"))
                } else {
                    ("generateContent", None)
                };
                let (folder, name) = match model.split_once('/') {
                    Some((folder @ ("models" | "tunedModels"), name)) => (folder, name),
                    _ => ("models", model),
                };
                return (format!("/{folder}/{}:{verb}", percent_encode(name)), query);
            }
        };
        (path.to_owned(), None)
    }

    /// Returns the path and the query of the list of models, below the base.
    fn list(self) -> (&'static str, Option<&'static str>) {
        match self {
            ApiKind::OpenAi | ApiKind::Responses | ApiKind::LmStudio => ("/models", None),
            ApiKind::Anthropic => ("/models", Some("limit=1000")),
            ApiKind::Gemini => ("/models", Some("pageSize=1000")),
            ApiKind::Ollama => ("/tags", None),
        }
    }

    /// Returns the path of a request for embeddings, below the base; none if the API has none.
    fn embeddings(self, model: &str) -> Option<String> {
        Some(match self {
            ApiKind::OpenAi | ApiKind::Responses | ApiKind::LmStudio => "/embeddings".to_owned(),
            ApiKind::Ollama => "/embed".to_owned(),
            ApiKind::Gemini => {
                let name = model.strip_prefix("models/").unwrap_or(model);
                format!("/models/{}:batchEmbedContents", percent_encode(name))
            }
            ApiKind::Anthropic => return None,
        })
    }

    /// Returns the endings that people copy along with a base.
    fn copied_endings(self) -> &'static [&'static str] {
        match self {
            ApiKind::OpenAi | ApiKind::LmStudio => &["/chat/completions"],
            ApiKind::Responses => &["/responses"],
            ApiKind::Anthropic => &["/messages"],
            ApiKind::Gemini => &["/models"],
            ApiKind::Ollama => &["/api/chat", "/api", "/v1"],
        }
    }
}

impl Endpoint {
    /// Creates an endpoint; `api` is openai, responses, anthropic, gemini, ollama or lmstudio.
    ///
    /// A base may have its version (`/v1`, `/v1beta`, Ollama's `/api`) or lack it. One with another version
    /// (`/api/paas/v4`) is used unchanged.
    pub fn new(
        name: &str,
        api: &str,
        base_url: Option<&str>,
        key: Option<Secret>,
    ) -> Result<Endpoint, EndpointError> {
        let name = name.to_owned();
        let Some(kind) = ApiKind::from_name(api) else {
            let api = api.to_owned();
            return Err(EndpointError::Api { name, api });
        };
        let base = match parse_base(kind, base_url.unwrap_or(kind.home())) {
            Ok(base) => base,
            Err(reason) => return Err(EndpointError::Address { name, reason }),
        };
        // Files and variables end in a line break more often than keys do.
        let key = key.map(|key| Secret::new(key.reveal().trim().to_owned()));
        let key = key.filter(|key| !key.reveal().is_empty());
        let is_invalid = |key: &Secret| header(key.reveal()).is_none();
        if key.as_ref().is_some_and(is_invalid) {
            return Err(EndpointError::Key { name });
        }
        Ok(Endpoint {
            name,
            wire: kind.wire(),
            api: kind,
            base,
            key,
        })
    }

    /// Returns the address of calls for display, without passwords and query.
    pub fn url(&self, model: &str, stream: bool) -> String {
        without_secrets(self.target(model, stream))
    }

    /// Returns the base address for display.
    pub fn base(&self) -> String {
        without_secrets(self.base.clone())
    }

    /// Says whether this is OpenAI's own service, where some parameters have other names.
    pub fn is_openai_itself(&self) -> bool {
        matches!(self.api, ApiKind::OpenAi | ApiKind::Responses) && self.is_home()
    }

    /// Says whether it answers only with a key, as the services of the API's makers do.
    pub fn needs_key(&self) -> bool {
        !matches!(self.api, ApiKind::Ollama | ApiKind::LmStudio) && self.is_home()
    }

    /// Says whether it runs on this machine.
    pub fn is_local(&self) -> bool {
        self.reach().is_local
    }

    /// Returns the properties of its connections.
    pub(crate) fn reach(&self) -> Reach {
        Reach::of(&self.base)
    }

    /// Returns all that must not be printed: the key, and passwords and keys in the address.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Cow<'_, str>> {
        const NAMES: [&str; 6] = ["key", "token", "secret", "sig", "auth", "pass"];
        let key = self.key.iter().map(|key| Cow::Borrowed(key.reveal()));
        let password = self.base.password().into_iter();
        let password = password.flat_map(|it| [Cow::Borrowed(it), percent_decode(it).into()]);
        let query = self.base.query_pairs().filter_map(|(name, value)| {
            let name = name.to_lowercase();
            NAMES.iter().any(|it| name.contains(it)).then_some(value)
        });
        key.chain(password).chain(query)
    }

    /// Returns the address of calls.
    pub(crate) fn target(&self, model: &str, stream: bool) -> Url {
        let (path, query) = self.api.call(model, stream);
        self.at(&path, query)
    }

    /// Returns the address of requests for embeddings; none if the API has none.
    pub(crate) fn embeddings(&self, model: &str) -> Option<Url> {
        let path = self.api.embeddings(model)?;
        Some(self.at(&path, None))
    }

    /// Returns the path and the query of a call, as a client of this API writes them.
    pub fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        let (path, query) = self.api.call(model, stream);
        (format!("/{}{path}", self.api.version()), query)
    }

    /// Returns the path and the query of the list of models, as a client of this API writes them.
    pub fn list_path(&self) -> (String, Option<&'static str>) {
        let (path, query) = self.api.list();
        (format!("/{}{path}", self.api.version()), query)
    }

    /// Returns the addresses of lists of models, best first.
    pub(crate) fn lists(&self) -> Vec<Url> {
        let (path, query) = self.api.list();
        let mut lists = vec![self.at(path, query)];
        if self.api == ApiKind::LmStudio {
            // LM Studio's own list has the windows.
            let mut own = self.base.clone();
            let path = own.path().trim_end_matches("/v1").to_owned();
            own.set_path(&format!("{path}/api/v0/models"));
            lists.insert(0, own);
        }
        lists
    }

    /// Returns the address to forward a client's request to.
    ///
    /// Bases have a version or lack it, and clients have one of their own.
    pub(crate) fn forward_url(&self, path: &str, query: Option<&str>) -> Url {
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
        let keeps_version = self.api == ApiKind::Gemini && own.starts_with("v1");
        let version = if keeps_version { first } else { own };
        // Gemini's address of OpenAI's API has Gemini's version, which must not be replaced.
        let other = self.api == ApiKind::Ollama || rest.starts_with("openai/");
        let path = if !is_version(first) || other {
            format!("{root}/{path}")
        } else if own.is_empty() {
            format!("{root}/{rest}")
        } else {
            format!("{root}/{version}/{rest}")
        };
        url.set_path(&path);
        add_query(&mut url, query);
        url
    }

    /// Returns the header that holds the key, if there is one.
    pub fn key(&self) -> Option<(HeaderName, HeaderValue)> {
        self.key_header(self.key.as_ref()?.reveal())
    }

    /// Returns the header in which this API takes a key.
    pub fn key_header(&self, key: &str) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self.api {
            ApiKind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            ApiKind::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            _ => (AUTHORIZATION, format!("Bearer {key}")),
        };
        Some((name, header(&text)?))
    }

    /// Returns the headers of every call, the key among them if there is one.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.api == ApiKind::Anthropic {
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
        add_query(&mut url, query);
        url
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base", &without_secrets(self.base.clone()))
            .field("key", &self.key)
            .finish()
    }
}

/// Appends a query to that of the base.
fn add_query(url: &mut Url, query: Option<&str>) {
    if let Some(query) = query {
        let joined = url.query().map(|own| format!("{own}&{query}"));
        url.set_query(Some(joined.as_deref().unwrap_or(query)));
    }
}

/// Returns an address without user, password and query.
pub(crate) fn without_secrets(mut url: Url) -> String {
    // These fail only for addresses without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let is_sse = url.query() == Some("alt=sse");
    url.set_query(is_sse.then_some("alt=sse"));
    url.into()
}

/// Parses a base address into the form that paths are appended to.
fn parse_base(api: ApiKind, given: &str) -> Result<Url, String> {
    let mut url = Url::parse(given.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it starts with neither http:// nor https://".to_owned());
    }
    url.set_fragment(None);
    let mut path = url.path().trim_end_matches('/');
    for ending in api.copied_endings() {
        path = path.strip_suffix(ending).unwrap_or(path);
        path = path.trim_end_matches('/');
    }
    let mut path = path.to_owned();
    if api == ApiKind::Ollama || !path.split('/').any(is_version) {
        path = format!("{path}/{}", api.version());
    }
    url.set_path(&path);
    Ok(url)
}

/// Says whether a segment of a path is a version: v1, v1beta, v4.
fn is_version(part: &str) -> bool {
    let rest = part.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Encodes a name for a path: a `?` or `/` in it must not change where a request goes.
pub fn percent_encode(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

/// Decodes a part of an address; percent signs that encode nothing are kept.
pub fn percent_decode(text: &str) -> String {
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
            // A client's path behind a bare host is passed on unchanged.
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
            // A path without a version is put beside it.
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
            assert_eq!(
                to.forward_url(path, None).path(),
                place,
                "{api} {base} {path}"
            );
        }
        let to = Endpoint::new("x", "openai", Some("http://host?a=1"), None).unwrap();
        assert_eq!(
            to.forward_url("/v1/x", Some("b=2")).query(),
            Some("a=1&b=2")
        );
    }
}
