//! `infold fold`: folds transcripts in temporary tasks ([`Scratch`]), without storing them, and prints the views.

use std::io::{BufRead, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use infold::{
    Config, FoldMap, ManageError, ManageOutcome, PassAction, PassStep, Scratch, ScratchError,
    SkipReason, manage,
};
use infold_log::{Budget, View};
use infold_wire::transcript::{
    AgentSession, Transcript, TranscriptEntry, TranscriptFormat, TranscriptLayout, TranscriptWriter,
};
use serde_json::json;

use crate::error::{CliError, CliResult, VETO_HINT};
use crate::export::recorded_at;
use crate::fold_options::{FoldOptions, FoldSetup, TaskModel};
use crate::input::{Inputs, in_file, open_transcript, warn_of_torn_line};
use crate::model_access::ModelAccess;
use crate::output::{DIM, FOLD, Output, count, number, paint, print_stderr, say};
use crate::picture::draw;
use crate::progress::ProgressLine;

/// The arguments of `infold fold`.
#[derive(Debug, Args)]
pub struct FoldArgs {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    pub options: FoldOptions,
    /// The format of the transcript [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<TranscriptFormat>,
    /// The format of the view: `same` as the input, or a format [default: messages as JSON Lines,
    /// with an empty line between conversations]
    #[arg(long, value_name = "FORMAT", value_parser = parse_out_format)]
    pub out_format: Option<OutFormat>,
    /// Also print the stand-ins on stderr
    #[arg(long)]
    pub report: bool,
}

/// The format of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutFormat {
    /// The format of the input.
    Same,
    /// The given format.
    In(TranscriptFormat),
}

fn parse_out_format(text: &str) -> Result<OutFormat, String> {
    match text {
        "same" => Ok(OutFormat::Same),
        text => text.parse().map(OutFormat::In),
    }
}

/// `infold fold`
pub fn run(config: &Config, args: &FoldArgs, out: &mut Output) -> CliResult {
    let json = out.is_json();
    let options = &args.options;
    let has_window = options.sets_window(config, &TaskModel::default())?;
    if !has_window && options.model.is_none() && config.model.is_none() {
        return Err(CliError::usage("no window given")
            .hint("use --window 32k, or --model NAME (`infold models` lists them)"));
    }
    let mut setup = options.setup(config, TaskModel::default(), ModelAccess::default(), json)?;
    let paths = args.inputs.paths(json)?;
    let mut conversations = 0;
    // The error for the first conversation that a hook refused to fold although it does not fit.
    let mut veto = None;
    for path in &paths {
        if paths.len() > 1 {
            out.finish()?;
            say(json, format!("{:<10}{}", "file", path.display()));
        }
        let in_file = in_file(&paths, path);
        let folded = fold_file(path, args, &mut setup, conversations, out).map_err(&in_file)?;
        let (total, refused) = folded;
        conversations = total;
        veto = veto.or(refused.map(in_file));
    }
    // All views are printed before the command fails.
    veto.map_or(Ok(()), Err)
}

/// Folds all conversations of a file. `conversations` counts those of earlier files. Returns the count with those of
/// this file, and an error if a hook refused to fold one that does not fit.
fn fold_file(
    path: &Path,
    args: &FoldArgs,
    setup: &mut FoldSetup,
    conversations: u64,
    out: &mut Output,
) -> CliResult<(u64, Option<CliError>)> {
    let json = out.is_json();
    let mut started = Instant::now();
    let (input, size) = open_transcript(path, json)?;
    let mut progress = ProgressLine::new(json, "reading", size);
    let mut transcript = Transcript::open(input, args.format)?;
    let mut folder = ConversationFolder::new(args, &transcript, json);
    folder.conversations = conversations;
    let mut task = Scratch::new()?;
    let mut messages = 0;
    while let Some(chunk) = transcript.next_chunk()? {
        progress.advance(chunk.raw.len() as u64);
        for entry in chunk.entries {
            match entry {
                TranscriptEntry::Message { text, time } => {
                    task.push_at_time(text, time)?;
                    messages += 1;
                }
                TranscriptEntry::Next if messages > 0 => {
                    folder.fold(&mut task, setup, started.elapsed(), out)?;
                    started = Instant::now();
                    task = Scratch::new()?;
                    messages = 0;
                }
                // The agent's own folds are ignored: the transcript still has the messages that they hide.
                TranscriptEntry::Next
                | TranscriptEntry::Compaction { .. }
                | TranscriptEntry::Fold { .. } => {}
            }
        }
    }
    drop(progress);
    warn_of_torn_line(transcript.skipped(), json);
    if messages == 0 && folder.conversations == conversations {
        let hint = format!(
            "it was read as {}; --format reads it as another",
            transcript.format()
        );
        return Err(CliError::no("the input has no messages").hint(hint));
    }
    folder.fold(&mut task, setup, started.elapsed(), out)?;
    Ok((folder.conversations, folder.veto))
}

