//! Redaction events.

use infold_log::{EventId, Seq};
use infold_wire::digest::Digest;
use infold_wire::{Json, quote};

use super::{EventLine, What, number};
use crate::file::Growing;
use crate::lines::Lines;
use crate::redacted_lines::RedactedLine;
use crate::redacted_values::RedactedValue;
use crate::{LogError, stored};

/// A redaction: the digests of the redacted messages, by which they are recognised when they come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactLine {
    /// How much of them.
    pub extent: Extent,
    /// The messages, each with the digest of its original content; none if that was empty.
    pub messages: Vec<(Seq, Option<Digest>)>,
    /// The number of other texts with redactions: stand-ins, notes, records.
    pub texts: u64,
    /// Names of the conversation that were redacted, as the conversation index has them since.
    pub names: Vec<String>,
    /// The redacted texts that are recognised in later frames.
    pub values: Vec<RedactedValue>,
    /// Digests and lines by which copies of the messages are recognised in another form.
    pub forms: Vec<RedactedForms>,
    /// Digests of texts of the messages; earlier versions recorded these instead of `forms`.
    pub contents: Vec<Digest>,
}

/// Digests and lines by which a copy of a redacted message is recognised, whatever its ids and its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedForms {
    /// The message.
    pub seq: Seq,
    /// Digests of its texts, of the arguments of its calls and of its results.
    pub contents: Vec<Digest>,
    /// Lines of its texts.
    pub lines: Vec<RedactedLine>,
}

impl RedactedForms {
    fn encode(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(RedactedLine::encode).collect();
        format!(
            r#"{{"seq":{},"contents":[{}],"lines":[{}]}}"#,
            self.seq,
            encode_digests(&self.contents),
            lines.join(",")
        )
    }

    fn decode(json: Json<'_>) -> Option<RedactedForms> {
        Some(RedactedForms {
            seq: number(json, "seq").and_then(Seq::new)?,
            contents: decode_digests(json.get("contents")?)?,
            lines: {
                let lines = json.get("lines")?.elements();
                lines.map(RedactedLine::decode).collect::<Option<_>>()?
            },
        })
    }
}

fn encode_digests(digests: &[Digest]) -> String {
    let digests = digests.iter();
    let digests = digests.map(|digest| format!(r#""{}""#, stored::hex(Some(*digest))));
    digests.collect::<Vec<_>>().join(",")
}

fn decode_digests(json: Json<'_>) -> Option<Vec<Digest>> {
    let digests = json.elements();
    digests
        .map(|digest| stored::unhex(&digest.text()?)?)
        .collect()
}

/// How much of messages was redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that they said.
    Whole,
    /// The matches of a search.
    Matches,
}

impl RedactLine {
    pub(super) fn encode(&self) -> String {
        let extent = match self.extent {
            Extent::Whole => "whole",
            Extent::Matches => "matches",
        };
        let messages = self.messages.iter().map(|(seq, original)| {
            format!(r#"{{"seq":{seq},"digest":"{}"}}"#, stored::hex(*original))
        });
        let messages: Vec<String> = messages.collect();
        let names: Vec<String> = self.names.iter().map(|name| quote(name)).collect();
        let names = if names.is_empty() {
            String::new()
        } else {
            format!(r#","names":[{}]"#, names.join(","))
        };
        let values: Vec<String> = self.values.iter().map(RedactedValue::encode).collect();
        let values = if values.is_empty() {
            String::new()
        } else {
            format!(r#","values":[{}]"#, values.join(","))
        };
        let forms: Vec<String> = self.forms.iter().map(RedactedForms::encode).collect();
        let forms = if forms.is_empty() {
            String::new()
        } else {
            format!(r#","forms":[{}]"#, forms.join(","))
        };
        let contents = if self.contents.is_empty() {
            String::new()
        } else {
            format!(r#","contents":[{}]"#, encode_digests(&self.contents))
        };
        format!(
            r#","extent":"{extent}","messages":[{}],"texts":{}{names}{values}{forms}{contents}"#,
            messages.join(","),
            self.texts
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<RedactLine> {
        let messages = json.get("messages")?.elements().map(|message| {
            let seq = number(message, "seq").and_then(Seq::new)?;
            Some((seq, stored::unhex(&message.get("digest")?.text()?)?))
        });
        Some(RedactLine {
            extent: if json.get("extent")?.is("whole") {
                Extent::Whole
            } else {
                Extent::Matches
            },
            messages: messages.collect::<Option<_>>()?,
            texts: number(json, "texts")?,
            names: json.get("names").map_or(Some(Vec::new()), |names| {
                let names = names.elements().map(|name| Some(name.text()?.into_owned()));
                names.collect()
            })?,
            values: json.get("values").map_or(Some(Vec::new()), |values| {
                values.elements().map(RedactedValue::decode).collect()
            })?,
            forms: json.get("forms").map_or(Some(Vec::new()), |forms| {
                forms.elements().map(RedactedForms::decode).collect()
            })?,
            contents: json
                .get("contents")
                .map_or(Some(Vec::new()), decode_digests)?,
        })
    }
}

/// Shows the redactions that a log says of itself. All of its events are read.
pub(crate) fn each_redaction(
    events: &Growing,
    mut visit: impl FnMut(EventId, RedactLine),
) -> Result<(), LogError> {
    let mut lines = Lines::new(events, 0);
    while let Some(line) = lines.next()?.filter(|line| line.whole) {
        if memchr::memmem::find(line.bytes, br#""type":"redact""#).is_some()
            && let Ok(event) = EventLine::decode(line.bytes)
            && let What::Redact(redact) = event.what
        {
            visit(event.id, redact);
        }
    }
    Ok(())
}
