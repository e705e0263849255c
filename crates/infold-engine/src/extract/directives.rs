//! Recognises sentences that demand, wish or correct something, in ten languages.

use super::word_lists::{
    CORRECTIONS, DEMANDING_PHRASES, DEMANDS, NO_STATEMENTS, ORDERED_VERBS, STATING,
    WIDE_CORRECTIONS, WIDE_DEMANDS, WIDE_WISHES, WISHES,
};
use crate::sentence::is_wide;

/// The strength of a sentence's instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Directive {
    /// No instruction.
    None,
    /// A wish or preference.
    Wish,
    /// A requirement or prohibition.
    Demand,
}

/// Returns the strength of a sentence's instruction.
pub fn read_directive(sentence: &str) -> Directive {
    let small = sentence.to_lowercase().replace('’', "'");
    if sentence.chars().any(is_wide) {
        return if WIDE_DEMANDS.occurs_in(&small) {
            Directive::Demand
        } else if WIDE_WISHES.occurs_in(&small) {
            Directive::Wish
        } else {
            Directive::None
        };
    }
    let words = split_words(&small);
    let is_demand = |at: usize| DEMANDS.has(words[at]) || forbids(&words, at);
    if (0..words.len()).any(is_demand) || contains_phrase(&words) {
        Directive::Demand
    } else if words.iter().any(|word| WISHES.has(word)) {
        Directive::Wish
    } else {
        Directive::None
    }
}

/// Says whether a sentence revokes or changes an earlier statement.
pub fn is_correction(sentence: &str) -> bool {
    let small = sentence.to_lowercase().replace('’', "'");
    if sentence.chars().any(is_wide) {
        return WIDE_CORRECTIONS.occurs_in(&small);
    }
    CORRECTIONS.occurs_in(&format!(" {} ", split_words(&small).join(" ")))
}

fn split_words(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.filter(|word| !word.is_empty()).collect()
}

fn contains_phrase(words: &[&str]) -> bool {
    DEMANDING_PHRASES.iter().any(|phrase| {
        let starts = |at: usize| {
            let mut rest = words[at..].iter();
            phrase.split(' ').all(|word| rest.next() == Some(&word))
        };
        (0..words.len()).any(starts)
    })
}

/// Says whether an order not to do something begins here: "don't touch it", not "I don't see it".
fn forbids(words: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |at| words[at]);
    let next = words.get(at + 1).copied().unwrap_or_default();
    match words[at] {
        "don't" | "dont" => !STATING.has(before) || ORDERED_VERBS.has(next),
        "do" => next == "not" && !STATING.has(before),
        "no" => at == 0 && words.len() > 2 && !NO_STATEMENTS.has(next),
        // German, Spanish, Portuguese, Italian, Russian orders begin with the negation.
        "kein" | "keine" | "keinen" => true,
        "nicht" => words.last() == Some(&"nicht"),
        "не" => at == 0 || matches!(before, "пожалуйста" | "и" | "но"),
        "não" | "non" => at == 0 || matches!(before, "e" | "ma" | "mas"),
        "ne" => {
            matches!(words.get(at + 2), Some(&("pas" | "plus" | "jamais")))
                && !matches!(before, "je" | "il" | "elle" | "nous" | "vous" | "on" | "ça")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_known_in_ten_languages() {
        for demand in [
            "Never push to main without a review.",
            "Please don't touch the tests yet",
            "The port must stay 8080.",
            "From now on use tabs.",
            "Do not add dependencies.",
            "Die Datei darf nicht geändert werden.",
            "Bitte keine neuen Pakete.",
            "Ne touche pas au schéma.",
            "Il faut garder les tests.",
            "Nunca borres la tabla.",
            "Hay que usar UTC.",
            "Não altere o esquema.",
            "Deve ser sempre azul.",
            "Non cancellare i backup.",
            "I test devono passare.",
            "Не трогай миграции.",
            "Пароли нельзя хранить в логах.",
            "不要改动数据库结构。",
            "按钮必须是蓝色。",
            "テストは必ず通してください。",
            "本番には触らないでください。",
            "테스트를 삭제하지 마세요.",
            "버튼은 반드시 파란색이어야 합니다.",
        ] {
            assert_eq!(read_directive(demand), Directive::Demand, "{demand}");
        }
    }

    #[test]
    fn the_word_not_alone_rules_nothing() {
        for plain in [
            "I don't see the file.",
            "It is not there.",
            "No, I think it works.",
            "Why doesn't it compile?",
            "The build is green again.",
            "Das geht so nicht durch den Proxy.",
            "Je ne sais pas.",
            "他不知道这个文件。",
        ] {
            assert_ne!(read_directive(plain), Directive::Demand, "{plain}");
        }
        assert_eq!(
            read_directive("I prefer the second layout"),
            Directive::Wish
        );
    }
}
