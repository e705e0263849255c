//! Finds the code fences of a text: tags inside one are quoted.

/// The insides of a text's code fences, in order. A fence that is not closed does not count.
pub struct CodeFences(Vec<(usize, usize)>);

impl CodeFences {
    /// Finds the fences of `text`.
    pub fn of(text: &str) -> CodeFences {
        let mut found = Vec::new();
        let mut open: Option<(usize, &str)> = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let marker = fence_marker(line.trim());
            match (open, marker) {
                (None, Some(marker)) => open = Some((at, marker)),
                (Some((from, opener)), Some(closer))
                    if closer.starts_with(opener) && closer == line.trim() =>
                {
                    found.push((from, at));
                    open = None;
                }
                _ => {}
            }
            at += line.len();
        }
        CodeFences(found)
    }

    /// Returns whether one fence contains everything between `from` and `to`.
    pub fn hold(&self, from: usize, to: usize) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < from);
        after > 0 && to <= self.0[after - 1].1
    }
}

/// Returns the backticks or tildes that a fence's line starts with.
fn fence_marker(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    (length >= 3).then(|| &line[..length])
}
