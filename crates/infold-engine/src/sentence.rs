//! Splits texts into sentences, in any script, and separates prose from data.

use std::ops::Range;

/// A sentence of a text, without the marks of a list or heading before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// The words, a slice of the text.
    pub text: &'a str,
    /// The paragraph of the sentence, counted from zero.
    pub paragraph: usize,
    /// Whether the sentence is in a fenced block of code.
    pub is_code: bool,
}

/// The parts of a line that are not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepWhole {
    /// Every end of a sentence splits, also within a quotation.
    Nothing,
    /// Quotations and inline code stay in one sentence.
    Quotations,
}

/// Calls `visit` with each sentence of a text, in order.
pub fn for_each<'a>(text: &'a str, mut visit: impl FnMut(Sentence<'a>)) {
    let mut paragraph = 0;
    let mut is_code = false;
    let mut start: Option<usize> = None;
    let mut end = 0;
    let at = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut flush = |start: &mut Option<usize>, end: usize, paragraph, is_code| {
        if let Some(from) = start.take() {
            let line = without_list_mark(&text[from..end]);
            for range in ranges(line, KeepWhole::Nothing) {
                let text = line[range].trim();
                if text.chars().any(char::is_alphanumeric) {
                    visit(Sentence {
                        text,
                        paragraph,
                        is_code,
                    });
                }
            }
        }
    };
    for line in text.lines() {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let wraps = start.is_some_and(|from| is_wrapped(&text[from..end], trimmed)) && !is_code;
        if is_fence || trimmed.is_empty() || !wraps {
            flush(&mut start, end, paragraph, is_code);
        }
        if is_fence {
            is_code = !is_code;
            paragraph += 1;
        } else if trimmed.is_empty() {
            paragraph += 1;
        } else {
            start.get_or_insert(at(line));
            end = at(line) + line.len();
        }
    }
    flush(&mut start, end, paragraph, is_code);
}

/// Says whether the line `next` continues a sentence that a text editor wrapped.
fn is_wrapped(before: &str, next: &str) -> bool {
    let last = before.lines().next_back().unwrap_or_default().trim_end();
    last.len() >= 50
        && !last.ends_with(['.', '!', '?', ':', ';', '。', '！', '？'])
        && next.starts_with(char::is_lowercase)
}

/// Removes the marks that make a line an item, a heading or a quotation.
fn without_list_mark(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(['-', '*', '#', '>', '•', '·', ' ', '\t']);
    if rest.is_empty() { line } else { rest }
}

/// Returns the sentences of a line, each with the space behind it.
pub fn ranges(line: &str, whole: KeepWhole) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut nesting = Nesting::default();
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        let rest = &line[end..];
        let splits = match whole {
            KeepWhole::Nothing => ends_sentence(c, &line[start..at], rest),
            KeepWhole::Quotations => {
                nesting.read(c, rest);
                let closed = rest.trim_start_matches(['"', '”', '»', ')', '*', '_', '\'', '’']);
                if nesting.ends_sentence(c, &line[start..at], rest, closed) {
                    // Closing marks belong to the sentence that they end.
                    if matches!(c, '.' | '!' | '?' | '…') {
                        end = line.len() - closed.len();
                    }
                    true
                } else {
                    false
                }
            }
        };
        if !splits {
            continue;
        }
        while let Some((_, c)) = chars.next_if(|(at, _)| *at < end) {
            nesting.quote = nesting.quote.filter(|_| !matches!(c, '"' | '”'));
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
    out
}

/// Says whether a mark between two texts ends a sentence, where quotations are split too.
fn ends_sentence(mark: char, before: &str, after: &str) -> bool {
    match mark {
        '。' | '！' | '？' => true,
        '.' => {
            let next = after.trim_start().chars().next();
            let word = last_word(before, &['(', '[']);
            // A day: "12. März".
            let is_day =
                is_number(word) && word.len() <= 2 && next.is_some_and(char::is_alphabetic);
            after.starts_with(char::is_whitespace)
                && !(is_day || next.is_some_and(char::is_lowercase) || is_abbreviated(word, before))
        }
        '!' | '?' => after.starts_with(char::is_whitespace),
        _ => false,
    }
}

/// The quotations and code at a place of a line.
#[derive(Default)]
struct Nesting {
    is_code: bool,
    /// The mark that closes the quotation.
    quote: Option<char>,
    /// The number of open Japanese quotations.
    depth: u32,
}

