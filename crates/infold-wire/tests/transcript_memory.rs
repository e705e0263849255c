//! Reading a long transcript takes no more memory than reading a short one.

use std::io::{BufReader, Read, Seek, SeekFrom};

use infold_wire::transcript::{Transcript, TranscriptEntry};

/// A transcript that is generated while it is read.
struct Endless {
    head: &'static [u8],
    body: Vec<u8>,
    tail: &'static [u8],
    times: u64,
    at: u64,
}

impl Endless {
    fn len(&self) -> u64 {
        self.head.len() as u64 + self.body.len() as u64 * self.times + self.tail.len() as u64
    }
}

impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let (head, body) = (self.head.len() as u64, self.body.len() as u64);
        let rest = match self.at {
            at if at < head => &self.head[at as usize..],
            at if at < head + body * self.times => &self.body[((at - head) % body) as usize..],
            at => &self.tail[(at - head - body * self.times) as usize..],
        };
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(by) => self.len().saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

/// The most memory this process ever had, in bytes, where the system tells.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[test]
fn memory_does_not_grow_with_the_transcript() {
    let message = format!(
        r#"{{"role":"user","content":"{}"}}"#,
        "words and more ".repeat(600)
    );
    let line = |separator: &str| format!("{message}{separator}").into_bytes();
    let before = peak();
    for (head, body, tail) in [
        (&b""[..], line("\n"), &b""[..]),
        (
            b"{\"messages\":[",
            line(",\n"),
            b"{\"role\":\"user\",\"content\":\"end\"}],\"system\":\"x\"}",
        ),
    ] {
        let times = 4000;
        let endless = Endless {
            head,
            body,
            tail,
            times,
            at: 0,
        };
        assert!(endless.len() > 36_000_000);
        let transcript = Transcript::open(BufReader::new(endless), None).expect("a transcript");
        let mut messages = 0;
        for entry in transcript {
            messages += u64::from(matches!(
                entry.expect("an entry"),
                TranscriptEntry::Message { .. }
            ));
        }
        assert!(messages >= times);
    }
    assert!(peak() - before < 4 << 20, "{} bytes more", peak() - before);
}
