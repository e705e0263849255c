//! The extractive summarizer, which needs no model: it derives the work that was done from the structure of messages.
//!
//! Messages stream through [`Extract::message`]. Content that may matter later is collected in bounded tables, which
//! [`Extract::write`] ranks and writes within a budget: names under their file, values under the call that returned
//! them.

pub mod facts;
mod word_lists;
mod terms;
mod directives;
mod excerpt;
mod requests;
mod candidates;
mod names;
mod targets;
mod commands;
mod errors;
mod outline;
mod write;

use std::collections::VecDeque;

use infold_log::{Role, Seq};
use infold_wire::tool_action::{self, MessageAction, Todo, ToolAction, ToolCall, ToolResult};
use infold_wire::{Message, TypedTextFilter, is_compaction};

use crate::references;
use candidates::CandidatePool;
use errors::OpenErrors;
pub(crate) use excerpt::select_sentences;
use excerpt::{CitedText, cut_middle, mark_cuts};
use facts::persist;
use names::{Affinity, MentionOrigin, NameTable};
pub use outline::outline;
use requests::Requests;
use targets::{FileAction, TargetId, TargetKind, TargetTable};
use terms::TermTable;
pub(crate) use write::LOOSE_NAMES;
pub use write::{SummaryForm, tokens};

/// Collects what a summary should contain.
#[derive(Default)]
pub struct Extract {
    names: NameTable,
    targets: TargetTable,
    terms: TermTable,
    requests: Requests,
    candidates: CandidatePool,
    /// The last reply of the assistant.
    last_reply: Option<CitedText>,
    /// Separates the user's typed text from text that their agent injected.
    typist: TypedTextFilter,
    /// Calls whose results are still to come.
    pending: VecDeque<UnansweredCall>,
    errors: OpenErrors,
    todos: Option<(u64, Vec<Todo>)>,
    plan: Option<CitedText>,
    system_messages: VecDeque<CitedText>,
    /// An earlier summary by a model or a person.
    earlier_summary: String,
    /// The first and the last message that was read.
    span: Option<(u64, u64)>,
    /// The bytes of each result that are read.
    read_bytes: usize,
    /// The file that was used last, and the message that did.
    current_file: Option<(TargetId, u64)>,
    /// The text of messages that stay in view beside the summary.
    in_view: String,
}

/// A call whose result is still to come.
struct UnansweredCall {
    id: Option<String>,
    seq: u64,
    target: TargetId,
    kind: TargetKind,
    affinity: Affinity,
    /// The files that it changes or reads.
    files: Vec<TargetId>,
}

const MAX_PENDING_CALLS: usize = 256;
/// More text in view is not compared with the summary.
const MAX_IN_VIEW_BYTES: usize = 512 << 10;
const MAX_EARLIER_BYTES: usize = 64 * 1024;
const MAX_LAST_REPLY_BYTES: usize = 1_600;
/// After this many messages an agent's own summary adds nothing to them.
const MIN_KNOWN_MESSAGES: u64 = 20;

/// The most bytes of each result that are read.
const MAX_READ_BYTES: usize = 64 << 10;
/// The fewest bytes of each result that are read.
const MIN_READ_BYTES: usize = 1 << 10;
/// Up to this many bytes of messages results are read fully.
const FULL_READ_BYTES: u64 = 32 << 20;

impl Extract {
    /// Returns an empty collection.
    pub fn new() -> Extract {
        Extract {
            read_bytes: MAX_READ_BYTES,
            ..Extract::default()
        }
    }

    /// Announces how many bytes of messages follow.
    ///
    /// The more there are, the less of each is read, so that the total is bounded: a summary of a gigabyte is no longer
    /// than one of a megabyte.
    pub fn expect(&mut self, bytes: u64) {
        let share = (FULL_READ_BYTES as f64 / bytes.max(1) as f64).min(1.0);
        self.read_bytes = ((MAX_READ_BYTES as f64 * share) as usize).max(MIN_READ_BYTES);
    }

