//! Words of a text in the form in which claims are compared: folded, by stem, by what they mean, with what they are.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::form::{
    elided, fold, inflects, is_choice, is_date, is_name, is_wide, number_of, shouts,
};

/// A word, or a mark that separates clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// In small letters without accents.
    pub text: String,
    pub kind: Kind,
    /// What it means, where the table knows it.
    pub group: Option<Group>,
    /// Where it stands in the text.
    pub at: usize,
    pub end: usize,
    /// `user's`
    pub owns: bool,
    /// Which of the parts that "and" and commas join it stands in; clauses say so.
    pub part: u16,
}

/// What a word is for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name, number, path or value: it is this one or another.
    Fact,
    Plain,
    /// Says nothing of its own: "problem", "approach".
    Neutral,
    /// Every sentence has it.
    Stop,
    /// A mark between clauses.
    Mark(char),
}

/// A line of the table of synonyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    id: u16,
    pub name: &'static str,
    /// A verb that says what is to be done.
    pub act: bool,
    /// Costly if done by mistake.
    pub high: bool,
}

struct Tables {
    groups: HashMap<String, Group>,
    /// Of scripts without spaces, longest first.
    phrases: Vec<(&'static str, Group)>,
    stop: HashSet<String>,
    neutral: HashSet<String>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let (mut groups, mut phrases) = (HashMap::new(), Vec::new());
    let lines = include_str!("tables/synonyms.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    for (id, (head, words)) in lines.filter_map(|line| line.split_once(':')).enumerate() {
        let mut head = head.split(' ');
        let name = head.next().unwrap_or_default();
        let flags: Vec<&str> = head.collect();
        let group = Group {
            id: id as u16,
            name,
            act: flags.contains(&"act"),
            high: flags.contains(&"high"),
        };
        for word in words.split_whitespace() {
            if word.chars().any(is_wide) {
                phrases.push((word, group));
            } else {
                groups.entry(fold(word)).or_insert(group);
            }
        }
    }
    phrases.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
    let set = |text: &str| text.split_whitespace().map(fold).collect();
    Tables {
        groups,
        phrases,
        stop: set(include_str!("tables/stop.txt")),
        neutral: set(include_str!("tables/neutral.txt")),
    }
});

/// Two words, and the one that says the same.
const PAIRS: [(&str, &str, &str); 16] = [
    ("turn", "off", "disable"),
    ("switch", "off", "disable"),
    ("turn", "on", "enable"),
    ("switch", "on", "enable"),
    ("get", "rid", "remove"),
    ("take", "out", "remove"),
    ("throw", "away", "remove"),
    ("leave", "out", "omit"),
    ("roll", "out", "deploy"),
    ("roll", "back", "rollback"),
    ("look", "into", "look"),
    ("schalte", "ab", "disable"),
    ("sign", "off", "approve"),
    ("put", "back", "restore"),
    ("carry", "on", "continue"),
    ("clean", "up", "cleanup"),
];

/// Characters of Chinese that every sentence has.
const WIDE_STOP: &str = "的了在是把将和与并请要给对从到被让使得地个这那些其中及或也都就还再又很更最有为以于里内时后前等会能可应该需我你他她它们吧吗呢来去做一下以后起别不没無无勿禁止用户使用者说想希望求示所";

/// Endings of Hangul words.
const PARTICLES: [&str; 36] = [
    "으로부터",
    "에서는",
    "해주세요",
    "하도록",
    "하라고",
    "해달라고",
    "으로",
    "에서",
    "에게",
    "까지",
    "부터",
    "이라",
    "라고",
    "하지",
    "하고",
    "해서",
    "해줘",
    "했다",
    "한다",
    "하여",
    "할",
    "한",
    "을",
    "를",
    "은",
    "는",
    "이",
    "가",
    "에",
    "로",
    "와",
    "과",
    "도",
    "만",
    "의",
    "해",
];

