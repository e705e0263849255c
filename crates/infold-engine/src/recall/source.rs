//! Finds the hidden messages that say something about the names in a request.

use std::collections::{BTreeMap, HashSet};

use infold_log::{Past as _, Role, Seq, Source, View, round_members};
use infold_store::{Log, LogError, TaskError};
use infold_wire::Message;
use infold_wire::tool_action::MessageText;

use super::MentionLookup;
use super::name::{Name, find_form, normal};
use super::statement::{LineNames, LineOrigin};
use super::trigger::Request;

/// The number of hidden messages that are read for one request.
const MAX_READ: usize = 48;
/// A call that names more writes a document.
const MAX_CALL_NAMES: usize = 32;
/// A plain word that no more messages mention is as good as a name.
const MAX_SINGULAR_PLACES: usize = 2;
/// The bytes of a message that are read.
const MAX_SOURCE_BYTES: usize = 256 << 10;
/// A request that names more is a document: messages that speak of most of it come first, not the newest about each.
const MAX_QUESTION_NAMES: u32 = 4;

/// A message that is read for excerpts: its lines, and the names in each.
pub(super) struct SourceText {
    pub seq: Seq,
    pub who: &'static str,
    pub text: String,
    pub lines: Vec<LineNames>,
    /// The names of files in the call whose result this message is; its own text need not contain them.
    pub about: u64,
    /// Whether the user typed one of the names that the message says something about.
    pub is_typed: bool,
}

impl SourceText {
    fn read(log: &Log, seq: Seq, names: &[Name]) -> Result<Option<SourceText>, LogError> {
        let bytes = log.message(seq)?;
        let Ok(message) = Message::read(&bytes) else {
            return Ok(None);
        };
        let who = match log.record(seq)?.role {
            // On some wires tool results have the role of the user.
            _ if !message.answers().is_empty() => "a tool",
            Role::User => "the user",
            Role::Assistant => "the assistant",
            Role::Tool => "a tool",
            Role::System => "the system prompt",
        };
        let mut text = whole_text(&message);
        text.truncate(text.floor_char_boundary(MAX_SOURCE_BYTES));
        Ok(Some(SourceText::of(seq, who, text, names)))
    }

    pub fn of(seq: Seq, who: &'static str, text: String, names: &[Name]) -> SourceText {
        let lines = text.lines();
        let lines = lines.map(|line| LineNames::of(line, names, LineOrigin::Message));
        SourceText {
            seq,
            who,
            lines: lines.collect(),
            text,
            about: 0,
            is_typed: false,
        }
    }

    /// Returns the names for which the message is recalled, as the request has them.
    pub fn reference(&self, names: &[Name]) -> String {
        let stated = self.stated();
        let named = names.iter().enumerate();
        let named = named.filter(|(bit, _)| stated & (1 << bit) != 0);
        named
            .map(|(_, name)| &*name.text)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the names that it says something about.
    pub fn stated(&self) -> u64 {
        self.lines
            .iter()
            .fold(self.about, |all, line| all | line.stated)
    }
}

/// Returns everything that a message says: its text, the arguments of its calls, and the results in it.
pub(super) fn whole_text(message: &Message<'_>) -> String {
    let text = MessageText::of(message);
    let mut whole = text.text;
    for part in std::iter::once(&text.arguments).chain(text.results.iter().map(|(_, text)| text)) {
        if !part.is_empty() {
            whole.push('\n');
            whole.push_str(part);
        }
    }
    whole
}

/// The names of a request that the lines of a view mention.
pub(super) struct NamesInView {
    /// The names that each line says something about.
    lines: HashSet<u64>,
    /// The names that occur anywhere, also in lists and questions.
    held: u64,
}

impl NamesInView {
    /// Reads the view. Of the request's own messages only tool results count: the others are the source of the names.
    pub fn read(log: &Log, request: &Request) -> Result<NamesInView, LogError> {
        let mut out = NamesInView {
            lines: HashSet::new(),
            held: 0,
        };
        let view = View::of(log.state().shown(), log)?;
        for piece in view.pieces() {
            log.render_piece(piece, &mut |source, bytes| {
                if !may_hold(bytes, &request.names) {
                    return Ok(());
                }
                let Ok(message) = Message::read(bytes) else {
                    return Ok(());
                };
                let is_request = source.seq().is_some_and(|seq| seq >= request.first);
                let text = if is_request {
                    let results = MessageText::of(&message).results.into_iter();
                    results.map(|(_, text)| text + "\n").collect()
                } else {
                    whole_text(&message)
                };
                let origin = match source {
                    Source::StandIn => LineOrigin::StandIn,
                    _ => LineOrigin::Message,
                };
                for line in text.lines() {
                    let line = LineNames::of(line, &request.names, origin);
                    out.held |= line.held;
                    if line.stated != 0 {
                        out.lines.insert(line.stated);
                    }
                }
                Ok(())
            })?;
        }
        Ok(out)
    }

