//! Forms of words: names by their spelling, folding, inflection.

use super::tables::{DATES, ELIDED_ARTICLES, EMPHATIC, LONG_ENDINGS, NUMBERS, SHORT_ENDINGS};
use super::words::meaning_of;

/// Says whether a word is a name, number, path or value by its form.
pub fn is_name(word: &str, first: bool) -> bool {
    let mut chars = word.chars();
    let mut before = chars.next().unwrap_or(' ');
    let capital = before.is_uppercase();
    let (mut camel, mut inner) = (false, before.is_ascii_digit() || before == '$');
    let mut small = before.is_lowercase();
    for c in chars {
        camel |= before.is_lowercase() && c.is_uppercase();
        inner |= c.is_ascii_digit() || matches!(c, '_' | '/' | '@' | '\\' | '=' | '.' | ':' | '+');
        small |= c.is_lowercase();
        before = c;
    }
    let shout = capital && !small && word.chars().filter(|c| c.is_alphabetic()).count() > 1;
    camel || inner || shout || capital && !first
}

/// Says whether a word in capitals is a name: `CI` and `B` are, `NOT` and `I` are words.
pub fn is_acronym(word: &str) -> bool {
    word.chars().all(|c| c.is_uppercase() && !is_wide(c))
        && !EMPHATIC.has(word)
        && meaning_of(&fold(word)).is_none()
}

/// Returns the digits of a word for a number.
pub fn number_of(text: &str) -> Option<&'static str> {
    NUMBERS.get(text).copied()
}

/// Says whether a word names a day or a month.
pub fn is_date(text: &str) -> bool {
    DATES.has(text)
}

/// Returns a text in small letters without accents.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = match c {
            'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' => 'a',
            'é' | 'è' | 'ê' | 'ë' => 'e',
            'í' | 'ì' | 'î' | 'ï' => 'i',
            'ó' | 'ò' | 'ô' | 'ö' | 'õ' => 'o',
            'ú' | 'ù' | 'û' | 'ü' => 'u',
            'ç' => 'c',
            'ñ' => 'n',
            'ё' => 'е',
            'ß' => {
                out.push('s');
                's'
            }
            '’' | '‘' => '\'',
            '*' | '`' => continue,
            c => c,
        };
        out.push(c);
    }
    out
}

/// Says whether two words differ by their endings alone.
pub fn inflects(one: &str, two: &str) -> bool {
    let shared = one.chars().zip(two.chars()).take_while(|(a, b)| a == b);
    let (shared, bytes) = shared.fold((0, 0), |(n, bytes), (c, _)| (n + 1, bytes + c.len_utf8()));
    if shared < 3 {
        return false;
    }
    let (one, two) = (&one[bytes..], &two[bytes..]);
    // An agent is not its action: a logger, logging.
    let is_agent = |rest: &str| ["er", "ers", "or", "ors"].contains(&rest);
    let is_action = |rest: &str| !rest.is_empty() && !is_agent(rest);
    if is_agent(one) && is_action(two) || is_agent(two) && is_action(one) {
        return false;
    }
    let ends = |rest: &str| rest.is_empty() || is_ending(rest, shared);
    ends(one) && ends(two)
}

fn is_ending(rest: &str, shared: usize) -> bool {
    let is_cyrillic = rest.chars().all(|c| matches!(c, 'а'..='я'));
    let len = rest.chars().count();
    SHORT_ENDINGS.has(rest)
        || is_cyrillic && (len <= 2 || shared >= 4 && len <= 4)
        || shared >= 4 && LONG_ENDINGS.has(rest)
}

/// Says whether a character belongs to a script that is compared by characters.
pub fn is_wide(c: char) -> bool {
    crate::sentence::is_wide(c) || c == '々'
}

/// Says whether a word is two alternatives and no path: `rewind/resume`.
pub fn is_choice(word: &str) -> bool {
    let parts: Vec<&str> = word.split('/').collect();
    parts.len() == 2
        && parts.iter().all(|part| {
            part.len() > 1 && part.chars().all(|c| c.is_alphabetic() && c.is_lowercase())
        })
}

/// Returns a word without an elided article: `utilisateur` of `l'utilisateur`.
pub fn without_article(word: &str) -> &str {
    let Some((article, rest)) = word.split_once(['\'', '’']) else {
        return word;
    };
    let rest = rest.trim_start_matches(['\'', '’']);
    if ELIDED_ARTICLES.has(&article.to_lowercase()) && rest.chars().count() > 1 {
        rest
    } else {
        word
    }
}
