//! Calls a REST API that is no model's: any method, any headers, a response that is read whole.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Url;
use tokio::time::timeout;

use crate::Secret;
use crate::endpoint::without_secrets;
use crate::http::{HttpClients, NO_CERTIFICATES, Reach, root_cause};

/// The address of a REST API, and the token that is sent there and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct RestServer {
    base: Url,
    token: Option<Secret>,
    header: Option<(HeaderName, HeaderValue)>,
}

/// The error in an address or a token. The text contains neither a token nor a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestServerError {
    /// The base address is none.
    #[error("`{base}` is no address of a server: {reason}")]
    Base {
        /// The configured address, without a password.
        base: String,
        /// The error in the address.
        reason: String,
    },
    /// The token has characters that a header cannot hold.
    #[error("the token has a line break or another character that cannot be sent")]
    Token,
}

/// A request to a REST API.
#[derive(Clone, Debug)]
pub struct RestRequest {
    /// The method.
    pub method: Method,
    /// An address at the server, as [`RestServer::at`] or [`RestServer::linked`] returns it.
    pub url: RestUrl,
    /// Headers beside the token.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
}

/// An address at one server. Only a [`RestServer`] makes one, so that a token goes nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct RestUrl(Url);

/// The response to a request, with any status.
#[derive(Clone, Debug)]
pub struct RestResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

/// The reason that there is no response. No text contains a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestError {
    /// The request was not sent: nothing happened at the server.
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    /// The connection broke, or the server was silent: the request may have been carried out.
    #[error("{0}")]
    Broken(String),
    /// No client can be built, or the certificate is not trusted: a retry does not help.
    #[error("{0}")]
    Refused(String),
    /// The response is larger than allowed.
    #[error("its answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Calls REST APIs. One is enough for a process: it keeps connections open. It makes one attempt and
/// follows no redirect: whether to repeat a request depends on what it does.
#[derive(Debug)]
pub struct RestClient {
    clients: HttpClients,
    limits: RestLimits,
}

/// The limits of a response's time and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestLimits {
    /// The time for which the server may send nothing.
    pub idle: Duration,
    /// The time for the whole response.
    pub whole: Duration,
    /// The most bytes of a body.
    pub body_bytes: usize,
}

impl Default for RestLimits {
    fn default() -> RestLimits {
        RestLimits {
            idle: Duration::from_secs(30),
            whole: Duration::from_secs(180),
            body_bytes: 64 << 20,
        }
    }
}

