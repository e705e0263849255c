//! Properties that hold after any sequence of operations, on real files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use infold_log::steer::{Side, Target};
use infold_log::{EventId, Floor, Item, Past as _, Pinned, Point, Seq, Shown, Span, View, view_at};
use infold_store::{Contexts, Durability, LogError, Metadata, Outcome, StepError, What, Writer};
use infold_wire::{Message, Wire};
use proptest::prelude::*;
use proptest::sample::Index;
use uuid::Uuid;

/// Everything in a task's directory that follows from its log.
const CACHES: [&str; 7] = [
    "current.jsonl",
    "current.idx",
    "messages.idx",
    "events.idx",
    "states.idx",
    "summaries.jsonl",
    "tools.jsonl",
];

/// A message to come: numbers that [`Said::text`] turns into one.
#[derive(Clone, Copy, Debug)]
struct Said {
    kind: u8,
    first: u8,
    second: u8,
    dress: u8,
}

#[derive(Clone, Debug)]
enum Op {
    Append(Vec<Said>),
    Condense(Index, Index),
    Truncate(u8),
    Mask(Index, u32),
    Unfold(Index),
    Rewind(Side, Goal, Index),
    Undo,
    Redo,
    Pin(Index),
    Unpin(Index),
    Note,
    Tool(u8),
    /// Close it and open it again.
    Reopen,
    /// Close it, remove every cache and open it again.
    Forget,
    /// Look at it without a lock, whatever the sidecars know.
    Read,
    /// Look at what was shown at an earlier point.
    Recall(Index),
    /// Go on in a fork, from a point or from the end.
    Fork(Option<Index>),
}

#[derive(Clone, Copy, Debug)]
enum Goal {
    Message,
    Event,
    Time,
}

fn any_said() -> impl Strategy<Value = Said> {
    let kind = prop_oneof![
        4 => 0u8..4,
        6 => 4u8..8,
        2 => 8u8..14,
    ];
    (kind, 0u8..5, 0u8..5, 0u8..24).prop_map(|(kind, first, second, dress)| Said {
        kind,
        first,
        second,
        dress,
    })
}

fn any_wire() -> impl Strategy<Value = Wire> {
    let wires = [Wire::Chat, Wire::Anthropic, Wire::Gemini, Wire::Responses];
    prop::sample::select(wires.to_vec())
}

fn any_op() -> impl Strategy<Value = Op> {
    let side = prop_oneof![Just(Side::To), Just(Side::Before)];
    let goal = prop_oneof![
        3 => Just(Goal::Message),
        3 => Just(Goal::Event),
        1 => Just(Goal::Time),
    ];
    let index = any::<Index>;
    prop_oneof![
        14 => prop::collection::vec(any_said(), 1..6).prop_map(Op::Append),
        3 => (index(), index()).prop_map(|(from, to)| Op::Condense(from, to)),
        2 => (1u8..=10).prop_map(Op::Truncate),
        2 => (index(), 0u32..3).prop_map(|(seq, part)| Op::Mask(seq, part)),
        3 => index().prop_map(Op::Unfold),
        3 => (side, goal, index()).prop_map(|(side, goal, at)| Op::Rewind(side, goal, at)),
        4 => Just(Op::Undo),
        3 => Just(Op::Redo),
        2 => index().prop_map(Op::Pin),
        1 => index().prop_map(Op::Unpin),
        1 => Just(Op::Note),
        1 => (0u8..4).prop_map(Op::Tool),
        1 => Just(Op::Reopen),
        1 => Just(Op::Forget),
        1 => Just(Op::Read),
        2 => index().prop_map(Op::Recall),
        1 => prop::option::of(index()).prop_map(Op::Fork),
    ]
}

impl Said {
    /// The message on one of the wires.
    fn text(self, wire: Wire, number: usize) -> String {
        let plain = match wire {
            Wire::Chat | Wire::Ollama => self.chat(number),
            Wire::Anthropic => self.blocks(number),
            Wire::Gemini => self.content(number),
            Wire::Responses => self.item(number),
        };
        self.dressed(plain)
    }

