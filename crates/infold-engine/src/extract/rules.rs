//! Tells sentences that rule something (what must, must not, or stays) from others, in ten languages.

use super::sentence::is_wide;

/// How firmly a sentence rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// It rules nothing.
    None,
    /// It says what somebody wants or prefers.
    Wish,
    /// It says what must or must not be.
    Demand,
}

/// Says how firmly a sentence rules something.
pub fn rule(sentence: &str) -> Rule {
    let small = sentence.to_lowercase().replace('’', "'");
    if sentence.chars().any(is_wide) {
        return by_signs(&small);
    }
    let words: Vec<&str> = small
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .collect();
    let mut best = Rule::None;
    for at in 0..words.len() {
        if DEMANDS.contains(&words[at])
            || forbids(&words, at)
            || PHRASES.iter().any(|phrase| starts(&words[at..], phrase))
        {
            return Rule::Demand;
        }
        if WISHES.contains(&words[at]) {
            best = Rule::Wish;
        }
    }
    best
}

/// Says whether a sentence takes back or changes what was said before.
pub fn corrects(sentence: &str) -> bool {
    let small = sentence.to_lowercase().replace('’', "'");
    if sentence.chars().any(is_wide) {
        return CORRECTING_SIGNS.iter().any(|sign| small.contains(sign));
    }
    let words = small.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let padded = format!(" {} ", words.join(" "));
    CORRECTIONS.iter().any(|phrase| padded.contains(phrase))
}

/// Words that take something back, between spaces.
const CORRECTIONS: [&str; 49] = [
    " sorry ",
    " i was wrong ",
    " scratch ",
    " forget ",
    " correction ",
    " make it ",
    " make that ",
    " change of plan ",
    " changed my mind ",
    " no longer ",
    " not anymore ",
    " instead of ",
    " after all ",
    " from now on ",
    " take that back ",
    " i take back ",
    " rather than ",
    " is now ",
    " are now ",
    " not earlier ",
    " not what i said ",
    " moved to ",
    " raise it ",
    " lower it ",
    " ich habe mich vertan ",
    " stattdessen ",
    " nicht mehr ",
    " doch nicht ",
    " ab jetzt ",
    " ab sofort ",
    " vergiss ",
    " korrektur ",
    " je me suis trompé ",
    " finalement ",
    " désormais ",
    " plutôt que ",
    " me equivoqué ",
    " en lugar de ",
    " a partir de ahora ",
    " ya no ",
    " enganei ",
    " afinal ",
    " em vez de ",
    " mi sono sbagliato ",
    " invece ",
    " d'ora in poi ",
    " ошибся ",
    " теперь ",
    " вместо ",
];
/// The same in scripts without spaces.
const CORRECTING_SIGNS: [&str; 14] = [
    "改成",
    "改为",
    "改到",
    "不是",
    "我说错",
    "说错了",
    "更正",
    "換成",
    "やっぱり",
    "間違え",
    "訂正",
    "변경",
    "아니라",
    "정정",
];

/// Words that rule wherever they stand.
const DEMANDS: [&str; 62] = [
    // English
    "never",
    "always",
    "must",
    "mustn't",
    "forbidden",
    "prohibited",
    "mandatory",
    "required",
    "ensure",
    "avoid",
    "unless",
    "except",
    "strictly",
    // German
    "nie",
    "niemals",
    "immer",
    "muss",
    "müssen",
    "musst",
    "darf",
    "dürfen",
    "verboten",
    "stets",
    "unbedingt",
    "keinesfalls",
    // French
    "jamais",
    "toujours",
    "doit",
    "doivent",
    "devez",
    "interdit",
    "uniquement",
    "impérativement",
    "obligatoire",
    // Spanish
    "nunca",
    "siempre",
    "debe",
    "deben",
    "debes",
    "prohibido",
    "únicamente",
    "obligatorio",
    // Portuguese
    "sempre",
    "deve",
    "devem",
    "proibido",
    "somente",
    "obrigatório",
    // Italian
    "mai",
    "devono",
    "vietato",
    "soltanto",
    "bisogna",
    "obbligatorio",
    // Russian
    "никогда",
    "всегда",
    "должен",
    "должна",
    "должны",
    "должно",
    "нельзя",
    "запрещено",
];

/// Words that say what is wanted.
const WISHES: [&str; 44] = [
    "only",
    "should",
    "shouldn't",
    "prefer",
    "want",
    "wants",
    "need",
    "needs",
    "keep",
    "stays",
    "instead",
    "without",
    "rather",
    "let's",
    "limit",
    "maximum",
    "minimum",
    "nur",
    "soll",
    "sollen",
    "sollte",
    "möchte",
    "ohne",
    "statt",
    "mindestens",
    "höchstens",
    "seulement",
    "sans",
    "faut",
    "veux",
    "solo",
    "sólo",
    "quiero",
    "sin",
    "apenas",
    "quero",
    "sem",
    "senza",
    "voglio",
    "только",
    "нужно",
    "надо",
    "хочу",
    "обязательно",
];

