//! Parses a text front to back: removes the text that the agent injected, and keeps the rest as passages.

use std::ops::Range;

use memchr::memmem;

use super::elements::{TextElement, find_elements};
use super::markers::{
    COMPACTIONS, EXACT_TEXTS, ElementContent, INSERTED_PHRASE_START, INSERTED_PHRASES,
    SENT_MEANWHILE, SENT_MEANWHILE_ENDS, SETTING_COMMANDS, TEXT_PAIRS, TEXTS, TEXTS_WITH_FEEDBACK,
};
use super::only_elements::{self, ElementsOnly};
use super::sections::{FrontSections, line_sections};
use super::text_protocol;

/// The distance in bytes within which the second words of a text pair are searched for.
const MAX_PAIR_BYTES: usize = 4096;
/// The depth to which nested wrappers are removed.
const MAX_WRAPPERS: usize = 3;

/// The origin of a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageOrigin {
    /// The passage is outside of any wrapper.
    Loose,
    /// The passage is in a wrapper of the agent.
    Wrapper,
    /// The user typed it even in the prompt of a slash command: its arguments, or a message sent in between.
    User,
}

/// Words that the agent did not inject.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub origin: PassageOrigin,
    pub text: &'a str,
}

/// A text without the parts that its agent injected.
#[derive(Debug, Default)]
pub struct ParsedText<'a> {
    /// The remaining passages, in order.
    pub passages: Vec<Passage<'a>>,
    /// The name of the slash command that its wrapper names.
    pub command: Option<&'a str>,
    /// Whether that wrapper starts with the message, as that of a command with a prompt does.
    pub message_first: bool,
    /// Whether the text has output of a command that the agent ran itself, or announces such output.
    pub is_local: bool,
    /// Whether the text states that the user interrupted the model.
    pub is_interruption: bool,
    /// Whether the text is the file of a skill.
    pub is_skill: bool,
    /// Whether any part was injected.
    has_injection: bool,
    /// The number of wrappers around the passage.
    depth: usize,
}

