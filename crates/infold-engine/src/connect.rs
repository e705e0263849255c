use infold_provider::{Endpoint, EndpointError};
use infold_wire::Wire;

use crate::config::{APIS, Provider, key_variable};
use crate::profile::{Origin, Set};
use crate::{Config, Connection, Switchboard};

/// Why there is nobody to ask.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Name one.
    #[error("no provider: nobody says whom to ask")]
    NoProvider,
    /// Name one that there is.
    #[error("no provider `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        all: Vec<String>,
    },
    /// Name one.
    #[error("no model is named for {provider}")]
    NoModel {
        /// Whose.
        provider: String,
    },
    /// Set it.
    #[error("{provider} wants a key, and there is none")]
    NoKey {
        /// Whose.
        provider: String,
        /// The configuration gives it an address of its own: a key for one address is not sent
        /// to another.
        moved: bool,
        /// The variable of the environment that would have it.
        variable: Option<&'static str>,
    },
    /// Put the address right.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// The provider that was named, or else the one of the task, of the configuration, of the model.
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

/// The model that was named, or else the one of the task, of the provider.
pub fn model(
    config: &Config,
    provider: &Provider,
    named: Option<&str>,
    of_task: Option<&str>,
) -> Result<String, ConnectError> {
    let set = |set: &Set<String>| set.value.clone();
    named
        .or(of_task)
        .map(str::to_owned)
        .or_else(|| provider.model.as_ref().map(set))
        .or_else(|| config.model.as_ref().map(set))
        .ok_or_else(|| ConnectError::NoModel {
            provider: provider.name.clone(),
        })
}

/// Where a provider is, without its key.
pub fn endpoint(provider: &Provider) -> Result<Endpoint, EndpointError> {
    let base = provider.base_url.as_ref().map(|set| set.value.as_str());
    Endpoint::new(&provider.name, &provider.api.value, base, None)
}

/// Says whether a provider can be asked with what is configured: it has a key, or needs none.
pub fn is_ready(provider: &Provider) -> bool {
    let open = || endpoint(provider).is_ok_and(|to| !to.needs_key());
    provider.api_key.is_some() || open()
}

/// A connection to a model of a provider, with what it costs there.
pub fn connection(
    board: &Switchboard,
    config: &Config,
    provider: &Provider,
    model: &str,
) -> Result<Connection, ConnectError> {
    let mut connection = board.connect(provider, model)?;
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

/// The window that Ollama runs a model with if nobody says otherwise.
pub const OLLAMAS_OWN: u64 = 4096;

/// The window that a model runs with, where its server knows best: whatever the model could take.
///
/// `named` is what the provider called its window when a request was too long for it. Asks the
/// server, if it is near or nothing else is known.
pub fn running(config: &Config, connection: &Connection, named: Option<u64>) -> Option<u64> {
    if connection.wire() == Wire::Ollama {
        return connection.window();
    }
    let asked = connection.endpoint.is_local() || config.find(&connection.model).is_none();
    let found = asked.then(|| connection.window()).flatten();
    found.or(named)
}

fn unknown(config: &Config, name: &str) -> ConnectError {
    let own = config.llm.providers.iter().map(|one| one.name.clone());
    let mut all: Vec<String> = own.collect();
    for api in APIS {
        if !all.iter().any(|name| name == api) {
            all.push(api.to_owned());
        }
    }
    ConnectError::Unknown {
        name: name.to_owned(),
        all,
    }
}
