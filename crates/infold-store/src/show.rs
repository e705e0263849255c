//! Renders a view from the files of a task.

use infold_log::{
    EventId, Floor, Line, Piece, Role, Seq, Shows, Size, Source, Span, Verdict, View, ViewChecker,
    plan,
};
use infold_wire::lookup::splice_lookups;
use infold_wire::{
    Message, append_text, render_round, render_stand_in, render_text, splice_unordered,
};

use crate::event::{LookupLine, What};
use crate::{Log, LogError};

/// Takes the messages of a view one after another.
pub type Visit<'a> = &'a mut dyn FnMut(Source, &[u8]) -> Result<(), LogError>;

/// About how many bytes a token of a stand-in has on the wire.
const BYTES_A_TOKEN: u64 = 6;

impl Log {
    /// Renders a view, message by message. Messages are rendered byte for byte as they came.
    ///
    /// Memory is bounded by the largest message, not by the view.
    pub fn render(&self, view: &View, visit: Visit<'_>) -> Result<(), LogError> {
        view.pieces()
            .iter()
            .try_for_each(|piece| self.render_piece(piece, visit))
    }

    /// Renders one piece of a view.
    pub fn render_piece(&self, piece: &Piece, visit: Visit<'_>) -> Result<(), LogError> {
        match &piece.shows {
            Shows::Verbatim(span) => self.each_message(*span, visit),
            Shows::Round {
                members,
                closed,
                masks,
                recalls,
            } => self.round(members, *closed, masks, recalls, visit),
            Shows::StandIn(fold) => self.stand_in(*fold, visit),
            Shows::Note(note) => self.note(*note, visit),
        }
    }

    /// Returns the messages of a view, one a line.
    pub fn rendered(&self, view: &View) -> Result<Vec<u8>, LogError> {
        let mut out = Vec::new();
        self.render(view, &mut |_, bytes| {
            out.extend_from_slice(bytes);
            out.push(b'\n');
            Ok(())
        })?;
        Ok(out)
    }

    /// Returns the size of the messages of a view in bytes; an approximation if it has planned folds.
    ///
    /// Only messages that are not shown as they came are read.
    pub fn view_bytes(&self, view: &View) -> Result<u64, LogError> {
        let imagined = self.state().next_event();
        let mut bytes = 0;
        for piece in view.pieces() {
            match &piece.shows {
                Shows::Verbatim(span) => bytes += plan::weigh(*span, self)?.bytes,
                Shows::StandIn(fold) if *fold >= imagined => bytes += piece.tokens * BYTES_A_TOKEN,
                Shows::Round { members, masks, .. }
                    if masks.iter().any(|(.., mask)| *mask >= imagined) =>
                {
                    let mut whole = Size::default();
                    for seq in members {
                        let one = plan::weigh(Span::one(*seq), self)?;
                        whole.tokens += one.tokens;
                        whole.bytes += one.bytes;
                    }
                    let left = piece.tokens as f64 / whole.tokens.max(1) as f64;
                    bytes += (whole.bytes as f64 * left.min(1.0)) as u64;
                }
                _ => self.render_piece(piece, &mut |_, shown| {
                    bytes += shown.len() as u64;
                    Ok(())
                })?,
            }
        }
        Ok(bytes)
    }

    /// Checks a view against the rules.
    pub fn check(&self, view: &View, floor: &Floor) -> Result<Verdict, LogError> {
        let mut checker = ViewChecker::new(floor);
        self.render(view, &mut |source, bytes| {
            let message = Message::read(bytes)
                .map_err(|error| LogError::damaged(self.messages.path(), 0, error.to_string()))?;
            let facts = message.facts();
            checker.read(&Line { source, facts });
            Ok(())
        })?;
        Ok(checker.verdict())
    }

    /// Visits messages as they came, hidden ones too.
    pub fn each_message(&self, span: Span, visit: Visit<'_>) -> Result<(), LogError> {
        let mut rest = Some(span);
        while let Some(span) = rest {
            // The first messages may be those of tasks that this one continues.
            let group = self.group(span.from(), span.to())?;
            for (seq, bytes) in group.messages() {
                visit(Source::Message(seq), bytes)?;
            }
            let last = group.last().unwrap_or(span.to());
            rest = Span::new(last.next(), span.to());
        }
        Ok(())
    }

    fn round(
        &self,
        members: &[Seq],
        closed: bool,
        masks: &[(Seq, u32, EventId)],
        recalls: &[(Seq, EventId)],
        visit: Visit<'_>,
    ) -> Result<(), LogError> {
        let mut bodies = Vec::new();
        for seq in members {
            let ids = masks.iter().filter(|(masked, ..)| masked == seq);
            let body = self.masked(self.message(*seq)?, ids.map(|(.., id)| *id))?;
            let ids = recalls.iter().filter(|(carrier, _)| carrier == seq);
            bodies.push((*seq, self.with_recalls(body, ids.map(|(_, id)| *id))?));
        }
        let damaged = |error: infold_wire::MessageError| {
            LogError::damaged(self.messages.path(), 0, error.to_string())
        };
        let mut lines = render_round(&bodies, closed).map_err(damaged)?;
        for lookup in self.lookups(recalls)? {
            let reply = (lookup.span.from(), lookup.span.to());
            lines = splice_lookups(lines, reply, &lookup.messages, &lookup.results);
        }
        for line in lines {
            visit(line.source, &line.bytes)?;
        }
        Ok(())
    }

    /// Returns the look-ups that replies were made with, among recalled events.
    pub fn lookups(&self, recalls: &[(Seq, EventId)]) -> Result<Vec<LookupLine>, LogError> {
        let mut lookups = Vec::new();
        for (_, id) in recalls {
            if let What::Lookup(lookup) = self.event(*id)?.what
                && !lookup.messages.is_empty()
            {
                lookups.push(lookup);
            }
        }
        Ok(lookups)
    }

    fn masked(
        &self,
        body: Vec<u8>,
        masks: impl Iterator<Item = EventId>,
    ) -> Result<Vec<u8>, LogError> {
        let mut edits = Vec::new();
        for id in masks {
            if let What::Mask(mask) = self.event(id)?.what
                && mask.bytes.start <= mask.bytes.end
                && mask.bytes.end <= body.len()
            {
                edits.push((mask.bytes, mask.stub));
            }
        }
        Ok(if edits.is_empty() {
            body
        } else {
            splice_unordered(&body, edits)
        })
    }

    /// Returns a message with the excerpts at its end that it carries.
    pub fn with_recalls(
        &self,
        body: Vec<u8>,
        recalls: impl Iterator<Item = EventId>,
    ) -> Result<Vec<u8>, LogError> {
        let mut body = body;
        for id in recalls {
            if let What::Recall(recall) = self.event(id)?.what
                && let Ok(message) = Message::read(&body)
                && let Some(longer) = append_text(&message, &recall.text)
            {
                body = longer;
            }
        }
        Ok(body)
    }

    fn stand_in(&self, fold: EventId, visit: Visit<'_>) -> Result<(), LogError> {
        if let What::Fold(fold) = self.event(fold)?.what {
            for line in render_stand_in(self.wire(), &fold.stand_in) {
                visit(Source::StandIn, &line)?;
            }
        }
        Ok(())
    }

    fn note(&self, note: EventId, visit: Visit<'_>) -> Result<(), LogError> {
        if let What::Note { text, .. } = self.event(note)?.what {
            visit(
                Source::StandIn,
                &render_text(self.wire(), Role::User, &text),
            )?;
        }
        Ok(())
    }
}
