use clap::Args;
use infold::config::{APIS, Provider};
use infold::profile::{Origin, Set};
use infold::{Config, Connection, Switchboard};
use infold_provider::{CallError, Client, Endpoint, EndpointError, Patience};
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
    board: Switchboard,
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
    pub fn new(patience: Patience) -> Result<Calls, Failure> {
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
        let board = Switchboard::new(client, runtime.handle().clone(), stop);
        Ok(Calls {
            runtime: Some(runtime),
            board,
        })
    }

    /// A connection to a model of a provider.
    pub fn connect(
        &self,
        config: &Config,
        provider: &Provider,
        model: &str,
    ) -> Result<Connection, Failure> {
        let mut connection = self.board.connect(provider, model)?;
        connection.prices = config.prices(model, provider, connection.endpoint.is_local());
        if connection.endpoint.needs_key() && provider.api_key.is_none() {
            return Err(no_key(provider));
        }
        Ok(connection)
    }
}

/// The provider that was named, or else the one of the task, of the configuration, of the model.
pub fn provider(
    config: &Config,
    named: Option<&str>,
    of_task: Option<&str>,
    model: Option<&str>,
) -> Result<Provider, Failure> {
    if let Some(name) = named {
        return config
            .provider_named(name)
            .ok_or_else(|| unknown(config, name));
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
        .ok_or_else(|| {
            Failure::new(Kind::Usage, "no provider: nobody says whom to ask").hint(
                "--provider NAME, or `llm:` in config.yaml (docs/CONFIG.md); without a key, `--provider ollama` asks a model on this machine",
            )
        })
}

/// The model that was named, or else the one of the task, of the provider.
pub fn model(
    config: &Config,
    provider: &Provider,
    named: Option<&str>,
    of_task: Option<&str>,
) -> Result<String, Failure> {
    let set = |set: &Set<String>| set.value.clone();
    named
        .or(of_task)
        .map(str::to_owned)
        .or_else(|| provider.model.as_ref().map(set))
        .or_else(|| config.model.as_ref().map(set))
        .ok_or_else(|| {
            let name = &provider.name;
            Failure::new(Kind::Usage, format!("no model is named for {name}")).hint(format!(
                "--model NAME, or `llm.{name}.model` in config.yaml; `infold provider check {name}` lists what it has"
            ))
        })
}

/// Where a provider is, without its key.
pub fn endpoint(provider: &Provider) -> Result<Endpoint, Failure> {
    let base = provider.base_url.as_ref().map(|set| set.value.as_str());
    Ok(Endpoint::new(
        &provider.name,
        &provider.api.value,
        base,
        None,
    )?)
}

fn unknown(config: &Config, name: &str) -> Failure {
    let own = config.llm.providers.iter().map(|one| one.name.as_str());
    let mut names: Vec<&str> = own.collect();
    names.extend(
        APIS.iter()
            .filter(|api| !names.contains(api))
            .copied()
            .collect::<Vec<_>>(),
    );
    Failure::new(Kind::Usage, format!("no provider `{name}`"))
        .hint(format!("there are {}", names.join(", ")))
}

fn no_key(provider: &Provider) -> Failure {
    let name = &provider.name;
    let hint = match &provider.base_url {
        // A key for one address is not sent to another.
        Some(Set {
            origin: Origin::Line { .. },
            ..
        }) => {
            format!(
                "write `api_key: ${{NAME}}` under `llm.{name}` in config.yaml, and set that variable"
            )
        }
        _ => format!(
            "set {}",
            infold::config::key_variable(&provider.api.value)
                .unwrap_or("its key in the environment")
        ),
    };
    Failure::new(
        Kind::Provider,
        format!("{name} wants a key, and there is none"),
    )
    .hint(hint)
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
