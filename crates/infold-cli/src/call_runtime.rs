//! The runtime that calls of providers run on, and the errors of such calls.

use clap::Args;
use infold::config::Provider;
use infold::connect::{self, ConnectError};
use infold::{Config, Connection, Connector};
use infold_provider::{CallError, Client, EndpointError, RetryPolicy};
use infold_wire::ProviderError;
use infold_wire::provider_error::{RefusalCause, mentions_reply_length};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use crate::error::{CliError, CliResult, Exit};
use crate::signals::StopSignals;

/// The provider of a call.
#[derive(Clone, Debug, Default, Args)]
pub struct ProviderArg {
    /// The provider: a configured one, or openai, responses, anthropic, gemini, ollama, lmstudio
    #[arg(long, value_name = "NAME", env = "INFOLD_PROVIDER")]
    pub provider: Option<String>,
}

/// A runtime for calls of providers, which listens for SIGINT and SIGTERM.
pub struct CallRuntime {
    // Connections work until this is dropped.
    runtime: Option<Runtime>,
    connector: Connector,
    stopped: watch::Receiver<bool>,
}

/// The effect of SIGINT and SIGTERM on a call in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// The call is cancelled.
    CancelCall,
    /// The call is finished.
    FinishCall,
}

impl Drop for CallRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait for a DNS lookup that is still running.
            runtime.shutdown_background();
        }
    }
}

impl CallRuntime {
    /// Starts a runtime on which signals cancel calls.
    pub fn new(patience: RetryPolicy) -> CliResult<CallRuntime> {
        CallRuntime::with_signals(patience, OnSignal::CancelCall)
    }

    /// Starts a runtime.
    pub fn with_signals(patience: RetryPolicy, on_signal: OnSignal) -> CliResult<CallRuntime> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CliError::provider(format!("no threads available: {error}")))?;
        let (cancel, cancelled) = watch::channel(false);
        let (stop, stopped) = watch::channel(false);
        let signals = StopSignals::listen(&runtime);
        runtime.spawn(async move {
            let Ok(mut signals) = signals else {
                // A dropped sender would count as cancelled.
                return cancel.closed().await;
            };
            signals.recv().await;
            let _ = stop.send(true);
            if on_signal == OnSignal::CancelCall {
                let _ = cancel.send(true);
            }
            // The sender lives as long as the process: a dropped one would count as cancelled.
            let _cancel = cancel;
            signals.exit_on_next().await
        });
        let client = {
            let _guard = runtime.enter();
            Client::new(patience)?
        };
        let connector = Connector::new(client, runtime.handle().clone(), cancelled);
        Ok(CallRuntime {
            runtime: Some(runtime),
            connector,
            stopped,
        })
    }

    /// Returns the signal to stop, which becomes true with the first SIGINT or SIGTERM.
    pub fn stopped(&self) -> watch::Receiver<bool> {
        self.stopped.clone()
    }

    /// Returns the runtime's handle, for other work; `None` once it is shut down.
    pub fn handle(&self) -> Option<Handle> {
        let runtime = self.runtime.as_ref();
        runtime.map(|runtime| runtime.handle().clone())
    }

    /// Returns the connector that makes connections.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Connects to a model of a provider.
    pub fn connect(
        &self,
        config: &Config,
        provider: &Provider,
        model: &str,
    ) -> CliResult<Connection> {
        Ok(connect::connection(
            &self.connector,
            config,
            provider,
            model,
        )?)
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> CliError {
        let text = error.to_string();
        let (exit, hint) = match error {
            ConnectError::Endpoint(error) => return error.into(),
            ConnectError::NoProvider => (
                Exit::Usage,
                "use --provider NAME, or set `llm:` in config.yaml (docs/CONFIG.md); `--provider ollama` uses a model on this machine, without a key".to_owned(),
            ),
            ConnectError::Unknown { all, .. } => {
                (Exit::Usage, format!("available: {}", all.join(", ")))
            }
            ConnectError::NoModel { provider } => (
                Exit::Usage,
                format!(
                    "use --model NAME, or set `llm.{provider}.model` in config.yaml; `infold provider check {provider}` lists its models"
                ),
            ),
            ConnectError::NoKey {
                provider,
                moved: true,
                ..
            } => (
                Exit::Provider,
                format!(
                    "add `api_key: ${{NAME}}` to `llm.{provider}` in config.yaml, and set that variable"
                ),
            ),
            ConnectError::NoKey { variable, .. } => (
                Exit::Provider,
                format!("set {}", variable.unwrap_or("its key in the environment")),
            ),
        };
        CliError::new(exit, text).hint(hint)
    }
}

impl From<EndpointError> for CliError {
    fn from(error: EndpointError) -> CliError {
        CliError::usage(error).hint("such as https://host/v1 or http://127.0.0.1:8080")
    }
}

/// The hint for a request that is longer than the model's window.
pub const WINDOW_HINT: &str =
    "set the model's actual window: --window TOKENS, or `context_length` in config.yaml";

impl From<CallError> for CliError {
    fn from(error: CallError) -> CliError {
        let hint = match &error.trouble {
            ProviderError::Busy { .. } => "it is busy; try again later",
            ProviderError::TooLong { .. } | ProviderError::TooLarge => WINDOW_HINT,
            ProviderError::ReplyTooLong { .. } => "use a smaller --max-tokens",
            ProviderError::Unexplained { .. } => "it gives no reason; try again later",
            ProviderError::BoundThinking => {
                "it refuses reasoning that is not in its original position"
            }
            ProviderError::AlternateRoles => {
                "this model's template requires user and assistant to alternate"
            }
            ProviderError::PlainMessages => "this provider accepts only plain messages",
            ProviderError::Refused(RefusalCause::Key) => {
                "check the key: is it set, of this provider, and not expired?"
            }
            ProviderError::Refused(RefusalCause::Model) => {
                "check the model's name; `infold provider check NAME` lists the models"
            }
            ProviderError::Refused(RefusalCause::Quota) => {
                "check the account: the provider says there is no credit left"
            }
            ProviderError::Refused(RefusalCause::Address) => {
                "check the address: `base_url` in config.yaml; is it this kind of API?"
            }
            ProviderError::Refused(RefusalCause::Request) if mentions_reply_length(&error.text) => {
                "use a smaller --max-tokens"
            }
            ProviderError::Refused(RefusalCause::Request) => {
                "request.json in the task's directory is what was sent"
            }
            ProviderError::Broken => "is the server running and reachable?",
        };
        CliError::provider(&error).hint(hint)
    }
}
