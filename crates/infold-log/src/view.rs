//! Computes the view: which messages and stand-ins the model is sent, and in which order.
//!
//! Most of a view consists of spans of messages that are sent byte for byte as they came. Finding the few rounds that are
//! not takes time in their number and the number of folds, not of messages: the running totals of the records
//! ([`Sums::odd`](crate::Sums)) are searched by binary search.

use std::collections::BTreeSet;

use crate::floor::{first_above, sums_before};
use crate::unit::pinned_rounds;
use crate::{EventId, Floor, Folded, Item, Past, Place, Point, Seq, Shown, Span};

/// The messages that the model is sent, as a list of pieces to be rendered one after another.
///
/// The view is a pure function of the log. A piece is a whole span of messages wherever these can be sent as they came;
/// only a round that must be rewritten is a piece of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pieces: Vec<Piece>,
    open: bool,
}

/// One piece of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The content of the piece.
    pub shows: Shows,
    /// Its size in tokens.
    pub tokens: u64,
}

/// The content of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Messages, byte for byte as they came.
    Verbatim(Span),
    /// A round that must be rewritten: it has results that are missing or late, empty content, a masked part, or an excerpt
    /// of a hidden message.
    Round {
        /// Its messages in order.
        members: Vec<Seq>,
        /// Whether another message follows the round, so that its calls without a result were interrupted. Those of the last
        /// round may still get one.
        closed: bool,
        /// The masks in force on its messages: message, part of it, mask fold.
        masks: Vec<(Seq, u32, EventId)>,
        /// The excerpts of hidden messages to append to its messages: message, event of the recall.
        recalls: Vec<(Seq, EventId)>,
    },
    /// The stand-in of a fold.
    StandIn(EventId),
    /// A pinned note.
    Note(EventId),
}

impl View {
    /// Returns the whole view.
    pub fn of<P: Past>(shown: &Shown, past: &P) -> Result<View, P::Error> {
        View::since(shown, Seq::FIRST, past)
    }

    /// Returns the end of the view, from the round that starts at `from`. No fold may cover that round.
    pub fn since<P: Past>(shown: &Shown, from: Seq, past: &P) -> Result<View, P::Error> {
        let items = shown.items();
        let first = items.partition_point(|item| item.span().to() < from);
        let mut layout = Layout::new(shown, from, past)?;
        for (at, item) in items.iter().enumerate().skip(first) {
            match item {
                Item::Run(span) => layout.push_run(*span, &items[at + 1..])?,
                Item::Fold(fold) => layout.push_fold(fold)?,
            }
        }
        layout.finish()
    }

    /// Returns its pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns whether its last round still waits for tool results. Such a view is valid, but must not be sent yet.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns its size in tokens.
    pub fn tokens(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.tokens).sum()
    }
}

/// Returns the view at a point.
pub fn view_at<P: Past>(point: Point, past: &P) -> Result<View, P::Error> {
    View::of(&past.shown(point)?, past)
}

/// The approximate number of tokens of the result that is made up for an interrupted call.
pub const INTERRUPTED_TOKENS: u64 = 28;

/// A view in progress.
struct Layout<'a, P> {
    shown: &'a Shown,
    past: &'a P,
    floor: Floor,
    /// The first messages of the pinned rounds.
    pinned: BTreeSet<Seq>,
    /// The first messages of the visible rounds that cannot be sent byte for byte.
    rewritten: BTreeSet<Seq>,
    /// The last message that the pieces show. A rewritten round may extend into the next runs, which then start after it.
    done: Option<Seq>,
    /// Whether the notes were placed. They follow the first request, or come first if there is no request.
    notes_done: bool,
    pieces: Vec<Piece>,
}

