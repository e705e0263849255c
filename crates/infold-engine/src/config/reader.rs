//! Reads typed values out of a tree of YAML nodes; continues after an error, to find them all.

use super::ConfigSource;
use super::problem::{ConfigError, ConfigProblem, nearest};
use super::sections::TOKENS;
use super::tokens;
use super::yaml::{FileLine, YamlKind, YamlMember, YamlNode};
use crate::profile::{Origin, Setting};

/// Looks up a variable of the environment.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Collects the errors and warnings of all layers.
pub(super) struct ConfigReader<'a> {
    pub layers: &'a [ConfigSource<'a>],
    pub env: EnvLookup<'a>,
    pub errors: Vec<ConfigError>,
    pub warnings: Vec<String>,
}

/// A mapping that is being read.
pub(super) struct Section<'r, 'a, 'n> {
    pub reader: &'r mut ConfigReader<'a>,
    path: String,
    members: &'n [YamlMember],
}

/// A text with its variables filled in.
pub(super) struct Scalar {
    pub text: String,
    /// The text may be a number or a boolean.
    is_plain: bool,
    /// The text came out of a variable, at least in part.
    pub has_variable: bool,
}

/// Replaces a default, if there is a value.
pub(super) fn replace<T>(target: &mut Setting<T>, value: Option<Setting<T>>) {
    if let Some(value) = value {
        *target = value;
    }
}

impl<'a> ConfigReader<'a> {
    pub fn origin(&self, at: FileLine) -> Origin {
        Origin::Line {
            file: self.layers[at.file].file.to_owned(),
            line: at.line,
        }
    }

    pub fn report(&mut self, at: FileLine, problem: ConfigProblem) {
        let origin = self.origin(at);
        self.errors.push(ConfigError { origin, problem });
    }

    pub fn warn(&mut self, at: FileLine, text: impl std::fmt::Display) {
        self.warnings.push(format!("{}: {text}", self.origin(at)));
    }

    /// Opens a mapping with any keys; null counts as an empty one.
    pub fn open<'r, 'n>(&'r mut self, path: &str, node: &'n YamlNode) -> Section<'r, 'a, 'n> {
        if !node.is_null() && !matches!(node.kind, YamlKind::Map(_)) {
            let key = if path.is_empty() { "the file" } else { path };
            let problem = value_problem(key, "a mapping of keys to values", written(node));
            self.report(node.line, problem);
        }
        Section {
            reader: self,
            path: path.to_owned(),
            members: node.members(),
        }
    }

    /// Opens a mapping with these keys, which are separated by spaces.
    pub fn section<'r, 'n>(
        &'r mut self,
        path: &str,
        node: &'n YamlNode,
        keys: &str,
    ) -> Section<'r, 'a, 'n> {
        let keys: Vec<&str> = keys.split(' ').collect();
        let section = self.open(path, node);
        for member in section.members {
            if !keys.contains(&member.key.as_str()) {
                section.reader.report_unknown(path, member, &keys);
            }
        }
        section
    }

    pub fn report_unknown(&mut self, path: &str, member: &YamlMember, valid: &[&str]) {
        let place = match path {
            "" => "here".to_owned(),
            path => format!("in `{path}`"),
        };
        let problem = ConfigProblem::Key {
            key: one_line(&member.key),
            place,
            nearest: nearest(&member.key, valid.iter().copied()),
            valid: valid.iter().map(|&key| key.to_owned()).collect(),
        };
        self.report(member.line, problem);
    }

    /// Returns a scalar with its variables expanded; `None` if it is null.
    pub fn scalar(&mut self, key: &str, node: &YamlNode, expected: &str) -> Option<Scalar> {
        let YamlKind::Scalar { text, is_plain } = &node.kind else {
            self.report(node.line, value_problem(key, expected, written(node)));
            return None;
        };
        if node.is_null() {
            return None;
        }
        match fill(text, self.env) {
            Ok(filled) => Some(Scalar {
                // In quotes a variable can still be a number: people quote `"${PORT}"`.
                is_plain: *is_plain || filled.is_some(),
                has_variable: filled.is_some(),
                text: filled.unwrap_or_else(|| text.clone()),
            }),
            Err(problem) => {
                self.report(self.line_of_variable(node, &problem), problem);
                None
            }
        }
    }

    /// Finds the line of a variable in a text that may have many lines.
    fn line_of_variable(&self, node: &YamlNode, problem: &ConfigProblem) -> FileLine {
        let sought = match problem {
            ConfigProblem::Unset(name) => format!("${{{name}"),
            _ => "${".to_owned(),
        };
        let FileLine { file, line } = node.line;
        let lines = self.layers[file].text.lines().skip(line.saturating_sub(1));
        let offset = lines.take(10_000).position(|line| line.contains(&sought));
        FileLine {
            file,
            line: line + offset.unwrap_or(0),
        }
    }
}

