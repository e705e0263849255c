//! Which headers go on, and which are about one connection alone.

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Uri};
use infold_provider::{Endpoint, Secret, percent_decode};

use crate::access::{AccessToken, key};

/// Where keys stand, on any wire.
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

/// What of a client's headers goes to the provider.
///
/// `reads` says that the reply is to be read on its way: then it is asked for as it is.
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

/// What of a provider's headers goes to the client.
pub(crate) fn inward(headers: &HeaderMap) -> HeaderMap {
    let named = named(headers);
    let mut out = HeaderMap::with_capacity(headers.len() + 4);
    for (name, value) in headers {
        // Who may read it across sites is not for the provider to say, nor where else we are.
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

/// A query as it goes to the provider: our token does not.
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

/// The keys of a request: some providers repeat them, and they must not come to the disk.
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

    /// A text without them.
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

/// Says whether a client has a key of its own, and not only something in its place.
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

/// What people write where a key must stand and none is needed.
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