impl<'a> ParsedText<'a> {
    /// Parses `text`.
    pub fn parse(text: &'a str) -> ParsedText<'a> {
        ParsedText::parse_nested(text, 0)
    }

    fn parse_nested(text: &'a str, depth: usize) -> ParsedText<'a> {
        let text = text_protocol::without_prompt(text);
        let mut parsed = ParsedText {
            depth,
            ..ParsedText::default()
        };
        let elements_only = ElementsOnly::of(text);
        let mut elements = find_elements(text).into_iter().peekable();
        let mut sections = line_sections(text).into_iter().peekable();
        let mut front_sections = FrontSections::default();
        let mut from = 0;
        loop {
            from = text.len() - text[from..].trim_start().len();
            let rest = &text[from..];
            if parsed.take_injected_text(rest) {
                break;
            }
            if let Some(end) = interruption_end(rest) {
                parsed.is_interruption = true;
                from += end;
                continue;
            }
            if let Some(end) = front_sections.find_end(rest) {
                parsed.take_section(&rest[..end]);
                from += end;
                continue;
            }
            let counts = |element: &TextElement<'_>| {
                is_reachable(element, text, from) && elements_only.allows(element)
            };
            while elements.next_if(|element| !counts(element)).is_some() {}
            while sections.next_if(|section| section.start < from).is_some() {}
            let element_at = elements.peek().map(|element| element.at);
            let section_at = sections.peek().map(|section| section.start);
            let next = element_at.into_iter().chain(section_at).min();
            let to = next.unwrap_or(text.len());
            parsed.add_loose(&text[from..to]);
            if element_at == next
                && let Some(element) = elements.next()
            {
                parsed.take_element(&element);
                from = element.end;
            } else if let Some(Range { start, end }) = sections.next() {
                parsed.take_section(&text[start..end]);
                from = end;
            } else {
                break;
            }
        }
        only_elements::unwrap(&mut parsed.passages, parsed.has_injection);
        parsed
    }

    /// Returns whether all of `rest` was injected.
    fn take_injected_text(&mut self, rest: &'a str) -> bool {
        let starts = |start: &&str| rest.starts_with(start);
        let is_pair = |pair: &Vec<&str>| starts(&pair[0]) && has_near_front(rest, pair[1]);
        let has_feedback = TEXTS_WITH_FEEDBACK.iter().any(starts);
        if !has_feedback
            && !TEXTS.iter().chain(&*COMPACTIONS).any(starts)
            && !only_elements::sets_up_context(rest)
            && !TEXT_PAIRS.iter().any(is_pair)
            && !EXACT_TEXTS.contains(&rest.trim_end())
        {
            return false;
        }
        self.is_skill |= rest.starts_with("Base directory for this skill");
        if has_feedback {
            for element in find_elements(rest) {
                if element.content == ElementContent::Typed {
                    self.add_wrapped(element.inside);
                }
            }
        }
        self.has_injection = true;
        true
    }

    fn take_element(&mut self, element: &TextElement<'a>) {
        match element.content {
            ElementContent::Typed | ElementContent::CommonTyped => self.add_wrapped(element.inside),
            ElementContent::Arguments => {
                let sets = |name: &str| SETTING_COMMANDS.contains(&name);
                if !self.command.is_some_and(sets) {
                    self.add(PassageOrigin::User, element.inside);
                }
            }
            ElementContent::Reminder => {
                if let Some(message) = sent_meanwhile(element.inside) {
                    self.add(PassageOrigin::User, message);
                }
            }
            ElementContent::Command => match element.name {
                "command-name" => {
                    self.command = Some(element.inside.trim().trim_start_matches('/'));
                }
                "command-message" if self.command.is_none() => {
                    self.message_first = true;
                    self.command = Some("");
                }
                _ => {}
            },
            ElementContent::CommandOutput => self.is_local = true,
            ElementContent::Context => self.is_local |= element.name == "local-command-caveat",
            ElementContent::Output
            | ElementContent::LoneContext
            | ElementContent::CommonContext => {}
        }
        self.has_injection = true;
    }

    fn take_section(&mut self, section: &str) {
        self.is_local |= section.starts_with("Caveat: ");
        self.has_injection = true;
    }

    /// Adds the words in a wrapper. The agent may have injected something in there too.
    fn add_wrapped(&mut self, inside: &'a str) {
        if self.depth == MAX_WRAPPERS {
            return self.add(PassageOrigin::Wrapper, inside);
        }
        for passage in ParsedText::parse_nested(inside, self.depth + 1).passages {
            let origin = match passage.origin {
                PassageOrigin::User => PassageOrigin::User,
                PassageOrigin::Loose | PassageOrigin::Wrapper => PassageOrigin::Wrapper,
            };
            self.add(origin, passage.text);
        }
    }

    /// Adds loose words without the phrases that were inserted into them.
    fn add_loose(&mut self, words: &'a str) {
        let mut from = 0;
        for at in memmem::find_iter(words.as_bytes(), INSERTED_PHRASE_START) {
            let mut phrases = INSERTED_PHRASES.iter();
            if let Some(phrase) = phrases.find(|phrase| words[at..].starts_with(**phrase)) {
                self.add(PassageOrigin::Loose, &words[from..at]);
                from = at + phrase.len();
            }
        }
        self.add(PassageOrigin::Loose, &words[from..]);
    }

    fn add(&mut self, origin: PassageOrigin, text: &'a str) {
        let text = text.trim();
        if !text.is_empty() {
            self.passages.push(Passage { origin, text });
        }
    }
}

fn has_near_front(text: &str, words: &str) -> bool {
    let front = &text.as_bytes()[..text.len().min(MAX_PAIR_BYTES)];
    memmem::find(front, words.as_bytes()).is_some()
}

/// Returns where the line ends that says that the user interrupted the model.
fn interruption_end(text: &str) -> Option<usize> {
    if !text.starts_with("[Request interrupted by user") {
        return None;
    }
    let line = text.lines().next()?;
    line.trim_end().ends_with(']').then_some(line.len())
}

/// Returns whether an element starts a line, or follows `from` directly.
fn is_reachable(element: &TextElement<'_>, text: &str, from: usize) -> bool {
    element.at >= from && (element.starts_line || text[from..element.at].trim().is_empty())
}

/// Returns the message that the user sent while the model worked, if a reminder quotes one.
pub fn sent_meanwhile(reminder: &str) -> Option<&str> {
    let reminder = reminder.trim();
    let mut starts = SENT_MEANWHILE.iter();
    let message = starts.find_map(|start| reminder.strip_prefix(start))?;
    let ends = SENT_MEANWHILE_ENDS.iter();
    let end = ends.filter_map(|end| message.rfind(end)).min();
    Some(&message[..end.unwrap_or(message.len())])
}
