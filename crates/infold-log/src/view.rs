//! Lays out a view as pieces to be rendered.

use std::collections::BTreeSet;

use crate::floor::{first_above, sums_before};
use crate::unit::pinned_rounds;
use crate::{EventId, Floor, Folded, Item, Past, Place, Point, Seq, Shown, Span};

/// The messages that the model is sent, as a list of pieces to be rendered one after another.
///
/// A pure function of the log. Everything that can be sent as it came is named by
/// its span; only rounds that need a repair or hold a mask are named one by one.
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
    /// A round that is not shown as it came: results missing, late, masked, content empty, or with an excerpt of a hidden
    /// message.
    Round {
        /// Its messages in order.
        members: Vec<Seq>,
        /// Whether it is not the last one, so that calls that still wait were interrupted.
        closed: bool,
        /// Masks in force on its messages: message, part, fold.
        masks: Vec<(Seq, u32, EventId)>,
        /// Excerpts of hidden messages that its messages carry: message, event.
        recalls: Vec<(Seq, EventId)>,
    },
    /// The stand-in of a fold.
    StandIn(EventId),
    /// A pinned note.
    Note(EventId),
}

impl View {
    /// Returns the view of the visible messages.
    pub fn of<P: Past>(shown: &Shown, past: &P) -> Result<View, P::Error> {
        View::since(shown, Seq::FIRST, past)
    }

    /// Returns the view from the round on that starts at `from`, which no fold covers.
    pub fn since<P: Past>(shown: &Shown, from: Seq, past: &P) -> Result<View, P::Error> {
        let items = shown.items();
        let first = items.partition_point(|item| item.span().to() < from);
        let mut layout = Layout::new(shown, from, past)?;
        for (at, item) in items.iter().enumerate().skip(first) {
            match item {
                Item::Run(span) => layout.run(*span, &items[at + 1..])?,
                Item::Fold(fold) => layout.fold(fold)?,
            }
        }
        layout.finish()
    }

    /// Its pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Its last round still waits for tool results: valid, but not to be sent.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Its size in tokens.
    pub fn tokens(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.tokens).sum()
    }
}

/// Returns the view at a point.
pub fn view_at<P: Past>(point: Point, past: &P) -> Result<View, P::Error> {
    View::of(&past.shown(point)?, past)
}

/// About how many tokens it takes to answer a call as interrupted.
pub const INTERRUPTED: u64 = 28;

