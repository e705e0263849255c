use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::{Args, ValueEnum};
use infold_store::{Contexts, Incoming, IncomingError};
use infold_wire::tokens::{Counter, Encoding, Estimator, message_by};
use infold_wire::{Message, gist};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, count, fit, number, of_role, paint, say};

/// What `infold count` takes.
#[derive(Debug, Args)]
pub struct CountArgs {
    /// Messages, one a line or as a JSON array, or any text; - for standard input
    file: PathBuf,
    /// How to count
    #[arg(long, value_enum, default_value = "bpe")]
    by: By,
    /// Whose tokens are counted
    #[arg(long, value_enum, default_value = "o200k")]
    encoding: Whose,
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
pub fn run(_: &Contexts, args: &CountArgs, out: &mut Out) -> Result<(), Failure> {
    let input: Box<dyn Read> = match args.file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.file).map_err(unreadable(&args.file))?),
    };
    let start = Rc::new(RefCell::new(Some(Vec::new())));
    let kept = Kept {
        from: input,
        start: start.clone(),
    };
    let mut incoming = Incoming::new(BufReader::with_capacity(1 << 16, kept));
    match incoming.next_message() {
        Ok(first) => {
            start.take();
            messages(args, first, incoming, out)
        }
        Err(error @ (IncomingError::Read(_) | IncomingError::TooLarge { .. })) => Err(error.into()),
        Err(error) => {
            say(
                out.is_json(),
                format!("no messages ({error}): counted as text"),
            );
            let read = start.take().unwrap_or_default();
            let rest = incoming.into_inner().into_inner().from;
            text(args, io::Cursor::new(read).chain(rest), out)
        }
    }
}

fn messages(
    args: &CountArgs,
    mut next: Option<Vec<u8>>,
    mut incoming: Incoming<impl io::BufRead>,
    out: &mut Out,
) -> Result<(), Failure> {
    let (mut seq, mut total) = (0, 0);
    while let Some(bytes) = next {
        seq += 1;
        let message = Message::parse(&bytes)
            .map_err(|error| Failure::new(Kind::Usage, format!("message {seq}: {error}")))?;
        let tokens = message_by(args.estimator(), &message);
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
        next = incoming.next_message()?;
    }
    let noun = count(seq, "message");
    sum(args, json!({"messages": seq}), &noun, total, out)
}

fn text(args: &CountArgs, input: impl Read, out: &mut Out) -> Result<(), Failure> {
    let mut counter = Counter::new(args.estimator());
    let (mut buffer, mut length, mut read) = (vec![0; 1 << 16], 0, 0);
    let mut input = input;
    loop {
        let more = input
            .read(&mut buffer[length..])
            .map_err(unreadable(&args.file))?;
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
    let total = counter.finish();
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
        return out.object(&object);
    }
    let by = paint(DIM, format!("(by {by})"));
    out.line(format!("{} tokens in {noun} {by}", number(total)))
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        Failure::new(
            Kind::Usage,
            format!("{} could not be read: {error}", path.display()),
        )
        .hint("say which file holds the messages, or - for standard input")
    }
}

/// Keeps what was read until the first message is known to be one: text is read again from there.
struct Kept {
    from: Box<dyn Read>,
    start: Rc<RefCell<Option<Vec<u8>>>>,
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Some(start) = self.start.borrow_mut().as_mut() {
            start.extend_from_slice(&buffer[..count]);
        }
        Ok(count)
    }
}
