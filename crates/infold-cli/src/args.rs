//! The command line: global options, the commands, and their arguments.

mod parsers;
mod task;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use infold::show::RecallTarget;
use infold_log::steer::Target;
use infold_log::{EventId, Seq};
use infold_store::Durability;

use self::parsers::{parse_event, parse_fraction, parse_point, parse_seq};
pub use self::task::{NewArgs, TaskCommand};
use crate::{
    ask, checkpoint, condense, config, count, enqueue, eval, export, fetch, fold, gain, import,
    layers, manage, mcp, models, provider, redact, run, search, serve, setup, state, tools, work,
};

/// Stores everything an agent has said and seen, and folds it to fit the model's window.
#[derive(Debug, Parser)]
#[command(name = "infold", version, max_term_width = 100)]
pub struct Cli {
    /// The directory of the tasks [default: the configured one, else ./contexts if it holds tasks, else ~/.local/share/infold/contexts]
    #[arg(long, global = true, value_name = "DIR", env = "INFOLD_CONTEXTS")]
    pub contexts: Option<PathBuf>,
    /// The configuration file [default: ~/.config/infold/config.yaml, overridden by ./config.yaml]
    #[arg(long, global = true, value_name = "FILE", env = "INFOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print results and errors as JSON, one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// When to sync writes to the disk
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        env = "INFOLD_DURABILITY",
        default_value = "turn"
    )]
    pub durability: Fsync,
    #[command(subcommand)]
    pub command: CliCommand,
}

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

/// When to sync writes to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fsync {
    /// Before each write is acknowledged
    Always,
    /// At the end of a turn and before any step
    Turn,
    /// When the operating system does it
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

/// A command. The text below its options is in `help.txt`.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Fold a transcript to fit a window; prints the view on stdout, a report on stderr
    Fold(fold::FoldArgs),
    /// Send a message to a model and store the answer; folds first if needed
    Ask(ask::AskArgs),
    /// Send the view as it is, and store the answer
    Send(ask::SendArgs),
    /// Carry out a task with a model and tools, here and now
    Run(run::RunArgs),
    /// Put a task into the queue, for `infold work`
    Enqueue(enqueue::EnqueueArgs),
    /// Carry out the tasks of the queue
    Work(work::WorkArgs),
    /// Run the proxy between agents and their models, so that conversations fit
    Serve(serve::ServeArgs),
    /// Run an agent through a proxy of its own; exits with the agent's exit code
    Wrap(serve::WrapArgs),
    /// Put the proxy between agents and their models: show, write, prove, check, undo
    Setup(setup::SetupArgs),
    /// Serve the history to agents as tools: search, recall, view (Model Context Protocol)
    Mcp(mcp::McpArgs),
    /// Put issues and merge requests that have a label into the queue
    Fetch(fetch::FetchArgs),
    /// List model providers and check whether they answer
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Create, fill, list, end and delete tasks
    #[command(subcommand)]
    Task(TaskCommand),
    /// Create a task from a transcript of any known format
    Import(import::ImportArgs),
    /// Write a task as a transcript of any known format
    Export(export::ExportArgs),
    /// Show all messages and events in order, including hidden ones
    Log(InspectArgs),
    /// Show what the model would be shown; each fold is one line
    View(ViewArgs),
    /// List all folds: what they hide, and whether they are active
    Folds(FoldsArgs),
    /// Find messages by their words in all tasks, including hidden ones
    Search(search::SearchArgs),
    /// Print messages in full, including hidden ones
    Recall(RecallArgs),
    /// Show or change the layered state of a task: goal, rules, phase, memory, plan
    State(state::StateArgs),
    /// Build the document that a model is shown of a task's layered state
    #[command(subcommand)]
    Layers(layers::LayersCommand),
    /// Show which tools the model may see, and which calls were refused
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Fold a task as far as its window requires, and no further
    Manage(manage::ManageArgs),
    /// Replace messages by a summary in the view: your text, or a generated one
    Condense(condense::CondenseArgs),
    /// Hide the oldest rounds behind a marker
    Truncate {
        /// The task
        #[arg(default_value = "@")]
        task: String,
        /// The fraction of the visible messages to hide, more than 0 and at most 1
        #[arg(long, default_value = "0.5", value_parser = parse_fraction)]
        fraction: f64,
    },
    /// Replace one part of a message, a tool result or an image, by a stub in the view
    Mask {
        /// The task
        task: String,
        /// The message
        #[arg(value_parser = parse_seq)]
        seq: Seq,
        /// The part, counted from 0
        #[arg(long, default_value_t = 0)]
        part: u32,
    },
    /// Remove a fold: the messages it hid are shown again
    Unfold {
        /// The task
        task: String,
        /// The fold, such as e3
        #[arg(value_parser = parse_event)]
        fold: EventId,
    },
    /// Return to an earlier state; nothing is deleted
    Rewind(RewindArgs),
    /// Undo the newest step: a fold, unfold, pin, unpin, rewind or change of the state
    Undo(UndoArgs),
    /// Revert the newest undo
    Redo(UndoArgs),
    /// Keep the files of a task's workspace, so that `rewind --files` can bring them back
    Checkpoint(checkpoint::CheckpointArgs),
    /// Show what differs between the files of two points of a task
    Diff(checkpoint::DiffArgs),
    /// Create a task that continues the conversation of another one
    Fork {
        /// The task
        #[arg(default_value = "@")]
        task: String,
        /// Fork at this seq, event such as e3, or time, instead of at the end
        #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
        at: Option<Target>,
    },
    /// Keep the round of a message in view, or add a note to every view
    Pin(PinArgs),
    /// Remove a pin
    Unpin {
        /// The task
        task: String,
        /// The message, or the event of a note
        #[arg(value_name = "SEQ|EVENT", value_parser = parse_point)]
        pinned: Target,
    },
    /// Permanently remove the content of messages: the only command that rewrites the log
    Redact(redact::RedactArgs),
    /// Count the tokens of a transcript, per message and in total
    Count(count::CountArgs),
    /// Replay sessions under several strategies: tokens sent, cost, what is kept
    Eval(eval::EvalArgs),
    /// Show what folding saved: tokens, money and requests that would not have fit
    Gain(gain::GainArgs),
    /// Show the table of models: windows, tokenizers, prices, defaults
    Models(models::ModelsArgs),
    /// Show, check or trust the configuration
    Config(config::ConfigArgs),
    /// Check the integrity of all stored data
    Verify {
        /// The task [default: all tasks]
        task: Option<String>,
    },
    /// Show where the data is and its state; --repair fixes problems
    Doctor {
        /// Repair what can be repaired; damaged bytes are set aside
        #[arg(long, conflicts_with = "secrets")]
        repair: bool,
        /// Search all files of the tasks for API keys, tokens and other secrets
        #[arg(long)]
        secrets: bool,
        /// Search this task only
        #[arg(value_name = "TASK", requires = "secrets")]
        task: Option<String>,
    },
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl CliCommand {
    /// Returns whether the command works on tasks that already exist.
    pub fn needs_tasks(&self) -> bool {
        !matches!(
            self,
            CliCommand::Fold(_)
                | CliCommand::Ask(_)
                | CliCommand::Run(_)
                | CliCommand::Enqueue(_)
                | CliCommand::Work(_)
                | CliCommand::Serve(_)
                | CliCommand::Wrap(_)
                | CliCommand::Setup(_)
                | CliCommand::Mcp(_)
                | CliCommand::Fetch(_)
                | CliCommand::Provider(_)
                | CliCommand::Task(TaskCommand::New { .. })
                | CliCommand::Import(_)
                | CliCommand::Count(_)
                | CliCommand::Eval(_)
                | CliCommand::Models(_)
                | CliCommand::Tools(tools::ToolsCommand::Project(_))
                | CliCommand::Config(_)
                | CliCommand::Completions { .. }
        )
    }
}

