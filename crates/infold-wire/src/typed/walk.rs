//! One walk over a text, front to back: cuts out what its agent put in, and keeps the rest in pieces.

use memchr::memmem;

use super::plain::{self, Sole};
use super::protocol;
use super::sections::{self, Fronts, Part};
use super::table::{
    Agent, COMPACTIONS, Holds, PAIRS, PHRASE_START, PHRASES, SENT, SENT_ENDS, TEXTS, WHOLE_TEXTS,
};
use super::tags::{Element, elements};

/// The second words of a pair stand within so many bytes.
const MAX_PAIR_BYTES: usize = 4096;
/// Wrappers in this many others are not taken off.
const MAX_DEPTH: usize = 3;

/// Where a kept piece comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words that stand by themselves.
    Loose,
    /// Words in a wrapper of the agent.
    Words,
    /// Words of the user even in the prompt of a slash command: its arguments, and what was sent meanwhile.
    Sure,
}

/// Words that are not the agent's.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub kind: Kind,
    pub text: &'a str,
}

/// What a text is made of.
#[derive(Debug, Default)]
pub struct Walk<'a> {
    /// What is left of it, in order.
    pub pieces: Vec<Piece<'a>>,
    /// The name of the slash command that its wrapper names.
    pub command: Option<&'a str>,
    /// Whether that wrapper starts with the message, as that of a command with a prompt does.
    pub message_first: bool,
    /// Whether it holds output of a command that the agent ran itself, or says that such output follows.
    pub is_local: bool,
    /// Whether it says that the user interrupted the model.
    pub is_interruption: bool,
    /// Whether it is the file of a skill.
    pub is_skill: bool,
    /// Whether anything was put in.
    is_marked: bool,
    /// How many wrappers are around it.
    depth: usize,
}

