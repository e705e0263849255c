use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use infold_log::steer::Target;
use infold_log::{EventId, Seq, Span};
use infold_store::{Durability, Status};

use crate::{
    ask, condense, config, count, eval, fold, manage, models, provider, redact, serve, transfer,
};

/// Keeps everything an agent has said and seen, and folds it to fit the model's window.
#[derive(Debug, Parser)]
#[command(name = "infold", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Where the tasks are [default: what the configuration says, else ./contexts if tasks are there, else ~/.local/share/infold/contexts]
    #[arg(long, global = true, value_name = "DIR", env = "INFOLD_CONTEXTS")]
    pub contexts: Option<PathBuf>,
    /// The configuration [default: ~/.config/infold/config.yaml, and ./config.yaml over it]
    #[arg(long, global = true, value_name = "FILE", env = "INFOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print results, and errors, as JSON, one object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// When to force writes onto the disk
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        env = "INFOLD_DURABILITY",
        default_value = "turn"
    )]
    pub durability: Fsync,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  infold fold session.jsonl --window 32k       what a model with that window would be shown
  infold task new --model gpt-5                make a task; prints its id
  infold task push 3f9a session.jsonl          keep messages
  infold view 3f9a                             what the model would be shown
  infold condense 3f9a 3..40 --text notes.md   fold 3..40 behind a summary
  infold undo 3f9a                             take that back

A task is named by its id or any prefix of it that no other task shares; @ is the one with the newest activity, @2 the one before.
Exit codes: 0 done, 1 the answer is no, 2 wrong command, 3 the store failed, 4 no answer from a provider, 130 interrupted.";

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// When to force writes onto the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fsync {
    /// Before each write is acknowledged
    Always,
    /// At the end of a turn and before any step
    Turn,
    /// When the system sees fit
    Never,
}

