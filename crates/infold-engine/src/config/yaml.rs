use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::problem::Problem;

/// A line of one of the files that are read together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The index of the file.
    pub file: usize,
    /// Counted from 1.
    pub line: usize,
}

/// A YAML value and the line it starts on.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub line: Place,
    pub kind: Kind,
    /// How many nodes it is made of, itself among them; a long text counts as several.
    size: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A text as written; a plain one may be a number, a truth or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub key: String,
    pub line: Place,
    pub value: Node,
}

/// What is wrong with the text itself, and on which line.
pub(super) type Wrong = (Place, Problem);

/// No configuration is larger; what is, is a mistake or an attack. An alias counts as all that
/// it stands for, so aliases of aliases come to an end.
const NODES: usize = 20_000;
const DEPTH: usize = 32;
const BYTES: usize = 1 << 20;
/// A text counts as one more node for each so many bytes: few copies of a long one are many bytes.
const BYTES_PER_NODE: usize = 64;

/// Reads a text of at most one document, the file of this index; nothing at all is `None`.
pub(super) fn parse(text: &str, file: usize) -> Result<Option<Node>, Wrong> {
    let place = |line| Place { file, line };
    if text.len() > BYTES {
        return Err((place(1), Problem::TooLarge));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut tree = Tree::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let line = place(error.marker().line());
            (line, Problem::Syntax(error.info().to_owned()))
        })?;
        tree.take(event, place(span.start.line()))?;
    }
    Ok(tree.root)
}

/// A tree under construction.
#[derive(Default)]
struct Tree {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

/// A list or a mapping that has not ended.
struct Open {
    line: Place,
    anchor: usize,
    size: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map {
        members: Vec<Member>,
        lines: HashMap<String, usize>,
        /// The key whose value comes next.
        key: Option<(String, Place)>,
    },
}

impl Node {
    /// Nothing is written there.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// A mapping with one key.
    pub fn with_key(self, key: &str) -> Node {
        let (line, size) = (self.line, self.size + 1);
        let member = Member {
            key: key.to_owned(),
            line,
            value: self,
        };
        Node {
            line,
            kind: Kind::Map(vec![member]),
            size,
        }
    }

    /// Puts `top` over this: mappings are merged key by key, all else is replaced. Nothing written
    /// replaces nothing.
    pub fn overlay(&mut self, top: Node) {
        if top.is_null() {
            return;
        }
        let (members, over) = match (&mut self.kind, top.kind) {
            (Kind::Map(members), Kind::Map(over)) => (members, over),
            (_, kind) => {
                *self = Node { kind, ..top };
                return;
            }
        };
        // Keys of one mapping differ, so those that `top` adds need no comparison.
        let below = members.len();
        for member in over {
            let mut shared = members[..below].iter_mut();
            match shared.find(|it| it.key == member.key) {
                None => members.push(member),
                Some(same) => {
                    let both = (&same.value.kind, &member.value.kind);
                    let merges = matches!(both, (Kind::Map(_), Kind::Map(_)));
                    if !merges && !member.value.is_null() {
                        same.line = member.line;
                    }
                    same.value.overlay(member.value);
                }
            }
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let Kind::Map(members) = &mut self.kind else {
            return None;
        };
        let mut members = members.iter_mut();
        members
            .find(|member| member.key == key)
            .map(|member| &mut member.value)
    }

    /// The keys of a mapping and their values; nothing else has any.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Map(members) => members,
            _ => &[],
        }
    }
}

impl Tree {
    fn take(&mut self, event: Event<'_>, line: Place) -> Result<(), Wrong> {
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
                let node = Node {
                    line,
                    kind: Kind::Scalar {
                        text: text.into_owned(),
                        plain: style == ScalarStyle::Plain,
                    },
                    size,
                };
                self.count(size, line)?;
                self.put(node, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err((line, syntax("an alias stands inside what it stands for")));
                };
                // Counted before it is copied.
                let (size, deep) = (node.size, self.open.len() + depth(node));
                self.count(size, line)?;
                if deep > DEPTH {
                    return Err((line, Problem::TooLarge));
                }
                let node = self.anchors.get(&anchor).cloned();
                node.map_or(Ok(()), |node| self.put(node, 0))
            }
            Event::SequenceStart(anchor, None) => self.open(line, anchor, Inside::List(Vec::new())),
            Event::MappingStart(anchor, None) => {
                let inside = Inside::Map {
                    members: Vec::new(),
                    lines: HashMap::new(),
                    key: None,
                };
                self.open(line, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn count(&mut self, more: usize, line: Place) -> Result<(), Wrong> {
        self.nodes += more;
        match self.nodes > NODES {
            true => Err((line, Problem::TooLarge)),
            false => Ok(()),
        }
    }

    fn open(&mut self, line: Place, anchor: usize, inside: Inside) -> Result<(), Wrong> {
        self.count(1, line)?;
        if self.open.len() >= DEPTH {
            return Err((line, Problem::TooLarge));
        }
        if let Some(Open {
            inside: Inside::Map { key: None, .. },
            ..
        }) = self.open.last()
        {
            return Err((line, syntax("a key is one word, not a list or a mapping")));
        }
        self.open.push(Open {
            line,
            anchor,
            size: 1,
            inside,
        });
        Ok(())
    }

    fn close(&mut self, open: Open) -> Result<(), Wrong> {
        let kind = match open.inside {
            Inside::List(nodes) => Kind::List(nodes),
            Inside::Map { members, .. } => Kind::Map(members),
        };
        let node = Node {
            line: open.line,
            kind,
            size: open.size,
        };
        self.put(node, open.anchor)
    }

    /// Puts a whole node where it belongs.
    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Wrong> {
        if anchor > 0 {
            // Each anchor is one copy of what was counted once.
            self.count(node.size, node.line)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.size += node.size;
        match &mut open.inside {
            Inside::List(nodes) => nodes.push(node),
            Inside::Map {
                members,
                lines,
                key,
            } => match (key.take(), node.kind) {
                (Some((key, line)), kind) => members.push(Member {
                    key,
                    line,
                    value: Node { kind, ..node },
                }),
                (None, Kind::Scalar { text, .. }) => match lines.entry(text.clone()) {
                    Slot::Occupied(first) => {
                        let first = *first.get();
                        return Err((node.line, Problem::Twice { key: text, first }));
                    }
                    Slot::Vacant(slot) => {
                        slot.insert(node.line.line);
                        *key = Some((text, node.line));
                    }
                },
                (None, _) => {
                    return Err((
                        node.line,
                        syntax("a key is one word, not a list or a mapping"),
                    ));
                }
            },
        }
        Ok(())
    }
}

fn depth(node: &Node) -> usize {
    match &node.kind {
        Kind::Scalar { .. } => 0,
        Kind::List(nodes) => 1 + nodes.iter().map(depth).max().unwrap_or(0),
        Kind::Map(members) => {
            let values = members.iter().map(|member| depth(&member.value));
            1 + values.max().unwrap_or(0)
        }
    }
}

fn syntax(what: &str) -> Problem {
    Problem::Syntax(what.to_owned())
}
