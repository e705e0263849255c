//! Takes out of an untrusted file the keys that it may not set.

use super::entries::without_credentials;
use super::yaml::{YamlKind, YamlNode};

/// A key that counts only in a file that the user trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestrictedKey {
    /// The key, with its sections.
    pub key: String,
    /// The value as written: variables are not expanded, and a secret is not shown.
    pub value: String,
    /// The line of the value, counted from 1.
    pub line: usize,
}

/// Removes the keys that an untrusted file may not set, and returns them.
///
/// The keys that stay change how a conversation is folded, and nothing else: no command, no provider,
/// no key, no directory, nothing that is deleted or left unrecorded. A text with a variable is
/// removed too: prompts are sent to a provider, and the variable may hold a key. `below` is the
/// tree of the files below.
pub(super) fn restrict(root: &mut YamlNode, below: Option<&YamlNode>) -> Vec<RestrictedKey> {
    let sections = below.map_or(&[][..], YamlNode::members);
    let llm = sections.iter().find(|member| member.key == "llm");
    let providers = llm.map_or(&[][..], |llm| llm.value.members()).iter();
    let providers = providers.map(|member| member.key.as_str());
    let mut restriction = Restriction {
        providers: providers.filter(|name| *name != "provider").collect(),
        path: Vec::new(),
        removed: Vec::new(),
    };
    restriction.filter(root);
    restriction.removed
}

/// The extent to which an untrusted file may set a key.
enum TrustRule {
    /// Set it.
    Open,
    /// Switch it on, and never off.
    OnlyOn,
    /// Set some of the keys in it.
    Section,
    /// Nothing.
    Restricted,
}

struct Restriction<'a> {
    /// Providers that a trusted file describes. Any other would become the provider in use.
    providers: Vec<&'a str>,
    /// The keys that lead to the current node.
    path: Vec<String>,
    removed: Vec<RestrictedKey>,
}

impl Restriction<'_> {
    fn filter(&mut self, node: &mut YamlNode) {
        if let YamlKind::Map(members) = &mut node.kind {
            members.retain_mut(|member| {
                self.path.push(member.key.clone());
                let keeps = self.keeps(&mut member.value);
                self.path.pop();
                keeps
            });
        }
    }

    fn keeps(&mut self, node: &mut YamlNode) -> bool {
        match (self.rule(), &node.kind) {
            (TrustRule::Open, YamlKind::Scalar { text, .. }) if !text.contains("${") => true,
            (TrustRule::OnlyOn, _) if !may_switch_off(node) => true,
            (TrustRule::Section, YamlKind::Map(_)) => {
                self.filter(node);
                // An empty profile would still replace one with a shorter name.
                !node.members().is_empty()
            }
            _ => {
                self.list(node);
                false
            }
        }
    }

    fn rule(&self) -> TrustRule {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["context_storage" | "profiles" | "llm"] | ["profiles", _] => TrustRule::Section,
            ["redact"] => TrustRule::OnlyOn,
            ["llm", name] if self.providers.contains(name) => TrustRule::Section,
            [
                "context_storage",
                "compression_threshold" | "keep_recent_messages" | "summary_prompt",
            ]
            | ["llm", _, "context_length" | "max_tokens"]
            | [
                "profiles",
                _,
                "window" | "threshold" | "auto" | "keep" | "ratio" | "prompt" | "strategy"
                | "max_tokens",
            ] => TrustRule::Open,
            _ => TrustRule::Restricted,
        }
    }

    /// Lists each value in a node.
    fn list(&mut self, node: &YamlNode) {
        let scalar = |node: &YamlNode| match &node.kind {
            YamlKind::Scalar { text, .. } => Some(self.display(text)),
            _ => None,
        };
        let value = match &node.kind {
            YamlKind::List(nodes) => nodes.iter().map(scalar).collect::<Option<Vec<_>>>(),
            _ => scalar(node).map(|text| vec![text]),
        };
        match (value, &node.kind) {
            _ if node.is_null() => {}
            (Some(values), _) => self.removed.push(RestrictedKey {
                key: self.key(),
                value: values.join(", "),
                line: node.line.line,
            }),
            (None, YamlKind::List(nodes)) => nodes.iter().for_each(|node| self.list(node)),
            (None, _) => {
                for member in node.members() {
                    self.path.push(member.key.clone());
                    self.list(&member.value);
                    self.path.pop();
                }
            }
        }
    }

    fn key(&self) -> String {
        // Aliases could repeat a long key many times.
        const MAX_KEY_CHARS: usize = 60;
        let shown = |key: &String| visible(&key.chars().take(MAX_KEY_CHARS).collect::<String>());
        let keys: Vec<String> = self.path.iter().map(shown).collect();
        keys.join(".")
    }

    /// Says whether the current value is a secret by its own name. Names that the file chooses for
    /// the sections around it hide nothing.
    fn is_secret(&self) -> bool {
        const NAMES: [&str; 5] = ["key", "token", "secret", "password", "authorization"];
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let named = |name: &str| {
            let name = name.to_lowercase();
            NAMES.iter().any(|end| name.ends_with(end))
        };
        match path.as_slice() {
            [_, _, "env" | "headers", _] => true,
            [.., name] => named(name),
            [] => false,
        }
    }

    /// Returns a value as it may be shown.
    fn display(&self, text: &str) -> String {
        let inside = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let is_variable = inside.is_some_and(|name| !name.contains([':', '$', '}']));
        if !is_variable && self.is_secret() {
            return "(set)".to_owned();
        }
        if text.contains("://") && !text.contains(char::is_whitespace) {
            return visible(&without_credentials(text));
        }
        visible(text)
    }
}

/// Says whether a value is or could be false. All others stay: the reader takes `true` and refuses the rest, since
/// ignoring `yes` would leave off a setting that the file means to switch on.
fn may_switch_off(node: &YamlNode) -> bool {
    let says_no = |text: &str| text == "false" || text.contains("${");
    node.is_null() || matches!(&node.kind, YamlKind::Scalar { text, .. } if says_no(text))
}

/// Escapes characters that a terminal would obey or not show.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}
