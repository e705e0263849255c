//! Scans logs for queries that the index cannot answer: exact texts and regular expressions.

use std::fs;
use std::ops::Range;
use std::time::Instant;

use infold_log::{Past as _, Role, Seq, Source, Span};
use uuid::Uuid;

use super::document::{DocumentReader, file_term, role_term, tool_term};
use super::{Found, IndexCoverage, Match, OpenLogs, SearchAnswer, SearchRequest};
use crate::{Contexts, Log, LogError, TaskError};

/// Finds the matches in a text, as ranges of bytes.
type TextMatcher<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

/// The most bytes of logs that are scanned.
const MAX_BYTES: u64 = 4 << 30;
/// The number of messages that are read between checks of the deadline.
const GROUP_MESSAGES: u64 = 64;

impl Contexts {
    /// Scans the logs, newest task and newest message first, until there are enough hits or the time is over.
    pub(super) fn scan(
        &self,
        request: &SearchRequest<'_>,
        find: TextMatcher<'_>,
        deadline: Instant,
    ) -> Result<SearchAnswer, TaskError> {
        let mut answer = SearchAnswer {
            hits: Vec::new(),
            words: Vec::new(),
            coverage: IndexCoverage::default(),
        };
        let mut logs = OpenLogs::new(self);
        let tasks = self.scanned_tasks(request, &mut answer.coverage)?;
        for task in tasks {
            let Some(log) = logs.get(task) else { continue };
            let first = match request.tasks {
                // Messages that the task continues count as its own.
                Some(_) => Seq::FIRST,
                None => Seq::new(log.own().seq).unwrap_or(Seq::FIRST),
            };
            let mut next = Seq::new(log.state().at().seq);
            while let Some(to) = next.filter(|to| *to >= first) {
                let coverage = &mut answer.coverage;
                if answer.hits.len() >= request.limit {
                    return Ok(answer);
                }
                if Instant::now() >= deadline || coverage.searched_bytes > MAX_BYTES {
                    coverage.stopped = Some("the time for a scan was over".to_owned());
                    return Ok(answer);
                }
                let from = Seq::new(to.get().saturating_sub(GROUP_MESSAGES - 1));
                let from = from.unwrap_or(Seq::FIRST).max(first);
                let span = Span::new(from, to).unwrap_or(Span::one(to));
                let Some(log) = logs.get(task) else { break };
                let (found, bytes) = scan_span(log, span, request, find)?;
                coverage.searched_bytes += bytes;
                for seq in found.into_iter().rev() {
                    if answer.hits.len() < request.limit {
                        let score = 0.0;
                        let found = Found { task, seq, score };
                        let matches = |text: &str| {
                            let ranges = find(text).into_iter();
                            ranges.map(|range| Match::of(text, range)).collect()
                        };
                        answer
                            .hits
                            .extend(logs.hit(found, request.only_hidden, &matches)?);
                    }
                }
                next = from.prev();
            }
        }
        Ok(answer)
    }

    /// The tasks that are scanned, newest first.
    fn scanned_tasks(
        &self,
        request: &SearchRequest<'_>,
        coverage: &mut IndexCoverage,
    ) -> Result<Vec<Uuid>, TaskError> {
        let all = match &request.tasks {
            Some(tasks) => tasks.clone(),
            None => self.tasks()?,
        };
        let mut tasks = Vec::with_capacity(all.len());
        for task in all {
            let path = self.place(task).map(|dir| dir.join("messages.jsonl"));
            if let Some(meta) = path.and_then(|path| fs::metadata(path).ok()) {
                coverage.total_bytes += meta.len();
                tasks.push((meta.modified().ok(), task));
            }
        }
        tasks.sort_by(|one, other| other.cmp(one));
        Ok(tasks.into_iter().map(|(_, task)| task).collect())
    }
}

/// Finds messages of a span; says how many bytes were read.
fn scan_span(
    log: &Log,
    span: Span,
    request: &SearchRequest<'_>,
    find: TextMatcher<'_>,
) -> Result<(Vec<Seq>, u64), LogError> {
    let facts = wanted_facts(
        request.role,
        request.tool.as_deref(),
        request.file.as_deref(),
    );
    let mut reader = DocumentReader::default();
    let (mut found, mut bytes) = (Vec::new(), 0);
    log.each_message(span, &mut |source, message| {
        let Source::Message(seq) = source else {
            return Ok(());
        };
        bytes += message.len() as u64;
        let time = log.record(seq)?.time;
        if request.since.is_some_and(|since| time < since)
            || request.until.is_some_and(|until| time > until)
        {
            return Ok(());
        }
        let parsed = log.parsed(seq, message)?;
        let text = infold_wire::searchable_text(&infold_wire::ContentBlock::all(&parsed));
        if find(&text).is_empty() {
            return Ok(());
        }
        if !facts.is_empty() {
            let document = reader.read(log, seq, message)?;
            let has = |fact: &String| document.facts.split(' ').any(|one| one == fact);
            if !facts.iter().all(has) {
                return Ok(());
            }
        }
        found.push(seq);
        Ok(())
    })?;
    Ok((found, bytes))
}

/// The terms that a message must have to be of this role, this tool and this file.
pub fn wanted_facts(role: Option<Role>, tool: Option<&str>, file: Option<&str>) -> Vec<String> {
    let role = role.map(|role| role_term(role).to_owned());
    let terms = [role, tool.map(tool_term), file.map(file_term)];
    terms.into_iter().flatten().collect()
}
