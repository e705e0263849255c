//! Cuts a summary into lines and sentences, so that one can go without the bytes of the others changing.

use std::ops::Range;

/// One line of a summary, by its places in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// All of it, with the line break.
    pub range: Range<usize>,
    /// Where the words begin, behind indentation and the marks of a list, heading or quotation.
    pub body: usize,
    pub mark: Mark,
    /// The sentences, each with the space behind it; all of them together are the line from `body` on.
    pub sentences: Vec<Range<usize>>,
    /// Whether it stands in a fenced block.
    pub fenced: bool,
}

/// What a line is by its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Plain,
    Item,
    Heading,
}

/// Cuts a text into lines and those into sentences.
pub fn lines(text: &str) -> Vec<Line> {
    let mut out = Vec::new();
    let (mut at, mut fenced) = (0, false);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let fence = line.trim_start().starts_with("```");
        let (marks, mark) = marks(line);
        let body = range.start + marks;
        let whole = fenced || fence;
        // A request that is quoted as a whole stays or goes as a whole.
        let quoted = super::quote::cited(&line[marks..]).is_some();
        let sentences = match whole || quoted {
            true => std::iter::once(body..range.end).collect(),
            false => sentences(&line[marks..])
                .map(|part| body + part.start..body + part.end)
                .collect(),
        };
        out.push(Line {
            range,
            body,
            mark,
            sentences,
            fenced: whole,
        });
        fenced ^= fence;
    }
    out
}

/// The bytes of indentation and marks that a line starts with.
fn marks(line: &str) -> (usize, Mark) {
    let mut rest = line.trim_start_matches([' ', '\t', '>']);
    let mut mark = Mark::Plain;
    let heading = rest.trim_start_matches('#');
    if heading.len() < rest.len() && heading.starts_with(' ') {
        (rest, mark) = (heading.trim_start(), Mark::Heading);
    }
    let bullet = rest.strip_prefix(['-', '*', '•', '+', '–', '・', '·']);
    if let Some(item) = bullet.filter(|item| item.starts_with([' ', '\t'])) {
        (rest, mark) = (item.trim_start(), Mark::Item);
    }
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() < rest.len() && rest.len() - digits.len() < 4 {
        let item = digits.strip_prefix(['.', ')', '、']);
        if let Some(item) = item.filter(|item| item.starts_with([' ', '\t'])) {
            rest = item.trim_start();
            mark = if mark == Mark::Heading {
                mark
            } else {
                Mark::Item
            };
        }
    }
    for check in ["[ ] ", "[x] ", "[-] ", "[X] "] {
        rest = rest.strip_prefix(check).unwrap_or(rest);
    }
    (line.len() - rest.len(), mark)
}

/// The sentences of a line, each with the space behind it.
pub fn sentences(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let (mut code, mut quote, mut depth) = (false, None, 0_u32);
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        match c {
            '`' => code = !code,
            '"' if quote == Some('"') => quote = None,
            '"' if quote.is_none() => quote = line[end..].contains('"').then_some('"'),
            '“' | '„' if quote.is_none() => {
                quote = line[end..].contains(['”', '“']).then_some('”')
            }
            '”' => quote = None,
            '「' | '『' => depth += 1,
            '」' | '』' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if code && line[end..].contains('`') || depth > 0 {
            continue;
        }
        let rest = &line[end..];
        let ends = match c {
            '。' | '！' | '？' | '｡' => quote.is_none(),
            '.' | '!' | '?' | '…' => {
                // Closing marks belong to the sentence that they end.
                let closed = rest.trim_start_matches(['"', '”', '»', ')', '*', '_', '\'', '’']);
                let inside = quote.is_some() && closed.len() == rest.len();
                end = line.len() - closed.len();
                let apart = closed.is_empty() || closed.starts_with(char::is_whitespace);
                apart && !inside && begins(closed) && !(c == '.' && abbreviates(&line[start..at]))
            }
            _ => false,
        };
        if !ends {
            continue;
        }
        while chars.peek().is_some_and(|(at, _)| *at < end) {
            if chars.next().is_some_and(|(_, c)| matches!(c, '"' | '”')) {
                quote = None;
            }
        }
        while let Some((at, space)) = chars.next_if(|(_, c)| c.is_whitespace()) {
            end = at + space.len_utf8();
        }
        out.push(start..end);
        start = end;
    }
    if start < line.len() {
        out.push(start..line.len());
    }
    out.into_iter()
}

