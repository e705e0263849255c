//! The forms of a summary: our own, and those of other agents.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{
    ASKED, BEFORE, CALLS, COMMANDS, FAILED, FILES, FOUND, GOAL, NAMED, OPEN, RECALL, SAID, SEEN,
    SYSTEM,
};

/// The form of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryForm {
    /// Our own sections, without empty ones.
    #[default]
    Sections,
    /// Roo Code's six numbered parts.
    SixParts,
    /// The five elements of Gemini CLI's `<state_snapshot>`.
    Snapshot,
    /// Decisions, changes, problems and remaining work.
    Report,
}

/// Lines by the heading of their section.
pub(super) type Sections = BTreeMap<&'static str, Vec<String>>;

/// The text of an empty part.
const EMPTY_PART: &str = "- none";

/// Our own sections in order.
const SECTIONS: [&str; 14] = [
    GOAL, ASKED, SYSTEM, BEFORE, FOUND, FILES, COMMANDS, CALLS, FAILED, OPEN, SAID, SEEN, NAMED,
    RECALL,
];

/// The titles of the numbered parts.
const SIX_PARTS: [&str; 6] = [
    "1. Previous Conversation:",
    "2. Current Work:",
    "3. Key Technical Concepts:",
    "4. Relevant Files and Code:",
    "5. Problem Solving:",
    "6. Pending Tasks and Next Steps:",
];

/// The elements of a snapshot.
const SNAPSHOT: [&str; 5] = [
    "overall_goal",
    "key_knowledge",
    "file_system_state",
    "recent_actions",
    "current_plan",
];

/// The headings of a report.
const REPORT: [&str; 4] = [
    "## Important decisions",
    "## Code changes",
    "## Problems and how they were solved",
    "## Remaining tasks",
];

impl SummaryForm {
    /// Joins our own sections in this form.
    pub(super) fn join(self, sections: &Sections) -> String {
        match self {
            SummaryForm::Sections => join(&SECTIONS, sections),
            SummaryForm::SixParts => self.join_parts(&SIX_PARTS, sections),
            SummaryForm::Report => self.join_parts(&REPORT, sections),
            SummaryForm::Snapshot => self.join_elements(sections),
        }
    }

    /// Puts titles and tags on lines of their own, so that a sentence can be dropped without its title.
    pub fn with_titles_apart(self, text: &str) -> Cow<'_, str> {
        match self {
            SummaryForm::Sections | SummaryForm::Report => Cow::Borrowed(text),
            SummaryForm::SixParts => {
                let lines = text.lines().map(|line| match title_end(line) {
                    Some(end) => format!("{}\n{}\n", &line[..end], line[end..].trim_start()),
                    None => format!("{line}\n"),
                });
                Cow::Owned(lines.collect())
            }
            SummaryForm::Snapshot => {
                let mut text = text.to_owned();
                for name in SNAPSHOT {
                    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
                    text = text.replace(&open, &format!("{open}\n"));
                    text = text.replace(&close, &format!("\n{close}"));
                }
                Cow::Owned(text)
            }
        }
    }

    fn join_parts(self, titles: &[&str], sections: &Sections) -> String {
        let parts = self.sort_lines(titles.len(), sections);
        let parts = titles.iter().zip(parts).map(|(title, lines)| {
            let lines = part_text(&lines);
            format!("{title}\n{lines}\n")
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    fn join_elements(self, sections: &Sections) -> String {
        let parts = self.sort_lines(SNAPSHOT.len(), sections);
        let parts = SNAPSHOT.iter().zip(parts).map(|(name, lines)| {
            // A quotation must not end the snapshot.
            let lines = part_text(&lines).replace('&', "&amp;").replace('<', "&lt;");
            format!("<{name}>\n{lines}\n</{name}>\n")
        });
        parts.collect()
    }

    /// Returns the lines of each part, in the order of our own sections.
    fn sort_lines(self, parts: usize, sections: &Sections) -> Vec<Vec<String>> {
        let mut sorted = vec![Vec::new(); parts];
        for heading in SECTIONS {
            for line in sections.get(heading).into_iter().flatten() {
                sorted[self.part_of(heading, line)].push(self.line(line));
            }
        }
        sorted
    }

    /// Returns the part to which a line of a section belongs.
    fn part_of(self, heading: &str, line: &str) -> usize {
        let is_now = line.starts_with("- Last asked") || line.starts_with("- Last said");
        match self {
            SummaryForm::Sections => 0,
            SummaryForm::SixParts => match heading {
                GOAL | OPEN if is_now => 1,
                FOUND | SEEN | NAMED => 2,
                FILES => 3,
                COMMANDS | CALLS | FAILED => 4,
                OPEN => 5,
                _ => 0,
            },
            SummaryForm::Snapshot => match heading {
                GOAL => 0,
                FILES => 2,
                COMMANDS | CALLS | FAILED => 3,
                OPEN if is_now => 3,
                OPEN => 4,
                _ => 1,
            },
            SummaryForm::Report => match heading {
                FILES => 1,
                COMMANDS | CALLS | FAILED | SEEN => 2,
                OPEN => 3,
                _ => 0,
            },
        }
    }

    /// Returns a line in the words of the form.
    fn line(self, line: &str) -> String {
        if self == SummaryForm::Snapshot {
            for (ours, theirs) in [("- [ ] ", "- [TODO] "), ("- [-] ", "- [IN PROGRESS] ")] {
                if let Some(rest) = line.strip_prefix(ours) {
                    return format!("{theirs}{rest}");
                }
            }
        }
        line.to_owned()
    }
}

fn part_text(lines: &[String]) -> String {
    if lines.is_empty() {
        EMPTY_PART.to_owned()
    } else {
        lines.join("\n")
    }
}

/// Joins sections under their headings; empty ones are left out.
pub(super) fn join(order: &[&str], sections: &Sections) -> String {
    let mut out = String::new();
    for heading in order {
        let Some(lines) = sections.get(heading).filter(|lines| !lines.is_empty()) else {
            continue;
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(heading);
        out.push('\n');
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Returns where the title of a numbered part ends, if text follows it on its line.
fn title_end(line: &str) -> Option<usize> {
    let (number, _) = line.split_once(". ")?;
    matches!(number, "1" | "2" | "3" | "4" | "5" | "6").then_some(())?;
    let end = line.find(':')? + 1;
    (end < 60 && !line[end..].trim().is_empty()).then_some(end)
}
