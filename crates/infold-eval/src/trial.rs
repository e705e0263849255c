//! Tries every design at every point in several sizes.

use super::compare::agent_points;
use super::designs::{self, Candidates, DESIGNS, Design};
use super::interval::{self, Estimate, Observation};
use super::score::{Measure, Scores};
use super::{Material, Point, Session};

/// How large a stand-in may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// So many tokens.
    Tokens(u64),
    /// As many as the summary has that the session's own agent wrote there.
    Agent,
}

/// What one stand-in came to at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The number of the session.
    pub session: usize,
    /// The number of the point among all points.
    pub point: usize,
    /// What was written.
    pub design: Design,
    /// How large it might be.
    pub size: Size,
    /// How large it is.
    pub tokens: u64,
    /// What it keeps of what was wanted.
    pub scores: Scores,
}

/// Trials at the points of many sessions.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// All of them.
    pub all: Vec<Trial>,
    /// How many sessions have points.
    pub sessions: usize,
    /// How many points there are.
    pub points: usize,
    /// How many of them are compactions of an agent.
    pub agent_points: usize,
}

impl Trials {
    /// Adds the compactions of a session's own agent, at these sizes and at the agent's own.
    pub fn add_agent(&mut self, session: &Session, material: &Material, sizes: &[u64]) {
        let points = agent_points(session, material);
        self.agent_points += points.len();
        let sizes = sizes.iter().map(|size| Size::Tokens(*size));
        let sizes: Vec<Size> = sizes.chain([Size::Agent]).collect();
        self.add(session, material, &points, &sizes);
    }

    /// Adds the points at which a strategy folded a session.
    pub fn add_points(
        &mut self,
        session: &Session,
        material: &Material,
        points: &[Point],
        sizes: &[u64],
    ) {
        let sizes: Vec<Size> = sizes.iter().map(|size| Size::Tokens(*size)).collect();
        self.add(session, material, points, &sizes);
    }

    fn add(&mut self, session: &Session, material: &Material, points: &[Point], sizes: &[Size]) {
        for point in points {
            let mut candidates = Candidates::new(session, material, point);
            for size in sizes {
                let budget = match size {
                    Size::Tokens(tokens) => *tokens,
                    Size::Agent => designs::size(&point.summary),
                };
                for design in DESIGNS {
                    if design == Design::Agent && *size != Size::Agent {
                        continue;
                    }
                    let text = candidates.write(design, budget);
                    let held = material.vocabulary.find(&text);
                    self.all.push(Trial {
                        session: self.sessions,
                        point: self.points,
                        design,
                        size: *size,
                        tokens: designs::size(&text),
                        scores: point.scores(&held, material),
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
        self.all.extend(other.all.into_iter().map(|trial| Trial {
            session: trial.session + sessions,
            point: trial.point + points,
            ..trial
        }));
        self.sessions += other.sessions;
        self.points += other.points;
        self.agent_points += other.agent_points;
    }

    /// The sizes that were tried, in order.
    pub fn sizes(&self) -> Vec<Size> {
        let mut sizes: Vec<Size> = self.all.iter().map(|trial| trial.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The trials of a design at a size.
    pub fn of(&self, design: Design, size: Size) -> impl Iterator<Item = &Trial> {
        let all = self.all.iter();
        all.filter(move |trial| trial.design == design && trial.size == size)
    }

    /// The mean share that a design keeps, over the points at which something was wanted.
    pub fn mean(&self, design: Design, size: Size, measure: Measure) -> Option<Estimate> {
        interval::mean(&self.observations(design, design, size, measure))
    }

    /// How many times as much a design keeps as another one.
    pub fn ratio(
        &self,
        design: Design,
        base: Design,
        size: Size,
        measure: Measure,
    ) -> Option<Estimate> {
        interval::ratio(&self.observations(design, base, size, measure))
    }

    fn observations(
        &self,
        design: Design,
        base: Design,
        size: Size,
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
