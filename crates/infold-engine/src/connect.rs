//! Chooses the provider and the model of a call, and connects to them.

use infold_provider::{Endpoint, EndpointError};
use infold_wire::Wire;

use crate::config::{APIS, Provider, key_variable};
use crate::profile::{Origin, Setting};
use crate::{Config, Connection, Connector};

/// The reason that there is no provider to call.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No provider is named or configured.
    #[error("no provider configured")]
    NoProvider,
    /// The provider does not exist.
    #[error("no provider `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The providers that exist.
        all: Vec<String>,
    },
    /// No model is named or configured.
    #[error("no model configured for {provider}")]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// The provider needs a key.
    #[error("{provider} needs a key, and none is configured")]
    NoKey {
        /// The provider.
        provider: String,
        /// The configuration gives it another address: a key for one address is not sent
        /// to another.
        moved: bool,
        /// The variable of the environment for the key.
        variable: Option<&'static str>,
    },
    /// The address is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// Returns the named provider, or else that of the task, of the configuration, of the model.
pub fn provider(
    config: &Config,
    named: Option<&str>,
    of_task: Option<&str>,
    model: Option<&str>,
) -> Result<Provider, ConnectError> {
    if let Some(name) = named {
        let found = config.provider_named(name);
        return found.ok_or_else(|| unknown(config, name));
    }
    let of_task = of_task.and_then(|name| config.provider_named(name));
    let configured = || config.provider().cloned();
    let of_model = || {
        let row = config.find(model?)?;
        config.provider_named(&row.provider)
    };
    let with_key = || {
        let api = config.keys.first()?.0;
        config.provider_named(api)
    };
    of_task
        .or_else(configured)
        .or_else(of_model)
        .or_else(with_key)
        .ok_or(ConnectError::NoProvider)
}

/// Returns the named model, or else that of the task, of the provider.
pub fn model(
    config: &Config,
    provider: &Provider,
    named: Option<&str>,
    of_task: Option<&str>,
) -> Result<String, ConnectError> {
    let set = |set: &Setting<String>| set.value.clone();
    named
        .or(of_task)
        .map(str::to_owned)
        .or_else(|| provider.model.as_ref().map(set))
        .or_else(|| config.model.as_ref().map(set))
        .ok_or_else(|| ConnectError::NoModel {
            provider: provider.name.clone(),
        })
}

/// Returns the endpoint of a provider, without its key.
pub fn endpoint(provider: &Provider) -> Result<Endpoint, EndpointError> {
    let base = provider.base_url.as_ref().map(|set| set.value.as_str());
    Endpoint::new(&provider.name, &provider.api.value, base, None)
}

/// Says whether a provider can be called as configured: it has a key, or needs none.
pub fn is_ready(provider: &Provider) -> bool {
    let open = || endpoint(provider).is_ok_and(|to| !to.needs_key());
    provider.api_key.is_some() || open()
}

/// Connects to a model of a provider, with its prices there.
pub fn connection(
    connector: &Connector,
    config: &Config,
    provider: &Provider,
    model: &str,
) -> Result<Connection, ConnectError> {
    let mut connection = connector.connect(provider, model)?;
    connection.prices = config.prices(model, provider, connection.endpoint.is_local());
    if connection.endpoint.needs_key() && provider.api_key.is_none() {
        let moved = provider.base_url.as_ref();
        return Err(ConnectError::NoKey {
            provider: provider.name.clone(),
            moved: moved.is_some_and(|set| matches!(set.origin, Origin::Line { .. })),
            variable: key_variable(&provider.api.value),
        });
    }
    Ok(connection)
}

/// The window that Ollama runs a model with by default.
pub const OLLAMA_DEFAULT_WINDOW: u64 = 4096;

/// Returns the window that a model runs with, which may be less than it supports.
///
/// `named` is the window that the provider named when a request was too long. The server is asked if it is local or
/// nothing else is known.
pub fn served_window(config: &Config, connection: &Connection, named: Option<u64>) -> Option<u64> {
    if connection.wire() == Wire::Ollama {
        return connection.window();
    }
    let asked = connection.endpoint.is_local() || config.find(&connection.model).is_none();
    let found = asked.then(|| connection.window()).flatten();
    found.or(named)
}

fn unknown(config: &Config, name: &str) -> ConnectError {
    let own = config.llm.providers.iter().map(|one| one.name.as_str());
    let mut all: Vec<&str> = own.collect();
    let apis = APIS.into_iter().filter(|api| !all.contains(api));
    let apis: Vec<&str> = apis.collect();
    all.extend(apis);
    ConnectError::Unknown {
        name: name.to_owned(),
        all: all.into_iter().map(str::to_owned).collect(),
    }
}
