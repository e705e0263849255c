use std::collections::HashMap;

use infold_log::Role;

use super::designs::{self, Design};
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
    /// References that were wanted.
    pub wanted: u64,
    /// How many of them the stand-ins hold.
    pub kept: u64,
    /// Those that they do not hold.
    pub lost: Vec<Lost>,
}

/// A reference that was wanted and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The reference.
    pub reference: String,
    /// How often.
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
            wanted: 0,
            kept: 0,
            lost: Vec::new(),
        }
    }

    /// The share that was kept; none if nothing was wanted.
    pub fn recall(&self) -> Option<f64> {
        (self.wanted > 0).then(|| self.kept as f64 / self.wanted as f64)
    }

    /// How many were kept for each 1,000 tokens; none if there are no tokens.
    pub fn density(&self) -> Option<f64> {
        (self.tokens > 0).then(|| self.kept as f64 * 1000.0 / self.tokens as f64)
    }

    /// Adds what the same design kept elsewhere.
    pub fn add(&mut self, other: &Compared) {
        self.folds += other.folds;
        self.tokens += other.tokens;
        self.wanted += other.wanted;
        self.kept += other.kept;
        self.lost.extend(other.lost.iter().cloned());
    }

    /// Measures one stand-in.
    fn measure(&mut self, text: &str, point: &Point, material: &Material) {
        let held = material.found(&[text]);
        let is_kept = |reference: &usize| held.binary_search(reference).is_ok();
        self.folds += 1;
        self.tokens += designs::size(text);
        self.wanted += point.wanted.len() as u64;
        let mut lost: HashMap<usize, u64> = HashMap::new();
        for reference in &point.wanted {
            match is_kept(reference) {
                true => self.kept += 1,
                false => *lost.entry(*reference).or_default() += 1,
            }
        }
        let mut lost: Vec<(usize, u64)> = lost.into_iter().collect();
        lost.sort_unstable();
        let lost = lost.into_iter();
        self.lost
            .extend(lost.map(|(reference, times)| material.lost(reference, times, point)));
    }
}

impl Material {
    fn lost(&self, reference: usize, times: u64, point: &Point) -> Lost {
        let occurs = self.occurs[reference].iter();
        let folded = occurs.filter(|place| point.covers.binary_search(place).is_ok());
        let folded: Vec<usize> = folded.copied().collect();
        let from = folded.last().map_or("", |place| {
            let said = &self.messages[*place];
            let stands = |text: &str| self.found(&[text]).binary_search(&reference).is_ok();
            match said.role {
                Role::User if stands(&said.words.said) => "user",
                Role::Assistant if stands(&said.words.called) => "called",
                Role::Assistant => "said",
                _ => "result",
            }
        });
        Lost {
            reference: self.references[reference].clone(),
            times,
            from,
            occurs: folded.len() as u64,
        }
    }
}

/// Compares summaries with what else could stand in their place, each at the summary's size.
pub fn compare(material: &Material, points: &[Point]) -> Vec<Compared> {
    let mut out = [
        Design::Extractive,
        Design::Truncation,
        Design::Prose,
        Design::Frequent,
    ]
    .map(Compared::new);
    for point in points {
        let budget = designs::size(&point.summary);
        for compared in &mut out {
            let text = match compared.design {
                Design::Extractive | Design::Agent => point.summary.clone(),
                design => baseline(design, material, &point.covers, budget),
            };
            compared.measure(&text, point, material);
        }
    }
    out.to_vec()
}

/// Compares the summaries that a session's own agent wrote with others of the same size at the same points.
///
/// None if it wrote none.
pub fn compare_agent(session: &Session, material: &Material) -> Option<Vec<Compared>> {
    if session.compactions.is_empty() {
        return None;
    }
    let mut out = [
        Design::Agent,
        Design::Extractive,
        Design::Truncation,
        Design::Prose,
        Design::Frequent,
    ]
    .map(Compared::new);
    let mut previous: Option<String> = None;
    let mut from = 0;
    for point in agent_points(session, material) {
        let budget = designs::size(&point.summary);
        let end = point.covers.last().map_or(0, |last| last + 1);
        for compared in &mut out {
            let text = match compared.design {
                Design::Agent => point.summary.clone(),
                Design::Extractive => {
                    let news = point.covers.iter().filter(|place| **place >= from);
                    let news: Vec<usize> = news.copied().collect();
                    let text = designs::extractive(session, &news, previous.as_deref(), budget);
                    previous = Some(text.clone());
                    text
                }
                design => baseline(design, material, &point.covers, budget),
            };
            compared.measure(&text, &point, material);
        }
        from = end;
    }
    Some(out.to_vec())
}

fn baseline(design: Design, material: &Material, covers: &[usize], budget: u64) -> String {
    match design {
        Design::Truncation => designs::truncation(material, covers, budget),
        Design::Frequent => designs::frequent(material, covers, budget),
        _ => designs::prose(material, covers, budget),
    }
}

/// Folds where the agent did, and collects what was wanted of what it left out.
fn agent_points(session: &Session, material: &Material) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut sight = Sight::new(material);
    let floor = floor(material);
    let mut compactions = session.compactions.iter().peekable();
    for place in 0..material.len() {
        while let Some(compaction) = compactions.next_if(|found| found.at <= place) {
            let covers: Vec<usize> = (0..compaction.kept.min(place))
                .filter(|place| !floor.contains(place))
                .collect();
            covers.iter().for_each(|message| sight.hide(*message));
            points.push(Point {
                summary: compaction.summary.clone(),
                covers,
                wanted: Vec::new(),
            });
        }
        if let Some(point) = points.last_mut() {
            point.wanted.extend(sight.wanted());
        }
        sight.append();
    }
    points
}

/// The system prompt and the first request, which nothing folds.
fn floor(material: &Material) -> Vec<usize> {
    let all = || material.messages.iter();
    let system = all().take_while(|said| said.role == Role::System).count();
    let is_request =
        |said: &super::material::Said| said.role == Role::User && said.words.given.is_empty();
    (0..system).chain(all().position(is_request)).collect()
}
