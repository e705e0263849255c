//! Header rules: which requests are accepted, and which headers are forwarded.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    HeaderValue, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use infold_provider::{Endpoint, Secret, percent_decode};
use infold_wire::request_options::is_long_context_beta;

/// The headers that hold keys, on any wire.
pub(crate) const KEYS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// Says whether a header is about one connection, or one message on it.
fn is_hop(name: &HeaderName) -> bool {
    const HOP: [HeaderName; 8] = [
        CONNECTION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        CONTENT_LENGTH,
    ];
    HOP.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// The headers that `Connection` names: they too are about this connection.
fn named(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONNECTION).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    let usual = |name: &String| matches!(name.as_str(), "" | "close" | "keep-alive");
    names.filter(|name| !usual(name)).collect()
}

/// Returns the client's headers that are forwarded to the provider.
///
/// If `reads`, the reply is parsed here, and is requested without content coding.
pub(crate) fn outward(
    headers: &HeaderMap,
    uri: &Uri,
    to: &Endpoint,
    token: Option<&AccessToken>,
    reads: bool,
) -> HeaderMap {
    let named = named(headers);
    let own = to.key().filter(|_| !has_key(headers, uri, token));
    let mut out = HeaderMap::with_capacity(headers.len() + 2);
    for (name, value) in headers {
        let ours = name.as_str().starts_with("x-infold-");
        let replaced = *name == HOST
            || *name == EXPECT
            || reads && *name == ACCEPT_ENCODING
            || KEYS.contains(name)
                && (own.is_some() || token.is_some_and(|token| token.is_in(value)));
        let dropped = named.iter().any(|one| one == name.as_str());
        if !is_hop(name) && !ours && !replaced && !dropped {
            out.append(name.clone(), value.clone());
        }
    }
    if reads {
        out.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    out.extend(own);
    out
}

/// Returns the headers of a provider that go to the client.
pub(crate) fn inward(headers: &HeaderMap) -> HeaderMap {
    let named = named(headers);
    let mut out = HeaderMap::with_capacity(headers.len() + 4);
    for (name, value) in headers {
        // The provider must not decide which sites may read the reply, nor announce other addresses of this server.
        let text = name.as_str();
        let not_theirs = text == "alt-svc"
            || text.starts_with("x-infold-")
            || text.starts_with("access-control-");
        let hop = is_hop(name) && *name != CONTENT_LENGTH;
        if !hop && !not_theirs && !named.iter().any(|one| one == text) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// Returns a query for the provider, without the token of this server.
pub(crate) fn query(uri: &Uri, token: Option<&AccessToken>) -> Option<String> {
    let query = uri.query()?;
    let Some(token) = token else {
        return Some(query.to_owned());
    };
    let ours = |pair: &&str| {
        let value = pair.split_once('=').map_or("", |(_, value)| value);
        !token.is(value.as_bytes())
    };
    let kept: Vec<&str> = query.split('&').filter(ours).collect();
    Some(kept.join("&")).filter(|query| !query.is_empty())
}

/// The keys of a request. Some providers repeat them in errors, and they must not be written to disk.
#[derive(Debug, Default)]
pub(crate) struct ClientKeys {
    of_client: Vec<Secret>,
    to: Option<Arc<Endpoint>>,
}

impl ClientKeys {
    /// The keys that a client sends, and our own.
    pub fn of(headers: &HeaderMap, uri: &Uri, to: &Arc<Endpoint>) -> ClientKeys {
        /// A shorter one is no secret, and replacing it would leave no text.
        const SHORTEST: usize = 4;
        let names = KEYS;
        let values = names.iter().flat_map(|name| headers.get_all(name));
        let values = values.filter_map(|value| std::str::from_utf8(key(value.as_bytes())).ok());
        let query = uri.query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.strip_prefix("key="));
        let mut of_client: Vec<String> = values.chain(query.clone()).map(str::to_owned).collect();
        of_client.extend(query.map(percent_decode));
        of_client.retain(|secret| secret.len() >= SHORTEST);
        ClientKeys {
            of_client: of_client.into_iter().map(Secret::new).collect(),
            to: Some(Arc::clone(to)),
        }
    }

    /// Returns a text without the keys.
    pub fn taken_out_of(&self, text: &str) -> String {
        let mut text = match &self.to {
            Some(to) => infold_provider::redact_keys(to, text),
            None => text.to_owned(),
        };
        for secret in &self.of_client {
            text = text.replace(secret.reveal(), "(key)");
        }
        text
    }
}

/// Says whether a client has a key of its own, not a placeholder.
fn has_key(headers: &HeaderMap, uri: &Uri, token: Option<&AccessToken>) -> bool {
    let real = |value: &HeaderValue| {
        !is_placeholder(key(value.as_bytes())) && !token.is_some_and(|token| token.is_in(value))
    };
    let query = uri.query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("key="));
    let own = |key: &str| token.is_some_and(|token| token.is(key.as_bytes()));
    in_query.is_some_and(|key| !is_placeholder(key.as_bytes()) && !own(key))
        || KEYS
            .iter()
            .any(|name| headers.get_all(name).iter().any(real))
}

/// Placeholders that people write where a key is required and none is needed.
fn is_placeholder(key: &[u8]) -> bool {
    const KNOWN: [&str; 9] = [
        "sk-no-key-required",
        "lm-studio",
        "placeholder",
        "not-needed",
        "not-used",
        "no-key-needed",
        "your-api-key",
        "sk-dummy",
        "dummy-key",
    ];
    // No provider's key is that short.
    key.len() < 8
        || KNOWN
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(key))
}

