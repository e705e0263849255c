//! Compares each request with the one before it, byte for byte.

use infold_log::{Past, Piece, Seq, Shows, Span, View};
use infold_store::{Log, LogError};

/// The last request as it was sent, for finding out how much of the next one repeats it.
#[derive(Default)]
pub struct Sent {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

/// What of a request is the same, byte for byte from its start, as the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unchanged {
    /// Its bytes.
    pub bytes: u64,
    /// Its tokens, as counted. Where a piece is the same only in part, in proportion.
    pub tokens: u64,
}

impl Sent {
    /// Takes the next request; only what follows the pieces that are the same is rendered.
    pub fn next(&mut self, view: &View, log: &Log) -> Result<Unchanged, LogError> {
        let mut same = Unchanged::default();
        let mut rest = view.pieces();
        for old in &self.pieces {
            let Some((new, after)) = rest.split_first() else {
                break;
            };
            if old.shows != new.shows {
                break;
            }
            same.bytes += size(new, log)?;
            same.tokens += new.tokens;
            rest = after;
        }
        let mut rest: Vec<Piece> = rest.to_vec();
        let equal = view.pieces().len() - rest.len();
        if let (Some(old), Some(new)) = (self.pieces.get(equal), rest.first_mut())
            && let (Shows::Verbatim(was), Shows::Verbatim(is)) = (&old.shows, &new.shows)
            && was.from() == is.from()
        {
            // The same run of messages, longer or shorter now.
            let common = Span::new(is.from(), is.to().min(was.to())).expect("a run has a message");
            let more = Span::new(common.to().next(), is.to());
            let head = verbatim(common, log)?;
            same.bytes += size(&head, log)?;
            same.tokens += head.tokens;
            match more {
                Some(more) => *new = verbatim(more, log)?,
                None => drop(rest.remove(0)),
            }
        }
        let mut bytes = Vec::new();
        for piece in &rest {
            render(piece, log, &mut bytes)?;
        }
        let old = &self.bytes[(same.bytes as usize).min(self.bytes.len())..];
        let further = old.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        self.bytes.truncate(same.bytes as usize);
        if further > 0 {
            let tokens: u64 = rest.iter().map(|piece| piece.tokens).sum();
            same.bytes += further as u64;
            same.tokens += tokens * further as u64 / bytes.len() as u64;
        }
        self.bytes.append(&mut bytes);
        self.pieces = view.pieces().to_vec();
        Ok(same)
    }

    /// How many bytes the request has.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

fn render(piece: &Piece, log: &Log, out: &mut Vec<u8>) -> Result<(), LogError> {
    log.render_piece(piece, &mut |_, bytes| {
        out.extend_from_slice(bytes);
        out.push(b'\n');
        Ok(())
    })
}

/// How many bytes a piece has, a line for each message.
fn size(piece: &Piece, log: &Log) -> Result<u64, LogError> {
    match piece.shows {
        Shows::Verbatim(span) => {
            let (before, after) = (before(span.from(), log)?.1, sums(span.to(), log)?.1);
            Ok(after - before + span.count())
        }
        _ => {
            let mut bytes = Vec::new();
            render(piece, log, &mut bytes)?;
            Ok(bytes.len() as u64)
        }
    }
}

fn verbatim(span: Span, log: &Log) -> Result<Piece, LogError> {
    Ok(Piece {
        tokens: sums(span.to(), log)?.0 - before(span.from(), log)?.0,
        shows: Shows::Verbatim(span),
    })
}

/// Tokens and bytes of all messages up to one.
fn sums(seq: Seq, log: &Log) -> Result<(u64, u64), LogError> {
    let sums = log.record(seq)?.sums;
    Ok((sums.tokens, sums.bytes))
}

fn before(seq: Seq, log: &Log) -> Result<(u64, u64), LogError> {
    seq.prev().map_or(Ok((0, 0)), |seq| sums(seq, log))
}
