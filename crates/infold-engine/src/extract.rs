//! The summarizer that needs no model: reads what was done from the shape of the messages.
//!
//! Messages stream through [`Extract::message`]; what may matter later is collected in bounded lists, ranked when
//! [`Extract::write`] is told how much room there is, and written where it belongs: names under their file,
//! values under the call that brought them.

pub mod facts;
mod sentence;
mod terms;
mod rules;
mod text;
mod requests;
mod pool;
mod names;
mod places;
mod commands;
mod errors;
mod outline;
mod write;

use std::collections::VecDeque;

use infold_log::{Role, Seq};
use infold_wire::acts::{self, Act, Called, Deed, Given, Todo};
use infold_wire::{Message, Typist, is_compaction};

use crate::refs;
use errors::Errors;
use facts::{Keep, Sink, keep};
use names::{Names, Source, Tie};
pub use outline::outline;
use places::{Done, Kind, PlaceId, Places};
use pool::Pool;
use requests::Requests;
use terms::Vocabulary;
use text::{Line, marked, squeeze};
pub use write::{Form, tokens};

/// Collects what a summary should hold.
#[derive(Default)]
pub struct Extract {
    names: Names,
    places: Places,
    /// What words were met, and who said them.
    words: Vocabulary,
    /// What the user typed.
    requests: Requests,
    /// What may be quoted of the assistant and of results.
    pool: Pool,
    /// The last words of the assistant.
    last_said: Option<Line>,
    /// Tells what the user typed from what their agent put in.
    typist: Typist,
    /// Calls whose results are still to come.
    waiting: VecDeque<Waiting>,
    errors: Errors,
    todos: Option<(u64, Vec<Todo>)>,
    plan: Option<Line>,
    /// What later system messages said.
    system: VecDeque<Line>,
    /// An earlier summary that somebody else wrote.
    earlier: String,
    /// The first and the last message taken.
    span: Option<(u64, u64)>,
    /// How much of each result is looked at, in bytes.
    look: usize,
    /// The file last worked on, and when.
    at_hand: Option<(PlaceId, u64)>,
    /// What messages say that stay in view beside the summary.
    in_view: String,
}

struct Waiting {
    id: Option<String>,
    seq: u64,
    place: PlaceId,
    kind: Kind,
    tie: Tie,
    /// The files that it does something to.
    files: Vec<PlaceId>,
}

const WAITING: usize = 256;
/// More text than this in view is not compared with the summary.
const MAX_IN_VIEW_BYTES: usize = 512 << 10;
const EARLIER: usize = 64 * 1024;
const MAX_LAST_SAID_BYTES: usize = 1_600;
/// With so many messages before it, a summary of an agent's own says nothing that is not here.
const MIN_KNOWN_MESSAGES: u64 = 20;

/// How much of each result is looked at.
const LOOK: usize = 64 << 10;
/// And at the least.
const LEAST: usize = 1 << 10;
/// From so many bytes on less of each is.
const ENOUGH: u64 = 32 << 20;

impl Extract {
    /// Returns one that has seen nothing.
    pub fn new() -> Extract {
        Extract {
            look: LOOK,
            ..Extract::default()
        }
    }

    /// Says how many bytes of messages it sees in all.
    ///
    /// Of more than it could say anything about, it looks at less of each: what is read in all
    /// is bounded, and a summary of a gigabyte is no longer than one of a megabyte.
    pub fn expect(&mut self, bytes: u64) {
        let share = (ENOUGH as f64 / bytes.max(1) as f64).min(1.0);
        self.look = ((LOOK as f64 * share) as usize).max(LEAST);
    }

    /// Takes in the next message of what is to be folded.
    pub fn message(&mut self, seq: Seq, message: &Message<'_>) {
        let seq = seq.get();
        let first = self.span.map_or(seq, |(first, _)| first.min(seq));
        self.span = Some((first, self.span.map_or(seq, |(_, last)| last.max(seq))));
        if message.role() == Role::Assistant {
            self.typist.reply();
        }
        for deed in acts::deeds_within(message, self.look) {
            match deed {
                Deed::Said(text) => self.said(seq, message.role(), &text),
                Deed::Called(call) => self.called(seq, call),
                Deed::Given(given) => self.given(seq, given),
            }
        }
    }

    /// Takes note of a message that is not folded and stands before the next one that is: what a person
    /// typed is told by what came before it.
    pub fn context(&mut self, message: &Message<'_>) {
        if message.role() == Role::Assistant {
            self.typist.reply();
        }
        for deed in acts::deeds_within(message, self.look) {
            match deed {
                Deed::Said(text) if message.role() == Role::User => {
                    let _ = self.typist.text(&text);
                }
                Deed::Given(given) => {
                    let _ = self.typist.result(&given.text);
                }
                _ => {}
            }
        }
    }

