//! Routes that append steps to a task: folds, rewinds, undo, pins, redactions.

use infold::Hooks;
use infold::checkpoint::FileHistory;
use infold::redact::{PatternError, RedactionRequest, describe};
use infold::step::{Step, StepContext, StepResult, fork_at, target};
use infold_log::{Point, Span};
use infold_store::Trigger;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;

/// `POST /infold/api/tasks/{task}/steps`
pub fn step(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let id = request.task(api.conversations.contexts())?;
    let step = Step::read(&request.body).map_err(ApiError::bad)?;
    Ok(ApiReply::Json(take(api, id, &step)?))
}

/// Takes a step, counts and publishes it, and returns its description.
pub fn take(api: &Api, id: Uuid, step: &Step) -> Result<Value, ApiError> {
    let contexts = api.conversations.contexts();
    let hooks = Hooks::of(&api.config);
    let transitions = &api.config.layers.transitions;
    if kind(step).is_some() {
        api.publish(id, "folding", &json!({"trigger": Trigger::Manual.name()}));
    }
    let taken = api.conversations.with(id, |writer| {
        let context = StepContext {
            hooks: &hooks,
            transitions,
            files: &FileHistory::new(contexts),
        };
        let taken = step.take(writer, context);
        // The step is made; the registry catches up with the next one.
        let _ = contexts.settle(id, writer);
        taken
    })??;
    let StepResult {
        text,
        mut json,
        inverse: back,
        note,
        hook_error: unheard,
        files: _,
    } = taken;
    json["text"] = text.into();
    json["back"] = back.into();
    if let Some(note) = note {
        json["adjusted"] = note.into();
    }
    if let Some(error) = unheard {
        json["errors"] = json!([error]);
    }
    if let Some((kind, fold)) = kind(step).zip(json.get("fold")) {
        let tokens = |name: &str| json[name].as_u64().unwrap_or_default();
        let (before, after) = (tokens("tokens_before"), tokens("tokens_after"));
        api.metrics.folded(kind, before, after);
        let told =
            json!({"fold": fold, "kind": kind, "tokens_before": before, "tokens_after": after});
        api.publish(id, "fold", &told);
    }
    api.publish(id, "step", &json);
    Ok(json)
}

/// Returns the kind of fold that a step makes.
fn kind(step: &Step) -> Option<&'static str> {
    match step {
        Step::Condense { .. } => Some("summary"),
        Step::Truncate { .. } => Some("window"),
        Step::Mask { .. } => Some("mask"),
        _ => None,
    }
}

/// `POST /infold/api/tasks/{task}/redact`
pub fn redact(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let id = request.task(contexts)?;
    let members = request.members(&["messages", "pattern", "dry_run"])?;
    let bad =
        |name: &str, error: &dyn std::fmt::Display| ApiError::bad(format!("\"{name}\": {error}"));
    let pattern = members.text("pattern")?.map(|pattern| pattern.parse());
    let pattern = pattern
        .transpose()
        .map_err(|error: PatternError| bad("pattern", &error))?;
    let spans = match members.get("messages") {
        None => Vec::new(),
        Some(Value::Array(spans)) => spans.iter().map(span).collect::<Result<_, _>>()?,
        Some(one) => vec![span(one)?],
    };
    if spans.is_empty() && pattern.is_none() {
        return Err(ApiError::bad(
            "neither \"messages\" nor \"pattern\" says what is to go",
        ));
    }
    let redact = RedactionRequest { spans, pattern };
    if members.flag("dry_run")? {
        return Ok(ApiReply::Json(describe(&redact.preview(contexts, id)?)));
    }
    let redaction = api
        .conversations
        .with_released(|| redact.carry_out(contexts, id))?;
    if redaction.is_empty() {
        return Err(ApiError::nothing_found());
    }
    let json = describe(&redaction);
    api.publish(id, "step", &json);
    Ok(ApiReply::Json(json))
}

fn span(value: &Value) -> Result<Span, ApiError> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.parse()
        .map_err(|error| ApiError::bad(format!("\"messages\": {error}")))
}

/// `POST /infold/api/tasks/{task}/fork`
pub fn fork(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let parent = request.task(contexts)?;
    let members = request.members(&["at"])?;
    let at = members.get("at").map(|at| match at {
        Value::String(text) => target(text),
        other => target(&other.to_string()),
    });
    let at = at
        .transpose()
        .map_err(|error| ApiError::bad(format!("\"at\": {error}")))?;
    let id = fork_at(contexts, parent, at)?;
    let log = contexts.read(id)?;
    let Point { seq, event } = log.parent().map(|(_, at)| at).unwrap_or_default();
    api.metrics.tasks("forked");
    let forked =
        json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event});
    api.publish(id, "task", &forked);
    Ok(ApiReply::Json(forked))
}