/// Several words that rule together.
const PHRASES: [&[&str]; 27] = [
    &["make", "sure"],
    &["not", "allowed"],
    &["no", "longer"],
    &["from", "now", "on"],
    &["under", "no", "circumstances"],
    &["at", "most"],
    &["at", "least"],
    &["no", "more", "than"],
    &["no", "less", "than"],
    &["stick", "to"],
    &["leave", "it"],
    &["use", "only"],
    &["only", "use"],
    &["instead", "of"],
    &["ab", "jetzt"],
    &["auf", "keinen", "fall"],
    &["bitte", "nicht"],
    &["bitte", "keine"],
    &["à", "partir", "de", "maintenant"],
    &["il", "faut"],
    &["hay", "que"],
    &["tiene", "que"],
    &["a", "partir", "de", "ahora"],
    &["tem", "que"],
    &["d'ora", "in", "poi"],
    &["ни", "в", "коем", "случае"],
    &["с", "этого", "момента"],
];

/// Says whether an order not to do something begins here: "don't touch it", not "I don't see it".
fn forbids(words: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| words[at]);
    let says_of_somebody = before.is_some_and(|word| {
        [
            "i", "we", "they", "he", "she", "it", "you", "that", "this", "which", "these", "those",
            "why", "who", "and", "if",
        ]
        .contains(&word)
            && word != "and"
    });
    match words[at] {
        "don't" | "dont" => {
            !says_of_somebody
                || matches!(
                    words.get(at + 1),
                    Some(&("want" | "use" | "ship" | "allow" | "support" | "touch" | "need"))
                )
        }
        "do" => words.get(at + 1) == Some(&"not") && !says_of_somebody,
        "no" => {
            at == 0
                && words.len() > 2
                && !matches!(
                    words[1],
                    "i" | "it"
                        | "the"
                        | "that"
                        | "this"
                        | "problem"
                        | "wait"
                        | "idea"
                        | "need"
                        | "worries"
                        | "we"
                        | "you"
                )
        }
        // German, Spanish, Portuguese, Italian, Russian orders begin with the negation.
        "kein" | "keine" | "keinen" => true,
        "nicht" => at + 1 == words.len() || words.last() == Some(&"nicht"),
        "не" => at == 0 || matches!(before, Some("пожалуйста" | "и" | "но")),
        "não" | "non" => at == 0 || matches!(before, Some("e" | "ma" | "mas")),
        "ne" => {
            words
                .get(at + 2)
                .is_some_and(|word| matches!(*word, "pas" | "plus" | "jamais"))
                && !before.is_some_and(|word| {
                    matches!(word, "je" | "il" | "elle" | "nous" | "vous" | "on" | "ça")
                })
        }
        _ => false,
    }
}

fn starts(words: &[&str], phrase: &[&str]) -> bool {
    words.len() >= phrase.len() && words[..phrase.len()] == *phrase
}

/// Scripts without spaces, and Korean, whose words take endings.
fn by_signs(small: &str) -> Rule {
    const DEMANDS: [&str; 42] = [
        "不要",
        "必须",
        "必須",
        "禁止",
        "只能",
        "不能",
        "不得",
        "务必",
        "一定要",
        "永远",
        "绝不",
        "请勿",
        "不可",
        "别再",
        "至少",
        "最多",
        "不准",
        "切勿",
        "必ず",
        "絶対",
        "てはいけ",
        "ではいけ",
        "ちゃだめ",
        "ないでください",
        "しないで",
        "なければならな",
        "べき",
        "常に",
        "決して",
        "厳禁",
        "반드시",
        "절대",
        "하지 마",
        "하지마",
        "지 마",
        "금지",
        "항상",
        "해야",
        "안 됩니다",
        "안 돼",
        "마세요",
        "필수",
    ];
    const WISHES: [&str; 18] = [
        "应该",
        "希望",
        "想要",
        "需要",
        "只要",
        "改成",
        "改为",
        "而不是",
        "だけ",
        "のみ",
        "してほしい",
        "ください",
        "代わりに",
        "だけ使",
        "만 ",
        "대신",
        "싶",
        "주세요",
    ];
    if DEMANDS.iter().any(|sign| small.contains(sign)) {
        Rule::Demand
    } else if WISHES.iter().any(|sign| small.contains(sign)) {
        Rule::Wish
    } else {
        Rule::None
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
            assert_eq!(rule(demand), Rule::Demand, "{demand}");
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
            assert_ne!(rule(plain), Rule::Demand, "{plain}");
        }
        assert_eq!(rule("I prefer the second layout"), Rule::Wish);
    }
}