    /// Takes note of a message that stays in view beside the summary: what it says need not be said again.
    pub fn stays(&mut self, message: &Message<'_>) {
        for deed in acts::deeds_within(message, self.look) {
            let text: &str = match &deed {
                Deed::Said(text) => text,
                Deed::Called(call) => &call.text,
                Deed::Given(given) => &given.text,
            };
            if self.in_view.len() + text.len() < MAX_IN_VIEW_BYTES {
                self.in_view.push_str(text);
                self.in_view.push('\n');
            }
        }
    }

    /// Returns about how many bytes it holds; bounded, however much passed through.
    pub fn held(&self) -> usize {
        self.names.held()
            + self.places.held()
            + self.words.held()
            + self.requests.held()
            + self.pool.held()
            + self.earlier.len()
            + self.in_view.len()
    }

    fn said(&mut self, seq: u64, role: Role, text: &str) {
        match role {
            Role::User => self.asked(seq, text),
            Role::System => {
                if self.system.len() >= 32 {
                    self.system.pop_front();
                }
                self.system.push_back(Line {
                    seq,
                    text: squeeze(text.trim(), 2000),
                });
                self.meet(text, seq, Source::User, None);
            }
            _ => {
                if !text.trim().is_empty() {
                    self.last_said = Some(Line {
                        seq,
                        text: squeeze(text.trim(), MAX_LAST_SAID_BYTES),
                    });
                }
                // What is said while a file is worked on is mostly about it.
                let near = self.at_hand.filter(|(_, when)| when + 6 >= seq);
                let home = near.map(|(place, _)| (place, Tie::Near));
                self.meet(text, seq, Source::Said, home);
                self.pool.said(seq, text, &self.words);
            }
        }
    }

    /// Takes what stands in a message of the user. What their agent put in is no request.
    fn asked(&mut self, seq: u64, text: &str) {
        if is_compaction(text) {
            // It matters only if the messages that it stands for are not here.
            let is_known = self
                .span
                .is_some_and(|(first, _)| first + MIN_KNOWN_MESSAGES <= seq);
            if !is_known {
                self.previous(text);
            }
            return;
        }
        match self.typist.text(text) {
            Some(typed) => self.typed(seq, &typed),
            None => self.meet(text, seq, Source::Given, None),
        }
    }

    /// Takes what the user typed.
    fn typed(&mut self, seq: u64, text: &str) {
        self.pool.user_speaks(requests::turns_down(text));
        self.requests.push(seq, text);
        self.meet(text, seq, Source::User, None);
    }

    /// Takes in an earlier summary of what is not told here again, before the messages that follow it.
    ///
    /// One that code wrote says nothing that the messages it stands for do not: it is left out.
    pub fn previous(&mut self, text: &str) {
        if text.contains(write::RECALL_LINE) {
            return;
        }
        let seq = self.span.map_or(1, |(first, _)| first);
        self.meet(text, seq, Source::Said, None);
        self.earlier = squeeze(text.trim(), EARLIER);
    }

    fn called(&mut self, seq: u64, call: Called) {
        let mut home = None;
        let mut files = Vec::new();
        for act in &call.acts {
            let (kind, key, done) = match act {
                Act::Read(path) => (Kind::File, path.clone(), Done::Read),
                Act::Write(path) => (Kind::File, path.clone(), Done::Written),
                Act::Create(path) => (Kind::File, path.clone(), Done::Created),
                Act::Edit(path) => (Kind::File, path.clone(), Done::Edited),
                Act::Delete(path) => (Kind::File, path.clone(), Done::Deleted),
                Act::Move { from, to } => {
                    self.places.touch(Kind::File, from, Done::Moved, seq);
                    (Kind::File, to.clone(), Done::Created)
                }
                Act::Run(command) => match commands::viewed(command) {
                    Some(path) => (Kind::File, path, Done::Read),
                    None => {
                        for path in commands::removed(command) {
                            self.places.delete(&path, seq);
                        }
                        (Kind::Command, command.clone(), Done::Mentioned)
                    }
                },
                Act::Search { what, path } => {
                    let place = path
                        .as_deref()
                        .map_or(String::new(), |path| format!(" in {path}"));
                    (
                        Kind::Call,
                        format!("{} {what}{place}", call.name),
                        Done::Mentioned,
                    )
                }
                Act::Todos(list) => {
                    self.todos = Some((seq, list.clone()));
                    continue;
                }
                Act::Plan(text) => {
                    self.plan = Some(Line {
                        seq,
                        text: squeeze(&marked(text), 2000),
                    });
                    continue;
                }
                Act::Other(about) => (
                    Kind::Call,
                    format!("{}({})", call.name, about.trim_end_matches([',', ' '])),
                    Done::Mentioned,
                ),
            };
            let place = self.places.touch(kind, &key, done, seq);
            let tie = if done > Done::Read {
                Tie::Written
            } else {
                Tie::Inside
            };
            if kind == Kind::File {
                // A look at a file that was changed tells nothing of it.
                if self.places.get(place).is_some_and(|file| file.seq == seq) {
                    files.push(place);
                }
                self.at_hand = Some((place, seq));
                self.meet(&key, seq, Source::Called, Some((place, tie)));
            }
            home = Some((place, kind, tie));
        }
        if let Some((place, kind, tie)) = home {
            if self.waiting.len() >= WAITING {
                self.waiting.pop_front();
            }
            let given = if kind == Kind::Command {
                Tie::Shown
            } else {
                Tie::Inside
            };
            self.waiting.push_back(Waiting {
                id: call.id,
                seq,
                place,
                kind,
                tie: given,
                files,
            });
            self.meet(&call.text, seq, Source::Called, Some((place, tie)));
        }
    }

