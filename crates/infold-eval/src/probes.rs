//! Plants facts into generated conversations, folds them once, and checks whether the summary still contains them.

mod conversation;
mod facts;
mod variants;
mod noise;

use std::collections::BTreeSet;

use super::designs::{Design, StandInWriter};
use super::{FoldPoint, MessageError, ParsedSession, RecordedSession};
use conversation::ProbePlan;
pub use variants::{FACT_KINDS, FactKind, LANGUAGES, Language, NOISES, Noise, SPEAKERS, Speaker};

/// The tokens that follow a fact, at least.
pub const DISTANCES_TOKENS: [u64; 3] = [20_000, 60_000, 150_000];

/// The designs that are probed.
pub const PROBED_DESIGNS: [Design; 4] = [
    Design::Extractive,
    Design::Requests,
    Design::LexRank,
    Design::Truncation,
];

/// One planted fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its subject.
    pub kind: FactKind,
    /// The language of the conversation.
    pub language: Language,
    /// The messages around it.
    pub noise: Noise,
    /// The tokens that follow it, at least.
    pub distance: u64,
    /// Its speaker.
    pub speaker: Speaker,
    /// The sentence.
    pub text: String,
    /// The parts that a summary must contain.
    pub keys: Vec<String>,
}

/// A generated conversation and the facts in it.
#[derive(Clone, Debug)]
pub struct ProbeConversation {
    /// Its messages, in the form of Anthropic.
    pub session: RecordedSession,
    /// The facts, one of each kind.
    pub probes: Vec<Probe>,
}

/// The facts that a stand-in of one design and size still contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The design.
    pub design: Design,
    /// The tokens that it may have.
    pub size: u64,
    /// Whether it contains each fact, in the order of the probes.
    pub survives: Vec<bool>,
}

impl Probe {
    /// Says whether a summary contains the fact, ignoring case and white space.
    pub fn survives(&self, summary: &str) -> bool {
        self.survives_in(&normalize(summary))
    }

    fn survives_in(&self, summary: &str) -> bool {
        self.keys
            .iter()
            .all(|key| summary.contains(&normalize(key)))
    }
}

impl ProbeConversation {
    /// Returns the number of conversations: of a sample, or of all combinations.
    pub fn count(all: bool) -> usize {
        ProbePlan::count(all)
    }

    /// Generates one of them. The same number gives the same conversation each time.
    pub fn generate(number: usize, all: bool) -> ProbeConversation {
        ProbePlan::new(number, all).generate()
    }

    /// Folds the whole conversation at each size, and looks for the facts.
    pub fn probe(&self, sizes: &[u64]) -> Result<Vec<ProbeResult>, MessageError> {
        let parsed = ParsedSession::without_terms(&self.session)?;
        let point = FoldPoint {
            summary: String::new(),
            at: parsed.len(),
            covers: (0..parsed.len()).collect(),
            wanted: BTreeSet::new(),
        };
        let mut writer = StandInWriter::new(&self.session, &parsed, &point);
        let mut out = Vec::new();
        for size in sizes {
            for design in PROBED_DESIGNS {
                let summary = normalize(&writer.write(design, *size));
                let probes = self.probes.iter();
                out.push(ProbeResult {
                    design,
                    size: *size,
                    survives: probes.map(|probe| probe.survives_in(&summary)).collect(),
                });
            }
        }
        Ok(out)
    }
}

/// Returns a text in small letters with single spaces, without marks around code and with plain apostrophes.
fn normalize(text: &str) -> String {
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
        let conversation = ProbeConversation::generate(0, false);
        assert_eq!(conversation.probes.len(), FACT_KINDS.len());
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
        for number in 0..ProbeConversation::count(false) {
            let plan = ProbePlan::new(number, false);
            for (probe, earlier) in plan.facts() {
                if let Some(earlier) = earlier {
                    assert_eq!(probe.kind, FactKind::Corrected);
                    assert!(!probe.survives(&earlier), "{probe:?} after {earlier}");
                    assert!(probe.survives(&format!("{earlier} {}", probe.text)));
                }
            }
        }
    }

    #[test]
    fn a_fact_is_said_where_it_was_planted_and_nowhere_else() {
        for number in [0, 5] {
            let conversation = ProbeConversation::generate(number, false);
            let parsed = ParsedSession::without_terms(&conversation.session).unwrap();
            let texts: Vec<String> = parsed.messages.iter().map(|said| said.text()).collect();
            for probe in &conversation.probes {
                let holds = texts.iter().filter(|text| probe.survives(text)).count();
                let expected = if probe.speaker == Speaker::Tool { 2 } else { 1 };
                assert_eq!(holds, expected, "{probe:?}");
            }
        }
    }

    #[test]
    fn a_conversation_is_the_same_each_time_and_facts_are_far_back() {
        let first = ProbeConversation::generate(3, false);
        let again = ProbeConversation::generate(3, false);
        assert_eq!(first.session, again.session);
        assert_eq!(first.probes, again.probes);
        let parsed = ParsedSession::without_terms(&first.session).unwrap();
        let mut after: u64 = 0;
        let mut found = 0;
        for said in parsed.messages.iter().rev() {
            let text = said.text();
            for probe in first.probes.iter().filter(|probe| probe.survives(&text)) {
                let far = probe.distance..probe.distance * 3 / 2;
                assert!(far.contains(&after), "{after} after {probe:?}");
                found += 1;
            }
            after += crate::designs::count_tokens(&text);
        }
        assert!(found >= first.probes.len());
    }

    #[test]
    fn a_sample_has_every_kind_language_noise_and_distance() {
        let plans = (0..ProbePlan::count(false)).map(|number| ProbePlan::new(number, false));
        let probes: Vec<Probe> = plans
            .flat_map(|plan| plan.facts())
            .map(|(probe, _)| probe)
            .collect();
        assert!((180..=250).contains(&probes.len()), "{}", probes.len());
        let holds = |test: &dyn Fn(&Probe) -> bool| probes.iter().any(test);
        assert!(
            FACT_KINDS
                .iter()
                .all(|kind| holds(&|probe| probe.kind == *kind))
        );
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
            DISTANCES_TOKENS
                .iter()
                .all(|distance| holds(&|probe| probe.distance == *distance))
        );
        let said = |speaker| probes.iter().filter(|p| p.speaker == speaker).count();
        assert!(said(Speaker::User) > probes.len() / 2);
        assert!(said(Speaker::Assistant) > said(Speaker::Tool) && said(Speaker::Tool) > 0);
    }

    #[test]
    fn the_full_product_asks_for_each_combination_once() {
        let plans = (0..ProbePlan::count(true)).map(|number| ProbePlan::new(number, true));
        let mut seen = std::collections::HashSet::new();
        for (probe, _) in plans.flat_map(|plan| plan.facts()) {
            let combination = (probe.kind, probe.language, probe.noise, probe.distance);
            assert!(seen.insert(combination), "{probe:?}");
        }
        let all = FACT_KINDS.len() * LANGUAGES.len() * NOISES.len() * DISTANCES_TOKENS.len();
        assert_eq!(seen.len(), all);
    }
}
