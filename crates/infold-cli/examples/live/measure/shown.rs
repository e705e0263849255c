//! The part of a session that a model is shown at one moment, and the references that it lacks.

use infold_wire::Message;

use super::Failure;
use super::record::{Record, block_bytes, normal_space, text_of};
use super::terms::{Recall, Share};

/// A parsed request: the unchanged blocks of the session, and all other text.
pub struct Shown {
    /// The number of unchanged blocks with each term.
    visible: Vec<u32>,
    /// All other text: summaries, markers, stubs, excerpts.
    stand_in: String,
    /// All text, with normalised white space.
    whole: String,
}

impl Shown {
    /// Takes the messages of a request apart.
    pub fn of<'a>(
        messages: impl Iterator<Item = &'a [u8]>,
        record: &Record,
    ) -> Result<Shown, Failure> {
        let mut shown = Shown {
            visible: vec![0; record.first.len()],
            stand_in: String::new(),
            whole: String::new(),
        };
        let mut whole = String::new();
        for bytes in messages {
            let message = Message::parse(bytes)?;
            for block in block_bytes(&message) {
                let text = text_of(message.role(), block);
                let places = record.find_block(block);
                if places.is_empty() {
                    shown.stand_in.push_str(&text);
                    shown.stand_in.push('\n');
                }
                // Blocks with the same bytes hold the same terms.
                for (place, at) in places.iter().take(1) {
                    for term in &record.messages[*place].blocks[*at] {
                        shown.visible[*term] += 1;
                    }
                }
                whole.push_str(&text);
                whole.push('\n');
            }
        }
        shown.whole = normal_space(&whole);
        Ok(shown)
    }

    /// Returns the references of the messages `from` to `to` to earlier hidden ones, and those of them that stand-ins
    /// hold.
    pub fn recall(&self, record: &Record, from: usize, to: usize) -> Recall {
        let mut wanted = record.needed(from, to);
        wanted.retain(|term| self.visible[*term] == 0);
        record.terms.kept(&self.stand_in, &wanted)
    }

    /// Returns the references of the messages from `from` on that are shown at all, unchanged or in a stand-in.
    pub fn in_view(&self, record: &Record, from: usize) -> Recall {
        let needed = record.needed(from, record.messages.len());
        let held = record.terms.found(&self.stand_in);
        record.terms.recall(&needed, |term| {
            self.visible[term] > 0 || held.binary_search(&term).is_ok()
        })
    }

    /// Returns how many of the newest typed requests that fit `most_tokens` are shown completely.
    pub fn verbatim(&self, record: &Record, from: usize, most_tokens: u64) -> Share {
        let mut share = Share::default();
        for text in record.typed_before(from, most_tokens) {
            share.count(self.whole.contains(text));
        }
        share
    }

    /// Tokens of all text that is not of the session.
    pub fn stand_in_tokens(&self) -> u64 {
        infold_wire::tokens::count(infold_wire::tokens::Encoding::O200k, &self.stand_in)
    }
}

#[cfg(test)]
mod tests {
    use infold_eval::RecordedSession;

    use super::*;

    const ASKED: &str = r#"{"role":"user","content":"rename old_name in a/b.rs, carefully"}"#;
    const CALLED: &str = r#"{"role":"assistant","content":[{"type":"text","text":"I read it"},{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a/b.rs"}}]}"#;
    const GIVEN: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"fn old_name and other_name"}]}"#;
    const MASKED: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"(other_name was here)"}]}"#;
    const SAID: &str = r#"{"role":"assistant","content":"old_name and other_name of a/b.rs are renamed carefully"}"#;
    const NEXT: &str = r#"{"role":"user","content":"other_name, too?"}"#;

    fn record() -> Record {
        let messages = [ASKED, CALLED, GIVEN, SAID, NEXT];
        let messages = messages.iter().map(|text| text.as_bytes().to_vec());
        let session = RecordedSession {
            messages: messages.collect(),
            ..RecordedSession::default()
        };
        Record::of(&session).unwrap()
    }

    fn shown(messages: &[&str], record: &Record) -> Shown {
        Shown::of(messages.iter().map(|text| text.as_bytes()), record).unwrap()
    }

    #[test]
    fn what_stands_there_as_it_came_is_not_wanted() {
        let record = record();
        let recall = shown(&[ASKED, CALLED, GIVEN], &record).recall(&record, 3, 5);
        assert_eq!(recall, Recall::default());
    }

    #[test]
    fn what_only_hidden_messages_hold_is_wanted_once_and_kept_by_a_stand_in() {
        let record = record();
        let summary = r#"{"role":"user","content":"a summary: b.rs, a/b.rs, rename"}"#;
        let shown = shown(&[summary, CALLED, GIVEN], &record);
        let recall = shown.recall(&record, 3, 5);
        assert_eq!(recall.references, Share::default(), "the call names a/b.rs");
        assert_eq!(
            (recall.words.kept, recall.words.wanted),
            (0, 1),
            "carefully"
        );
        let only = super::Shown::of([summary.as_bytes()].into_iter(), &record).unwrap();
        let recall = only.recall(&record, 3, 5);
        let references = recall.references;
        assert_eq!(
            (references.kept, references.wanted),
            (1, 3),
            "a/b.rs of three"
        );
        let there = only.in_view(&record, 3).references;
        assert_eq!(there, references, "nothing is shown as it came");
    }

    #[test]
    fn a_masked_result_leaves_the_rest_of_its_round_shown() {
        let record = record();
        let recall = shown(&[ASKED, CALLED, MASKED], &record).recall(&record, 3, 5);
        let references = recall.references;
        assert_eq!((references.kept, references.wanted), (1, 1), "other_name");
    }

    #[test]
    fn typed_requests_are_looked_for_whole_and_newest_first() {
        let record = record();
        let quoted = r#"{"role":"user","content":"asked:  rename old_name\nin a/b.rs, carefully"}"#;
        let shown = shown(&[quoted, SAID], &record);
        let all = shown.verbatim(&record, 5, 1000);
        assert_eq!((all.kept, all.wanted), (1, 2));
        let newest = shown.verbatim(&record, 5, 6);
        assert_eq!((newest.kept, newest.wanted), (0, 1));
    }
}
