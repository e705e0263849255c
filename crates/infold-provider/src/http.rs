//! Builds the HTTP clients of this crate, one for each way that an endpoint is reached.

use std::error::Error;
use std::iter::successors;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{ClientBuilder, Url, redirect};

/// The error of building an HTTP client: no other cause is known.
pub(crate) const NO_CERTIFICATES: &str =
    "this system has no certificates to trust (they come with the package ca-certificates)";

/// Clients by whether the endpoint is local and whether it uses TLS; each is built when first needed.
#[derive(Debug)]
pub(crate) struct HttpClients([OnceLock<reqwest::Client>; 4]);

impl Default for HttpClients {
    fn default() -> HttpClients {
        // A process has one cryptography provider. If it has one already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        HttpClients(Default::default())
    }
}

/// The properties of connections to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The address is on this machine.
    pub is_local: bool,
    /// The address uses TLS.
    pub is_secure: bool,
}

impl Reach {
    /// Returns how an address is reached.
    pub fn of(url: &Url) -> Reach {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        Reach {
            is_local: host == "localhost" || address.is_ok_and(|address| address.is_loopback()),
            is_secure: url.scheme() == "https",
        }
    }
}

impl HttpClients {
    /// Returns the client for addresses with these properties; `configure` adds options when it is built.
    pub fn get(
        &self,
        to: Reach,
        configure: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> reqwest::Result<&reqwest::Client> {
        let slot = &self.0[usize::from(to.is_local) * 2 + usize::from(to.is_secure)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let build = |certificates| configure(builder(to, certificates)).build();
        let client = build(true).or_else(|error| {
            if to.is_secure {
                return Err(error);
            }
            // Plain HTTP works on a system without certificates too.
            build(false)
        })?;
        Ok(slot.get_or_init(|| client))
    }
}

/// Returns the options that all clients share; `certificates` loads those of the system.
fn builder(to: Reach, certificates: bool) -> ClientBuilder {
    let mut builder = reqwest::Client::builder()
        // A redirect would send a key and a whole conversation to another address.
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_secs(15))
        // A model may think for minutes; only keep-alive probes distinguish a dead connection from a quiet one.
        .tcp_keepalive(Duration::from_secs(20));
    if to.is_local {
        builder = builder.no_proxy();
    }
    if !certificates || to.is_local && !to.is_secure {
        builder = builder.tls_certs_only([]);
    }
    builder
}

/// Returns the innermost cause of an error: the outer ones say little, and may hold an address with a key.
pub(crate) fn root_cause(error: &reqwest::Error) -> Option<String> {
    let causes = successors(error.source(), |&cause| cause.source());
    causes.last().map(|cause| cause.to_string())
}
