//! Routes that fold a task or rehearse a fold.

use infold::config::ProfileRequest as Wanted;
use infold::profile::{Setting, Settings};
use infold::setup::ModelFacts;
use infold::summarizer::{Extractive, SummarizerChoice};
use infold::usage::learned_factor;
use infold::{ManageOutcome, Setup, SetupError, Strategy, rehearse, will_manage};
use infold_store::{Log, Metadata, Trigger};
use serde_json::json;

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::{ApiRequest, BodyMembers};

/// `POST /infold/api/tasks/{task}/manage`
pub fn manage(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let id = request.task(contexts)?;
    let members = request.members(&[
        "dry_run",
        "force",
        "window",
        "model",
        "profile",
        "strategy",
        "threshold",
        "max_tokens",
        "max_bytes",
    ])?;
    let log = contexts.read(id)?;
    let Setup {
        mut aim,
        mut summarizer,
        hooks,
        ..
    } = setup(api, &log, &members)?;
    aim.forced = members.flag("force")?;
    if members.flag("dry_run")? {
        // A dry run calls no model and runs no command.
        let outcome = rehearse(&log, &aim, &mut Extractive)?;
        return Ok(ApiReply::Json(outcome.json()));
    }
    if aim.forced {
        aim.trigger = Trigger::Manual;
    }
    if let Ok(Some(due)) = will_manage(&log, &aim) {
        let told = json!({
            "trigger": aim.trigger.name(), "due": due.name(), "window": aim.budget.window(),
        });
        api.publish(id, "folding", &told);
    }
    let outcome = api.conversations.with(id, |writer| {
        let outcome = infold::manage(writer, &aim, &mut *summarizer, &hooks);
        // A fold that was recorded is published even if a later part failed.
        let _ = contexts.settle(id, writer);
        outcome
    })??;
    tell(api, id, &outcome);
    Ok(ApiReply::Json(outcome.json()))
}

fn tell(api: &Api, id: uuid::Uuid, outcome: &ManageOutcome) {
    for step in &outcome.steps {
        let (kind, before, after) = (step.action.kind(), step.before, step.after);
        api.metrics.folded(kind, before, after);
        let folds: Vec<String> = step.folds.iter().map(|fold| fold.to_string()).collect();
        let told =
            json!({"folds": folds, "kind": kind, "tokens_before": before, "tokens_after": after});
        api.publish(id, "fold", &told);
    }
}

/// Takes each setting from the request, the task, the configuration or the defaults, in this order.
///
/// Summaries are written by the command that the configuration names, or by the built-in summarizer.
fn setup(api: &Api, log: &Log, members: &BodyMembers) -> Result<Setup, ApiError> {
    let metadata = Metadata::read(log.dir())?;
    let strategy = members.text("strategy")?;
    if let Some(name) = &strategy {
        let known = name.parse::<Strategy>();
        known.map_err(|error| ApiError::bad(format!("\"strategy\": {error}")))?;
    }
    let share = |value: &serde_json::Value| {
        value
            .as_f64()
            .filter(|share| infold::Threshold::new(*share).is_ok())
    };
    let own = members.get("model").is_none();
    let wanted = Wanted {
        model: members.text("model")?.or_else(|| metadata.model.clone()),
        profile: members.text("profile")?,
        settings: Settings {
            window: members
                .number("window")?
                .or(metadata.context_length)
                .map(Setting::call),
            threshold: members
                .read("threshold", "a share such as 0.75 or 75", share)?
                .map(Setting::call),
            max_tokens: members.number("max_tokens")?.map(Setting::call),
            strategy: strategy.map(Setting::call),
            ..Settings::default()
        },
    };
    let resolved = api.config.resolve(&wanted).map_err(SetupError::from)?;
    // The learned factor belongs to the task's own model.
    let named = metadata.llm_provider.zip(metadata.model).filter(|_| own);
    let factor = named
        .map(|(provider, model)| learned_factor(api.conversations.contexts(), &provider, &model));
    let known = ModelFacts {
        factor: factor.transpose()?.flatten(),
        bytes: members.number("max_bytes")?,
        ..ModelFacts::default()
    };
    let made = Setup::new(
        &api.config,
        resolved,
        known,
        |pen| match SummarizerChoice::read(&api.config.summarizer.name.value)? {
            SummarizerChoice::Command(command) => Ok(pen.command(command)),
            SummarizerChoice::Extractive | SummarizerChoice::Model(_) => Ok(pen.built_in()),
        },
    );
    made.map_err(|error: SetupError| error.into())
}
