//! Reads a step from JSON.

use infold_log::steer::{Side, Target};
use infold_log::{EventId, Pinned, Seq};
use serde_json::{Map, Value};

use super::{Step, target};
use crate::config::nearest;
use crate::layers::model::Author;
use crate::layers::read_changes;

/// All steps, and the members of each.
const STEPS: [(&str, &[&str]); 11] = [
    ("condense", &["from", "to", "text"]),
    ("truncate", &["fraction"]),
    ("mask", &["seq", "part"]),
    ("unfold", &["fold"]),
    ("rewind", &["to", "before", "files"]),
    ("undo", &[]),
    ("redo", &[]),
    ("pin", &["seq"]),
    ("note", &["text"]),
    ("unpin", &["seq", "note"]),
    ("state", &["changes", "author"]),
];

/// The share of the visible rounds that `truncate` hides by default.
const DEFAULT_FRACTION: f64 = 0.5;

impl Step {
    /// Reads a step, such as `{"step":"rewind","to":12}`; fails with a description of the error.
    pub fn read(json: &[u8]) -> Result<Step, String> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| format!("this is not JSON: {error}"))?;
        let Value::Object(members) = value else {
            return Err(r#"a step is an object, such as {"step":"undo"}"#.to_owned());
        };
        let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        let known = || format!("there are {}", names.join(", "));
        let name = match members.get("step") {
            Some(Value::String(name)) => name.as_str(),
            _ => return Err(format!("\"step\" names the step; {}", known())),
        };
        let step = STEPS.iter().find(|(step, _)| *step == name);
        let (name, takes) = step.ok_or_else(|| format!("no step `{name}`; {}", known()))?;
        let object = StepObject {
            name,
            members: &members,
        };
        object.check_members(takes)?;
        object.step()
    }
}

/// The JSON object of a step.
struct StepObject<'a> {
    name: &'a str,
    members: &'a Map<String, Value>,
}

