//! Help is for people who have never seen the command.

mod common;

use common::Home;
use insta::assert_snapshot;

fn help(command: &str) -> String {
    let ran = Home::new().run(&format!("{command} --help"), b"");
    assert_eq!((ran.code, ran.stderr.len()), (0, 0), "{command}");
    let text = String::from_utf8(ran.stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn the_first_page_names_every_command() {
    assert_snapshot!(help(""), @"
    Keeps everything an agent has said and seen, and folds it to fit the model's window

    Usage: infold [OPTIONS] <COMMAND>

    Commands:
      fold         Fold any transcript to fit a window; the view to stdout, the story to stderr
      ask          Say something to a model and keep what it answers; folds first if it must
      send         Send the view as it is, and keep what the model answers
      serve        Stand between agents and their models, so that conversations fit
      wrap         Start an agent with the proxy in between; exits as the agent does
      provider     The providers of models: list them, reach them
      task         Make, fill, list and end tasks
      import       Make a task from a transcript of any known format
      export       Write a task out as a transcript of any known format
      log          Everything that happened: messages and events in order, hidden ones too
      view         What the model would be shown; a fold is one line
      folds        All folds: what they hide, and whether they are active
      recall       Messages in full, hidden ones too
      manage       Fold as much of a task as its window needs, and no more
      condense     Fold messages behind a summary: yours, or one that is written for you
      truncate     Hide the oldest rounds behind a marker
      mask         Show a part of a message, a tool result or an image, as a stub
      unfold       Open a fold
      rewind       Go back to an earlier state; nothing is deleted
      undo         Take back the newest step: a fold, unfold, pin, unpin or rewind
      redo         Take back the newest undo
      fork         Start a task that continues another one's conversation
      pin          Keep the round of a message in view, or add a note to every view
      unpin        Take a pin away
      redact       Take what messages say out of the log for good: the one command that rewrites it
      count        How many tokens a transcript has, per message and in all
      eval         Replay sessions under several strategies: what they send, cost and keep
      models       What is known of models: windows, tokenizers, prices, defaults
      config       Show or check the configuration
      verify       Check that everything is as it should be, byte by byte
      doctor       Where the data is and how it is; with --repair, put it right
      completions  Print a completion script
      help         Print this message or the help of the given subcommand(s)

    Options:
          --contexts <DIR>
              Where the tasks are [default: what the configuration says, else ./contexts if tasks are
              there, else ~/.local/share/infold/contexts]

              [env: INFOLD_CONTEXTS=]

          --config <FILE>
              The configuration [default: ~/.config/infold/config.yaml, and ./config.yaml over it]

              [env: INFOLD_CONFIG=]

          --json
              Print results, and errors, as JSON, one object a line

          --color <WHEN>
              When to use colour

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never

              [default: auto]

          --durability <WHEN>
              When to force writes onto the disk

              Possible values:
              - always: Before each write is acknowledged
              - turn:   At the end of a turn and before any step
              - never:  When the system sees fit

              [env: INFOLD_DURABILITY=]
              [default: turn]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      infold fold session.jsonl --window 32k       what a model with that window would be shown
      infold task new --model gpt-5                make a task; prints its id
      infold task push 3f9a session.jsonl          keep messages
      infold view 3f9a                             what the model would be shown
      infold condense 3f9a 3..40 --text notes.md   fold 3..40 behind a summary
      infold undo 3f9a                             take that back

    A task is named by its id or any prefix of it that no other task shares; @ is the one with the
    newest activity, @2 the one before.
    Exit codes: 0 done, 1 the answer is no, 2 wrong command, 3 the store failed, 4 no answer from a
    provider, 130 interrupted.
    ");
}

#[test]
fn every_command_gives_an_example_of_itself() {
    for command in [
        "fold",
        "ask",
        "send",
        "serve",
        "wrap",
        "provider",
        "provider list",
        "provider check",
        "import",
        "export",
        "manage",
        "count",
        "eval",
        "models",
        "config show",
        "config check",
        "config trust",
        "config untrust",
        "task",
        "task new",
        "task list",
        "task show",
        "task push",
        "task tool",
        "task complete",
        "task fail",
        "task clean",
        "log",
        "view",
        "folds",
        "truncate",
        "condense",
        "mask",
        "unfold",
        "rewind",
        "undo",
        "redo",
        "fork",
        "pin",
        "unpin",
        "recall",
        "verify",
        "doctor",
        "completions",
    ] {
        let text = help(command);
        let example = text
            .split_once("Example")
            .map(|(_, after)| after)
            .unwrap_or_default();
        assert!(
            example.contains(&format!("infold {command}")),
            "{command}:\n{text}"
        );
    }
}
