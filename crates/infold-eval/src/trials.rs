//! Writes and measures every design at every point in several sizes.

use crate::bootstrap::{self, Estimate, Observation};
use crate::compare::agent_points;
use crate::designs::{self, DESIGNS, Design, StandInWriter};
use crate::measure::{Measure, Scores};
use crate::{FoldPoint, ParsedSession, RecordedSession};

/// The size limit of a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeLimit {
    /// A number of tokens.
    Tokens(u64),
    /// The tokens of the summary that the session's own agent wrote there.
    Agent,
}

/// One stand-in at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandInTrial {
    /// The number of the session.
    pub session: usize,
    /// The number of the point among all points.
    pub point: usize,
    /// Its design.
    pub design: Design,
    /// Its size limit.
    pub size: SizeLimit,
    /// Its tokens.
    pub tokens: u64,
    /// The wanted terms, and those that it keeps.
    pub scores: Scores,
}

/// Trials at the points of many sessions.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// All trials.
    pub all: Vec<StandInTrial>,
    /// The number of sessions with points.
    pub sessions: usize,
    /// The number of points.
    pub points: usize,
    /// The number of points that are compactions of an agent.
    pub agent_points: usize,
}

impl Trials {
    /// Adds the compactions of a session's own agent, at these sizes and at the agent's own.
    pub fn add_agent(&mut self, session: &RecordedSession, parsed: &ParsedSession, sizes: &[u64]) {
        let points = agent_points(session, parsed);
        self.agent_points += points.len();
        let sizes = sizes.iter().map(|size| SizeLimit::Tokens(*size));
        let sizes: Vec<SizeLimit> = sizes.chain([SizeLimit::Agent]).collect();
        self.add(session, parsed, &points, &sizes);
    }

    /// Adds the points at which a strategy folded a session.
    pub fn add_points(
        &mut self,
        session: &RecordedSession,
        parsed: &ParsedSession,
        points: &[FoldPoint],
        sizes: &[u64],
    ) {
        let sizes: Vec<SizeLimit> = sizes.iter().map(|size| SizeLimit::Tokens(*size)).collect();
        self.add(session, parsed, points, &sizes);
    }

    fn add(
        &mut self,
        session: &RecordedSession,
        parsed: &ParsedSession,
        points: &[FoldPoint],
        sizes: &[SizeLimit],
    ) {
        for point in points {
            let mut writer = StandInWriter::new(session, parsed, point);
            for size in sizes {
                let budget = match size {
                    SizeLimit::Tokens(tokens) => *tokens,
                    SizeLimit::Agent => designs::count_tokens(&point.summary),
                };
                for design in DESIGNS {
                    if design == Design::Agent && *size != SizeLimit::Agent {
                        continue;
                    }
                    let text = writer.write(design, budget);
                    let held = parsed.vocabulary.find(&text);
                    self.all.push(StandInTrial {
                        session: self.sessions,
                        point: self.points,
                        design,
                        size: *size,
                        tokens: designs::count_tokens(&text),
                        scores: point.scores(&held, parsed),
                    });
                }
            }
            self.points += 1;
        }
        self.sessions += usize::from(!points.is_empty());
    }

    /// Adds the trials of further sessions.
    pub fn join(&mut self, other: Trials) {
        let (sessions, points) = (self.sessions, self.points);
        self.all
            .extend(other.all.into_iter().map(|trial| StandInTrial {
                session: trial.session + sessions,
                point: trial.point + points,
                ..trial
            }));
        self.sessions += other.sessions;
        self.points += other.points;
        self.agent_points += other.agent_points;
    }

    /// Returns the sizes that were tried, in order.
    pub fn sizes(&self) -> Vec<SizeLimit> {
        let mut sizes: Vec<SizeLimit> = self.all.iter().map(|trial| trial.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the trials of a design at a size.
    pub fn of(&self, design: Design, size: SizeLimit) -> impl Iterator<Item = &StandInTrial> {
        let all = self.all.iter();
        all.filter(move |trial| trial.design == design && trial.size == size)
    }

    /// Returns the mean share that a design keeps, over the points at which something was wanted.
    pub fn mean(&self, design: Design, size: SizeLimit, measure: Measure) -> Option<Estimate> {
        bootstrap::mean(&self.observations(design, design, size, measure))
    }

    /// Returns how many times as much a design keeps as another one.
    pub fn ratio(
        &self,
        design: Design,
        base: Design,
        size: SizeLimit,
        measure: Measure,
    ) -> Option<Estimate> {
        bootstrap::ratio(&self.observations(design, base, size, measure))
    }

    fn observations(
        &self,
        design: Design,
        base: Design,
        size: SizeLimit,
        measure: Measure,
    ) -> Vec<Observation> {
        // Each design has one trial at each point and size, in the order of points.
        let pairs = self.of(design, size).zip(self.of(base, size));
        let observed = pairs.filter_map(|(trial, base)| {
            Some(Observation {
                session: trial.session,
                value: trial.scores[measure].share()?,
                base: base.scores[measure].share()?,
            })
        });
        observed.collect()
    }
}
