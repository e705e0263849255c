//! Words that every text of a language has and that say nothing about what it is about.

use std::collections::HashSet;
use std::sync::OnceLock;

/// Stop words of at least three letters, a line or two for each language.
const STOP_WORDS: &[&str] = &[
    // English
    "the and for are but not you your yours all any can could did does doing done don doesn didn isn wasn aren weren won wouldn couldn shouldn hasn haven hadn \
     had has have having her here hers him his how into its itself just let lets may might more most must shall should than that thats \
     their them then there these they this those too very was were what when where which while who whom why will with would about above \
     after again also been before being below between both came come each even ever few from get gets got his now off one only other our \
     ours out over own same she some such through under until upon use used using via want well yes yet per",
    // German
    "aber alle allem allen aller alles als also auch auf aus bei beim bin bis bist damit dann das dass dein deine dem den denn der des \
     deshalb die dies diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines für hat hatte hier ich ihm ihn \
     ihnen ihr ihre ihrem ihren ihrer immer ist jetzt kann kein keine keinen man mein meine mich mir mit muss nach nicht noch nun nur oder \
     ohne sehr sein seine sich sie sind soll sonst über und uns unser unter vom von vor war waren was weil wenn werden wie wieder wir wird \
     wurde zum zur zwischen",
    // French
    "alors aux avec avoir avait car ces cet cette ceux chez comme dans depuis des donc dont elle elles est été être eux faire fait ici ils \
     les leur leurs lui mais mes mon même nos notre nous ont par pas peut plus pour qui que quoi sans sera ses son sont sous sur tes toi \
     ton tous tout toute très une votre vos vous était",
    // Spanish
    "algo ante antes aquí como con contra cual cuando del desde donde dos ella ellas ellos entre era esa ese eso esta está este esto \
     estos fue fueron hace hacer han hasta hay las les los más mis mucho muy nada nos nosotros otra otro para pero poco por porque puede \
     que quien sea ser será sin sobre son sus también tanto tiene todo todos una uno unos usted",
    // Portuguese
    "ainda aos aquele até com como das dela dele depois dos ela eles essa esse esta este foi foram isso isto mais mas mesmo meu minha \
     muito não nas nem nos num numa onde para pela pelo pode por porque quando que quem são sem seu ser seus sua também tem uma você",
    // Italian
    "agli alla alle anche ancora avere aveva che chi cioè come con cosa cui dal dalla dalle degli dei del della delle dello deve dopo \
     dove era essere fra gli hai hanno loro mia mio molto nel nella nelle noi non nostro ogni per perché però più può quale quando \
     quella quello questa queste questi questo senza sia sono sta stato sua sui sul sulla suo tra tutti tutto una uno voi",
    // Russian
    "без был была были было быть вам вас ведь весь вот все всё всех где даже для его ему если есть ещё еще или именно как какая какой \
     когда кто либо меня мне можно мой надо нам нас наш него нее неё нельзя нет них ничего ним она они оно очень под после потом потому \
     почти при про раз так также такой там тебя тем тогда того тоже только том тот три тут уже чего чем что чтобы эта эти это этого этой этот",
];

/// Says whether a word, in small letters, is one of them.
pub fn is_stop_word(word: &str) -> bool {
    static WORDS: OnceLock<HashSet<&str>> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        let lines = STOP_WORDS.iter();
        lines.flat_map(|line| line.split_whitespace()).collect()
    });
    words.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_some() {
        for word in ["the", "nicht", "avec", "porque", "não", "della", "чтобы"] {
            assert!(is_stop_word(word), "{word}");
        }
        assert!(!is_stop_word("invoice"));
    }
}