impl<'a, P: Past> Layout<'a, P> {
    fn new(shown: &'a Shown, from: Seq, past: &'a P) -> Result<Layout<'a, P>, P::Error> {
        let pinned = pinned_rounds(shown, past)?;
        let floor = Floor::of(shown, past)?;
        let request = floor.request();
        let mut layout = Layout {
            shown,
            past,
            floor,
            pinned,
            rewritten: BTreeSet::new(),
            done: from.prev(),
            notes_done: request.is_some_and(|seq| seq < from),
            pieces: Vec::new(),
        };
        layout.find_rewritten(from)?;
        if request.is_none() && from == Seq::FIRST {
            layout.push_notes();
        }
        Ok(layout)
    }

    /// Collects the visible rounds that cannot be sent byte for byte: those with masks or recalls, and those that an
    /// *odd* message belongs to or interrupts. A message is odd if it is late, is empty or interrupts a round.
    fn find_rewritten(&mut self, from: Seq) -> Result<(), P::Error> {
        let mut previous: Option<Seq> = None;
        for item in self.shown.items() {
            let Item::Run(run) = item else {
                // The message that interrupted the round before this fold may be hidden by the fold.
                if let Some(before) = previous.take().filter(|seq| *seq >= from) {
                    self.collect_interrupted(before)?;
                }
                continue;
            };
            let mut rest = Span::new(run.from().max(from), run.to());
            while let Some(span) = rest {
                let before = sums_before(span.from(), self.past)?.odd;
                let Some(odd) = first_above(span, before, |sums| sums.odd, self.past)? else {
                    break;
                };
                self.collect_odd(
                    odd,
                    if odd == run.from() {
                        previous
                    } else {
                        odd.prev()
                    },
                )?;
                rest = Span::new(odd.next(), span.to());
            }
            for (seq, _, _) in self.shown.masks(*run).filter(|(seq, ..)| *seq >= from) {
                let round = self.past.record(seq)?.round;
                if !self.is_exempt(seq, round) {
                    self.rewritten.insert(round);
                }
            }
            for (_, recall) in self.shown.recalls(*run).filter(|(_, it)| it.at >= from) {
                self.rewritten.insert(self.past.record(recall.at)?.round);
            }
            previous = Some(run.to());
        }
        Ok(())
    }

    /// Collects the round of an odd message if the message is late or empty, and the round that it interrupts.
    /// `previous` is the visible message before it.
    fn collect_odd(&mut self, odd: Seq, previous: Option<Seq>) -> Result<(), P::Error> {
        let record = self.past.record(odd)?;
        if record.late || record.empty {
            self.rewritten.insert(record.round);
        }
        match previous.filter(|_| record.cuts) {
            Some(previous) => self.collect_interrupted(previous),
            None => Ok(()),
        }
    }

    /// Collects the round that ends with `last` if it still waits for results.
    fn collect_interrupted(&mut self, last: Seq) -> Result<(), P::Error> {
        let record = self.past.record(last)?;
        if record.waiting > 0 {
            self.rewritten.insert(record.round);
        }
        Ok(())
    }

    /// Says whether no mask applies to a message: pinned rounds and the floor are always shown whole.
    fn is_exempt(&self, seq: Seq, round: Seq) -> bool {
        self.pinned.contains(&round) || self.floor.holds(seq)
    }

    /// Shows the messages of a run: its rewritten rounds, and the spans between them. A rewritten round continues in the
    /// runs among `following`, because a rewind may have hidden messages in its middle.
    fn push_run(&mut self, run: Span, following: &[Item]) -> Result<(), P::Error> {
        let from = self
            .done
            .map_or(run.from(), |done| run.from().max(done.next()));
        let mut rest = Span::new(from, run.to());
        while let Some(span) = rest {
            let start = self
                .rewritten
                .range(span.from()..=span.to())
                .next()
                .copied();
            // A rewritten round that starts before this span was shown with an earlier run; `done` is its last message.
            let verbatim = match start {
                Some(start) => start.prev().and_then(|to| Span::new(span.from(), to)),
                None => Some(span),
            };
            if let Some(verbatim) = verbatim {
                self.push_verbatim(verbatim)?;
            }
            let Some(start) = start else { break };
            let members = self.members(start, run, following)?;
            let last = *members.last().expect("a round has a first message");
            self.push_round(members)?;
            self.done = Some(last);
            rest = Span::new(last.next(), run.to());
        }
        Ok(())
    }

    /// Returns the visible messages of the round that starts at `start` in `run`, up to the next fold.
    fn members(&self, start: Seq, run: Span, following: &[Item]) -> Result<Vec<Seq>, P::Error> {
        let more = following.iter().map_while(|item| match item {
            Item::Run(span) => Some(*span),
            Item::Fold(_) => None,
        });
        round_members(start, std::iter::once(run).chain(more), self.past)
    }

    /// Shows a span byte for byte, with the notes after the first request if the span contains it.
    fn push_verbatim(&mut self, span: Span) -> Result<(), P::Error> {
        let request = self.floor.request().filter(|seq| span.holds(*seq));
        let cut = request.filter(|_| self.shown.notes().next().is_some() && !self.notes_done);
        let Some(cut) = cut else {
            return self.push_span(span);
        };
        self.push_span(Span::new(span.from(), cut).expect("the span holds the request"))?;
        self.push_notes();
        match Span::new(cut.next(), span.to()) {
            Some(rest) => self.push_span(rest),
            None => Ok(()),
        }
    }

    /// Appends a span, joined to the span before it if no seq is missing between them.
    fn push_span(&mut self, span: Span) -> Result<(), P::Error> {
        let before = sums_before(span.from(), self.past)?.tokens;
        let tokens = self.past.record(span.to())?.sums.tokens - before;
        if let Some(Piece {
            shows: Shows::Verbatim(last),
            tokens: sum,
        }) = self.pieces.last_mut()
            && last.to().next() == span.from()
        {
            *last = Span::new(last.from(), span.to()).expect("pieces are in order");
            *sum += tokens;
            return Ok(());
        }
        self.push(Shows::Verbatim(span), tokens);
        Ok(())
    }

    /// Shows a round that is not sent as it came, and measures it: masks and recalls change its size.
    fn push_round(&mut self, members: Vec<Seq>) -> Result<(), P::Error> {
        let closed = members.last().copied() != self.shown.last();
        let mut masks = Vec::new();
        let mut recalls = Vec::new();
        let mut tokens = 0;
        for seq in &members {
            let record = self.past.record(*seq)?;
            tokens += record.sums.tokens - sums_before(*seq, self.past)?.tokens;
            for (id, recall) in self.shown.recalls(Span::one(*seq)) {
                // A quoted message that is pinned or in the floor is visible, so its excerpt is left out.
                if let Some(source) = recall.quoted()
                    && self.is_exempt(source, self.past.record(source)?.round)
                {
                    continue;
                }
                tokens += recall.tokens;
                recalls.push((*seq, id));
            }
            if self.is_exempt(*seq, record.round) {
                continue;
            }
            for (seq, part, mask) in self.shown.masks(Span::one(*seq)) {
                tokens = tokens.saturating_sub(mask.hides) + mask.tokens;
                masks.push((seq, part, mask.id));
            }
        }
        tokens += INTERRUPTED_TOKENS * self.unanswered(&members, closed)?;
        let request = self
            .floor
            .request()
            .is_some_and(|seq| members.contains(&seq));
        let shows = Shows::Round {
            members,
            closed,
            masks,
            recalls,
        };
        self.push(shows, tokens);
        if request {
            self.push_notes();
        }
        Ok(())
    }

    /// Returns how many calls of a round never got a result. A round of several exchanges has such calls wherever a message
    /// interrupts an exchange.
    fn unanswered(&self, members: &[Seq], closed: bool) -> Result<u64, P::Error> {
        let mut unanswered = 0;
        let mut waiting = 0;
        for (at, seq) in members.iter().enumerate() {
            let record = self.past.record(*seq)?;
            if at > 0 && record.cuts {
                unanswered += waiting;
            }
            waiting = u64::from(record.waiting);
        }
        Ok(unanswered + if closed { waiting } else { 0 })
    }

    /// Shows a fold: the messages of the floor that it covers, its stand-in, then the pinned rounds in it.
    ///
    /// A pinned round that came before the first request stays before it.
    fn push_fold(&mut self, fold: &Folded) -> Result<(), P::Error> {
        let under = |seq: &Seq| self.shown.place(*seq) == Place::Under(fold.id);
        let floor: Vec<Seq> = self.floor.seqs().iter().copied().filter(under).collect();
        let mut pinned = Vec::new();
        for round in self.pinned.iter().copied().filter(under) {
            let members = round_members(round, fold.runs.iter().copied(), self.past)?;
            if !members.iter().any(|seq| floor.contains(seq)) {
                pinned.push(members);
            }
        }
        let mut pinned = pinned.into_iter().peekable();
        for seq in floor {
            while let Some(members) = pinned.next_if(|members| members[0] < seq) {
                self.push_round(members)?;
            }
            self.push_floor_message(seq)?;
        }
        self.push(Shows::StandIn(fold.id), fold.tokens);
        pinned.try_for_each(|members| self.push_round(members))
    }

    /// Shows a message of the floor that a fold covers.
    fn push_floor_message(&mut self, seq: Seq) -> Result<(), P::Error> {
        if self.past.record(seq)?.empty {
            return self.push_round(vec![seq]);
        }
        self.push_verbatim(Span::one(seq))
    }

    /// Shows all notes.
    fn push_notes(&mut self) {
        self.notes_done = true;
        for (id, tokens) in self.shown.notes() {
            self.push(Shows::Note(id), tokens);
        }
    }

    fn push(&mut self, shows: Shows, tokens: u64) {
        self.pieces.push(Piece { shows, tokens });
    }

    fn finish(self) -> Result<View, P::Error> {
        let open = match self.shown.last() {
            Some(last) => self.past.record(last)?.waiting > 0,
            None => false,
        };
        Ok(View {
            pieces: self.pieces,
            open,
        })
    }
}

/// Returns the messages of the round that starts at `round`, along the given runs.
pub fn round_members<P: Past>(
    round: Seq,
    runs: impl Iterator<Item = Span>,
    past: &P,
) -> Result<Vec<Seq>, P::Error> {
    let mut members = Vec::new();
    let runs = runs.filter_map(|run| Span::new(run.from().max(round), run.to()));
    for seq in runs.flat_map(Span::seqs) {
        if past.record(seq)?.round != round {
            break;
        }
        members.push(seq);
    }
    Ok(members)
}