/// A task at some point of its history.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    /// As it was right after a message, or an event such as e3, or at a time
    #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
    pub at: Option<Target>,
}

/// The arguments of `infold folds`.
#[derive(Debug, Args)]
pub struct FoldsArgs {
    #[command(flatten)]
    pub inspect: InspectArgs,
    /// Print the text of this fold, such as e3
    #[arg(value_parser = parse_event)]
    pub fold: Option<EventId>,
}

/// The arguments of `infold recall`.
#[derive(Debug, Args)]
pub struct RecallArgs {
    /// The task
    pub task: String,
    /// The messages: 12, 12..40, 12-40, 12.., or a fold such as e3
    #[arg(value_name = "RANGE|FOLD")]
    pub target: Option<RecallTarget>,
    /// Only messages that contain this text, in any case
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
}

/// The arguments of `infold view`.
#[derive(Debug, Args)]
pub struct ViewArgs {
    #[command(flatten)]
    pub inspect: InspectArgs,
    /// Print the messages themselves, one per line, ready to be sent
    #[arg(long)]
    pub raw: bool,
}

/// The arguments of `infold rewind`.
#[derive(Debug, Args)]
pub struct RewindArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub point: RewindPoint,
    /// Bring the files of the workspace back as well; what is there now is kept first
    #[arg(long)]
    pub files: bool,
    /// Only print which files would change
    #[arg(long, requires = "files")]
    pub dry_run: bool,
}

/// The arguments of `infold undo` and `infold redo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    /// Leave the files as they are, also if the step changed them
    #[arg(long)]
    pub no_files: bool,
}

/// The state to return to.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RewindPoint {
    /// The state right after this
    #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
    pub to: Option<Target>,
    /// The state just before this
    #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
    pub before: Option<Target>,
}

/// The arguments of `infold pin`.
#[derive(Debug, Args)]
pub struct PinArgs {
    /// The task
    pub task: String,
    #[command(flatten)]
    pub target: PinTarget,
}

/// What to pin.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PinTarget {
    /// The message
    #[arg(value_parser = parse_seq)]
    pub seq: Option<Seq>,
    /// A text that every view includes
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}
