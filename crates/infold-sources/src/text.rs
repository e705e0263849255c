//! Escapes invisible characters in untrusted texts, and makes texts of a model safe to post.

/// Escapes characters that a terminal would execute, or that a reader would not see: controls, marks that
/// change the direction of a text, tags, and other invisible ones. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // `\r\n` is one line break.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\t' => shown.push(c),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// As [`visible`], for a place that has one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Says whether a character has an effect without being seen. Joiners stay: some scripts need them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Makes a text fit to be posted with a token: it has no mentions, no commands to the server or to bots, no
/// hidden text and no recognised secret.
pub fn postable(text: &str) -> String {
    let redacted = infold_wire::secrets::text_without_secrets(text);
    let text = visible(redacted.as_deref().unwrap_or(text));
    let mut posted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if is_command(line) {
            let start = line.find('/').unwrap_or_default();
            posted.push_str(&line[..start]);
            posted.push('\\');
            push_without_mentions(&mut posted, &line[start..]);
        } else {
            push_without_mentions(&mut posted, line);
        }
    }
    // Infold recognises its own comments by markers in HTML comments, which a model could forge.
    posted.replace("<!--", "&lt;!--")
}

/// Says whether GitLab, or a bot, would take a line as a command: `/close`, `/label ~x`.
fn is_command(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('/') else {
        return false;
    };
    let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    let (word, after) = rest.split_at(word.unwrap_or(rest.len()));
    !word.is_empty() && after.chars().next().is_none_or(char::is_whitespace)
}

/// Appends a text, with a zero-width space after each `@` that would mention an account.
fn push_without_mentions(to: &mut String, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        to.push(c);
        let is_name = |next: &char| next.is_ascii_alphanumeric() || *next == '_';
        if c == '@' && chars.peek().is_some_and(is_name) {
            to.push('\u{200b}');
        }
    }
}

/// Cuts a text to a number of characters, and says so.
pub fn shortened(text: &str, max_chars: usize, note: &str) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}{note}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_seen() {
        assert_eq!(
            visible("a\u{202e}b\u{200b}\u{e0041}\x1b[2J\r\nc\rd\0\té\u{200d}"),
            "a\\u{202e}b\\u{200b}\\u{e0041}\\u{1b}[2J\nc\\u{d}d\\u{0}\té\u{200d}"
        );
        assert_eq!(visible_line("one\ntwo"), "one two");
    }

    #[test]
    fn posted_text_commands_and_mentions_nobody() {
        let posted =
            postable("/close\n  /label ~x\n/usr/bin/env\n1/2 /merge\n@dependabot merge a@b\n@ x");
        assert_eq!(
            posted,
            "\\/close\n  \\/label ~x\n/usr/bin/env\n1/2 /merge\n@\u{200b}dependabot merge a@\u{200b}b\n@ x"
        );
        assert_eq!(
            postable("<!-- infold:x:start -->"),
            "&lt;!-- infold:x:start -->"
        );
        let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
        assert!(!postable(&format!("it is {key}")).contains(&key));
        assert_eq!(postable("/merge"), "\\/merge");
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(shortened("éàü", 2, "…"), "éà…");
        assert_eq!(shortened("éàü", 3, "…"), "éàü");
    }
}
