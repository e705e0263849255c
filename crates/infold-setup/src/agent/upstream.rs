//! The upstreams that the proxy needs, because agents sent their requests there before.

use super::AgentTarget;

/// The address to which the proxy has to forward the requests of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededUpstream {
    /// The API, as `serve.upstreams` names it.
    pub api: &'static str,
    /// The address.
    pub url: String,
}

/// Why an address cannot be an upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamProblem {
    /// It holds a variable, a key or something that is no address.
    #[error("requests go to `{shown}` now, which the proxy cannot take over: {reason}")]
    Address {
        /// The address without what may be secret.
        shown: String,
        /// Why.
        reason: &'static str,
    },
    /// Requests of one API cannot go to two places.
    #[error(
        "{api} requests go to {first} and to {second}: a proxy sends those of one API to one place"
    )]
    Two {
        /// The API.
        api: &'static str,
        /// One place.
        first: String,
        /// The other.
        second: String,
    },
}

/// The APIs' own addresses, to which the proxy forwards without an upstream in its configuration.
const HOMES: [&str; 6] = [
    "https://api.anthropic.com",
    "https://api.openai.com",
    "https://generativelanguage.googleapis.com",
    "http://localhost:11434",
    "http://127.0.0.1:11434",
    "localhost:11434",
];

/// Where requests went before.
pub(super) enum SettingPlace {
    /// The proxy already.
    Proxy,
    /// The API's own address.
    Home,
    /// Somewhere else.
    At(NeededUpstream),
}

/// The text for the API's own address in messages.
pub(super) const HOME: &str = "the API's own address";

impl NeededUpstream {
    /// Returns the place that the address `url` of an agent leads to. `to` has the addresses of the proxy; `suffix` is
    /// the path that the agent's address has behind the base.
    pub(super) fn place(
        api: &'static str,
        url: &str,
        to: &AgentTarget<'_>,
        suffix: &str,
    ) -> Result<SettingPlace, UpstreamProblem> {
        let url = url.trim().trim_end_matches('/');
        if to.bases().any(|base| is_proxy(url, base)) {
            return Ok(SettingPlace::Proxy);
        }
        if HOMES.contains(&without_version(url)) {
            return Ok(SettingPlace::Home);
        }
        NeededUpstream::of(api, url, suffix).map(SettingPlace::At)
    }

    fn of(api: &'static str, url: &str, suffix: &str) -> Result<NeededUpstream, UpstreamProblem> {
        let problem = |shown: &str, reason| {
            Err(UpstreamProblem::Address {
                shown: shown.to_owned(),
                reason,
            })
        };
        let Some((scheme, rest)) = url.split_once("://") else {
            return problem(url, "it is no http:// or https:// address");
        };
        if url.contains(['$', '{', '}', '<', '>', ' ', '"']) {
            return problem(url, "it is no plain address");
        }
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') || rest.contains(['?', '#']) {
            let host = host.rsplit('@').next().unwrap_or_default();
            let shown = format!("{scheme}://{host}/…");
            return problem(
                &shown,
                "it may hold a secret; put the provider into config.yaml and name it in serve.upstreams",
            );
        }
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return problem(url, "it is no http:// or https:// address");
        }
        let segments: Vec<&str> = rest.split('/').skip(1).collect();
        let has_version = segments.iter().any(|part| is_version(part));
        let ends_with_one = segments.last().is_some_and(|part| is_version(part));
        let mut url = url.to_owned();
        if api != "ollama" {
            if !suffix.is_empty() && !has_version {
                return problem(
                    &url,
                    "its path has no version such as /v1, and the proxy would add one",
                );
            }
            // The agent puts the version behind it; the proxy does that only where there is none yet.
            if suffix.is_empty() && has_version && !ends_with_one {
                url += if api == "gemini" { "/v1beta" } else { "/v1" };
            }
        }
        Ok(NeededUpstream { api, url })
    }

    /// Adds this upstream to others, unless one of them sends the same API elsewhere.
    pub fn add_to(self, others: &mut Vec<NeededUpstream>) -> Result<(), UpstreamProblem> {
        match others.iter().find(|other| other.api == self.api) {
            Some(other) if is_same(&other.url, &self.url) => Ok(()),
            Some(other) => Err(UpstreamProblem::Two {
                api: self.api,
                first: other.url.clone(),
                second: self.url,
            }),
            None => {
                others.push(self);
                Ok(())
            }
        }
    }
}

/// Returns whether two addresses are one place: clients differ in whether they write the version.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|url| without_version(url.trim_end_matches('/')));
    one == other
}

fn without_version(url: &str) -> &str {
    let bare = url.strip_suffix("/v1").or(url.strip_suffix("/v1beta"));
    bare.unwrap_or(url)
}

fn is_version(part: &str) -> bool {
    let rest = part.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether an address is the proxy's, by whatever name: it must not be its own upstream.
fn is_proxy(url: &str, base: &str) -> bool {
    const USUAL: u16 = 7333;
    let port = base
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    is_loopback(url, port.unwrap_or(USUAL)) || is_loopback(url, USUAL)
}

/// Returns whether an address leads to a port of this machine, by any name of its loopback.
pub fn is_loopback(url: &str, port: u16) -> bool {
    let url = url.trim().to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", &url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let (name, own) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(if scheme == "https" { 443 } else { 80 })),
    };
    let name = name.trim_start_matches('[').trim_end_matches([']', '.']);
    let is_name = name == "localhost" || name.ends_with(".localhost");
    let is_address = name.parse::<std::net::IpAddr>().is_ok_and(|address| {
        let address = address.to_canonical();
        address.is_loopback() || address.is_unspecified()
    });
    own == Some(port) && (is_name || is_address)
}
