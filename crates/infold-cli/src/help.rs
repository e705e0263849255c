//! The text below the options in each command's `--help`, read from `help.txt`.

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// Builds the command line, with descriptions and examples for each command.
pub fn command() -> Command {
    let sections = include_str!("help.txt").split("=== ").skip(1);
    sections.fold(Cli::command(), |command, section| {
        let (path, text) = section.split_once('\n').unwrap_or((section, ""));
        let mut path = path.split(' ').filter(|name| *name != "infold");
        with_text(command, &mut path, text.trim_end())
    })
}

fn with_text(
    command: Command,
    path: &mut dyn Iterator<Item = &str>,
    text: &'static str,
) -> Command {
    match path.next() {
        Some(name) => command.mut_subcommand(name, |inner| with_text(inner, path, text)),
        None => command.after_help(text),
    }
}
