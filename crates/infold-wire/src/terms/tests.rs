use proptest::prelude::*;

use super::*;

fn terms(text: &str) -> DocumentTerms {
    DocumentTerms::of(text)
}

#[test]
fn identifiers_and_paths_are_split_and_kept_whole() {
    let found = terms("getUserName in src/http_server.rs, HTTPServer v2.3");
    assert_eq!(
        found.words,
        "get user name in src http server rs http server v2 3"
    );
    assert_eq!(
        found.wholes,
        "getusername http_server src/http_server.rs http_server.rs httpserver v2.3"
    );
}

#[test]
fn plurals_of_acronyms_and_numbers_with_separators_are_found() {
    let found = terms("the APIs, URLs and CRDTs of getURLs cost 155,000 or 1,194; 12,34");
    assert!(
        found
            .words
            .starts_with("the apis urls and crdts of get urls")
    );
    let stems: Vec<&str> = found.stems.split(' ').collect();
    for stem in ["api", "url", "crdt"] {
        assert!(stems.contains(&stem), "{stem}: {stems:?}");
    }
    assert_eq!(found.wholes, "geturls 155000 1194");
    assert!(
        terms("HTTPServer isSet")
            .words
            .ends_with("http server is set")
    );
}

#[test]
fn scripts_without_spaces_become_pairs() {
    assert_eq!(terms("検索する").words, "検索 索す する る");
    assert_eq!(terms("猫").words, "猫");
    assert_eq!(terms("API検索v2").words, "api 検索 索 v2");
}

#[test]
fn letters_are_folded() {
    assert_eq!(
        terms("Größe ÉCOLE naïve Ｆｕｌｌ e\u{301}").words,
        "grosse ecole naive full e"
    );
    assert_eq!(
        terms("Caroline's don't l'homme 🚀 c++").words,
        "caroline don l homme 🚀 c"
    );
    assert_eq!(terms("c++ C#").wholes, "c++ c#");
}

#[test]
fn stems_follow_the_language() {
    assert_eq!(
        terms("the migrations were running and it went well").stems,
        "migrat be run go"
    );
    let german = terms("die Verbindungen sind nicht mit den Servern verbunden").stems;
    assert!(german.contains("verbind"), "{german}");
}

#[test]
fn a_query_has_words_phrases_prefixes_and_exclusions() {
    let query = Query::parse(r#"what about the "login timeout" -flaky retr* userName"#);
    assert_eq!(
        query.words(),
        ["login", "timeout", "retr*", "username"],
        "without stop words"
    );
    assert_eq!(query.phrases, [["login", "timeout"]]);
    assert_eq!(query.excluded, [["flaky"]]);
    assert_eq!(Query::parse("to be or not to be").words().len(), 4);
    assert_eq!(Query::parse("-v").words(), ["v"]);
    assert!(Query::parse("\"'*()-").is_empty());
    let single = Query::parse("猫");
    assert!(single.terms[0].forms[0].is_prefix);
    assert_eq!(Query::parse("検索機能").words(), ["検索", "索機", "機能"]);
}

proptest! {
    /// Every text is valid as a query and as a document.
    #[test]
    fn every_text_is_a_query(text in any::<String>()) {
        Query::parse(&text);
        let found = terms(&text);
        prop_assert!(!found.words.contains("  "));
    }

    /// A word typed as it is written in a message is among the message's terms.
    #[test]
    fn every_word_of_a_text_is_found(words in prop::collection::vec("[a-zA-Zäöüß0-9_./:-]{1,12}|[ぁ-ん一-龥]{1,5}|[🚀✅😀]", 1..8), pick in any::<prop::sample::Index>()) {
        let text = words.join(" ");
        let found = terms(&text);
        let all: std::collections::HashSet<&str> =
            found.words.split(' ').chain(found.wholes.split(' ')).collect();
        let query = Query::parse(&format!("\"{}\"", pick.get(&words)));
        for term in &query.terms {
            let form = &term.forms[0];
            let is_found = all.iter().any(|one| if form.is_prefix { one.starts_with(&form.term) } else { *one == form.term });
            prop_assert!(is_found, "{} in {:?}", form.term, all);
        }
    }
}