impl Nesting {
    /// Reads one character of the line; `rest` follows it.
    fn read(&mut self, c: char, rest: &str) {
        match c {
            '`' => self.is_code = !self.is_code,
            '"' if self.quote == Some('"') => self.quote = None,
            '"' if self.quote.is_none() => self.quote = rest.contains('"').then_some('"'),
            '“' | '„' if self.quote.is_none() => {
                self.quote = rest.contains(['”', '“']).then_some('”');
            }
            '”' => self.quote = None,
            '「' | '『' => self.depth += 1,
            '」' | '』' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Says whether a mark ends a sentence; `closed` is the rest of the line behind closing marks.
    fn ends_sentence(&self, mark: char, before: &str, rest: &str, closed: &str) -> bool {
        if self.is_code && rest.contains('`') || self.depth > 0 {
            return false;
        }
        match mark {
            '。' | '！' | '？' | '｡' => self.quote.is_none(),
            '.' | '!' | '?' | '…' => {
                let is_inside = self.quote.is_some() && closed.len() == rest.len();
                let is_apart = closed.is_empty() || closed.starts_with(char::is_whitespace);
                let first = closed.trim_start().chars().next();
                // A small letter continues the sentence.
                let continues =
                    first.is_some_and(|c| c.is_lowercase() || matches!(c, ',' | ';' | ')'));
                let word = last_word(before, &['(', '[', '"', ',']);
                // A sentence may end with "I", but not with another single letter.
                let is_short = !word.eq_ignore_ascii_case("i") && is_abbreviated(word, before);
                is_apart && !(is_inside || continues || mark == '.' && is_short)
            }
            _ => false,
        }
    }
}

/// Says whether the last word of a text, before a full stop, is an abbreviation, an initial or the number of a list item.
fn is_abbreviated(word: &str, text: &str) -> bool {
    const ABBREVIATIONS: &str = "al approx av bzw ca cf d.h dr e.g ej env etc evtl ex fig i.e inc mr mrs ms no nr p.ej \
        p.ex prof sr sra st u.a usw vgl vs z.b напр см т.д т.е т.п";
    let mut chars = word.chars();
    let is_initial = chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none();
    let word = word.to_lowercase();
    is_initial
        || is_number(&word) && text.trim() == word
        || ABBREVIATIONS.split(' ').any(|short| short == word)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the last word of a text; empty if the text ends with a space or one of the `marks`.
fn last_word<'a>(text: &'a str, marks: &[char]) -> &'a str {
    let mut words = text.rsplit(|c: char| c.is_whitespace() || marks.contains(&c));
    words.next().unwrap_or_default()
}

/// Says whether a text is language rather than data: encoded bytes, JSON, markup, tables, logs.
pub fn is_prose(text: &str) -> bool {
    let (mut letters, mut spaces, mut all, mut wide) = (0_usize, 0_usize, 0_usize, 0_usize);
    let (mut run, mut longest) = (0_usize, 0_usize);
    for c in text.chars() {
        all += 1;
        run += 1;
        if is_wide(c) {
            wide += 1;
            run = 0;
        }
        if c.is_whitespace() {
            spaces += 1;
            longest = longest.max(run - 1);
            run = 0;
        } else if c.is_alphabetic() {
            letters += 1;
        }
    }
    longest = longest.max(run);
    let is_lettered = letters + spaces >= all - all / 3;
    let has_words = if wide * 3 > all {
        wide >= 4
    } else {
        spaces >= 2
    };
    is_lettered && has_words && longest <= 90
}

/// Says whether a character belongs to a script that is written without spaces, or to Hangul.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        for_each(text, |sentence| out.push(sentence.text));
        out
    }

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        assert_eq!(
            all(
                "Use 1.5 e.g. for boats. Is v2.1 out? 1. First item\n- second, z. B. this one!\n请用蓝色。不要红色"
            ),
            [
                "Use 1.5 e.g. for boats.",
                "Is v2.1 out?",
                "1. First item",
                "second, z. B. this one!",
                "请用蓝色。",
                "不要红色",
            ]
        );
        assert_eq!(all("---\n\n***"), [""; 0]);
    }

    #[test]
    fn lines_that_an_editor_broke_are_one_sentence() {
        let text = "The quick brown fox jumps over the lazy dog and then it\nsleeps for a while. Next\nOther line";
        assert_eq!(all(text).len(), 3, "{:?}", all(text));
    }

    #[test]
    fn code_and_paragraphs_are_told_apart() {
        let mut found = Vec::new();
        for_each("one\n\ntwo\n```\nlet x = 1;\n```\nthree", |sentence| {
            found.push((sentence.paragraph, sentence.is_code))
        });
        assert_eq!(found, [(0, false), (1, false), (2, true), (3, false)]);
    }

    #[test]
    fn data_is_no_prose() {
        assert!(is_prose("Please keep the deposit at thirty euros for now"));
        assert!(is_prose("登录页面的按钮必须是蓝色的"));
        assert!(is_prose("버튼은 반드시 파란색이어야 합니다"));
        for data in [
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 a b c",
            r#"{"id":1,"ok":true,"list":[1,2,3],"n":{"a":1}}"#,
            "2026-11-02 10:11:12.333 [77] 200 14ms 10.0.0.1",
            "<div><p></p></div>",
        ] {
            assert!(!is_prose(data), "{data}");
        }
    }

    fn cut(line: &str) -> Vec<&str> {
        let ranges = ranges(line, KeepWhole::Quotations).into_iter();
        ranges.map(|range| line[range].trim_end()).collect()
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
}
