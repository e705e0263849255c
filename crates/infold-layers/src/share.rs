//! The parts of the document, their priorities and their shares of the budget.

/// A part of the document that has a share of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // docs/DESIGN.md lists what each contains.
pub enum DocumentPart {
    System,
    Task,
    Runtime,
    ShortTerm,
    Observations,
    Episodic,
    Semantic,
    Procedural,
    Retrieved,
    Work,
}

/// How a part is treated when not all parts fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// It is included as a whole, or there is no document.
    Critical,
    /// It has its share of the limit before parts of medium priority.
    High,
    /// It divides the remainder with the others of this priority, in proportion to their shares.
    Medium,
}

/// The share of each part, in percent of the limit; those of medium priority only relate to each other, so the sum need
/// not be 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares([u8; DocumentPart::ALL.len()]);

/// Why a share cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the share of `{part}` is from 0 to 100 percent, not {percent}")]
pub struct ShareError {
    /// The part.
    pub part: &'static str,
    /// The given share.
    pub percent: i64,
}

impl DocumentPart {
    /// All parts, those with the highest priority first.
    pub const ALL: [DocumentPart; 10] = [
        DocumentPart::System,
        DocumentPart::Task,
        DocumentPart::Runtime,
        DocumentPart::ShortTerm,
        DocumentPart::Observations,
        DocumentPart::Episodic,
        DocumentPart::Semantic,
        DocumentPart::Procedural,
        DocumentPart::Retrieved,
        DocumentPart::Work,
    ];

    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            DocumentPart::System => "system",
            DocumentPart::Task => "task",
            DocumentPart::Runtime => "runtime",
            DocumentPart::ShortTerm => "short_term",
            DocumentPart::Observations => "observations",
            DocumentPart::Episodic => "episodic",
            DocumentPart::Semantic => "semantic",
            DocumentPart::Procedural => "procedural",
            DocumentPart::Retrieved => "retrieved",
            DocumentPart::Work => "work",
        }
    }

    /// Returns its priority.
    pub fn priority(self) -> Priority {
        match self {
            DocumentPart::System | DocumentPart::Task => Priority::Critical,
            DocumentPart::Runtime | DocumentPart::ShortTerm | DocumentPart::Observations => {
                Priority::High
            }
            DocumentPart::Episodic
            | DocumentPart::Semantic
            | DocumentPart::Procedural
            | DocumentPart::Retrieved
            | DocumentPart::Work => Priority::Medium,
        }
    }
}

impl Default for Shares {
    fn default() -> Shares {
        // In the order of `DocumentPart`.
        Shares([5, 5, 3, 20, 25, 15, 10, 7, 10, 10])
    }
}

impl Shares {
    /// Returns the share of a part in percent.
    pub fn percent(&self, part: DocumentPart) -> u64 {
        self.0[part as usize].into()
    }

    /// Sets the share of a part.
    pub fn set(&mut self, part: DocumentPart, percent: i64) -> Result<(), ShareError> {
        let valid = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
        let part_name = part.name();
        self.0[part as usize] = valid.ok_or(ShareError {
            part: part_name,
            percent,
        })?;
        Ok(())
    }

    /// Returns how many of `room` tokens a part of medium priority gets.
    pub(crate) fn of_rest(&self, part: DocumentPart, room: u64) -> u64 {
        let medium = DocumentPart::ALL
            .into_iter()
            .filter(|one| one.priority() == Priority::Medium);
        let sum: u64 = medium.map(|one| self.percent(one)).sum();
        if sum == 0 {
            return 0;
        }
        // The product may exceed 64 bits.
        (u128::from(room) * u128::from(self.percent(part)) / u128::from(sum)) as u64
    }
}
