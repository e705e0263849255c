use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use infold::{
    Config, FoldMap, ManageError, ManageOutcome, PassAction, PassStep, Scratch, ScratchError,
    SkipReason, manage,
};
use infold_log::{Budget, View};
use infold_wire::transcript::{Entry, Format, Layout, Session, Transcript, Write};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::input::{self, Inputs, Staged};
use crate::out::{DIM, MADE, Out, aside, count, number, paint, say};
use crate::pen::Reach;
use crate::picture::draw;
use crate::progress::Progress;
use crate::settings::{Choice, Chosen, Known};
use crate::transfer::said_at;

/// What `infold fold` takes.
#[derive(Debug, Args)]
pub struct FoldArgs {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    pub choice: Choice,
    /// What the transcript is, if it is not to be recognised
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// How to write the view: `same` as it came, or a format; messages as JSON Lines without it,
    /// an empty line between conversations
    #[arg(long, value_name = "FORMAT", value_parser = out_format)]
    pub out_format: Option<OutFormat>,
    /// Print what stands in for what was folded, too
    #[arg(long)]
    pub report: bool,
}

/// How to write a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutFormat {
    /// As it came in.
    Same,
    /// In this format.
    In(Format),
}

fn out_format(text: &str) -> Result<OutFormat, String> {
    match text {
        "same" => Ok(OutFormat::Same),
        text => text.parse().map(OutFormat::In),
    }
}

/// `infold fold`
pub fn run(config: &Config, args: &FoldArgs, out: &mut Out) -> Result<(), Failure> {
    let json = out.is_json();
    let is_told = args.choice.tells_window(config, &Known::default())?;
    if !is_told && args.choice.model.is_none() && config.model.is_none() {
        return Err(Failure::new(Kind::Usage, "how large is the window?")
            .hint("say --window 32k, or --model NAME (`infold models` lists them)"));
    }
    let mut chosen = args
        .choice
        .chosen(config, Known::default(), Reach::default(), json)?;
    let paths = args.inputs.paths(json)?;
    let mut conversations = 0;
    let mut refused = None;
    for path in &paths {
        if paths.len() > 1 {
            out.finish()?;
            say(json, format!("{:<10}{}", "file", path.display()));
        }
        let about = |failure: Failure| match paths.len() {
            1 => failure,
            _ => failure.within(&path.display().to_string()),
        };
        let folded = fold_file(path, args, &mut chosen, conversations, out);
        let (so_far, vetoed) = folded.map_err(about)?;
        conversations = so_far;
        refused = refused.or(vetoed.map(about));
    }
    // All views are printed before the answer is no.
    refused.map_or(Ok(()), Err)
}

/// Folds all conversations of a file; returns how many there were so far, and what to say if a hook kept one from
/// being folded that had to be.
fn fold_file(
    path: &Path,
    args: &FoldArgs,
    chosen: &mut Chosen,
    conversations: u64,
    out: &mut Out,
) -> Result<(u64, Option<Failure>), Failure> {
    let json = out.is_json();
    let mut started = Instant::now();
    let (input, size) = opened(path, json)?;
    let mut progress = Progress::new(json, "reading", size);
    let mut transcript = Transcript::open(input, args.format)?;
    let mut told = Told::new(args, &transcript, json);
    told.conversations = conversations;
    let mut task = Scratch::new()?;
    let mut messages = 0;
    loop {
        let piece = transcript.next_piece()?;
        let Some(piece) = piece else { break };
        progress.advance(piece.raw.len() as u64);
        for entry in piece.entries {
            match entry {
                Entry::Message { text, time } => {
                    task.push_at_time(text, time)?;
                    messages += 1;
                }
                Entry::Next if messages > 0 => {
                    told.one(&mut task, chosen, started.elapsed(), out)?;
                    started = Instant::now();
                    task = Scratch::new()?;
                    messages = 0;
                }
                // What an agent folded by itself is all there: it is folded anew.
                Entry::Next | Entry::Compaction { .. } | Entry::Fold { .. } => {}
            }
        }
    }
    drop(progress);
    input::warn_of_torn_line(transcript.seen(), json);
    if messages == 0 && told.conversations == conversations {
        return Err(
            Failure::new(Kind::No, "there are no messages in it").hint(format!(
                "it was read as {}; --format says otherwise",
                transcript.format()
            )),
        );
    }
    told.one(&mut task, chosen, started.elapsed(), out)?;
    Ok((told.conversations, told.refused))
}

