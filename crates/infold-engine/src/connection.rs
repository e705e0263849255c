//! Connections to models: the one place where synchronous code waits for the network.

use std::sync::Arc;
use std::time::Duration;

use infold_provider::{
    CallError, CallEvent, CallReply, Client, Endpoint, EndpointError, ListedModel, RequestBody,
};
use infold_wire::{ProviderError, TokenUsage, Wire};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::config::{LayersConfig, Provider};
use crate::models::Prices;

/// A model at a provider, ready to be called.
///
/// It may be used from any thread outside of the runtime.
#[derive(Clone)]
pub struct Connection {
    /// The endpoint of the provider.
    pub endpoint: Endpoint,
    /// The model.
    pub model: String,
    /// The model's prices, if known.
    pub prices: Option<Prices>,
    client: Arc<Client>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

/// Words decide if embeddings take longer: a person waits for the reply.
const EMBED_TIMEOUT: Duration = Duration::from_secs(15);

/// The reason that a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The call was cancelled.
    #[error("cancelled; no reply was recorded")]
    Cancelled,
}

/// Makes connections that share a client, a runtime and a stop signal.
#[derive(Clone)]
pub struct Connector {
    client: Arc<Client>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

impl Connector {
    /// Creates a connector that sends with `client` on `runtime`, until `stop` becomes true.
    pub fn new(client: Client, runtime: Handle, stop: watch::Receiver<bool>) -> Connector {
        Connector {
            client: Arc::new(client),
            runtime,
            stop,
        }
    }

    /// Connects to a model of a provider.
    pub fn connect(&self, provider: &Provider, model: &str) -> Result<Connection, EndpointError> {
        let base_url = provider.base_url.as_ref().map(|set| set.value.as_str());
        let key = provider.api_key.as_ref().map(|set| set.value.clone());
        let endpoint = Endpoint::new(&provider.name, &provider.api.value, base_url, key)?;
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
    /// Returns the form of its requests and replies.
    pub fn wire(&self) -> Wire {
        self.endpoint.wire
    }

    /// Posts a request and waits for the whole reply; `on_event` is called while it comes.
    pub fn send(
        &self,
        body: RequestBody<'_>,
        stream: bool,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<CallReply, CallFailure> {
        let sent = self
            .client
            .send(&self.endpoint, &self.model, body, stream, on_event);
        self.wait(sent)
    }

    /// Posts a request as [`Connection::send`] does, and gives up after `limit`.
    pub fn send_within(
        &self,
        limit: Duration,
        body: RequestBody<'_>,
        stream: bool,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<CallReply, CallFailure> {
        let sent = self
            .client
            .send(&self.endpoint, &self.model, body, stream, on_event);
        self.wait(async {
            let called = tokio::time::timeout(limit, sent).await;
            called.unwrap_or_else(|_| Err(self.no_reply_within(limit)))
        })
    }

    fn no_reply_within(&self, limit: Duration) -> CallError {
        let (name, limit) = (&self.endpoint.name, limit.as_secs());
        CallError {
            trouble: ProviderError::Broken,
            status: None,
            text: format!("{name} gave no reply within {limit} s"),
            requests: 1,
        }
    }

    /// Returns a function that requests embeddings as configured.
    pub fn embedder(
        &self,
        config: &LayersConfig,
    ) -> impl Fn(&[&str]) -> Result<Vec<Vec<f32>>, String> {
        let model = config.embedding_model.as_ref();
        let model = model.map_or(String::new(), |set| set.value.clone());
        move |texts| {
            let vectors = self.embed(&model, texts, EMBED_TIMEOUT);
            vectors.map_err(|error| error.to_string())
        }
    }

    /// Returns a vector for each text, as an embedding model of the provider gives them; gives up after `limit`.
    pub fn embed(
        &self,
        model: &str,
        texts: &[&str],
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, CallFailure> {
        let asked = self.client.embed(&self.endpoint, model, texts);
        self.wait(async {
            let answered = tokio::time::timeout(limit, asked).await;
            answered.unwrap_or_else(|_| Err(self.no_reply_within(limit)))
        })
    }

    /// Returns the models of the provider.
    pub fn models(&self) -> Result<Vec<ListedModel>, CallFailure> {
        self.wait(self.client.models(&self.endpoint))
    }

    /// Returns the window of the model, if the provider says it.
    pub fn window(&self) -> Option<u64> {
        if self.wire() == Wire::Ollama {
            let found = async { Ok(self.client.window(&self.endpoint, &self.model).await) };
            return self.wait(found).ok()?;
        }
        let models = self.models().ok()?;
        let found = models.iter().find(|listed| listed.is(&self.model));
        // A server that has one model takes any name for it.
        let only = match models.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        found.or(only)?.window
    }

    /// Returns the cost of a call, in millionths of a dollar.
    pub fn cost(&self, usage: &TokenUsage) -> u64 {
        crate::usage::cost(self.prices, usage)
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Result<T, CallFailure> {
        let mut stop = self.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                called = call => called.map_err(|error| CallFailure::Call(Box::new(error))),
                // If the sender is gone, the signal never comes.
                true = async { stop.wait_for(|stop| *stop).await.is_ok() } => Err(CallFailure::Cancelled),
            }
        })
    }
}
