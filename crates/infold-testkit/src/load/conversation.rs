//! A conversation that is sent again and again, each time with more.

use std::net::SocketAddr;

use infold_wire::quote;

/// A conversation as a request that can be sent, and sent again with more.
pub struct LoadConversation {
    /// The head, whose length changes with the body's, and the body.
    request: Vec<u8>,
    head: String,
    body: Vec<u8>,
    number: u64,
    messages: usize,
}

/// A request without its messages.
pub struct RequestShell<'a> {
    pub host: SocketAddr,
    pub key: &'a str,
    pub model: &'a str,
    pub stream: bool,
}

const END: &[u8] = b"]}";

impl LoadConversation {
    /// Opens a conversation that no other number shares, a system message first and, if their
    /// number is even, a user's last.
    pub fn open(
        texts: &TextPool,
        frame: &RequestShell,
        number: u64,
        messages: usize,
    ) -> LoadConversation {
        let stream = if frame.stream {
            r#""stream":true,"stream_options":{"include_usage":true},"#
        } else {
            ""
        };
        let body = format!(
            r#"{{"model":"{}",{stream}"messages":[{{"role":"system","content":"{}"}}]}}"#,
            frame.model, texts.long[0]
        );
        let mut talk = LoadConversation {
            request: Vec::new(),
            head: format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: ",
                frame.host, frame.key
            ),
            body: body.into_bytes(),
            number,
            messages: 1,
        };
        while talk.messages < messages {
            match talk.messages % 2 {
                1 => talk.user(texts),
                _ => talk.push("assistant", &[texts.short(number, talk.messages)]),
            }
        }
        talk.write();
        talk
    }

    /// Appends the reply and the next message of the user.
    pub fn go_on(&mut self, texts: &TextPool, reply: &str) {
        self.push("assistant", &[reply]);
        self.user(texts);
        self.write();
    }

    /// Returns head and body.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Returns how many messages the body has.
    pub fn messages(&self) -> usize {
        self.messages
    }

    fn user(&mut self, texts: &TextPool) {
        let own = format!("{:x}, {}: ", self.number, self.messages);
        self.push("user", &[&own, texts.long(self.number, self.messages)]);
    }

    fn push(&mut self, role: &str, parts: &[&str]) {
        self.body.truncate(self.body.len() - END.len());
        let begin = [r#",{"role":""#, role, r#"","content":""#];
        for part in begin.iter().chain(parts) {
            self.body.extend_from_slice(part.as_bytes());
        }
        self.body.extend_from_slice(br#""}"#);
        self.body.extend_from_slice(END);
        self.messages += 1;
    }

    fn write(&mut self) {
        self.request.clear();
        self.request.extend_from_slice(self.head.as_bytes());
        let length = format!("{}\r\n\r\n", self.body.len());
        self.request.extend_from_slice(length.as_bytes());
        self.request.extend_from_slice(&self.body);
    }
}

/// Texts of messages: pieces of source code, escaped for JSON strings.
pub struct TextPool {
    long: Vec<String>,
    short: Vec<String>,
}

impl TextPool {
    pub fn new() -> TextPool {
        let source = [
            include_str!("../load.rs"),
            include_str!("connection.rs"),
            include_str!("reply.rs"),
        ]
        .concat();
        // Two messages with their frames have about 1,750 bytes, 80 messages 70 KB.
        TextPool {
            long: cut(&source, 1_200),
            short: cut(&source, 380),
        }
    }

    fn long(&self, number: u64, message: usize) -> &str {
        pick(&self.long, number, message)
    }

    fn short(&self, number: u64, message: usize) -> &str {
        pick(&self.short, number, message)
    }
}

fn pick(texts: &[String], number: u64, message: usize) -> &str {
    &texts[(number as usize).wrapping_mul(31).wrapping_add(message) % texts.len()]
}

fn cut(source: &str, length: usize) -> Vec<String> {
    let last = source.len() - length;
    let piece = |from: usize| {
        let (from, to) = (
            source.floor_char_boundary(from),
            source.floor_char_boundary(from + length),
        );
        let quoted = quote(&source[from..to]);
        quoted[1..quoted.len() - 1].to_owned()
    };
    // A step that shares nothing with the length, so that no two begin alike.
    (0..last).step_by(97).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use infold_wire::Json;

    fn frame() -> RequestShell<'static> {
        RequestShell {
            host: ([127, 0, 0, 1], 1).into(),
            key: "k",
            model: "m",
            stream: true,
        }
    }

    #[test]
    fn eighty_messages_are_about_70_kb() {
        let texts = TextPool::new();
        let sizes = (0..100).map(|number| {
            LoadConversation::open(&texts, &frame(), number, 80)
                .body
                .len()
        });
        let mean = sizes.sum::<usize>() / 100;
        assert!((66_000..74_000).contains(&mean), "{mean}");
    }

    #[test]
    fn a_conversation_that_goes_on_keeps_what_was_said() {
        let texts = TextPool::new();
        let mut talk = LoadConversation::open(&texts, &frame(), 7, 20);
        let before = talk.body.clone();
        talk.go_on(&texts, "fine");
        let messages = Json::parse(&talk.body).expect("JSON").get("messages");
        let messages: Vec<_> = messages.expect("messages").elements().collect();
        assert_eq!((messages.len(), talk.messages()), (22, 22));
        let role = |at: usize| messages[at].get("role").and_then(Json::text);
        assert_eq!(role(20).as_deref(), Some("assistant"));
        assert_eq!(role(21).as_deref(), Some("user"));
        let kept = before.len() - END.len();
        assert_eq!(talk.body[..kept], before[..kept]);
        let request = String::from_utf8_lossy(talk.request());
        let (head, body) = request.split_once("\r\n\r\n").expect("a head");
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
    }
}
