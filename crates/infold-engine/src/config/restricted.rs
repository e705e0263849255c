use super::entries::public;
use super::yaml::{Kind, Node};

/// A key that counts only in a file that the user trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestrictedKey {
    /// The key, with the sections it is in.
    pub key: String,
    /// The value as written: variables are not filled in, and a secret is only said to be set.
    pub value: String,
    /// The line of the value, counted from 1.
    pub line: usize,
}

/// Takes out of an untrusted file all that it may not set, and returns it.
///
/// What stays changes how a conversation is folded, and nothing else: no command, no provider,
/// no key, no directory, nothing that is deleted or left unrecorded. A text with a variable is
/// taken out too: prompts are sent to a provider, and the variable may hold a key. `below` is
/// what the files below set.
pub(super) fn restrict(root: &mut Node, below: Option<&Node>) -> Vec<RestrictedKey> {
    let sections = below.map_or(&[][..], Node::members);
    let llm = sections.iter().find(|member| member.key == "llm");
    let providers = llm.map_or(&[][..], |llm| llm.value.members()).iter();
    let providers = providers.map(|member| member.key.as_str());
    let mut restriction = Restriction {
        providers: providers.filter(|name| *name != "provider").collect(),
        path: Vec::new(),
        found: Vec::new(),
    };
    restriction.filter(root);
    restriction.found
}

/// What an untrusted file may do with a key.
enum Rule {
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
    /// Providers that a trusted file describes. Another one would become the provider in use.
    providers: Vec<&'a str>,
    /// The keys that lead to the current node.
    path: Vec<String>,
    found: Vec<RestrictedKey>,
}

impl Restriction<'_> {
    fn filter(&mut self, node: &mut Node) {
        if let Kind::Map(members) = &mut node.kind {
            members.retain_mut(|member| {
                self.path.push(member.key.clone());
                let keeps = self.keeps(&mut member.value);
                self.path.pop();
                keeps
            });
        }
    }

    fn keeps(&mut self, node: &mut Node) -> bool {
        match (self.rule(), &node.kind) {
            (Rule::Open, Kind::Scalar { text, .. }) if !text.contains("${") => true,
            (Rule::OnlyOn, _) if !may_switch_off(node) => true,
            (Rule::Section, Kind::Map(_)) => {
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

    fn rule(&self) -> Rule {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["context_storage" | "profiles" | "llm"] | ["profiles", _] => Rule::Section,
            ["redact"] => Rule::OnlyOn,
            ["llm", name] if self.providers.contains(name) => Rule::Section,
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
            ] => Rule::Open,
            _ => Rule::Restricted,
        }
    }

    /// Lists each value that is written in a node.
    fn list(&mut self, node: &Node) {
        let scalar = |node: &Node| match &node.kind {
            Kind::Scalar { text, .. } => Some(self.written(text)),
            _ => None,
        };
        let value = match &node.kind {
            Kind::List(nodes) => nodes.iter().map(scalar).collect::<Option<Vec<_>>>(),
            _ => scalar(node).map(|text| vec![text]),
        };
        match (value, &node.kind) {
            _ if node.is_null() => {}
            (Some(values), _) => self.found.push(RestrictedKey {
                key: self.key(),
                value: values.join(", "),
                line: node.line.line,
            }),
            (None, Kind::List(nodes)) => nodes.iter().for_each(|node| self.list(node)),
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
        // Aliases could make a long key long many times.
        const MAX_KEY_CHARS: usize = 60;
        let shown = |key: &String| visible(&key.chars().take(MAX_KEY_CHARS).collect::<String>());
        let keys: Vec<String> = self.path.iter().map(shown).collect();
        keys.join(".")
    }

    /// Whether the current value is a secret by its own name. Names that the file chooses for
    /// what is around it hide nothing.
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

    /// A value as it may be shown.
    fn written(&self, text: &str) -> String {
        let inside = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let variable = inside.is_some_and(|name| !name.contains([':', '$', '}']));
        if !variable && self.is_secret() {
            return "(set)".to_owned();
        }
        let address = text.contains("://") && !text.contains(char::is_whitespace);
        visible(&if address {
            public(text)
        } else {
            text.to_owned()
        })
    }
}

/// Whether a value says no, or could. All others stay: the reader takes `true` and refuses the rest, since ignoring
/// `yes` would leave off what somebody meant to switch on.
fn may_switch_off(node: &Node) -> bool {
    let says_no = |text: &str| text == "false" || text.contains("${");
    node.is_null() || matches!(&node.kind, Kind::Scalar { text, .. } if says_no(text))
}

/// A text in which nothing hides: whatever a terminal would obey or not show is escaped.
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
