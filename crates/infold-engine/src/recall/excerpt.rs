//! Chooses the lines of a hidden message that say something about references.

use infold_wire::tokens::{self, Encoding};

use crate::references::ReferenceFinder;

/// A longer line is cut around what it mentions.
const MAX_LINE_CHARS: usize = 400;
/// How many lines around a mention are of use.
const CONTEXT_LINES: usize = 6;
/// What stands where lines were left out.
const CUT: &str = "[…]";

/// Returns the lines that mention the references, with lines around them as far as `room` tokens go; none if nothing fits.
///
/// Lines with the most different references come first into the room, and then those nearest to them; what is shown stays in
/// the order of the message, and every cut is marked.
pub(super) fn excerpt_lines(text: &str, finder: &ReferenceFinder, room: u64) -> Option<String> {
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
        let line = shortened(lines[at], finder);
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

/// Cuts a long line around the first reference that it mentions.
fn shortened(line: &str, finder: &ReferenceFinder) -> String {
    if line.chars().count() <= MAX_LINE_CHARS {
        return line.to_owned();
    }
    // The window is found by halves, since the finder does not say where a reference stands.
    let holds = |part: &str| {
        let mut is_found = false;
        finder.find(part, |_| is_found = true);
        is_found
    };
    let mut part = line;
    while part.chars().count() > MAX_LINE_CHARS {
        let bytes = part.len();
        let thirds = [
            &part[..part.floor_char_boundary(bytes * 2 / 3)],
            &part[part.ceil_char_boundary(bytes / 3)..],
        ];
        part = thirds
            .into_iter()
            .find(|third| holds(third))
            .unwrap_or(thirds[0]);
    }
    let start = part.as_ptr() as usize - line.as_ptr() as usize;
    let before = if start > 0 { CUT } else { "" };
    let after = if start + part.len() < line.len() {
        CUT
    } else {
        ""
    };
    format!("{before}{part}{after}")
}
