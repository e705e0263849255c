//! Routes that create, list, show and end tasks, append messages to them, and sum up their usage.

use std::collections::BTreeMap;
use std::io::BufReader;

use infold::show;
use infold_log::{Seq, Span};
use infold_store::{
    ContentDigest, Counters, Filter, Incoming, Metadata, OpenError, Outcome, PushKey, TaskError,
    TaskRow,
};
use infold_wire::Wire;
use serde_json::{Value, json};

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;

/// How many tasks are listed if the query has no `limit`.
const DEFAULT_LIMIT: u64 = 100;

/// `GET /infold/api/tasks`
pub fn list(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let status = request.query("status").map(str::parse).transpose();
    let rows = rows(
        api,
        &Filter {
            status: status
                .map_err(|error| ApiError::bad(format!("`status` of the query: {error}")))?,
            user: request.query("user").map(str::to_owned),
            limit: Some(request.number("limit")?.unwrap_or(DEFAULT_LIMIT)),
        },
    )?;
    Ok(ApiReply::List(Box::new(move |list| {
        rows.iter().try_for_each(|row| list.put(&show::row(row)))
    })))
}

fn rows(api: &Api, filter: &Filter) -> Result<Vec<TaskRow>, ApiError> {
    let contexts = api.conversations.contexts();
    // To list tasks must not create the contexts directory.
    if contexts.root().exists() {
        Ok(contexts.rows(filter)?)
    } else {
        Ok(Vec::new())
    }
}

/// `POST /infold/api/tasks`
pub fn make(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let members = request.members(&[
        "task_source",
        "owner",
        "repo",
        "task_type",
        "task_id",
        "user",
        "llm_provider",
        "model",
        "context_length",
        "wire",
    ])?;
    let wire = members.text("wire")?.map(|wire| wire.parse::<Wire>());
    let wire = wire
        .transpose()
        .map_err(|error| ApiError::bad(format!("\"wire\": {error}")))?;
    let provider = members.text("llm_provider")?;
    let wire = match (wire, provider.as_deref()) {
        (Some(wire), _) => wire.name(),
        (None, Some("anthropic")) => "anthropic",
        (None, _) => "openai",
    };
    let (model, window) = (members.text("model")?, members.number("context_length")?);
    let id = api.conversations.contexts().create(Metadata {
        task_source: members.text("task_source")?,
        owner: members.text("owner")?,
        repo: members.text("repo")?,
        task_type: members.text("task_type")?,
        task_id: members.text("task_id")?,
        user: members.text("user")?,
        llm_provider: provider,
        model: model.clone(),
        context_length: window,
        in_effect: infold::setup::in_effect(&api.conversations.config(), model.as_deref(), window),
        wire: Some(wire.to_owned()),
        ..Metadata::default()
    })?;
    api.metrics.tasks("made");
    api.publish(id, "task", &json!({"status": "running"}));
    Ok(ApiReply::Json(json!({"uuid": id.to_string()})))
}

/// `GET /infold/api/tasks/{task}`
pub fn show(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let id = request.task(contexts)?;
    let report = show::TaskReport::of(contexts, id)?;
    let report = report.ok_or_else(|| ApiError::no_row(id))?;
    Ok(ApiReply::Json(report.json()))
}

/// `POST /infold/api/tasks/{task}/messages`
pub fn push(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let id = request.task(contexts)?;
    // All messages are checked before the first is recorded.
    let mut incoming = Incoming::new(BufReader::new(&request.body[..]));
    let mut messages = Vec::new();
    let mut digest = ContentDigest::default();
    while let Some(message) = incoming.next_message()? {
        digest.add(&message);
        messages.push(message);
    }
    let key = request.idempotency_key.as_ref().map(|key| {
        PushKey::new(key, digest)
            .ok_or_else(|| ApiError::bad("the header Idempotency-Key is blank or too long"))
    });
    let key = key.transpose()?;
    let key = key.map(|key| contexts.stored_key(key)).transpose()?;
    let (pushed, is_new) = api
        .conversations
        .with(id, |writer| -> Result<_, ApiError> {
            let before = writer.log().state().last_seq();
            let mut messages = messages.into_iter();
            let pushed = writer.push(key.as_ref(), &mut || Ok(messages.next()))?;
            // The messages are recorded. If the registry cannot be updated now, it is with the next messages.
            let _ = contexts.settle(id, writer);
            Ok((pushed, writer.log().state().last_seq() != before))
        })??;
    let seq = |side: fn(Span) -> Seq| pushed.map(|span| side(span).get());
    let count = pushed.map_or(0, Span::count);
    let range = json!({"from": seq(Span::from), "to": seq(Span::to), "count": count});
    if is_new {
        api.publish(id, "message", &range);
    }
    Ok(ApiReply::Json(range))
}

