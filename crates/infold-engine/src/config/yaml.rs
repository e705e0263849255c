//! Parses YAML into a tree of nodes that know their lines, within limits.

use std::collections::HashMap;
use std::collections::hash_map::Entry as HashSlot;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::problem::ConfigProblem;

/// A line of one of the files that are read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLine {
    /// The index of the file.
    pub file: usize,
    /// Counted from 1.
    pub line: usize,
}

/// A YAML value and the line it starts on.
#[derive(Clone, Debug)]
pub(crate) struct YamlNode {
    pub line: FileLine,
    pub kind: YamlKind,
    /// The number of nodes in the subtree, itself included; a long text counts as several.
    size: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum YamlKind {
    /// A text as written; a plain one may be a number, a boolean or null.
    Scalar {
        text: String,
        is_plain: bool,
    },
    List(Vec<YamlNode>),
    Map(Vec<YamlMember>),
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct YamlMember {
    pub key: String,
    pub line: FileLine,
    pub value: YamlNode,
}

/// A problem of the text itself, and its line.
pub(crate) type LineProblem = (FileLine, ConfigProblem);

/// The limit of nodes in a configuration; a larger one is a mistake or an attack. An alias counts with all nodes that
/// it stands for, which bounds aliases of aliases.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 32;
const MAX_BYTES: usize = 1 << 20;
/// The bytes of a text that count as one more node, so that copies of a long text are bounded too.
const BYTES_PER_NODE: usize = 64;

/// The limits of a document.
#[derive(Clone, Copy)]
pub(crate) struct YamlLimits {
    /// The limit of nodes; an alias counts with all nodes that it stands for, and a long text as several.
    pub nodes: usize,
    /// In bytes.
    pub bytes: usize,
}

/// Parses a text of at most one document, the file of this index; an empty one gives none.
pub(crate) fn parse(text: &str, file: usize) -> Result<Option<YamlNode>, LineProblem> {
    let limits = YamlLimits {
        nodes: MAX_NODES,
        bytes: MAX_BYTES,
    };
    parse_within(text, file, limits)
}

/// Like [`parse`], with the caller's limits.
pub(crate) fn parse_within(
    text: &str,
    file: usize,
    limits: YamlLimits,
) -> Result<Option<YamlNode>, LineProblem> {
    let at = |line| FileLine { file, line };
    if text.len() > limits.bytes {
        return Err((at(1), ConfigProblem::TooLarge));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut tree = TreeBuilder {
        max_nodes: limits.nodes,
        ..TreeBuilder::default()
    };
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let line = at(error.marker().line());
            (line, ConfigProblem::Syntax(error.info().to_owned()))
        })?;
        tree.add_event(event, at(span.start.line()))?;
    }
    Ok(tree.root)
}

/// A tree under construction.
#[derive(Default)]
struct TreeBuilder {
    root: Option<YamlNode>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, YamlNode>,
    nodes: usize,
    max_nodes: usize,
}

/// A list or a mapping whose end has not come yet.
struct OpenNode {
    line: FileLine,
    anchor: usize,
    size: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Map {
        members: Vec<YamlMember>,
        lines: HashMap<String, usize>,
        /// The key whose value comes next.
        key: Option<(String, FileLine)>,
    },
}

impl YamlNode {
    /// Says whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, YamlKind::Scalar { text, is_plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Returns a mapping of one key with this value.
    pub fn with_key(self, key: &str) -> YamlNode {
        let (line, size) = (self.line, self.size + 1);
        let member = YamlMember {
            key: key.to_owned(),
            line,
            value: self,
        };
        YamlNode {
            line,
            kind: YamlKind::Map(vec![member]),
            size,
        }
    }

    /// Merges `top` over this tree: mappings are merged key by key, all else is replaced. Null replaces nothing.
    pub fn overlay(&mut self, top: YamlNode) {
        if top.is_null() {
            return;
        }
        let (members, over) = match (&mut self.kind, top.kind) {
            (YamlKind::Map(members), YamlKind::Map(over)) => (members, over),
            (_, kind) => {
                *self = YamlNode { kind, ..top };
                return;
            }
        };
        // The keys of one mapping differ, so those that `top` adds need no comparison.
        let below = members.len();
        for member in over {
            let mut shared = members[..below].iter_mut();
            match shared.find(|it| it.key == member.key) {
                None => members.push(member),
                Some(same) => {
                    let both = (&same.value.kind, &member.value.kind);
                    let merges = matches!(both, (YamlKind::Map(_), YamlKind::Map(_)));
                    if !merges && !member.value.is_null() {
                        same.line = member.line;
                    }
                    same.value.overlay(member.value);
                }
            }
        }
    }

