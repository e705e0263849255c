use std::cell::RefCell;
use std::collections::VecDeque;

use infold::manage::Prepared;
use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Log, LogError, Writer};
use infold_wire::normal::Digest;
use uuid::Uuid;

use crate::seen::{self, Sight, damaged, joined};

/// A task that this server writes to.
#[derive(Debug)]
pub(crate) struct Held {
    /// The task.
    pub id: Uuid,
    /// Its log.
    pub writer: Writer,
    /// Its messages that say something, as far as they were looked at.
    pub places: Places,
    /// The names it is known to have.
    pub names: Vec<String>,
    /// A summary that was written ahead of need.
    pub ready: Option<Prepared>,
    /// One is being written.
    pub preparing: bool,
    /// A provider refused it folded and took it as the client wrote it.
    pub fold_refused: bool,
    /// The last message that a client brought: what came since was added by a person.
    pub brought: Option<Seq>,
    /// Something was written that is not at rest.
    pub written: bool,
    /// How often the index was told of it since it was opened.
    pub indexed: u32,
    /// What messages that were looked at lately come to.
    sights: RefCell<VecDeque<(Seq, Sight)>>,
}

/// So many messages are kept in mind: those that the next request is compared with.
const SIGHTS: usize = 8;

/// What follows a message on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing that says anything: it is the tip.
    Nothing,
    /// What the model said, and no more.
    Reply,
    /// What the client said to that, and no answer.
    Asked,
    /// More than that.
    More,
    /// It is not on the path: a rewind hid it.
    Elsewhere,
}

impl Held {
    /// A task that was opened just now.
    pub fn new(id: Uuid, writer: Writer) -> Held {
        Held {
            id,
            writer,
            places: Places::default(),
            names: Vec::new(),
            ready: None,
            preparing: false,
            brought: None,
            fold_refused: false,
            written: false,
            indexed: 0,
            sights: RefCell::default(),
        }
    }

    /// Looks at a message.
    fn sight(&self, seq: Seq) -> Result<Sight, LogError> {
        let known = self.sights.borrow();
        if let Some((_, sight)) = known.iter().find(|(known, _)| *known == seq) {
            return Ok(*sight);
        }
        drop(known);
        let sight = seen::of_stored(self.log(), seq, &self.log().message(seq)?)?;
        self.saw(seq, sight);
        Ok(sight)
    }

    /// Keeps in mind what a message comes to.
    pub fn saw(&self, seq: Seq, sight: Sight) {
        let mut known = self.sights.borrow_mut();
        if known.len() >= SIGHTS {
            known.pop_front();
        }
        known.push_back((seq, sight));
    }

    /// Its log.
    pub fn log(&self) -> &Log {
        self.writer.log()
    }

    /// What follows a message.
    pub fn follows(&self, seq: Seq) -> Result<Follows, LogError> {
        let path = self.log().state().shown().path();
        if !path.iter().any(|run| run.holds(seq)) {
            return Ok(Follows::Elsewhere);
        }
        let mut follows = Follows::Nothing;
        for next in after(&path, seq) {
            if self.log().record(next)?.role != Role::Assistant {
                follows = Follows::Asked;
            } else if follows == Follows::Asked {
                return Ok(Follows::More);
            } else if self.sight(next)?.digest.is_some() {
                follows = Follows::Reply;
            }
        }
        Ok(follows)
    }

    /// Says whether what follows a message was never gone on with: a reply that nobody took up, or a
    /// question of the client's that was not answered. What a person added, or left out, is not touched.
    pub fn is_unused_after(&self, seq: Seq) -> Result<bool, LogError> {
        Ok(match self.follows(seq)? {
            Follows::Reply => true,
            Follows::Asked => {
                self.brought.is_some() && self.brought == self.log().state().shown().last()
            }
            Follows::Nothing | Follows::More | Follows::Elsewhere => false,
        })
    }

    /// What the next messages say that say anything.
    pub fn next_said(&mut self, seq: Seq, most: usize) -> Result<Vec<Digest>, LogError> {
        let Held { places, writer, .. } = self;
        let said = places.follow(writer.log())?;
        let from = said.partition_point(|(at, _)| *at <= seq);
        Ok(said[from..]
            .iter()
            .take(most)
            .map(|(_, digest)| *digest)
            .collect())
    }

    /// What is known of the messages up to one, for a fork from there.
    pub fn places_up_to(&self, seq: Seq) -> Result<Places, LogError> {
        match self.sight(seq)?.is_piece {
            // What comes behind it may belong to the same output.
            true => Ok(Places::default()),
            false => Ok(self.places.up_to(seq)),
        }
    }

