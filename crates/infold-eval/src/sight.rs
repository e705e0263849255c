//! Keeps count of which terms are in sight: shown as they came, hidden, or held by a stand-in.

use std::collections::HashMap;

use infold_log::{Cause, EventId, Item, Shows, View};
use infold_store::{Log, LogError, What};

use super::Material;
use infold::StandIn;

/// What of a session is in sight: how many visible and how many hidden pieces hold each term.
///
/// A piece is what a message says, or one result in it, as a mask hides it.
pub struct Sight<'a> {
    material: &'a Material,
    visible: Vec<u32>,
    hidden: Vec<u32>,
    /// How each message so far is shown.
    messages: Vec<Shade>,
    /// Terms that some stand-in holds.
    stood: Vec<bool>,
    /// What each stand-in and each stub holds.
    stand_ins: HashMap<EventId, Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shade {
    Hidden,
    /// Shown, but for these parts.
    Shown(Vec<u32>),
}

/// A fold behind a summary.
pub struct Summary {
    pub id: EventId,
    /// The text, without what stands around it.
    pub text: String,
    /// The messages that it hides, counted from zero.
    pub covers: Vec<usize>,
}

impl<'a> Sight<'a> {
    /// Nothing was said yet.
    pub fn new(material: &'a Material) -> Sight<'a> {
        let count = material.vocabulary.len();
        Sight {
            material,
            visible: vec![0; count],
            hidden: vec![0; count],
            messages: Vec::new(),
            stood: vec![false; count],
            stand_ins: HashMap::new(),
        }
    }

    /// Shows the next message.
    pub fn append(&mut self) {
        self.messages.push(Shade::Shown(Vec::new()));
        self.weigh(self.messages.len() - 1, true);
    }

    /// Hides a message, as a fold does.
    pub fn hide(&mut self, message: usize) {
        self.set(message, Shade::Hidden);
    }

    /// The terms that the next message uses and that are only in what was folded away.
    pub fn wanted(&self) -> impl Iterator<Item = u32> + '_ {
        let next = &self.material.messages[self.messages.len()];
        let uses = next.uses.iter().copied();
        uses.filter(|term| self.visible[*term as usize] == 0 && self.hidden[*term as usize] > 0)
    }

    /// A stand-in holds it.
    pub fn is_kept(&self, term: u32) -> bool {
        self.stood[term as usize]
    }

    /// The messages in which a term is hidden, the newest first.
    pub fn hidden_in(&self, term: u32) -> impl Iterator<Item = usize> + '_ {
        let occurs = self.material.occurs[term as usize].iter().rev();
        let occurs = occurs.map(|message| *message as usize);
        occurs.filter(|message| {
            let shade = self.messages.get(*message);
            shade.is_some_and(|shade| *shade != Shade::Shown(Vec::new()))
        })
    }

    /// Takes up what a view shows, after something was folded.
    pub fn look(&mut self, view: &View, log: &Log) -> Result<(), LogError> {
        let mut shades = vec![Shade::Hidden; self.messages.len()];
        let mut stand_ins = Vec::new();
        for piece in view.pieces() {
            match &piece.shows {
                Shows::Verbatim(span) => {
                    for seq in span.seqs() {
                        shades[at(seq)] = Shade::Shown(Vec::new());
                    }
                }
                Shows::Round { members, masks, .. } => {
                    for seq in members {
                        let masked = masks.iter().filter(|(masked, ..)| masked == seq);
                        shades[at(*seq)] = Shade::Shown(masked.map(|(_, part, _)| *part).collect());
                    }
                    stand_ins.extend(masks.iter().map(|(.., id)| *id));
                }
                Shows::StandIn(id) | Shows::Note(id) => stand_ins.push(*id),
            }
        }
        for (message, shade) in shades.into_iter().enumerate() {
            self.set(message, shade);
        }
        self.stood.fill(false);
        for id in stand_ins {
            if !self.stand_ins.contains_key(&id) {
                let held = self.held(id, log)?;
                self.stand_ins.insert(id, held);
            }
            for term in &self.stand_ins[&id] {
                self.stood[*term as usize] = true;
            }
        }
        Ok(())
    }

    /// The terms that a stand-in, a stub or a note holds.
    fn held(&self, id: EventId, log: &Log) -> Result<Vec<u32>, LogError> {
        let vocabulary = &self.material.vocabulary;
        Ok(match log.event(id)?.what {
            What::Fold(fold) => {
                let texts: Vec<&str> = fold.stand_in.iter().map(|(_, text)| &**text).collect();
                vocabulary.find(&texts.join("\n"))
            }
            What::Mask(mask) => vocabulary.find(&mask.stub),
            What::Note { text, .. } => vocabulary.find(&text),
            _ => Vec::new(),
        })
    }

    fn set(&mut self, message: usize, shade: Shade) {
        if self.messages[message] != shade {
            self.weigh(message, false);
            self.messages[message] = shade;
            self.weigh(message, true);
        }
    }

    /// Adds a message to the counts, or takes it out again.
    fn weigh(&mut self, message: usize, add: bool) {
        let said = &self.material.messages[message];
        let shade = &self.messages[message];
        let shown = |part: Option<u32>| match (shade, part) {
            (Shade::Hidden, _) => false,
            (Shade::Shown(masked), Some(part)) => !masked.contains(&part),
            (Shade::Shown(_), None) => true,
        };
        let given = said.given.iter().map(|(part, list)| (Some(*part), list));
        for (part, list) in std::iter::once((None, &said.holds)).chain(given) {
            let counts = match shown(part) {
                true => &mut self.visible,
                false => &mut self.hidden,
            };
            for term in list {
                let count = &mut counts[*term as usize];
                match add {
                    true => *count += 1,
                    false => *count -= 1,
                }
            }
        }
    }
}

/// The summaries that are shown, and what each covers.
pub fn summaries(view: &View, log: &Log) -> Result<Vec<Summary>, LogError> {
    let mut visible = std::collections::HashSet::new();
    for piece in view.pieces() {
        if let Shows::Verbatim(span) = piece.shows {
            visible.extend(span.seqs());
        }
    }
    let mut out = Vec::new();
    for item in log.state().shown().items() {
        let Item::Fold(fold) = item else { continue };
        if fold.cause != Cause::Summary {
            continue;
        }
        if let What::Fold(line) = log.event(fold.id)?.what {
            let seqs = fold.runs.iter().flat_map(|run| run.seqs());
            out.push(Summary {
                id: fold.id,
                text: StandIn::summary(&line.stand_in).to_owned(),
                // The floor is shown although the fold spans it.
                covers: seqs.filter(|seq| !visible.contains(seq)).map(at).collect(),
            });
        }
    }
    Ok(out)
}

/// Messages are counted from zero here, and from one in a log.
fn at(seq: infold_log::Seq) -> usize {
    seq.get() as usize - 1
}