    fn chat(self, number: usize) -> String {
        let (a, b) = (self.first, self.second);
        let call = |id: u8| {
            format!(
                r#"{{"id":"c{id}","type":"function","function":{{"name":"f{id}","arguments":"{{}}"}}}}"#
            )
        };
        match self.kind {
            0 => format!(r#"{{"role":"user","content":"ask {number}"}}"#),
            1 => format!(r#"{{"role":"assistant","content":"answer {number}"}}"#),
            2 => format!(
                r#"{{"role":"user","content":[{{"type":"text","text":"see"}},{{"type":"image_url","image_url":{{"url":"data:{number}"}}}}]}}"#
            ),
            3 => format!(
                r#"{{"role":"assistant","content":"{number}","reasoning_content":"because"}}"#
            ),
            4 if a != b => format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{},{}]}}"#,
                call(a),
                call(b)
            ),
            4 | 5 => format!(
                r#"{{"role":"assistant","tool_calls":[{}],"reasoning_content":"{number}"}}"#,
                call(a)
            ),
            6 => format!(r#"{{"role":"tool","tool_call_id":"c{a}","content":"result {number}"}}"#),
            7 => format!(
                r#"{{"role":"tool","tool_call_id":"c{b}","content":[{{"type":"text","text":"{number}"}}]}}"#
            ),
            8 => format!(r#"{{"role":"system","content":"rule {number}"}}"#),
            9 => format!(r#"{{"role":"developer","content":"rule {number}"}}"#),
            10 => format!(
                r#"{{"role":"assistant","content":null,"function_call":{{"name":"f{a}","arguments":"{{}}"}}}}"#
            ),
            11 => format!(r#"{{"role":"function","name":"f{a}","content":"{number}"}}"#),
            12 => format!(r#"{{"role":"tool","tool_name":"f{a}","content":"no id {number}"}}"#),
            _ => [
                r#"{"role":"assistant","content":null}"#,
                r#"{"role":"user","content":""}"#,
            ][usize::from(a % 2)]
            .to_owned(),
        }
    }

    fn blocks(self, number: usize) -> String {
        let (a, b) = (self.first, self.second);
        let call = |id: u8| {
            format!(r#"{{"type":"tool_use","id":"t{id}","name":"f{id}","input":{{"n":{number}}}}}"#)
        };
        let result = |id: u8| {
            format!(r#"{{"type":"tool_result","tool_use_id":"t{id}","content":"result {number}"}}"#)
        };
        match self.kind {
            0 | 8 => format!(r#"{{"role":"user","content":"ask {number}"}}"#),
            1 => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {number}"}}]}}"#
            ),
            2 => format!(
                r#"{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","data":"{number}"}}}},{{"type":"text","text":"see"}}]}}"#
            ),
            3 => format!(
                r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"{number}","signature":"s"}},{{"type":"text","text":"so"}}]}}"#
            ),
            4 if a != b => format!(
                r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"","signature":"s"}},{},{}]}}"#,
                call(a),
                call(b)
            ),
            4 | 5 => format!(r#"{{"role":"assistant","content":[{}]}}"#, call(a)),
            6 if a != b => format!(
                r#"{{"role":"user","content":[{},{}]}}"#,
                result(a),
                result(b)
            ),
            6 | 7 => format!(
                r#"{{"role":"user","content":[{},{{"type":"text","text":"and {number}"}}]}}"#,
                result(a)
            ),
            9 => r#"{"role":"user","content":[]}"#.to_owned(),
            10 => r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}"#
                .to_owned(),
            11 => format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{a}"}}]}}"#
            ),
            12 => format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{a}","content":[{{"type":"image","source":{{}}}}],"is_error":true}}]}}"#
            ),
            _ => r#"{"role":"assistant","content":""}"#.to_owned(),
        }
    }

    /// Calls and results of Gemini's: every other tool has no ids.
    fn content(self, number: usize) -> String {
        let (a, b) = (self.first, self.second);
        let id = |id: u8| match id % 2 {
            0 => String::new(),
            _ => format!(r#""id":"g{id}","#),
        };
        let call = |tool: u8| {
            let id = id(tool);
            format!(r#"{{"functionCall":{{{id}"name":"f{tool}","args":{{"n":{number}}}}}}}"#)
        };
        let result = |tool: u8, response: &str| {
            let id = id(tool);
            format!(r#"{{"functionResponse":{{{id}"name":"f{tool}","response":{response}}}}}"#)
        };
        let given = format!(r#"{{"output":"result {number}"}}"#);
        match self.kind {
            0 | 8 => format!(r#"{{"role":"user","parts":[{{"text":"ask {number}"}}]}}"#),
            1 => format!(r#"{{"role":"model","parts":[{{"text":"answer {number}"}}]}}"#),
            2 => format!(
                r#"{{"role":"user","parts":[{{"text":"see"}},{{"inlineData":{{"mimeType":"image/png","data":"{number}"}}}}]}}"#
            ),
            3 => format!(
                r#"{{"role":"model","parts":[{{"text":"{number}","thought":true}},{{"text":"so","thoughtSignature":"s"}}]}}"#
            ),
            4 if a != b => format!(r#"{{"role":"model","parts":[{},{}]}}"#, call(a), call(b)),
            4 | 5 => format!(r#"{{"parts":[{}],"role":"model"}}"#, call(a)),
            6 if a != b => format!(
                r#"{{"role":"user","parts":[{},{}]}}"#,
                result(a, &given),
                result(b, "{}")
            ),
            6 | 7 => format!(
                r#"{{"role":"user","parts":[{},{{"text":"and {number}"}}]}}"#,
                result(a, r#"{"result":[1,"x"]}"#)
            ),
            9 => format!(r#"{{"parts":[{{"text":"no role {number}"}}]}}"#),
            10 => format!(r#"{{"role":"system","parts":[{{"text":"rule {number}"}}]}}"#),
            11 => format!(r#"{{"role":"function","parts":[{}]}}"#, result(a, &given)),
            12 => format!(r#"{{"parts":[{}]}}"#, result(a, r#"{"error":"no"}"#)),
            _ => [
                r#"{"role":"model","parts":[]}"#,
                r#"{"parts":[{"text":" "}]}"#,
            ][usize::from(a % 2)]
            .to_owned(),
        }
    }

    /// An item of Responses: an output is several of them.
    fn item(self, number: usize) -> String {
        let (a, b) = (self.first, self.second);
        match self.kind {
            0 => format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"ask {number}"}}]}}"#
            ),
            1 => format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"answer {number}"}}]}}"#
            ),
            2 => format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_image","image_url":"data:{number}"}}]}}"#
            ),
            3 => format!(
                r#"{{"type":"reasoning","id":"r{number}","summary":[],"encrypted_content":"x"}}"#
            ),
            4 => format!(
                r#"{{"type":"function_call","call_id":"c{a}","name":"f{a}","arguments":"{{}}"}}"#
            ),
            5 => format!(
                r#"{{"type":"custom_tool_call","call_id":"c{b}","name":"f{b}","input":"{number}"}}"#
            ),
            6 => format!(
                r#"{{"type":"function_call_output","call_id":"c{a}","output":"result {number}"}}"#
            ),
            7 => format!(
                r#"{{"type":"custom_tool_call_output","call_id":"c{b}","output":[{{"type":"input_text","text":"{number}"}}]}}"#
            ),
            8 => format!(r#"{{"type":"message","role":"developer","content":"rule {number}"}}"#),
            9 => format!(r#"{{"type":"web_search_call","id":"w{number}","status":"completed"}}"#),
            10 => format!(
                r#"{{"type":"local_shell_call","call_id":"c{a}","action":{{"command":["ls"]}}}}"#
            ),
            11 => format!(r#"{{"type":"local_shell_call_output","id":"l{a}","output":"{number}"}}"#),
            12 => format!(r#"{{"role":"user","content":"easy {number}"}}"#),
            _ => [
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}"#,
                r#"{"role":"user","content":""}"#,
            ][usize::from(a % 2)]
            .to_owned(),
        }
    }

    /// The same message with something about it that a careless reader would trip over.
    fn dressed(self, plain: String) -> String {
        let open = &plain[..plain.len() - 1];
        match self.dress {
            0 => format!(r#"{open},"seq":7,"timestamp":"2020-01-01T00:00:00.000Z","tokens":1}}"#),
            1 => format!(r#"{open},"note":"\ud83d lone"}}"#),
            2 => format!(r#"{open},"x":1,"x":2,"big":123456789012345678901234567890e400}}"#),
            3 => format!("  {open}\r\n ,\n\t\"odd\" :\n[ ]\n}}\n"),
            4 => format!(r#"{open},"odd":",\"seq\":9,\"timestamp\":\"t\",\"tokens\":3}}"}}"#),
            5 => format!("{open},\"wide\":\"\u{2028}\u{1f680}\"}}"),
            _ => plain,
        }
    }
}

/// A message as it should come back: without line breaks between tokens and without space around it.
fn kept(text: &str) -> Vec<u8> {
    let bytes = text.trim().bytes();
    bytes
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect()
}

/// The view at an earlier point, and its bytes.
struct Moment {
    at: Point,
    shown: Shown,
    bytes: Vec<u8>,
}

/// A task on disk, beside what it should be.
struct World {
    contexts: Contexts,
    _root: tempfile::TempDir,
    wire: Wire,
    id: Uuid,
    writer: Option<Writer>,
    said: Vec<Vec<u8>>,
    /// Which of them the wire takes as they are.
    native: Vec<bool>,
    history: Vec<Moment>,
    files: [Vec<u8>; 2],
    ended: Vec<Uuid>,
}

impl World {
    fn new(wire: Wire) -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let metadata = Metadata {
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        };
        let id = contexts.create(metadata).expect("a task");
        let (writer, _) = contexts.write(id).expect("a writer");
        World {
            contexts,
            _root: root,
            wire,
            id,
            writer: Some(writer),
            said: Vec::new(),
            native: Vec::new(),
            history: Vec::new(),
            files: Default::default(),
            ended: Vec::new(),
        }
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("it is open")
    }

    fn dir(&self) -> PathBuf {
        self.contexts.place(self.id).expect("it has a directory")
    }

    fn at(&self) -> Point {
        let writer = self.writer.as_ref().expect("it is open");
        writer.log().state().at()
    }

    fn seq(&self, index: &Index) -> Option<Seq> {
        let last = self.at().seq as usize;
        (last > 0).then(|| Seq::new(index.index(last) as u64 + 1))?
    }

    fn event(&self, index: &Index) -> Option<EventId> {
        let last = self.at().event as usize;
        (last > 0).then(|| EventId::new(index.index(last) as u64 + 1))?
    }

    fn close(&mut self) {
        let writer = self.writer.take().expect("it is open");
        self.contexts.settle(self.id, &writer).expect("counted");
        drop(writer);
        assert!(
            fs::read(self.dir().join("lock"))
                .expect("a lock")
                .is_empty(),
            "a task that was closed leaves no name in its lock"
        );
    }

    fn open(&mut self) {
        let (writer, repairs) = self.contexts.write(self.id).expect("a writer");
        assert_eq!(repairs, [], "nothing to repair after a close in good order");
        self.writer = Some(writer);
    }

    /// Does an operation. One that the rules refuse changes nothing.
    fn play(&mut self, op: &Op) {
        let before = self.at();
        match self.try_play(op) {
            Ok(()) => {}
            Err(StepError::Past(error)) => panic!("{op:?}: {error}"),
            Err(_) => assert_eq!(self.at(), before, "{op:?} was refused"),
        }
        self.check();
    }

    fn try_play(&mut self, op: &Op) -> Result<(), StepError> {
        match op {
            Op::Append(batch) => self.append(batch),
            Op::Condense(one, other) => {
                if let (Some(one), Some(other)) = (self.seq(one), self.seq(other)) {
                    let span = Span::new(one.min(other), one.max(other)).expect("in order");
                    self.writer().condense(span, "what was said")?;
                }
            }
            Op::Truncate(tenths) => {
                self.writer().truncate(f64::from(*tenths) / 10.0)?;
            }
            Op::Mask(seq, part) => {
                if let Some(seq) = self.seq(seq) {
                    self.writer().mask(seq, *part)?;
                }
            }
            Op::Unfold(index) => self.unfold(index)?,
            Op::Rewind(side, goal, index) => self.rewind(*side, *goal, index)?,
            Op::Undo => {
                self.writer().undo()?;
            }
            Op::Redo => {
                self.writer().redo()?;
            }
            Op::Pin(seq) => {
                if let Some(seq) = self.seq(seq) {
                    self.writer().pin(seq)?;
                }
            }
            Op::Unpin(index) => self.unpin(index)?,
            Op::Note => {
                self.writer().note("mind \"this\"\n")?;
            }
            Op::Tool(kind) => self.tool(*kind),
            Op::Reopen => {
                self.close();
                self.open();
            }
            Op::Forget => self.forget(),
            Op::Read => self.read(),
            Op::Recall(index) => self.recall(index),
            Op::Fork(index) => self.fork(index.as_ref())?,
        }
        Ok(())
    }

    fn append(&mut self, batch: &[Said]) {
        let (wire, next) = (self.wire, self.said.len() + 1);
        let texts = batch.iter().zip(next..);
        let texts: Vec<String> = texts
            .map(|(said, number)| said.text(wire, number))
            .collect();
        let span = self.writer().append(&texts).expect("these are messages");
        let span = span.expect("there were some");
        assert_eq!(
            (span.from().get(), span.count()),
            (next as u64, texts.len() as u64)
        );
        self.said.extend(texts.iter().map(|text| kept(text)));
        self.native.extend(texts.iter().map(|text| {
            let message = Message::parse(text.as_bytes()).expect("a message");
            message.wires().has(wire)
        }));
    }

    fn unfold(&mut self, index: &Index) -> Result<(), StepError> {
        let shown = self.writer().log().state().shown();
        let active = shown.items().iter().filter_map(|item| match item {
            Item::Fold(fold) => Some(fold.id),
            Item::Run(_) => None,
        });
        let mut ids: Vec<EventId> = active.collect();
        ids.extend(shown.all_masks().map(|(.., mask)| mask.id));
        // Now and then one that is not a fold, or not active.
        ids.extend(self.event(index));
        if !ids.is_empty() {
            let id = ids[index.index(ids.len())];
            self.writer().unfold(id)?;
        }
        Ok(())
    }

    fn rewind(&mut self, side: Side, goal: Goal, index: &Index) -> Result<(), StepError> {
        let target = match goal {
            Goal::Message => self.seq(index).map(|seq| Target::Message(seq.get())),
            Goal::Event => self.event(index).map(|event| Target::Event(event.get())),
            Goal::Time => match self.seq(index) {
                Some(seq) => Some(Target::Time(self.writer().log().record(seq)?.time)),
                None => None,
            },
        };
        if let Some(target) = target {
            self.writer().rewind(side, target)?;
            self.is_time_travel();
        }
        Ok(())
    }

    /// After a rewind the view is what it was at the point it names.
    fn is_time_travel(&mut self) {
        let log = self.writer().log();
        let last = log.state().last_event().expect("the rewind");
        let What::Rewind(point) = log.event(last).expect("an event").what else {
            panic!("not a rewind");
        };
        let shown = log.state().shown().clone();
        let then = self.history.iter().find(|moment| moment.at == point);
        assert!(
            then.is_none_or(|then| then.shown == shown),
            "rewound to {point}"
        );
    }

    fn unpin(&mut self, index: &Index) -> Result<(), StepError> {
        let shown = self.writer().log().state().shown();
        let mut pins: Vec<Pinned> = shown.pins().map(Pinned::Message).collect();
        pins.extend(shown.notes().map(|(id, _)| Pinned::Note(id)));
        if !pins.is_empty() {
            let pin = pins[index.index(pins.len())];
            self.writer().unpin(pin)?;
        }
        Ok(())
    }

    fn tool(&mut self, kind: u8) {
        let record = [
            r#"{"tool":"ls","args":{"a":[1, 2]},"result":"x\ud83d","duration_ms":3}"#,
            "{\n\"tool\": \"cat\",\"error\":\"no\"}",
            r#"{"tool":"rm","status":"error","extra":1}"#,
            r#"{"tool":"ls","seq":9,"timestamp":"t","result":null}"#,
        ][usize::from(kind)];
        self.writer()
            .tool(record.as_bytes())
            .expect("a tool record");
    }

    fn forget(&mut self) {
        self.close();
        let before = caches(&self.dir());
        for name in CACHES {
            let _ = fs::remove_file(self.dir().join(name));
        }
        drop(self.contexts.write(self.id).expect("a writer"));
        for (name, bytes) in caches(&self.dir()) {
            assert!(bytes == before[name], "{name} is not what it was");
        }
        self.open();
    }

    fn read(&mut self) {
        let log = self.contexts.read(self.id).expect("a reader");
        assert_eq!(log.state(), self.writer().log().state());
    }

    fn recall(&mut self, index: &Index) {
        if self.history.is_empty() {
            return;
        }
        let moment = &self.history[index.index(self.history.len())];
        let log = self.writer.as_ref().expect("it is open").log();
        let shown = log.shown(moment.at).expect("what was shown");
        assert_eq!(shown, moment.shown, "at {}", moment.at);
        let view = view_at(moment.at, log).expect("a view");
        let bytes = log.rendered(&view).expect("a view in bytes");
        assert!(
            bytes == moment.bytes,
            "the view at {} has other bytes",
            moment.at
        );
    }

    fn fork(&mut self, index: Option<&Index>) -> Result<(), StepError> {
        self.close();
        let log = self.contexts.read(self.id).expect("a reader");
        let at = log.state().at();
        let target = index
            .filter(|_| at.seq > 0)
            .map(|index| Target::Message(index.index(at.seq as usize) as u64 + 1));
        let child = self.contexts.fork(self.id, target).expect("a fork");
        self.ended.push(std::mem::replace(&mut self.id, child));
        let (_, at) = self
            .contexts
            .read(child)
            .expect("a reader")
            .parent()
            .map(|(id, at)| (id.to_owned(), at))
            .expect("a parent");
        self.said.truncate(at.seq as usize);
        self.native.truncate(at.seq as usize);
        self.history
            .retain(|moment| moment.at.seq <= at.seq && moment.at.event <= at.event);
        self.files = [
            Vec::new(),
            fs::read(self.dir().join("events.jsonl")).expect("events"),
        ];
        self.open();
        Ok(())
    }

    /// Asserts the properties that hold after every step.
    fn check(&mut self) {
        let writer = self.writer.as_mut().expect("it is open");
        writer.sync().expect("it can be synced");
        let log = writer.log();
        let shown = log.state().shown();
        let view = View::of(shown, log).expect("a view");
        let verdict = log
            .check(&view, &Floor::of(shown, log).expect("a floor"))
            .expect("a verdict");
        assert_eq!(verdict.faults, [], "the view is not valid");
        assert_eq!(verdict.open, view.is_open());
        let bytes = log.rendered(&view).expect("a view in bytes");
        let current = fs::read(log.dir().join("current.jsonl")).expect("current.jsonl");
        assert!(current == bytes, "current.jsonl is not the view");
        let mut foreign = Vec::new();
        log.render(&view, &mut |source, bytes| {
            // Messages made here have the form of the task's wire, and messages that came over it keep theirs.
            let own = source
                .seq()
                .map_or(Ok(true), |seq| log.is_native(Span::one(seq), self.wire))?;
            let message = Message::parse(bytes).expect("a message");
            if own && !message.wires().has(self.wire) {
                foreign.push(String::from_utf8_lossy(bytes).into_owned());
            }
            Ok(())
        })
        .expect("a view in bytes");
        assert!(foreign.is_empty(), "not for {}: {foreign:?}", self.wire);
        self.history.push(Moment {
            at: log.state().at(),
            shown: shown.clone(),
            bytes,
        });
        self.grew();
    }

    /// The files of the log only grow, and hold every message as it came.
    fn grew(&mut self) {
        let dir = self.dir();
        for (name, old) in ["messages.jsonl", "events.jsonl"]
            .iter()
            .zip(&mut self.files)
        {
            let new = fs::read(dir.join(name)).expect("a file of the log");
            assert!(new.starts_with(old), "{name} lost bytes");
            *old = new;
        }
        let log = self.writer.as_ref().expect("it is open").log();
        assert_eq!(log.state().at().seq, self.said.len() as u64);
        let Some(all) =
            Seq::new(self.said.len() as u64).and_then(|last| Span::new(Seq::FIRST, last))
        else {
            return;
        };
        let one = |seq| log.is_native(Span::one(seq), self.wire);
        let known: Result<Vec<bool>, LogError> = all.seqs().map(one).collect();
        assert_eq!(known.expect("an index"), self.native);
        let whole = log.is_native(all, self.wire).expect("an index");
        assert_eq!(whole, self.native.iter().all(|native| *native));
        let mut said = self.said.iter();
        let each = log.each_message(all, &mut |_, bytes| {
            assert_eq!(Some(bytes), said.next().map(|said| &said[..]));
            Ok::<(), LogError>(())
        });
        each.expect("all messages");
        let last = self.said.last().expect("there are some");
        assert_eq!(&log.message(all.to()).expect("a message"), last);
    }

    /// Closes everything; nothing must be found wrong with it.
    fn end(mut self) {
        self.close();
        let registry = self.contexts.registry().expect("a registry");
        self.ended.push(self.id);
        for id in &self.ended {
            let problems = self.contexts.verify(*id, &registry).expect("a verdict");
            assert!(problems.is_empty(), "{id}: {problems:?}");
        }
        self.contexts
            .finish(self.id, &Outcome::Completed)
            .expect("completed");
        let problems = self.contexts.verify(self.id, &registry).expect("a verdict");
        assert!(problems.is_empty(), "completed: {problems:?}");
    }
}

fn caches(dir: &Path) -> BTreeMap<&'static str, Option<Vec<u8>>> {
    CACHES
        .iter()
        .map(|name| (*name, fs::read(dir.join(name)).ok()))
        .collect()
}

/// So many cases, or as many as `PROPTEST_CASES` asks for.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|asked| asked.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    }
}

fn play(wire: Wire, ops: &[Op]) {
    let mut world = World::new(wire);
    for op in ops {
        world.play(op);
    }
    world.end();
}

proptest! {
    #![proptest_config(config(600))]

    /// Nothing is lost and every view is valid, whatever is done to an OpenAI conversation.
    #[test]
    fn chat_conversations_keep_all_the_laws(ops in prop::collection::vec(any_op(), 1..40)) {
        play(Wire::Chat, &ops);
    }

    /// Nothing is lost and every view is valid, whatever is done to an Anthropic conversation.
    #[test]
    fn block_conversations_keep_all_the_laws(ops in prop::collection::vec(any_op(), 1..40)) {
        play(Wire::Anthropic, &ops);
    }

    /// Nothing is lost and every view is valid, whatever is done to a Gemini conversation.
    #[test]
    fn gemini_conversations_keep_all_the_laws(ops in prop::collection::vec(any_op(), 1..40)) {
        play(Wire::Gemini, &ops);
    }

    /// Nothing is lost and every view is valid, whatever is done to items of Responses.
    #[test]
    fn item_conversations_keep_all_the_laws(ops in prop::collection::vec(any_op(), 1..40)) {
        play(Wire::Responses, &ops);
    }
}

proptest! {
    #![proptest_config(config(500))]

    /// Undoing a step restores what was shown, and redoing the undo what it had become.
    #[test]
    fn undo_and_redo_are_each_others_inverse(ops in prop::collection::vec(any_op(), 1..30), step in any_op(), wire in any_wire()) {
        let mut world = World::new(wire);
        for op in &ops {
            world.play(op);
        }
        let shown = |world: &World| world.writer.as_ref().expect("it is open").log().state().shown().clone();
        let (before, events) = (shown(&world), world.at().event);
        if !matches!(step, Op::Fork(_) | Op::Append(_) | Op::Undo | Op::Redo | Op::Tool(_)) {
            world.play(&step);
        }
        if world.at().event > events {
            let after = shown(&world);
            world.play(&Op::Undo);
            prop_assert_eq!(shown(&world), before);
            world.play(&Op::Redo);
            prop_assert_eq!(shown(&world), after);
        }
    }

    /// Opening a fold shows what it hid, as it was shown before.
    #[test]
    fn unfolding_takes_a_fold_back(ops in prop::collection::vec(any_op(), 1..30), from: Index, to: Index, wire in any_wire()) {
        let mut world = World::new(wire);
        for op in &ops {
            world.play(op);
        }
        let (before, events) = (world.writer().log().state().shown().clone(), world.at().event);
        world.play(&Op::Condense(from, to));
        if world.at().event > events {
            let fold = world.writer().log().state().last_event().expect("the fold");
            world.writer().unfold(fold).expect("it is active");
            prop_assert_eq!(world.writer().log().state().shown(), &before);
            world.check();
        }
    }
}

/// A chat conversation in which each kind of message is said once, in this order.
fn conversation(kinds: &[u8]) -> World {
    let mut world = World::new(Wire::Chat);
    for kind in kinds {
        world.append(&[Said {
            kind: *kind,
            first: 0,
            second: 0,
            dress: 23,
        }]);
        world.check();
    }
    world
}

fn condense(world: &mut World, range: &str) {
    let span = range.parse().expect("a range");
    world.writer().condense(span, "so far").expect("a fold");
    world.check();
}

const USER: u8 = 0;
const MODEL: u8 = 1;
const CALL: u8 = 5;
const RESULT: u8 = 6;
const EMPTY: u8 = 13;

#[test]
fn a_call_is_answered_when_what_interrupted_it_is_folded_away() {
    let mut world = conversation(&[USER, CALL, USER, MODEL, USER]);
    condense(&mut world, "3..4");
    world.end();
}

#[test]
fn an_empty_first_request_is_not_shown_empty_inside_a_fold() {
    let mut world = conversation(&[MODEL, USER, MODEL, USER]);
    condense(&mut world, "1..3");
    world.end();
    // The same with a request that says nothing.
    let mut world = World::new(Wire::Chat);
    let empty = Said {
        kind: EMPTY,
        first: 1,
        second: 0,
        dress: 23,
    };
    world.append(&[empty]);
    world.append(&[empty, empty, empty]);
    world.check();
    condense(&mut world, "1..3");
    world.end();
}

#[test]
fn a_result_for_another_call_waits_behind_the_round() {
    let mut world = conversation(&[USER, CALL]);
    let stray = Said {
        kind: RESULT,
        first: 3,
        second: 0,
        dress: 23,
    };
    world.append(&[stray]);
    world.check();
    world.append(&[Said { first: 0, ..stray }]);
    world.check();
    world.end();
}

#[test]
fn a_note_that_came_before_the_first_request_moves_behind_it() {
    let mut world = conversation(&[MODEL]);
    world.play(&Op::Note);
    world.append(&[Said {
        kind: USER,
        first: 0,
        second: 0,
        dress: 23,
    }]);
    world.check();
    world.end();
}

#[test]
fn a_pin_before_the_first_request_stays_before_it() {
    let mut world = conversation(&[MODEL, USER, MODEL, USER, MODEL]);
    world.writer().pin(Seq::FIRST).expect("a pin");
    condense(&mut world, "1..4");
    world.end();
}
