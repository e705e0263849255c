//! Splits texts into sentences, in any script, and tells prose from data.

/// A sentence of a text, without the marks of a list or heading before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// Its words, a piece of the text.
    pub text: &'a str,
    /// The paragraph it stands in, counted from zero.
    pub paragraph: usize,
    /// It stands in a fenced block of code.
    pub is_code: bool,
}

/// Calls `found` with each sentence of a text, in order.
pub fn each<'a>(text: &'a str, mut found: impl FnMut(Sentence<'a>)) {
    let mut paragraph = 0;
    let mut is_code = false;
    let mut start: Option<usize> = None;
    let mut end = 0;
    let at = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut flush = |start: &mut Option<usize>, end: usize, paragraph, is_code| {
        if let Some(from) = start.take() {
            split(&text[from..end], |text| {
                found(Sentence {
                    text,
                    paragraph,
                    is_code,
                })
            });
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

/// Says whether the line `next` goes on with a sentence that a text editor broke.
fn is_wrapped(before: &str, next: &str) -> bool {
    let last = before.lines().next_back().unwrap_or_default().trim_end();
    last.len() >= 50
        && !last.ends_with(['.', '!', '?', ':', ';', '。', '！', '？'])
        && next.starts_with(char::is_lowercase)
}

/// Calls `found` with each sentence of one line.
fn split<'a>(line: &'a str, mut found: impl FnMut(&'a str)) {
    let line = without_mark(line);
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let after = chars.peek().map(|(_, c)| *c);
                after.is_some_and(char::is_whitespace)
                    && !(c == '.' && is_abbreviated(&line[start..at], &line[at + 1..]))
            }
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            push(&line[start..end], &mut found);
            start = end;
        }
    }
    push(&line[start..], &mut found);
}

fn push<'a>(sentence: &'a str, found: &mut impl FnMut(&'a str)) {
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        found(sentence);
    }
}

/// Takes off what makes a line an item, a heading or a quotation.
fn without_mark(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(['-', '*', '#', '>', '•', '·', ' ', '\t']);
    if rest.is_empty() { line } else { rest }
}

/// Says whether the full stop after `before` ends a shortened word or a number of an item, not a sentence.
fn is_abbreviated(before: &str, after: &str) -> bool {
    const SHORT: [&str; 28] = [
        "e.g", "i.e", "etc", "vs", "cf", "approx", "no", "nr", "dr", "mr", "mrs", "ms", "prof",
        "st", "fig", "z.b", "d.h", "bzw", "ca", "u.a", "usw", "p.ej", "ej", "av", "env", "т.е",
        "т.д", "см",
    ];
    let word = before
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '['))
        .next()
        .unwrap_or_default();
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let next = after.trim_start().chars().next();
    // The number of an item, or a day: "12. März".
    is_number && (before.trim() == word || word.len() <= 2 && next.is_some_and(char::is_alphabetic))
        || word.chars().count() == 1 && word.chars().all(char::is_alphabetic)
        || next.is_some_and(char::is_lowercase)
        || SHORT.contains(&&*word.to_lowercase())
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
    let enough = letters + spaces >= all - all / 3;
    let words = if wide * 3 > all {
        wide >= 4
    } else {
        spaces >= 2
    };
    enough && words && longest <= 90
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
        each(text, |sentence| out.push(sentence.text));
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
        let mut seen = Vec::new();
        each("one\n\ntwo\n```\nlet x = 1;\n```\nthree", |sentence| {
            seen.push((sentence.paragraph, sentence.is_code))
        });
        assert_eq!(seen, [(0, false), (1, false), (2, true), (3, false)]);
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
}
