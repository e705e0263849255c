//! The entries of a view: folds, and messages as the model sees them.

use std::collections::BTreeMap;

use infold_log::{Past as _, Seq, Shows, Source, View};
use infold_store::{EventLine, LogError, What};
use infold_wire::Message;
use serde_json::{Value, json};

use super::{LogSnapshot, kind};

/// One entry of a view.
#[derive(Debug)]
pub enum ViewEntry<'a> {
    /// A fold, with the tokens of its stand-in.
    Fold(EventLine, u64),
    /// A message as the model sees it.
    Message {
        /// The origin of the message.
        source: Source,
        /// Remarks: pinned, masked, late.
        note: String,
        /// The message's bytes.
        bytes: &'a [u8],
    },
}

impl ViewEntry<'_> {
    /// Returns the entry for scripts; a message's own bytes are to be its last member.
    pub fn json(&self) -> Value {
        match self {
            ViewEntry::Fold(line, tokens) => fold(line, *tokens),
            ViewEntry::Message {
                source,
                note,
                bytes,
            } => {
                let message = Message::parse(bytes).ok();
                let role = message.as_ref().map(|message| message.role().wire_name());
                let tokens = message.as_ref().map(infold_wire::tokens::message);
                let seq = source.seq().map(Seq::get);
                json!({"seq": seq, "role": role, "tokens": tokens, "note": note})
            }
        }
    }
}

fn fold(line: &EventLine, tokens: u64) -> Value {
    let What::Fold(fold) = &line.what else {
        return json!({"fold": line.id.to_string(), "tokens": tokens});
    };
    let stand_in = fold.stand_in.iter();
    let stand_in: Vec<Value> = stand_in
        .map(|(role, text)| json!({"role": role.wire_name(), "text": text}))
        .collect();
    json!({
        "fold": line.id.to_string(), "kind": kind(&line.what),
        "from": fold.span.from().get(), "to": fold.span.to().get(),
        "messages": fold.messages, "original_tokens": fold.original_tokens,
        "tokens": tokens, "stand_in": stand_in,
    })
}

impl LogSnapshot {
    /// Returns the view of the model.
    pub fn view(&self) -> Result<View, LogError> {
        View::of(&self.shown, &self.log)
    }

    /// Visits the entries of a view; stand-ins as messages too, if `raw`.
    pub fn pieces<E: From<LogError>>(
        &self,
        view: &View,
        raw: bool,
        visit: &mut dyn FnMut(ViewEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in view.pieces() {
            if let (Shows::StandIn(fold), false) = (&piece.shows, raw) {
                visit(ViewEntry::Fold(self.log.event(*fold)?, piece.tokens))?;
                continue;
            }
            let mut notes = self.notes(&piece.shows)?;
            let mut visited = Ok(());
            self.log.render_piece(piece, &mut |source, bytes| {
                let note = match source {
                    Source::Message(seq) | Source::Late(seq) => {
                        notes.remove(&seq).unwrap_or_default()
                    }
                    Source::StandIn => "note".to_owned(),
                    Source::Repair => "no result".to_owned(),
                    Source::Lookup => "look-up".to_owned(),
                };
                if visited.is_ok() {
                    visited = visit(ViewEntry::Message {
                        source,
                        note,
                        bytes,
                    });
                }
                Ok(())
            })?;
            visited?;
        }
        Ok(())
    }

    /// Returns the remarks on messages.
    fn notes(&self, shows: &Shows) -> Result<BTreeMap<Seq, String>, LogError> {
        let mut notes: BTreeMap<Seq, Vec<String>> = BTreeMap::new();
        for pin in self.shown.pins() {
            notes.entry(pin).or_default().push("pinned".to_owned());
        }
        if let Shows::Round {
            members,
            masks,
            recalls,
            ..
        } = shows
        {
            for (seq, id) in recalls {
                let note = match self.log.event(*id)?.what {
                    What::Lookup(_) => format!("with the look-ups it was made with ({id})"),
                    _ => format!("with an excerpt of a hidden message ({id})"),
                };
                notes.entry(*seq).or_default().push(note);
            }
            for (seq, part, id) in masks {
                let note = format!("part {part} masked by {id}");
                notes.entry(*seq).or_default().push(note);
            }
            for seq in members {
                if self.log.record(*seq)?.late {
                    let note = "late result".to_owned();
                    notes.entry(*seq).or_default().push(note);
                }
            }
        }
        let notes = notes.into_iter();
        Ok(notes.map(|(seq, notes)| (seq, notes.join(", "))).collect())
    }
}