/// Cuts a text into words and marks; at most `most`.
pub fn words(text: &str, most: usize) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut rest = text;
    let mut code = false;
    while let Some(c) = rest.chars().next() {
        if out.len() >= most {
            break;
        }
        let at = text.len() - rest.len();
        let next = at + c.len_utf8();
        if is_wide(c) {
            let len = wide(rest, at, &mut out);
            rest = &rest[len..];
        } else if inside(c) {
            let len = rest
                .find(|c| !inside(c) || is_wide(c))
                .unwrap_or(rest.len());
            plain(&rest[..len], at, code, &mut out);
            rest = &rest[len..];
        } else {
            code ^= c == '`';
            if matches!(
                c,
                ',' | ';'
                    | '('
                    | ')'
                    | '—'
                    | '–'
                    | '→'
                    | '，'
                    | '；'
                    | '：'
                    | '。'
                    | '、'
                    | '！'
                    | '？'
                    | '!'
                    | '?'
            ) {
                out.push(mark(c, at));
            }
            rest = &text[next..];
            if c == '\n' && begins_line(rest) {
                out.push(mark(c, at));
            }
        }
    }
    pair(&mut out);
    join_units(&mut out);
    out
}

/// Says whether a line is not the rest of the one before: a blank one, an item, a heading.
fn begins_line(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    line.starts_with(|c: char| {
        c.is_ascii_digit() || matches!(c, '\n' | '\r' | '-' | '*' | '•' | '#' | '>' | '`')
    })
}

fn mark(c: char, at: usize) -> Word {
    Word {
        text: String::new(),
        kind: Kind::Mark(c),
        group: None,
        at,
        end: at,
        owns: false,
        part: 0,
    }
}

/// Characters that stand within a word or name.
fn inside(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(
            c,
            '_' | '-'
                | '/'
                | '.'
                | ':'
                | '\''
                | '’'
                | '@'
                | '#'
                | '+'
                | '\\'
                | '%'
                | '$'
                | '='
                | '~'
                | '*'
                | '&'
                | '<'
                | '>'
        )
}

/// Takes a run of characters without a space.
fn plain(run: &str, at: usize, code: bool, out: &mut Vec<Word>) {
    if run == "-" || run == "--" || run == "->" || run == "=>" {
        out.push(mark(if run.ends_with('>') { '→' } else { '–' }, at));
        return;
    }
    let edge = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '~'));
    let front = run.trim_start_matches(edge);
    let word = front.trim_end_matches(|c| edge(c) && !matches!(c, '%' | '+' | '#'));
    // `--force`, `.env` and `legacy/` are names.
    let flag = run.starts_with("--")
        || run.trim_end_matches(['.', ',']).ends_with('/')
        || run.starts_with('.') && word.len() > 1 && run.len() > word.len() + 1;
    let start = at + (run.len() - front.len());
    if let Some((one, two)) = word
        .split_once('/')
        .filter(|_| !code && !flag && is_choice(word))
    {
        out.push(word_of(one, false, start, start + one.len(), false));
        out.push(word_of(
            two,
            false,
            start + one.len() + 1,
            start + word.len(),
            false,
        ));
    } else if !word.is_empty() {
        let bare = word.trim_end_matches("'s").trim_end_matches("’s");
        let owns = bare.len() < word.len();
        let bare = elided(bare);
        let first = out
            .last()
            .is_none_or(|last| matches!(last.kind, Kind::Mark('.' | ':' | '!' | '?' | '\n')));
        let fact = flag || code || is_name(bare, first);
        out.push(word_of(bare, fact, start, start + word.len(), owns));
    }
    let behind = if word.is_empty() {
        run
    } else {
        &front[word.len()..]
    };
    if let Some(end) = behind.chars().find(|c| matches!(c, '.' | ':')) {
        out.push(mark(end, start + word.len()));
    }
}

fn word_of(word: &str, fact: bool, at: usize, end: usize, owns: bool) -> Word {
    let text = fold(word);
    // A word that says nothing is not a form of one that does.
    let neutral = TABLES.neutral.contains(&text) && !TABLES.groups.contains_key(&text);
    let group = if neutral { None } else { group_of(&text) };
    let kind = if let Some(number) = number_of(&text) {
        return Word {
            text: number.to_owned(),
            kind: Kind::Fact,
            group: None,
            at,
            end,
            owns,
            part: 0,
        };
    } else if fact && shouts(word) && !TABLES.neutral.contains(&text) {
        Kind::Fact
    } else if group.is_some() && !(fact && word.contains(['_', '/', '.', '=', ':'])) {
        if TABLES.stop.contains(&text) {
            Kind::Stop
        } else {
            Kind::Plain
        }
    } else if TABLES.stop.contains(&text) {
        Kind::Stop
    } else if fact && !(TABLES.neutral.contains(&text)) {
        Kind::Fact
    } else if TABLES.neutral.contains(&text) {
        Kind::Neutral
    } else if text.chars().count() < 2 && !text.chars().all(|c| c.is_ascii_digit()) {
        Kind::Stop
    } else if is_date(&text) {
        Kind::Fact
    } else {
        Kind::Plain
    };
    Word {
        text,
        kind,
        group,
        at,
        end,
        owns,
        part: 0,
    }
}

