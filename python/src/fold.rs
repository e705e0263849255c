//! The function `fold`: folds messages in a temporary task, without storing them.

use std::io::Cursor;

use infold::{Scratch, manage};
use infold_log::View;
use infold_store::Log;
use infold_wire::transcript::{Transcript, TranscriptEntry, TranscriptFormat};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::failure::BindingError;
use crate::json_list::JsonList;
use crate::options::{FoldKeywords, KnownModel};

/// Folds a conversation: a transcript of any format that `infold fold` reads.
///
/// Returns the view, a JSON array of messages, and a JSON object that describes the result.
#[pyfunction]
pub fn fold<'py>(
    py: Python<'py>,
    transcript: &[u8],
    options: FoldKeywords,
    format: Option<&str>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let (view, outcome) = py.detach(|| fold_transcript(transcript, &options, format))?;
    Ok((PyBytes::new(py, &view), outcome.to_string()))
}

/// Folds a transcript, and returns the view as a JSON array and a description of the result.
fn fold_transcript(
    text: &[u8],
    options: &FoldKeywords,
    format: Option<&str>,
) -> Result<(Vec<u8>, Value), BindingError> {
    // `raised` has the exception of a summarizer that is a Python function, if it raised one.
    let (mut setup, raised) = options.setup(KnownModel::default(), true)?;
    let format = format.map(str::parse::<TranscriptFormat>).transpose();
    let format = format.map_err(BindingError::usage)?;
    let mut task = Scratch::new()?;
    let mut count = 0;
    // An empty transcript has no format to detect; its view is empty.
    let format = if text.is_empty() {
        format
    } else {
        Some(read_transcript(text, format, &mut task, &mut count)?)
    };
    let outcome = manage(
        task.writer()?,
        &setup.aim,
        &mut *setup.summarizer,
        &setup.hooks,
    );
    let outcome = outcome.map_err(|error| BindingError::from(error).raising(raised.take()))?;
    let mut object = outcome.json();
    object["messages"] = count.into();
    object["format"] = format.map(TranscriptFormat::name).into();
    object["warnings"] = setup.warnings.into();
    Ok((render(task.log())?, object))
}

/// Reads the messages of a transcript into a task, adds their number to `count`, and returns the format.
fn read_transcript(
    text: &[u8],
    format: Option<TranscriptFormat>,
    task: &mut Scratch,
    count: &mut u64,
) -> Result<TranscriptFormat, BindingError> {
    let mut transcript = Transcript::open(Cursor::new(text), format)?;
    while let Some(chunk) = transcript.next_chunk()? {
        for entry in chunk.entries {
            match entry {
                TranscriptEntry::Message { text, time } => {
                    task.push_at_time(text, time)?;
                    *count += 1;
                }
                TranscriptEntry::Next if *count > 0 => {
                    return Err(BindingError::usage("these are several conversations")
                        .hint("fold them one at a time"));
                }
                // The agent's own folds are ignored: the transcript still has the messages that they hide.
                TranscriptEntry::Next
                | TranscriptEntry::Compaction { .. }
                | TranscriptEntry::Fold { .. } => {}
            }
        }
    }
    if transcript.skipped().torn.is_some() {
        return Err(BindingError::usage("the last message is not complete JSON"));
    }
    Ok(transcript.format())
}

/// Returns the messages of a log's view as a JSON array.
pub fn render(log: &Log) -> Result<Vec<u8>, BindingError> {
    let view = View::of(log.state().shown(), log)?;
    render_view(log, &view)
}

/// Returns the messages of a view as a JSON array.
pub fn render_view(log: &Log, view: &View) -> Result<Vec<u8>, BindingError> {
    let mut list = JsonList::new();
    log.render(view, &mut |_, message| {
        list.push(message);
        Ok(())
    })?;
    Ok(list.finish())
}
