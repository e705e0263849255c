use std::collections::HashSet;

/// What one line says that the user said.
pub struct Claim {
    /// Quotations, each in plain form, and whether it was found.
    quotes: Vec<(String, bool)>,
    /// What is claimed in other words: the words that carry meaning.
    words: HashSet<String>,
    /// Whether it says that something is not to be.
    negated: bool,
    /// The best share of them in one message,
    best: f64,
    /// and whether that one says the opposite.
    denied: bool,
}

/// A message of the user, in the forms claims are compared in.
pub struct Said {
    plain: String,
    words: HashSet<String>,
    /// Each sentence that negates, by its words.
    negations: Vec<HashSet<String>>,
}

/// This share of a claim's words in one message makes it true enough.
const ENOUGH: f64 = 0.7;
/// Shorter quotations are single words, which prove nothing and invent nothing.
const QUOTE: usize = 8;
/// No message forbids more.
const NEGATIONS: usize = 1000;
/// A message is compared by at most this many of its words.
const WORDS: usize = 20_000;

/// Who speaks, in a few languages; what follows must be a verb of saying or wanting.
const SPEAKERS: [&str; 14] = [
    "user",
    "the human",
    "customer",
    "der benutzer",
    "der nutzer",
    "die nutzerin",
    "l'utilisateur",
    "l’utilisateur",
    "el usuario",
    "o usuário",
    "l'utente",
    "пользователь",
    "用户",
    "ユーザー",
];
const VERBS: [&str; 62] = [
    "said",
    "says",
    "asked",
    "asks",
    "wants",
    "wanted",
    "want",
    "requested",
    "requests",
    "request",
    "told",
    "needs",
    "needed",
    "prefers",
    "preferred",
    "insisted",
    "demanded",
    "instructed",
    "specified",
    "stated",
    "approved",
    "confirmed",
    "agreed",
    "explicitly",
    "would like",
    "also",
    "then",
    "mentioned",
    "expects",
    "complained",
    "decided",
    "clarified",
    "allowed",
    "has asked",
    "has requested",
    "sagte",
    "will",
    "wollte",
    "bat",
    "möchte",
    "verlangte",
    "fragte",
    "a dit",
    "a demandé",
    "veut",
    "souhaite",
    "dijo",
    "pidió",
    "quiere",
    "pediu",
    "quer",
    "disse",
    "ha chiesto",
    "vuole",
    "сказал",
    "попросил",
    "хочет",
    "просит",
    "要求",
    "说",
    "想",
    "希望",
];
/// Where the verb comes last, what marks the speaker.
const PARTICLES: [&str; 4] = ["は", "が", "请求", "表示"];
/// Said of the user, but in nouns.
const NOUNS: [&str; 12] = [
    "user request:",
    "user requests:",
    "user's request",
    "user's instruction",
    "user feedback:",
    "at the user's request",
    "as requested by the user",
    "per the user",
    "according to the user",
    "user instruction:",
    "user quote:",
    "in the user's words",
];

impl Claim {
    /// Reads a line, if it claims something of the user's words.
    pub fn read(line: &str) -> Option<Claim> {
        let small = line.to_lowercase();
        let quotes: Vec<(String, bool)> = quotes(line)
            .into_iter()
            .map(|quote| (plain(quote), false))
            .filter(|(quote, _)| quote.chars().count() >= QUOTE)
            .collect();
        let cites = cited(line) && !quotes.is_empty();
        let said = claimed(&small);
        if said.is_none() && !cites {
            return None;
        }
        let negated = said.is_some_and(negates);
        let words = said.map(words).unwrap_or_default();
        if quotes.is_empty() && words.is_empty() {
            return None;
        }
        Some(Claim {
            quotes,
            words,
            negated,
            best: 0.0,
            denied: false,
        })
    }

    /// Compares with one message.
    pub fn against(&mut self, said: &Said) {
        for (quote, found) in &mut self.quotes {
            *found |= stands_in(quote, &said.plain);
        }
        if self.quotes.is_empty() {
            let share = self.share(&said.words);
            // What is negated is the sentence, not the message it stands in.
            let negated = said
                .negations
                .iter()
                .any(|words| self.share(words) >= ENOUGH);
            if share > self.best {
                self.best = share;
                self.denied = negated != self.negated;
            }
        }
    }

    /// The share of its words that are among these.
    fn share(&self, words: &HashSet<String>) -> f64 {
        let met = self
            .words
            .iter()
            .filter(|word| words.contains(*word))
            .count();
        met as f64 / self.words.len().max(1) as f64
    }

    /// Says whether the user said so.
    pub fn found(&self) -> bool {
        match self.quotes.is_empty() {
            true => self.best >= ENOUGH && !self.denied,
            false => self.quotes.iter().all(|(_, found)| *found),
        }
    }

    /// Why it counts as not said.
    pub fn why(&self) -> String {
        match self.quotes.iter().find(|(_, found)| !found) {
            Some((quote, _)) => {
                format!(
                    "no message of the user has \"{}\"",
                    infold_wire::shorten(quote, 80)
                )
            }
            None if self.denied && self.best >= ENOUGH => {
                "the user said the opposite, or left the \"not\" out".to_owned()
            }
            None => format!(
                "no message of the user says it: at best {:.0} % of its words are in one",
                self.best * 100.0
            ),
        }
    }
}