/// The group of a word, also of its inflections.
pub fn group_of(text: &str) -> Option<Group> {
    let groups = &TABLES.groups;
    if let Some(group) = groups.get(text) {
        return Some(*group);
    }
    // "umzubenennen"
    let parted = text.ends_with("en").then(|| text.replacen("zu", "", 1));
    if let Some(group) = parted.and_then(|text| groups.get(&text)) {
        return Some(*group);
    }
    [
        "ing", "ed", "es", "s", "d", "ation", "er", "ion", "en", "t", "r", "st", "ment",
    ]
    .iter()
    .find_map(|end| {
        let base = text
            .strip_suffix(end)
            .filter(|base| base.len() >= 3 || *end == "ing" && base.len() == 2)?;
        let mut chars = base.chars().rev();
        let doubled = chars.next() == chars.next();
        let group = groups.get(base).or_else(|| groups.get(&format!("{base}e")));
        let group = group.or_else(|| {
            doubled
                .then(|| groups.get(&base[..base.len() - 1]))
                .flatten()
        });
        group.copied()
    })
}

/// Takes what a script without spaces starts with; returns its bytes.
fn wide(rest: &str, at: usize, out: &mut Vec<Word>) -> usize {
    let tables = &*TABLES;
    let push = |text: &str, kind, group, out: &mut Vec<Word>| {
        out.push(Word {
            text: text.to_owned(),
            kind,
            group,
            at,
            end: at + text.len(),
            owns: false,
            part: 0,
        });
        text.len()
    };
    let hangul = |c: char| matches!(c, '\u{ac00}'..='\u{d7af}');
    let first = rest.chars().next().unwrap_or(' ');
    if hangul(first) {
        let len = rest.find(|c| !hangul(c)).unwrap_or(rest.len());
        let whole = &rest[..len];
        let found = tables
            .phrases
            .iter()
            .find(|(phrase, _)| whole.starts_with(phrase));
        if let Some((_, group)) = found {
            return push(whole, Kind::Plain, Some(*group), out);
        }
        let cut = PARTICLES
            .iter()
            .find_map(|end| whole.strip_suffix(end).filter(|base| !base.is_empty()));
        let base = cut.unwrap_or(whole);
        if PARTICLES.contains(&whole) {
            push(whole, Kind::Stop, None, out);
            return len;
        }
        let stop = [
            "주세요",
            "마세요",
            "줘",
            "달",
            "말",
            "싶어",
            "있",
            "없",
            "사용자",
            "않",
            "말",
            "안",
            "그",
            "이",
            "것",
            "수",
            "대신",
            "요청",
            "원",
            "절대",
            "주",
            "달라",
            "다음",
            "그리고",
            "앞",
            "지금",
            "해",
            "하",
        ];
        let kind = if stop.contains(&base) {
            Kind::Stop
        } else {
            Kind::Plain
        };
        push(base, kind, None, out);
        return len;
    }
    if let Some((phrase, group)) = tables
        .phrases
        .iter()
        .find(|(phrase, _)| rest.starts_with(phrase))
    {
        return push(phrase, Kind::Plain, Some(*group), out);
    }
    let kana = |c: char| matches!(c, '\u{30a0}'..='\u{30ff}');
    if kana(first) {
        let len = rest.find(|c| !kana(c)).unwrap_or(rest.len());
        let kind = if rest.starts_with("ユーザ") {
            Kind::Stop
        } else {
            Kind::Plain
        };
        return push(&rest[..len], kind, None, out);
    }
    let hiragana = matches!(first, '\u{3040}'..='\u{309f}');
    let kind = if hiragana || WIDE_STOP.contains(first) {
        Kind::Stop
    } else {
        Kind::Plain
    };
    push(&rest[..first.len_utf8()], kind, None, out)
}

