//! `infold count`: counts the tokens of transcripts and texts.

use std::io::{BufRead, Read, Seek};
use std::path::Path;

use clap::{Args, ValueEnum};
use infold::Config;
use infold::config::ProfileRequest;
use infold_wire::tokens::{Counter, Encoding, Estimator, message_by};
use infold_wire::transcript::{Transcript, TranscriptEntry, detect};
use infold_wire::{Message, message_excerpt};
use serde_json::json;

use crate::error::{CliError, CliResult};
use crate::fold_options::no_profile;
use crate::input::{Inputs, in_file, open_transcript, unreadable, warn_of_torn_line};
use crate::output::{DIM, Output, count, fit, number, paint, role_style, say};

/// The arguments of `infold count`.
#[derive(Debug, Args)]
pub struct CountArgs {
    #[command(flatten)]
    inputs: Inputs,
    /// The method
    #[arg(long, value_enum, default_value = "bpe")]
    by: CountMethod,
    /// The vocabulary
    #[arg(long, value_enum, default_value = "o200k")]
    encoding: VocabularyArg,
    /// Count for this model, as far as its tokenizer is known
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CountMethod {
    /// Exactly, with the vocabulary of a model
    Bpe,
    /// A quarter of a token for an ASCII character, 1.3 for any other
    Chars,
    /// A quarter of a token for a byte
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VocabularyArg {
    /// GPT-4o and later
    O200k,
    /// GPT-4 and GPT-3.5
    Cl100k,
}

impl CountArgs {
    fn estimator(&self) -> Estimator {
        match (self.by, self.encoding) {
            (CountMethod::Bpe, VocabularyArg::O200k) => Estimator::Bpe(Encoding::O200k),
            (CountMethod::Bpe, VocabularyArg::Cl100k) => Estimator::Bpe(Encoding::Cl100k),
            (CountMethod::Chars, _) => Estimator::Chars,
            (CountMethod::Bytes, _) => Estimator::Bytes,
        }
    }
}

/// `infold count`
pub fn run(config: &Config, args: &CountArgs, out: &mut Output) -> CliResult {
    let factor = match &args.model {
        Some(name) => token_factor(config, name, out)?,
        None => 1.0,
    };
    let paths = args.inputs.paths(out.is_json())?;
    for path in &paths {
        if paths.len() > 1 {
            let name = path.display().to_string();
            out.result(&json!({"file": name}), &name)?;
        }
        count_file(path, args, factor, out).map_err(in_file(&paths, path))?;
    }
    Ok(())
}

fn count_file(path: &Path, args: &CountArgs, factor: f64, out: &mut Output) -> CliResult {
    let (mut input, _) = open_transcript(path, out.is_json())?;
    let mut start = Vec::new();
    input.rewind().map_err(unreadable(path))?;
    let head = (&mut input).take(1 << 16).read_to_end(&mut start);
    head.and_then(|_| input.rewind())
        .map_err(unreadable(path))?;
    match detect(&start) {
        Ok(_) => count_messages(args, factor, Transcript::open(input, None)?, out),
        Err(error) => {
            say(
                out.is_json(),
                format!("not a transcript ({error}): counted as text"),
            );
            count_text(path, args, factor, input, out)
        }
    }
}

/// Returns the model's tokens per token that we count.
fn token_factor(config: &Config, name: &str, out: &Output) -> CliResult<f64> {
    let asked = ProfileRequest {
        model: Some(name.to_owned()),
        ..ProfileRequest::default()
    };
    let resolved = config.resolve(&asked).map_err(no_profile)?;
    for warning in resolved.warnings {
        CliError::usage(warning).warn(out.is_json());
    }
    Ok(resolved.profile.factor)
}

fn count_messages<R: BufRead + Seek>(
    args: &CountArgs,
    factor: f64,
    mut transcript: Transcript<R>,
    out: &mut Output,
) -> CliResult {
    let (mut seq, mut total) = (0, 0);
    let format = transcript.format();
    for entry in &mut transcript {
        let TranscriptEntry::Message { text, .. } = entry? else {
            continue;
        };
        seq += 1;
        let message = Message::parse(&text)
            .map_err(|error| CliError::usage(format!("message {seq}: {error}")))?;
        let tokens = scale(message_by(args.estimator(), &message), factor);
        total += tokens;
        let role = message.role().wire_name();
        if out.is_json() {
            out.object(&json!({"seq": seq, "role": role, "tokens": tokens}))?;
            continue;
        }
        let (seq, tokens) = (format!("{seq:>6}"), format!("{:>9}", number(tokens)));
        let room = out
            .width()
            .saturating_sub(seq.len() + tokens.len() + 15)
            .max(10);
        let text = fit(&message_excerpt(&message, room), room);
        let role = paint(role_style(message.role()), format!("{role:<9}"));
        out.line(format!("{seq}  {role}  {tokens}  {text}"))?;
    }
    warn_of_torn_line(transcript.skipped(), out.is_json());
    let noun = format!("{} as {format}", count(seq, "message"));
    let object = json!({"messages": seq, "format": format.name()});
    print_total(args, object, &noun, total, out)
}

fn scale(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).ceil() as u64
}

fn count_text(
    path: &Path,
    args: &CountArgs,
    factor: f64,
    input: impl Read,
    out: &mut Output,
) -> CliResult {
    let mut counter = Counter::new(args.estimator());
    let (mut buffer, mut length, mut read) = (vec![0; 1 << 16], 0, 0);
    let mut input = input;
    loop {
        let more = input
            .read(&mut buffer[length..])
            .map_err(unreadable(path))?;
        read += more as u64;
        length += more;
        let bytes = &buffer[..length];
        // A character that is cut in two stays in the buffer for the next read.
        let mut used = 0;
        for chunk in bytes.utf8_chunks() {
            used += chunk.valid().len();
            counter.push(chunk.valid());
            let cut = used + chunk.invalid().len() == length && chunk.invalid().len() < 4;
            if !chunk.invalid().is_empty() && (!cut || more == 0) {
                counter.push("\u{fffd}");
                used += chunk.invalid().len();
            }
        }
        buffer.copy_within(used..length, 0);
        length -= used;
        if more == 0 {
            break;
        }
    }
    let total = scale(counter.finish(), factor);
    let noun = count(read, "byte") + " of text";
    let object = json!({"text": true, "bytes": read});
    print_total(args, object, &noun, total, out)
}

fn print_total(
    args: &CountArgs,
    mut object: serde_json::Value,
    noun: &str,
    total: u64,
    out: &mut Output,
) -> CliResult {
    let by = match args.estimator() {
        Estimator::Bpe(Encoding::O200k) => "o200k",
        Estimator::Bpe(Encoding::Cl100k) => "cl100k",
        Estimator::Chars => "chars",
        Estimator::Bytes => "bytes",
    };
    if out.is_json() {
        object["tokens"] = total.into();
        object["by"] = by.into();
        object["model"] = args.model.clone().into();
        return out.object(&object);
    }
    let by = match &args.model {
        Some(model) => format!("(by {by}, for {model})"),
        None => format!("(by {by})"),
    };
    let by = paint(DIM, by);
    out.line(format!("{} tokens in {noun} {by}", number(total)))
}
