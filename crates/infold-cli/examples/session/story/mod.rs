//! Plays the script over the service's files, and writes the messages that a model would have been sent.

mod script;
mod disk;
mod shell;
mod transcript;

use disk::Disk;
use script::{Call, Step, Tool};
use transcript::{Answer, Transcript};

const SCRIPT: &[&str] = &[
    include_str!("../script/1-first-fixes.txt"),
    include_str!("../script/2-waitlist.txt"),
    include_str!("../script/3-mail-and-prices.txt"),
    include_str!("../script/4-limits-and-board.txt"),
    include_str!("../script/5-release.txt"),
];

/// Returns the whole session, one message a line.
pub fn session() -> String {
    let mut disk = Disk::seeded();
    let mut transcript = Transcript::default();
    for step in SCRIPT.iter().flat_map(|part| script::steps(part)) {
        match step {
            Step::Asked(text) => transcript.asked(&text),
            Step::Said(text) => transcript.said(&text),
            Step::Called(call) => {
                let answer = (!call.interrupted).then(|| answer(&mut disk, &call));
                transcript.called(&call, answer);
            }
        }
    }
    transcript.finish()
}

/// Carries out a call, and returns the result for the agent.
fn answer(disk: &mut Disk, call: &Call) -> Answer {
    match &call.tool {
        Tool::Read { path, lines } => Answer::good(disk.numbered(path, *lines)),
        Tool::Grep { pattern, path } => Answer::good(disk.grep(pattern, path)),
        Tool::Write { path, text } => Answer::good(match disk.write(path, text) {
            None => format!("Created {}", disk::absolute(path)),
            Some(_) => format!("Wrote {}", disk::absolute(path)),
        }),
        Tool::Edit { path, old, new } => {
            disk.edit(path, old, new);
            Answer::good(format!("Updated {}", disk::absolute(path)))
        }
        Tool::Todo(_) => Answer::good("The todo list is saved.".to_owned()),
        Tool::Bash(command) => shell::run(disk, command),
    }
}