impl From<Fsync> for Durability {
    fn from(when: Fsync) -> Durability {
        match when {
            Fsync::Always => Durability::Always,
            Fsync::Turn => Durability::Turn,
            Fsync::Never => Durability::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fold any transcript to fit a window; the view to stdout, the story to stderr
    #[command(
        after_help = "Examples:\n  infold fold session.jsonl --window 32k > view.jsonl\n  infold fold session.jsonl --model claude-sonnet-4-5 --report\n  infold fold chat.json --window 8k --out-format anthropic\n  infold fold --last claude --window 100k\n  infold fold --window 8k --summarizer command:'ollama run llama3' < session.jsonl"
    )]
    Fold(fold::FoldArgs),
    /// Say something to a model and keep what it answers; folds first if it must
    #[command(
        after_help = "The answer goes to stdout, to a terminal as it comes, all else to stderr. Exits with 4 if there is none;\nwhat was said is kept, and `infold ask TASK` asks again.\n\nA question alone starts a task; its id is told.\n\nExamples:\n  infold ask 'why is the sky blue?' --provider ollama --model llama3.2\n  infold ask 3f9a 'and at night?'\n  git diff | infold ask 3f9a -\n  infold ask < question.txt"
    )]
    Ask(ask::AskArgs),
    /// Send the view as it is, and keep what the model answers
    #[command(
        after_help = "Example:\n  infold send 3f9a --provider anthropic --model claude-sonnet-4-5"
    )]
    Send(ask::SendArgs),
    /// Stand between agents and their models, so that conversations fit
    #[command(
        after_help = "Clients change one base URL; what to copy is printed. Below the threshold their bytes pass untouched.\n\nExamples:\n  infold serve\n  infold serve --upstream http://127.0.0.1:8080        a server of your own, for every API\n  infold serve --upstream openai=https://openrouter.ai/api/v1 --trace json\n  INFOLD_TOKEN=… infold serve --host 0.0.0.0 --token-env INFOLD_TOKEN"
    )]
    Serve(serve::ServeArgs),
    /// Start an agent with the proxy in between; exits as the agent does
    #[command(
        after_help = "Examples:\n  infold wrap -- claude\n  infold wrap --name parser -- goose session\n  infold wrap --upstream http://127.0.0.1:8080 -- codex exec 'fix the tests'"
    )]
    Wrap(serve::WrapArgs),
    /// The providers of models: list them, reach them
    #[command(
        subcommand,
        after_help = "Examples:\n  infold provider list\n  infold provider check ollama"
    )]
    Provider(provider::ProviderCommand),
    /// Make, fill, list and end tasks
    #[command(
        subcommand,
        after_help = "Examples:\n  infold task new --model gpt-5\n  infold task push 3f9a session.jsonl\n  infold task list"
    )]
    Task(TaskCommand),
    /// Make a task from a transcript of any known format
    Import(transfer::ImportArgs),
    /// Write a task out as a transcript of any known format
    Export(transfer::ExportArgs),
    /// Everything that happened: messages and events in order, hidden ones too
    #[command(after_help = "Examples:\n  infold log 3f9a\n  infold log 3f9a --at 40 | less -R")]
    Log(Look),
    /// What the model would be shown; a fold is one line
    #[command(
        after_help = "Examples:\n  infold view 3f9a\n  infold view 3f9a --at e3        as it was right after event e3\n  infold view 3f9a --raw > request.jsonl"
    )]
    View(ViewArgs),
    /// All folds: what they hide, and whether they are active
    #[command(after_help = "Example:\n  infold folds 3f9a --json")]
    Folds(Look),
    /// Messages in full, hidden ones too
    #[command(after_help = "Examples:\n  infold recall 3f9a 3..40\n  infold recall 3f9a 12 --json")]
    Recall {
        /// The task
        task: String,
        /// Which messages
        #[arg(value_name = "A..B")]
        range: Span,
    },
    /// Fold as much of a task as its window needs, and no more
    #[command(
        after_help = "Examples:\n  infold manage 3f9a --window 32k --dry-run\n  infold manage 3f9a --model gpt-5 --force"
    )]
    Manage(manage::ManageArgs),
    /// Fold messages behind a summary: yours, or one that is written for you
    #[command(
        after_help = "Examples:\n  infold condense 3f9a --preview               what would leave, what would enter\n  infold condense 3f9a 3..40 --edit            look over the summary first\n  infold condense 3f9a 3..40 --text notes.md\n  echo 'built the parser' | infold condense 3f9a 3..40 --text -"
    )]
    Condense(condense::CondenseArgs),
    /// Hide the oldest rounds behind a marker
    #[command(after_help = "Example:\n  infold truncate 3f9a --fraction 0.25")]
    Truncate {
        /// The task
        #[arg(default_value = "@")]
        task: String,
        /// How much of what is visible to hide, more than 0 and at most 1
        #[arg(long, default_value = "0.5", value_parser = fraction)]
        fraction: f64,
    },
    /// Show a part of a message, a tool result or an image, as a stub
    #[command(after_help = "Example:\n  infold mask 3f9a 12 --part 0")]
    Mask {
        /// The task
        task: String,
        /// The message
        seq: SeqArg,
        /// Which part of it, counted from 0
        #[arg(long, default_value_t = 0)]
        part: u32,
    },
    /// Open a fold
    #[command(after_help = "Example:\n  infold unfold 3f9a e3           `infold folds` names them")]
    Unfold {
        /// The task
        task: String,
        /// The fold, such as e3
        fold: EventArg,
    },
    /// Go back to an earlier state; nothing is deleted
    #[command(
        after_help = "Examples:\n  infold rewind 3f9a --to 32                  as it was right after message 32\n  infold rewind 3f9a --before e5              as it was before event e5\n  infold rewind 3f9a --to 2026-11-15T12:00Z   as it was then"
    )]
    Rewind(RewindArgs),
    /// Take back the newest step: a fold, unfold, pin, unpin or rewind
    #[command(
        after_help = "Example:\n  infold undo 3f9a                again takes back the step before"
    )]
    Undo {
        /// The task
        #[arg(default_value = "@")]
        task: String,
    },
    /// Take back the newest undo
    #[command(
        after_help = "Example:\n  infold redo 3f9a                until something new is said or done"
    )]
    Redo {
        /// The task
        #[arg(default_value = "@")]
        task: String,
    },
    /// Start a task that continues another one's conversation
    #[command(after_help = "Example:\n  infold fork 3f9a --at 32")]
    Fork {
        /// The task
        #[arg(default_value = "@")]
        task: String,
        /// From here instead of from its end: a seq, or an event such as e3
        #[arg(long, value_name = "SEQ|EVENT")]
        at: Option<At>,
    },
    /// Keep the round of a message in view, or add a note to every view
    #[command(
        after_help = "Examples:\n  infold pin 3f9a 7\n  infold pin 3f9a --note 'never touch main'"
    )]
    Pin(PinArgs),
    /// Take a pin away
    #[command(
        after_help = "Examples:\n  infold unpin 3f9a 7\n  infold unpin 3f9a e4             a note, by the event that added it"
    )]
    Unpin {
        /// The task
        task: String,
        /// The message, or the event of a note
        #[arg(value_name = "SEQ|EVENT")]
        pinned: At,
    },
    /// Take what messages say out of the log for good: the one command that rewrites it
    #[command(
        after_help = "Asks first, and cannot be undone. Messages lose all they say, or with --pattern what it matches; what was made of it goes too: summaries, records, indexes, copies. A pattern is for the task and all that share messages with it.\n\nExamples:\n  infold redact 3f9a 12\n  infold redact 3f9a 12..14 20 --yes\n  infold redact 3f9a --pattern 'sk-[A-Za-z0-9]{20,}' --dry-run"
    )]
    Redact(redact::RedactArgs),
    /// How many tokens a transcript has, per message and in all
    Count(count::CountArgs),
    /// Replay sessions under several strategies: what they send, cost and keep
    #[command(
        after_help = "Exits with 1 if a request did not fit.\n\nExamples:\n  infold eval session.jsonl --window 32k\n  infold eval *.jsonl --model claude-sonnet-4-5 --strategy infold,truncate --svg eval.svg\n  infold eval session.jsonl --window 100k --summary-tokens 4000 --lost\n  infold eval *.jsonl --sizes 1k,2k,4k,8k --window 100k\n  infold eval ~/.claude/projects/*/*.jsonl --agent\n  infold eval --probes --sizes 2k,4k"
    )]
    Eval(eval::EvalArgs),
    /// What is known of models: windows, tokenizers, prices, defaults
    Models(models::ModelsArgs),
    /// Show or check the configuration
    Config(config::ConfigArgs),
    /// Check that everything is as it should be, byte by byte
    #[command(
        after_help = "Exits with 1 if it is not.\n\nExamples:\n  infold verify\n  infold verify 3f9a --json"
    )]
    Verify {
        /// The task; all of them without it
        task: Option<String>,
    },
    /// Where the data is and how it is; with --repair, put it right
    #[command(
        after_help = "Examples:\n  infold doctor\n  infold doctor --repair\n  infold doctor --secrets          all tasks; exits with 1 if there is a secret\n  infold doctor --secrets 3f9a"
    )]
    Doctor {
        /// Repair what can be repaired; damaged bytes are kept aside
        #[arg(long, conflicts_with = "secrets")]
        repair: bool,
        /// Look for API keys, tokens and other secrets in all files of the tasks
        #[arg(long)]
        secrets: bool,
        /// Look in this task alone
        #[arg(value_name = "TASK", requires = "secrets")]
        task: Option<String>,
    },
    /// Print a completion script
    #[command(
        after_help = "It completes commands and options, and in bash, zsh and fish the ids of tasks.\n\nExamples:\n  infold completions bash > ~/.local/share/bash-completion/completions/infold\n  infold completions zsh > ~/.zfunc/_infold\n  infold completions fish > ~/.config/fish/completions/infold.fish"
    )]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Says whether it is about tasks that are there already.
    pub fn looks_at_tasks(&self) -> bool {
        !matches!(
            self,
            Command::Fold(_)
                | Command::Ask(_)
                | Command::Serve(_)
                | Command::Wrap(_)
                | Command::Provider(_)
                | Command::Task(TaskCommand::New { .. })
                | Command::Import(_)
                | Command::Count(_)
                | Command::Eval(_)
                | Command::Models(_)
                | Command::Config(_)
                | Command::Completions { .. }
        )
    }
}

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Make a task and print its id
    #[command(
        after_help = "Example:\n  infold task new --source github --owner acme --repo app --type issue --id 42 --model gpt-5"
    )]
    New {
        #[command(flatten)]
        args: NewArgs,
        /// The form of its messages: chat, responses, anthropic, gemini or ollama
        #[arg(long)]
        wire: Option<infold_wire::Wire>,
    },
    /// List tasks, newest activity first
    #[command(
        after_help = "Examples:\n  infold task list --status running --user ada\n  infold task list --ids | fzf | cut -f1"
    )]
    List {
        /// Only those with this status
        #[arg(long)]
        status: Option<Status>,
        /// Only this user's
        #[arg(long)]
        user: Option<String>,
        /// Only the start of each id and what it is about, with a tab between
        #[arg(long)]
        ids: bool,
    },
    /// Show what is known of a task
    #[command(after_help = "Example:\n  infold task show 3f9a --json")]
    Show {
        /// The task
        #[arg(default_value = "@")]
        task: String,
    },
    /// Append messages, all of them or none
    #[command(
        after_help = "Takes JSON Lines or a JSON array of OpenAI chat or Anthropic messages.\n\nExamples:\n  infold task push 3f9a session.jsonl\n  echo '{\"role\":\"user\",\"content\":\"hi\"}' | infold task push 3f9a"
    )]
    Push {
        /// The task
        task: String,
        /// The messages; - or nothing for standard input
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// A name for this push: repeated with the same key and messages, it appends nothing and answers as before
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Record that a tool was run; its record comes on standard input
    #[command(
        after_help = "Example:\n  echo '{\"tool\":\"ls\",\"args\":{},\"result\":\"a b\",\"duration_ms\":3}' | infold task tool 3f9a"
    )]
    Tool {
        /// The task
        task: String,
    },
    /// End a task well
    #[command(after_help = "Example:\n  infold task complete 3f9a")]
    Complete {
        /// The task
        task: String,
    },
    /// End a task badly
    #[command(after_help = "Example:\n  infold task fail 3f9a --error 'the API key has expired'")]
    Fail {
        /// The task
        task: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        error: String,
    },
    /// Remove a task for good, running or not: nothing of it can be brought back
    #[command(
        after_help = "Asks first. A task that others continue goes only together with them.\n\nExamples:\n  infold task delete 3f9a\n  infold task delete 3f9a --with-forks --yes"
    )]
    Delete {
        /// The task
        task: String,
        /// Remove the tasks that continue it as well
        #[arg(long)]
        with_forks: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Remove tasks that ended long ago, rows and directories
    #[command(
        after_help = "A task that another one continues is spared.\n\nExamples:\n  infold task clean --dry-run\n  infold task clean --older-than 30d"
    )]
    Clean {
        /// How long ago, such as 30d, 12h or 90m [default: cleanup_days of the configuration, else 30d]
        #[arg(long, value_name = "AGE", value_parser = age)]
        older_than: Option<jiff::SignedDuration>,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub struct NewArgs {
    /// Where it comes from, such as github
    #[arg(long)]
    pub source: Option<String>,
    /// The owner of the repository
    #[arg(long)]
    pub owner: Option<String>,
    /// The repository
    #[arg(long)]
    pub repo: Option<String>,
    /// Its kind, such as issue
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Its id at the source
    #[arg(long)]
    pub id: Option<String>,
    /// For whom
    #[arg(long)]
    pub user: Option<String>,
    /// Which API its model speaks
    #[arg(long)]
    pub provider: Option<String>,
    /// Its model
    #[arg(long)]
    pub model: Option<String>,
    /// The model's window, in tokens
    #[arg(long, value_name = "TOKENS")]
    pub context_length: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Look {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    /// As it was right after a message, or an event such as e3
    #[arg(long, value_name = "SEQ|EVENT")]
    pub at: Option<At>,
}

#[derive(Debug, Args)]
pub struct ViewArgs {
    #[command(flatten)]
    pub look: Look,
    /// Print the messages themselves, one a line, ready to be sent
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub struct RewindArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub point: RewindPoint,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RewindPoint {
    /// As it was right after this
    #[arg(long, value_name = "SEQ|EVENT|TIME")]
    pub to: Option<When>,
    /// As it was just before this
    #[arg(long, value_name = "SEQ|EVENT|TIME")]
    pub before: Option<When>,
}

#[derive(Debug, Args)]
pub struct PinArgs {
    /// The task
    pub task: String,
    #[command(flatten)]
    pub what: PinWhat,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PinWhat {
    /// The message
    pub seq: Option<SeqArg>,
    /// A text that every view carries
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// A message by its number.
#[derive(Clone, Copy, Debug)]
pub struct SeqArg(pub Seq);

/// An event by its number, with or without an `e`.
#[derive(Clone, Copy, Debug)]
pub struct EventArg(pub EventId);

/// A message or an event.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// `32`
    Seq(u64),
    /// `e3`
    Event(u64),
}

/// A message, an event or a time.
#[derive(Clone, Copy, Debug)]
pub struct When(pub Target);

impl From<At> for Target {
    fn from(at: At) -> Target {
        match at {
            At::Seq(seq) => Target::Message(seq),
            At::Event(event) => Target::Event(event),
        }
    }
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        let bad = || format!("`{text}` is neither a seq such as 32 nor an event such as e3");
        match text.strip_prefix('e') {
            Some(event) => event.parse().map(At::Event).map_err(|_| bad()),
            None => text.parse().map(At::Seq).map_err(|_| bad()),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<When, String> {
        infold::step::target(text).map(When)
    }
}

impl FromStr for SeqArg {
    type Err = String;

    fn from_str(text: &str) -> Result<SeqArg, String> {
        let seq = text.parse().ok().and_then(Seq::new);
        seq.map(SeqArg)
            .ok_or_else(|| format!("`{text}` is not a seq such as 32"))
    }
}

impl FromStr for EventArg {
    type Err = String;

    fn from_str(text: &str) -> Result<EventArg, String> {
        let number = text.strip_prefix('e').unwrap_or(text).parse().ok();
        let id = number.and_then(EventId::new);
        id.map(EventArg)
            .ok_or_else(|| format!("`{text}` is not an event such as e3"))
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let valid = number.filter(|number| *number > 0.0 && *number <= 1.0);
    valid.ok_or_else(|| "must be more than 0 and at most 1".to_owned())
}

fn age(text: &str) -> Result<jiff::SignedDuration, String> {
    let bad = || format!("`{text}` is not an age such as 30d, 12h, 90m or 10s");
    let unit = text.chars().last().ok_or_else(bad)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return Err(bad()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    let total = count
        .checked_mul(seconds)
        .filter(|total| *total >= 0)
        .ok_or_else(bad)?;
    Ok(jiff::SignedDuration::from_secs(total))
}
