//! Reads from shell commands which files they show or remove.

/// Returns the file of a command that only shows that file: `sed -n 1,20p a.rs`, `cd x && grep foo a.rs | head`.
pub fn viewed_file(command: &str) -> Option<String> {
    const TOOLS: [&str; 9] = [
        "cat", "sed", "head", "tail", "grep", "rg", "nl", "less", "bat",
    ];
    let (before, last) = command.rsplit_once("&&").unwrap_or(("", command));
    let shown = last.split('|').next()?.trim();
    let tool = shown.split_whitespace().next()?;
    if !TOOLS.contains(&tool) || shown.contains(['>', ';', '`', '\n']) || shown.contains(" -i") {
        return None;
    }
    let is_path = |word: &&str| {
        !word.starts_with('-') && !word.contains(['*', '{', ',', '"', '\'', '\\', '['])
    };
    let mut paths = shown
        .split_whitespace()
        .skip(1)
        .filter(is_path)
        .filter(|word| is_file(word));
    let path = paths.next()?;
    if paths.next().is_some() {
        return None;
    }
    Some(resolve(before, path))
}

/// Returns the files that a command removes: `rm a.rs`, `cd x && git rm -q a.rs b.rs`.
pub fn removed_files(command: &str) -> Vec<String> {
    const MAX_FILES: usize = 50;
    let mut out = Vec::new();
    for part in command
        .split(['\n', ';', '|', '&'])
        .filter(|part| part.contains("rm "))
    {
        let mut words = part.split_whitespace();
        let removes = match words.next() {
            Some("rm") => true,
            Some("git") => words.next() == Some("rm"),
            _ => false,
        };
        if removes && !part.contains(['*', '$', '`', '"', '\'', '>']) && !part.contains("--cached")
        {
            let paths = words.filter(|word| is_file(word) && !word.starts_with('-'));
            out.extend(paths.take(MAX_FILES).map(|path| resolve(command, path)));
        }
    }
    out.truncate(MAX_FILES);
    out
}

/// Returns a path relative to where the command started, which may change the directory first.
fn resolve(command: &str, path: &str) -> String {
    let folder = command.trim().strip_prefix("cd ");
    let folder = folder.map(|rest| rest.split("&&").next().unwrap_or(rest).trim());
    match folder {
        Some(folder) if !path.starts_with(['/', '~']) && !folder.contains(char::is_whitespace) => {
            format!("{}/{path}", folder.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// Says whether a word ends like a file name: `a.rs`, not `1.5` or `..`.
fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=5).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_one_file_is_no_command() {
        assert_eq!(viewed_file("sed -n 1,20p a.rs").as_deref(), Some("a.rs"));
        let there = viewed_file("cd x/ && grep foo a.rs | head");
        assert_eq!(there.as_deref(), Some("x/a.rs"));
        for command in [
            "cat a.rs b.rs",
            "cat a.rs > b",
            "cargo test",
            "sed -i s/a/b/ a.rs",
            "",
        ] {
            assert_eq!(viewed_file(command), None, "{command}");
        }
    }

    #[test]
    fn removed_files_are_named() {
        assert_eq!(
            removed_files("cd /code && git rm -q a.py b.py && ls"),
            ["/code/a.py", "/code/b.py"]
        );
        assert_eq!(removed_files("make; rm -f /tmp/x.log"), ["/tmp/x.log"]);
        for command in [
            "rm -rf target",
            "git rm --cached a.py",
            "rm *.py",
            "docker rm x",
            "charm a.py",
        ] {
            assert!(removed_files(command).is_empty(), "{command}");
        }
    }
}
