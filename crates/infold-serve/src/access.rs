//! Decides which requests are let in.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode};
use infold_provider::Secret;

use crate::headers::KEYS;

/// Decides who may ask.
///
/// Browsers are the danger on loopback: a page may send requests to any address, and its own
/// name may be made to mean this machine.
#[derive(Debug)]
pub(crate) struct AccessPolicy {
    address: SocketAddr,
    names: Vec<String>,
    token: Option<AccessToken>,
}

/// What clients must send to be let in.
#[derive(Clone, Debug)]
pub(crate) struct AccessToken(Secret);

/// Why somebody is not let in.
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

    /// Lets a request in, or says why not.
    ///
    /// `keyed` says that the provider's key is ours: then the token may stand where clients
    /// have a key.
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
        // Whether anybody is there is no secret.
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

    /// Refuses what a page of another site asks for.
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
    /// Says whether a header has the token, as it is or behind `Bearer`.
    pub fn is_in(&self, value: &HeaderValue) -> bool {
        self.is(key(value.as_bytes()))
    }

    /// Says whether this is the token.
    pub fn is(&self, given: &[u8]) -> bool {
        let own = self.0.reveal().as_bytes();
        // How long it takes must not tell how much of it is right.
        let differ = given
            .iter()
            .zip(own)
            .fold(0, |differ, (a, b)| differ | (a ^ b));
        given.len() == own.len() && differ == 0
    }
}

/// A key as it stands in a header, without the name of its scheme.
pub(crate) fn key(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    let schemes: [&[u8]; 2] = [b"bearer ", b"basic "];
    let scheme = schemes.into_iter().find(|scheme| {
        let start = value.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    value[scheme.map_or(0, <[u8]>::len)..].trim_ascii()
}