    /// Returns the value of a key, if this is a mapping that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut YamlNode> {
        let YamlKind::Map(members) = &mut self.kind else {
            return None;
        };
        let member = members.iter_mut().find(|member| member.key == key);
        member.map(|member| &mut member.value)
    }

    /// Returns the members of a mapping; other nodes have none.
    pub fn members(&self) -> &[YamlMember] {
        match &self.kind {
            YamlKind::Map(members) => members,
            _ => &[],
        }
    }
}

impl TreeBuilder {
    fn add_event(&mut self, event: Event<'_>, line: FileLine) -> Result<(), LineProblem> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err((line, syntax("there is a second document")))
            }
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag)) => {
                Err((line, syntax(&format!("the tag {tag} has no meaning here"))))
            }
            Event::Scalar(text, style, anchor, None) => {
                let size = 1 + text.len() / BYTES_PER_NODE;
                let node = YamlNode {
                    line,
                    kind: YamlKind::Scalar {
                        text: text.into_owned(),
                        is_plain: style == ScalarStyle::Plain,
                    },
                    size,
                };
                self.count(size, line)?;
                self.put(node, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err((line, syntax("an alias refers to a value that contains it")));
                };
                // The alias is counted before it is copied.
                let (size, deep) = (node.size, self.open.len() + depth(node));
                self.count(size, line)?;
                if deep > MAX_DEPTH {
                    return Err((line, ConfigProblem::TooLarge));
                }
                let node = self.anchors.get(&anchor).cloned();
                node.map_or(Ok(()), |node| self.put(node, 0))
            }
            Event::SequenceStart(anchor, None) => {
                self.open(line, anchor, OpenContent::List(Vec::new()))
            }
            Event::MappingStart(anchor, None) => {
                let content = OpenContent::Map {
                    members: Vec::new(),
                    lines: HashMap::new(),
                    key: None,
                };
                self.open(line, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn count(&mut self, more: usize, line: FileLine) -> Result<(), LineProblem> {
        self.nodes += more;
        if self.nodes > self.max_nodes {
            return Err((line, ConfigProblem::TooLarge));
        }
        Ok(())
    }

    fn open(
        &mut self,
        line: FileLine,
        anchor: usize,
        content: OpenContent,
    ) -> Result<(), LineProblem> {
        self.count(1, line)?;
        if self.open.len() >= MAX_DEPTH {
            return Err((line, ConfigProblem::TooLarge));
        }
        let open = self.open.last().map(|open| &open.content);
        if let Some(OpenContent::Map { key: None, .. }) = open {
            return Err((line, syntax(KEY_IS_SCALAR)));
        }
        self.open.push(OpenNode {
            line,
            anchor,
            size: 1,
            content,
        });
        Ok(())
    }

    fn close(&mut self, open: OpenNode) -> Result<(), LineProblem> {
        let kind = match open.content {
            OpenContent::List(nodes) => YamlKind::List(nodes),
            OpenContent::Map { members, .. } => YamlKind::Map(members),
        };
        let node = YamlNode {
            line: open.line,
            kind,
            size: open.size,
        };
        self.put(node, open.anchor)
    }

    /// Adds a whole node to the open list or mapping.
    fn put(&mut self, node: YamlNode, anchor: usize) -> Result<(), LineProblem> {
        if anchor > 0 {
            // Each anchor keeps one more copy of the node.
            self.count(node.size, node.line)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.size += node.size;
        match &mut open.content {
            OpenContent::List(nodes) => nodes.push(node),
            OpenContent::Map {
                members,
                lines,
                key,
            } => match (key.take(), node.kind) {
                (Some((key, line)), kind) => members.push(YamlMember {
                    key,
                    line,
                    value: YamlNode { kind, ..node },
                }),
                (None, YamlKind::Scalar { text, .. }) => match lines.entry(text.clone()) {
                    HashSlot::Occupied(first) => {
                        let first = *first.get();
                        return Err((node.line, ConfigProblem::Twice { key: text, first }));
                    }
                    HashSlot::Vacant(slot) => {
                        slot.insert(node.line.line);
                        *key = Some((text, node.line));
                    }
                },
                (None, _) => return Err((node.line, syntax(KEY_IS_SCALAR))),
            },
        }
        Ok(())
    }
}

fn depth(node: &YamlNode) -> usize {
    match &node.kind {
        YamlKind::Scalar { .. } => 0,
        YamlKind::List(nodes) => 1 + nodes.iter().map(depth).max().unwrap_or(0),
        YamlKind::Map(members) => {
            let values = members.iter().map(|member| depth(&member.value));
            1 + values.max().unwrap_or(0)
        }
    }
}

const KEY_IS_SCALAR: &str = "a key is one word, not a list or a mapping";

fn syntax(what: &str) -> ConfigProblem {
    ConfigProblem::Syntax(what.to_owned())
}