    fn given(&mut self, seq: u64, given: Given<'_>) {
        // A call that the user turned down comes back with their reason.
        if let Some(typed) = self.typist.result(&given.text) {
            self.typed(seq, &typed);
        }
        // By id, which is among the newest; or the oldest that waits without one.
        let found = match &given.id {
            Some(_) => self.waiting.iter().rposition(|call| call.id == given.id),
            None => self.waiting.iter().position(|call| call.id.is_none()),
        };
        let call = found.and_then(|at| self.waiting.remove(at));
        let ran = call.as_ref().is_some_and(|call| call.kind == Kind::Command);
        let ending = acts::ending(&given.text, given.failed, ran);
        // A look that finds nothing also ends with a code.
        let found_nothing = !ran && ending.code == Some(1);
        let place = call.as_ref().and_then(|call| self.places.get(call.place));
        let of = place.map(|place| &*place.key);
        match (&ending.key, of) {
            (Some(key), of) if ending.failed == Some(true) && !found_nothing => {
                self.errors.add(seq, key, of);
            }
            (_, Some(of)) if ending.failed != Some(true) => self.errors.passed(of),
            _ => {}
        }
        let home = call.as_ref().map(|call| (call.place, call.tie));
        if let Some(call) = &call {
            debug_assert!(call.seq <= seq);
            // What a file says of codes and errors is no failure of the call that shows it.
            let has_failed = given
                .failed
                .unwrap_or(ending.failed == Some(true) && ending.code.is_none());
            if has_failed {
                self.places.take_back(&call.files, call.seq);
            }
            self.places.end(call.place, seq, ending);
        }
        self.words.meet(&given.text, seq, Source::Given);
        self.pool.given(seq, &given.text, &self.words);
        let names = &mut self.names;
        let keys_matter = call.is_none_or(|call| call.kind != Kind::Call);
        refs::each(&given.text, |name| {
            // What a call brings is the values; their keys are the same every time.
            if (keys_matter || !is_key(&given.text, name)) && !is_line_number(&given.text, name) {
                names.meet(whole(&given.text, name), seq, Source::Given, home);
            }
        });
    }

    fn meet(&mut self, text: &str, seq: u64, source: Source, home: Option<(PlaceId, Tie)>) {
        self.words.meet(text, seq, source);
        let names = &mut self.names;
        refs::each(text, |name| {
            names.meet(whole(text, name), seq, source, home)
        });
    }
}

/// A colour with its `#`; any other name, a piece of `text`, as it is.
fn whole<'a>(text: &'a str, name: &'a str) -> &'a str {
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    let colour = name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match start.checked_sub(1) {
        Some(before) if colour && text.as_bytes()[before] == b'#' => &text[before..start + 6],
        _ => name,
    }
}

/// Says whether `name`, a piece of `text`, is the number of a line: `101→let x`, `  12: fn`, `a.go:77`.
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

/// Says whether `name`, a piece of `text`, stands there as the key of a JSON member.
fn is_key(text: &str, name: &str) -> bool {
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    text[start + name.len()..].starts_with("\":")
}

keep!(Waiting {
    id,
    seq,
    place,
    kind,
    tie,
    files
});

impl Keep for Extract {
    fn put(&self, out: &mut Sink<'_>) {
        self.names.put(out);
        self.places.put(out);
        self.words.put(out);
        self.requests.put(out);
        self.pool.put(out);
        self.last_said.put(out);
        self.waiting.put(out);
        self.errors.put(out);
        self.todos.put(out);
        self.plan.put(out);
        self.system.put(out);
        self.earlier.put(out);
        self.span.put(out);
        self.look.put(out);
        self.at_hand.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Extract> {
        Some(Extract {
            names: Keep::get(from)?,
            places: Keep::get(from)?,
            words: Keep::get(from)?,
            requests: Keep::get(from)?,
            pool: Keep::get(from)?,
            last_said: Keep::get(from)?,
            waiting: Keep::get(from)?,
            errors: Keep::get(from)?,
            todos: Keep::get(from)?,
            plan: Keep::get(from)?,
            system: Keep::get(from)?,
            earlier: Keep::get(from)?,
            span: Keep::get(from)?,
            look: Keep::get(from)?,
            at_hand: Keep::get(from)?,
            // It may start anywhere in a conversation.
            typist: Typist::default(),
            // Other messages stay in view each time.
            in_view: String::new(),
        })
    }
}