/// Says whether headers ask for a window of a million tokens.
pub(crate) fn asks_for_long_context(headers: &HeaderMap) -> bool {
    let values = headers.get_all("anthropic-beta").iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(is_long_context_beta)
}

/// Decides which requests are accepted.
///
/// Browsers are the danger on loopback: a page may send requests to any address, and its own
/// name may be made to mean this machine.
#[derive(Debug)]
pub(crate) struct AccessPolicy {
    address: SocketAddr,
    names: Vec<String>,
    token: Option<AccessToken>,
}

/// The token that clients must send.
#[derive(Clone, Debug)]
pub(crate) struct AccessToken(Secret);

/// The reason that a request is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessDenied {
    pub status: StatusCode,
    pub why: &'static str,
}

fn refuse(status: StatusCode, why: &'static str) -> Result<(), AccessDenied> {
    Err(AccessDenied { status, why })
}

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const TOKEN: HeaderName = HeaderName::from_static("x-infold-token");

impl AccessPolicy {
    pub fn new(address: SocketAddr, names: Vec<String>, token: Option<Secret>) -> AccessPolicy {
        AccessPolicy {
            address,
            names,
            token: token.map(AccessToken),
        }
    }

    pub fn token(&self) -> Option<&AccessToken> {
        self.token.as_ref()
    }

    /// Admits a request, or returns the reason that it is refused.
    ///
    /// If `keyed`, the provider's key comes from our configuration: then the token may be in the headers in which
    /// clients send a key.
    pub fn admit<B>(&self, request: &Request<B>, keyed: bool) -> Result<(), AccessDenied> {
        let headers = request.headers();
        if [Method::TRACE, Method::CONNECT].contains(request.method()) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "this method is not taken");
        }
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            let why = "a request names one host, the one it is for";
            return refuse(StatusCode::BAD_REQUEST, why);
        };
        let why = "this server does not go by that name; `names` in the section `serve` of config.yaml, or --allow-host, lets it";
        let ours = |text: &[u8]| Authority::try_from(text).is_ok_and(|host| self.is_us(&host));
        if !ours(host.as_bytes()) {
            return refuse(StatusCode::MISDIRECTED_REQUEST, why);
        }
        if request.uri().authority().is_some_and(|it| !self.is_us(it)) {
            let why = "this server passes nothing on to other places";
            return refuse(StatusCode::MISDIRECTED_REQUEST, why);
        }
        self.same_site(headers)?;
        // Health checks need no token.
        let asks_for_life = request.uri().path() == "/healthz";
        if asks_for_life || self.has_token(headers, keyed) {
            Ok(())
        } else {
            refuse(
                StatusCode::UNAUTHORIZED,
                "this server wants its token: header x-infold-token",
            )
        }
    }

    /// Refuses requests from pages of other sites.
    fn same_site(&self, headers: &HeaderMap) -> Result<(), AccessDenied> {
        let ours = |origin: &HeaderValue| {
            let text = origin.to_str().unwrap_or_default();
            let web = ["http://", "https://"].iter();
            let mut host = web.filter_map(|scheme| text.strip_prefix(scheme));
            let host = host.next().and_then(|host| host.parse::<Authority>().ok());
            host.is_some_and(|host| self.is_us(&host))
        };
        if !headers.get_all(ORIGIN).iter().all(ours) {
            let why = "pages of other sites may not ask";
            return refuse(StatusCode::FORBIDDEN, why);
        }
        let site = headers.get(SITE).map(HeaderValue::as_bytes);
        match site {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => refuse(StatusCode::FORBIDDEN, "pages of other sites may not ask"),
        }
    }

    /// Says whether a host is this server.
    ///
    /// A number cannot be made to mean another machine; a name can.
    fn is_us(&self, host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host().trim_end_matches('.');
        if self
            .names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            return true;
        }
        if host.port_u16().unwrap_or(80) != self.address.port() {
            return false;
        }
        let own = self.address.ip();
        match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == own || own.is_unspecified(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    fn has_token(&self, headers: &HeaderMap, keyed: bool) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = |name: &HeaderName| headers.get_all(name).iter().any(|it| token.is_in(it));
        given(&TOKEN) || keyed && KEYS.iter().any(given)
    }
}

impl AccessToken {
    /// Says whether a header holds the token, bare or behind `Bearer`.
    pub fn is_in(&self, value: &HeaderValue) -> bool {
        self.is(key(value.as_bytes()))
    }

    /// Says whether this is the token.
    pub fn is(&self, given: &[u8]) -> bool {
        let own = self.0.reveal().as_bytes();
        // The comparison takes the same time however much of the token is right.
        let differ = given
            .iter()
            .zip(own)
            .fold(0, |differ, (a, b)| differ | (a ^ b));
        given.len() == own.len() && differ == 0
    }
}

/// Returns the key in a header value, without the name of its scheme.
pub(crate) fn key(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    let schemes: [&[u8]; 2] = [b"bearer ", b"basic "];
    let scheme = schemes.into_iter().find(|scheme| {
        let start = value.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    value[scheme.map_or(0, <[u8]>::len)..].trim_ascii()
}
