//! The providers that the proxy forwards to.

use std::sync::Arc;

use infold::Config;
use infold::config::{Provider, SERVED_APIS};
use infold::profile::{Origin, Setting};
use infold_provider::{Endpoint, EndpointError};
use infold_wire::Wire;

/// The providers of the requests of each wire. Clients cannot change them.
#[derive(Clone, Debug)]
pub struct Upstreams(Vec<Upstream>);

/// The provider of the requests of one wire.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The provider in the configuration.
    pub provider: Arc<Provider>,
    /// The provider's endpoint for requests.
    pub endpoint: Arc<Endpoint>,
}

/// The reason that there is no such upstream.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// There is neither an API nor a provider of that name.
    #[error("no provider `{0}`, and it is no address")]
    Unknown(String),
    /// There is no such wire.
    #[error("no API `{0}` is served (there are openai, responses, anthropic, gemini, ollama)")]
    Api(String),
    /// The address is not valid for requests.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl Upstreams {
    /// Takes the address for each API from the flags, else from `provider`, else from the configuration, else the API's
    /// default.
    ///
    /// A flag is an address for every API, or `API=ADDRESS`, or `API=PROVIDER`; `provider` names one of the
    /// configuration. The server there is taken to speak the API of the client, unless the address names another
    /// (`anthropic=openai+http://host`) or the provider has another: then requests and replies are translated.
    pub fn new(
        config: &Config,
        flags: &[String],
        provider: Option<&str>,
    ) -> Result<Upstreams, UpstreamError> {
        let mut for_all_apis = None;
        let mut named: Vec<(&str, &str)> = Vec::new();
        for flag in flags {
            match flag.split_once('=') {
                // An address may contain `=`, too: in its query.
                Some((api, to)) if !api.contains("://") => named.push((api, to)),
                _ => for_all_apis = Some(flag.as_str()),
            }
        }
        if let Some((api, _)) = named
            .iter()
            .find(|(api, _)| !SERVED_APIS.contains(&canonical_api(api)))
        {
            return Err(UpstreamError::Api((*api).to_owned()));
        }
        let chosen = match provider {
            Some(name) => Some(
                config
                    .provider_named(name)
                    .ok_or_else(|| UpstreamError::Unknown(name.to_owned()))?,
            ),
            None => config.provider().cloned(),
        };
        let mut all = Vec::new();
        for wire in Wire::ALL {
            let api = api(wire);
            let flag = named.iter().rev().find(|(of, _)| canonical_api(of) == api);
            let flag = flag.map(|(_, to)| *to).or(for_all_apis);
            let configured = config.serve.upstreams.iter().find(|(of, _)| *of == api);
            let configured = configured.map(|(_, set)| set.value.as_str());
            // A provider named on the command line takes precedence over the configuration.
            let by_name = chosen.as_ref().and_then(|one| provider_for_api(one, api));
            let (by_name, configured) = if provider.is_some() {
                (by_name, configured)
            } else {
                (None, configured)
            };
            let provider = match (flag, by_name, configured) {
                (Some(to), ..) | (None, None, Some(to)) => upstream(config, api, to)?,
                (None, Some(provider), _) => provider,
                (None, None, None) => default_provider(config, api),
            };
            all.push(Upstream::new(provider)?);
        }
        Ok(Upstreams(all))
    }

    /// Returns the upstream of a wire.
    pub fn of(&self, wire: Wire) -> &Upstream {
        &self.0[wire as usize]
    }
}

impl Upstream {
    /// Says whether the upstream speaks another wire than these clients.
    pub(crate) fn is_foreign(&self, wire: Wire) -> bool {
        self.endpoint.wire != wire
    }

    fn new(provider: Provider) -> Result<Upstream, UpstreamError> {
        let base = provider.base_url.as_ref().map(|set| set.value.as_str());
        let key = provider.api_key.as_ref().map(|set| set.value.clone());
        let endpoint = Endpoint::new(&provider.name, &provider.api.value, base, key)?;
        Ok(Upstream {
            provider: Arc::new(provider),
            endpoint: Arc::new(endpoint),
        })
    }
}

/// Returns the API of a wire, as the configuration names it.
pub(crate) fn api(wire: Wire) -> &'static str {
    SERVED_APIS[wire as usize]
}

/// Returns the name of an API in the configuration: `chat` is another name for `openai`.
fn canonical_api(api: &str) -> &str {
    if api == "chat" { "openai" } else { api }
}

/// Returns a provider as one that speaks this API; none if it speaks another. OpenAI's two APIs share an address, so a
/// provider of one speaks the other, too; LM Studio serves both.
fn provider_for_api(provider: &Provider, wanted: &'static str) -> Option<Provider> {
    let speaks = provider.api.value.as_str();
    let shares_address = |api: &str| matches!(api, "openai" | "responses" | "lmstudio");
    if speaks == wanted || speaks == "lmstudio" && wanted == "openai" {
        return Some(provider.clone());
    }
    (shares_address(speaks) && shares_address(wanted)).then(|| Provider {
        api: Setting::new(wanted.to_owned(), provider.api.origin.clone()),
        base_url: provider.base_url.clone().or_else(|| {
            let default_base = "http://127.0.0.1:1234/v1".to_owned();
            (speaks == "lmstudio").then(|| Setting::new(default_base, Origin::Default))
        }),
        ..provider.clone()
    })
}

/// Returns the provider that `to` names: one of the configuration, or an address. Either may speak another API than the
/// client.
fn upstream(config: &Config, api: &'static str, to: &str) -> Result<Provider, UpstreamError> {
    if let Some((scheme, _)) = to.split_once("://") {
        let (speaks, base) = match scheme.split_once('+') {
            Some((speaks, _)) => (canonical_api(speaks), &to[speaks.len() + 1..]),
            None => (api, to),
        };
        if !SERVED_APIS.contains(&speaks) {
            return Err(UpstreamError::Api(speaks.to_owned()));
        }
        return Ok(Provider {
            name: speaks.to_owned(),
            api: Setting::call(speaks.to_owned()),
            model: None,
            context_length: None,
            // A key for one address is not sent to another.
            api_key: None,
            base_url: Some(Setting::call(base.to_owned())),
            max_tokens: None,
        });
    }
    let named = config.provider_named(to);
    let named = named.ok_or_else(|| UpstreamError::Unknown(to.to_owned()))?;
    Ok(provider_for_api(&named, api).unwrap_or(named))
}

/// Returns the provider in use, if it speaks this API; else another one of the configuration that does; else the vendor
/// of the API.
fn default_provider(config: &Config, api: &'static str) -> Provider {
    let in_use = config.provider().and_then(|one| provider_for_api(one, api));
    let mut own = config.llm.providers.iter();
    let own = || own.find(|one| one.api.value == api).cloned();
    let vendor = || config.provider_named(api);
    in_use
        .or_else(own)
        .or_else(vendor)
        .expect("every API that is served has a home")
}
