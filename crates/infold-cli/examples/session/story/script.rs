//! The language of the script: the first characters of a line say what it is.
//!
//! ```text
//! > text           the user says this; neighbouring lines are one message
//! : text           the assistant says this, before what it calls next
//! read PATH [FROM COUNT]
//! grep PATTERN [PATH]
//! write PATH       the text follows as `+` lines
//! edit PATH        the change follows as ` `, `-` and `+` lines
//! todo             `+x done`, `+> under way` and `+o open` follow
//! $ COMMAND        its output follows as `|` lines where the shell cannot work it out,
//!                  its exit status as `?N`, failing tests as `~name: error`
//! & CALL           the same message makes this call, too
//! ! CALL           this call was interrupted: no result follows
//! % text           a remark
//! ```

/// One step of the script.
pub enum Step {
    Asked(String),
    Said(String),
    Called(Call),
}

/// A call of a tool.
pub struct Call {
    pub tool: Tool,
    /// Whether the call belongs to the message of the call before.
    pub joined: bool,
    pub interrupted: bool,
}

/// A tool call with its arguments.
pub enum Tool {
    Read {
        path: String,
        lines: Option<(usize, usize)>,
    },
    Grep {
        pattern: String,
        path: String,
    },
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// Each todo with its mark.
    Todo(Vec<(char, String)>),
    Bash(Command),
}

/// A command line, with its known outcome.
#[derive(Default)]
pub struct Command {
    pub line: String,
    pub output: Vec<String>,
    pub status: u8,
    /// The failing tests, with their errors.
    pub failing: Vec<(String, String)>,
}

/// Reads a part of the script.
pub fn steps(text: &str) -> Vec<Step> {
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    let mut next = lines.next();
    let mut steps = Vec::new();
    while let Some(head) = next {
        let mut tail = Vec::new();
        next = lines.next();
        while let Some(line) = next.filter(|line| belongs(head, line)) {
            tail.push(line);
            next = lines.next();
        }
        if !head.is_empty() {
            steps.push(step(head, &tail));
        }
    }
    steps
}

/// Returns whether a line continues the element that `head` began.
fn belongs(head: &str, line: &str) -> bool {
    match head.as_bytes() {
        [] => false,
        [b'>', ..] => line.starts_with('>'),
        [b':', ..] => line.starts_with(':'),
        _ => line.starts_with([' ', '-', '+', '|', '?', '~']),
    }
}

fn step(head: &str, tail: &[&str]) -> Step {
    match head.as_bytes()[0] {
        b'>' => Step::Asked(speech(head, tail)),
        b':' => Step::Said(speech(head, tail)),
        b'&' => called(&head[2..], tail, true, false),
        b'!' => called(&head[2..], tail, false, true),
        _ => called(head, tail, false, false),
    }
}

fn speech(head: &str, tail: &[&str]) -> String {
    let lines = std::iter::once(&head).chain(tail);
    let lines: Vec<&str> = lines
        .map(|line| line.get(2..).unwrap_or_default())
        .collect();
    lines.join("\n")
}

fn called(head: &str, tail: &[&str], joined: bool, interrupted: bool) -> Step {
    Step::Called(Call {
        tool: tool(head, tail),
        joined,
        interrupted,
    })
}

fn tool(head: &str, tail: &[&str]) -> Tool {
    let (verb, rest) = head.split_once(' ').unwrap_or((head, ""));
    let mut words = rest.split(' ').map(str::to_owned);
    let mut word = || words.next().unwrap_or_default();
    match verb {
        "read" => Tool::Read {
            path: word(),
            lines: word().parse().ok().zip(word().parse().ok()),
        },
        "grep" => Tool::Grep {
            pattern: word(),
            path: word(),
        },
        "write" => Tool::Write {
            path: word(),
            text: side(tail, '+'),
        },
        "edit" => Tool::Edit {
            path: word(),
            old: side(tail, '-'),
            new: side(tail, '+'),
        },
        "todo" => Tool::Todo(tail.iter().map(|line| todo(line)).collect()),
        "$" => Tool::Bash(command(rest, tail)),
        _ => panic!("the script has no `{head}`"),
    }
}

/// Returns one side of a change: its own lines and the common ones.
fn side(tail: &[&str], own: char) -> String {
    let lines = tail.iter().filter(|line| line.starts_with([own, ' ']));
    lines.map(|line| format!("{}\n", &line[1..])).collect()
}

fn todo(line: &str) -> (char, String) {
    let mut rest = line.chars().skip(1);
    let mark = rest.next().expect("a todo has a mark");
    (mark, rest.skip(1).collect())
}

fn command(line: &str, tail: &[&str]) -> Command {
    let mut command = Command {
        line: line.to_owned(),
        ..Command::default()
    };
    for line in tail {
        let rest = &line[1..];
        match line.as_bytes()[0] {
            b'?' => command.status = rest.parse().expect("an exit status is a number"),
            b'~' => {
                let (name, error) = rest.split_once(": ").expect("a failing test has an error");
                command.failing.push((name.to_owned(), error.to_owned()));
            }
            _ => command
                .output
                .push(rest.strip_prefix(' ').unwrap_or(rest).to_owned()),
        }
    }
    command
}