struct Layout<'a, P> {
    shown: &'a Shown,
    past: &'a P,
    floor: Floor,
    pinned: BTreeSet<Seq>,
    rewritten: BTreeSet<Seq>,
    done: Option<Seq>,
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
            layout.notes();
        }
        Ok(layout)
    }

    /// Collects the visible rounds that cannot be shown byte for byte.
    fn find_rewritten(&mut self, from: Seq) -> Result<(), P::Error> {
        let mut previous: Option<Seq> = None;
        for item in self.shown.items() {
            let Item::Run(run) = item else {
                // The message that cut the round before it off may lie in this fold.
                if let Some(before) = previous.take().filter(|seq| *seq >= from) {
                    self.note_cut(before)?;
                }
                continue;
            };
            let mut rest = Span::new(run.from().max(from), run.to());
            while let Some(span) = rest {
                let before = sums_before(span.from(), self.past)?.odd;
                let Some(odd) = first_above(span, before, |sums| sums.odd, self.past)? else {
                    break;
                };
                self.note_odd(
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
                if !self.exempt(seq, round) {
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

    fn note_odd(&mut self, odd: Seq, previous: Option<Seq>) -> Result<(), P::Error> {
        let record = self.past.record(odd)?;
        if record.late || record.empty {
            self.rewritten.insert(record.round);
        }
        match previous.filter(|_| record.cuts) {
            Some(previous) => self.note_cut(previous),
            None => Ok(()),
        }
    }

    /// Collects the round that ends with `last` if it still waits for results.
    fn note_cut(&mut self, last: Seq) -> Result<(), P::Error> {
        let record = self.past.record(last)?;
        if record.waiting > 0 {
            self.rewritten.insert(record.round);
        }
        Ok(())
    }

    fn exempt(&self, seq: Seq, round: Seq) -> bool {
        self.pinned.contains(&round) || self.floor.holds(seq)
    }

    fn run(&mut self, run: Span, following: &[Item]) -> Result<(), P::Error> {
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
            // A round whose start lies before the span was already shown with it.
            let verbatim = match start {
                Some(start) => start.prev().and_then(|to| Span::new(span.from(), to)),
                None => Some(span),
            };
            if let Some(verbatim) = verbatim {
                self.verbatim(verbatim)?;
            }
            let Some(start) = start else { break };
            let members = self.members(start, run, following)?;
            let last = *members.last().expect("a round has a first message");
            self.round(members)?;
            self.done = Some(last);
            rest = Span::new(last.next(), run.to());
        }
        Ok(())
    }

    /// The visible messages of the round that starts at `start` in `run`.
    fn members(&self, start: Seq, run: Span, following: &[Item]) -> Result<Vec<Seq>, P::Error> {
        let more = following.iter().map_while(|item| match item {
            Item::Run(span) => Some(*span),
            Item::Fold(_) => None,
        });
        round_members(start, std::iter::once(run).chain(more), self.past)
    }

    fn verbatim(&mut self, span: Span) -> Result<(), P::Error> {
        let request = self.floor.request().filter(|seq| span.holds(*seq));
        let cut = request.filter(|_| self.shown.notes().next().is_some() && !self.notes_done);
        let Some(cut) = cut else {
            return self.push_verbatim(span);
        };
        self.push_verbatim(Span::new(span.from(), cut).expect("the span holds the request"))?;
        self.notes();
        match Span::new(cut.next(), span.to()) {
            Some(rest) => self.push_verbatim(rest),
            None => Ok(()),
        }
    }

    fn push_verbatim(&mut self, span: Span) -> Result<(), P::Error> {
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

    fn round(&mut self, members: Vec<Seq>) -> Result<(), P::Error> {
        let closed = members.last().copied() != self.shown.last();
        let mut masks = Vec::new();
        let mut recalls = Vec::new();
        let mut tokens = 0;
        for seq in &members {
            let record = self.past.record(*seq)?;
            tokens += record.sums.tokens - sums_before(*seq, self.past)?.tokens;
            for (id, recall) in self.shown.recalls(Span::one(*seq)) {
                // A pin shows the quoted message anyway.
                if let Some(source) = recall.quoted()
                    && self.exempt(source, self.past.record(source)?.round)
                {
                    continue;
                }
                tokens += recall.tokens;
                recalls.push((*seq, id));
            }
            if self.exempt(*seq, record.round) {
                continue;
            }
            for (seq, part, mask) in self.shown.masks(Span::one(*seq)) {
                tokens = tokens.saturating_sub(mask.hides) + mask.tokens;
                masks.push((seq, part, mask.id));
            }
        }
        tokens += INTERRUPTED * self.unanswered(&members, closed)?;
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
            self.notes();
        }
        Ok(())
    }

    /// How many calls of a round never got their results.
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
    /// A round that came before the first request stays before it.
    fn fold(&mut self, fold: &Folded) -> Result<(), P::Error> {
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
                self.round(members)?;
            }
            self.one(seq)?;
        }
        self.push(Shows::StandIn(fold.id), fold.tokens);
        pinned.try_for_each(|members| self.round(members))
    }

    /// Shows a message of the floor that a fold covers.
    fn one(&mut self, seq: Seq) -> Result<(), P::Error> {
        if self.past.record(seq)?.empty {
            return self.round(vec![seq]);
        }
        self.verbatim(Span::one(seq))
    }

    fn notes(&mut self) {
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

/// The messages of the round that starts at `round`, along the given runs.
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