impl RestServer {
    /// Creates a server. `header` makes the header that holds the token.
    pub fn new(
        base: &str,
        token: Option<Secret>,
        header: impl Fn(&str) -> (HeaderName, String),
    ) -> Result<RestServer, RestServerError> {
        let bad = |url: Option<&Url>, reason: &str| RestServerError::Base {
            base: url.map_or_else(|| shown_base(base), |url| without_secrets(url.clone())),
            reason: reason.to_owned(),
        };
        let mut url = Url::parse(base.trim()).map_err(|error| bad(None, &error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(
                Some(&url),
                "it starts with neither http:// nor https://",
            ));
        }
        if url.password().is_some() || !url.username().is_empty() {
            return Err(bad(Some(&url), "it holds a user or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad(Some(&url), "it has a query or a fragment"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let made = token.as_ref().map(|token| header(token.reveal()));
        let header = made.map(|(name, text)| {
            let mut value = HeaderValue::from_str(&text).map_err(|_| RestServerError::Token)?;
            value.set_sensitive(true);
            Ok((name, value))
        });
        Ok(RestServer {
            base: url,
            token,
            header: header.transpose()?,
        })
    }

    /// Returns the base address for display.
    pub fn base(&self) -> String {
        let base = without_secrets(self.base.clone());
        base.trim_end_matches('/').to_owned()
    }

    /// Returns host and port as they identify the server.
    pub fn host(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        match self.base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Says whether a token is known.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Says whether a token would travel unencrypted over a network.
    pub fn is_exposed(&self) -> bool {
        let reach = Reach::of(&self.base);
        !reach.is_local && !reach.is_secure
    }

    /// Returns the address of a path below the base. Segments and values are percent-encoded here; a
    /// segment that has to keep a slash is encoded too, as `%2F`.
    pub fn at(&self, segments: &[&str], query: &[(&str, &str)]) -> RestUrl {
        let mut url = self.base.clone();
        let encoded = segments.iter().map(|segment| encode_segment(segment));
        let path: Vec<String> = encoded.collect();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{}", path.join("/")));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        RestUrl(url)
    }

    /// Returns an address that the server itself named in answer to `from`; `None` if it is on another server.
    pub fn linked(&self, from: &RestUrl, link: &str) -> Option<RestUrl> {
        let url = from.0.join(link).ok()?;
        let is_same = url.origin() == self.base.origin();
        let is_plain = url.username().is_empty() && url.password().is_none();
        (is_same && is_plain).then_some(RestUrl(url))
    }

    /// Takes the token out of a text.
    pub fn redact(&self, text: &str) -> String {
        let token = self.token.as_ref().map(Secret::reveal);
        match token.filter(|token| token.len() >= MIN_TOKEN_BYTES) {
            Some(token) => text.replace(token, "(token)"),
            None => text.to_owned(),
        }
    }
}

/// Replacing a shorter text would leave no text.
const MIN_TOKEN_BYTES: usize = 4;

impl fmt::Debug for RestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RestServer");
        shown
            .field("base", &self.base())
            .field("token", &self.token);
        shown.finish()
    }
}

impl RestUrl {
    /// Returns the same address with another query.
    pub fn with_query_of(&self, link: &str) -> RestUrl {
        let mut url = self.0.clone();
        let query = link.split_once('?').map(|(_, query)| query);
        let query = query.map(|query| query.split('#').next().unwrap_or_default());
        url.set_query(query);
        RestUrl(url)
    }

    /// Returns the same address with one parameter of its query replaced.
    pub fn with_parameter(&self, name: &str, value: &str) -> RestUrl {
        let pairs: Vec<(String, String)> = self.0.query_pairs().into_owned().collect();
        let mut url = self.0.clone();
        let others = pairs.iter().filter(|(key, _)| key != name);
        url.query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .append_pair(name, value);
        RestUrl(url)
    }
}

impl fmt::Display for RestUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl fmt::Debug for RestUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Encodes one segment of a path. A segment of dots would be resolved away, and lead elsewhere.
fn encode_segment(segment: &str) -> String {
    // Parsers of addresses treat `%2E` as a dot too, so its percent sign is encoded as well: no repository has such a
    // name, and the server reports that.
    if !segment.is_empty() && segment.bytes().all(|byte| byte == b'.') {
        return segment.replace('.', "%252E");
    }
    crate::percent_encode(segment)
}

/// Returns the printable form of an invalid address: without the text before the last `@`, which may be a password.
fn shown_base(base: &str) -> String {
    let rest = base.rsplit_once('@').map_or(base, |(_, rest)| rest);
    rest.chars().filter(|c| !c.is_control()).take(100).collect()
}

impl RestClient {
    /// Creates a client with these limits.
    pub fn new(limits: RestLimits) -> RestClient {
        RestClient {
            clients: HttpClients::default(),
            limits,
        }
    }

    /// Sends a request once, and reads the whole response, whatever its status is.
    ///
    /// Dropping the future ends the request.
    pub async fn send(
        &self,
        to: &RestServer,
        request: RestRequest,
    ) -> Result<RestResponse, RestError> {
        let agent = concat!("infold/", env!("CARGO_PKG_VERSION"));
        let client = self.clients.get(Reach::of(&to.base), |builder| {
            builder.user_agent(agent).pool_idle_timeout(POOL_IDLE)
        });
        let client = client.map_err(|_| RestError::Refused(NO_CERTIFICATES.to_owned()))?;
        let mut headers = request.headers;
        headers.extend(to.header.clone());
        let mut prepared = client
            .request(request.method, request.url.0)
            .headers(headers);
        if let Some(body) = request.body {
            prepared = prepared.body(body);
        }
        let whole = timeout(self.limits.whole, self.receive(prepared)).await;
        let silent = |_| RestError::Broken("it did not answer in time".to_owned());
        whole.map_err(silent)?
    }

    async fn receive(&self, request: reqwest::RequestBuilder) -> Result<RestResponse, RestError> {
        let silent = |_| RestError::Broken("it was silent for too long".to_owned());
        let response = timeout(self.limits.idle, request.send()).await;
        let mut response = response.map_err(silent)?.map_err(|error| sort(&error))?;
        let limit = self.limits.body_bytes;
        let mut body = Vec::new();
        loop {
            let chunk = timeout(self.limits.idle, response.chunk()).await;
            let Some(bytes) = chunk.map_err(silent)?.map_err(|error| sort(&error))? else {
                break;
            };
            if body.len() + bytes.len() > limit {
                return Err(RestError::TooLarge { limit });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(RestResponse {
            status: response.status(),
            headers: response.headers().clone(),
            body,
        })
    }
}

/// Small servers close connections that are idle for 5 s.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// Classifies an error by its meaning for the request.
fn sort(error: &reqwest::Error) -> RestError {
    let cause = root_cause(error).unwrap_or_else(|| "the connection failed".to_owned());
    // A retry changes neither a certificate nor whether a server speaks TLS.
    let lasting = ["invalid peer certificate", "corrupt message"];
    if error.is_builder() || lasting.iter().any(|words| cause.contains(words)) {
        RestError::Refused(cause)
    } else if error.is_connect() {
        RestError::Unreached(cause)
    } else {
        RestError::Broken(format!("the connection broke: {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(base: &str, token: Option<&str>) -> Result<RestServer, RestServerError> {
        let token = token.map(|token| Secret::new(token.to_owned()));
        let header = |token: &str| (HeaderName::from_static("private-token"), token.to_owned());
        RestServer::new(base, token, header)
    }

    #[test]
    fn a_path_cannot_leave_its_place() {
        let server = server("https://host/api/v3/", None).expect("an address");
        let at = |segments: &[&str]| server.at(segments, &[]).to_string();
        assert_eq!(
            at(&["projects", "a/b c", "x?y#z"]),
            "https://host/api/v3/projects/a%2Fb%20c/x%3Fy%23z"
        );
        for dots in [".", "..", "..."] {
            let url = at(&["repos", dots, "user"]);
            assert!(url.starts_with("https://host/api/v3/repos/"), "{url}");
            assert!(url.ends_with("/user"), "{url}");
        }
        let query = server.at(&["i"], &[("labels", "a&b=c d")]).to_string();
        assert_eq!(query, "https://host/api/v3/i?labels=a%26b%3Dc+d");
    }

    #[test]
    fn a_link_to_another_server_is_none() {
        let server = server("https://host:8443/api", Some("canary-token")).expect("an address");
        let from = server.at(&["issues"], &[("page", "1"), ("labels", "x")]);
        let linked = |link| server.linked(&from, link).map(|url| url.to_string());
        assert_eq!(
            linked("/repositories/1/issues?page=2").as_deref(),
            Some("https://host:8443/repositories/1/issues?page=2")
        );
        for other in [
            "https://host/api/issues",
            "http://host:8443/api",
            "https://evil:8443/api",
            "//evil/api",
            "https://me@host:8443/api",
            "file:///etc/passwd",
        ] {
            assert_eq!(linked(other), None, "{other}");
        }
        let next = from.with_query_of("https://evil/else?page=2&labels=x#f");
        assert_eq!(
            next.to_string(),
            "https://host:8443/api/issues?page=2&labels=x"
        );
        let next = from.with_parameter("page", "3");
        assert_eq!(
            next.to_string(),
            "https://host:8443/api/issues?labels=x&page=3"
        );
    }

    #[test]
    fn bad_bases_and_tokens_are_refused_without_being_shown() {
        for base in [
            "ftp://host",
            "host/api",
            "",
            "https://me:canary-pass@host",
            "https://host?x=1",
        ] {
            let error = server(base, None).expect_err(base).to_string();
            assert!(!error.contains("canary"), "{error}");
        }
        let error = server("https://host", Some("canary\ntoken")).expect_err("a line break");
        assert!(!format!("{error} {error:?}").contains("canary"));
        let server = server("https://host", Some("canary-token")).expect("an address");
        assert!(!format!("{server:?}").contains("canary"));
        assert_eq!(server.redact("sent canary-token!"), "sent (token)!");
    }
}
