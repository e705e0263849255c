use super::Layer;
use super::problem::{ConfigError, Problem, nearest};
use super::yaml::{Kind, Member, Node, Place};
use crate::profile::{Origin, Set};

/// Looks up a variable of the environment.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads typed values out of a tree; goes on after an error, to find them all.
pub(super) struct Reader<'a> {
    pub layers: &'a [Layer<'a>],
    pub env: Lookup<'a>,
    pub errors: Vec<ConfigError>,
    pub warnings: Vec<String>,
}

/// A mapping whose keys are known to be valid.
pub(super) struct Fields<'n> {
    path: String,
    members: &'n [Member],
}

/// A text with its variables filled in.
pub(super) struct Scalar {
    pub text: String,
    /// May be a number or a truth.
    plain: bool,
    /// Came out of a variable, at least in part.
    pub filled: bool,
}

impl<'n> Fields<'n> {
    pub fn get(&self, key: &str) -> Option<&'n Member> {
        self.members.iter().find(|member| member.key == key)
    }

    pub fn all(&self) -> &'n [Member] {
        self.members
    }

    pub fn path(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

impl Reader<'_> {
    pub fn line(&self, place: Place) -> Origin {
        Origin::Line {
            file: self.layers[place.file].file.to_owned(),
            line: place.line,
        }
    }

    pub fn wrong(&mut self, line: Place, problem: Problem) {
        let origin = self.line(line);
        self.errors.push(ConfigError { origin, problem });
    }

    pub fn warn(&mut self, line: Place, text: impl std::fmt::Display) {
        self.warnings.push(format!("{}: {text}", self.line(line)));
    }

    /// A mapping with any keys; nothing counts as an empty one.
    pub fn open<'n>(&mut self, path: &str, node: &'n Node) -> Fields<'n> {
        let members: &[Member] = match &node.kind {
            Kind::Map(members) => members,
            _ if node.is_null() => &[],
            _ => {
                let key = if path.is_empty() { "the file" } else { path };
                let found = found(node);
                self.wrong(node.line, value(key, "a mapping of keys to values", found));
                &[]
            }
        };
        Fields {
            path: path.to_owned(),
            members,
        }
    }

    /// A mapping with these keys.
    pub fn section<'n>(&mut self, path: &str, node: &'n Node, valid: &[&str]) -> Fields<'n> {
        let fields = self.open(path, node);
        for member in fields.members {
            if !valid.contains(&member.key.as_str()) {
                self.unknown(path, member, valid);
            }
        }
        fields
    }

    pub fn unknown(&mut self, path: &str, member: &Member, valid: &[&str]) {
        let place = match path {
            "" => "here".to_owned(),
            path => format!("in `{path}`"),
        };
        let problem = Problem::Key {
            key: shown(&member.key),
            place,
            nearest: nearest(&member.key, valid.iter().copied()),
            valid: valid.iter().map(|&key| key.to_owned()).collect(),
        };
        self.wrong(member.line, problem);
    }

    /// A value of any kind that one scalar can be.
    pub fn value<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        expected: &str,
        parse: impl Fn(&Scalar) -> Option<T>,
    ) -> Option<Set<T>> {
        let member = fields.get(key)?;
        let scalar = self.scalar(&fields.path(key), &member.value, expected)?;
        match parse(&scalar) {
            Some(read) => Some(Set::new(read, self.line(member.line))),
            None => {
                let problem = value(&fields.path(key), expected, found(&member.value));
                self.wrong(member.value.line, problem);
                None
            }
        }
    }

    pub fn text(&mut self, fields: &Fields<'_>, key: &str) -> Option<Set<String>> {
        self.value(fields, key, "a text", |scalar| Some(scalar.text.clone()))
    }

    pub fn truth(&mut self, fields: &Fields<'_>, key: &str) -> Option<Set<bool>> {
        self.value(fields, key, "true or false", Scalar::truth)
    }

    pub fn number(&mut self, fields: &Fields<'_>, key: &str, expected: &str) -> Option<Set<f64>> {
        self.value(fields, key, expected, Scalar::number)
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, fields: &Fields<'_>, key: &str, expected: &str) -> Option<Set<u64>> {
        self.value(fields, key, expected, |scalar| {
            scalar.whole().filter(|&number| number > 0)
        })
    }

    /// One of several words.
    pub fn word(&mut self, fields: &Fields<'_>, key: &str, words: &[&str]) -> Option<Set<String>> {
        let member = fields.get(key)?;
        let expected = format!("one of {}", words.join(", "));
        let scalar = self.scalar(&fields.path(key), &member.value, &expected)?;
        if words.contains(&scalar.text.as_str()) {
            return Some(Set::new(scalar.text, self.line(member.line)));
        }
        let mut problem = value(&fields.path(key), &expected, found(&member.value));
        if let Problem::Value { nearest: near, .. } = &mut problem {
            *near = nearest(&scalar.text, words.iter().copied()).filter(|_| !scalar.filled);
        }
        self.wrong(member.value.line, problem);
        None
    }

    /// A scalar with its variables filled in; nothing written is nothing said.
    pub fn scalar(&mut self, key: &str, node: &Node, expected: &str) -> Option<Scalar> {
        let Kind::Scalar { text, plain } = &node.kind else {
            self.wrong(node.line, value(key, expected, found(node)));
            return None;
        };
        if node.is_null() {
            return None;
        }
        match fill(text, self.env) {
            Ok(filled) => Some(Scalar {
                // In quotes a variable can still be a number: people quote `"${PORT}"`.
                plain: *plain || filled.is_some(),
                filled: filled.is_some(),
                text: filled.unwrap_or_else(|| text.clone()),
            }),
            Err(problem) => {
                let line = self.line_of(node, &problem);
                self.wrong(line, problem);
                None
            }
        }
    }

    /// The line of a variable, in a text that may have many.
    fn line_of(&self, node: &Node, problem: &Problem) -> Place {
        let sought = match problem {
            Problem::Unset(name) => format!("${{{name}"),
            _ => "${".to_owned(),
        };
        let Place { file, line } = node.line;
        let lines = self.layers[file].text.lines().skip(line.saturating_sub(1));
        let at = lines.take(10_000).position(|line| line.contains(&sought));
        Place {
            file,
            line: line + at.unwrap_or(0),
        }
    }
}

