//! `recall`: messages and folds in full, a page at a time.

use infold::show::{LineKind, RecallTarget, RecalledMessage, fold_lines};
use infold_log::Seq;
use infold_log::steer::Refused;
use infold_store::{Log, LogError};

use super::arguments::ToolArguments;
use super::history::MAX_RESULT_CHARS;
use super::{History, ToolFailure};

/// `recall`
pub fn recall(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let range = arguments.required("range")?;
    let offset = arguments.number("offset", 0)?.unwrap_or_default();
    let task = history.task("recall", arguments)?;
    let log = history.contexts.read(task)?;
    recalled(&log, &range, offset as usize).map_err(|failure| match failure {
        // A client that is offered only its own conversation has no task to name.
        RecallFailure::NoFold(text) if history.offered.is_some() => ToolFailure::new(text),
        failure => failure.into(),
    })
}

/// The reason that nothing is recalled.
#[derive(Debug)]
pub enum RecallFailure {
    /// There is no such fold in this conversation.
    NoFold(String),
    Other(ToolFailure),
}

impl From<RecallFailure> for ToolFailure {
    fn from(failure: RecallFailure) -> ToolFailure {
        match failure {
            RecallFailure::NoFold(text) => ToolFailure::new(text)
                .hint("folds are counted in each conversation: `task` says which one it is of"),
            RecallFailure::Other(failure) => failure,
        }
    }
}

impl From<LogError> for RecallFailure {
    fn from(error: LogError) -> RecallFailure {
        RecallFailure::Other(error.into())
    }
}

/// The reason that no further message is read.
enum RecallStop {
    /// The page is full.
    Full,
    Log(LogError),
}

impl From<LogError> for RecallStop {
    fn from(error: LogError) -> RecallStop {
        RecallStop::Log(error)
    }
}

/// Returns messages or a fold as text, from a character of the first of them on.
pub fn recalled(log: &Log, range: &str, offset: usize) -> Result<String, RecallFailure> {
    let other = |text: String| RecallFailure::Other(ToolFailure::new(text));
    let target = range.trim().parse::<RecallTarget>();
    let target = target.map_err(|error| other(error.to_string()))?;
    let found = target.find(log).map_err(|error| match error {
        Refused::NoEvent { .. } | Refused::NotAFold { .. } => {
            RecallFailure::NoFold(error.to_string())
        }
        error => other(error.to_string()),
    })?;
    let mut page = Page::new(offset);
    if let Some(line) = &found.fold {
        let mut text = String::new();
        let Ok(()) = fold_lines(line, &mut |_, line| push_line(&mut text, line));
        page.put(PagePart::Fold(line.id.to_string()), &text);
    }
    let last = found.spans.last().map(|span| span.to());
    for span in found.spans {
        let read = RecalledMessage::each(log, span, &mut |message| {
            let mut text = String::new();
            let Ok(()) = message.lines(&mut |_: LineKind, line: &str| push_line(&mut text, line));
            if page.put(PagePart::Message(message.seq), &text) {
                Ok(())
            } else {
                Err(RecallStop::Full)
            }
        });
        match read {
            Ok(()) => {}
            Err(RecallStop::Full) => break,
            Err(RecallStop::Log(error)) => return Err(error.into()),
        }
    }
    Ok(page.finish(last))
}

fn push_line(text: &mut String, line: &str) -> Result<(), std::convert::Infallible> {
    text.push_str(line.trim_end());
    text.push('\n');
    Ok(())
}

/// The source of a part of a page.
enum PagePart {
    Fold(String),
    Message(Seq),
}

/// The text of one result: whole messages, or a part of a longer one.
struct Page {
    /// The characters of the first part that were read before.
    offset: usize,
    text: String,
    chars: usize,
    has_part: bool,
    /// The range to ask for next.
    rest: Option<String>,
}

impl Page {
    fn new(offset: usize) -> Page {
        Page {
            offset,
            text: String::new(),
            chars: 0,
            has_part: false,
            rest: None,
        }
    }

    /// Adds a part; false if nothing more fits.
    fn put(&mut self, part: PagePart, text: &str) -> bool {
        let long = text.chars().count();
        if self.has_part {
            if self.rest.is_none() && self.chars + long <= MAX_RESULT_CHARS {
                self.text += text;
                self.chars += long;
                return true;
            }
            if let PagePart::Message(seq) = part {
                self.continue_at(seq);
            }
            return false;
        }
        self.has_part = true;
        let piece: String = text
            .chars()
            .skip(self.offset)
            .take(MAX_RESULT_CHARS)
            .collect();
        let read = self.offset.saturating_add(MAX_RESULT_CHARS);
        self.chars = piece.chars().count();
        self.text = piece;
        if read < long {
            let name = match part {
                PagePart::Fold(fold) => fold,
                PagePart::Message(seq) => seq.to_string(),
            };
            self.rest = Some(format!(
                "{name} has {} more characters: `range` {name}, `offset` {read}",
                long - read
            ));
        } else if self.offset > 0 && self.chars == 0 {
            self.text = format!(
                "`offset` {} is behind the end: it has {long} characters\n",
                self.offset
            );
        }
        true
    }

    /// Says from which message on the rest is.
    fn continue_at(&mut self, seq: Seq) {
        let before = self.rest.take().map(|rest| rest + ", then ");
        self.rest = Some(format!("{}`range` {seq}..", before.unwrap_or_default()));
    }

    /// Returns the text, with the range to request for the rest, up to the last message.
    fn finish(mut self, last: Option<Seq>) -> String {
        if let Some(rest) = self.rest {
            let open = rest.ends_with("..");
            let last = last.filter(|_| open).map(|last| last.to_string());
            self.text += &format!("\n… cut; the rest: {rest}{}", last.unwrap_or_default());
        }
        self.text
    }
}
