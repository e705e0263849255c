use std::collections::VecDeque;

use infold_wire::shorten;

use super::facts::keep;
use super::text::Line;

/// Errors that nothing has put right since.
#[derive(Default)]
pub struct Errors {
    open: VecDeque<Failure>,
}

struct Failure {
    line: Line,
    /// What failed: a command without what surrounds it, or a file.
    of: String,
}

const MOST: usize = 200;
const WIDTH: usize = 80;

impl Errors {
    /// Notes what went wrong, and where.
    pub fn add(&mut self, seq: u64, key: &str, of: Option<&str>) {
        let of = of.map(|of| shorten(program(of), WIDTH)).unwrap_or_default();
        let text = match of.is_empty() || key.contains(&*of) {
            true => key.to_owned(),
            false => format!("{key} ({of})"),
        };
        self.push(Line { seq, text }, of);
    }

    fn push(&mut self, line: Line, of: String) {
        self.open.retain(|old| old.line.text != line.text);
        if self.open.len() >= MOST {
            self.open.pop_front();
        }
        self.open.push_back(Failure { line, of });
    }

    /// Forgets the errors of what now went well, also of a part of it: `npm test` passes for `npm test a.ts`.
    pub fn passed(&mut self, what: &str) {
        let what = shorten(program(what), WIDTH);
        if what.is_empty() {
            return;
        }
        self.open.retain(|old| {
            let rest = old.of.strip_prefix(&*what);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
    }

    /// Returns them, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Line> {
        self.open.iter().rev().map(|failure| &failure.line)
    }
}

/// What a command runs, without the way there and without what its output goes through.
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

keep!(Failure { line, of });
keep!(Errors { open });

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