    /// Reads the next message that is folded.
    pub fn message(&mut self, seq: Seq, message: &Message<'_>) {
        let seq = seq.get();
        let first = self.span.map_or(seq, |(first, _)| first.min(seq));
        self.span = Some((first, self.span.map_or(seq, |(_, last)| last.max(seq))));
        if message.role() == Role::Assistant {
            self.typist.reply();
        }
        for deed in tool_action::message_actions_within(message, self.read_bytes) {
            match deed {
                MessageAction::Text(text) => self.read_text(seq, message.role(), &text),
                MessageAction::Call(call) => self.read_call(seq, call),
                MessageAction::Result(given) => self.read_result(seq, given),
            }
        }
    }

    /// Reads the message before the folded ones, which may show which of their text was typed.
    pub fn context(&mut self, message: &Message<'_>) {
        if message.role() == Role::Assistant {
            self.typist.reply();
        }
        for deed in tool_action::message_actions_within(message, self.read_bytes) {
            match deed {
                MessageAction::Text(text) if message.role() == Role::User => {
                    let _ = self.typist.text(&text);
                }
                MessageAction::Result(given) => {
                    let _ = self.typist.result(&given.text);
                }
                _ => {}
            }
        }
    }

    /// Reads a message that stays in view beside the summary, which need not repeat it.
    pub fn stays(&mut self, message: &Message<'_>) {
        for deed in tool_action::message_actions_within(message, self.read_bytes) {
            let text: &str = match &deed {
                MessageAction::Text(text) => text,
                MessageAction::Call(call) => &call.text,
                MessageAction::Result(given) => &given.text,
            };
            if self.in_view.len() + text.len() < MAX_IN_VIEW_BYTES {
                self.in_view.push_str(text);
                self.in_view.push('\n');
            }
        }
    }

    /// Returns about how many bytes it takes, which is bounded.
    pub fn memory_bytes(&self) -> usize {
        self.names.memory_bytes()
            + self.targets.memory_bytes()
            + self.terms.memory_bytes()
            + self.requests.memory_bytes()
            + self.candidates.memory_bytes()
            + self.earlier_summary.len()
            + self.in_view.len()
    }

    fn read_text(&mut self, seq: u64, role: Role, text: &str) {
        match role {
            Role::User => self.read_user_text(seq, text),
            Role::System => {
                if self.system_messages.len() >= 32 {
                    self.system_messages.pop_front();
                }
                self.system_messages.push_back(CitedText {
                    seq,
                    text: cut_middle(text.trim(), 2000),
                });
                self.record(text, seq, MentionOrigin::User, None);
            }
            _ => {
                if !text.trim().is_empty() {
                    self.last_reply = Some(CitedText {
                        seq,
                        text: cut_middle(text.trim(), MAX_LAST_REPLY_BYTES),
                    });
                }
                // A reply is mostly about the file that was used last.
                let near = self.current_file.filter(|(_, when)| when + 6 >= seq);
                let home = near.map(|(place, _)| (place, Affinity::Nearby));
                self.record(text, seq, MentionOrigin::Assistant, home);
                self.candidates.add_reply(seq, text, &self.terms);
            }
        }
    }

    /// Reads the text of a user message; text that the agent injected is no request.
    fn read_user_text(&mut self, seq: u64, text: &str) {
        if is_compaction(text) {
            // An agent's summary matters only if the messages that it replaces are not here.
            let is_known = self
                .span
                .is_some_and(|(first, _)| first + MIN_KNOWN_MESSAGES <= seq);
            if !is_known {
                self.previous(text);
            }
            return;
        }
        match self.typist.text(text) {
            Some(typed) => self.read_typed(seq, &typed),
            None => self.record(text, seq, MentionOrigin::Result, None),
        }
    }

