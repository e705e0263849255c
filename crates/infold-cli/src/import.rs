//! `infold import`: creates tasks from transcripts.

use std::io::BufReader;

use clap::Args;
use infold::Config;
use infold::setup::in_effect;
use infold_log::{Cause, Role, Seq, Span};
use infold_store::{Contexts, Metadata, TaskDraft};
use infold_wire::Message;
use infold_wire::transcript::{
    AgentSession, SkippedRecords, Transcript, TranscriptChunk, TranscriptEntry, TranscriptFormat,
};
use serde_json::json;
use uuid::Uuid;

use crate::args::NewArgs;
use crate::error::{CliError, CliResult};
use crate::input::{Inputs, SeekableInput, in_file, open_seekable, warn_of_torn_line};
use crate::output::{Output, count, note, say};
use crate::signals::Interrupt;

/// The arguments of `infold import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    inputs: Inputs,
    /// Read it as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<TranscriptFormat>,
    #[command(flatten)]
    new: NewArgs,
}

/// The counts of one imported conversation.
#[derive(Default)]
struct ImportCounts {
    messages: usize,
    calls: usize,
    folds: u64,
    empty_folds: u64,
}

/// `infold import`
pub fn import(
    contexts: &Contexts,
    config: &Config,
    args: &ImportArgs,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    let paths = args.inputs.paths(json)?;
    let interrupt = Interrupt::listen();
    let mut imports = Vec::new();
    for path in &paths {
        let in_file = in_file(&paths, path);
        let mut input = open_seekable(path, json)?;
        let buffered = BufReader::with_capacity(64 << 10, &mut input);
        let transcript = Transcript::open(buffered, args.format);
        let transcript = transcript.map_err(|error| in_file(error.into()))?;
        let format = transcript.format();
        let read = read(contexts, config, transcript, &args.new, &interrupt).map_err(in_file)?;
        imports.push((path, format, read));
    }
    // All files are read completely before the first task is published.
    for (path, format, (drafts, seen)) in imports {
        if paths.len() > 1 {
            out.finish()?;
            say(json, path.display().to_string());
        }
        publish(drafts, format, &seen, out)?;
    }
    Ok(())
}

/// Publishes the tasks of one file and prints their ids.
fn publish(
    drafts: TaskDrafts<'_>,
    format: TranscriptFormat,
    seen: &SkippedRecords,
    out: &mut Output,
) -> CliResult {
    let mut total = ImportCounts::default();
    let mut ids: Vec<Uuid> = Vec::new();
    for (draft, counts) in drafts {
        let id = draft.publish().map_err(|error| {
            let error = CliError::from(error);
            if ids.is_empty() {
                return error;
            }
            let created: Vec<String> = ids.iter().map(Uuid::to_string).collect();
            let created = created.join(", ");
            error.after(&format!(
                "of several conversations these were created: {created}"
            ))
        })?;
        total.messages += counts.messages;
        total.calls += counts.calls;
        total.folds += counts.folds;
        total.empty_folds += counts.empty_folds;
        ids.push(id);
        let object = json!({
            "uuid": id.to_string(), "format": format.name(), "messages": counts.messages,
        });
        out.result(&object, id.to_string())?;
    }
    out.finish()?;
    let mut text = format!("{format}: {}", count(total.messages as u64, "message"));
    if ids.len() > 1 {
        text += &format!(" in {}", count(ids.len() as u64, "conversation"));
    }
    if total.calls > 0 {
        text += &format!(", {}", count(total.calls as u64, "tool call"));
    }
    if total.folds > 0 {
        text += &format!(", {} imported", count(total.folds, "fold"));
    }
    if total.empty_folds > 0 {
        text += &format!(
            ", {} with nothing to fold",
            count(total.empty_folds, "compaction")
        );
    }
    let skipped = seen
        .skipped
        .iter()
        .map(|(what, times)| format!("{times} {what}"));
    let skipped: Vec<String> = skipped.collect();
    if !skipped.is_empty() {
        text += &format!("; stored, but not as messages: {}", skipped.join(", "));
    }
    note(out.is_json(), text);
    warn_of_torn_line(seen, out.is_json());
    Ok(())
}

type TaskDrafts<'a> = Vec<(TaskDraft<'a>, ImportCounts)>;

/// Reads all conversations of a transcript into drafts.
fn read<'a>(
    contexts: &'a Contexts,
    config: &Config,
    mut transcript: Transcript<BufReader<&mut Box<dyn SeekableInput>>>,
    new: &NewArgs,
    interrupt: &Interrupt,
) -> CliResult<(TaskDrafts<'a>, SkippedRecords)> {
    let (format, layout) = (transcript.format(), transcript.layout());
    let session = transcript.session().clone();
    let start = || {
        let metadata = Metadata {
            in_effect: in_effect(config, new.model.as_deref(), new.context_length),
            session: (session != AgentSession::default()).then(|| session.clone()),
            ..metadata(new, format)
        };
        contexts.draft(metadata, format.name(), &layout.to_string())
    };
    let mut drafts = Vec::new();
    let (mut draft, mut counts) = (start()?, ImportCounts::default());
    while let Some(piece) = transcript.next_chunk()? {
        interrupt.check()?;
        if piece.entries.contains(&TranscriptEntry::Next) {
            draft.finish()?;
            drafts.push((draft, counts));
            (draft, counts) = (start()?, ImportCounts::default());
        }
        append(&mut draft, piece, &mut counts)?;
    }
    draft.finish()?;
    drafts.push((draft, counts));
    Ok((drafts, transcript.skipped().clone()))
}

fn append(
    draft: &mut TaskDraft<'_>,
    piece: TranscriptChunk,
    counts: &mut ImportCounts,
) -> CliResult {
    let mut messages = Vec::new();
    let mut folds = Vec::new();
    for entry in piece.entries {
        match entry {
            TranscriptEntry::Message { text, time } => {
                counts.calls += Message::parse(&text).map_or(0, |message| message.calls().len());
                messages.push((text, time));
            }
            TranscriptEntry::Compaction { summary, kept } => {
                let covers = Seq::new(kept as u64).and_then(|to| Span::new(Seq::FIRST, to));
                folds.push((Cause::Summary, covers, Role::User, summary));
            }
            TranscriptEntry::Fold {
                cause,
                covers,
                role,
                text,
            } => folds.push((cause, Some(covers), role, text)),
            TranscriptEntry::Next => {}
        }
    }
    counts.messages += messages.len();
    draft.piece(&piece.raw, messages)?;
    if let Some(filled) = piece.list_end {
        draft.list_end(filled)?;
    }
    for (cause, covers, role, text) in folds {
        let folded = match covers {
            Some(covers) => draft.fold(cause, covers, role, &text)?,
            None => None,
        };
        match folded {
            Some(_) => counts.folds += 1,
            None => counts.empty_folds += 1,
        }
    }
    Ok(())
}

fn metadata(new: &NewArgs, format: TranscriptFormat) -> Metadata {
    let wire = match format {
        TranscriptFormat::OpenAi | TranscriptFormat::SweAgent | TranscriptFormat::Aider => "openai",
        _ => "anthropic",
    };
    // The formats of providers name no agent.
    let is_agent = !matches!(
        format,
        TranscriptFormat::OpenAi | TranscriptFormat::Anthropic | TranscriptFormat::Gemini
    );
    Metadata {
        agent: is_agent.then(|| format.name().to_owned()),
        ..new.metadata(wire)
    }
}