impl Said {
    pub fn read(text: &str) -> Said {
        let plain = plain(text);
        Said {
            words: words(&plain),
            negations: plain
                .split(['.', '!', '?', ';', ',', '。', '，'])
                .filter(|sentence| negates(sentence))
                .take(NEGATIONS)
                .map(words)
                .collect(),
            plain,
        }
    }
}

/// Says whether a sentence says what is not to be.
fn negates(sentence: &str) -> bool {
    const WORDS: [&str; 14] = [
        "not", "no", "never", "don't", "dont", "doesn't", "without", "can't", "won't", "nicht",
        "kein", "keine", "nie", "jamais",
    ];
    const SIGNS: [&str; 4] = ["不要", "禁止", "请勿", "не "];
    let mut words = sentence.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’')));
    words.any(|word| WORDS.contains(&&*word.replace('’', "'")))
        || SIGNS.iter().any(|sign| sentence.contains(sign))
}

/// A quotation may leave out a middle: `front […] end` or `front … end`.
fn stands_in(quote: &str, said: &str) -> bool {
    let mut rest = said;
    quote
        .split(['…'])
        .flat_map(|part| part.split("..."))
        .all(|part| {
            let part = part.trim_matches(['[', ']', ' ', '.', ',', '!', '?', ':', ';']);
            match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            }
        })
}

/// The claim of a line: what follows "the user said".
fn claimed(small: &str) -> Option<&str> {
    if let Some((at, noun)) = NOUNS
        .iter()
        .find_map(|noun| Some((small.find(noun)?, noun)))
    {
        return Some(&small[at + noun.len()..]);
    }
    SPEAKERS.iter().find_map(|speaker| {
        small.match_indices(speaker).find_map(|(at, _)| {
            let before = small[..at].chars().next_back();
            let inside =
                before.is_some_and(|c| c.is_alphanumeric() || c == '_') && speaker.is_ascii();
            let rest = small[at + speaker.len()..].trim_start();
            (!inside).then(|| verb(rest)).flatten()
        })
    })
}

/// What follows a verb of saying or wanting that `rest` starts with.
fn verb(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches([':', '*', '(']).trim_start();
    VERBS.iter().chain(&PARTICLES).find_map(|verb| {
        let after = rest.strip_prefix(verb)?;
        let whole =
            !verb.is_ascii() || !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        whole.then_some(after)
    })
}

/// The texts in quotation marks. Backticks mark names, not speech.
fn quotes(line: &str) -> Vec<&str> {
    const MARKS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('«', '»'), ('「', '」'), ('„', '“')];
    let mut out = Vec::new();
    let mut rest = line;
    while let Some((at, open, close)) = rest.char_indices().find_map(|(at, c)| {
        let mark = MARKS.iter().find(|(open, _)| *open == c)?;
        Some((at, mark.0, mark.1))
    }) {
        let inside = &rest[at + open.len_utf8()..];
        let Some(end) = inside.find(close) else {
            break;
        };
        out.push(&inside[..end]);
        rest = &inside[end + close.len_utf8()..];
    }
    out
}

/// Says whether a line quotes a request as our own summaries do: `- [12] "…"`, `- Last asked [12] "…"`.
fn cited(line: &str) -> bool {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let asked = ["First asked ", "Last asked "];
    let line = asked
        .iter()
        .find_map(|asked| line.strip_prefix(asked))
        .unwrap_or(line);
    let rest = line
        .strip_prefix('[')
        .and_then(|line| line.split_once("] "));
    rest.is_some_and(|(seq, text)| {
        seq.parse::<u64>().is_ok() && text.starts_with('"') && text.ends_with('"')
    })
}

/// Small letters, single spaces, straight quotes.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            match c {
                '’' | '‘' => out.push('\''),
                '`' | '*' => {}
                c => out.extend(c.to_lowercase()),
            }
        }
    }
    out
}

/// The words of a text that carry meaning; of scripts without spaces each pair of characters.
fn words(text: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        if out.len() >= WORDS {
            break;
        }
        if word.chars().any(wide) {
            let chars: Vec<char> = word.chars().take(WORDS).collect();
            out.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if word.len() > 1 && !EMPTY.contains(&word) {
            out.insert(stem(word));
        }
    }
    out
}

/// `renaming`, `renamed` and `renames` are the same word here.
fn stem(word: &str) -> String {
    let word = ["ing", "ed", "es", "s", "e"]
        .iter()
        .find_map(|end| word.strip_suffix(end).filter(|stem| stem.len() >= 3))
        .unwrap_or(word);
    word.to_owned()
}

fn wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Words that every sentence has.
const EMPTY: [&str; 68] = [
    "the",
    "an",
    "to",
    "of",
    "in",
    "on",
    "at",
    "and",
    "or",
    "for",
    "that",
    "this",
    "it",
    "its",
    "is",
    "be",
    "are",
    "was",
    "were",
    "with",
    "as",
    "by",
    "from",
    "all",
    "should",
    "would",
    "could",
    "can",
    "will",
    "please",
    "also",
    "so",
    "then",
    "them",
    "they",
    "me",
    "my",
    "we",
    "our",
    "you",
    "your",
    "us",
    "assistant",
    "user",
    "agent",
    "if",
    "but",
    "not",
    "do",
    "does",
    "have",
    "has",
    "de",
    "la",
    "le",
    "les",
    "der",
    "die",
    "das",
    "und",
    "zu",
    "el",
    "que",
    "et",
    "un",
    "une",
    "der",
    "den",
];
