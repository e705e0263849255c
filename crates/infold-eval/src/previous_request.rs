//! Compares each request with the one before it, byte for byte.

use infold_log::{Past, Piece, Seq, Shows, Span, View};
use infold_store::{Log, LogError};

/// The last request that was sent.
#[derive(Default)]
pub struct PreviousRequest {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

/// The prefix that a request has in common with the one before, byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommonPrefix {
    /// The bytes of the prefix.
    pub bytes: u64,
    /// The tokens of the prefix; those of a partly equal piece in proportion.
    pub tokens: u64,
}

impl PreviousRequest {
    /// Replaces the request by the next one; only the part behind equal pieces is rendered.
    pub fn replace(&mut self, view: &View, log: &Log) -> Result<CommonPrefix, LogError> {
        let mut same = CommonPrefix::default();
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
            // The same run of messages, which is longer or shorter now.
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

    /// Returns the number of bytes of the request.
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

/// Returns the number of bytes of a piece, a line for each message.
fn size(piece: &Piece, log: &Log) -> Result<u64, LogError> {
    match piece.shows {
        Shows::Verbatim(span) => {
            let (before, after) = (sums_before(span.from(), log)?.1, sums_to(span.to(), log)?.1);
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
        tokens: sums_to(span.to(), log)?.0 - sums_before(span.from(), log)?.0,
        shows: Shows::Verbatim(span),
    })
}

/// Returns the tokens and bytes of all messages up to one.
fn sums_to(seq: Seq, log: &Log) -> Result<(u64, u64), LogError> {
    let sums = log.record(seq)?.sums;
    Ok((sums.tokens, sums.bytes))
}

fn sums_before(seq: Seq, log: &Log) -> Result<(u64, u64), LogError> {
    seq.prev().map_or(Ok((0, 0)), |seq| sums_to(seq, log))
}
