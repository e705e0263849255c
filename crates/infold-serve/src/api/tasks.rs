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
use super::asked::Asked;
use super::refusal::Refusal;
use super::reply::Reply;

/// How many tasks are listed if nobody says.
const LISTED: u64 = 100;

/// `GET /infold/api/tasks`
pub fn list(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let status = asked.query("status").map(str::parse).transpose();
    let rows = rows(
        api,
        &Filter {
            status: status
                .map_err(|error| Refusal::bad(format!("`status` of the query: {error}")))?,
            user: asked.query("user").map(str::to_owned),
            limit: Some(asked.number("limit")?.unwrap_or(LISTED)),
        },
    )?;
    Ok(Reply::List(Box::new(move |list| {
        rows.iter().try_for_each(|row| list.put(&show::row(row)))
    })))
}

fn rows(api: &Api, filter: &Filter) -> Result<Vec<TaskRow>, Refusal> {
    let contexts = api.desk.contexts();
    // Looking does not make a directory.
    match contexts.root().exists() {
        true => Ok(contexts.rows(filter)?),
        false => Ok(Vec::new()),
    }
}

/// `POST /infold/api/tasks`
pub fn make(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let members = asked.members(&[
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
        .map_err(|error| Refusal::bad(format!("\"wire\": {error}")))?;
    let provider = members.text("llm_provider")?;
    let wire = match (wire, provider.as_deref()) {
        (Some(wire), _) => wire.name(),
        (None, Some("anthropic")) => "anthropic",
        (None, _) => "openai",
    };
    let (model, window) = (members.text("model")?, members.number("context_length")?);
    let id = api.desk.contexts().create(Metadata {
        task_source: members.text("task_source")?,
        owner: members.text("owner")?,
        repo: members.text("repo")?,
        task_type: members.text("task_type")?,
        task_id: members.text("task_id")?,
        user: members.text("user")?,
        llm_provider: provider,
        model: model.clone(),
        context_length: window,
        in_effect: infold::setup::in_effect(&api.desk.config(), model.as_deref(), window),
        wire: Some(wire.to_owned()),
        ..Metadata::default()
    })?;
    api.metrics.tasks("made");
    api.tell(id, "task", &json!({"status": "running"}));
    Ok(Reply::Json(json!({"uuid": id.to_string()})))
}

/// `GET /infold/api/tasks/{task}`
pub fn show(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let id = asked.task(contexts)?;
    let whole = show::Whole::of(contexts, id)?;
    let whole = whole.ok_or_else(|| Refusal::no_row(id))?;
    Ok(Reply::Json(whole.json()))
}

/// `POST /infold/api/tasks/{task}/messages`
pub fn push(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let id = asked.task(contexts)?;
    // All of it is checked before any of it is kept.
    let mut incoming = Incoming::new(BufReader::new(&asked.body[..]));
    let mut messages = Vec::new();
    let mut digest = ContentDigest::default();
    while let Some(message) = incoming.next_message()? {
        digest.add(&message);
        messages.push(message);
    }
    let key = asked.idempotency_key.as_ref().map(|key| {
        PushKey::new(key, digest)
            .ok_or_else(|| Refusal::bad("the header Idempotency-Key is blank or too long"))
    });
    let key = key.transpose()?;
    let (pushed, is_new) = api.desk.with(id, |writer| -> Result<_, Refusal> {
        let before = writer.log().state().last_seq();
        let mut messages = messages.into_iter();
        let pushed = writer.push(key.as_ref(), &mut || Ok(messages.next()))?;
        // The messages are kept; the registry catches up with the next ones.
        let _ = contexts.settle(id, writer);
        Ok((pushed, writer.log().state().last_seq() != before))
    })??;
    let seq = |side: fn(Span) -> Seq| pushed.map(|span| side(span).get());
    let count = pushed.map_or(0, Span::count);
    let told = json!({"from": seq(Span::from), "to": seq(Span::to), "count": count});
    if is_new {
        api.tell(id, "message", &told);
    }
    Ok(Reply::Json(told))
}

/// `POST /infold/api/tasks/{task}/complete`
pub fn complete(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    end(api, asked, &Outcome::Completed)
}

/// `POST /infold/api/tasks/{task}/fail`
pub fn fail(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let members = asked.members(&["error"])?;
    let error = members.text("error")?;
    let error = error.ok_or_else(|| Refusal::bad("say why: \"error\" must be a text"))?;
    end(api, asked, &Outcome::Failed { error })
}

/// How often a task that this server takes again is asked for.
const TRIES: usize = 3;

fn end(api: &Api, asked: &Asked, outcome: &Outcome) -> Result<Reply, Refusal> {
    let contexts = api.desk.contexts();
    let id = asked.task(contexts)?;
    let mut tries = 0;
    loop {
        // Whoever ends a task is its only writer.
        api.desk.release(id);
        tries += 1;
        match contexts.finish(id, outcome) {
            Err(TaskError::Open {
                source: OpenError::Held { holder },
                ..
            }) if tries < TRIES
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
    api.tell(id, "task", &json!({"status": status}));
    Ok(Reply::Json(
        json!({"uuid": id.to_string(), "status": status}),
    ))
}

/// `POST /infold/api/tasks/{task}/release`
pub fn release(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    api.desk.release(asked.task(api.desk.contexts())?);
    Ok(Reply::Nothing)
}

/// What some tasks came to.
#[derive(Default)]
struct Sum {
    tasks: u64,
    of: Counters,
}

impl Sum {
    fn add(&mut self, counters: &Counters) {
        self.tasks += 1;
        self.of.llm_calls += counters.llm_calls;
        self.of.tool_calls += counters.tool_calls;
        self.of.tokens += counters.tokens;
        self.of.compressions += counters.compressions;
        self.of.cached += counters.cached;
        self.of.cost += counters.cost;
    }

    fn json(&self) -> Value {
        json!({
            "tasks": self.tasks, "llm_call_count": self.of.llm_calls, "tool_call_count": self.of.tool_calls,
            "total_tokens": self.of.tokens, "compression_count": self.of.compressions,
            "cached_tokens": self.of.cached, "cost": self.of.cost as f64 / 1e6,
        })
    }
}

/// `GET /infold/api/usage`
pub fn usage(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let rows = rows(
        api,
        &Filter {
            user: asked.query("user").map(str::to_owned),
            ..Filter::default()
        },
    )?;
    let mut all = Sum::default();
    let mut models: BTreeMap<(Option<String>, Option<String>), Sum> = BTreeMap::new();
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
    Ok(Reply::Json(object))
}
