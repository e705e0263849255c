//! The state of a log at an earlier point.

use infold_log::{EventId, Mark, Past, Point, Record, Seq, Shown, State};

use super::lookup::StateSource;
use crate::{Log, LogError};

impl Past for Log {
    type Error = LogError;

    fn record(&self, seq: Seq) -> Result<Record, LogError> {
        Ok(self.entry(seq)?.record)
    }

    fn mark(&self, event: EventId) -> Result<Mark, LogError> {
        Ok(self.event_entry(event)?.mark)
    }

    fn shown(&self, point: Point) -> Result<Shown, LogError> {
        // A state that equals an earlier one refers to it; later events are applied on the way back.
        let mut pending = Vec::new();
        let mut target = point;
        let mut shown = loop {
            let (at, kept) = self.newest_kept(target.event)?;
            pending.push((at, target));
            match kept {
                StateSource::Same(earlier) => target = earlier,
                StateSource::Shown(shown) => break shown,
                StateSource::Before => break Shown::default(),
            }
        };
        while let Some((at, target)) = pending.pop() {
            let mut state = State::resume(at, None, shown);
            for number in at.event + 1..=target.event {
                let id = EventId::new(number).expect("counted from one");
                let line = self.event(id)?;
                state.messages_up_to(line.after);
                state.event(&line.event(), line.pass, line.ts, self)?;
            }
            state.messages_up_to(target.seq);
            shown = state.shown().clone();
        }
        Ok(shown)
    }
}

impl Log {
    /// The newest event up to one whose state is kept, and that state; nothing is, before the first event.
    fn newest_kept(&self, event: u64) -> Result<(Point, StateSource), LogError> {
        for event in (1..=event).rev() {
            let (seq, kept) = self.kept(event)?;
            if !matches!(kept, StateSource::Before) {
                return Ok((Point { seq, event }, kept));
            }
        }
        Ok((Point::default(), StateSource::Before))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Contexts, Durability, Metadata};

    #[test]
    fn going_back_thousands_of_times_is_no_deeper_than_once() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(task).unwrap();
        let said = [
            r#"{"role":"user","content":"q"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ];
        writer.append(&said).unwrap();
        drop(writer);
        // Each goes back to the rewind before the last.
        let rewind = |id: u64| {
            let to = id.saturating_sub(2);
            format!(
                "{{\"id\":{id},\"ts\":1,\"after\":2,\"type\":\"rewind\",\"to\":{{\"seq\":2,\"event\":{to}}}}}\n"
            )
        };
        let events: String = (1..=4_000).map(rewind).collect();
        let path = contexts.place(task).unwrap().join("events.jsonl");
        std::fs::write(path, events).unwrap();
        let log = contexts.read(task).unwrap();
        assert_eq!(log.state().at().event, 4_000);
        assert_eq!(log.state().shown().path().len(), 1);
    }
}
