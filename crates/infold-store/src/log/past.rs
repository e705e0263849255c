use infold_log::{EventId, Mark, Past, Point, Record, Seq, Shown, State};

use crate::entry::Base;
use crate::{Log, LogError};

impl Past for Log {
    type Error = LogError;

    fn record(&self, seq: Seq) -> Result<Record, LogError> {
        if let Some(parent) = self.parent_of(seq.get(), self.base.seq) {
            return parent.record(seq);
        }
        Ok(self.entries.get(seq.get())?.record)
    }

    fn mark(&self, event: EventId) -> Result<Mark, LogError> {
        if let Some(parent) = self.parent_of(event.get(), self.base.event) {
            return parent.mark(event);
        }
        Ok(self.marks.get(event.get())?.mark)
    }

    fn shown(&self, point: Point) -> Result<Shown, LogError> {
        if let Some(parent) = self.parent_of(point.event, self.base.event) {
            let mut shown = parent.shown(Point {
                seq: point.seq.min(self.base.seq),
                event: point.event,
            })?;
            shown.append_up_to(self.base.seq, point.seq);
            return Ok(shown);
        }
        if point.event == 0 {
            let mut shown = Shown::default();
            shown.append_up_to(0, point.seq);
            return Ok(shown);
        }
        let mut known = point.event;
        let mut state = loop {
            if known == self.base.event {
                break State::resume(self.base, None, self.shown(self.base)?);
            }
            let entry = self.marks.get(known)?;
            let at = Point {
                seq: entry.mark.after,
                event: known,
            };
            let shown = match entry.base {
                Base::Before => {
                    known -= 1;
                    continue;
                }
                Base::Same(point) => self.shown(point)?,
                Base::Snapshot { offset, len } => self.states.get(known, offset, len)?,
            };
            break State::resume(at, None, shown);
        };
        for number in known + 1..=point.event {
            let id = EventId::new(number).expect("counted from one");
            let line = self.event(id)?;
            state.messages_up_to(line.after);
            state.event(&line.event(), line.pass, line.ts, self)?;
        }
        state.messages_up_to(point.seq);
        Ok(state.shown().clone())
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
