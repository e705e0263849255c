//! Forms of words: what a word looks like, and when two are the same one.

use super::words::group_of;

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

/// `CI` and `B` are names, `NOT` and `I` are words.
pub fn shouts(word: &str) -> bool {
    const EMPHATIC: [&str; 17] = [
        "I", "NOT", "NEVER", "DO", "DON'T", "ALL", "ONLY", "MUST", "NO", "ALWAYS", "AND", "OR",
        "THE", "IS", "ARE", "NICHT", "PAS",
    ];
    word.chars().all(|c| c.is_uppercase() && !is_wide(c))
        && !EMPHATIC.contains(&word)
        && group_of(&fold(word)).is_none()
}

/// Words for numbers, as digits.
pub fn number_of(text: &str) -> Option<&'static str> {
    const NUMBERS: [(&str, &str); 11] = [
        ("two zwei deux dos dois два две", "2"),
        ("three drei trois tres tre три", "3"),
        ("four vier quatre cuatro quatro quattro четыре", "4"),
        ("five funf cinq cinco cinque пять", "5"),
        ("six sechs seis шесть", "6"),
        ("seven sieben sept siete sete sette семь", "7"),
        ("eight acht huit ocho oito otto восемь", "8"),
        ("nine neun neuf nueve nove девять", "9"),
        ("ten zehn dix diez dez dieci десять", "10"),
        ("hundred hundert cent cien cem cento сто", "100"),
        ("thousand tausend mille mil тысяча", "1000"),
    ];
    let found = NUMBERS
        .iter()
        .find(|(words, _)| words.split(' ').any(|word| word == text));
    found.map(|(_, digits)| *digits)
}

/// Days and months: another one is another promise.
pub fn is_date(text: &str) -> bool {
    const DAYS: &str = "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december today tomorrow yesterday tonight weekend montag dienstag mittwoch donnerstag freitag samstag sonntag heute morgen gestern lundi mardi mercredi jeudi vendredi samedi dimanche demain hier aujourd'hui lunes martes miercoles jueves viernes sabado domingo hoy manana ayer segunda terca quarta quinta sexta hoje amanha ontem lunedi martedi mercoledi giovedi venerdi domani ieri oggi понедельник вторник среда четверг пятница суббота воскресенье сегодня завтра вчера";
    DAYS.split(' ').any(|day| day == text)
}

/// Small letters without accents.
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
    // Who does something is not the doing: a logger, logging.
    let doer = |rest: &str| ["er", "ers", "or", "ors"].contains(&rest);
    if doer(one) && !two.is_empty() && !doer(two) || doer(two) && !one.is_empty() && !doer(one) {
        return false;
    }
    let ends = |rest: &str| rest.is_empty() || ending(rest, shared);
    ends(one) && ends(two)
}

fn ending(rest: &str, shared: usize) -> bool {
    const SHORT: &str =
        "s es ed d ing ped ping bed bing med ming ned ning ted ting ged ging ded ding";
    const LONG: &str = "e er ers r n en ns em t te ten st ion ions ation ations ment ments ly y ies ied al ally ity able or ors ive ted ting ning med ming ped ping led ling red ring bed bing ding ded a o i as os an is am ar ir re ra ro ado ada ido ida ato ata ando endo ant ants ent ez ons es ee ees ung ungen end ende lich e's ize ise ized ised izing ising se ze sed zed sing zing sation zation ation's que sch ig ige igen";
    let cyrillic = rest.chars().all(|c| matches!(c, 'а'..='я'));
    let len = rest.chars().count();
    SHORT.split(' ').any(|end| end == rest)
        || cyrillic && (len <= 2 || shared >= 4 && len <= 4)
        || shared >= 4 && LONG.split(' ').any(|end| end == rest)
}

/// Scripts that are compared by characters.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '々')
}

/// `rewind/resume`: two words, no path.
pub fn is_choice(word: &str) -> bool {
    let parts: Vec<&str> = word.split('/').collect();
    parts.len() == 2
        && parts.iter().all(|part| {
            part.len() > 1 && part.chars().all(|c| c.is_alphabetic() && c.is_lowercase())
        })
}

/// `l'utilisateur` without its article.
pub fn elided(word: &str) -> &str {
    let at = word.find(['\'', '’']);
    let Some(at) = at else { return word };
    let short = [
        "l", "d", "qu", "c", "j", "n", "s", "m", "t", "dell", "all", "nell", "un", "dall", "sull",
    ];
    let rest = word[at..].trim_start_matches(['\'', '’']);
    match short.contains(&&*word[..at].to_lowercase()) && rest.chars().count() > 1 {
        true => rest,
        false => word,
    }
}
