//! Classes of characters, and the normal form of letters in terms.

/// Says whether a character is written without spaces between words: Chinese, Japanese, Korean, Thai and the like.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}'      // Thai, Lao
        | '\u{1000}'..='\u{109F}'    // Burmese
        | '\u{1780}'..='\u{17FF}'    // Khmer
        | '\u{1100}'..='\u{11FF}'    // Hangul letters
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}'   // Hiragana
        | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}'   // Katakana
        | '\u{3105}'..='\u{312F}' | '\u{3131}'..='\u{318E}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'   // Han
        | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}'   // Hangul
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}'    // half-width Katakana
        | '\u{20000}'..='\u{3FFFF}')
}

/// Says whether a character is part of a word that spaces separate from others.
pub fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    !is_unspaced(c) && (c.is_alphanumeric() || is_mark(c))
}

/// Says whether a character belongs to the letter before it.
pub fn is_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{064B}'..='\u{0652}'
        | '\u{093C}' | '\u{094D}' | '\u{09CD}' | '\u{0A4D}' | '\u{0ACD}' | '\u{0B4D}'
        | '\u{0BCD}' | '\u{0C4D}' | '\u{0CCD}' | '\u{0D4D}')
}

/// Says whether a character is a term by itself: an emoji or another symbol that people search for.
pub fn is_symbol(c: char) -> bool {
    matches!(c, '\u{00A3}' | '\u{00A5}' | '\u{00A7}' | '\u{00B0}' | '\u{20A0}'..='\u{20BF}'
        | '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1F3FA}' | '\u{1F400}'..='\u{1FAFF}')
}

/// Appends a letter in its form in terms: lower case, without accents.
pub fn push_folded(c: char, out: &mut String) {
    if c.is_ascii() {
        return out.push(c.to_ascii_lowercase());
    }
    if ('\u{FF01}'..='\u{FF5E}').contains(&c) {
        // Full-width forms of ASCII.
        let plain = char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c);
        return out.push(plain.to_ascii_lowercase());
    }
    for lower in c.to_lowercase() {
        match plain_letter(lower) {
            Some(plain) => out.push_str(plain),
            None if ('\u{0300}'..='\u{036F}').contains(&lower) => {}
            None => out.push(lower),
        }
    }
}

/// Returns a Latin letter without its accent.
fn plain_letter(c: char) -> Option<&'static str> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' | 'ạ' | 'ả' | 'ấ'..='ặ' => "a",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'ẹ'..='ệ' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | 'ỉ' | 'ị' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ơ' | 'ọ'..='ợ' => "o",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' | 'ụ'..='ự' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' | 'ỳ'..='ỹ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        'ё' => "е",
        _ => return None,
    })
}