/// Opens a transcript for reading, and says how large it is.
pub fn opened(file: &Path, json: bool) -> Result<(BufReader<Box<dyn Staged>>, u64), Failure> {
    let mut input = input::staged(file, json)?;
    let size = input
        .seek(SeekFrom::End(0))
        .map_err(input::unreadable(file))?;
    Ok((BufReader::with_capacity(1 << 18, input), size))
}

/// Folds conversations and tells of it.
struct Told<'a> {
    args: &'a FoldArgs,
    format: Format,
    layout: Layout,
    session: Session,
    write: Option<OutFormat>,
    json: bool,
    conversations: u64,
    /// The first conversation that a hook kept from being folded although it had to be.
    refused: Option<Failure>,
}

impl<'a> Told<'a> {
    fn new<R: BufRead + Seek>(args: &'a FoldArgs, read: &Transcript<R>, json: bool) -> Told<'a> {
        Told {
            args,
            format: read.format(),
            layout: read.layout(),
            session: read.session().clone(),
            write: args.out_format,
            json,
            conversations: 0,
            refused: None,
        }
    }

    /// Folds one conversation, prints its view and tells the story.
    fn one(
        &mut self,
        task: &mut Scratch,
        chosen: &mut Chosen,
        read: Duration,
        out: &mut Out,
    ) -> Result<(), Failure> {
        self.conversations += 1;
        let started = Instant::now();
        let writer = task.writer()?;
        let folded = manage(
            writer,
            &chosen.setup.aim,
            &mut *chosen.setup.summarizer,
            &chosen.setup.hooks,
        );
        let outcome = folded.map_err(|error| cannot_fold(error, "--window"))?;
        let fold = started.elapsed();
        self.print(task, out)?;
        out.finish()?;
        let refused = vetoed(&outcome, &chosen.setup.aim.budget);
        self.refused = self.refused.take().or(refused);
        self.story(task, chosen, &outcome, (read, fold))
    }

    /// Prints the view.
    fn print(&self, task: &Scratch, out: &mut Out) -> Result<(), Failure> {
        let log = task.log();
        let view = View::of(log.state().shown(), log)?;
        let format = match self.write {
            None => None,
            Some(OutFormat::Same) => Some((self.format, Some(self.layout))),
            Some(OutFormat::In(format)) => Some((format, None)),
        };
        if format.is_none() && self.conversations > 1 {
            // Lines have nothing else to tell conversations apart.
            out.raw(b"\n")?;
        }
        let mut failed = None;
        let mut write = match format {
            None => None,
            Some((format, layout)) => {
                let write = Write::new(format, layout).map_err(|error| {
                    Failure::new(Kind::Usage, error).hint("give another --out-format")
                })?;
                Some(write.session(self.session.clone()))
            }
        };
        let mut bytes = Vec::new();
        log.render(&view, &mut |source, message| {
            bytes.clear();
            match &mut write {
                None => {
                    bytes.extend_from_slice(message);
                    bytes.push(b'\n');
                }
                Some(write) => {
                    if let Err(error) = write.message(message, said_at(log, source)?, &mut bytes) {
                        failed = failed.take().or(Some(Failure::new(Kind::No, error)));
                    }
                }
            }
            if let Err(failure) = out.raw(&bytes) {
                failed = failed.take().or(Some(failure));
            }
            Ok(())
        })?;
        if let Some(write) = &mut write {
            bytes.clear();
            write.finish(&mut bytes);
            out.raw(&bytes)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells what was done, on standard error.
    fn story(
        &self,
        task: &Scratch,
        chosen: &Chosen,
        outcome: &ManageOutcome,
        (read, fold): (Duration, Duration),
    ) -> Result<(), Failure> {
        let log = task.log();
        let picture = FoldMap::of(log.state(), log)?.scaled(chosen.setup.aim.factor);
        let messages = log.state().at().seq;
        if self.json {
            let mut object = outcome.json();
            object["messages"] = messages.into();
            object["format"] = self.format.name().into();
            object["read_seconds"] = json!(read.as_secs_f64());
            object["fold_seconds"] = json!(fold.as_secs_f64());
            aside(object.to_string());
            return Ok(());
        }
        let before = number(outcome.before.tokens);
        let say = |text: String| say(self.json, text);
        say(format!(
            "{:<10}{} as {}, {before} tokens",
            "read",
            count(messages, "message"),
            self.format,
        ));
        for line in draw(&picture) {
            say(format!("{:<10}{line}", ""));
        }
        for step in &outcome.steps {
            say(told(step));
        }
        for error in &outcome.errors {
            say(paint(MADE, format!("{:<10}{error}", "but")));
        }
        for line in &outcome.dropped {
            say(format!(
                "{:<10}a line of the summary that nobody said: {line}",
                "dropped"
            ));
        }
        let budget = chosen.setup.aim.budget;
        say(format!(
            "{:<10}{} tokens; a window of {} has room for {}",
            "view",
            number(outcome.after.tokens),
            number(budget.window()),
            number(budget.allow()),
        ));
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        say(paint(
            DIM,
            format!(
                "{:<10}{} reading, {} folding",
                "time",
                seconds(read),
                seconds(fold)
            ),
        ));
        if self.args.report {
            self.report(task)?;
        }
        Ok(())
    }

    /// Prints what stands in for what was folded.
    fn report(&self, task: &Scratch) -> Result<(), Failure> {
        let log = task.log();
        let view = View::of(log.state().shown(), log)?;
        log.render(&view, &mut |source, bytes| {
            if source == infold_log::Source::StandIn
                && let Ok(message) = infold_wire::Message::parse(bytes)
            {
                let mut text = String::new();
                infold_wire::plain(&message, &mut text);
                aside(format!("\n{text}"));
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// A step of a pass in one line.
pub fn told(step: &PassStep) -> String {
    let what = match step.action {
        PassAction::Untouched => String::new(),
        PassAction::Masked => format!("{} of {}", count(step.hidden, "part"), step.span),
        PassAction::Condensed | PassAction::Truncated => {
            format!("{} ({})", step.span, count(step.hidden, "message"))
        }
    };
    let by = match &step.summarizer {
        Some(name) => format!(", by {name}"),
        None => String::new(),
    };
    let sizes = format!("{} → {} tokens", number(step.before), number(step.after));
    format!("{:<10}{what}: {sizes}{by}", step.action.name())
}

/// What to say when a hook kept a view from being folded that cannot be sent as it is.
pub fn vetoed(outcome: &ManageOutcome, budget: &Budget) -> Option<Failure> {
    if outcome.fits || outcome.skipped != Some(SkipReason::Vetoed) {
        return None;
    }
    let (size, tokens) = (outcome.after, number(outcome.after.tokens));
    let mut sizes = format!("{tokens} tokens, with room for {}", number(budget.allow()));
    if let Some(most) = budget.bytes().filter(|most| size.bytes > *most) {
        sizes += &format!(", and {} bytes of {}", number(size.bytes), number(most));
    }
    let text = format!("the hook before_fold refused, and the view does not fit: it has {sizes}");
    Some(
        Failure::new(Kind::No, text).hint(
            "`hooks.before_fold` of the configuration decides; `infold config show` names it",
        ),
    )
}

/// What to say when a conversation cannot be folded; `larger` is what would help.
pub fn cannot_fold(error: ManageError, larger: &str) -> Failure {
    let text = error.to_string();
    match error {
        ManageError::Floor { floor } if floor.bytes.is_some() => Failure::new(Kind::No, text)
            .hint("nothing was folded; give a larger --max-bytes, or unpin what need not stay"),
        ManageError::Floor { .. } => Failure::new(Kind::No, text)
            .hint(format!("nothing was folded; give a larger {larger}, a smaller --max-tokens, or unpin what need not stay")),
        ManageError::Cancelled => Failure::new(Kind::Interrupted, text),
        ManageError::Step(error) => error.into(),
        ManageError::Log(error) => error.into(),
    }
}

impl From<ScratchError> for Failure {
    fn from(error: ScratchError) -> Failure {
        match error {
            ScratchError::Task(error) => error.into(),
            ScratchError::Append(error) => error.into(),
            error @ ScratchError::Dir { .. } => {
                Failure::new(Kind::Store, error).hint("TMPDIR says where temporary files go")
            }
        }
    }
}
