//! Files whose lines follow from single events: `summaries.jsonl` and `tools.jsonl`.

use infold_log::{Cause, EventId};
use infold_wire::{Json, quote};

use crate::current::Written;
use crate::event::{EventLine, What};
use crate::file::{self, Access, Growing};
use crate::{Log, LogError, time};

/// A file whose lines follow from single events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// `summaries.jsonl`, a line for each summary fold.
    Summaries,
    /// `tools.jsonl`, a line for each tool record.
    Tools,
}

impl Derived {
    /// Both of them.
    pub const ALL: [Derived; 2] = [Derived::Summaries, Derived::Tools];

    /// The file's name.
    pub fn name(self) -> &'static str {
        match self {
            Derived::Summaries => "summaries.jsonl",
            Derived::Tools => "tools.jsonl",
        }
    }

    /// The line that an event adds as the file's `number`th, line break included.
    fn line(self, number: u64, event: &EventLine) -> Option<String> {
        match (self, &event.what) {
            (Derived::Summaries, What::Fold(fold)) if fold.cause == Cause::Summary => {
                let text: Vec<&str> = fold.stand_in.iter().map(|(_, text)| &**text).collect();
                let (from, to) = (fold.span.from(), fold.span.to());
                let ratio = fold.tokens as f64 / fold.original_tokens.max(1) as f64;
                Some(format!(
                    "{{\"id\":{number},\"start_seq\":{from},\"end_seq\":{to},\"summary\":{},\"original_tokens\":{},\"summary_tokens\":{},\"ratio\":{ratio:.4},\"timestamp\":\"{}\"}}\n",
                    quote(&text.join("\n\n")),
                    fold.original_tokens,
                    fold.tokens,
                    time::iso(event.ts)
                ))
            }
            (Derived::Tools, What::Tool(record)) => tool_line(number, record, event.ts),
            _ => None,
        }
    }

    /// How many lines it should have.
    pub fn count(self, log: &Log) -> Result<u64, LogError> {
        let (summaries, tools) = log.counts()?;
        Ok(match self {
            Derived::Summaries => summaries,
            Derived::Tools => tools,
        })
    }

    /// Appends the lines of the newest event. A file that lacks a line is rewritten.
    pub fn follow(
        self,
        log: &Log,
        event: &EventLine,
        written: &mut Option<Written>,
    ) -> Result<(), LogError> {
        let count = self.count(log)?;
        match self.line(count, event) {
            Some(line) => self.add(log, count - 1, line.as_bytes(), written),
            None => Ok(()),
        }
    }

    /// Appends the lines of all events from this one on, as [`Derived::follow`] does for one.
    pub fn follow_from(
        self,
        log: &Log,
        first: EventId,
        written: &mut Option<Written>,
    ) -> Result<(), LogError> {
        let events = first.get()..=log.state().at().event;
        let mut new = Vec::new();
        for id in events.filter_map(EventId::new) {
            let event = log.event(id)?;
            if self.line(1, &event).is_some() {
                new.push(event);
            }
        }
        let before = self.count(log)?.saturating_sub(new.len() as u64);
        let mut lines = String::new();
        for (number, event) in (before + 1..).zip(&new) {
            lines.extend(self.line(number, event));
        }
        if lines.is_empty() {
            Ok(())
        } else {
            self.add(log, before, lines.as_bytes(), written)
        }
    }

    /// Appends lines to a file with a known number of lines; one with another number is rewritten.
    fn add(
        self,
        log: &Log,
        before: u64,
        lines: &[u8],
        written: &mut Option<Written>,
    ) -> Result<(), LogError> {
        let mut file = Growing::open(log.dir().join(self.name()), Access::Write)?;
        let known = match file.len() {
            0 => Some(Written::default()),
            len => written.filter(|written| written.len == len),
        };
        if self.last(&file)? != Some(before) {
            *written = None;
            *written = Some(self.rewrite(log)?);
            return Ok(());
        }
        *written = None;
        file.append(lines)?;
        *written = known.map(|known| known.and(lines));
        Ok(())
    }

    /// Returns whether the file ends with the line it should end with.
    pub fn is_current(self, log: &Log) -> Result<bool, LogError> {
        let file = Growing::open(log.dir().join(self.name()), Access::Read)?;
        Ok(self.last(&file)? == Some(self.count(log)?))
    }

    /// The number of the last line, zero if there is none; none if it is torn.
    fn last(self, file: &Growing) -> Result<Option<u64>, LogError> {
        const PIECE: u64 = 4096;
        let Some(end) = file.len().checked_sub(1) else {
            return Ok(Some(0));
        };
        if file.bytes(end, 1)? != b"\n" {
            return Ok(None);
        }
        let mut start = end;
        while start > 0 {
            let from = start.saturating_sub(PIECE);
            let piece = file.bytes(from, (start - from) as usize)?;
            if let Some(at) = memchr::memrchr(b'\n', &piece) {
                start = from + at as u64 + 1;
                break;
            }
            start = from;
        }
        let head = file.bytes(start, (end - start).min(40) as usize)?;
        let member = match self {
            Derived::Summaries => "{\"id\":",
            Derived::Tools => "{\"seq\":",
        };
        let number = head.strip_prefix(member.as_bytes()).unwrap_or_default();
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
        Ok(std::str::from_utf8(&number[..digits.count()])
            .ok()
            .and_then(|digits| digits.parse().ok()))
    }

    /// All its lines, read from the events.
    pub fn lines(self, log: &Log) -> Result<Vec<u8>, LogError> {
        let mut out = Vec::new();
        let mut number = 0;
        for event in log.own().event..=log.state().at().event {
            let id = EventId::new(event).expect("counted from one");
            if let Some(line) = self.line(number + 1, &log.event(id)?) {
                number += 1;
                out.extend_from_slice(line.as_bytes());
            }
        }
        Ok(out)
    }

    /// Returns the contents that the file should have.
    pub fn written(self, log: &Log) -> Result<Written, LogError> {
        Ok(Written::default().and(&self.lines(log)?))
    }

    /// Returns whether the file is unchanged since it was written, byte by byte.
    pub fn is_whole(self, log: &Log, written: Option<Written>) -> Result<bool, LogError> {
        let path = log.dir().join(self.name());
        written.unwrap_or_default().is_in(&path)
    }

    /// Rewrites the file; returns its new state.
    pub fn rewrite(self, log: &Log) -> Result<Written, LogError> {
        let lines = self.lines(log)?;
        file::replace(&log.dir().join(self.name()), &lines)?;
        Ok(Written::default().and(&lines))
    }
}