/// Units, each with its short form.
const UNITS: [(&str, &str); 12] = [
    ("ms milliseconds millisecond millisekunden", "ms"),
    (
        "s sec secs second seconds sekunden secondes segundos secondi",
        "s",
    ),
    ("min mins minute minutes minuten minutos minuti", "min"),
    ("h hr hrs hour hours stunden heures horas ore", "h"),
    ("d day days tage jours dias giorni", "d"),
    ("kb kilobytes", "kb"),
    ("mb megabytes", "mb"),
    ("gb gigabytes", "gb"),
    ("px pixel pixels", "px"),
    ("% percent prozent", "%"),
    ("k", "k"),
    ("tb terabytes", "tb"),
];

/// Makes one value of a number and its unit: `300 ms` is `300ms`.
fn join_units(words: &mut Vec<Word>) {
    let number =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    for at in (1..words.len()).rev() {
        let text = &words[at].text;
        let unit = UNITS
            .iter()
            .find(|(names, _)| names.split(' ').any(|name| name == text));
        if let Some((_, unit)) = unit.filter(|_| number(&words[at - 1].text)) {
            let end = words[at].end;
            let before = &mut words[at - 1];
            before.text.push_str(unit);
            (before.end, before.kind, before.group) = (end, Kind::Fact, None);
            words.remove(at);
        }
    }
}

/// Makes one word of two that mean something together.
fn pair(words: &mut Vec<Word>) {
    for at in (1..words.len()).rev() {
        let (first, second) = (&words[at - 1].text, &words[at].text);
        let found = PAIRS
            .iter()
            .find(|(one, two, _)| first.starts_with(one) && second == two);
        if let Some((_, _, same)) = found {
            let (start, end) = (words[at - 1].at, words[at].end);
            words[at - 1] = word_of(same, false, start, end, false);
            words.remove(at);
        }
    }
}

impl Word {
    /// Says whether it carries meaning.
    pub fn counts(&self) -> bool {
        matches!(self.kind, Kind::Fact | Kind::Plain)
    }

    pub fn acts(&self) -> bool {
        self.group.is_some_and(|group| group.act) && self.counts()
    }

    pub fn is_high(&self) -> bool {
        self.group.is_some_and(|group| group.high) && self.counts()
    }

    /// Says whether two verbs undo each other.
    pub fn opposes(&self, other: &Word) -> bool {
        const PAIRS: [(&str, &str); 4] = [
            ("add", "remove"),
            ("keep", "remove"),
            ("enable", "disable"),
            ("increase", "decrease"),
        ];
        let pair = |one: &Word, two: &Word| {
            PAIRS
                .iter()
                .any(|(a, b)| one.is_group(a) && two.is_group(b))
        };
        pair(self, other) || pair(other, self)
    }

    pub fn is_mark(&self) -> bool {
        matches!(self.kind, Kind::Mark(_))
    }

    pub fn is_group(&self, name: &str) -> bool {
        self.group.is_some_and(|group| group.name == name)
    }

    /// Says whether two words are the same one, inflected, or mean the same.
    pub fn matches(&self, other: &Word) -> bool {
        if self.text == other.text {
            return true;
        }
        if let (Some(one), Some(two)) = (self.group, other.group) {
            return one.id == two.id || self.is_group("change") && is_changing(two);
        }
        let spelled = self.text.chars().all(char::is_alphabetic);
        if (self.kind != Kind::Fact || spelled) && inflects(&self.text, &other.text) {
            return true;
        }
        // A part of a name: "tests" of `checkpoint_tests`.
        let parts = || {
            other
                .text
                .split(['_', '-', '/', '.', '('])
                .filter(|part| part.len() > 2)
        };
        spelled
            && !self.acts()
            && self.text.len() > 2
            && parts().count() > 1
            && parts().any(|part| part == self.text || inflects(part, &self.text))
    }
}

/// Ways to change something that "change" also names.
fn is_changing(group: Group) -> bool {
    ["increase", "decrease", "rename", "replace", "use", "fix"].contains(&group.name)
}
