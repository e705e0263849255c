//! Reads the messages that a fold will replace from the log.

use std::collections::BTreeSet;

use infold_log::steer::Cover;
use infold_log::{Cause, Item, Past, Seq, Size, Span, plan, steer};
use infold_store::{Log, LogError, What};
use infold_wire::Message;

use super::Executor;
use super::condense::leaves;
use crate::extract::Extract;
use crate::extract::facts::ExtractedFacts;
use crate::strategy::StandIn;

/// The most summarizer calls of one pass.
pub const MAX_CHUNKS: usize = 16;

/// The bytes of messages from which on facts are stored: fewer messages are read again fast enough.
const MIN_KEPT_BYTES: u64 = 4 << 20;

/// The messages that a fold will replace, read once.
pub struct FoldSource {
    pub cover: Cover,
    /// The visible part of it, as runs of seqs.
    pub runs: Vec<Span>,
    /// Earlier summaries in it.
    pub previous: Option<String>,
    pub extract: Extract,
    /// Tokens that leave the view, as counted.
    pub leaves: u64,
    /// The tokens of all replaced messages, those behind earlier folds included.
    pub original: u64,
}

impl FoldSource {
    /// Reads all messages that a fold will replace: those behind earlier folds too, so that no summary is written from
    /// a summary.
    pub fn read(executor: &Executor<'_>, cover: Cover) -> Result<FoldSource, LogError> {
        let (log, state) = (executor.log(), executor.state());
        let mut runs = Vec::new();
        let mut covered = Vec::new();
        let mut earlier = Vec::new();
        for item in state.shown().items() {
            match item {
                Item::Run(run) => {
                    runs.extend(run.meet(cover.span));
                    covered.extend(run.meet(cover.span));
                }
                Item::Fold(fold) if fold.span().meet(cover.span).is_some() => {
                    covered.extend(fold.runs.iter().copied());
                    if fold.cause == Cause::Summary
                        && let What::Fold(line) = log.event(fold.id)?.what
                    {
                        let summary = StandIn::summary(&line.stand_in).to_owned();
                        earlier.push((summary, StandIn::is_by_code(&line.stand_in)));
                    }
                }
                Item::Fold(_) => {}
            }
        }
        let exempt = steer::always_shown(state, cover.span, log)?;
        let covered = without(&covered, &exempt);
        let runs = without(&runs, &exempt);
        let size = weigh(&covered, log)?;
        let (mut extract, rest) = collected(log, &covered);
        extract.expect(size.bytes);
        for (summary, is_by_code) in &earlier {
            // A summary that code wrote has nothing that the messages lack.
            if !is_by_code {
                extract.previous(summary);
            }
        }
        let earlier: Vec<String> = earlier.into_iter().map(|(summary, _)| summary).collect();
        let path = state.shown().path();
        let mut read_to = None;
        for run in &rest {
            if read_to != run.from().prev() {
                for before in just_before(run.from(), &path) {
                    log.each_message(before, &mut |_, bytes| {
                        if let Ok(message) = Message::parse(bytes) {
                            extract.context(&message);
                        }
                        Ok(())
                    })?;
                }
            }
            read_to = Some(run.to());
            log.each_message(*run, &mut |source, bytes| {
                if let (Some(seq), Ok(message)) = (source.seq(), Message::parse(bytes)) {
                    extract.message(seq, &message);
                }
                Ok(())
            })?;
        }
        let is_much = weigh(&rest, log)?.bytes >= MIN_KEPT_BYTES;
        if is_much && matches!(executor, Executor::Writes(_)) {
            log.keep_facts(&mut |to| ExtractedFacts::write(&covered, &extract, to));
        }
        for run in staying(executor, &cover, &exempt) {
            log.each_message(run, &mut |_, bytes| {
                if let Ok(message) = Message::parse(bytes) {
                    extract.stays(&message);
                }
                Ok(())
            })?;
        }
        Ok(FoldSource {
            leaves: leaves(executor, &cover)?,
            original: size.tokens,
            cover,
            runs,
            previous: (!earlier.is_empty()).then(|| earlier.join("\n\n")),
            extract,
        })
    }