/// `POST /infold/api/tasks/{task}/complete`
pub fn complete(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    end(api, request, &Outcome::Completed)
}

/// `POST /infold/api/tasks/{task}/fail`
pub fn fail(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let members = request.members(&["error"])?;
    let error = members.text("error")?;
    let error = error.ok_or_else(|| ApiError::bad("say why: \"error\" must be a text"))?;
    end(api, request, &Outcome::Failed { error })
}

/// How often ending a task is tried: another request may open it again after this server released it.
const MAX_RELEASE_TRIES: usize = 3;

fn end(api: &Api, request: &ApiRequest, outcome: &Outcome) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let id = request.task(contexts)?;
    let mut tries = 0;
    loop {
        // Finishing a task needs its writer lock, so the server closes it first.
        api.conversations.release(id);
        tries += 1;
        match contexts.finish(id, outcome) {
            Err(TaskError::Open {
                source: OpenError::Held { holder },
                ..
            }) if tries < MAX_RELEASE_TRIES
                && holder
                    .as_ref()
                    .is_some_and(|by| by.pid == std::process::id()) => {}
            ended => {
                ended?;
                break;
            }
        }
    }
    let status = outcome.status().to_string();
    api.publish(id, "task", &json!({"status": status}));
    Ok(ApiReply::Json(
        json!({"uuid": id.to_string(), "status": status}),
    ))
}

/// `POST /infold/api/tasks/{task}/release`
pub fn release(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    api.conversations
        .release(request.task(api.conversations.contexts())?);
    Ok(ApiReply::Nothing)
}

/// Totals of some tasks.
#[derive(Default)]
struct UsageSum {
    tasks: u64,
    counters: Counters,
}

impl UsageSum {
    fn add(&mut self, counters: &Counters) {
        self.tasks += 1;
        self.counters.llm_calls += counters.llm_calls;
        self.counters.tool_calls += counters.tool_calls;
        self.counters.tokens += counters.tokens;
        self.counters.compressions += counters.compressions;
        self.counters.cached += counters.cached;
        self.counters.cost += counters.cost;
    }

    fn json(&self) -> Value {
        json!({
            "tasks": self.tasks, "llm_call_count": self.counters.llm_calls, "tool_call_count": self.counters.tool_calls,
            "total_tokens": self.counters.tokens, "compression_count": self.counters.compressions,
            "cached_tokens": self.counters.cached, "cost": self.counters.cost as f64 / 1e6,
        })
    }
}

/// `GET /infold/api/usage`
pub fn usage(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let rows = rows(
        api,
        &Filter {
            user: request.query("user").map(str::to_owned),
            ..Filter::default()
        },
    )?;
    let mut all = UsageSum::default();
    let mut models: BTreeMap<(Option<String>, Option<String>), UsageSum> = BTreeMap::new();
    for row in rows {
        all.add(&row.counters);
        let model = models.entry((row.llm_provider, row.model)).or_default();
        model.add(&row.counters);
    }
    let models = models.iter().map(|((provider, model), sum)| {
        let mut object = sum.json();
        object["llm_provider"] = provider.as_deref().into();
        object["model"] = model.as_deref().into();
        object
    });
    let models: Vec<Value> = models.collect();
    let mut object = all.json();
    object["models"] = models.into();
    Ok(ApiReply::Json(object))
}
