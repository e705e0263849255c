//! `infold eval`: measures the cost of folding and the references it keeps.

mod probes;
mod replays;
mod tables;
mod trials;

use std::path::PathBuf;

use clap::Args;
use infold::{Config, Strategy};
use infold_wire::transcript::TranscriptFormat;

use crate::error::CliError;
use crate::fold_options::parse_tokens;
use crate::output::Output;

/// The arguments of `infold eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// Transcripts
    #[arg(value_name = "FILE", required_unless_present = "probes")]
    pub files: Vec<PathBuf>,
    /// The model's window in tokens, such as 8000, 32k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,
    /// Strategies, separated by commas; all if none is given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub strategy: Vec<Strategy>,
    /// The model, which sets window, tokenizer and prices (`infold models`)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Tokens of each summary, instead of what the window has room for
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub summary_tokens: Option<u64>,
    /// Write and measure every kind of stand-in at these sizes where sessions are folded, such as 1k,2k,4k
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', value_parser = parse_tokens)]
    pub sizes: Vec<u64>,
    /// Compare with the summaries of the sessions' own agents, at their places and sizes
    #[arg(long)]
    pub agent: bool,
    /// Plant facts in generated conversations, fold these, and report which facts survive; needs no file
    #[arg(long, conflicts_with_all = ["files", "agent", "window", "strategy", "model", "svg"])]
    pub probes: bool,
    /// Probe with all combinations, not with a sample
    #[arg(long, requires = "probes", conflicts_with = "files")]
    pub all: bool,
    /// Recall what messages refer to, as `ask` and the proxy do, or not; either way the content that was needed and not in view is counted
    #[arg(long, value_name = "WHEN")]
    pub recall: Option<RecallChoice>,
    /// Draw a picture into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// List this many of the references that summaries lost most often, or of the facts they lost
    #[arg(long, value_name = "COUNT", default_missing_value = "20", num_args = 0..=1, require_equals = true)]
    pub lost: Option<usize>,
    /// The format of the transcripts, instead of recognising it
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<TranscriptFormat>,
}

/// Whether hidden messages are recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RecallChoice {
    /// Excerpts of hidden messages come with requests that refer to them
    Auto,
    /// What is folded away stays hidden
    Off,
}

/// Runs `infold eval`.
pub fn run(config: &Config, args: &EvalArgs, out: &mut Output) -> Result<(), CliError> {
    if args.probes {
        return probes::run(args, out);
    }
    if args.agent || !args.sizes.is_empty() {
        return trials::run(config, args, out);
    }
    replays::run(config, args, out)
}