    /// Says whether one line says something about all of these names.
    fn has(&self, names: u64) -> bool {
        self.lines.iter().any(|line| line & names == names)
    }
}

/// Says whether a message's bytes may contain one of the names: a quick check before parsing.
fn may_hold(bytes: &[u8], names: &[Name]) -> bool {
    let is_escaped = memchr::memmem::find(bytes, b"\\u").is_some()
        || memchr::memmem::find(bytes, b"\\\\").is_some();
    let lower = bytes.to_ascii_lowercase();
    names.iter().any(|name| {
        !name.form.is_ascii()
            || is_escaped && name.form.contains('/')
            || memchr::memmem::find(&lower, name.form.as_bytes()).is_some()
    })
}

/// Returns the hidden messages to quote, the most useful first.
pub(super) fn find(
    log: &Log,
    request: &mut Request,
    most: usize,
    mentions: &mut MentionLookup<'_>,
) -> Result<Vec<SourceText>, TaskError> {
    if request.names.is_empty() {
        return Ok(Vec::new());
    }
    let view = NamesInView::read(log, request)?;
    let (places, singular) = find_places(log, request, &view, mentions)?;
    let bits = |is_one: fn(&Name) -> bool| {
        let bits = request
            .names
            .iter()
            .enumerate()
            .filter(|(_, name)| is_one(name));
        bits.fold(0_u64, |all, (bit, _)| all | 1 << bit)
    };
    let (strong, typed) = (bits(|name| name.is_strong), bits(|name| name.is_typed));
    // Few messages are read: those with the most names, among equals the newest.
    let mut order: Vec<(Seq, u64)> = places.into_iter().collect();
    // A plain word that occurs neither in view nor in many hidden messages is specific enough, too.
    let strong = strong | singular;
    let weight = |names: u64| 2 * (names & strong).count_ones() + (names & !strong).count_ones();
    order.retain(|(_, names)| weight(*names) >= 2);
    order.sort_by_key(|(seq, names)| std::cmp::Reverse((weight(*names), *seq)));
    let mut texts = Vec::new();
    for (seq, names) in order.iter().take(MAX_READ) {
        if let Some(mut text) = SourceText::read(log, *seq, &request.names)? {
            let held = text.lines.iter().fold(0, |all, line| all | line.held);
            // If the user names a file, the contents of that file are wanted, and they need not repeat the name.
            text.about = if text.who == "a tool" {
                names & !held & typed
            } else {
                0
            };
            text.is_typed = text.stated() & typed != 0;
            texts.push(text);
        }
    }
    // A document that a call writes contains its own subject.
    let is_written = typed == 0 && request.names.len() > MAX_CALL_NAMES;
    let most = if is_written { most.min(1) } else { most };
    Ok(choose(texts, strong, &view, most))
}

/// Returns the hidden messages that mention names missing in view, with the names that each mentions, and the names
/// that occur in one or two messages only.
fn find_places(
    log: &Log,
    request: &mut Request,
    view: &NamesInView,
    mentions: &mut MentionLookup<'_>,
) -> Result<(BTreeMap<Seq, u64>, u64), TaskError> {
    let mut singular = 0;
    let shown = log.state().shown();
    let mut places: BTreeMap<Seq, u64> = BTreeMap::new();
    for (bit, name) in request.names.iter_mut().enumerate() {
        if name.is_strong && view.has(1 << bit) {
            continue;
        }
        let spellings =
            std::iter::once(name.form.clone()).chain(name.shorter().collect::<Vec<_>>());
        for form in spellings {
            let found = mentions(log, &form)?;
            if found.len() > name.max_places {
                break;
            }
            let before: Vec<Seq> = found
                .into_iter()
                .filter(|seq| *seq < request.first)
                .collect();
            if before.is_empty() {
                continue;
            }
            let is_singular = before.len() <= MAX_SINGULAR_PLACES && view.held & (1 << bit) == 0;
            singular |= u64::from(is_singular) << bit;
            name.form = form;
            for seq in before {
                for seq in with_results(log, seq, name)? {
                    if shown.is_hidden(seq) {
                        *places.entry(seq).or_default() |= 1 << bit;
                    }
                }
            }
            break;
        }
    }
    Ok((places, singular))
}

/// Returns a message, and the results of its calls if these have the name: the contents of a file do not contain the
/// file's name.
fn with_results(
    log: &Log,
    seq: Seq,
    Name { form, is_typed, .. }: &Name,
) -> Result<Vec<Seq>, LogError> {
    let record = log.record(seq)?;
    if record.role != Role::Assistant || !form.contains(['/', '.']) || !is_typed {
        return Ok(vec![seq]);
    }
    let bytes = log.message(seq)?;
    let is_called = Message::read(&bytes).is_ok_and(|message| {
        find_form(&normal(&MessageText::of(&message).arguments), form).is_some()
    });
    if !is_called {
        return Ok(vec![seq]);
    }
    let path = log.state().shown().path();
    let members = round_members(record.round, path.into_iter(), log)?;
    Ok(members
        .into_iter()
        .filter(|member| *member >= seq)
        .collect())
}

/// Chooses messages one by one: each says something about names that neither the view nor those before it cover.
fn choose(texts: Vec<SourceText>, strong: u64, view: &NamesInView, most: usize) -> Vec<SourceText> {
    let mut left = texts;
    let mut chosen: Vec<SourceText> = Vec::new();
    let mut done = 0_u64;
    while chosen.len() < most {
        let wanted = !done;
        let all: u64 = left
            .iter()
            .fold(0, |all, text| all | text.stated() & wanted & strong);
        let is_question = all.count_ones() <= MAX_QUESTION_NAMES;
        let value = |text: &SourceText| {
            let stated = text.stated() & wanted;
            // Two plain words must occur in one line, and in no line in view.
            let met = text.lines.iter().map(|line| line.stated & wanted & !strong);
            let met = met.filter(|words| words.count_ones() >= 2 && !view.has(*words));
            let met = met.map(u64::count_ones).max().unwrap_or(0);
            let strong = (stated & strong).count_ones();
            let rank = if is_question { strong.min(1) } else { strong };
            (rank, if strong > 0 { 0 } else { met }, text.seq)
        };
        let best = left.iter().enumerate().max_by_key(|(_, text)| value(text));
        let Some((at, best)) = best else { break };
        let (strong_count, met, _) = value(best);
        if strong_count == 0 && met == 0 {
            break;
        }
        let text = left.swap_remove(at);
        done |= text.stated();
        chosen.push(text);
    }
    chosen
}
