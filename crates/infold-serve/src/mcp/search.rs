//! `search_history` and `list_conversations`.

use std::collections::HashMap;

use infold::search::{SearchQuery, describe_coverage, describe_place};
use infold_log::{Past as _, Place, Role, Seq};
use infold_store::{Log, SearchAnswer, SearchHit, TaskRow, iso};

use super::arguments::ToolArguments;
use super::caller::CallerCall;
use super::echo::is_echo;
use super::history::MAX_RESULT_CHARS;
use super::{History, McpScope, ToolFailure};

/// The default number of hits.
const DEFAULT_HITS: u64 = 10;
/// The largest number of hits.
const MAX_HITS: u64 = 50;
/// The default number of listed conversations.
const MAX_LISTED: u64 = 50;

/// `search_history`
pub fn search(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let text = arguments.required("query")?;
    let limit = arguments.number("limit", 1)?.unwrap_or(DEFAULT_HITS);
    let limit = limit.min(MAX_HITS) as usize;
    let reach = history.reach("search_history", arguments)?;
    if reach.rows.is_empty() {
        return Err(history.nothing());
    }
    let (tasks, own) = match (arguments.text("task")?.as_deref(), reach.call) {
        (Some("all"), _) | (None, None) => (None, None),
        (Some(name), _) => (Some(vec![history.named(name, &reach)?]), None),
        (None, Some(call)) => (Some(vec![call.task]), Some(call)),
    };
    let is_part = tasks.is_some() && reach.rows.len() > 1;
    let all = || reach.rows.iter().map(|row| row.uuid).collect();
    let query = SearchQuery {
        text,
        tasks: match (tasks, &history.scope) {
            (None, McpScope::All) => None,
            (tasks, _) => Some(tasks.unwrap_or_else(all)),
        },
        // The filter below removes some of them.
        limit: Some(2 * limit),
        ..SearchQuery::default()
    };
    let mut answer = match own {
        Some(call) => search_own(history, &query, call)?,
        None => query.run(&history.contexts)?,
    };
    let mut logs = HashMap::new();
    answer.hits.retain(|hit| {
        let log = logs.entry(hit.task);
        let log = log.or_insert_with(|| history.contexts.read(hit.task).ok());
        !log.as_ref().is_some_and(|log| is_echo(log, hit))
    });
    answer.hits.truncate(limit);
    let mut out = String::new();
    if answer.hits.is_empty() {
        out += &query.describe(&answer);
        if is_part {
            let others = reach.rows.len() - 1;
            out +=
                &format!(" there; `task`: \"all\" searches the {others} other conversation(s) too");
        }
    } else {
        history.push_hits(&answer.hits, &mut out);
    }
    if let Some(coverage) = describe_coverage(&answer) {
        out += &format!("\n{coverage}; search again to have more of them searched");
    }
    Ok(out)
}

/// Searches the conversation of the caller: hidden messages first, because it sees the others, and without the messages
/// of the question itself.
fn search_own(
    history: &History,
    query: &SearchQuery,
    call: CallerCall,
) -> Result<SearchAnswer, ToolFailure> {
    let hidden = SearchQuery {
        only_hidden: true,
        ..query.clone()
    };
    let mut answer = hidden.run(&history.contexts)?;
    let limit = query.limit.unwrap_or_default();
    if answer.hits.len() < limit {
        let question = question(&history.contexts.read(call.task)?, call.seq);
        let other = query.run(&history.contexts)?.hits.into_iter();
        let other = other.filter(|hit| hit.place == Place::Open && hit.seq < question);
        answer.hits.extend(other);
        answer.hits.truncate(limit);
    }
    Ok(answer)
}

/// Returns the last user message before a call: the first message of its turn.
fn question(log: &Log, call: Seq) -> Seq {
    // Tool results have the role of the user on some wires, but belong to the round of their call.
    let is_question = |seq: Seq| {
        let record = log.record(seq);
        record.is_ok_and(|record| record.role == Role::User && record.round == seq)
    };
    let mut seq = call;
    while !is_question(seq) {
        let Some(before) = seq.prev() else { break };
        seq = before;
    }
    seq
}

impl History {
    /// Writes the hits that fit into the remaining room.
    fn push_hits(&self, hits: &[SearchHit], out: &mut String) {
        let mut used = 0;
        for (at, hit) in hits.iter().enumerate() {
            let text = self.hit_text(hit);
            used += text.chars().count();
            if used > MAX_RESULT_CHARS {
                let left = hits.len() - at;
                *out +=
                    &format!("… {left} more hit(s) left out: search for fewer or rarer words\n");
                return;
            }
            *out += &text;
        }
        let (seq, task) = (hits[0].seq.get(), hits[0].task.to_string());
        let before = seq.saturating_sub(2).max(1);
        let (recall, task) = match &self.offered {
            Some(names) => (names.recall(), String::new()),
            None => ("recall", format!(" and `task` {}", &task[..8])),
        };
        *out += &format!(
            "Read messages in full: {recall}, with `range` such as {before}..{seq}{task}.\n"
        );
    }

    fn hit_text(&self, hit: &SearchHit) -> String {
        let task = match &self.offered {
            Some(_) => String::new(),
            None => format!(" of {}", &hit.task.to_string()[..8]),
        };
        format!(
            "message {}{task} · {} · {}{}\n    {}\n",
            hit.seq,
            hit.role,
            &iso(hit.time)[..19],
            describe_place(hit.place),
            hit.snippet.marked("[", "]").replace('\n', "\n    ")
        )
    }
}

/// `list_conversations`
pub fn list(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let limit = arguments.number("limit", 1)?.unwrap_or(MAX_LISTED);
    let from = arguments.number("from", 1)?.unwrap_or(1);
    let reach = history.reach("list_conversations", arguments)?;
    if reach.rows.is_empty() {
        return Err(history.nothing());
    }
    let own = reach.call.map(|call| call.task);
    let total = reach.rows.len() as u64;
    let rows = reach.rows.iter().zip(1..).skip((from - 1) as usize);
    let mut out = String::new();
    let mut next = from;
    for (row, number) in rows.take(limit.min(MAX_LISTED) as usize) {
        let line = row_text(row, own == Some(row.uuid));
        if out.len() + line.len() > MAX_RESULT_CHARS {
            break;
        }
        out += &line;
        next = number + 1;
    }
    if next <= total {
        out += &format!("… {} more: `from` {next}\n", total + 1 - next);
    }
    if out.is_empty() {
        return Err(ToolFailure::new(format!(
            "there are only {total} conversations"
        )));
    }
    Ok(out)
}

fn row_text(row: &TaskRow, is_own: bool) -> String {
    let active = row.active_at.unwrap_or(row.created_at);
    let about = row.title.as_deref().unwrap_or("(nothing said yet)");
    let part = |text: &Option<String>| {
        let text = text.as_deref().map(|text| infold_wire::shorten(text, 100));
        text.map(|text| format!(" · {text}")).unwrap_or_default()
    };
    format!(
        "{} · {}{} · {} · {} tokens{}{}\n    {}\n",
        &row.uuid.to_string()[..8],
        row.status,
        if is_own { " · this conversation" } else { "" },
        active.strftime("%Y-%m-%d %H:%M"),
        infold::numbers::number(row.counters.tokens),
        part(&row.agent),
        part(&row.cwd),
        infold_wire::shorten(about, 300)
    )
}
