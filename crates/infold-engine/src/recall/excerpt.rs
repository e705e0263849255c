//! Chooses the lines of a hidden message that say something about references.

use infold_wire::tokens::{self, Encoding};

use super::source::SourceText;

/// A longer line is cut around the mentioned name.
const MAX_LINE_BYTES: usize = 400;
/// The number of useful lines around a mention.
const CONTEXT_LINES: usize = 3;
/// The number of lines if only a call names it, because the model did not ask.
const CALL_CONTEXT_LINES: usize = 1;
/// The number of lines with names that are taken, if all of them say something about the same names.
const SAME_ANCHORS: usize = 2;
/// The mark for omitted lines.
const CUT: &str = "[…]";

/// Returns the lines that say something about the names, with surrounding lines up to `room` tokens; `None` if nothing
/// fits.
///
/// Lines about names that no line before them is about are added first, then the other lines with a name, then those
/// nearest to them; the excerpt stays in the order of the message, and every cut is marked.
pub(super) fn excerpt_lines(source: &SourceText, room: u64) -> Option<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut chosen: Vec<Option<String>> = vec![None; lines.len()];
    let mut left = room;
    let mut choose = |at: usize, left: &mut u64| -> bool {
        if chosen[at].is_some() || lines[at].trim().is_empty() {
            return true;
        }
        let line = shortened(lines[at], source.lines[at].first);
        let size = tokens::count(Encoding::O200k, &line) + 1;
        let fits = size <= *left;
        if fits {
            *left -= size;
            chosen[at] = Some(line);
        }
        fits
    };
    let mut anchors = Vec::new();
    for at in mention_order(source) {
        if choose(at, &mut left) {
            anchors.push(at);
        }
    }
    let most = if source.is_typed {
        CONTEXT_LINES
    } else {
        CALL_CONTEXT_LINES
    };
    'context: for distance in 1..=most {
        for anchor in &anchors {
            // The lines after a mention say more about it than the lines before.
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

/// Returns the lines with names in the order in which they are added: each has statements about names that those before
/// it lack.
fn mention_order(source: &SourceText) -> Vec<usize> {
    let lines = &source.lines;
    let same = if source.is_typed { SAME_ANCHORS } else { 1 };
    let mut left: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].held != 0).collect();
    let mut order = Vec::new();
    let mut done = 0_u64;
    if left.is_empty() && source.about != 0 {
        // The beginning of a result, if the call is about the names.
        left.extend((!lines.is_empty()).then_some(0));
    }
    while let Some(best) = (0..left.len()).max_by_key(|at| {
        let line = lines[left[*at]];
        let (new, stated, held) = (line.stated & !done, line.stated, line.held);
        (
            new.count_ones(),
            stated.count_ones(),
            held.count_ones(),
            std::cmp::Reverse(left[*at]),
        )
    }) {
        let at = left.remove(best);
        let is_new = lines[at].stated & !done != 0;
        if order.len() >= same && !is_new {
            break;
        }
        done |= lines[at].stated;
        order.push(at);
    }
    order
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

/// Cuts a long line around the first name in it. The text behind a name says more about it than the text before.
fn shortened(line: &str, first: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(first.saturating_sub(MAX_LINE_BYTES / 4));
    let end = line.floor_char_boundary(start + MAX_LINE_BYTES);
    let before = if start > 0 { CUT } else { "" };
    let after = if end < line.len() { CUT } else { "" };
    format!("{before}{}{after}", &line[start..end])
}

#[cfg(test)]
mod tests {
    use super::super::name::NameList;
    use super::*;

    fn excerpt(text: &str, reference: &str, room: u64) -> Option<String> {
        let mut names = NameList::default();
        names.add_arguments(reference);
        let seq = infold_log::Seq::new(1).expect("counted from one");
        let mut source = SourceText::of(seq, "the user", text.to_owned(), &names.list);
        source.is_typed = true;
        excerpt_lines(&source, room)
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
