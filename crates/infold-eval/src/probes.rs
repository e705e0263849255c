//! Plants facts into generated conversations, folds them once, and looks whether the summary still says them.

mod conversation;
mod facts;
mod kinds;
mod noise;

use std::collections::BTreeSet;

use super::designs::{Candidates, Design};
use super::{Material, MessageError, Point, Session};
use conversation::Plan;
pub use kinds::{KINDS, Kind, LANGUAGES, Language, NOISES, Noise, SPEAKERS, Speaker};

/// How many tokens follow a fact, at least.
pub const DISTANCES: [u64; 3] = [20_000, 60_000, 150_000];

/// The designs that are asked for facts.
pub const PROBED: [Design; 4] = [
    Design::Extractive,
    Design::Requests,
    Design::LexRank,
    Design::Truncation,
];

/// One planted fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it is about.
    pub kind: Kind,
    /// The language of everything that is said.
    pub language: Language,
    /// What stands around it.
    pub noise: Noise,
    /// How many tokens follow it, at least.
    pub distance: u64,
    /// Who says it.
    pub speaker: Speaker,
    /// The sentence as it was said.
    pub text: String,
    /// What of it a summary has to say.
    pub keys: Vec<String>,
}

/// A generated conversation and the facts in it.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Its messages, in the form of Anthropic.
    pub session: Session,
    /// The facts, one of each kind.
    pub probes: Vec<Probe>,
}

/// Which facts a stand-in of one design and size still says, in the order of the probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The design.
    pub design: Design,
    /// How many tokens it might have.
    pub size: u64,
    /// Whether each fact is still said.
    pub survives: Vec<bool>,
}

impl Probe {
    /// Says whether a summary holds the fact, whatever its case and the spaces in it.
    pub fn survives(&self, summary: &str) -> bool {
        self.survives_in(&normal(summary))
    }

    fn survives_in(&self, summary: &str) -> bool {
        self.keys.iter().all(|key| summary.contains(&normal(key)))
    }
}

impl Conversation {
    /// How many conversations there are: a sample of them, or all.
    pub fn count(all: bool) -> usize {
        Plan::count(all)
    }

    /// Makes one of them. The same number gives the same conversation each time.
    pub fn generate(number: usize, all: bool) -> Conversation {
        Plan::new(number, all).generate()
    }

    /// Folds the whole conversation at each size, and looks for the facts.
    pub fn ask(&self, sizes: &[u64]) -> Result<Vec<Answer>, MessageError> {
        let material = Material::without_terms(&self.session)?;
        let point = Point {
            summary: String::new(),
            at: material.len(),
            covers: (0..material.len()).collect(),
            wanted: BTreeSet::new(),
        };
        let mut candidates = Candidates::new(&self.session, &material, &point);
        let mut out = Vec::new();
        for size in sizes {
            for design in PROBED {
                let summary = normal(&candidates.write(design, *size));
                let probes = self.probes.iter();
                out.push(Answer {
                    design,
                    size: *size,
                    survives: probes.map(|probe| probe.survives_in(&summary)).collect(),
                });
            }
        }
        Ok(out)
    }
}

/// A text in small letters with single spaces, without marks around code and with plain apostrophes.
fn normal(text: &str) -> String {
    let lower = text
        .to_lowercase()
        .replace('’', "'")
        .replace(['`', '*'], "");
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_summary_passes_and_an_empty_one_fails() {
        let conversation = Conversation::generate(0, false);
        assert_eq!(conversation.probes.len(), KINDS.len());
        let texts = conversation.probes.iter().map(|probe| &*probe.text);
        let perfect = texts.collect::<Vec<_>>().join("\n\n").to_uppercase();
        for probe in &conversation.probes {
            assert!(!probe.keys.is_empty());
            assert!(probe.survives(&perfect), "{probe:?}");
            assert!(!probe.survives(""));
        }
    }

    #[test]
    fn the_newer_value_has_to_survive() {
        for number in 0..Conversation::count(false) {
            let plan = Plan::new(number, false);
            for (probe, earlier) in plan.facts() {
                if let Some(earlier) = earlier {
                    assert_eq!(probe.kind, Kind::Corrected);
                    assert!(!probe.survives(&earlier), "{probe:?} after {earlier}");
                    assert!(probe.survives(&format!("{earlier} {}", probe.text)));
                }
            }
        }
    }

    #[test]
    fn a_fact_is_said_where_it_was_planted_and_nowhere_else() {
        for number in [0, 5] {
            let conversation = Conversation::generate(number, false);
            let material = Material::without_terms(&conversation.session).unwrap();
            let texts: Vec<String> = material.messages.iter().map(|said| said.text()).collect();
            for probe in &conversation.probes {
                let holds = texts.iter().filter(|text| probe.survives(text)).count();
                let expected = if probe.speaker == Speaker::Tool { 2 } else { 1 };
                assert_eq!(holds, expected, "{probe:?}");
            }
        }
    }

    #[test]
    fn a_conversation_is_the_same_each_time_and_facts_are_far_back() {
        let first = Conversation::generate(3, false);
        let again = Conversation::generate(3, false);
        assert_eq!(first.session, again.session);
        assert_eq!(first.probes, again.probes);
        let material = Material::without_terms(&first.session).unwrap();
        let mut after: u64 = 0;
        let mut found = 0;
        for said in material.messages.iter().rev() {
            let text = said.text();
            for probe in first.probes.iter().filter(|probe| probe.survives(&text)) {
                let far = probe.distance..probe.distance * 3 / 2;
                assert!(far.contains(&after), "{after} after {probe:?}");
                found += 1;
            }
            after += super::super::designs::size(&text);
        }
        assert!(found >= first.probes.len());
    }

    #[test]
    fn a_sample_has_every_kind_language_noise_and_distance() {
        let plans = (0..Plan::count(false)).map(|number| Plan::new(number, false));
        let probes: Vec<Probe> = plans
            .flat_map(|plan| plan.facts())
            .map(|(probe, _)| probe)
            .collect();
        assert!((180..=250).contains(&probes.len()), "{}", probes.len());
        let holds = |test: &dyn Fn(&Probe) -> bool| probes.iter().any(test);
        assert!(KINDS.iter().all(|kind| holds(&|probe| probe.kind == *kind)));
        assert!(
            LANGUAGES
                .iter()
                .all(|language| holds(&|probe| probe.language == *language))
        );
        assert!(
            NOISES
                .iter()
                .all(|noise| holds(&|probe| probe.noise == *noise))
        );
        assert!(
            DISTANCES
                .iter()
                .all(|distance| holds(&|probe| probe.distance == *distance))
        );
        let said = |speaker| probes.iter().filter(|p| p.speaker == speaker).count();
        assert!(said(Speaker::User) > probes.len() / 2);
        assert!(said(Speaker::Assistant) > said(Speaker::Tool) && said(Speaker::Tool) > 0);
    }

    #[test]
    fn the_full_product_asks_for_each_combination_once() {
        let plans = (0..Plan::count(true)).map(|number| Plan::new(number, true));
        let mut seen = std::collections::HashSet::new();
        for (probe, _) in plans.flat_map(|plan| plan.facts()) {
            let combination = (probe.kind, probe.language, probe.noise, probe.distance);
            assert!(seen.insert(combination), "{probe:?}");
        }
        let all = KINDS.len() * LANGUAGES.len() * NOISES.len() * DISTANCES.len();
        assert_eq!(seen.len(), all);
    }
}
