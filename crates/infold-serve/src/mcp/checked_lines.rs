//! The lines of an MCP client on standard input, checked: invalid messages are answered here, and not passed on to the
//! server.

use std::io;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream,
    duplex, stdin, stdout,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::message_check::{BadMessage, check};

/// The longest line that is read.
const MAX_LINE_BYTES: usize = 16 << 20;
/// The capacity of the pipes to and from the server.
const BUFFER_BYTES: usize = 64 << 10;
/// The number of lines that are queued for writing.
const MAX_WAITING_LINES: usize = 16;

/// Standard input and output, reduced to valid messages.
pub(super) struct CheckedLines {
    /// The messages of the client, for the server to read.
    pub input: DuplexStream,
    /// Where the server writes its messages to the client.
    pub output: DuplexStream,
    pub ends: LineTasks,
}

/// The tasks that read and write.
pub(super) struct LineTasks {
    reading: JoinHandle<io::Result<()>>,
    writing: JoinHandle<io::Result<()>>,
}

/// A line of a client.
enum ClientLine {
    /// Without its end.
    Whole(Vec<u8>),
    /// More than [`MAX_LINE_BYTES`]; its bytes were discarded.
    TooLong,
}

impl CheckedLines {
    /// Begins to read and to write.
    pub fn start() -> CheckedLines {
        let (to_server, input) = duplex(BUFFER_BYTES);
        let (output, from_server) = duplex(BUFFER_BYTES);
        let (lines, queued) = mpsc::channel(MAX_WAITING_LINES);
        let reading = pass_input(BufReader::new(stdin()), to_server, lines.clone());
        tokio::spawn(pass_output(BufReader::new(from_server), lines));
        CheckedLines {
            input,
            output,
            ends: LineTasks {
                reading: tokio::spawn(reading),
                writing: tokio::spawn(write_lines(stdout(), queued)),
            },
        }
    }
}

impl LineTasks {
    /// Stops reading, and writes the remaining lines.
    pub async fn finish(self) {
        self.reading.abort();
        // A client that went away reads nothing.
        let _ = self.writing.await;
    }
}

/// Passes valid messages on to the server, and answers invalid ones.
async fn pass_input(
    mut from: impl AsyncBufRead + Unpin,
    mut to: DuplexStream,
    answers: mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    while let Some(line) = next_line(&mut from).await? {
        let checked = match &line {
            ClientLine::TooLong => {
                let text = format!("a message has at most {} MiB", MAX_LINE_BYTES >> 20);
                Err(BadMessage::invalid(text, serde_json::Value::Null))
            }
            ClientLine::Whole(line) if line.trim_ascii().is_empty() => continue,
            ClientLine::Whole(line) => check(line),
        };
        match (line, checked) {
            (ClientLine::Whole(mut line), Ok(())) => {
                line.push(b'\n');
                to.write_all(&line).await?;
            }
            (_, Err(bad)) => {
                let answer = (bad.response() + "\n").into_bytes();
                if answers.send(answer).await.is_err() {
                    break;
                }
            }
            // A line that is too long was never checked as valid.
            (ClientLine::TooLong, Ok(())) => {}
        }
    }
    to.shutdown().await
}

/// Passes the server's messages on line by line, so that they do not mix with the answers to invalid messages.
async fn pass_output(
    mut from: impl AsyncBufRead + Unpin,
    lines: mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line).await? == 0 || lines.send(line).await.is_err() {
            return Ok(());
        }
    }
}

/// Writes lines until all senders are gone.
async fn write_lines(
    mut to: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        to.write_all(&line).await?;
        to.flush().await?;
    }
    Ok(())
}

/// Reads a line; none at the end of the input. A line that is too long is read to its end, but not kept in memory.
async fn next_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<ClientLine>> {
    let mut line = Vec::new();
    let (mut is_too_long, mut has_any) = (false, false);
    loop {
        let read = from.fill_buf().await?;
        if read.is_empty() {
            break;
        }
        has_any = true;
        let end = memchr::memchr(b'\n', read);
        let more = &read[..end.unwrap_or(read.len())];
        is_too_long |= line.len() + more.len() > MAX_LINE_BYTES;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(more);
        }
        let count = end.map_or(read.len(), |end| end + 1);
        from.consume(count);
        if end.is_some() {
            break;
        }
    }
    Ok(has_any.then_some(if is_too_long {
        ClientLine::TooLong
    } else {
        ClientLine::Whole(line)
    }))
}