impl Scalar {
    pub fn truth(&self) -> Option<bool> {
        match self.text.as_str() {
            "true" if self.plain => Some(true),
            "false" if self.plain => Some(false),
            _ => None,
        }
    }

    pub fn whole(&self) -> Option<u64> {
        let digits = self.plain && self.text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| self.text.parse().ok()).flatten()
    }

    pub fn number(&self) -> Option<f64> {
        // Not `inf` and `nan`, which Rust would read as numbers.
        let digit = self.text.bytes().any(|b| b.is_ascii_digit());
        let number: f64 = self.text.parse().ok()?;
        (self.plain && digit && number.is_finite()).then_some(number)
    }
}

pub(super) fn value(key: &str, expected: &str, found: String) -> Problem {
    Problem::Value {
        key: key.to_owned(),
        expected: expected.to_owned(),
        found,
        nearest: None,
    }
}

/// What stands somewhere, as it was written: never what a variable holds, which may be a key.
fn found(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar { text, plain } => {
            // What stands before an `@` may be a password.
            let text = text
                .rsplit_once('@')
                .map_or(text.as_str(), |(_, rest)| rest);
            let kind = if *plain { "" } else { "the text " };
            format!("{kind}`{}`", shown(text))
        }
        Kind::List(_) => "a list".to_owned(),
        Kind::Map(_) => "a mapping".to_owned(),
    }
}

/// The start of a text, on one line.
pub(super) fn shown(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = clean.take(60).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

/// Fills in `${NAME}` and `${NAME:-default}`; `$$` is one `$`. `None` if there is nothing to fill in.
fn fill(text: &str, env: Lookup<'_>) -> Result<Option<String>, Problem> {
    if !text.contains("${") && !text.contains("$$") {
        return Ok(None);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let (inside, after) = inside.split_once('}').ok_or(Problem::Braces)?;
            out.push_str(&variable(inside, env)?);
            rest = after;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(Some(out))
}

fn variable(inside: &str, env: Lookup<'_>) -> Result<String, Problem> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !letters || name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return Err(Problem::Braces);
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Problem::Unset(name.to_owned())),
    }
}
