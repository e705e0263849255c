use infold::Hooks;
use infold::redact::{PatternError, Redact, describe};
use infold::step::{Step, Taken, fork_at, target};
use infold_log::{Point, Span};
use infold_store::Trigger;
use serde_json::{Value, json};

use super::Api;
use super::asked::Asked;
use super::refusal::Refusal;
use super::reply::Reply;

/// `POST /infold/api/tasks/{task}/steps`
pub fn step(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let id = asked.task(contexts)?;
    let step = Step::read(&asked.body).map_err(Refusal::bad)?;
    let hooks = Hooks::of(&api.config);
    if kind(&step).is_some() {
        api.tell(id, "folding", &json!({"trigger": Trigger::Manual.name()}));
    }
    let taken = api.desk.with(id, |writer| {
        let taken = step.take(writer, &hooks);
        // The step is made; the registry catches up with the next one.
        let _ = contexts.settle(id, writer);
        taken
    })??;
    let Taken {
        text,
        mut json,
        back,
        note,
        unheard,
    } = taken;
    json["text"] = text.into();
    json["back"] = back.into();
    if let Some(note) = note {
        json["adjusted"] = note.into();
    }
    if let Some(error) = unheard {
        json["errors"] = json!([error]);
    }
    if let Some((kind, fold)) = kind(&step).zip(json.get("fold")) {
        let tokens = |name: &str| json[name].as_u64().unwrap_or_default();
        let (before, after) = (tokens("tokens_before"), tokens("tokens_after"));
        api.metrics.folded(kind, before, after);
        let told =
            json!({"fold": fold, "kind": kind, "tokens_before": before, "tokens_after": after});
        api.tell(id, "fold", &told);
    }
    api.tell(id, "step", &json);
    Ok(Reply::Json(json))
}

/// What kind of fold a step makes.
fn kind(step: &Step) -> Option<&'static str> {
    match step {
        Step::Condense { .. } => Some("summary"),
        Step::Truncate { .. } => Some("window"),
        Step::Mask { .. } => Some("mask"),
        _ => None,
    }
}

/// `POST /infold/api/tasks/{task}/redact`
pub fn redact(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let id = asked.task(contexts)?;
    let members = asked.members(&["messages", "pattern", "dry_run"])?;
    let bad =
        |name: &str, error: &dyn std::fmt::Display| Refusal::bad(format!("\"{name}\": {error}"));
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
        return Err(Refusal::bad(
            "neither \"messages\" nor \"pattern\" says what is to go",
        ));
    }
    let redact = Redact { spans, pattern };
    if members.flag("dry_run")? {
        return Ok(Reply::Json(describe(&redact.preview(contexts, id)?)));
    }
    let redaction = api.desk.released(|| redact.carry_out(contexts, id))?;
    if redaction.is_empty() {
        return Err(Refusal::nothing_found());
    }
    let json = describe(&redaction);
    api.tell(id, "step", &json);
    Ok(Reply::Json(json))
}

fn span(value: &Value) -> Result<Span, Refusal> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.parse()
        .map_err(|error| Refusal::bad(format!("\"messages\": {error}")))
}

/// `POST /infold/api/tasks/{task}/fork`
pub fn fork(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let parent = asked.task(contexts)?;
    let members = asked.members(&["at"])?;
    let at = members.get("at").map(|at| match at {
        Value::String(text) => target(text),
        other => target(&other.to_string()),
    });
    let at = at
        .transpose()
        .map_err(|error| Refusal::bad(format!("\"at\": {error}")))?;
    let id = fork_at(contexts, parent, at)?;
    let log = contexts.read(id)?;
    let Point { seq, event } = log.parent().map(|(_, at)| at).unwrap_or_default();
    api.metrics.tasks("forked");
    let forked =
        json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event});
    api.tell(id, "task", &forked);
    Ok(Reply::Json(forked))
}
