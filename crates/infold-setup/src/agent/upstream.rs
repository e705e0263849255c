//! Where the proxy sends requests on, because an agent sent them there before.

/// Where the requests of an API go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
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

/// Where the APIs are at home: those need no upstream.
const HOMES: [&str; 6] = [
    "https://api.anthropic.com",
    "https://api.openai.com",
    "https://generativelanguage.googleapis.com",
    "http://localhost:11434",
    "http://127.0.0.1:11434",
    "localhost:11434",
];

impl Upstream {
    /// Makes an upstream of an address; the public address of an API needs none.
    pub fn of(api: &'static str, url: &str) -> Result<Option<Upstream>, UpstreamProblem> {
        let url = url.trim().trim_end_matches('/');
        let bare = url.trim_end_matches("/v1").trim_end_matches("/v1beta");
        if HOMES.contains(&bare) || is_our_own(url) {
            return Ok(None);
        }
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
        Ok(Some(Upstream {
            api,
            url: url.to_owned(),
        }))
    }

    /// Adds this to others, unless they send the API elsewhere.
    pub fn add_to(self, others: &mut Vec<Upstream>) -> Result<(), UpstreamProblem> {
        match others.iter().find(|other| other.api == self.api) {
            Some(other) if other.url == self.url => Ok(()),
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

/// An address on this machine with a task's name in its path is a proxy's: it must not be its own upstream.
fn is_our_own(url: &str) -> bool {
    let local = ["http://127.0.0.1:7333", "http://localhost:7333"];
    local.iter().any(|own| url.starts_with(own))
}
