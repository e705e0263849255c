//! Errors that no later call has fixed.

use std::collections::VecDeque;

use infold_wire::shorten;

use super::excerpt::CitedText;
use super::facts::persist;

/// Errors that no later call has fixed.
#[derive(Default)]
pub struct OpenErrors {
    open: VecDeque<FailedCommand>,
}

/// An error and the command or file that failed.
struct FailedCommand {
    line: CitedText,
    /// The essential part of the command, or the file.
    of: String,
}

const MAX_ERRORS: usize = 200;
const MAX_COMMAND_CHARS: usize = 80;

impl OpenErrors {
    /// Adds the error line `key` of a command or file.
    pub fn add(&mut self, seq: u64, key: &str, of: Option<&str>) {
        let of = of
            .map(|of| shorten(program(of), MAX_COMMAND_CHARS))
            .unwrap_or_default();
        let text = if of.is_empty() || key.contains(&*of) {
            key.to_owned()
        } else {
            format!("{key} ({of})")
        };
        let line = CitedText { seq, text };
        self.open.retain(|old| old.line.text != line.text);
        if self.open.len() >= MAX_ERRORS {
            self.open.pop_front();
        }
        self.open.push_back(FailedCommand { line, of });
    }

    /// Removes the errors of a command that now succeeded, also of a part of it: `npm test` covers `npm test a.ts`.
    pub fn remove_fixed(&mut self, what: &str) {
        let what = shorten(program(what), MAX_COMMAND_CHARS);
        if what.is_empty() {
            return;
        }
        self.open.retain(|old| {
            let rest = old.of.strip_prefix(&*what);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
    }

    /// Returns the errors, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &CitedText> {
        self.open.iter().rev().map(|failure| &failure.line)
    }
}

/// Returns the program part of a command, without a change of directory before and without pipes behind.
fn program(command: &str) -> &str {
    let mut rest = command.trim();
    while let Some((first, then)) = rest.split_once("&&") {
        let word = first.split_whitespace().next().unwrap_or_default();
        if !matches!(word, "cd" | "export" | "source" | ".") {
            break;
        }
        rest = then.trim_start();
    }
    let end = ["|", "2>", ">", ";"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min();
    rest[..end.unwrap_or(rest.len())].trim_end()
}

persist!(FailedCommand: line, of);
persist!(OpenErrors: open);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_however_its_output_is_cut() {
        for command in [
            "npm test",
            "cd web && npm test 2>&1 | tail -5",
            "cd a && export X=1 && npm test > /tmp/out",
        ] {
            assert_eq!(program(command), "npm test");
        }
        assert_eq!(program("make && make install"), "make && make install");
        assert_eq!(program(""), "");
    }
}
