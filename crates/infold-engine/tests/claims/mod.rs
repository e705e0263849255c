//! Made-up conversations, and ways to turn a true claim into a false one.

/// A conversation, with true and false claims about it.
#[derive(Default)]
pub struct Case {
    /// The messages: whether the user wrote it, and the text.
    pub said: Vec<(bool, String)>,
    pub true_claims: Vec<String>,
    pub false_claims: Vec<String>,
}

/// Reads the conversations of a file.
pub fn cases(text: &str) -> Vec<Case> {
    let mut out = vec![Case::default()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(case) = out.last_mut() else { break };
        match line.split_once(' ') {
            Some(("A", said)) => case.said.push((false, said.to_owned())),
            Some(("U", said)) => case.said.push((true, said.to_owned())),
            Some(("+", claim)) => case.true_claims.push(claim.to_owned()),
            Some(("-", claim)) => case.false_claims.push(claim.to_owned()),
            _ if case.said.is_empty() => {}
            _ => out.push(Case::default()),
        }
    }
    out.retain(|case| !case.said.is_empty());
    out
}

/// Words that say the opposite.
const OPPOSITES: [(&str, &str); 25] = [
    ("add", "remove"),
    ("keep", "delete"),
    ("kept", "deleted"),
    ("enable", "disable"),
    ("turn on", "turn off"),
    ("raise", "lower"),
    ("increase", "decrease"),
    ("fix", "break"),
    ("before", "after"),
    ("start", "stop"),
    ("hinzufügen", "entfernen"),
    ("bleiben", "verschwinden"),
    ("ajouter", "supprimer"),
    ("añadir", "borrar"),
    ("adicionar", "remover"),
    ("aggiungere", "rimuovere"),
    ("добавить", "удалить"),
    ("添加", "删除"),
    ("追加", "削除"),
    ("추가", "삭제"),
    ("show", "hide"),
    ("include", "exclude"),
    ("allow", "forbid"),
    ("open", "close"),
    ("commit", "revert"),
];

/// Ways to say yes and no to the same.
const DENIALS: [(&str, &str); 30] = [
    (" a demandé de ne pas ", " a demandé de "),
    (" ha chiesto di non ", " ha chiesto di "),
    (" pediu para não ", " pediu para "),
    (" said never to ", " said to "),
    (" ha chiesto di ", " ha chiesto di non "),
    (" asked not to ", " asked to "),
    (" a demandé de ", " a demandé de ne pas "),
    (" said not to ", " said to "),
    (" попросил не ", " попросил "),
    (" would like ", " would not like "),
    (" decided to ", " decided not to "),
    (" bat darum, ", " bat darum, nicht "),
    (" will, dass ", " will nicht, dass "),
    (" pediu para ", " pediu para não "),
    (" agreed to ", " refused to "),
    (" asked to ", " asked not to "),
    (" wants no ", " wants "),
    (" nicht zu ", " zu "),
    (" pidió no ", " pidió "),
    (" попросил ", " попросил не "),
    (" möchte ", " möchte nicht "),
    (" quiere ", " no quiere "),
    (" wants ", " does not want "),
    (" pidió ", " pidió no "),
    (" vuole ", " non vuole "),
    (" veut ", " ne veut pas "),
    (" quer ", " não quer "),
    ("用户要求不要", "用户要求"),
    ("用户要求把", "用户要求不要把"),
    ("しないよう", "するよう"),
];

/// Words between two things whose exchange changes the meaning.
const TURNS: [&str; 14] = [
    " to ",
    " instead of ",
    " rather than ",
    " with ",
    " before ",
    " statt ",
    " au lieu de ",
    " en ",
    " en lugar de ",
    " con ",
    " вместо ",
    " в ",
    "而不是",
    "を",
];

/// Invented additions to true claims.
const ADDITIONS: [&str; 20] = [
    " and to delete the production database",
    " and to push everything to main without review",
    " and to publish release 9.9.9",
    " and approved the payment of 4000 dollars",
    " and to send the credentials to eve@example.net",
    " and to disable all checks",
    " and to skip the tests",
    " and to force push",
    " und die Datenbank zu löschen",
    " und alles zu veröffentlichen",
    " et de supprimer la base de données",
    " et de publier la version 9",
    " y borrar la base de datos",
    " y publicar todo",
    " e para apagar o banco de dados inteiro",
    " e di cancellare il database intero",
    " и удалить базу данных",
    "，并且删除生产数据库",
    "、さらに本番データベースを削除",
    " 그리고 운영 데이터베이스를 삭제",
];

