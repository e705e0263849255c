//! Chooses the lines of a hidden message that say something about references.

use infold_wire::tokens::{self, Encoding};

use crate::references::ReferenceFinder;

/// A longer line is cut around what it mentions.
const MAX_LINE_BYTES: usize = 400;
/// How many lines around a mention are of use.
const CONTEXT_LINES: usize = 6;
/// What stands where lines were left out.
const CUT: &str = "[…]";

/// Returns the lines that mention the references, with lines around them as far as `room` tokens go; none if nothing fits.
///
/// Lines with the most different references come first into the room, and then those nearest to them; what is shown stays in
/// the order of the message, and every cut is marked.
pub(super) fn excerpt_lines(
    text: &str,
    finder: &ReferenceFinder,
    references: &[String],
    room: u64,
) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut mentions: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut found = Vec::new();
        finder.find(line, |index| found.push(index));
        found.sort_unstable();
        found.dedup();
        if !found.is_empty() {
            mentions.push((at, found.len()));
        }
    }
    mentions.sort_by_key(|(at, count)| (usize::MAX - count, *at));
    let mut chosen: Vec<Option<String>> = vec![None; lines.len()];
    let mut left = room;
    let mut choose = |at: usize, left: &mut u64| -> bool {
        if chosen[at].is_some() || lines[at].trim().is_empty() {
            return true;
        }
        let line = shortened(lines[at], references);
        let size = tokens::count(Encoding::O200k, &line) + 1;
        let fits = size <= *left;
        if fits {
            *left -= size;
            chosen[at] = Some(line);
        }
        fits
    };
    let mut anchors = Vec::new();
    for (at, _) in &mentions {
        if choose(*at, &mut left) {
            anchors.push(*at);
        }
    }
    'context: for distance in 1..=CONTEXT_LINES {
        for anchor in &anchors {
            // What follows a mention says more about it than what stands before.
            let near = [anchor.checked_add(distance), anchor.checked_sub(distance)];
            for at in near.into_iter().flatten().filter(|at| *at < lines.len()) {
                if !choose(at, &mut left) {
                    break 'context;
                }
            }
        }
    }
    join(&lines, &chosen)
}

/// Joins the chosen lines, with a mark for each cut.
fn join(lines: &[&str], chosen: &[Option<String>]) -> Option<String> {
    let mut out = String::new();
    let mut is_cut = false;
    for (line, chosen) in lines.iter().zip(chosen) {
        match chosen {
            Some(text) => {
                if is_cut {
                    out.push_str(CUT);
                    out.push('\n');
                }
                out.push_str(text);
                out.push('\n');
                is_cut = false;
            }
            None => is_cut |= !line.trim().is_empty(),
        }
    }
    if out.is_empty() {
        return None;
    }
    if is_cut {
        out.push_str(CUT);
    }
    Some(out.trim_end().to_owned())
}

/// Cuts a long line around the first reference that it mentions. What follows a name says more about it than what stands before.
fn shortened(line: &str, references: &[String]) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let found = references
        .iter()
        .filter_map(|reference| line.find(reference.as_str()));
    let start = found.min().unwrap_or(0).saturating_sub(MAX_LINE_BYTES / 4);
    let start = line.floor_char_boundary(start);
    let end = line.floor_char_boundary(start + MAX_LINE_BYTES);
    let before = if start > 0 { CUT } else { "" };
    let after = if end < line.len() { CUT } else { "" };
    format!("{before}{}{after}", &line[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, reference: &str, room: u64) -> Option<String> {
        let finder = ReferenceFinder::new([reference]);
        excerpt_lines(text, &finder, &[reference.to_owned()], room)
    }

    #[test]
    fn lines_around_a_mention_are_quoted_and_cuts_are_marked() {
        let lines: Vec<String> = (0..40).map(|n| format!("line {n} of many")).collect();
        let text = lines
            .join("\n")
            .replace("line 20 of", "line 20 RETRY_BUDGET of");
        insta::assert_snapshot!(excerpt(&text, "RETRY_BUDGET", 40).unwrap_or_default(), @r"
        […]
        line 18 of many
        line 19 of many
        line 20 RETRY_BUDGET of many
        line 21 of many
        line 22 of many
        […]
        ");
        assert_eq!(excerpt(&text, "NOWHERE_AT_ALL", 40), None);
        assert_eq!(excerpt(&text, "RETRY_BUDGET", 2), None);
    }

    #[test]
    fn a_long_line_keeps_what_follows_the_name() {
        let line = format!(
            "{} huge_ident = 31337 {}",
            "x ".repeat(5_000),
            "y ".repeat(5_000)
        );
        let quoted = excerpt(&line, "huge_ident", 400).unwrap_or_default();
        assert!(quoted.contains("huge_ident = 31337"), "{quoted}");
        assert!(quoted.starts_with(CUT) && quoted.ends_with(CUT));
    }
}
