//! The reply that the server under load sends.

use std::io;

use super::connection::find;

/// How many pieces a reply has if nothing else is said.
pub const PIECES: usize = 4;

/// The only reply of the upstream, so that the client knows which bytes to expect.
pub struct FixedReply {
    pieces: Vec<String>,
    text: String,
    whole: Vec<u8>,
    events: Vec<Vec<u8>>,
    stream: Vec<u8>,
}

const HEAD: &str = r#""id":"chatcmpl-load","created":1700000000,"model":"gpt-4.1""#;
const USAGE: &str =
    r#""usage":{"prompt_tokens":17000,"completion_tokens":100,"total_tokens":17100}"#;

impl FixedReply {
    /// Makes a reply of so many pieces, each about a line.
    pub fn of(pieces: usize) -> FixedReply {
        let piece = |number| {
            format!(
                "Piece {number}: the file was read, the change was made, the tests were run and all of them hold; next is the caller. "
            )
        };
        let pieces: Vec<String> = (0..pieces).map(piece).collect();
        let text = pieces.concat();
        let whole = format!(
            r#"{{{HEAD},"object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],{USAGE}}}"#
        );
        let event = |choices: String, usage: &str| {
            format!("data: {{{HEAD},\"object\":\"chat.completion.chunk\",\"choices\":[{choices}]{usage}}}\n\n")
                .into_bytes()
        };
        let delta = |delta: &str, finish: &str| {
            event(
                format!(r#"{{"index":0,"delta":{{{delta}}},"finish_reason":{finish}}}"#),
                "",
            )
        };
        let mut events = vec![delta(r#""role":"assistant","content":"""#, "null")];
        for piece in &pieces {
            events.push(delta(&format!(r#""content":"{piece}""#), "null"));
        }
        events.push(delta("", r#""stop""#));
        events.push(event(String::new(), &format!(",{USAGE}")));
        events.push(b"data: [DONE]\n\n".to_vec());
        FixedReply {
            stream: events.concat(),
            whole: whole.into_bytes(),
            pieces,
            text,
            events,
        }
    }

    /// Returns the text of the reply; it needs no escapes in JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the answer that is not streamed.
    pub fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// Returns the events of the answer that is.
    pub fn events(&self) -> &[Vec<u8>] {
        &self.events
    }

    /// Returns whether a body is the upstream's to the byte. A rewritten body must have the same text and be
    /// complete.
    pub fn check(&self, body: &[u8], stream: bool) -> io::Result<bool> {
        let known = if stream { &self.stream } else { &self.whole };
        if body == known {
            return Ok(true);
        }
        let wrong = || {
            let end = &body[body.len().saturating_sub(300)..];
            let end = String::from_utf8_lossy(end);
            io::Error::other(format!("not the upstream's answer: …{end}"))
        };
        let mut rest = body;
        let mut pass = |sign: &str| {
            let at = find(rest, sign.as_bytes()).ok_or_else(wrong)?;
            rest = &rest[at + sign.len()..];
            io::Result::Ok(())
        };
        if stream {
            for piece in &self.pieces {
                pass(&format!("\"{piece}\""))?;
            }
            pass("[DONE]")?;
        } else {
            pass(&format!("\"{}\"", self.text))?
        }
        Ok(false)
    }
}
