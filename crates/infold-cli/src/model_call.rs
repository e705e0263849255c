//! The requirements of a call of a model: a connection, fold rules, and the frame of the request.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use infold::config::LayersConfig;
use infold::connect::{self, OLLAMA_DEFAULT_WINDOW};
use infold::models::UNKNOWN_WINDOW;
use infold::turn::TurnTools;
use infold::{Config, Connection};
use infold_provider::RetryPolicy;
use infold_store::{Contexts, Metadata};
use infold_tools::SituationChange;
use infold_wire::request::RequestFrame;
use infold_wire::tools::{self, ToolChoice};
use infold_wire::{Json, Wire};

use crate::call_runtime::{CallRuntime, OnSignal, ProviderArg};
use crate::error::{CliError, CliResult};
use crate::fold_options::{FoldOptions, FoldSetup, TaskModel};
use crate::model_access::ModelAccess;
use crate::output::number;
use crate::tools::call_tools;

/// The arguments of a call of a model.
#[derive(Debug, Args)]
pub struct CallArgs {
    #[command(flatten)]
    pub provider: ProviderArg,
    #[command(flatten)]
    pub options: FoldOptions,
    /// Tools the model may call: a JSON array in the form of any provider
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// The tool choice: auto, none, any, or a name
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    pub tool_choice: Option<String>,
    /// The sampling temperature
    #[arg(long, value_name = "NUMBER", value_parser = parse_temperature)]
    pub temperature: Option<f64>,
    /// Do not stream the reply
    #[arg(long)]
    pub no_stream: bool,
    /// The time limit for all attempts, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub deadline: u64,
    /// The maximum wait before the second attempt, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", hide = true)]
    pub first_wait: Option<u64>,
}

/// The facts about its task that a call needs.
#[derive(Default)]
pub struct TaskFacts {
    /// The task's metadata.
    pub metadata: Metadata,
    /// The task's model.
    pub model: TaskModel,
    /// The task has a reply of a model.
    pub has_reply: bool,
    /// The situation in its layered state, which decides the tools that it may use.
    pub situation: SituationChange,
}

/// Everything that a call of a model needs.
pub struct ModelCall {
    /// The model.
    pub connection: Connection,
    /// The fold settings for the model.
    pub setup: FoldSetup,
    /// The request without its messages.
    pub frame: RequestFrame,
    /// The settings for showing the layered state of the task.
    pub layers: LayersConfig,
    /// The rules that check the calls of the reply, if there is a policy.
    pub tools: Option<TurnTools>,
    /// The runtime of its calls: the connection works until this is dropped.
    pub runtime: CallRuntime,
}

impl ModelCall {
    /// Finds the provider and the settings. Errors are returned before anything is stored.
    pub fn new(
        contexts: &Contexts,
        config: &Config,
        call: &CallArgs,
        facts: TaskFacts,
        json: bool,
    ) -> CliResult<ModelCall> {
        ModelCall::with_signals(contexts, config, call, facts, OnSignal::CancelCall, json)
    }

    /// Like [`ModelCall::new`], with the effect of signals on calls.
    pub fn with_signals(
        contexts: &Contexts,
        config: &Config,
        call: &CallArgs,
        facts: TaskFacts,
        on_signal: OnSignal,
        json: bool,
    ) -> CliResult<ModelCall> {
        let mut model = facts.model;
        let named = call.options.model.as_deref();
        let provider_flag = call.provider.provider.as_deref();
        let of_task = facts.metadata.llm_provider.as_deref();
        let provider = connect::provider(config, provider_flag, of_task, named)?;
        let of_task = facts
            .metadata
            .model
            .as_deref()
            .filter(|_| provider_flag.is_none());
        let name = connect::model(config, &provider, named, of_task)?;
        let mut patience = RetryPolicy {
            deadline: Duration::from_secs(call.deadline),
            ..RetryPolicy::default()
        };
        if let Some(wait) = call.first_wait {
            patience.first_wait = Duration::from_millis(wait);
        }
        let runtime = CallRuntime::with_signals(patience, on_signal)?;
        let connection = runtime.connect(config, &provider, &name)?;
        model.factor = infold::usage::learned_factor(contexts, &provider.name, &name)?;
        model.name = Some(name);
        let options = FoldOptions {
            model: None,
            ..call.options.clone()
        };
        if !options.sets_window(config, &model)? {
            let learned = infold::usage::named_window(contexts, &provider.name, &connection.model)?;
            model.window = detect_window(config, &connection, learned, facts.has_reply, json);
            model.is_detected = true;
        }
        let access = ModelAccess {
            conversation: Some((&runtime, &provider)),
            contexts: Some(contexts),
            prefer_model: true,
        };
        let setup = options.setup(config, model, access, json)?;
        let mut frame = frame(call, &setup, &connection);
        let tools = add_tools(&mut frame, config, call, &facts.situation, json)?;
        Ok(ModelCall {
            connection,
            setup,
            frame,
            layers: config.layers.clone(),
            tools,
            runtime,
        })
    }
}

