//! Routes that read tasks: log, view, folds, recall, search.

use infold::layers::{
    ContextError, ContextRequest, build_context, built_json, read_state, state_json,
};
use infold::models::UNKNOWN_WINDOW;
use infold::search::{
    SearchError, SearchMode, SearchQuery, answer_json, parse_end_time, parse_role, parse_time,
};
use infold::show::{LogEntry, LogSnapshot, RecallTarget, RecalledMessage, ViewEntry, fold_json};
use infold_log::{Seq, Span};
use infold_store::{Frame, iso};
use infold_wire::quote;

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;

fn seen(api: &Api, request: &ApiRequest) -> Result<LogSnapshot, ApiError> {
    let contexts = api.conversations.contexts();
    let log = contexts.read(request.task(contexts)?)?;
    Ok(LogSnapshot::new(log, request.at()?)?)
}

/// `GET /infold/api/tasks/{task}/log`
pub fn log(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let seen = seen(api, request)?;
    let span = page(seen.at.seq, request)?;
    Ok(ApiReply::List(Box::new(move |list| {
        // A range past the last message is empty, including the events before the first message.
        let nothing = span.is_none() && seen.all().is_some();
        if nothing {
            return Ok(());
        }
        seen.entries(span, &mut |entry| match &entry {
            LogEntry::Message { bytes, .. } => list.put_message(&entry.json(), bytes),
            LogEntry::Event(_) => list.put(&entry.json()),
        })
    })))
}

/// Returns the messages of a log that the query selects by `from`, `to` and `limit`; `None` if there are none.
fn page(last: u64, request: &ApiRequest) -> Result<Option<Span>, ApiError> {
    let (from, to) = (request.number("from")?, request.number("to")?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(ApiError::bad(format!("from={from} lies behind to={to}")));
    }
    let end = to.unwrap_or(last).min(last);
    let start = from.unwrap_or(1);
    let (start, end) = match (request.number("limit")?, from) {
        (None, _) => (start, end),
        (Some(limit), Some(_)) => (start, end.min(start.saturating_add(limit - 1))),
        (Some(limit), None) => ((end + 1).saturating_sub(limit).max(1), end),
    };
    let ends = Seq::new(start).zip(Seq::new(end));
    Ok(ends.and_then(|(start, end)| Span::new(start, end)))
}

/// `GET /infold/api/tasks/{task}/messages/{range}`
pub fn recall(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let log = contexts.read(request.task(contexts)?)?;
    let target = request.place(1).parse::<RecallTarget>();
    let target = target.map_err(|error| ApiError::bad(error.to_string()))?;
    let found = target.find(&log)?;
    Ok(ApiReply::List(Box::new(move |list| {
        for span in found.spans {
            RecalledMessage::each(&log, span, &mut |message| {
                list.put_message(&message.json(), message.bytes)
            })?;
        }
        Ok(())
    })))
}

/// `GET /infold/api/tasks/{task}/state`
pub fn state(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let seen = seen(api, request)?;
    let state = read_state(&seen.log, &seen.shown)?;
    Ok(ApiReply::Json(state_json(&state, None)))
}

/// `GET /infold/api/tasks/{task}/layers`
pub fn layers(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let seen = seen(api, request)?;
    let config = &api.config.layers;
    let asked = ContextRequest {
        max_tokens: request
            .number("max_tokens")?
            .unwrap_or_else(|| config.max_tokens(UNKNOWN_WINDOW)),
        now: infold_store::now(),
        config,
    };
    let built = build_context(&seen.log, &seen.shown, &asked);
    let built = built.map_err(|error| match error {
        ContextError::Build(error) => ApiError::bad(error.to_string()),
        ContextError::Log(error) => error.into(),
    })?;
    Ok(ApiReply::Json(built_json(&built)))
}

/// `GET /infold/api/tasks/{task}/folds/{fold}`
pub fn fold(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let log = contexts.read(request.task(contexts)?)?;
    let target = request.place(1).parse::<RecallTarget>();
    let Ok(target @ RecallTarget::Fold(_)) = target else {
        let text = format!("`{}` is not a fold such as e3", request.place(1));
        return Err(ApiError::bad(text));
    };
    let found = target.find(&log)?.fold;
    Ok(ApiReply::Json(
        found.as_ref().map(fold_json).unwrap_or_default(),
    ))
}

/// `GET /infold/api/search`
pub fn search(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let text = request.query("q").unwrap_or_default();
    let bad = |error: String| ApiError::bad(error);
    let since = request.query("since").map(parse_time);
    let until = request.query("until").map(parse_end_time);
    let task = request.query("task").map(|task| contexts.resolve(task));
    let query = SearchQuery {
        text: text.to_owned(),
        mode: match (request.flag("exact")?, request.flag("regex")?) {
            (true, true) => return Err(ApiError::bad("either `exact` or `regex`, not both")),
            (true, false) => SearchMode::Exact,
            (false, true) => SearchMode::Regex,
            (false, false) => SearchMode::Words,
        },
        tasks: task.transpose()?.map(|task| vec![task]),
        only_hidden: request.flag("hidden")?,
        role: request
            .query("role")
            .map(parse_role)
            .transpose()
            .map_err(bad)?,
        tool: request.query("tool").map(str::to_owned),
        file: request.query("file").map(str::to_owned),
        since: since.transpose().map_err(bad)?,
        until: until.transpose().map_err(bad)?,
        limit: request.number("limit")?.map(|limit| limit as usize),
    };
    let answer = query.run(contexts).map_err(|error| match error {
        SearchError::Pattern(error) => ApiError::bad(error.to_string()),
        SearchError::Task(error) => error.into(),
    })?;
    Ok(ApiReply::Json(answer_json(&query, &answer)))
}

/// `GET /infold/api/tasks/{task}/view`
pub fn view(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let raw = request.flag("raw")?;
    let seen = seen(api, request)?;
    let view = seen.view()?;
    Ok(ApiReply::List(Box::new(move |list| {
        seen.pieces(&view, raw, &mut |piece| match &piece {
            ViewEntry::Message { bytes, .. } if raw => list.put_raw(bytes),
            ViewEntry::Message { bytes, .. } => list.put_message(&piece.json(), bytes),
            ViewEntry::Fold(..) => list.put(&piece.json()),
        })
    })))
}

/// `GET /infold/api/tasks/{task}/frames`
pub fn frames(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let contexts = api.conversations.contexts();
    let log = contexts.read(request.task(contexts)?)?;
    Ok(ApiReply::List(Box::new(move |list| {
        let mut sent = Ok(());
        log.frames(|frame| {
            if sent.is_ok() {
                sent = list.put_raw(&framed(frame));
            }
        })?;
        sent
    })))
}

/// A frame as an object, its members as they came.
fn framed(frame: &Frame) -> Vec<u8> {
    let mut out = format!(
        r#"{{"frame":{},"timestamp":"{}","after":{},"wire":"{}","members":{{"#,
        frame.id,
        iso(frame.time),
        frame.after,
        frame.wire.name()
    )
    .into_bytes();
    for (at, (name, value)) in frame.members.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        out.extend_from_slice(format!("{comma}{}:", quote(name)).as_bytes());
        out.extend_from_slice(value);
    }
    out.extend_from_slice(b"}}");
    out
}

/// `GET /infold/api/tasks/{task}/folds`
pub fn folds(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let seen = seen(api, request)?;
    Ok(ApiReply::List(Box::new(move |list| {
        seen.folds(&mut |fold| list.put(&fold.json()))
    })))
}