    /// Cuts the messages into chunks that a summarizer takes, at most [`MAX_CHUNKS`],
    /// the newest ones: the lists that code writes cover the older ones.
    pub fn chunks(&self, log: &Log, takes: Option<u64>) -> Result<Vec<Vec<Span>>, LogError> {
        let Some(takes) = takes else {
            return Ok(vec![self.runs.clone()]);
        };
        let mut chunks: Vec<Vec<Span>> = Vec::new();
        let mut room = 0;
        for seq in self.runs.iter().flat_map(|run| run.seqs()) {
            let before = match seq.prev() {
                Some(previous) => log.record(previous)?.sums.tokens,
                None => 0,
            };
            let tokens = log.record(seq)?.sums.tokens - before;
            if tokens > room || chunks.is_empty() {
                chunks.push(Vec::new());
                room = takes;
            }
            room = room.saturating_sub(tokens);
            let chunk = chunks.last_mut().expect("one was just pushed");
            match chunk.last_mut() {
                Some(run) if run.to().next() == seq => {
                    *run = Span::new(run.from(), seq).expect("seqs are in order");
                }
                _ => chunk.push(Span::one(seq)),
            }
        }
        let surplus = chunks.len().saturating_sub(MAX_CHUNKS);
        Ok(chunks.split_off(surplus))
    }
}

/// Returns the messages that stay visible beside a fold: those before and behind it, and those it spares.
fn staying(executor: &Executor<'_>, cover: &Cover, spared: &BTreeSet<Seq>) -> Vec<Span> {
    let mut out: Vec<Span> = spared.iter().copied().map(Span::one).collect();
    for item in executor.state().shown().items() {
        let Item::Run(run) = item else { continue };
        let end = cover.span.from().prev().map(|end| end.min(run.to()));
        out.extend(end.and_then(|end| Span::new(run.from(), end)));
        let start = cover.span.to().next().max(run.from());
        out.extend(Span::new(start, run.to()));
    }
    out
}

/// Returns the facts collected for an earlier fold of the same messages, and the messages that were not read then.
fn collected(log: &Log, covered: &[Span]) -> (Extract, Vec<Span>) {
    let facts = log.facts().and_then(|bytes| ExtractedFacts::read(&bytes));
    let known = facts.and_then(|facts| Some((facts.rest(covered)?, facts.extract)));
    match known {
        Some((rest, extract)) => (extract, rest),
        None => (Extract::new(), covered.to_vec()),
    }
}

/// Returns runs without some of their messages.
fn without(runs: &[Span], gone: &BTreeSet<Seq>) -> Vec<Span> {
    let mut out = Vec::new();
    for run in runs {
        let mut from = Some(run.from());
        for seq in gone.range(run.from()..=run.to()) {
            let to = seq.prev();
            out.extend(from.zip(to).and_then(|(from, to)| Span::new(from, to)));
            from = Some(seq.next());
        }
        out.extend(from.and_then(|from| Span::new(from, run.to())));
    }
    out
}

/// Returns the last few messages of a path before one of them.
fn just_before(seq: Seq, path: &[Span]) -> Vec<Span> {
    const CONTEXT_MESSAGES: u64 = 3;
    let from = Seq::new(seq.get().saturating_sub(CONTEXT_MESSAGES).max(1));
    let span = from
        .zip(seq.prev())
        .and_then(|(from, to)| Span::new(from, to));
    let Some(span) = span else {
        return Vec::new();
    };
    path.iter().filter_map(|run| run.meet(span)).collect()
}

/// Returns the size of the messages of runs, as they came.
fn weigh(runs: &[Span], log: &Log) -> Result<Size, LogError> {
    let mut size = Size::default();
    for run in runs {
        let run = plan::weigh(*run, log)?;
        size.tokens += run.tokens;
        size.bytes += run.bytes;
    }
    Ok(size)
}