impl StepObject<'_> {
    /// Refuses unknown members: a misspelt one must not be taken for a missing one.
    fn check_members(&self, takes: &[&str]) -> Result<(), String> {
        let mut names = self.members.keys().filter(|name| *name != "step");
        match names.find(|name| !takes.contains(&name.as_str())) {
            None => Ok(()),
            Some(other) if takes.is_empty() => {
                Err(format!("{} takes nothing, not \"{other}\"", self.name))
            }
            Some(other) => {
                let near = nearest(other, takes.iter().copied());
                let near = near.map(|near| format!("; did you mean \"{near}\"?"));
                let near = near.unwrap_or_default();
                let takes = takes.join(", ");
                Err(format!(
                    "{} takes {takes}, not \"{other}\"{near}",
                    self.name
                ))
            }
        }
    }

    fn step(&self) -> Result<Step, String> {
        Ok(match self.name {
            "condense" => {
                let (from, to) = (self.seq("from")?, self.seq("to")?);
                if from > to {
                    return Err("the range ends before it starts".to_owned());
                }
                let text = match self.get("text") {
                    None => None,
                    Some(_) => Some(self.text("text")?),
                };
                Step::Condense { from, to, text }
            }
            "truncate" => Step::Truncate {
                fraction: self.fraction()?,
            },
            "mask" => Step::Mask {
                seq: self.seq("seq")?,
                part: self.part()?,
            },
            "unfold" => Step::Unfold {
                fold: self.event("fold")?,
            },
            "rewind" => self.rewind()?,
            "undo" => Step::Undo,
            "redo" => Step::Redo,
            "pin" => Step::Pin {
                seq: self.seq("seq")?,
            },
            "note" => Step::Note {
                text: self.text("text")?,
            },
            "state" => Step::State {
                author: self.author()?,
                changes: read_changes(self.get("changes"))?,
            },
            _ => Step::Unpin {
                what: match (self.get("seq"), self.get("note")) {
                    (Some(_), None) => Pinned::Message(self.seq("seq")?),
                    (None, Some(_)) => Pinned::Note(self.event("note")?),
                    _ => return Err("unpin takes either \"seq\" or \"note\"".to_owned()),
                },
            },
        })
    }

    fn author(&self) -> Result<Author, String> {
        match self.get("author").map(Value::as_str) {
            None | Some(Some("person")) => Ok(Author::Person),
            Some(Some("model")) => Ok(Author::Model),
            Some(_) => Err(self.wrong("author", "\"person\" or \"model\"")),
        }
    }

    fn rewind(&self) -> Result<Step, String> {
        let (side, name) = match (self.get("to"), self.get("before")) {
            (Some(_), None) => (Side::To, "to"),
            (None, Some(_)) => (Side::Before, "before"),
            _ => return Err("say where: either \"to\" or \"before\"".to_owned()),
        };
        let target = match self.get(name) {
            Some(Value::String(text)) => target(text)?,
            Some(other) => target(&other.to_string())?,
            None => return Err(self.wrong(name, "a seq, an event or a time")),
        };
        if let Target::Time(time) = target
            && time > infold_store::now()
        {
            return Err(format!("{} lies in the future", infold_store::iso(time)));
        }
        Ok(Step::Rewind {
            side,
            target,
            files: self.flag("files")?,
        })
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// Returns a member; `null` is none.
    fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn seq(&self, name: &str) -> Result<Seq, String> {
        let seq = self.get(name).and_then(Value::as_u64).and_then(Seq::new);
        seq.ok_or_else(|| self.wrong(name, "a seq such as 32"))
    }

    fn event(&self, name: &str) -> Result<EventId, String> {
        let number = match self.get(name) {
            Some(Value::String(text)) => text.strip_prefix('e').unwrap_or(text).parse().ok(),
            other => other.and_then(Value::as_u64),
        };
        let id = number.and_then(EventId::new);
        id.ok_or_else(|| self.wrong(name, "an event such as \"e3\""))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let text = self.get(name).and_then(Value::as_str);
        let text = text.filter(|text| !text.trim().is_empty());
        text.map(str::to_owned)
            .ok_or_else(|| self.wrong(name, "a text that says something"))
    }

    fn part(&self) -> Result<u32, String> {
        let number = match self.get("part") {
            None => return Ok(0),
            Some(value) => value.as_u64().and_then(|number| number.try_into().ok()),
        };
        number.ok_or_else(|| self.wrong("part", "a number, counted from 0"))
    }

    fn fraction(&self) -> Result<f64, String> {
        let Some(value) = self.get("fraction") else {
            return Ok(DEFAULT_FRACTION);
        };
        let share = value.as_f64();
        let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
        share.ok_or_else(|| self.wrong("fraction", "more than 0 and at most 1"))
    }

    fn wrong(&self, name: &str, expected: &str) -> String {
        match self.get(name) {
            None => format!("{} wants \"{name}\": {expected}", self.name),
            Some(_) => format!("\"{name}\" of {} must be {expected}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_read() {
        let seq = |number| Seq::new(number).unwrap();
        let event = |number| EventId::new(number).unwrap();
        let rewind = |side, target| Step::Rewind {
            side,
            target,
            files: false,
        };
        let condense = |text: Option<&str>| Step::Condense {
            from: seq(4),
            to: seq(8),
            text: text.map(str::to_owned),
        };
        #[rustfmt::skip]
        let table = [
            (r#"{"step":"condense","from":4,"to":8,"text":"built it"}"#, condense(Some("built it"))),
            (r#"{"step":"condense","from":4,"to":8}"#, condense(None)),
            (r#"{"step":"condense","from":4,"to":8,"text":null}"#, condense(None)),
            (r#"{"step":"truncate","fraction":0.25}"#, Step::Truncate { fraction: 0.25 }),
            (r#"{"step":"truncate"}"#, Step::Truncate { fraction: 0.5 }),
            (r#"{"step":"mask","seq":12,"part":1}"#, Step::Mask { seq: seq(12), part: 1 }),
            (r#"{"step":"mask","seq":12}"#, Step::Mask { seq: seq(12), part: 0 }),
            (r#"{"step":"unfold","fold":"e3"}"#, Step::Unfold { fold: event(3) }),
            (r#"{"step":"unfold","fold":3}"#, Step::Unfold { fold: event(3) }),
            (r#"{"step":"rewind","to":12}"#, rewind(Side::To, Target::Message(12))),
            (r#"{"step":"rewind","to":0}"#, rewind(Side::To, Target::Message(0))),
            (r#"{"step":"rewind","before":"e7"}"#, rewind(Side::Before, Target::Event(7))),
            (r#"{"step":"rewind","to":"1970-01-02"}"#, rewind(Side::To, Target::Time(86_400_000))),
            (r#"{"step":"rewind","to":3,"files":true}"#, Step::Rewind { side: Side::To, target: Target::Message(3), files: true }),
            (r#"{"step":"undo"}"#, Step::Undo),
            (r#"{"step":"redo"}"#, Step::Redo),
            (r#"{"step":"pin","seq":7}"#, Step::Pin { seq: seq(7) }),
            (r#"{"step":"note","text":"never touch main"}"#, Step::Note { text: "never touch main".to_owned() }),
            (r#"{"step":"unpin","seq":7}"#, Step::Unpin { what: Pinned::Message(seq(7)) }),
            (r#"{"step":"unpin","note":"e4"}"#, Step::Unpin { what: Pinned::Note(event(4)) }),
        ];
        for (json, step) in table {
            assert_eq!(Step::read(json.as_bytes()), Ok(step), "{json}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_step_is_said() {
        let said: Vec<String> = [
            "{",
            "[]",
            "{}",
            r#"{"step":"rewnd"}"#,
            r#"{"step":"undo","to":3}"#,
            r#"{"step":"condense","from":4,"to":8,"txt":"it"}"#,
            r#"{"step":"condense","from":8,"to":4}"#,
            r#"{"step":"condense","from":0,"to":4}"#,
            r#"{"step":"condense","to":4}"#,
            r#"{"step":"condense","from":1,"to":4,"text":" "}"#,
            r#"{"step":"truncate","fraction":1.5}"#,
            r#"{"step":"mask","seq":1,"part":-1}"#,
            r#"{"step":"unfold","fold":"x3"}"#,
            r#"{"step":"rewind"}"#,
            r#"{"step":"rewind","to":1,"before":2}"#,
            r#"{"step":"rewind","to":1.5}"#,
            r#"{"step":"rewind","to":"2999-01-01"}"#,
            r#"{"step":"unpin"}"#,
        ]
        .map(|json| Step::read(json.as_bytes()).expect_err(json))
        .to_vec();
        insta::assert_snapshot!(said.join("\n"), @r#"
        this is not JSON: EOF while parsing an object at line 1 column 1
        a step is an object, such as {"step":"undo"}
        "step" names the step; there are condense, truncate, mask, unfold, rewind, undo, redo, pin, note, unpin, state
        no step `rewnd`; there are condense, truncate, mask, unfold, rewind, undo, redo, pin, note, unpin, state
        undo takes nothing, not "to"
        condense takes from, to, text, not "txt"; did you mean "text"?
        the range ends before it starts
        "from" of condense must be a seq such as 32
        condense wants "from": a seq such as 32
        "text" of condense must be a text that says something
        "fraction" of truncate must be more than 0 and at most 1
        "part" of mask must be a number, counted from 0
        "fold" of unfold must be an event such as "e3"
        say where: either "to" or "before"
        say where: either "to" or "before"
        `1.5` is neither a seq (32), an event (e3) nor a time (2026-11-15T12:00Z)
        2999-01-01T00:00:00.000Z lies in the future
        unpin takes either "seq" or "note"
        "#);
    }
}
