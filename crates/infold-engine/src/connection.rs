use std::sync::Arc;
use std::time::Duration;

use infold_provider::{Body, CallError, Called, Client, Endpoint, EndpointError, Heard, Listed};
use infold_wire::{Reported, Trouble, Wire};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::config::Provider;
use crate::models::Prices;

/// A model at a provider, ready to be asked.
///
/// It may be used from any thread that is not one of the runtime's own.
#[derive(Clone)]
pub struct Connection {
    /// Where the provider is.
    pub endpoint: Endpoint,
    /// The model.
    pub model: String,
    /// What it costs, if that is known.
    pub prices: Option<Prices>,
    client: Arc<Client>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The provider did not answer, or not well.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// Whoever asked changed their mind.
    #[error("cancelled; no reply was recorded")]
    Cancelled,
}

/// What all connections share: who sends, where it runs, and what ends it.
#[derive(Clone)]
pub struct Switchboard {
    client: Arc<Client>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

impl Switchboard {
    /// Sends with `client` on `runtime`, until `stop` becomes true.
    pub fn new(client: Client, runtime: Handle, stop: watch::Receiver<bool>) -> Switchboard {
        Switchboard {
            client: Arc::new(client),
            runtime,
            stop,
        }
    }

    /// A connection to a model of a provider.
    pub fn connect(&self, provider: &Provider, model: &str) -> Result<Connection, EndpointError> {
        let text =
            |set: &Option<crate::profile::Set<String>>| set.as_ref().map(|set| set.value.clone());
        let endpoint = Endpoint::new(
            &provider.name,
            &provider.api.value,
            text(&provider.base_url).as_deref(),
            provider.api_key.as_ref().map(|set| set.value.clone()),
        )?;
        Ok(Connection {
            endpoint,
            model: model.to_owned(),
            prices: None,
            client: self.client.clone(),
            runtime: self.runtime.clone(),
            stop: self.stop.clone(),
        })
    }
}

impl Connection {
    /// The form of its requests and replies.
    pub fn wire(&self) -> Wire {
        self.endpoint.wire
    }

    /// Posts a request and waits for the whole reply; `hear` is told as it comes.
    pub fn send(
        &self,
        body: Body<'_>,
        stream: bool,
        hear: &mut (dyn FnMut(Heard) + Send),
    ) -> Result<Called, Unanswered> {
        let sent = self
            .client
            .send(&self.endpoint, &self.model, body, stream, hear);
        self.wait(sent)
    }

    /// The same, given up after so long.
    pub fn send_within(
        &self,
        limit: Duration,
        body: Body<'_>,
        stream: bool,
        hear: &mut (dyn FnMut(Heard) + Send),
    ) -> Result<Called, Unanswered> {
        let sent = self
            .client
            .send(&self.endpoint, &self.model, body, stream, hear);
        self.wait(async {
            let late = || CallError {
                trouble: Trouble::Broken,
                status: None,
                text: format!(
                    "{} gave no reply within {} s",
                    self.endpoint.name,
                    limit.as_secs()
                ),
                requests: 1,
            };
            let called = tokio::time::timeout(limit, sent).await;
            called.unwrap_or_else(|_| Err(late()))
        })
    }

    /// The models that the provider has.
    pub fn models(&self) -> Result<Vec<Listed>, Unanswered> {
        self.wait(self.client.models(&self.endpoint))
    }

    /// The window of the model, if the provider says so.
    pub fn window(&self) -> Option<u64> {
        if self.wire() == Wire::Ollama {
            let found = async { Ok(self.client.window(&self.endpoint, &self.model).await) };
            return self.wait(found).ok()?;
        }
        let models = self.models().ok()?;
        let found = models.iter().find(|listed| listed.is(&self.model));
        // A server that has one model answers to any name.
        let only = match models.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        found.or(only)?.window
    }

    /// What a call cost, in millionths of a dollar.
    pub fn cost(&self, usage: &Reported) -> u64 {
        crate::usage::cost(self.prices, usage)
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Result<T, Unanswered> {
        let mut stop = self.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                called = call => called.map_err(|error| Unanswered::Call(Box::new(error))),
                // Nobody is left who could say so: then it never comes.
                true = async { stop.wait_for(|stop| *stop).await.is_ok() } => Err(Unanswered::Cancelled),
            }
        })
    }
}
