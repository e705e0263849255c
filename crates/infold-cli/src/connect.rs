use clap::Args;
use infold::config::Provider;
use infold::connect::{self, ConnectError};
use infold::{Config, Connection, Connector};
use infold_provider::{CallError, Client, EndpointError, RetryPolicy};
use infold_wire::Trouble;
use infold_wire::trouble::Refused;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Kind};

/// Whom to ask.
#[derive(Clone, Debug, Default, Args)]
pub struct Whom {
    /// The provider: one of the configuration, or openai, responses, anthropic, gemini, ollama, lmstudio
    #[arg(long, value_name = "NAME", env = "INFOLD_PROVIDER")]
    pub provider: Option<String>,
}

/// What calls run on; Ctrl-C ends them, and so does a request to end.
pub struct Calls {
    // Connections work as long as this is there.
    runtime: Option<Runtime>,
    board: Connector,
}

impl Drop for Calls {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Whoever cancels does not wait for a name that is being looked up.
            runtime.shutdown_background();
        }
    }
}

impl Calls {
    /// Gets ready to call.
    pub fn new(patience: RetryPolicy) -> Result<Calls, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(Kind::Provider, format!("no threads to call with: {error}"))
            })?;
        let (cancel, stop) = watch::channel(false);
        runtime.spawn(async move {
            let both = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
            );
            let (Ok(mut interrupt), Ok(mut terminate)) = both else {
                // As long as somebody holds the other end, nobody takes it for gone.
                return cancel.closed().await;
            };
            for told in 1.. {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if told > 1 {
                    // Whatever still takes its time is not waited for. All that is recorded
                    // stays, as it does when the process is killed.
                    std::process::exit(Kind::Interrupted as i32);
                }
                let _ = cancel.send(true);
            }
        });
        let client = {
            let _inside = runtime.enter();
            Client::new(patience)?
        };
        let board = Connector::new(client, runtime.handle().clone(), stop);
        Ok(Calls {
            runtime: Some(runtime),
            board,
        })
    }

    /// What connections are made with.
    pub fn board(&self) -> &Connector {
        &self.board
    }

    /// A connection to a model of a provider.
    pub fn connect(
        &self,
        config: &Config,
        provider: &Provider,
        model: &str,
    ) -> Result<Connection, Failure> {
        Ok(connect::connection(&self.board, config, provider, model)?)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        let text = error.to_string();
        let (kind, hint) = match error {
            ConnectError::Endpoint(error) => return error.into(),
            ConnectError::NoProvider => (
                Kind::Usage,
                "--provider NAME, or `llm:` in config.yaml (docs/CONFIG.md); without a key, `--provider ollama` asks a model on this machine".to_owned(),
            ),
            ConnectError::Unknown { all, .. } => {
                (Kind::Usage, format!("there are {}", all.join(", ")))
            }
            ConnectError::NoModel { provider } => (
                Kind::Usage,
                format!(
                    "--model NAME, or `llm.{provider}.model` in config.yaml; `infold provider check {provider}` lists what it has"
                ),
            ),
            ConnectError::NoKey {
                provider,
                moved: true,
                ..
            } => (
                Kind::Provider,
                format!(
                    "write `api_key: ${{NAME}}` under `llm.{provider}` in config.yaml, and set that variable"
                ),
            ),
            ConnectError::NoKey { variable, .. } => (
                Kind::Provider,
                format!("set {}", variable.unwrap_or("its key in the environment")),
            ),
        };
        Failure::new(kind, text).hint(hint)
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Failure {
        Failure::new(Kind::Usage, error).hint("such as https://host/v1 or http://127.0.0.1:8080")
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let hint = match &error.trouble {
            Trouble::Busy { .. } => "it is busy; ask again later",
            Trouble::TooLong { .. } | Trouble::TooLarge => {
                "give the window it really has: --window TOKENS, or `context_length` in config.yaml"
            }
            Trouble::ReplyTooLong { .. } => "give a smaller --max-tokens",
            Trouble::Unexplained { .. } => "it does not say why; ask again later",
            Trouble::Bound => "it refuses thinking that is not where it was",
            Trouble::Alternate => "this model's template wants user and assistant to alternate",
            Trouble::Plain => "this provider takes only plain messages",
            Trouble::Refused(Refused::Key) => {
                "look at the key: is it set, of this provider, and not expired?"
            }
            Trouble::Refused(Refused::Model) => {
                "look at the model's name; `infold provider check NAME` lists what there is"
            }
            Trouble::Refused(Refused::Quota) => {
                "look at the account: the provider says there is no credit left"
            }
            Trouble::Refused(Refused::Address) => {
                "look at the address: `base_url` in config.yaml; is it this kind of API?"
            }
            Trouble::Refused(Refused::Request) if speaks_of_length(&error.text) => {
                "give a smaller --max-tokens"
            }
            Trouble::Refused(Refused::Request) => {
                "request.json in the task's directory is what was sent"
            }
            Trouble::Broken => "is the server running, and can it be reached?",
        };
        Failure::new(Kind::Provider, &error).hint(hint)
    }
}

/// Says whether an error is about how long the reply may be, in the words of any wire.
fn speaks_of_length(text: &str) -> bool {
    let names = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "num_predict",
    ];
    names.iter().any(|name| text.contains(name))
}