impl<'n> Section<'_, '_, 'n> {
    pub fn get(&self, key: &str) -> Option<&'n YamlMember> {
        self.members.iter().find(|member| member.key == key)
    }

    pub fn members(&self) -> &'n [YamlMember] {
        self.members
    }

    pub fn path(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Reads a value that one scalar can hold.
    pub fn value<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl Fn(&Scalar) -> Option<T>,
    ) -> Option<Setting<T>> {
        let member = self.get(key)?;
        let path = self.path(key);
        let scalar = self.reader.scalar(&path, &member.value, expected)?;
        let parsed = parse(&scalar);
        if parsed.is_none() {
            let problem = value_problem(&path, expected, written(&member.value));
            self.reader.report(member.value.line, problem);
        }
        parsed.map(|value| Setting::new(value, self.reader.origin(member.line)))
    }

    pub fn text(&mut self, key: &str) -> Option<Setting<String>> {
        self.value(key, "a text", |scalar| Some(scalar.text.clone()))
    }

    pub fn boolean(&mut self, key: &str) -> Option<Setting<bool>> {
        self.value(key, "true or false", Scalar::boolean)
    }

    /// Reads a whole number of at least 1.
    pub fn positive(&mut self, key: &str, expected: &str) -> Option<Setting<u64>> {
        let positive = |scalar: &Scalar| scalar.integer().filter(|&number| number > 0);
        self.value(key, expected, positive)
    }

    /// Reads a number of tokens above zero, such as 8000, 32k or 1.5m.
    pub fn tokens(&mut self, key: &str) -> Option<Setting<u64>> {
        self.value(key, TOKENS, Scalar::tokens)
    }

    /// Reads one of several words.
    pub fn word(&mut self, key: &str, words: &[&str]) -> Option<Setting<String>> {
        let expected = format!("one of {}", words.join(", "));
        let errors = self.reader.errors.len();
        let read = self.value(key, &expected, |scalar| {
            let is_known = words.contains(&scalar.text.as_str());
            is_known.then(|| scalar.text.clone())
        });
        if let (Some(member), [error]) = (self.get(key), &mut self.reader.errors[errors..])
            && let YamlKind::Scalar { text, .. } = &member.value.kind
            && let ConfigProblem::Value { nearest: near, .. } = &mut error.problem
            && !has_variables(text)
        {
            *near = nearest(text, words.iter().copied());
        }
        read
    }
}

impl Scalar {
    pub fn boolean(&self) -> Option<bool> {
        self.text.parse().ok().filter(|_| self.is_plain)
    }

    pub fn integer(&self) -> Option<u64> {
        let is_number = self.is_plain && self.text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| self.text.parse().ok()).flatten()
    }

    pub fn tokens(&self) -> Option<u64> {
        let has_unit = self.is_plain && self.text.ends_with(['k', 'K', 'm', 'M']);
        if has_unit {
            tokens::parse(&self.text)
        } else {
            self.integer().filter(|number| *number > 0)
        }
    }

    pub fn number(&self) -> Option<f64> {
        // Rust would read `inf` and `nan` as numbers.
        let has_digit = self.text.bytes().any(|b| b.is_ascii_digit());
        let number: f64 = self.text.parse().ok()?;
        (self.is_plain && has_digit && number.is_finite()).then_some(number)
    }
}

pub(super) fn value_problem(key: &str, expected: &str, found: String) -> ConfigProblem {
    ConfigProblem::Value {
        key: key.to_owned(),
        expected: expected.to_owned(),
        found,
        nearest: None,
    }
}

/// Returns a value as it was written: never the value of a variable, which may be a key.
fn written(node: &YamlNode) -> String {
    match &node.kind {
        YamlKind::Scalar { text, is_plain } => {
            // The part before an `@` may be a password.
            let text = text.rsplit_once('@').map_or(&**text, |(_, rest)| rest);
            let kind = if *is_plain { "" } else { "the text " };
            format!("{kind}`{}`", one_line(text))
        }
        YamlKind::List(_) => "a list".to_owned(),
        YamlKind::Map(_) => "a mapping".to_owned(),
    }
}

/// Returns the start of a text, on one line.
fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = clean.take(60).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

fn has_variables(text: &str) -> bool {
    text.contains("${") || text.contains("$$")
}

/// Fills in `${NAME}` and `${NAME:-default}`; `$$` is one `$`. Returns none if there is nothing to fill in.
fn fill(text: &str, env: EnvLookup<'_>) -> Result<Option<String>, ConfigProblem> {
    if !has_variables(text) {
        return Ok(None);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(inside) = after.strip_prefix('{') {
            let (inside, after) = inside.split_once('}').ok_or(ConfigProblem::Braces)?;
            out.push_str(&variable(inside, env)?);
            rest = after;
        } else {
            out.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    out.push_str(rest);
    Ok(Some(out))
}

fn variable(inside: &str, env: EnvLookup<'_>) -> Result<String, ConfigProblem> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_word || name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return Err(ConfigProblem::Braces);
    }
    let value = env(name).filter(|value| default.is_none() || !value.is_empty());
    let value = value.or_else(|| default.map(str::to_owned));
    value.ok_or_else(|| ConfigProblem::Unset(name.to_owned()))
}