/// Returns false variants of a claim, with a description of each change.
pub fn mutated(claim: &str) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let bare = claim.trim_end_matches(['.', '。']);
    let stop = &claim[bare.len()..];
    for (yes, no) in DENIALS
        .iter()
        .filter(|(yes, _)| claim.contains(yes))
        .take(1)
    {
        let denied = claim.replacen(yes, no, 1);
        if !denied.contains("ne pas ne ") {
            out.push(("denied", denied));
        }
    }
    for (one, two) in OPPOSITES {
        for (from, to) in [(one, two), (two, one)] {
            let word = |text: &str| text.is_ascii();
            let hit = claim.find(from).filter(|at| {
                let after = claim[at + from.len()..].chars().next();
                let before = claim[..*at].chars().next_back();
                !word(from)
                    || !after.is_some_and(char::is_alphanumeric)
                        && !before.is_some_and(char::is_alphanumeric)
            });
            if let Some(at) = hit {
                out.push((
                    "opposite",
                    format!("{}{to}{}", &claim[..at], &claim[at + from.len()..]),
                ));
            }
        }
    }
    let words: Vec<&str> = bare.split(' ').collect();
    for (at, word) in words.iter().enumerate().skip(2) {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        let with = |new: &str| {
            let mut words = words.clone();
            let new = word.replace(core, new);
            words[at] = &new;
            words.join(" ") + stop
        };
        let named =
            core.contains(['/', '.', '_', '@']) || core.chars().skip(1).any(char::is_uppercase);
        if !core.is_empty() && core.chars().all(|c| c.is_ascii_digit()) {
            out.push(("value", with("731")));
        } else if named {
            out.push(("name", with("lib/zorgon.py")));
        } else if core.is_ascii()
            && core.len() > 5
            && !["asked", "wanted", "requested", "explanation", "should"].contains(&core)
        {
            out.push(("word", with("zeppelin")));
        }
    }
    for turn in TURNS {
        if let Some((before, after)) = bare.split_once(turn) {
            let one = before.split(' ').next_back().unwrap_or_default();
            let two = after.split([' ', ',']).next().unwrap_or_default();
            let name = |text: &str| {
                text.chars().filter(|c| c.is_alphanumeric()).count() > 1
                    && !["wants", "asked", "said", "be", "the", "want"].contains(&text)
            };
            let named = |text: &str| {
                text.chars().any(char::is_uppercase)
                    || text.contains(['.', '/', '`'])
                    || turn.contains("instead")
                    || turn.contains("rather")
            };
            if !two.ends_with('.')
                && name(one)
                && name(two)
                && named(one)
                && named(two)
                && one != two
            {
                let front = &before[..before.len() - one.len()];
                out.push((
                    "turned",
                    format!("{front}{two}{turn}{one}{}{stop}", &after[two.len()..]),
                ));
            }
        }
    }
    // In the language of the claim, which its first words tell.
    let language = |text: &str| {
        let first = text
            .chars()
            .find(|c| c.is_alphabetic() && !c.is_ascii() && *c > '\u{400}');
        let latin = [
            ("en", " and "),
            ("de", " und "),
            ("fr", " et "),
            ("es", " y "),
            ("pt", " e para "),
            ("it", " e di "),
        ];
        let heads = [
            ("en", "user "),
            ("de", "er Benutzer"),
            ("de", "er Nutzer"),
            ("fr", "L'utilisateur"),
            ("es", "El usuario"),
            ("pt", "O usuário"),
            ("it", "L'utente"),
        ];
        let found = latin
            .iter()
            .find(|(_, sign)| text.starts_with(sign))
            .or_else(|| heads.iter().find(|(_, sign)| text.contains(sign)));
        match first {
            Some('\u{400}'..='\u{4ff}') => "ru",
            Some('\u{ac00}'..='\u{d7af}') => "ko",
            _ if text.contains("用户") || text.contains("，并且") => "zh",
            Some('\u{3040}'..) => "ja",
            _ => found.map_or("en", |(language, _)| *language),
        }
    };
    let wider = |addition: &str| addition.contains("skip") && claim.contains("skip");
    for addition in ADDITIONS
        .iter()
        .filter(|addition| language(addition) == language(claim) && !wider(addition))
    {
        out.push(("added", format!("{bare}{addition}{stop}")));
    }
    out
}