    /// Reads the text that the user typed.
    fn read_typed(&mut self, seq: u64, text: &str) {
        self.candidates.end_turn(requests::is_rejection(text));
        self.requests.push(seq, text);
        self.record(text, seq, MentionOrigin::User, None);
    }

    /// Reads an earlier summary, before the messages that follow it.
    ///
    /// A summary by the extractive summarizer is skipped: it adds nothing to its messages.
    pub fn previous(&mut self, text: &str) {
        if text.contains(write::RECALL_LINE) {
            return;
        }
        let seq = self.span.map_or(1, |(first, _)| first);
        self.record(text, seq, MentionOrigin::Assistant, None);
        self.earlier_summary = cut_middle(text.trim(), MAX_EARLIER_BYTES);
    }

    fn read_call(&mut self, seq: u64, call: ToolCall) {
        let mut home = None;
        let mut files = Vec::new();
        for act in &call.actions {
            let (kind, key, done) = match act {
                ToolAction::Read(path) => (TargetKind::File, path.clone(), FileAction::Read),
                ToolAction::Write(path) => (TargetKind::File, path.clone(), FileAction::Written),
                ToolAction::Create(path) => (TargetKind::File, path.clone(), FileAction::Created),
                ToolAction::Edit(path) => (TargetKind::File, path.clone(), FileAction::Edited),
                ToolAction::Delete(path) => (TargetKind::File, path.clone(), FileAction::Deleted),
                ToolAction::Move { from, to } => {
                    self.targets
                        .touch(TargetKind::File, from, FileAction::Moved, seq);
                    (TargetKind::File, to.clone(), FileAction::Created)
                }
                ToolAction::Run(command) => match commands::viewed_file(command) {
                    Some(path) => (TargetKind::File, path, FileAction::Read),
                    None => {
                        for path in commands::removed_files(command) {
                            self.targets.delete(&path, seq);
                        }
                        (TargetKind::Command, command.clone(), FileAction::Mentioned)
                    }
                },
                ToolAction::Search { what, path } => {
                    let place = path
                        .as_deref()
                        .map_or(String::new(), |path| format!(" in {path}"));
                    (
                        TargetKind::Call,
                        format!("{} {what}{place}", call.name),
                        FileAction::Mentioned,
                    )
                }
                ToolAction::Todos(list) => {
                    self.todos = Some((seq, list.clone()));
                    continue;
                }
                ToolAction::Plan(text) => {
                    self.plan = Some(CitedText {
                        seq,
                        text: cut_middle(&mark_cuts(text), 2000),
                    });
                    continue;
                }
                ToolAction::Other(about) => (
                    TargetKind::Call,
                    format!("{}({})", call.name, about.trim_end_matches([',', ' '])),
                    FileAction::Mentioned,
                ),
            };
            let target = self.targets.touch(kind, &key, done, seq);
            let affinity = if done > FileAction::Read {
                Affinity::Written
            } else {
                Affinity::Content
            };
            if kind == TargetKind::File {
                // Reading a changed file is not recorded as its last action.
                if self.targets.get(target).is_some_and(|file| file.seq == seq) {
                    files.push(target);
                }
                self.current_file = Some((target, seq));
                self.record(&key, seq, MentionOrigin::Call, Some((target, affinity)));
            }
            home = Some((target, kind, affinity));
        }
        if let Some((target, kind, affinity)) = home {
            if self.pending.len() >= MAX_PENDING_CALLS {
                self.pending.pop_front();
            }
            let given = if kind == TargetKind::Command {
                Affinity::Output
            } else {
                Affinity::Content
            };
            self.pending.push_back(UnansweredCall {
                id: call.id,
                seq,
                target,
                kind,
                affinity: given,
                files,
            });
            self.record(
                &call.text,
                seq,
                MentionOrigin::Call,
                Some((target, affinity)),
            );
        }
    }

