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

/// Returns the text in place of a masked part of a message.
pub fn mask_text(seq: Seq, hidden: u64, tool: Option<&str>) -> String {
    let place = match tool {
        Some(tool) => format!("the tool `{tool}` shows message {seq}"),
        None => format!("message {seq} keeps them"),
    };
    format!("[{hidden} tokens folded away; nothing is lost, and {place}]")
}

/// Returns the text between the head and the tail of a result, of whose `hidden` tokens `left` are left out.
pub fn clip_text(seq: Seq, hidden: u64, left: u64, tool: Option<&str>) -> String {
    let place = match tool {
        Some(tool) => format!("the tool `{tool}` shows all of message {seq}"),
        None => format!("message {seq} keeps all of it"),
    };
    format!(
        "[… about {left} of {hidden} tokens left out to fit the window; nothing is lost, and {place} …]"
    )
}

fn place_of(span: Span, tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("the tool `{tool}` shows {span} in full"),
        None => format!("the log keeps {span} word for word"),
    }
}