impl<'a> Walk<'a> {
    pub fn over(text: &'a str) -> Walk<'a> {
        Walk::nested(text, 0)
    }

    fn nested(text: &'a str, depth: usize) -> Walk<'a> {
        let text = protocol::without_prompt(text);
        let mut walk = Walk {
            depth,
            ..Walk::default()
        };
        let sole = Sole::of(text);
        let elements = elements(text);
        let parts = sections::parts(text);
        let mut elements = elements.iter().peekable();
        let mut parts = parts.iter().peekable();
        let mut fronts = Fronts::default();
        let mut from = 0;
        loop {
            from = text.len() - text[from..].trim_start().len();
            if walk.is_whole(&text[from..]) {
                break;
            }
            if let Some(end) = interruption(&text[from..]) {
                walk.is_interruption = true;
                from += end;
                continue;
            }
            if let Some(end) = fronts.end(&text[from..]) {
                walk.mark(&text[from..from + end]);
                from += end;
                continue;
            }
            let counts =
                |element: &Element<'_>| starts(element, text, from) && sole.allows(element);
            while elements.next_if(|element| !counts(element)).is_some() {}
            while parts.next_if(|part| part.at < from).is_some() {}
            let element = elements.peek().map(|element| element.at);
            let part = parts.peek().map(|part| part.at);
            let to = element.into_iter().chain(part).min().unwrap_or(text.len());
            walk.loose(&text[from..to]);
            from = match (element, part) {
                (Some(at), _) if at == to => elements.next().map(|element| walk.element(element)),
                (_, Some(at)) if at == to => parts.next().map(|part| walk.part(text, part)),
                _ => break,
            }
            .unwrap_or(text.len());
        }
        plain::read(&mut walk.pieces, walk.is_marked);
        walk
    }

    /// Whether all that follows is the agent's.
    fn is_whole(&mut self, rest: &'a str) -> bool {
        let starts = |(_, start): &&(_, &str)| rest.starts_with(start);
        let row = TEXTS.iter().chain(COMPACTIONS).find(starts);
        let is_pair =
            |(_, start, then): &(_, &str, &str)| rest.starts_with(start) && has_near(rest, then);
        let is_exact = |(_, whole): &(_, &str)| rest.trim_end() == *whole;
        if row.is_none()
            && !plain::sets_up(rest)
            && !PAIRS.iter().any(is_pair)
            && !WHOLE_TEXTS.iter().any(is_exact)
        {
            return false;
        }
        self.is_skill |= rest.starts_with("Base directory for this skill");
        // Cline adds what the user says to such a text.
        if row.is_some_and(|(agent, _)| *agent == Agent::Cline) {
            for element in elements(rest) {
                if element.holds == Holds::Words {
                    self.words(element.inside);
                }
            }
        }
        self.is_marked = true;
        true
    }

    fn element(&mut self, element: &Element<'a>) -> usize {
        match element.holds {
            Holds::Words | Holds::PlainWords => self.words(element.inside),
            Holds::Arguments => self.keep(Kind::Sure, element.inside),
            Holds::Reminder => {
                if let Some(sent) = sent(element.inside) {
                    self.keep(Kind::Sure, sent);
                }
            }
            Holds::Command => self.command(element),
            Holds::CommandOutput => self.is_local = true,
            Holds::Context => self.is_local |= element.name == "local-command-caveat",
            Holds::Output | Holds::LoneContext | Holds::PlainContext => {}
        }
        self.is_marked = true;
        element.end
    }

    /// Keeps what is typed in a wrapper. An agent may have put something in there too.
    fn words(&mut self, inside: &'a str) {
        if self.depth == MAX_DEPTH {
            return self.keep(Kind::Words, inside);
        }
        for piece in Walk::nested(inside, self.depth + 1).pieces {
            let kind = if piece.kind == Kind::Sure {
                Kind::Sure
            } else {
                Kind::Words
            };
            self.keep(kind, piece.text);
        }
    }

    fn command(&mut self, element: &Element<'a>) {
        match element.name {
            "command-name" => self.command = Some(element.inside.trim().trim_start_matches('/')),
            "command-message" if self.command.is_none() => {
                self.message_first = true;
                self.command = Some("");
            }
            _ => {}
        }
    }

    fn part(&mut self, text: &str, part: &Part) -> usize {
        self.mark(&text[part.at..part.end]);
        part.end
    }

    fn mark(&mut self, cut: &str) {
        self.is_local |= cut.starts_with("Caveat: ");
        self.is_marked = true;
    }

    /// Keeps loose words without the phrases that were put into them.
    fn loose(&mut self, words: &'a str) {
        let mut from = 0;
        for at in memmem::find_iter(words.as_bytes(), PHRASE_START) {
            let phrase = PHRASES
                .iter()
                .find(|(_, phrase)| words[at..].starts_with(phrase));
            if let Some((_, phrase)) = phrase {
                self.keep(Kind::Loose, &words[from..at]);
                from = at + phrase.len();
            }
        }
        self.keep(Kind::Loose, &words[from..]);
    }

    fn keep(&mut self, kind: Kind, text: &'a str) {
        let text = text.trim();
        if !text.is_empty() {
            self.pieces.push(Piece { kind, text });
        }
    }
}

/// Whether words stand at the front of a text.
fn has_near(text: &str, words: &str) -> bool {
    let front = &text.as_bytes()[..text.len().min(MAX_PAIR_BYTES)];
    memmem::find(front, words.as_bytes()).is_some()
}

/// Where the line ends that says that the user interrupted the model.
fn interruption(text: &str) -> Option<usize> {
    if !text.starts_with("[Request interrupted by user") {
        return None;
    }
    let line = text.lines().next()?;
    line.trim_end().ends_with(']').then_some(line.len())
}

/// Whether an element is the next to be walked to.
fn starts(element: &Element<'_>, text: &str, from: usize) -> bool {
    element.at >= from && (element.starts_line || text[from..element.at].trim().is_empty())
}

/// What the user sent while the model worked, if this is what a reminder says.
pub fn sent(reminder: &str) -> Option<&str> {
    let reminder = reminder.trim();
    let row = |(_, start): &(_, &str)| reminder.strip_prefix(*start);
    let sent = SENT.iter().find_map(row)?;
    let ends = SENT_ENDS.iter().filter_map(|end| sent.rfind(end));
    Some(&sent[..ends.min().unwrap_or(sent.len())])
}