    fn read_result(&mut self, seq: u64, given: ToolResult<'_>) {
        // The result of a call that the user rejected has their reason.
        if let Some(typed) = self.typist.result(&given.text) {
            self.read_typed(seq, &typed);
        }
        // The call is found by id, among the newest; without an id it is the oldest without one.
        let found = match &given.id {
            Some(_) => self.pending.iter().rposition(|call| call.id == given.id),
            None => self.pending.iter().position(|call| call.id.is_none()),
        };
        let call = found.and_then(|at| self.pending.remove(at));
        let ran = call
            .as_ref()
            .is_some_and(|call| call.kind == TargetKind::Command);
        let ending = tool_action::read_outcome(&given.text, given.failed, ran);
        // A search that finds nothing also ends with a code.
        let found_nothing = !ran && ending.code == Some(1);
        let place = call.as_ref().and_then(|call| self.targets.get(call.target));
        let of = place.map(|place| &*place.key);
        match (&ending.key, of) {
            (Some(key), of) if ending.failed == Some(true) && !found_nothing => {
                self.errors.add(seq, key, of);
            }
            (_, Some(of)) if ending.failed != Some(true) => self.errors.remove_fixed(of),
            _ => {}
        }
        let home = call.as_ref().map(|call| (call.target, call.affinity));
        if let Some(call) = &call {
            debug_assert!(call.seq <= seq);
            // Codes and errors in the content of a file are no failure of the call that shows it.
            let has_failed = given
                .failed
                .unwrap_or(ending.failed == Some(true) && ending.code.is_none());
            if has_failed {
                self.targets.revert(&call.files, call.seq);
            }
            self.targets.end(call.target, seq, ending);
        }
        self.terms.record(&given.text, seq, MentionOrigin::Result);
        self.candidates.add_result(seq, &given.text, &self.terms);
        let names = &mut self.names;
        let keys_matter = call.is_none_or(|call| call.kind != TargetKind::Call);
        references::for_each(&given.text, |name| {
            // The values of a result matter; their keys are the same every time.
            if (keys_matter || !is_key(&given.text, name)) && !is_line_number(&given.text, name) {
                names.record(
                    with_hash(&given.text, name),
                    seq,
                    MentionOrigin::Result,
                    home,
                );
            }
        });
    }

    fn record(
        &mut self,
        text: &str,
        seq: u64,
        origin: MentionOrigin,
        home: Option<(TargetId, Affinity)>,
    ) {
        self.terms.record(text, seq, origin);
        let names = &mut self.names;
        references::for_each(text, |name| {
            names.record(with_hash(text, name), seq, origin, home)
        });
    }
}

/// Returns a colour with its `#`; any other name, a slice of `text`, unchanged.
fn with_hash<'a>(text: &'a str, name: &'a str) -> &'a str {
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    let colour = name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match start.checked_sub(1) {
        Some(before) if colour && text.as_bytes()[before] == b'#' => &text[before..start + 6],
        _ => name,
    }
}

/// Says whether `name`, a slice of `text`, is the number of a line: `101→let x`, `  12: fn`, `a.go:77`.
fn is_line_number(text: &str, name: &str) -> bool {
    if !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    let before = text[..start].trim_end_matches([' ', '\t']);
    let after = &text[start + name.len()..];
    let begins_line = before.is_empty() || before.ends_with('\n');
    begins_line && after.starts_with(['→', '\t', ':', '|', '-', ' '])
        || before.ends_with(':') && before.len() == start
}

/// Says whether `name`, a slice of `text`, is the key of a JSON member.
fn is_key(text: &str, name: &str) -> bool {
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    text[start + name.len()..].starts_with("\":")
}

persist!(UnansweredCall: id, seq, target, kind, affinity, files);
// The typist may start anywhere in a conversation, and other messages are in view each time.
persist!(Extract: names, targets, terms, requests, candidates, last_reply, pending, errors, todos, plan, system_messages,
    earlier_summary, span, read_bytes, current_file; typist, in_view);
