//! Plays recorded sessions through `infold serve` as an agent would, and prints what the model was shown.
//!
//! `scripts/live session.jsonl --window 32k,64k`. What the figures mean is defined in `docs/EVAL.md`.

mod measure;
mod tables;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Parser;
use infold::models;
use infold_eval::{DEFAULT_MODEL, RecordedSession};
use infold_wire::transcript::Transcript;

use measure::{Failure, Figures, Setting, measure};

/// Plays recorded sessions through `infold serve`, and measures what the model is shown
#[derive(Debug, Parser)]
struct Args {
    /// The transcripts
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The windows, apart by commas: 32k,64k
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', value_parser = tokens, default_value = "32k,64k")]
    window: Vec<u64>,
    /// The model that is asked for, and whose prices are taken
    #[arg(long, value_name = "NAME", default_value = DEFAULT_MODEL)]
    model: String,
    /// How long a reply is asked for; without it as much as Infold leaves room for
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    max_tokens: Option<u64>,
    /// Print an object for each session and window
    #[arg(long)]
    json: bool,
    /// Leave what was shown last, and at the points that are compared, in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The command; without it the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    infold: Option<PathBuf>,
}

/// The reply length that Infold reserves if none is configured.
const USUAL_REPLY_TOKENS: u64 = 8192;

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let infold = match &args.infold {
        Some(infold) => infold.clone(),
        None => beside()?,
    };
    if let Some(dir) = &args.keep {
        fs::create_dir_all(dir)?;
    }
    for window in &args.window {
        let setting = Setting {
            infold: &infold,
            model: &args.model,
            prices: models::find(&args.model).and_then(|model| model.prices),
            window: *window,
            max_tokens: args
                .max_tokens
                .unwrap_or(USUAL_REPLY_TOKENS.min(window / 4)),
        };
        let mut rows: Vec<(String, Figures)> = Vec::new();
        for file in &args.files {
            play(file, &setting, &args, &mut rows)?;
        }
        if !args.json {
            tables::print(&rows, &setting);
        }
    }
    Ok(())
}

/// Plays all sessions of a file.
fn play(
    file: &Path,
    setting: &Setting<'_>,
    args: &Args,
    rows: &mut Vec<(String, Figures)>,
) -> Result<(), Failure> {
    let input = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut transcript = Transcript::open(BufReader::new(input), None)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut number = 0;
    while let Some(session) = RecordedSession::next(&mut transcript)? {
        number += 1;
        let name = match number {
            1 => stem.to_string(),
            number => format!("{stem}-{number}"),
        };
        let measured = measure(&session, setting).map_err(|error| format!("{name}: {error}"))?;
        if let Some(dir) = &args.keep {
            for (view, text) in &measured.views {
                fs::write(
                    dir.join(format!("{name}-{}-{view}.txt", setting.window)),
                    text,
                )?;
            }
        }
        if args.json {
            let mut object = measured.figures.json();
            object["session"] = (&*name).into();
            object["window"] = setting.window.into();
            object["max_tokens"] = setting.max_tokens.into();
            object["model"] = setting.model.into();
            println!("{object}");
        } else {
            eprintln!(
                "{name} at {}: {} requests",
                setting.window, measured.figures.requests
            );
        }
        rows.push((name, measured.figures));
    }
    Ok(())
}

/// The command that was built beside this program.
fn beside() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let dir = own.parent().and_then(Path::parent).ok_or("no directory")?;
    let infold = dir.join("infold");
    if infold.exists() {
        Ok(infold)
    } else {
        Err(format!(
            "no {}: build it, or name one with --infold",
            infold.display()
        )
        .into())
    }
}

/// Reads a number of tokens: 8000, 32k.
fn tokens(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "give a number such as 8000 or 32k")?;
    Ok(number * unit)
}
