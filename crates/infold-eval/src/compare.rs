//! Compares summaries with other designs at the same points, each at the summary's size.

use std::collections::BTreeSet;

use infold_log::Role;

use crate::designs::{self, DESIGNS, Design, StandInWriter};
use crate::measure::{Measure, Scores};
use crate::visibility::TermVisibility;
use crate::{FoldPoint, ParsedSession, RecordedSession};

/// The totals of one design over some points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignTotals {
    /// The design.
    pub design: Design,
    /// The number of stand-ins.
    pub folds: u64,
    /// Their tokens.
    pub tokens: u64,
    /// The wanted terms, and those that were kept.
    pub scores: Scores,
    /// The wanted references that were not kept.
    pub lost: Vec<LostReference>,
}

/// A wanted reference that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostReference {
    /// The reference.
    pub reference: String,
    /// The number of points at which it was lost.
    pub times: u64,
    /// The reference's last source before it was folded: `user`, `said`, `called`, or `result`.
    pub from: &'static str,
    /// The number of folded messages with it, when it was last wanted.
    pub occurs: u64,
}

impl DesignTotals {
    fn new(design: Design) -> DesignTotals {
        DesignTotals {
            design,
            folds: 0,
            tokens: 0,
            scores: Scores::default(),
            lost: Vec::new(),
        }
    }

    /// Returns the references kept for each 1,000 tokens; `None` without tokens.
    pub fn density(&self) -> Option<f64> {
        let kept = self.scores[Measure::References].kept;
        (self.tokens > 0).then(|| kept as f64 * 1000.0 / self.tokens as f64)
    }

    /// Adds the totals of the same design over other points.
    pub fn add(&mut self, other: &DesignTotals) {
        self.folds += other.folds;
        self.tokens += other.tokens;
        self.scores.add(other.scores);
        self.lost.extend(other.lost.iter().cloned());
    }

    /// Measures and adds one stand-in.
    fn add_stand_in(&mut self, text: &str, point: &FoldPoint, parsed: &ParsedSession) {
        self.folds += 1;
        self.tokens += designs::count_tokens(text);
        let held = parsed.vocabulary.find(text);
        self.scores.add(point.scores(&held, parsed));
        for term in &point.wanted {
            let is_reference = parsed.vocabulary.measure(*term) == Measure::References;
            if is_reference && held.binary_search(term).is_err() {
                self.lost.push(parsed.lost_reference(*term, point));
            }
        }
    }
}

impl FoldPoint {
    /// Counts the wanted terms, and those of them that are among `held`.
    pub(crate) fn scores(&self, held: &[u32], parsed: &ParsedSession) -> Scores {
        let mut scores = Scores::default();
        for term in &self.wanted {
            let counts = &mut scores[parsed.vocabulary.measure(*term)];
            counts.wanted += 1;
            counts.kept += u64::from(held.binary_search(term).is_ok());
        }
        scores
    }
}

impl ParsedSession {
    /// Describes a reference that a stand-in at a point lost.
    fn lost_reference(&self, term: u32, point: &FoldPoint) -> LostReference {
        let occurs = self.occurs[term as usize].iter();
        let folded = occurs.map(|place| *place as usize);
        let folded: Vec<usize> = folded
            .filter(|place| point.covers.binary_search(place).is_ok())
            .collect();
        let from = folded.last().map_or("", |place| {
            let said = &self.messages[*place];
            let occurs_in = |text: &str| self.vocabulary.find(text).binary_search(&term).is_ok();
            match said.role {
                Role::User if occurs_in(&said.words.text) => "user",
                Role::Assistant if occurs_in(&said.words.arguments) => "called",
                Role::Assistant => "said",
                _ => "result",
            }
        });
        LostReference {
            reference: self.vocabulary.text(term).to_owned(),
            times: 1,
            from,
            occurs: folded.len() as u64,
        }
    }
}

/// Compares summaries with other designs at the same points, each at the summary's size.
pub fn compare(
    session: &RecordedSession,
    parsed: &ParsedSession,
    points: &[FoldPoint],
) -> Vec<DesignTotals> {
    // The summarizer wrote the summary that was shown.
    compare_designs(
        session,
        parsed,
        points,
        Some(Design::Agent),
        Design::Extractive,
    )
}

/// Compares the summaries of a session's own agent with other designs; none if it wrote none.
pub fn compare_agent(
    session: &RecordedSession,
    parsed: &ParsedSession,
) -> Option<Vec<DesignTotals>> {
    if session.compactions.is_empty() {
        return None;
    }
    let points = agent_points(session, parsed);
    let mut out = compare_designs(session, parsed, &points, None, Design::Agent);
    // The agent's summary comes first because it sets the size.
    out.sort_by_key(|one| one.design != Design::Agent);
    Some(out)
}

/// Measures all designs but `left_out`; that of the points' own summaries is `own`.
fn compare_designs(
    session: &RecordedSession,
    parsed: &ParsedSession,
    points: &[FoldPoint],
    left_out: Option<Design>,
    own: Design,
) -> Vec<DesignTotals> {
    let designs = DESIGNS
        .into_iter()
        .filter(|design| Some(*design) != left_out);
    let mut out: Vec<DesignTotals> = designs.map(DesignTotals::new).collect();
    for point in points {
        let budget = designs::count_tokens(&point.summary);
        let mut writer = StandInWriter::new(session, parsed, point);
        for totals in &mut out {
            let text = if totals.design == own {
                point.summary.clone()
            } else {
                writer.write(totals.design, budget)
            };
            totals.add_stand_in(&text, point, parsed);
        }
    }
    out
}

/// Folds where the agent did, and collects the wanted terms of the messages it left out.
pub fn agent_points(session: &RecordedSession, parsed: &ParsedSession) -> Vec<FoldPoint> {
    let mut points: Vec<FoldPoint> = Vec::new();
    let mut visibility = TermVisibility::new(parsed);
    let floor = parsed.floor();
    let mut compactions = session.compactions.iter().peekable();
    for place in 0..parsed.len() {
        while let Some(compaction) = compactions.next_if(|found| found.at <= place) {
            let covers: Vec<usize> = (0..compaction.kept.min(place))
                .filter(|place| !floor.contains(place))
                .collect();
            // A file may begin with the summary of a conversation that it does not hold.
            if covers.is_empty() {
                continue;
            }
            covers.iter().for_each(|message| visibility.hide(*message));
            points.push(FoldPoint {
                summary: compaction.summary.clone(),
                at: place,
                covers,
                wanted: BTreeSet::new(),
            });
        }
        if let Some(point) = points.last_mut() {
            point.wanted.extend(visibility.wanted());
        }
        visibility.append();
    }
    points
}
