//! Compares summaries with what else could stand in their place, each at the summary's size.

use std::collections::BTreeSet;

use infold_log::Role;

use super::designs::{self, Candidates, DESIGNS, Design};
use super::score::{Measure, Scores};
use super::sight::Sight;
use super::{Material, Point, Session};

/// What one design kept at some points, in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The design.
    pub design: Design,
    /// How many stand-ins it made.
    pub folds: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Terms that were wanted and kept.
    pub scores: Scores,
    /// References that were wanted and not kept.
    pub lost: Vec<Lost>,
}

/// A reference that was wanted and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The reference.
    pub reference: String,
    /// At how many points.
    pub times: u64,
    /// Who said it last before it was folded: `user`, `said`, `called`, or `result`.
    pub from: &'static str,
    /// In how many messages it was folded away, when it was last wanted.
    pub occurs: u64,
}

impl Compared {
    fn new(design: Design) -> Compared {
        Compared {
            design,
            folds: 0,
            tokens: 0,
            scores: Scores::default(),
            lost: Vec::new(),
        }
    }

    /// How many references were kept for each 1,000 tokens; none if there are no tokens.
    pub fn density(&self) -> Option<f64> {
        let kept = self.scores[Measure::References].kept;
        (self.tokens > 0).then(|| kept as f64 * 1000.0 / self.tokens as f64)
    }

    /// Adds what the same design kept elsewhere.
    pub fn add(&mut self, other: &Compared) {
        self.folds += other.folds;
        self.tokens += other.tokens;
        self.scores.add(other.scores);
        self.lost.extend(other.lost.iter().cloned());
    }

    /// Measures one stand-in.
    fn measure(&mut self, text: &str, point: &Point, material: &Material) {
        self.folds += 1;
        self.tokens += designs::size(text);
        let held = material.vocabulary.find(text);
        self.scores.add(point.scores(&held, material));
        for term in &point.wanted {
            let is_reference = material.vocabulary.measure(*term) == Measure::References;
            if is_reference && held.binary_search(term).is_err() {
                self.lost.push(material.lost(*term, point));
            }
        }
    }
}

impl Point {
    /// How many of the terms that were wanted are among those that a stand-in holds.
    pub(super) fn scores(&self, held: &[u32], material: &Material) -> Scores {
        let mut scores = Scores::default();
        for term in &self.wanted {
            let counts = &mut scores[material.vocabulary.measure(*term)];
            counts.wanted += 1;
            counts.kept += u64::from(held.binary_search(term).is_ok());
        }
        scores
    }
}

impl Material {
    fn lost(&self, term: u32, point: &Point) -> Lost {
        let occurs = self.occurs[term as usize].iter();
        let folded = occurs.map(|place| *place as usize);
        let folded: Vec<usize> = folded
            .filter(|place| point.covers.binary_search(place).is_ok())
            .collect();
        let from = folded.last().map_or("", |place| {
            let said = &self.messages[*place];
            let stands = |text: &str| self.vocabulary.find(text).binary_search(&term).is_ok();
            match said.role {
                Role::User if stands(&said.words.said) => "user",
                Role::Assistant if stands(&said.words.called) => "called",
                Role::Assistant => "said",
                _ => "result",
            }
        });
        Lost {
            reference: self.vocabulary.text(term).to_owned(),
            times: 1,
            from,
            occurs: folded.len() as u64,
        }
    }
}

/// Compares summaries with what else could stand in their place, each at the summary's size.
pub fn compare(session: &Session, material: &Material, points: &[Point]) -> Vec<Compared> {
    let designs = DESIGNS
        .into_iter()
        .filter(|design| *design != Design::Agent);
    let mut out: Vec<Compared> = designs.map(Compared::new).collect();
    for point in points {
        let budget = designs::size(&point.summary);
        let mut candidates = Candidates::new(session, material, point);
        for compared in &mut out {
            let text = match compared.design {
                // The summary that was shown is what the summarizer wrote then.
                Design::Extractive => point.summary.clone(),
                design => candidates.write(design, budget),
            };
            compared.measure(&text, point, material);
        }
    }
    out
}

/// Compares the summaries that a session's own agent wrote with others of the same size at the same points.
///
/// None if it wrote none.
pub fn compare_agent(session: &Session, material: &Material) -> Option<Vec<Compared>> {
    if session.compactions.is_empty() {
        return None;
    }
    let mut out: Vec<Compared> = DESIGNS.into_iter().map(Compared::new).collect();
    // The agent's own comes first, for it sets the size.
    out.sort_by_key(|one| one.design != Design::Agent);
    for point in agent_points(session, material) {
        let budget = designs::size(&point.summary);
        let mut candidates = Candidates::new(session, material, &point);
        for compared in &mut out {
            let text = candidates.write(compared.design, budget);
            compared.measure(&text, &point, material);
        }
    }
    Some(out)
}

/// Folds where the agent did, and collects what was wanted of what it left out.
pub fn agent_points(session: &Session, material: &Material) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut sight = Sight::new(material);
    let floor = material.floor();
    let mut compactions = session.compactions.iter().peekable();
    for place in 0..material.len() {
        while let Some(compaction) = compactions.next_if(|found| found.at <= place) {
            let covers: Vec<usize> = (0..compaction.kept.min(place))
                .filter(|place| !floor.contains(place))
                .collect();
            // A file may begin with the summary of a conversation that it does not hold.
            if covers.is_empty() {
                continue;
            }
            covers.iter().for_each(|message| sight.hide(*message));
            points.push(Point {
                summary: compaction.summary.clone(),
                at: place,
                covers,
                wanted: BTreeSet::new(),
            });
        }
        if let Some(point) = points.last_mut() {
            point.wanted.extend(sight.wanted());
        }
        sight.append();
    }
    points
}
