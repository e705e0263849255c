//! `infold search`, and `infold recall` and `infold folds` as people read them.

mod common;

use common::{Home, talk};
use insta::assert_snapshot;

const CHAT: &str = r#"{"role":"system","content":"You are careful."}
{"role":"user","content":"Fix the login, it times out in getUserName"}
{"role":"assistant","content":[{"type":"thinking","thinking":"where is it?","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"src/login_form.rs"}},{"type":"tool_use","id":"c2","name":"Write","input":{"file_path":"a.txt","content":"one\ntwo"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"fn login() {\n    todo!()\n}"},{"type":"tool_result","tool_use_id":"c2","content":"no space","is_error":true}]}
{"role":"assistant","content":"It is a stub; the timeout is 30 seconds."}
{"role":"user","content":"検索も 🚀"}
{"role":"assistant","content":"done"}
"#;

fn with_chat() -> Home {
    let home = Home::new();
    home.file("chat.jsonl", CHAT);
    home.file("summary.md", "login() was a stub.\n");
    home.tell(
        "task new --wire anthropic\ntask push T1 chat.jsonl\ncondense T1 3..4 --text summary.md",
    );
    home
}

#[test]
fn messages_are_found_and_marked() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        search getUserName
        search 'timeout -getUserName'
        search todo --hidden
        search login --tool read
        search 検
        search --exact 'login() {'
        search 'unheard of'
        search -v
        search '\"'
    "), @"");
}

#[test]
fn hits_are_objects_for_scripts() {
    let home = with_chat();
    let hits = home.objects("search todo");
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0]["seq"], 4);
    assert_eq!(
        (&hits[0]["role"], &hits[0]["hidden"]),
        (&"tool".into(), &true.into())
    );
    assert_eq!(hits[0]["place"], "folded");
    assert!(
        hits[0]["fold"]
            .as_str()
            .is_some_and(|fold| fold.starts_with('e'))
    );
    let snippet = hits[0]["snippet"].as_str().expect("a text");
    let mark = &hits[0]["marks"][0];
    let marked: String = snippet
        .chars()
        .skip(mark[0].as_u64().expect("a number") as usize)
        .take((mark[1].as_u64().expect("a number") - mark[0].as_u64().expect("a number")) as usize)
        .collect();
    assert_eq!(marked, "todo");
    assert!(home.objects("search login --role user --since 1h").len() == 1);
    assert!(home.objects("search login --until 2020-01-01").is_empty());
    assert_eq!(home.objects("search stub --task T1 --limit 1").len(), 1);
    assert_eq!(
        home.objects("search --regex 'log[a-z]+\\(' --file login_form.rs")
            .len(),
        1
    );
}

#[test]
fn messages_and_folds_are_read_as_text() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        recall T1 3-4
        recall T1 6..
        recall T1 e3
        recall T1 --grep STUB
        folds T1 e3
        folds T1 e3 --json
    "), @"");
}

#[test]
fn what_is_not_there_is_an_error_with_a_hint() {
    let home = with_chat();
    home.file("other.jsonl", talk(&["a", "b", "c"]));
    home.tell("task new\ntask push T2 other.jsonl\npin T2 2");
    assert_snapshot!(home.tell("
        recall T1 5..99
        recall T1 99..
        recall T1 40..12
        recall T1 e99
        recall T2 e1
        recall T1
        recall T1 --grep nowhere
        search --regex '('
        search x --role king
        search x --since never
        search x --task ffff
        task complete T2
        recall T2 1
        task delete T2 --yes
        recall T2 1
    "), @"");
}
