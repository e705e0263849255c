//! Reads aider's Markdown history: the user's text is headed, notices are quoted, the rest is the model's.

use infold_log::Role;

use super::{FormatReader, ReaderOutput, TranscriptEntry, time};
use crate::{Wire, render_text};

/// Reads the lines of a history.
#[derive(Default)]
pub struct AiderReader {
    pending: Option<(Role, String)>,
    /// The start of this session.
    time: Option<u64>,
    has_messages: bool,
}

impl FormatReader for AiderReader {
    fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let line = String::from_utf8_lossy(text);
        if let Some(when) = line.strip_prefix("# aider chat started at ") {
            self.finish(output);
            if std::mem::take(&mut self.has_messages) {
                output.entries.push(TranscriptEntry::Next);
            }
            self.time = time::parse(when.trim());
        } else if let Some(text) = line.strip_prefix("####") {
            self.add_line(Role::User, text.strip_prefix(' ').unwrap_or(text), output);
        } else if line.starts_with('>') {
            output.skipped.add("notice");
        } else if !line.trim().is_empty() || matches!(self.pending, Some((Role::Assistant, _))) {
            self.add_line(Role::Assistant, &line, output);
        }
        Ok(())
    }

    fn finish(&mut self, output: &mut ReaderOutput<'_>) {
        if let Some((role, text)) = self.pending.take() {
            self.has_messages = true;
            let text = render_text(Wire::Chat, role, text.trim());
            output.earlier.push(TranscriptEntry::Message {
                text,
                time: self.time,
            });
        }
    }
}

impl AiderReader {
    fn add_line(&mut self, role: Role, line: &str, output: &mut ReaderOutput<'_>) {
        match &mut self.pending {
            Some((speaker, text)) if *speaker == role => {
                text.push('\n');
                text.push_str(line);
            }
            _ => {
                self.finish(output);
                self.pending = Some((role, line.to_owned()));
            }
        }
    }
}
