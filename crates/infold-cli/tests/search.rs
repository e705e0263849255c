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
fn no_hits_are_not_asked_for() {
    let home = with_chat();
    for limit in ["0", "-1", "many"] {
        let told = home.tell(&format!("search stub --limit={limit}"));
        assert!(told.contains("give a number, counted from 1"), "{told}");
        assert!(!told.contains("no message has"), "{told}");
    }
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
    "), @r#"
    $ infold search getUserName
    t1······ 2      user   YYYY-MM-DD hh:mm:ss
        Fix the login, it times out in [getUserName]
    $ infold search 'timeout -getUserName'
    t1······ 5      model  YYYY-MM-DD hh:mm:ss
        It is a stub; the [timeout] is 30 seconds.
    $ infold search todo --hidden
    t1······ 4      tool   YYYY-MM-DD hh:mm:ss · hidden behind e3
        fn login() { [todo]!() } no space
    $ infold search login --tool read
    t1······ 4      tool   YYYY-MM-DD hh:mm:ss · hidden behind e3
        fn [login]() { todo!() } no space
    t1······ 3      model  YYYY-MM-DD hh:mm:ss · hidden behind e3
        where is it? I look. Read src/[login_form.rs] Write a.txt one two
    $ infold search 検
    t1······ 6      user   YYYY-MM-DD hh:mm:ss
        [検索]も 🚀
    $ infold search --exact 'login() {'
    t1······ 4      tool   YYYY-MM-DD hh:mm:ss · hidden behind e3
        fn [login() {] todo!() } no space
    $ infold search 'unheard of'
    ! no message has any of: unheard
    $ infold search -v
    ! no message has any of: v
    $ infold search '"'
    ! `"` has no word to search for
    "#);
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
    "), @r#"
    $ infold recall T1 3-4
    ── 3 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    where is it?
    I look.
    → Read(file_path: src/login_form.rs)
    → Write(file_path: a.txt)
    content (2 lines):
    one
    two
    ── 4 user · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    ← result
    fn login() {
        todo!()
    }
    ← error
    no space
    $ infold recall T1 6..
    ── 6 user · YYYY-MM-DDThh:mm:ss.mmmZ
    検索も 🚀
    ── 7 model · YYYY-MM-DDThh:mm:ss.mmmZ
    done
    $ infold recall T1 e3
    ── e3 summary · hides 3..4 · 78 → 38 tokens · YYYY-MM-DDThh:mm:ss.mmmZ
    [Summary of messages 3..4 (2 folded away; nothing is lost: the log keeps 3..4 word for word)]

    login() was a stub.
    ── 3 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    where is it?
    I look.
    → Read(file_path: src/login_form.rs)
    → Write(file_path: a.txt)
    content (2 lines):
    one
    two
    ── 4 user · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    ← result
    fn login() {
        todo!()
    }
    ← error
    no space
    $ infold recall T1 --grep STUB
    ── 5 model · YYYY-MM-DDThh:mm:ss.mmmZ
    It is a stub; the timeout is 30 seconds.
    $ infold folds T1 e3
    ── e3 summary · hides 3..4 · 78 → 38 tokens · YYYY-MM-DDThh:mm:ss.mmmZ
    [Summary of messages 3..4 (2 folded away; nothing is lost: the log keeps 3..4 word for word)]

    login() was a stub.
    $ infold folds T1 e3 --json
    {"fold":"e3","from":3,"kind":"summary","original_tokens":78,"stand_in":[{"role":"user","text":"[Summary of messages 3..4 (2 folded away; nothing is lost: the log keeps 3..4 word for word)]\n\nlogin() was a stub."}],"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","to":4,"tokens":38}
    "#);
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
        task complete T2
        recall T2 1
        task delete T2 --yes
        recall T2 1
        search x --task ffff
    "), @r#"
    $ infold recall T1 5..99
    ! error: message 99 does not exist; the last one is 7
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold recall T1 99..
    ! error: message 99 does not exist; the last one is 7
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold recall T1 40..12
    ! error: invalid value '40..12' for '[RANGE|FOLD]': the range `40..12` ends before it starts
    !
    ! For more information, try '--help'.
    [2]
    $ infold recall T1 e99
    ! error: event e99 does not exist; the last one is e3
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold recall T2 e1
    ! error: event e1 is not a fold
    ! hint: `infold folds t2······` lists the folds
    [2]
    $ infold recall T1
    ! error: no messages named
    ! hint: name them (12, 12..40, 12.., e3), or search with --grep WORD
    [2]
    $ infold recall T1 --grep nowhere
    ! no message contains `nowhere`
    $ infold search --regex '('
    ! error: not a regular expression: unclosed group at character 1
    ! hint: --exact finds a text as it is written, whatever characters it has
    [2]
    $ infold search x --role king
    ! error: invalid value 'king' for '--role <ROLE>': `king` is no role: user, model, tool or system
    !
    ! For more information, try '--help'.
    [2]
    $ infold search x --since never
    ! error: invalid value 'never' for '--since <TIME>': `never` is neither a time (2026-11-15T12:00Z), a date (2026-11-15) nor an age (3d, 12h)
    !
    ! For more information, try '--help'.
    [2]
    $ infold task complete T2
    task T2 completed; it stays readable
    $ infold recall T2 1
    ── 1 user · YYYY-MM-DDThh:mm:ss.mmmZ
    a
    $ infold task delete T2 --yes
    task T2 deleted
    $ infold recall T2 1
    ! error: no task `T2`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold search x --task ffff
    ! error: no task `ffff`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    "#);
}
