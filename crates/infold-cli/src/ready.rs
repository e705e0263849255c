use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use infold::connect::{self, OLLAMA_DEFAULT_WINDOW};
use infold::models::UNKNOWN_WINDOW;
use infold::{Config, Connection};
use infold_provider::RetryPolicy;
use infold_store::{Contexts, Metadata};
use infold_wire::request::Frame;
use infold_wire::tools::{self, Choice as ToolChoice};
use infold_wire::{Json, Wire};

use crate::connect::{Calls, Whom};
use crate::failure::{Failure, Kind};
use crate::out::number;
use crate::pen::Reach;
use crate::settings::{Choice, Chosen, Known};

/// What a call of a model takes.
#[derive(Debug, Args)]
pub struct CallArgs {
    #[command(flatten)]
    pub whom: Whom,
    #[command(flatten)]
    pub choice: Choice,
    /// Tools the model may call: a JSON array in the form of any provider
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Which of them: auto, none, any, or a name
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    pub tool_choice: Option<String>,
    /// How much to leave to chance
    #[arg(long, value_name = "NUMBER", value_parser = temperature)]
    pub temperature: Option<f64>,
    /// Take the reply in one piece
    #[arg(long)]
    pub no_stream: bool,
    /// How long to keep trying, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub deadline: u64,
    /// How long to wait at most before asking for the second time, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", hide = true)]
    pub first_wait: Option<u64>,
}

/// What is known of a task before a call.
#[derive(Default)]
pub struct Before {
    /// What is written of it.
    pub metadata: Metadata,
    /// What it knows of its model.
    pub known: Known,
    /// A model has said something.
    pub answered: bool,
}

/// All that it takes to call a model.
pub struct Ready {
    /// The model.
    pub connection: Connection,
    /// How to fold for it.
    pub chosen: Chosen,
    /// What is sent beside the conversation.
    pub frame: Frame,
    // The connection works as long as this is there.
    _calls: Calls,
}

impl Ready {
    /// Finds whom to call and how; whatever is wrong with that is told before anything is kept.
    pub fn new(
        contexts: &Contexts,
        config: &Config,
        call: &CallArgs,
        before: Before,
        json: bool,
    ) -> Result<Ready, Failure> {
        let Before {
            metadata,
            mut known,
            answered,
        } = before;
        let named = call.choice.model.as_deref();
        let of_task = metadata.llm_provider.as_deref();
        let provider = connect::provider(config, call.whom.provider.as_deref(), of_task, named)?;
        let of_task = metadata
            .model
            .as_deref()
            .filter(|_| call.whom.provider.is_none());
        let model = connect::model(config, &provider, named, of_task)?;
        let mut patience = RetryPolicy {
            deadline: Duration::from_secs(call.deadline),
            ..RetryPolicy::default()
        };
        if let Some(wait) = call.first_wait {
            patience.first_wait = Duration::from_millis(wait);
        }
        let calls = Calls::new(patience)?;
        let connection = calls.connect(config, &provider, &model)?;
        known.factor = infold::usage::learned_factor(contexts, &provider.name, &model)?;
        known.model = Some(model);
        let choice = Choice {
            model: None,
            ..call.choice.clone()
        };
        if !choice.tells_window(config, &known)? {
            let named = infold::usage::named_window(contexts, &provider.name, &connection.model)?;
            known.window = running(config, &connection, named, answered, json);
            known.found = true;
        }
        let reach = Reach {
            talk: Some((&calls, &provider)),
            contexts: Some(contexts),
            usual: true,
        };
        let chosen = choice.chosen(config, known, reach, json)?;
        let frame = frame(call, &chosen, &connection, json)?;
        Ok(Ready {
            connection,
            chosen,
            frame,
            _calls: calls,
        })
    }
}

/// The window that a model runs with, where its server knows best: whatever the model could take.
///
/// `named` is what the provider called its window when a request was too long for it.
fn running(
    config: &Config,
    connection: &Connection,
    named: Option<u64>,
    answered: bool,
    json: bool,
) -> Option<u64> {
    let model = &connection.model;
    let found = connect::served_window(config, connection, named);
    if connection.wire() == Wire::Ollama {
        return found.or_else(|| {
            let tokens = number(OLLAMA_DEFAULT_WINDOW);
            let what = format!("nobody says with what window Ollama runs `{model}`: {tokens} tokens are assumed; --window TOKENS sets it");
            Failure::new(Kind::Provider, what).warn(json);
            Some(OLLAMA_DEFAULT_WINDOW)
        });
    }
    // That nothing is known of it was said before the first reply.
    let unknown = || (answered && config.find(model).is_none()).then_some(UNKNOWN_WINDOW);
    found.or_else(unknown)
}

/// What stands around the conversation in a request.
fn frame(
    call: &CallArgs,
    chosen: &Chosen,
    connection: &Connection,
    json: bool,
) -> Result<Frame, Failure> {
    let profile = &chosen.setup.profile;
    let wire = connection.wire();
    let mut frame = Frame {
        max_tokens: profile.max_tokens,
        temperature: call.temperature,
        // A window that nobody chose could make it load the model anew, or fail to.
        window: Some(profile.window)
            .filter(|_| chosen.setup.has_set_window && wire == Wire::Ollama),
        stream: !call.no_stream,
        official: connection.endpoint.is_openai_itself(),
        ..Frame::new(wire, &connection.model)
    };
    if wire == Wire::Anthropic {
        frame.max_tokens = frame.max_tokens.or(Some(chosen.setup.aim.budget.reserve()));
    }
    if let Some(path) = &call.tools {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Usage, format!("{}: {error}", path.display()))
                .hint("a JSON array of tool definitions, as any of the providers takes them")
        };
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        let list = Json::parse(&bytes).map_err(|error| wrong(&error))?;
        frame.tools = Some(tools::tools(list, wire).map_err(|error| wrong(&error))?);
        if wire == Wire::Ollama && call.tool_choice.as_deref() == Some("none") {
            // It has no such choice: a model that is shown no tools calls none.
            frame.tools = None;
        }
        let choice = call.tool_choice.as_deref();
        if wire == Wire::Ollama && choice.is_some_and(|it| !["auto", "none"].contains(&it)) {
            let what = "Ollama has no tool choice: the model calls what it likes, or nothing";
            Failure::new(Kind::Usage, what).warn(json);
        }
        frame.tool_choice = call.tool_choice.as_deref().map(|choice| {
            let choice = match choice {
                "auto" => ToolChoice::Auto,
                "none" => ToolChoice::None,
                "any" => ToolChoice::Any,
                name => ToolChoice::Named(name.to_owned()),
            };
            tools::tool_choice(choice, wire)
        });
    }
    Ok(frame)
}

/// Reads a temperature.
fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "give a number such as 0 or 0.7".to_owned())
}