    /// What the message says, or the pieces of which it is the last.
    pub fn said_at(&self, seq: Seq) -> Result<Option<Digest>, LogError> {
        let log = self.log();
        let last = self.sight(seq)?;
        if !last.is_piece || last.is_joined {
            return Ok(last.digest);
        }
        let mut pieces = vec![log.message(seq)?];
        let before = before(log.state().shown().path(), seq);
        for seq in before {
            if !self.sight(seq)?.is_piece {
                break;
            }
            pieces.push(log.message(seq)?);
        }
        if pieces.len() == 1 {
            return Ok(last.digest);
        }
        let pieces: Vec<&[u8]> = pieces.iter().rev().map(Vec::as_slice).collect();
        let joined = joined(&pieces, log.redacts());
        joined.map_err(|error| damaged(log, &error))
    }
}

/// The messages of a path before one, from there to its beginning.
fn before(path: Vec<Span>, seq: Seq) -> impl Iterator<Item = Seq> {
    let runs = path.into_iter().rev();
    runs.flat_map(|run| run.seqs().rev())
        .filter(move |other| *other < seq)
}

/// The messages of a path that follow one.
fn after(path: &[Span], seq: Seq) -> impl Iterator<Item = Seq> {
    let runs = path.iter().filter(move |run| run.to() > seq);
    runs.flat_map(|run| run.seqs())
        .filter(move |next| *next > seq)
}

/// Which messages of a path say something, in order.
#[derive(Debug, Default)]
pub(crate) struct Places {
    path: Vec<Span>,
    said: Vec<(Seq, Digest)>,
    pieces: Pieces,
}

/// The pieces of what the model said last, if it may go on. They are put together once, where they end for now.
#[derive(Debug, Default)]
struct Pieces {
    all: Vec<Vec<u8>>,
    /// How many of them say anything.
    count: usize,
    /// Some came since they were put together.
    grew: bool,
}

impl Places {
    /// Those up to a message, which is the last of its output: what a fork from there begins with.
    pub fn up_to(&self, seq: Seq) -> Places {
        let count = self.said.partition_point(|(at, _)| *at <= seq);
        let path = self.path.iter().filter(|run| run.from() <= seq);
        let path = path.filter_map(|run| Span::new(run.from(), run.to().min(seq)));
        Places {
            path: path.collect(),
            said: self.said[..count].to_vec(),
            pieces: Pieces::default(),
        }
    }

    /// Brings them up to date. Only what was appended since is looked at, unless the path
    /// went another way.
    pub fn follow(&mut self, log: &Log) -> Result<&[(Seq, Digest)], LogError> {
        if let Err(error) = self.go_on(log) {
            // Half of it would be taken for all of it.
            *self = Places::default();
            return Err(error);
        }
        Ok(&self.said)
    }

    fn go_on(&mut self, log: &Log) -> Result<(), LogError> {
        let path = log.state().shown().path();
        let known = self.path.last().map(|run| run.to());
        if self.said.is_empty() || !continues(&self.path, &path) {
            self.said.clear();
            self.pieces = Pieces::default();
        }
        let rest = known.filter(|_| !self.said.is_empty());
        let from = path.iter().flat_map(|run| {
            let from = rest.map_or(run.from(), |known| run.from().max(known.next()));
            Span::new(from, run.to())
        });
        for run in from {
            let Places { said, pieces, .. } = self;
            log.each_message(run, &mut |source, bytes| {
                let Some(seq) = source.seq() else {
                    return Ok(());
                };
                let bytes = &*log.without_secrets(bytes);
                let sight = seen::of_stored(log, seq, bytes)?;
                if sight.is_piece {
                    pieces.all.push(bytes.to_vec());
                } else {
                    pieces.join(log, said)?;
                    *pieces = Pieces::default();
                }
                // The system prompt comes with every request, and may differ each time.
                let Some(digest) = sight
                    .digest
                    .filter(|_| !(sight.is_system && said.is_empty()))
                else {
                    return Ok(());
                };
                if sight.is_piece {
                    if pieces.count > 0 {
                        said.pop();
                    }
                    (pieces.count, pieces.grew) = (pieces.count + 1, !sight.is_joined);
                }
                said.push((seq, digest));
                Ok(())
            })?;
        }
        self.pieces.join(log, &mut self.said)?;
        self.path = path;
        Ok(())
    }
}

impl Pieces {
    /// Puts what they say together in the place of what the last of them says.
    fn join(&mut self, log: &Log, said: &mut [(Seq, Digest)]) -> Result<(), LogError> {
        if std::mem::take(&mut self.grew)
            && self.count > 1
            && let Some((_, digest)) = said.last_mut()
        {
            let pieces: Vec<&[u8]> = self.all.iter().map(Vec::as_slice).collect();
            let joined = joined(&pieces, log.redacts());
            let joined = joined.map_err(|error| damaged(log, &error))?;
            *digest = joined.unwrap_or(*digest);
        }
        Ok(())
    }
}

/// Says whether a path is another one gone on.
fn continues(before: &[Span], now: &[Span]) -> bool {
    let Some((last, rest)) = before.split_last() else {
        return true;
    };
    let same = now.len() > rest.len() && now[..rest.len()] == *rest;
    same && now
        .get(rest.len())
        .is_some_and(|run| run.from() == last.from() && run.to() >= last.to())
}
