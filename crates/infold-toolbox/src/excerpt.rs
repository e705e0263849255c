//! Excerpts of large texts for a model.

use std::fmt::Display;

/// Returns `text` if it has at most `max_bytes`, else its beginning and end with a line between them that says how
/// much is left out and how to get it.
///
/// Cuts at ends of lines where they are near, and never within a character. The result is no longer than `max_bytes`,
/// unless that is too short for the line between.
pub fn head_and_tail(text: &str, max_bytes: usize, how_to_get_the_rest: &str) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    // The room for the line is that of the largest number that it can have.
    let max_left_out = text.len().saturating_add(left_out_before(text));
    let room = max_bytes.saturating_sub(omission(max_left_out, how_to_get_the_rest).len());
    // The end has as much room as the beginning: errors and the outcome of a command are at the end.
    let head = head_end(text, room / 2);
    let tail = tail_start(text, text.len() - (room - room / 2)).max(head);
    let left_out = (tail - head).saturating_add(left_out_before(&text[head..tail]));
    let line = omission(left_out, how_to_get_the_rest);
    format!("{}{line}{}", &text[..head], &text[tail..])
}

/// Returns the bytes that earlier cuts of a text left out, as the lines in their places say.
fn left_out_before(text: &str) -> usize {
    let lines = text.split(OMISSION_START).skip(1);
    let counts = lines.filter_map(|line| {
        let (bytes, rest) = line.split_once(' ')?;
        rest.starts_with(OMITTED).then(|| bytes.parse().ok())?
    });
    counts.fold(0, usize::saturating_add)
}

/// The parts of the line that stands where bytes were left out, before and after their number.
const OMISSION_START: &str = "\n[… ";
const OMITTED: &str = "bytes left out: ";

/// Returns the line that stands where bytes were left out.
pub(crate) fn omission(bytes: impl Display, how_to_get_the_rest: &str) -> String {
    format!("{OMISSION_START}{bytes} {OMITTED}{how_to_get_the_rest} …]\n")
}

/// Returns where the beginning ends: after the last whole line, if that is not much shorter.
fn head_end(text: &str, max_bytes: usize) -> usize {
    let end = text.floor_char_boundary(max_bytes);
    match text[..end].rfind('\n') {
        Some(line_end) if line_end >= end / 2 => line_end,
        _ => end,
    }
}

/// Returns where the end starts: with the first whole line, if that is not much shorter.
fn tail_start(text: &str, min_start: usize) -> usize {
    let start = text.ceil_char_boundary(min_start);
    match text[start..].find('\n') {
        Some(line_end) if line_end < (text.len() - start) / 2 => start + line_end + 1,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_whole() {
        assert_eq!(head_and_tail("a\nb\n", 4, "recall 3"), "a\nb\n");
    }

    #[test]
    fn a_long_text_is_cut_at_lines() {
        let lines: Vec<String> = (1..=1000).map(|line| format!("line {line}\n")).collect();
        let shown = head_and_tail(&lines.concat(), 100, "recall 3");
        assert_eq!(
            shown,
            "line 1\nline 2\nline 3\nline 4\n[… 8838 bytes left out: recall 3 …]\nline 998\nline 999\nline 1000\n"
        );
    }

    #[test]
    fn no_cut_is_within_a_character_and_the_length_holds() {
        for text in ["é".repeat(500), "漢字\n".repeat(200), "🦀".repeat(300)] {
            for max_bytes in 60..400 {
                let shown = head_and_tail(&text, max_bytes, "recall 3");
                assert!(shown.len() <= max_bytes, "{max_bytes}: {}", shown.len());
                let (head, rest) = shown.split_once("\n[… ").unwrap();
                let (bytes, rest) = rest.split_once(' ').unwrap();
                let tail = rest.split_once(" …]\n").unwrap().1;
                let bytes: usize = bytes.parse().unwrap();
                assert!(text.starts_with(head) && text.ends_with(tail));
                assert_eq!(head.len() + bytes + tail.len(), text.len());
            }
        }
    }

    #[test]
    fn what_was_left_out_before_counts_when_a_text_is_cut_again() {
        let whole = "0123456789\n".repeat(1000);
        let cut = head_and_tail(&whole, 2000, "it was too long");
        let again = head_and_tail(&cut, 300, "it was too long");
        // The beginning, the number and the end of a text that was cut.
        let parts = |text: &str| {
            let (head, rest) = text.split_once(OMISSION_START).unwrap();
            let (bytes, rest) = rest.split_once(' ').unwrap();
            let tail = rest.split_once(" …]\n").unwrap().1;
            (head.len() + tail.len(), bytes.parse::<usize>().unwrap())
        };
        let (kept, first) = parts(&cut);
        assert_eq!(kept + first, whole.len());
        // The line of the first cut is left out by the second.
        let (kept, second) = parts(&again);
        let line = omission(first, "it was too long").len();
        assert_eq!(kept + second, whole.len() + line);
        assert!(again.len() <= 300);
    }

    #[test]
    fn no_room_leaves_the_line_alone() {
        assert_eq!(
            head_and_tail("abcdef", 3, "recall 3"),
            "\n[… 6 bytes left out: recall 3 …]\n"
        );
    }
}