/// Returns the window that the server runs a model with, if it says so.
///
/// `learned` is the window that the provider named when a request was too long.
fn detect_window(
    config: &Config,
    connection: &Connection,
    learned: Option<u64>,
    has_reply: bool,
    json: bool,
) -> Option<u64> {
    let model = &connection.model;
    let found = connect::served_window(config, connection, learned);
    if connection.wire() == Wire::Ollama {
        return found.or_else(|| {
            let tokens = number(OLLAMA_DEFAULT_WINDOW);
            let text = format!("the window that Ollama runs `{model}` with is unknown: assuming {tokens} tokens; --window TOKENS sets it");
            CliError::provider(text).warn(json);
            Some(OLLAMA_DEFAULT_WINDOW)
        });
    }
    // The warning about an unknown model was printed before the first reply.
    let is_known_unknown = has_reply && config.find(model).is_none();
    found.or(is_known_unknown.then_some(UNKNOWN_WINDOW))
}

/// Returns the request without its messages and tools.
fn frame(call: &CallArgs, setup: &FoldSetup, connection: &Connection) -> RequestFrame {
    let setup = &setup.setup;
    let wire = connection.wire();
    let mut frame = RequestFrame {
        max_tokens: setup.profile.max_tokens,
        temperature: call.temperature,
        // A window that the user did not choose could make Ollama reload the model, or fail to.
        window: Some(setup.profile.window).filter(|_| setup.has_set_window && wire == Wire::Ollama),
        stream: !call.no_stream,
        official: connection.endpoint.is_openai_itself(),
        ..RequestFrame::new(wire, &connection.model)
    };
    if wire == Wire::Anthropic {
        frame.max_tokens = frame.max_tokens.or(Some(setup.aim.budget.reserve()));
    }
    frame
}

/// Adds the tools that the model may see; returns the rules that check its calls.
fn add_tools(
    frame: &mut RequestFrame,
    config: &Config,
    call: &CallArgs,
    situation: &SituationChange,
    json: bool,
) -> CliResult<Option<TurnTools>> {
    let wire = frame.wire;
    let choice = call.tool_choice.as_deref();
    let Some(path) = &call.tools else {
        return Ok(call_tools(config, situation, None, choice, json)?.policy);
    };
    let wrong = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("{}: {error}", path.display()))
            .hint("a JSON array of tool definitions, in the form of any provider")
    };
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    let list = Json::parse(&bytes).map_err(|error| wrong(&error))?;
    let tools = call_tools(config, situation, Some(list), choice, json)?;
    let Some(shown) = tools.shown else {
        return Ok(tools.policy);
    };
    let list = Json::parse(&shown).map_err(|error| wrong(&error))?;
    frame.tools = Some(tools::convert_tools(list, wire).map_err(|error| wrong(&error))?);
    match choice {
        // Ollama has no tool choice: without tools the model calls none.
        Some("none") if wire == Wire::Ollama => frame.tools = None,
        Some(choice) if wire == Wire::Ollama && choice != "auto" => {
            let text = "Ollama has no tool choice: the model may call any tool, or none";
            CliError::usage(text).warn(json);
        }
        _ => {}
    }
    frame.tool_choice = choice.map(|choice| {
        let choice = match choice {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "any" => ToolChoice::Any,
            name => ToolChoice::Named(name.to_owned()),
        };
        tools::write_tool_choice(choice, wire)
    });
    Ok(tools.policy)
}

/// Parses a temperature.
fn parse_temperature(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "must be a number such as 0 or 0.7".to_owned())
}
