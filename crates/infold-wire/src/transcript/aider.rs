//! aider's Markdown history: what the user said is headed, notices are quoted, the rest is the model's.

use infold_log::Role;

use super::{Entry, Found, time};
use crate::{Wire, render_text};

/// Reads lines.
#[derive(Default)]
pub struct Aider {
    held: Option<(Role, String)>,
    /// When this session started.
    time: Option<u64>,
    spoke: bool,
}

impl Aider {
    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) {
        let line = String::from_utf8_lossy(text);
        if let Some(when) = line.strip_prefix("# aider chat started at ") {
            self.end(found);
            if std::mem::take(&mut self.spoke) {
                found.entries.push(Entry::Next);
            }
            self.time = time::parse(when.trim());
        } else if let Some(said) = line.strip_prefix("####") {
            self.say(Role::User, said.strip_prefix(' ').unwrap_or(said), found);
        } else if line.starts_with('>') {
            found.seen.skip("notice");
        } else if !line.trim().is_empty() || matches!(self.held, Some((Role::Assistant, _))) {
            self.say(Role::Assistant, &line, found);
        }
    }

    fn say(&mut self, role: Role, line: &str, found: &mut Found<'_>) {
        match &mut self.held {
            Some((speaker, said)) if *speaker == role => {
                said.push('\n');
                said.push_str(line);
            }
            _ => {
                self.end(found);
                self.held = Some((role, line.to_owned()));
            }
        }
    }

    /// Hands over what was said.
    pub fn end(&mut self, found: &mut Found<'_>) {
        if let Some((role, said)) = self.held.take() {
            self.spoke = true;
            let text = render_text(Wire::Chat, role, said.trim());
            found.earlier.push(Entry::Message {
                text,
                time: self.time,
            });
        }
    }
}