/// Says whether what follows may begin a sentence: small letters carry one on.
fn begins(rest: &str) -> bool {
    let first = rest.trim_start().chars().next();
    !first.is_some_and(|c| c.is_lowercase() || matches!(c, ',' | ';' | ')'))
}

/// Says whether the last word before a full stop is an abbreviation, an initial or a number of a list.
fn abbreviates(text: &str) -> bool {
    const SHORT: [&str; 34] = [
        "e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "prof", "st", "no", "fig", "al",
        "approx", "cf", "inc", "z.b", "bzw", "ca", "usw", "d.h", "u.a", "nr", "vgl", "evtl",
        "p.ex", "ex", "sr", "sra", "т.е", "т.д", "т.п", "напр", "см",
    ];
    let word = text.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | ','));
    let word = word.map(str::to_lowercase).next().unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_alphabetic) && word != "i";
    let number = text.trim_start() == word && word.chars().all(|c| c.is_ascii_digit());
    initial || number && !word.is_empty() || SHORT.contains(&&*word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str) -> Vec<&str> {
        sentences(line)
            .map(|range| line[range].trim_end())
            .collect()
    }

    #[test]
    fn a_line_is_cut_where_sentences_end() {
        assert_eq!(cut("One. Two! Three?"), ["One.", "Two!", "Three?"]);
        assert_eq!(
            cut("See src/a.rs v1.2. Then e.g. This."),
            ["See src/a.rs v1.2.", "Then e.g. This."]
        );
        assert_eq!(cut("Run `a. B` now. Done"), ["Run `a. B` now.", "Done"]);
        assert_eq!(
            cut("He said \"Stop. Now.\" Then left."),
            ["He said \"Stop. Now.\"", "Then left."]
        );
        assert_eq!(
            cut("用户要求改名。已完成。"),
            ["用户要求改名。", "已完成。"]
        );
        assert_eq!(
            cut("彼は「はい。」と言った。次。"),
            ["彼は「はい。」と言った。", "次。"]
        );
        assert_eq!(
            cut("Siehe z.B. Datei 3. Danach weiter."),
            ["Siehe z.B. Datei 3.", "Danach weiter."]
        );
        assert_eq!(cut("it ends... and goes on"), ["it ends... and goes on"]);
    }

    #[test]
    fn lines_know_their_marks_and_lose_no_byte() {
        let text = "## Goal\r\n- [ ] One. Two.\n  3. **Three**: x\n```\ncode. More.\n```\n\nlast";
        let lines = lines(text);
        let marks: Vec<Mark> = lines.iter().map(|line| line.mark).collect();
        assert_eq!(marks[..3], [Mark::Heading, Mark::Item, Mark::Item]);
        assert_eq!(&text[lines[1].body..lines[1].range.end], "One. Two.\n");
        assert!(lines[4].fenced && lines[4].sentences.len() == 1 && !lines[7].fenced);
        let mut at = 0;
        for line in &lines {
            assert_eq!(line.range.start, at);
            let first = line
                .sentences
                .first()
                .map_or(line.body, |range| range.start);
            assert_eq!(first, line.body);
            assert!(
                line.sentences
                    .windows(2)
                    .all(|two| two[0].end == two[1].start)
            );
            assert_eq!(
                line.sentences
                    .last()
                    .map_or(line.range.end, |range| range.end),
                line.range.end
            );
            at = line.range.end;
        }
        assert_eq!(at, text.len());
    }
}
