//! Shows what changes in a text, line by line.

use crate::mask::mask;

/// Longer lines are cut to what differs in them.
const MAX_COLUMNS: usize = 160;

/// Returns the lines that go, with `-` before them, and those that come, with `+`.
///
/// Lines that stay are not shown: keys may stand in them.
pub fn diff(before: &str, after: &str) -> Vec<String> {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let mut out = Vec::new();
    let (mut a, mut b) = (0, 0);
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            (a, b) = (a + 1, b + 1);
            continue;
        }
        // The nearest lines that are the same again.
        let (skip_old, skip_new) = resume(&old[a..], &new[b..]);
        let (gone, come) = (&old[a..a + skip_old], &new[b..b + skip_new]);
        // Keys may stand in them, too.
        let hide =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| mask(line)).collect() };
        let (gone, come) = (hide(gone), hide(come));
        for (at, line) in gone.iter().enumerate() {
            out.push(format!(
                "- {}",
                shortened(line, come.get(at).map(String::as_str))
            ));
        }
        for (at, line) in come.iter().enumerate() {
            out.push(format!(
                "+ {}",
                shortened(line, gone.get(at).map(String::as_str))
            ));
        }
        (a, b) = (a + skip_old, b + skip_new);
    }
    out
}

fn resume(old: &[&str], new: &[&str]) -> (usize, usize) {
    for sum in 1..old.len() + new.len() {
        for skip_old in 0..=sum.min(old.len()) {
            let skip_new = sum - skip_old;
            if skip_old < old.len() && skip_new < new.len() && old[skip_old] == new[skip_new] {
                return (skip_old, skip_new);
            }
        }
    }
    (old.len(), new.len())
}

/// Cuts a long line to what differs from another, so that nothing else of it is shown.
fn shortened(line: &str, other: Option<&str>) -> String {
    if line.chars().count() <= MAX_COLUMNS {
        return line.to_owned();
    }
    let chars: Vec<char> = line.chars().collect();
    let other: Vec<char> = other.unwrap_or_default().chars().collect();
    let same = |(a, b): &(&char, &char)| a == b;
    let start = chars.iter().zip(&other).take_while(same).count();
    let rest = chars.len().min(other.len()) - start;
    let end = chars
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let middle: String = chars[start..chars.len() - end]
        .iter()
        .take(MAX_COLUMNS)
        .collect();
    format!("…{middle}…")
}
