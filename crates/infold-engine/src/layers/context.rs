//! Builds the document that a model is shown of a task's state.

use infold_layers::{BuildError, BuildRequest, BuiltDocument, Field, LayerState, build};
use infold_log::{EventId, Shown};
use infold_store::{Log, LogError, What, Writer};
use infold_wire::tokens::{Encoding, count};
use infold_wire::{CONTEXT_HEAD, CONTEXT_TAIL};

use super::vectors::vector_scores;
use super::{VectorSource, fill, read_state};
use crate::config::LayersConfig;
use crate::extract::select_sentences;

/// The settings for building the document of a task.
pub struct ContextRequest<'a> {
    /// The tokens that it may take.
    pub max_tokens: u64,
    /// The time, in milliseconds since 1970.
    pub now: u64,
    /// The settings.
    pub config: &'a LayersConfig,
}

/// The reason that there is no document.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The limit is too small.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Builds the document of a task from the entries that were set and from its log. Uses only cached embeddings.
pub fn build_context(
    log: &Log,
    shown: &Shown,
    request: &ContextRequest<'_>,
) -> Result<BuiltDocument, ContextError> {
    build_context_with(log, shown, request, &mut VectorSource::cached())
}

/// Builds the document of a task, with embeddings from `source` if they are configured.
pub fn build_context_with(
    log: &Log,
    shown: &Shown,
    request: &ContextRequest<'_>,
    source: &mut VectorSource<'_>,
) -> Result<BuiltDocument, ContextError> {
    let mut state = read_state(log, shown)?;
    let turns = request.config.recent_turns.value as usize;
    fill(&mut state, log, shown, turns)?;
    Ok(build_state(&state, log, request, source)?)
}

/// Builds the document of a state of a task.
fn build_state(
    state: &LayerState,
    log: &Log,
    request: &ContextRequest<'_>,
    source: &mut VectorSource<'_>,
) -> Result<BuiltDocument, BuildError> {
    let config = request.config;
    let by_words = BuildRequest {
        shares: config.shares.clone(),
        now: request.now,
        ranked: config.ranked.clone(),
        min_relevance: config.threshold.value,
        condense: &condense_text,
        ..BuildRequest::new(request.max_tokens)
    };
    let Some(scores) = vector_scores(state, log, config, source) else {
        return build(state, &by_words);
    };
    let by_embeddings = BuildRequest {
        min_relevance: config.embedding_threshold.value,
        score: &|_, texts| scores.of(texts),
        ..by_words
    };
    build(state, &by_embeddings)
}

/// The parts of a document, by their place in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// The part that seldom changes, behind the system prompt.
    pub stable: Option<String>,
    /// The part that changes, at the end of the last message.
    pub changing: Option<String>,
    /// All of it, at the end of the last message, if nothing can follow the system prompt.
    pub whole: Option<String>,
}

/// Builds the part of a task's state for a request; `None` if it has no state.
///
/// Only entries that were set are shown: turns, summaries and results of tools are in the request already. No
/// embeddings are requested; only cached ones are used.
pub fn request_context(
    log: &Log,
    request: &ContextRequest<'_>,
) -> Result<Option<RequestContext>, ContextError> {
    request_context_with(log, request, &mut VectorSource::cached())
}

/// Builds the part of a task's state for a request, with embeddings from `source` if they are configured.
pub fn request_context_with(
    log: &Log,
    request: &ContextRequest<'_>,
    source: &mut VectorSource<'_>,
) -> Result<Option<RequestContext>, ContextError> {
    let shown = log.state().shown();
    if shown.state_changes().last.is_none() {
        return Ok(None);
    }
    let state = read_state(log, shown)?;
    if state.is_empty() {
        return Ok(None);
    }
    let built = build_state(&state, log, request, source)?;
    Ok(Some(RequestContext {
        stable: built.document_of(Field::is_stable),
        changing: built.document_of(|field| !field.is_stable()),
        whole: built.document_of(|_| true),
    }))
}

/// Says whether a view shows anything of a layered state.
pub fn shows_context(shown: &Shown) -> bool {
    shown.all_recalls().any(|(_, recall)| recall.is_context())
}

/// Adds the changing part of a state to the end of the last message, unless the view shows the same already. Returns
/// the event that records it; `None` if there is nothing new, or no place for it.
pub fn show_changing(writer: &mut Writer, text: Option<&str>) -> Result<Option<EventId>, LogError> {
    let log = writer.log();
    let recalls = log.state().shown().all_recalls();
    let own = recalls.filter(|(_, recall)| recall.is_context());
    let newest = own.map(|(id, _)| id).max();
    let before = match newest {
        Some(newest) => match log.event(newest)?.what {
            What::Recall(recall) => Some(recall.text),
            _ => None,
        },
        None => None,
    };
    let empty = format!("{CONTEXT_HEAD}{CONTEXT_TAIL}");
    let text = match (text, &before) {
        (Some(text), _) => text,
        // The context that was shown before no longer holds.
        (None, Some(_)) => &empty,
        (None, None) => return Ok(None),
    };
    if before.as_deref() == Some(text) {
        return Ok(None);
    }
    writer.show_context(text)
}

/// Shortens a text to a number of tokens by leaving out the least informative sentences; `[…]` marks omissions.
pub fn condense_text(text: &str, max_tokens: u64) -> Option<String> {
    // About four bytes to a token in English, fewer in other scripts: halved until it fits.
    let mut bytes = usize::try_from(max_tokens.saturating_mul(4)).ok()?;
    while bytes >= 16 {
        let short = select_sentences(text, bytes);
        if count(Encoding::O200k, &short) <= max_tokens {
            return Some(short);
        }
        bytes = bytes * 3 / 4;
    }
    None
}
