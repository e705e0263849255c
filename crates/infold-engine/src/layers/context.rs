//! Builds the document that a model is shown of a task's state.

use infold_layers::{BuildError, BuildRequest, Built, LayerState, build};
use infold_log::Shown;
use infold_store::{Log, LogError};
use infold_wire::tokens::{Encoding, count};

use super::{fill, read_state};
use crate::config::LayersConfig;
use crate::extract::select_sentences;

/// How the document of a task is to be built.
pub struct ContextRequest<'a> {
    /// The tokens that it may take.
    pub max_tokens: u64,
    /// The time, in milliseconds since 1970.
    pub now: u64,
    /// The settings.
    pub config: &'a LayersConfig,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The limit is too small.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Builds the document of a task: what was set, and what follows from its log.
pub fn build_context(
    log: &Log,
    shown: &Shown,
    request: &ContextRequest<'_>,
) -> Result<Built, ContextError> {
    let mut state = read_state(log, shown)?;
    let turns = request.config.recent_turns.value as usize;
    fill(&mut state, log, shown, turns)?;
    Ok(build_state(&state, request)?)
}

/// Builds the document of a state.
pub fn build_state(state: &LayerState, request: &ContextRequest<'_>) -> Result<Built, BuildError> {
    let config = request.config;
    let request = BuildRequest {
        shares: config.shares.clone(),
        now: request.now,
        ranked: config.ranked.clone(),
        min_relevance: config.threshold.value,
        condense: &condense_text,
        ..BuildRequest::new(request.max_tokens)
    };
    build(state, &request)
}

/// Shortens a text to a number of tokens by leaving out the sentences that tell least; `[…]` marks omissions.
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