/// Folds the conversations of one file, and prints and reports each.
struct ConversationFolder<'a> {
    args: &'a FoldArgs,
    format: TranscriptFormat,
    layout: TranscriptLayout,
    session: AgentSession,
    json: bool,
    /// The number of conversations so far, of earlier files too.
    conversations: u64,
    /// The error for the first conversation that a hook refused to fold although it does not fit.
    veto: Option<CliError>,
}

impl<'a> ConversationFolder<'a> {
    fn new<R: BufRead + Seek>(args: &'a FoldArgs, read: &Transcript<R>, json: bool) -> Self {
        ConversationFolder {
            args,
            format: read.format(),
            layout: read.layout(),
            session: read.session().clone(),
            json,
            conversations: 0,
            veto: None,
        }
    }

    /// Folds one conversation, prints its view, and reports its folds; `read` is the time it took to read it.
    fn fold(
        &mut self,
        task: &mut Scratch,
        setup: &mut FoldSetup,
        read: Duration,
        out: &mut Output,
    ) -> CliResult {
        self.conversations += 1;
        let started = Instant::now();
        let setup = &mut setup.setup;
        let writer = task.writer()?;
        let folded = manage(writer, &setup.aim, &mut *setup.summarizer, &setup.hooks);
        let outcome = folded.map_err(|error| cannot_fold(error, "--window"))?;
        let times = (read, started.elapsed());
        self.print_view(task, out)?;
        out.finish()?;
        let veto = veto_error(&outcome, &setup.aim.budget);
        self.veto = self.veto.take().or(veto);
        self.report(task, &setup.aim.budget, setup.aim.factor, &outcome, times)
    }

