//! Hides keys in lines that are shown.

/// The text that is shown in place of a key.
const HIDDEN: &str = "…";

/// Returns a line with the values of its members that look like keys hidden.
pub(crate) fn mask(line: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.find(is_name).unwrap_or(rest.len());
            let (other, after) = rest.split_at(next);
            out.push_str(other);
            rest = after;
            continue;
        }
        let (name, after) = rest.split_at(end);
        if looks_like_key(name) {
            out.push_str(HIDDEN);
            rest = after;
            continue;
        }
        out.push_str(name);
        rest = after;
        if let Some((lead, value)) = is_secret(name).then(|| value(rest)).flatten() {
            let length = value_length(&rest[lead..][..value]);
            out.push_str(&rest[..lead]);
            out.push_str(&hidden(&rest[lead..lead + length]));
            rest = &rest[lead + length..];
        }
    }
    out
}

/// A key as well-known providers write theirs, wherever it stands.
fn looks_like_key(word: &str) -> bool {
    const STARTS: [&str; 6] = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "AIza"];
    STARTS
        .iter()
        .any(|start| word.starts_with(start) && word.len() > start.len())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [
        "key",
        "keys",
        "token",
        "secret",
        "password",
        "authorization",
        "credential",
        "credentials",
    ];
    ends.iter().any(|end| name.ends_with(end))
}

/// Returns where the value of a name begins behind it, and how long the line is from there.
fn value(after: &str) -> Option<(usize, usize)> {
    let quoted = after.trim_start_matches(['"', '\'']).trim_start();
    let rest = quoted.strip_prefix([':', '='])?.trim_start();
    (!rest.is_empty()).then_some((after.len() - rest.len(), rest.len()))
}

fn value_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    match first {
        '"' | '\'' => {
            let mut is_escaped = false;
            for (at, c) in chars {
                if c == first && !is_escaped {
                    return at + 1;
                }
                is_escaped = c == '\\' && !is_escaped;
            }
            text.len()
        }
        '[' => text.find(']').map_or(text.len(), |at| at + 1),
        // Its members are looked at one by one.
        '{' => 0,
        _ => text.find([',', '}']).unwrap_or(text.len()),
    }
}

fn hidden(value: &str) -> String {
    match value.chars().next() {
        None => String::new(),
        Some(quote @ ('"' | '\'')) => format!("{quote}{HIDDEN}{quote}"),
        Some('[') => format!("[{HIDDEN}]"),
        Some(_) => HIDDEN.to_owned(),
    }
}
