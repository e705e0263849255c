//! Full-text search over the messages of all tasks, hidden or not.
//!
//! The index (`search.db`) is derived from the logs like every sidecar: it is filled before a query and in the
//! background, never by a writer that appends, and is rebuilt when it is missing, damaged or of another
//! version.

mod index;
mod document;
mod fill;
mod scope;
mod filter;
mod rank;
mod snippet;
mod scan;
mod mentions;

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use infold_log::{Past as _, Place, Role, Seq};
use infold_wire::terms::Query;
use infold_wire::{ContentBlock, Message, searchable_text};
use uuid::Uuid;

use crate::{Contexts, Log, RegistryError, TaskError};
pub use fill::IndexCoverage;
pub(crate) use index::SearchIndex;
pub use mentions::MentionIndex;
use scope::Scope;
use snippet::Match;
pub use snippet::Snippet;

/// The parameters of a search: the query, its filters and its limits.
#[derive(Clone)]
pub struct SearchRequest<'a> {
    /// How messages are found.
    pub matching: Matching<'a>,
    /// Only these tasks, with the messages that they continue; none: all tasks.
    pub tasks: Option<Vec<Uuid>>,
    /// Only messages that the model does not see as they came.
    pub only_hidden: bool,
    /// Only messages of this role; messages that carry tool results have the role of a tool.
    pub role: Option<Role>,
    /// Only calls of this tool, and their results.
    pub tool: Option<String>,
    /// Only calls that touch this file, and their results: a path or its end.
    pub file: Option<String>,
    /// Only messages from this time on, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Only messages up to this time.
    pub until: Option<u64>,
    /// No more hits than so many.
    pub limit: usize,
    /// How long the index may be filled, or the logs scanned, before the answer is given with the hits so far.
    pub patience: Duration,
}

/// How messages are found.
#[derive(Clone, Copy)]
pub enum Matching<'a> {
    /// By the words of a query, through the index, best first.
    Words(&'a str),
    /// By the matches of a function in their text: ranges of bytes, in order. The logs are scanned, newest
    /// first.
    Find(&'a dyn Fn(&str) -> Vec<Range<usize>>),
}

impl Contexts {
    /// Checks the search index; returns the damage, if there is any.
    pub fn check_search_index(&self) -> Result<Option<String>, RegistryError> {
        SearchIndex::check(self.root())
    }

    /// Removes the search index. The next search makes a new one.
    pub fn remove_search_index(&self) -> Result<(), RegistryError> {
        SearchIndex::remove(self.root())
    }
}

impl<'a> SearchRequest<'a> {
    /// A search of all tasks for a query.
    pub fn new(matching: Matching<'a>) -> SearchRequest<'a> {
        SearchRequest {
            matching,
            tasks: None,
            only_hidden: false,
            role: None,
            tool: None,
            file: None,
            since: None,
            until: None,
            limit: 20,
            patience: Duration::from_secs(5),
        }
    }
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The task: one of those that were asked for, else the one that holds the message.
    pub task: Uuid,
    /// The message.
    pub seq: Seq,
    /// Its role; tool results have the role of a tool on every wire.
    pub role: Role,
    /// When it was recorded, in milliseconds since 1970.
    pub time: u64,
    /// Its tokens.
    pub tokens: u64,
    /// Whether the model sees it, and behind which fold it is if not.
    pub place: Place,
    /// How well it matches, for comparison with other hits of the same answer.
    pub score: f64,
    /// The text around the match.
    pub snippet: Snippet,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAnswer {
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// The words of the query, folded; none if it was no word query.
    pub words: Vec<String>,
    /// How much was searched.
    pub coverage: IndexCoverage,
}

/// A message that was found, before anything of it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    task: Uuid,
    seq: Seq,
    score: f64,
}

impl Contexts {
    /// Searches the messages of tasks. What is searched for is never an error; one that finds nothing says so.
    ///
    /// ```
    /// # use infold_store::{Contexts, Durability, Matching, Metadata, SearchRequest};
    /// # let dir = tempfile::tempdir()?;
    /// # let contexts = Contexts::new(dir.path(), Durability::Never);
    /// # let task = contexts.create(Metadata::default())?;
    /// # contexts.write(task)?.0.append(&[r#"{"role":"user","content":"the migration of users"}"#])?;
    /// let answer = contexts.search(&SearchRequest::new(Matching::Words("migrate")))?;
    /// assert_eq!(answer.hits[0].snippet.marked("[", "]"), "the [migration] of users");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<SearchAnswer, TaskError> {
        self.settle_redaction()?;
        let deadline = Instant::now() + request.patience;
        match request.matching {
            Matching::Find(find) => self.scan(request, find, deadline),
            Matching::Words(text) => match self.search_words(text, request, deadline) {
                Err(TaskError::Registry(RegistryError::Damaged { reason, .. })) => {
                    self.renew_search_index(&reason)?;
                    self.search_words(text, request, deadline)
                }
                answered => answered,
            },
        }
    }

    fn search_words(
        &self,
        text: &str,
        request: &SearchRequest<'_>,
        deadline: Instant,
    ) -> Result<SearchAnswer, TaskError> {
        let query = Query::parse(text);
        let words = query.words().into_iter().map(str::to_owned).collect();
        let (mut index, coverage) = self.filled_index(request.tasks.as_deref(), deadline)?;
        let mut logs = OpenLogs::new(self);
        let mut hits = Vec::new();
        if let Some(scope) = Scope::of(self, request.tasks.as_deref(), &mut index)? {
            let mut found = rank::ranked(&mut index, &query, request, &scope)?.into_iter();
            while hits.len() < request.limit
                && let Some(one) = found.next()
            {
                let matches = |text: &str| snippet::query_matches(&query, text);
                hits.extend(logs.hit(one, request.only_hidden, &matches)?);
            }
        }
        Ok(SearchAnswer {
            hits,
            words,
            coverage,
        })
    }
}

/// The logs of the tasks that hits are in, each opened once.
struct OpenLogs<'a> {
    contexts: &'a Contexts,
    logs: HashMap<Uuid, Option<Log>>,
}