    /// Prints the view of a task on standard output.
    fn print_view(&self, task: &Scratch, out: &mut Output) -> CliResult {
        let log = task.log();
        let view = View::of(log.state().shown(), log)?;
        let format = match self.args.out_format {
            None => None,
            Some(OutFormat::Same) => Some((self.format, Some(self.layout))),
            Some(OutFormat::In(format)) => Some((format, None)),
        };
        if format.is_none() && self.conversations > 1 {
            // In JSON Lines only an empty line can separate conversations.
            out.raw(b"\n")?;
        }
        let writer = format
            .map(|(format, layout)| TranscriptWriter::new(format, layout))
            .transpose();
        let writer =
            writer.map_err(|error| CliError::usage(error).hint("use another --out-format"))?;
        let mut writer = writer.map(|writer| writer.session(self.session.clone()));
        // `render` stops only at errors of the log; the first error of the output is returned after it.
        let mut failed = None;
        let mut bytes = Vec::new();
        log.render(&view, &mut |source, message| {
            bytes.clear();
            if let Some(writer) = &mut writer {
                if let Err(error) = writer.message(message, recorded_at(log, source)?, &mut bytes) {
                    failed.get_or_insert(CliError::no(error));
                }
            } else {
                bytes.extend_from_slice(message);
                bytes.push(b'\n');
            }
            if let Err(error) = out.raw(&bytes) {
                failed.get_or_insert(error);
            }
            Ok(())
        })?;
        if let Some(writer) = &mut writer {
            bytes.clear();
            writer.finish(&mut bytes);
            out.raw(&bytes)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Reports the folds on standard error.
    fn report(
        &self,
        task: &Scratch,
        budget: &Budget,
        factor: f64,
        outcome: &ManageOutcome,
        (read, fold): (Duration, Duration),
    ) -> CliResult {
        let log = task.log();
        let messages = log.state().at().seq;
        let (read, fold) = (read.as_secs_f64(), fold.as_secs_f64());
        if self.json {
            let mut object = outcome.json();
            object["messages"] = messages.into();
            object["format"] = self.format.name().into();
            object["read_seconds"] = json!(read);
            object["fold_seconds"] = json!(fold);
            print_stderr(object.to_string());
            return Ok(());
        }
        let row = |name: &str, text: String| print_stderr(format!("{name:<10}{text}"));
        let (before, after) = (number(outcome.before.tokens), number(outcome.after.tokens));
        let messages = count(messages, "message");
        row(
            "read",
            format!("{messages} as {}, {before} tokens", self.format),
        );
        for line in draw(&FoldMap::of(log.state(), log)?.scaled(factor)) {
            row("", line);
        }
        for step in &outcome.steps {
            print_stderr(describe_step(step));
        }
        for error in &outcome.errors {
            print_stderr(paint(FOLD, format!("{:<10}{error}", "problem")));
        }
        for line in &outcome.dropped {
            row(
                "dropped",
                format!("an unsupported line of the summary: {line}"),
            );
        }
        let (window, room) = (number(budget.window()), number(budget.allow()));
        row(
            "view",
            format!("{after} tokens; a window of {window} has room for {room}"),
        );
        let times = format!("{:<10}{read:.2} s reading, {fold:.2} s folding", "time");
        print_stderr(paint(DIM, times));
        if self.args.report {
            print_stand_ins(task)?;
        }
        Ok(())
    }
}

/// Prints the text of each stand-in of the view on standard error.
fn print_stand_ins(task: &Scratch) -> CliResult {
    let log = task.log();
    let view = View::of(log.state().shown(), log)?;
    log.render(&view, &mut |source, bytes| {
        if source == infold_log::Source::StandIn
            && let Ok(message) = infold_wire::Message::parse(bytes)
        {
            let mut text = String::new();
            infold_wire::append_plain_text(&message, &mut text);
            print_stderr(format!("\n{text}"));
        }
        Ok(())
    })?;
    Ok(())
}

/// Describes a step of a pass in one line.
pub fn describe_step(step: &PassStep) -> String {
    let what = match step.action {
        PassAction::Untouched => String::new(),
        PassAction::Masked => format!("{} of {}", count(step.hidden, "part"), step.span),
        PassAction::Condensed | PassAction::Truncated => {
            format!("{} ({})", step.span, count(step.hidden, "message"))
        }
    };
    let by = step
        .summarizer
        .as_ref()
        .map_or(String::new(), |name| format!(", by {name}"));
    let (before, after) = (number(step.before), number(step.after));
    format!(
        "{:<10}{what}: {before} → {after} tokens{by}",
        step.action.name()
    )
}

/// Returns an error if a hook refused to fold a view that does not fit.
pub fn veto_error(outcome: &ManageOutcome, budget: &Budget) -> Option<CliError> {
    if outcome.fits || outcome.skipped != Some(SkipReason::Vetoed) {
        return None;
    }
    let (size, tokens) = (outcome.after, number(outcome.after.tokens));
    let mut sizes = format!("{tokens} tokens, with room for {}", number(budget.allow()));
    if let Some(limit) = budget.bytes().filter(|limit| size.bytes > *limit) {
        sizes += &format!(", and {} bytes of {}", number(size.bytes), number(limit));
    }
    let text = format!("the hook before_fold refused, and the view does not fit: it has {sizes}");
    Some(CliError::no(text).hint(VETO_HINT))
}

/// Makes the error for a conversation that cannot be folded; `larger` is the flag that sets a larger window.
pub fn cannot_fold(error: ManageError, larger: &str) -> CliError {
    let text = error.to_string();
    match error {
        ManageError::Floor { floor } if floor.bytes.is_some() => CliError::no(text)
            .hint("nothing was folded; use a larger --max-bytes, or unpin messages"),
        ManageError::Floor { .. } => CliError::no(text).hint(format!(
            "nothing was folded; use a larger {larger}, a smaller --max-tokens, or unpin messages"
        )),
        ManageError::Cancelled => CliError::interrupted(text),
        ManageError::Step(error) => error.into(),
        ManageError::Log(error) => error.into(),
    }
}

impl From<ScratchError> for CliError {
    fn from(error: ScratchError) -> CliError {
        match error {
            ScratchError::Task(error) => error.into(),
            ScratchError::Append(error) => error.into(),
            error @ ScratchError::Dir { .. } => {
                CliError::store(error).hint("TMPDIR sets the directory of temporary files")
            }
        }
    }
}
