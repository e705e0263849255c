use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use clap::{Args, ValueEnum};
use infold::Config;
use infold::config::ProfileRequest;
use infold_wire::tokens::{Counter, Encoding, Estimator, message_by};
use infold_wire::transcript::{Entry, Transcript, detect};
use infold_wire::{Message, gist};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::fold::opened;
use crate::input::{Inputs, unreadable, warn_of_torn_line};
use crate::out::{DIM, Out, count, fit, number, of_role, paint, say};
use crate::settings::no_profile;

/// What `infold count` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "What is no transcript is counted as text.\n\nExamples:\n  infold count session.jsonl\n  infold count --last claude --model claude-sonnet-4-5\n  git diff | infold count"
)]
pub struct CountArgs {
    #[command(flatten)]
    inputs: Inputs,
    /// How to count
    #[arg(long, value_enum, default_value = "bpe")]
    by: By,
    /// Whose tokens are counted
    #[arg(long, value_enum, default_value = "o200k")]
    encoding: Whose,
    /// For this model: what it counts, as far as that is known
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Exactly, with the vocabulary of a model
    Bpe,
    /// A quarter of a token for an ASCII character, 1.3 for any other
    Chars,
    /// A quarter of a token for a byte
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Whose {
    /// GPT-4o and later
    O200k,
    /// GPT-4 and GPT-3.5
    Cl100k,
}

impl CountArgs {
    fn estimator(&self) -> Estimator {
        match (self.by, self.encoding) {
            (By::Bpe, Whose::O200k) => Estimator::Bpe(Encoding::O200k),
            (By::Bpe, Whose::Cl100k) => Estimator::Bpe(Encoding::Cl100k),
            (By::Chars, _) => Estimator::Chars,
            (By::Bytes, _) => Estimator::Bytes,
        }
    }
}

/// `infold count`
pub fn run(config: &Config, args: &CountArgs, out: &mut Out) -> Result<(), Failure> {
    let factor = match &args.model {
        Some(name) => factor(config, name, out)?,
        None => 1.0,
    };
    let paths = args.inputs.paths(out.is_json())?;
    for path in &paths {
        if paths.len() > 1 {
            match out.is_json() {
                true => out.object(&json!({"file": path.display().to_string()}))?,
                false => out.line(path.display().to_string())?,
            }
        }
        let about = |failure: Failure| match paths.len() {
            1 => failure,
            _ => failure.within(&path.display().to_string()),
        };
        count_file(path, args, factor, out).map_err(about)?;
    }
    Ok(())
}

fn count_file(path: &Path, args: &CountArgs, factor: f64, out: &mut Out) -> Result<(), Failure> {
    let (mut input, _) = opened(path, out.is_json())?;
    let mut start = Vec::new();
    let rewind = |input: &mut BufReader<_>| input.seek(SeekFrom::Start(0)).map(|_| ());
    let failed = unreadable(path);
    rewind(&mut input).map_err(&failed)?;
    let head = (&mut input).take(1 << 16).read_to_end(&mut start);
    head.and_then(|_| rewind(&mut input)).map_err(&failed)?;
    match detect(&start) {
        Ok(_) => messages(args, factor, Transcript::open(input, None)?, out),
        Err(error) => {
            let told = format!("no transcript ({error}): counted as text");
            say(out.is_json(), told);
            text(path, args, factor, input, out)
        }
    }
}

/// Tokens of a model for each that we count.
fn factor(config: &Config, name: &str, out: &Out) -> Result<f64, Failure> {
    let asked = ProfileRequest {
        model: Some(name.to_owned()),
        ..ProfileRequest::default()
    };
    let resolved = config.resolve(&asked).map_err(no_profile)?;
    for warning in resolved.warnings {
        Failure::new(Kind::Usage, warning).warn(out.is_json());
    }
    Ok(resolved.profile.factor)
}

fn messages<R: BufRead + Seek>(
    args: &CountArgs,
    factor: f64,
    mut transcript: Transcript<R>,
    out: &mut Out,
) -> Result<(), Failure> {
    let (mut seq, mut total) = (0, 0);
    let format = transcript.format();
    for entry in &mut transcript {
        let Entry::Message { text, .. } = entry? else {
            continue;
        };
        seq += 1;
        let message = Message::parse(&text)
            .map_err(|error| Failure::new(Kind::Usage, format!("message {seq}: {error}")))?;
        let tokens = scaled(message_by(args.estimator(), &message), factor);
        total += tokens;
        let role = message.role().wire_name();
        match out.is_json() {
            true => out.object(&json!({"seq": seq, "role": role, "tokens": tokens}))?,
            false => {
                let head = format!("{seq:>6}  {role:<9}  {:>9}  ", number(tokens));
                let room = out.width().saturating_sub(head.len()).max(10);
                let said = fit(&gist(&message, room), room);
                let role = paint(of_role(message.role()), format!("{role:<9}"));
                out.line(format!("{seq:>6}  {role}  {:>9}  {said}", number(tokens)))?;
            }
        }
    }
    warn_of_torn_line(transcript.seen(), out.is_json());
    let noun = format!("{} as {format}", count(seq, "message"));
    let object = json!({"messages": seq, "format": format.name()});
    sum(args, object, &noun, total, out)
}

fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).ceil() as u64
}

fn text(
    path: &Path,
    args: &CountArgs,
    factor: f64,
    input: impl Read,
    out: &mut Out,
) -> Result<(), Failure> {
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
        // A character that is cut in two waits for its other half.
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
    let total = scaled(counter.finish(), factor);
    let noun = count(read, "byte") + " of text";
    sum(
        args,
        json!({"text": true, "bytes": read}),
        &noun,
        total,
        out,
    )
}

fn sum(
    args: &CountArgs,
    mut object: serde_json::Value,
    noun: &str,
    total: u64,
    out: &mut Out,
) -> Result<(), Failure> {
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