/// The most logs that are open at a time.
const MAX_OPEN_LOGS: usize = 32;

impl<'a> OpenLogs<'a> {
    fn new(contexts: &'a Contexts) -> OpenLogs<'a> {
        OpenLogs {
            contexts,
            logs: HashMap::new(),
        }
    }

    /// The log of a task; none if the task is gone or cannot be read.
    fn get(&mut self, task: Uuid) -> Option<&Log> {
        if self.logs.len() >= MAX_OPEN_LOGS && !self.logs.contains_key(&task) {
            self.logs.clear();
        }
        let open = || self.contexts.read(task).ok();
        self.logs.entry(task).or_insert_with(open).as_ref()
    }

    /// Reads a message that was found; none if it is gone, or does not pass the filters.
    fn hit(
        &mut self,
        found: Found,
        only_hidden: bool,
        matches: &dyn Fn(&str) -> Vec<Match>,
    ) -> Result<Option<SearchHit>, TaskError> {
        let Found { task, seq, score } = found;
        let Some(log) = self.get(task) else {
            return Ok(None);
        };
        if seq.get() > log.state().at().seq {
            return Ok(None);
        }
        let place = log.state().shown().place(seq);
        if only_hidden && place == Place::Open {
            return Ok(None);
        }
        let bytes = log.message(seq)?;
        let message = log.parsed(seq, &bytes)?;
        let record = log.record(seq)?;
        let before = seq.prev().map(|before| log.record(before)).transpose()?;
        let text = searchable_text(&ContentBlock::all(&message));
        Ok(Some(SearchHit {
            task,
            seq,
            role: speaker(&message),
            time: record.time,
            tokens: record.sums.tokens - before.map_or(0, |before| before.sums.tokens),
            place,
            score,
            snippet: Snippet::of(&text, &matches(&text)),
        }))
    }
}

/// Returns the role of a message. Tool results have their own, even on wires where they have that of the user.
fn speaker(message: &Message<'_>) -> Role {
    if message.answers().is_empty() {
        message.role()
    } else {
        Role::Tool
    }
}
