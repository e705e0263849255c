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
    Stores everything an agent has said and seen, and folds it to fit the model's window

    Usage: infold [OPTIONS] <COMMAND>

    Commands:
      fold         Fold a transcript to fit a window; prints the view on stdout, a report on stderr
      ask          Send a message to a model and store the answer; folds first if needed
      send         Send the view as it is, and store the answer
      run          Carry out a task with a model and tools, here and now
      enqueue      Put a task into the queue, for `infold work`
      work         Carry out the tasks of the queue
      serve        Run the proxy between agents and their models, so that conversations fit
      wrap         Run an agent through a proxy of its own; exits with the agent's exit code
      setup        Put the proxy between agents and their models: show, write, prove, check, undo
      mcp          Serve the history to agents as tools: search, recall, view (Model Context Protocol)
      fetch        Put issues and merge requests that have a label into the queue
      provider     List model providers and check whether they answer
      task         Create, fill, list, end and delete tasks
      import       Create a task from a transcript of any known format
      export       Write a task as a transcript of any known format
      log          Show all messages and events in order, including hidden ones
      view         Show what the model would be shown; each fold is one line
      folds        List all folds: what they hide, and whether they are active
      search       Find messages by their words in all tasks, including hidden ones
      recall       Print messages in full, including hidden ones
      state        Show or change the layered state of a task: goal, rules, phase, memory, plan
      layers       Build the document that a model is shown of a task's layered state
      tools        Show which tools the model may see, and which calls were refused
      manage       Fold a task as far as its window requires, and no further
      condense     Replace messages by a summary in the view: your text, or a generated one
      truncate     Hide the oldest rounds behind a marker
      mask         Replace one part of a message, a tool result or an image, by a stub in the view
      unfold       Remove a fold: the messages it hid are shown again
      rewind       Return to an earlier state; nothing is deleted
      undo         Undo the newest step: a fold, unfold, pin, unpin, rewind or change of the state
      redo         Revert the newest undo
      checkpoint   Keep the files of a task's workspace, so that `rewind --files` can bring them back
      diff         Show what differs between the files of two points of a task
      fork         Create a task that continues the conversation of another one
      pin          Keep the round of a message in view, or add a note to every view
      unpin        Remove a pin
      redact       Permanently remove the content of messages: the only command that rewrites the log
      count        Count the tokens of a transcript, per message and in total
      eval         Replay sessions under several strategies: tokens sent, cost, what is kept
      gain         Show what folding saved: tokens, money and requests that would not have fit
      models       Show the table of models: windows, tokenizers, prices, defaults
      config       Show, check or trust the configuration
      verify       Check the integrity of all stored data
      doctor       Show where the data is and its state; --repair fixes problems
      completions  Print a shell completion script
      help         Print this message or the help of the given subcommand(s)

    Options:
          --contexts <DIR>
              The directory of the tasks [default: the configured one, else ./contexts if it holds
              tasks, else ~/.local/share/infold/contexts]

              [env: INFOLD_CONTEXTS=]

          --config <FILE>
              The configuration file [default: ~/.config/infold/config.yaml, overridden by
              ./config.yaml]

              [env: INFOLD_CONFIG=]

          --json
              Print results and errors as JSON, one object per line

          --color <WHEN>
              When to use colour

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never

              [default: auto]

          --durability <WHEN>
              When to sync writes to the disk

              Possible values:
              - always: Before each write is acknowledged
              - turn:   At the end of a turn and before any step
              - never:  When the operating system does it

              [env: INFOLD_DURABILITY=]
              [default: turn]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      infold fold session.jsonl --window 32k       what a model with that window would be shown
      infold task new --model gpt-5                create a task; prints its id
      infold task push 3f9a session.jsonl          append messages
      infold view 3f9a                             what the model would be shown
      infold condense 3f9a 3..40 --text notes.md   replace 3..40 by a summary in the view
      infold undo 3f9a                             undo that

    A task is named by its id or a unique prefix of it; @ is the task with the newest activity, @2 the
    one before.
    Exit codes: 0 success, 1 negative result, 2 wrong command or configuration, 3 storage error, 4
    provider error, 130 interrupted.
    ");
}

#[test]
fn every_command_gives_an_example_of_itself() {
    for command in [
        "fold",
        "ask",
        "send",
        "run",
        "enqueue",
        "work",
        "task pause",
        "task resume",
        "task cancel",
        "task stats",
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
        "checkpoint",
        "checkpoint list",
        "checkpoint gc",
        "diff",
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
