//! The wording of stand-ins: what a view says in place of hidden messages and masked parts.
//!
//! Where the reader has a tool that opens hidden messages, the text names it.

use infold_log::{Seq, Span};

/// Returns the heading of a summary.
pub fn summary_heading(span: Span, messages: u64, tool: Option<&str>) -> String {
    let (start, place) = (summary_heading_start(span, messages), place_of(span, tool));
    format!("{start}: {place})]")
}

/// Returns the part of a summary's heading that does not depend on the tool.
pub fn summary_heading_start(span: Span, messages: u64) -> String {
    format!("[Summary of messages {span} ({messages} folded away; nothing is lost")
}

const HIDDEN: &str = "earlier messages are hidden to fit the window";

/// Returns the text in place of messages that are hidden without a summary.
pub fn window_marker(span: Span, messages: u64, tool: Option<&str>) -> String {
    let place = place_of(span, tool);
    format!("[{messages} {HIDDEN}; nothing is lost: {place}]")
}

/// Returns whether a text is a [`window_marker`].
pub fn is_window_marker(text: &str) -> bool {
    text.starts_with('[') && text.contains(HIDDEN)
}

/// The parts of the line that stands where a tool left out bytes of its result, before and after their number.
pub const OMISSION_START: &str = "\n[… ";
/// See [`OMISSION_START`].
pub const OMITTED: &str = "bytes left out: ";

/// Returns the bytes that were left out of a text before it was stored, as the lines in their places say.
pub fn left_out_bytes(text: &str) -> usize {
    let lines = text.split(OMISSION_START).skip(1);
    let counts = lines.filter_map(|line| {
        let (bytes, rest) = line.split_once(' ')?;
        rest.starts_with(OMITTED).then(|| bytes.parse().ok())?
    });
    counts.fold(0, usize::saturating_add)
}

/// Returns whether nothing of a result is lost; of one that was cut before it was stored, how much is.
fn loss(stored: &str) -> String {
    match left_out_bytes(stored) {
        0 => "nothing is lost".to_owned(),
        bytes => format!("{bytes} bytes of it were not kept"),
    }
}

/// Returns the text in place of a masked part of a message, which has the text `stored`.
pub fn mask_text(seq: Seq, hidden: u64, stored: &str, tool: Option<&str>) -> String {
    let place = match tool {
        Some(tool) => format!("the tool `{tool}` shows message {seq}"),
        None => format!("message {seq} keeps them"),
    };
    format!(
        "[{hidden} tokens folded away; {}, and {place}]",
        loss(stored)
    )
}

/// Returns the text between the head and the tail of a result `stored`, of whose `hidden` tokens `left` are left out.
pub fn clip_text(seq: Seq, hidden: u64, left: u64, stored: &str, tool: Option<&str>) -> String {
    let place = match (tool, left_out_bytes(stored)) {
        (Some(tool), 0) => format!("the tool `{tool}` shows all of message {seq}"),
        (None, 0) => format!("message {seq} keeps all of it"),
        (Some(tool), _) => format!("the tool `{tool}` shows the rest in message {seq}"),
        (None, _) => format!("message {seq} keeps the rest"),
    };
    let loss = loss(stored);
    format!("[… about {left} of {hidden} tokens left out to fit the window; {loss}, and {place} …]")
}

fn place_of(span: Span, tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("the tool `{tool}` shows {span} in full"),
        None => format!("the log keeps {span} word for word"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_was_cut_before_it_was_stored_does_not_say_that_nothing_is_lost() {
        let seq = Seq::new(4).unwrap();
        let cut = "head\n[… 1234 bytes left out: the output was too long …]\ntail";
        for tool in [None, Some("recall")] {
            for text in [
                mask_text(seq, 9, cut, tool),
                clip_text(seq, 9, 5, cut, tool),
            ] {
                assert!(text.contains("1234 bytes of it were not kept"), "{text}");
                assert!(
                    !text.contains("nothing is lost") && !text.contains("all of"),
                    "{text}"
                );
            }
            for text in [
                mask_text(seq, 9, "whole", tool),
                clip_text(seq, 9, 5, "whole", tool),
            ] {
                assert!(text.contains("nothing is lost"), "{text}");
            }
        }
    }
}