/// Why a text is not a tool record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or not an object.
    #[error("a tool record is a JSON object: {reason}")]
    NotAnObject {
        /// The parser's error.
        reason: String,
    },
    /// A member is missing or has a value it cannot have.
    #[error("\"{member}\" {wanted}")]
    Member {
        /// Which one.
        member: &'static str,
        /// The expected value.
        wanted: &'static str,
    },
}

/// Checks that a text is a tool record: `tool`, and perhaps `args`, `result` or `error`, `status`, `duration_ms`.
pub fn check_record(text: &[u8]) -> Result<String, RecordError> {
    let json = Json::parse(text).map_err(|error| RecordError::NotAnObject {
        reason: error.to_string(),
    })?;
    if json.kind() != infold_wire::JsonKind::Object {
        let reason = "it is something else".to_owned();
        return Err(RecordError::NotAnObject { reason });
    }
    let wrong = |member, wanted| Err(RecordError::Member { member, wanted });
    if json
        .get("tool")
        .and_then(Json::text)
        .is_none_or(|name| name.is_empty())
    {
        return wrong("tool", "must name the tool");
    }
    if json.get("result").is_some() && json.get("error").is_some_and(|error| !error.is_null()) {
        return wrong("error", "cannot stand beside \"result\"");
    }
    if json
        .get("status")
        .is_some_and(|status| !status.is("success") && !status.is("error"))
    {
        return wrong("status", "must be \"success\" or \"error\"");
    }
    if json
        .get("duration_ms")
        .is_some_and(|ms| ms.number().is_none_or(|ms| ms < 0.0))
    {
        return wrong("duration_ms", "must be a number that is not negative");
    }
    let bytes: Vec<u8> = json
        .bytes()
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    String::from_utf8(bytes).map_err(|error| RecordError::NotAnObject {
        reason: error.to_string(),
    })
}

fn tool_line(number: u64, record: &str, ts: u64) -> Option<String> {
    const KNOWN: [&str; 8] = [
        "seq",
        "tool",
        "args",
        "result",
        "error",
        "status",
        "duration_ms",
        "timestamp",
    ];
    let json = Json::parse(record.as_bytes()).ok()?;
    let raw = |key: &str| {
        json.get(key)
            .map(|value| String::from_utf8_lossy(value.bytes()).into_owned())
    };
    let error = raw("error").filter(|error| error != "null");
    let status = if error.is_some() {
        "\"error\""
    } else {
        "\"success\""
    };
    let outcome = match error {
        Some(error) => format!("\"error\":{error}"),
        None => format!("\"result\":{}", raw("result").unwrap_or("null".into())),
    };
    let mut line = format!(
        "{{\"seq\":{number},\"tool\":{},\"args\":{},{outcome},\"status\":{},\"duration_ms\":{},\"timestamp\":\"{}\"",
        raw("tool")?,
        raw("args").unwrap_or("{}".into()),
        raw("status").unwrap_or(status.into()),
        raw("duration_ms").unwrap_or("null".into()),
        time::iso(ts),
    );
    for (key, value) in json
        .members()
        .filter(|(key, _)| !KNOWN.iter().any(|known| key.is(known)))
    {
        line += &format!(",{key:?}:{value:?}");
    }
    Some(line + "}\n")
}
