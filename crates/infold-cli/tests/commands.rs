//! The effects and the output of each command, as terminal sessions.

mod common;

use common::{Home, said, talk};
use insta::assert_snapshot;

const CHAT: &str = r#"{"role":"system","content":"You are careful."}
{"role":"user","content":"Fix the login"}
{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"login.rs\"}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"command\":\"cargo test\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"fn login() { todo!() }"}
{"role":"tool","tool_call_id":"c2","content":"test result: FAILED"}
{"role":"assistant","content":"It is a stub; I write it."}
{"role":"user","content":"then the migration"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"write","arguments":"{\"path\":\"7.sql\"}"}}]}
{"role":"tool","tool_call_id":"c3","content":"ファイルを書きました。"}
{"role":"assistant","content":"done"}
"#;

/// A home with one task, `T1`, that holds a conversation of ten messages.
fn with_chat() -> Home {
    with(CHAT)
}

fn with(messages: &str) -> Home {
    let home = Home::new();
    home.file("chat.jsonl", messages);
    home.file("summary.md", "login() was a stub; it is written now.\n");
    home.tell("task new\ntask push T1 chat.jsonl");
    home
}

#[test]
fn a_task_is_made_filled_and_shown() {
    let home = Home::new();
    home.file("chat.jsonl", CHAT);
    assert_snapshot!(home.tell("
        task list
        task new --source github --owner acme --repo app --type issue --id 42 --user ada --provider openai --model gpt-5 --context-length 128000
        task push T1 chat.jsonl
        view T1
        task show T1
        task list
    "), @"
    $ infold task list
    ! no tasks
    $ infold task new --source github --owner acme --repo app --type issue --id 42 --user ada --provider openai --model gpt-5 --context-length 128000
    T1
    $ infold task push T1 chat.jsonl
    1..10
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 138 tokens, log 138 in 10 messages
    $ infold task show T1
    task       T1
    status     running
    about      Fix the login
    for        github/acme/app/issue/42 · gpt-5 · ada
    created    YYYY-MM-DD hh:mm:ss UTC
    active     YYYY-MM-DD hh:mm:ss UTC
    by         process N on HOST
    window     128,000 tokens
    log        10 messages, 3 events, 138 tokens
    view       138 tokens
    counted    4 model calls, 3 tool calls, 0 summary folds
    on disk    SIZE in ./contexts/running/T1
    $ infold task list
    task      status   active            tokens  folds  agent  directory  about
    t1······  running  YYYY-MM-DD hh:mm     138      0  –      –          Fix the login
    ");
}

#[test]
fn tasks_are_listed_newest_first_by_status_and_user() {
    let home = Home::new();
    home.tell("task new --user ada\ntask new --user bob --model gpt-5\ntask new --user ada");
    home.tell("task complete T1");
    home.run("task fail T2 --error 'out of\nmoney'", b"");
    assert_snapshot!(home.tell("
        task list
        task list --status running
        task list --user ada
        task list --user ada --status completed
        task list --user eve
    "), @r"
    $ infold task list
    task      status     active            tokens  folds  agent  directory  about
    t2······  failed     YYYY-MM-DD hh:mm       0      0  –      –          gpt-5 · bob · out of money
    t1······  completed  YYYY-MM-DD hh:mm       0      0  –      –          ada
    t3······  running    YYYY-MM-DD hh:mm       0      0  –      –          ada
    $ infold task list --status running
    task      status   active            tokens  folds  agent  directory  about
    t3······  running  YYYY-MM-DD hh:mm       0      0  –      –          ada
    $ infold task list --user ada
    task      status     active            tokens  folds  agent  directory  about
    t1······  completed  YYYY-MM-DD hh:mm       0      0  –      –          ada
    t3······  running    YYYY-MM-DD hh:mm       0      0  –      –          ada
    $ infold task list --user ada --status completed
    task      status     active            tokens  folds  agent  directory  about
    t1······  completed  YYYY-MM-DD hh:mm       0      0  –      –          ada
    $ infold task list --user eve
    ! no tasks
    ");
    let names = home.objects("task list --user ada");
    let names: Vec<_> = names.iter().map(|row| row["uuid"].as_str()).collect();
    assert_eq!(names, [Some(&*home.task("T1")), Some(&*home.task("T3"))]);
}

#[test]
fn a_row_in_json_has_the_fields_of_the_registry() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        task new --source gitlab --owner o --repo r --type mr --id 7 --user u --provider anthropic --model m --context-length 9 --json
        task show T2 --json
        task list --status running --json
    "), @r#"
    $ infold task new --source gitlab --owner o --repo r --type mr --id 7 --user u --provider anthropic --model m --context-length 9 --json
    {"uuid":"T2"}
    $ infold task show T2 --json
    {"active_at":"YYYY-MM-DDThh:mm:ss.mmmZ","agent":null,"bytes":N,"cached_tokens":0,"completed_at":null,"compression_count":0,"context_length":9,"cost":0.0,"created_at":"YYYY-MM-DDThh:mm:ss.mmmZ","cwd":null,"directory":"./contexts/running/T2","error_message":null,"events":0,"hostname":"HOST","llm_call_count":0,"llm_provider":"anthropic","messages":0,"model":"m","owner":"o","parent":null,"process_id":N,"repo":"r","started_at":"YYYY-MM-DDThh:mm:ss.mmmZ","status":"running","task_id":"7","task_source":"gitlab","task_type":"mr","title":null,"tool_call_count":0,"total_tokens":0,"user":"u","uuid":"T2","view_tokens":0}
    $ infold task list --status running --json
    {"active_at":"YYYY-MM-DDThh:mm:ss.mmmZ","agent":null,"cached_tokens":0,"completed_at":null,"compression_count":0,"context_length":9,"cost":0.0,"created_at":"YYYY-MM-DDThh:mm:ss.mmmZ","cwd":null,"error_message":null,"hostname":"HOST","llm_call_count":0,"llm_provider":"anthropic","model":"m","owner":"o","process_id":N,"repo":"r","started_at":"YYYY-MM-DDThh:mm:ss.mmmZ","status":"running","task_id":"7","task_source":"gitlab","task_type":"mr","title":null,"tool_call_count":0,"total_tokens":0,"user":"u","uuid":"T2"}
    {"active_at":"YYYY-MM-DDThh:mm:ss.mmmZ","agent":null,"cached_tokens":0,"completed_at":null,"compression_count":0,"context_length":128000,"cost":0.0,"created_at":"YYYY-MM-DDThh:mm:ss.mmmZ","cwd":null,"error_message":null,"hostname":"HOST","llm_call_count":4,"llm_provider":null,"model":null,"owner":null,"process_id":N,"repo":null,"started_at":"YYYY-MM-DDThh:mm:ss.mmmZ","status":"running","task_id":null,"task_source":null,"task_type":null,"title":"Fix the login","tool_call_count":3,"total_tokens":138,"user":null,"uuid":"T1"}
    "#);
}

#[test]
fn messages_come_as_lines_as_an_array_or_from_standard_input() {
    let home = Home::new();
    home.tell("task new");
    home.file(
        "array.json",
        "\n[\n  {\n    \"role\": \"user\",\n    \"content\": \"pretty\"\n  },\n  {\"role\":\"assistant\",\"content\":\"printed\"}\n]\n",
    );
    assert_snapshot!([
        home.tell("task push T1 array.json"),
        home.fed("task push T1", said("user", "from a pipe")),
        home.fed("task push T1 - --json", talk(&["and", "another"])),
        home.fed("task push T1 --json", ""),
        home.fed("task push T1", "[]"),
        home.tell("view T1 --raw"),
    ]
    .concat(), @r#"
    $ infold task push T1 array.json
    1..2
    $ infold task push T1
    3
    $ infold task push T1 - --json
    {"count":2,"from":4,"to":5}
    $ infold task push T1 --json
    {"count":0,"from":null,"to":null}
    $ infold task push T1
    ! no messages
    $ infold view T1 --raw
    {    "role": "user",    "content": "pretty"  }
    {"role":"assistant","content":"printed"}
    {"content":"from a pipe","role":"user"}
    {"content":"and","role":"user"}
    {"content":"another","role":"assistant"}
    ! view 27 tokens, log 27 in 5 messages
    "#);
}

#[test]
fn a_tool_record_is_kept_and_counted() {
    let home = with_chat();
    let record = r#"{"tool":"ls","args":{"path":"."},"result":"a b","duration_ms":3}"#;
    let error = r#"{"tool":"rm","args":{},"error":"denied","status":"error","duration_ms":1}"#;
    assert_snapshot!([
        home.fed("task tool T1", record),
        home.fed("task tool T1 --json", error),
        home.tell("log T1 --at e5"),
        home.tell("task show T1"),
    ]
    .concat(), @r#"
    $ infold task tool T1
    4
    $ infold task tool T1 --json
    {"seq":5}
    $ infold log T1 --at e5
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    e1       tool {"tool":"read","args":{"path":"login.rs"},"result":"fn login() { todo!() }","status":…
    e2       tool {"tool":"bash","args":{"command":"cargo test"},"result":"test result: FAILED","status…
    e3       tool {"tool":"write","args":{"path":"7.sql"},"result":"ファイルを書きました。","status":"s…
    e4       tool {"tool":"ls","args":{"path":"."},"result":"a b","duration_ms":3}
    e5       tool {"tool":"rm","args":{},"error":"denied","status":"error","duration_ms":1}
    $ infold task show T1
    task       T1
    status     running
    about      Fix the login
    created    YYYY-MM-DD hh:mm:ss UTC
    active     YYYY-MM-DD hh:mm:ss UTC
    by         process N on HOST
    window     128,000 tokens
    log        10 messages, 5 events, 138 tokens
    view       138 tokens
    counted    4 model calls, 5 tool calls, 0 summary folds
    on disk    SIZE in ./contexts/running/T1
    "#);
}

#[test]
fn an_ended_task_stays_readable_and_is_cleaned_when_it_is_old() {
    let home = with_chat();
    home.tell("task new");
    assert_snapshot!(home.tell("
        task complete T1
        task fail T2 --error 'no key' --json
        task show T2
        view T1 --at 2
        task clean --older-than 30d
        task clean --older-than 0s --dry-run
        task list
        task clean --older-than 0s --json
        task list
        view T1
    "), @r#"
    $ infold task complete T1
    task T1 completed; it stays readable
    $ infold task fail T2 --error 'no key' --json
    {"status":"failed","uuid":"T2"}
    $ infold task show T2
    task       T2
    status     failed
    error      no key
    created    YYYY-MM-DD hh:mm:ss UTC
    active     YYYY-MM-DD hh:mm:ss UTC
    ended      YYYY-MM-DD hh:mm:ss UTC
    by         process N on HOST
    window     128,000 tokens
    log        0 messages, 1 event, 0 tokens
    view       0 tokens
    counted    0 model calls, 0 tool calls, 0 summary folds
    on disk    SIZE in ./contexts/completed/T2
    $ infold view T1 --at 2
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    ! view 15 tokens, log 15 in 2 messages
    $ infold task clean --older-than 30d
    ! 0 tasks removed
    $ infold task clean --older-than 0s --dry-run
    T1  completed
    T2  failed     no key
    ! 2 tasks would be removed
    $ infold task list
    task      status     active            tokens  folds  agent  directory  about
    t2······  failed     YYYY-MM-DD hh:mm       0      0  –      –          no key
    t1······  completed  YYYY-MM-DD hh:mm     138      0  –      –          Fix the login
    $ infold task clean --older-than 0s --json
    {"removed":true,"status":"completed","uuid":"T1"}
    {"removed":true,"status":"failed","uuid":"T2"}
    $ infold task list
    ! no tasks
    $ infold view T1
    ! error: no task `T1`
    ! hint: there are no tasks here; `infold task new` creates one, --contexts DIR sets another directory
    [2]
    "#);
}

#[test]
fn a_task_that_another_one_continues_is_not_cleaned() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        fork T1
        task complete T1
        task clean --older-than 0s
        task complete T2
        task clean --older-than 0s --dry-run
    "), @r"
    $ infold fork T1
    T2
    ! continues T1 from message 10
    $ infold task complete T1
    task T1 completed; it stays readable
    $ infold task clean --older-than 0s
    ! 0 tasks removed
    $ infold task complete T2
    task T2 completed; it stays readable
    $ infold task clean --older-than 0s --dry-run
    T2  completed
    T1  completed
    ! 2 tasks would be removed
    ");
}

#[test]
fn the_view_shows_a_fold_as_one_line() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        condense T1 3..6 --text summary.md
        view T1
        view T1 --json
        view T1 --raw
        log T1
        folds T1
    "), @r#"
    $ infold condense T1 3..6 --text summary.md
    e4: folded 3..6, 4 messages; view 138 → 103 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-6      e4 (summary of 4 messages, 78 tokens)                                             43 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 103 tokens, log 138 in 10 messages
    $ infold view T1 --json
    {"note":"","role":"system","seq":1,"tokens":8,"message":{"role":"system","content":"You are careful."}}
    {"note":"","role":"user","seq":2,"tokens":7,"message":{"role":"user","content":"Fix the login"}}
    {"fold":"e4","from":3,"kind":"summary","messages":4,"original_tokens":78,"stand_in":[{"role":"user","text":"[Summary of messages 3..6 (4 folded away; nothing is lost: the log keeps 3..6 word for word)]\n\nlogin() was a stub; it is written now."}],"to":6,"tokens":43}
    {"note":"","role":"user","seq":7,"tokens":7,"message":{"role":"user","content":"then the migration"}}
    {"note":"","role":"assistant","seq":8,"tokens":17,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"write","arguments":"{\"path\":\"7.sql\"}"}}]}}
    {"note":"","role":"tool","seq":9,"tokens":16,"message":{"role":"tool","tool_call_id":"c3","content":"ファイルを書きました。"}}
    {"note":"","role":"assistant","seq":10,"tokens":5,"message":{"role":"assistant","content":"done"}}
    $ infold view T1 --raw
    {"role":"system","content":"You are careful."}
    {"role":"user","content":"Fix the login"}
    {"role":"user","content":"[Summary of messages 3..6 (4 folded away; nothing is lost: the log keeps 3..6 word for word)]\n\nlogin() was a stub; it is written now."}
    {"role":"user","content":"then the migration"}
    {"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"write","arguments":"{\"path\":\"7.sql\"}"}}]}
    {"role":"tool","tool_call_id":"c3","content":"ファイルを書きました。"}
    {"role":"assistant","content":"done"}
    ! view 103 tokens, log 138 in 10 messages
    $ infold log T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)       [in e4]      33 tokens
    4        tool   fn login() { todo!() }                                        [in e4]      18 tokens
    5        tool   test result: FAILED                                           [in e4]      14 tokens
    6        model  It is a stub; I write it.                                     [in e4]      13 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    e1       tool {"tool":"read","args":{"path":"login.rs"},"result":"fn login() { todo!() }","status":…
    e2       tool {"tool":"bash","args":{"command":"cargo test"},"result":"test result: FAILED","status…
    e3       tool {"tool":"write","args":{"path":"7.sql"},"result":"ファイルを書きました。","status":"s…
    e4       fold summary 3..6: 4 messages, 78 → 43 tokens
    $ infold folds T1
    e4  summary  3..6  active  78 → 43 tokens  YYYY-MM-DD hh:mm:ss
    "#);
}

#[test]
fn a_fold_that_would_cut_a_round_is_widened_and_says_so() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        condense T1 4..6 --text summary.md
        undo T1
        condense T1 1..3 --text summary.md
        undo T1
        condense T1 1..6 --text summary.md
        undo T1
        condense T1 4 --text summary.md --json
    "), @r#"
    $ infold condense T1 4..6 --text summary.md
    e4: folded 3..6, 4 messages; view 138 → 103 tokens (undo: infold undo t1······)
    ! 4..6 was widened to 3..6: a call and its results are hidden together, and a fold as a whole
    $ infold undo T1
    undid e4; view 103 → 138 tokens (redo: infold redo t1······)
    $ infold condense T1 1..3 --text summary.md
    e6: folded 3..5, 3 messages; view 138 → 116 tokens (undo: infold undo t1······)
    ! 1..3 was moved to 3..5: a call and its results are hidden together, the system prompt and the first request never
    $ infold undo T1
    undid e6; view 116 → 138 tokens (redo: infold redo t1······)
    $ infold condense T1 1..6 --text summary.md
    e8: folded 3..6, 4 messages; view 138 → 103 tokens (undo: infold undo t1······)
    ! 1..6 was narrowed to 3..6: the system prompt, the first request and what a rewind hid stay as they are
    $ infold undo T1
    undid e8; view 103 → 138 tokens (redo: infold redo t1······)
    $ infold condense T1 4 --text summary.md --json
    {"asked_from":4,"asked_to":4,"event":"e10","fold":"e10","from":3,"messages":3,"summarizer":"hand","to":5,"tokens_after":116,"tokens_before":138}
    "#);
}

#[test]
fn folds_nest_and_open_from_the_outside_in() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        condense T1 3..5 --text summary.md
        condense T1 3..7 --text summary.md
        folds T1
        unfold T1 e5
        unfold T1 e4
        folds T1
        folds T1 --at e5
        folds T1 --json
    "), @r#"
    $ infold condense T1 3..5 --text summary.md
    e4: folded 3..5, 3 messages; view 138 → 116 tokens (undo: infold undo t1······)
    $ infold condense T1 3..7 --text summary.md
    e5: folded 3..7, 5 messages; view 116 → 96 tokens (undo: infold undo t1······)
    $ infold folds T1
    e4  summary  3..5  inside e5  65 → 43 tokens  YYYY-MM-DD hh:mm:ss
    e5  summary  3..7  active     85 → 43 tokens  YYYY-MM-DD hh:mm:ss
    $ infold unfold T1 e5
    opened e5; view 96 → 116 tokens (undo: infold undo t1······)
    $ infold unfold T1 e4
    opened e4; view 116 → 138 tokens (undo: infold undo t1······)
    $ infold folds T1
    e4  summary  3..5  inactive  65 → 43 tokens  YYYY-MM-DD hh:mm:ss
    e5  summary  3..7  inactive  85 → 43 tokens  YYYY-MM-DD hh:mm:ss
    $ infold folds T1 --at e5
    e4  summary  3..5  inside e5  65 → 43 tokens  YYYY-MM-DD hh:mm:ss
    e5  summary  3..7  active     85 → 43 tokens  YYYY-MM-DD hh:mm:ss
    $ infold folds T1 --json
    {"fold":"e4","from":3,"kind":"summary","original_tokens":65,"status":"inactive","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","to":5,"tokens":43}
    {"fold":"e5","from":3,"kind":"summary","original_tokens":85,"status":"inactive","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","to":7,"tokens":43}
    "#);
}

#[test]
fn truncating_hides_the_oldest_rounds() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        truncate T1
        view T1
        truncate T1 --fraction 1 --json
        view T1
        truncate T1
        task show T1
    "), @r#"
    $ infold truncate T1
    e4: hid 3..6, 4 messages; view 138 → 90 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-6      e4 (4 messages hidden, 78 tokens)                                                 30 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 90 tokens, log 138 in 10 messages
    $ infold truncate T1 --fraction 1 --json
    {"asked_from":3,"asked_to":9,"event":"e5","fold":"e5","from":3,"messages":7,"to":9,"tokens_after":50,"tokens_before":90}
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-9      e5 (7 messages hidden, 118 tokens)                                                30 tokens
    10       model  done                                                                        5 tokens
    ! view 50 tokens, log 138 in 10 messages
    $ infold truncate T1
    ! error: nothing to fold: only the system prompt, the first request, pins, stand-ins and the last round are visible
    ! hint: `infold view t1······` shows what is visible
    [1]
    $ infold task show T1
    task       T1
    status     running
    about      Fix the login
    created    YYYY-MM-DD hh:mm:ss UTC
    active     YYYY-MM-DD hh:mm:ss UTC
    by         process N on HOST
    window     128,000 tokens
    log        10 messages, 5 events, 138 tokens
    view       50 tokens
    counted    4 model calls, 3 tool calls, 0 summary folds
    on disk    SIZE in ./contexts/running/T1
    "#);
}

#[test]
fn truncating_looks_past_what_is_pinned() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        pin T1 3
        pin T1 6
        truncate T1
        view T1
    "), @"
    $ infold pin T1 3
    pinned message 3 and its round; view 138 → 138 tokens (undo: infold undo t1······)
    $ infold pin T1 6
    pinned message 6 and its round; view 138 → 138 tokens (undo: infold undo t1······)
    $ infold truncate T1
    e6: hid 7..9, 3 messages; view 138 → 128 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)      [pinned]      33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                    [pinned]      13 tokens
    7-9      e6 (3 messages hidden, 40 tokens)                                                 30 tokens
    10       model  done                                                                        5 tokens
    ! view 128 tokens, log 138 in 10 messages
    ");
}

#[test]
fn a_masked_result_is_a_stub_and_the_rest_of_its_message_stays() {
    let big = "x".repeat(400);
    let home = with(&format!(
        "{}{}{}{}",
        said("user", "read it"),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"u1","name":"read","input":{"path":"a"}}]}"#.to_owned() + "\n",
        format_args!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"u1","content":"{big}"}},{{"type":"text","text":"and?"}}]}}{}"#, "\n"),
        said("assistant", "ok"),
    ));
    assert_snapshot!(home.tell("
        mask T1 3
        view T1
        view T1 --raw
        mask T1 3 --part 1
        unfold T1 e2 --json
        mask T1 3 --json
        folds T1
    "), @r#"
    $ infold mask T1 3
    e2: masked part 0 of message 3; view 89 → 56 tokens (undo: infold undo t1······)
    $ infold view T1
    1        user   read it                                                                     6 tokens
    2        model  calls read(a)                                                              16 tokens
    3        tool   [50 tokens folded away; nothing is lost, and m… [part 0 masked by e2]      29 tokens
    4        model  ok                                                                          5 tokens
    ! view 56 tokens, log 89 in 4 messages
    $ infold view T1 --raw
    {"content":"read it","role":"user"}
    {"role":"assistant","content":[{"type":"tool_use","id":"u1","name":"read","input":{"path":"a"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":"[50 tokens folded away; nothing is lost, and message 3 keeps them]"},{"type":"text","text":"and?"}]}
    {"content":"ok","role":"assistant"}
    ! view 56 tokens, log 89 in 4 messages
    $ infold mask T1 3 --part 1
    ! error: part 1 of message 3 cannot be masked: only tool results and images can be
    ! hint: `infold recall t1······ 3` shows the message
    [2]
    $ infold unfold T1 e2 --json
    {"event":"e3","fold":"e2","tokens_after":89,"tokens_before":56}
    $ infold mask T1 3 --json
    {"event":"e4","fold":"e4","part":0,"seq":3,"tokens_after":56,"tokens_before":89}
    $ infold folds T1
    e2  mask  3  inactive  50 → 17 tokens  YYYY-MM-DD hh:mm:ss
    e4  mask  3  active    50 → 17 tokens  YYYY-MM-DD hh:mm:ss
    "#);
}

#[test]
fn rewinding_goes_to_or_before_a_message_or_an_event() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md");
    assert_snapshot!(home.tell("
        rewind T1 --to 6
        view T1
        rewind T1 --before 3
        rewind T1 --to e4
        view T1
        rewind T1 --before e4 --json
        log T1
    "), @r#"
    $ infold rewind T1 --to 6
    rewound to 6: 4 messages hidden, none lost; view 103 → 93 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    ! view 93 tokens, log 138 in 10 messages
    $ infold rewind T1 --before 3
    rewound to before 3: 4 messages hidden, none lost; view 93 → 15 tokens (undo: infold undo t1······)
    $ infold rewind T1 --to e4
    rewound to e4: 0 messages hidden, none lost; view 15 → 103 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-6      e4 (summary of 4 messages, 78 tokens)                                             43 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 103 tokens, log 138 in 10 messages
    $ infold rewind T1 --before e4 --json
    {"event":"e8","hidden":0,"shown":10,"tokens_after":138,"tokens_before":103}
    $ infold log T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    e1       tool {"tool":"read","args":{"path":"login.rs"},"result":"fn login() { todo!() }","status":…
    e2       tool {"tool":"bash","args":{"command":"cargo test"},"result":"test result: FAILED","status…
    e3       tool {"tool":"write","args":{"path":"7.sql"},"result":"ファイルを書きました。","status":"s…
    e4       fold summary 3..6: 4 messages, 78 → 43 tokens
    e5       rewind to message 6, event 0
    e6       rewind to message 2, event 0
    e7       rewind to message 10, event 4
    e8       rewind to message 10, event 3
    "#);
}

#[test]
fn rewinding_goes_to_a_time() {
    let home = with_chat();
    long_ago(&home.running("T1"));
    home.tell("pin T1 --note 'later'\nrewind T1 --to 5");
    assert_snapshot!(home.tell("
        rewind T1 --to 2002-01-01
        view T1
        rewind T1 --before 2001-01-01T00:00Z
        rewind T1 --to 946684800000
        rewind T1 --before 1009843200000
    "), @"
    $ infold rewind T1 --to 2002-01-01
    rewound to YYYY-MM-DDThh:mm:ss.mmmZ: 0 messages hidden, none lost; view 80 → 138 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 138 tokens, log 138 in 10 messages
    $ infold rewind T1 --before 2001-01-01T00:00Z
    ! error: nothing was recorded at or before that time
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold rewind T1 --to 946684800000
    ! error: nothing was recorded at or before that time
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold rewind T1 --before 1009843200000
    rewound to before YYYY-MM-DDThh:mm:ss.mmmZ: 0 messages hidden, none lost; view 138 → 138 tokens (undo: infold undo t1······)
    ");
}

/// Dates the messages of a task to 2001, and removes the files derived from them.
fn long_ago(dir: &std::path::Path) {
    let path = dir.join("messages.jsonl");
    let text = std::fs::read_to_string(&path).expect("it is there");
    let parts: Vec<&str> = text.split("\"timestamp\":\"").collect();
    let parts: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| match at {
            0 => (*part).to_owned(),
            _ => format!("2001{}", &part[4..]),
        })
        .collect();
    std::fs::write(&path, parts.join("\"timestamp\":\"")).expect("it can be written");
    for name in ["messages.idx", "events.idx", "current.idx"] {
        let _ = std::fs::remove_file(dir.join(name));
    }
}

#[test]
fn undo_and_redo_go_back_and_forth() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md\nrewind T1 --to 2");
    assert_snapshot!(home.tell("
        undo T1
        undo T1 --json
        redo T1
        redo T1 --json
        view T1
        undo T1
        pin T1 7
        redo T1
        log T1 --json
    "), @r#"
    $ infold undo T1
    undid e5; view 15 → 103 tokens (redo: infold redo t1······)
    $ infold undo T1 --json
    {"event":"e7","tokens_after":138,"tokens_before":103,"undone":"e4"}
    $ infold redo T1
    redid e4; view 138 → 103 tokens (undo: infold undo t1······)
    $ infold redo T1 --json
    {"event":"e9","redone":"e5","tokens_after":15,"tokens_before":103}
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    ! view 15 tokens, log 138 in 10 messages
    $ infold undo T1
    undid e5; view 15 → 103 tokens (redo: infold redo t1······)
    $ infold pin T1 7
    pinned message 7 and its round; view 103 → 103 tokens (undo: infold undo t1······)
    $ infold redo T1
    ! error: nothing to redo
    ! hint: only an undo with nothing after it can be redone
    [1]
    $ infold log T1 --json
    {"place":"shown","role":"system","round":1,"seq":1,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":8,"message":{"role":"system","content":"You are careful."}}
    {"place":"shown","role":"user","round":2,"seq":2,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":7,"message":{"role":"user","content":"Fix the login"}}
    {"place":"in e4","role":"assistant","round":3,"seq":3,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":33,"message":{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"login.rs\"}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"command\":\"cargo test\"}"}}]}}
    {"place":"in e4","role":"tool","round":3,"seq":4,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":18,"message":{"role":"tool","tool_call_id":"c1","content":"fn login() { todo!() }"}}
    {"place":"in e4","role":"tool","round":3,"seq":5,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":14,"message":{"role":"tool","tool_call_id":"c2","content":"test result: FAILED"}}
    {"place":"in e4","role":"assistant","round":6,"seq":6,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":13,"message":{"role":"assistant","content":"It is a stub; I write it."}}
    {"place":"shown","role":"user","round":7,"seq":7,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":7,"message":{"role":"user","content":"then the migration"}}
    {"place":"shown","role":"assistant","round":8,"seq":8,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":17,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"write","arguments":"{\"path\":\"7.sql\"}"}}]}}
    {"place":"shown","role":"tool","round":8,"seq":9,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":16,"message":{"role":"tool","tool_call_id":"c3","content":"ファイルを書きました。"}}
    {"place":"shown","role":"assistant","round":10,"seq":10,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":5,"message":{"role":"assistant","content":"done"}}
    {"after":10,"event":"e1","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"read\",\"args\":{\"path\":\"login.rs\"},\"result\":\"fn login() { todo!() }\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e2","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"bash\",\"args\":{\"command\":\"cargo test\"},\"result\":\"test result: FAILED\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e3","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"write\",\"args\":{\"path\":\"7.sql\"},\"result\":\"ファイルを書きました。\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e4","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"fold summary 3..6: 4 messages, 78 → 43 tokens"}
    {"after":10,"event":"e5","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"rewind to message 2, event 0"}
    {"after":10,"event":"e6","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"undo e5"}
    {"after":10,"event":"e7","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"undo e4"}
    {"after":10,"event":"e8","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"redo, taking back e7"}
    {"after":10,"event":"e9","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"redo, taking back e6"}
    {"after":10,"event":"e10","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"undo e5"}
    {"after":10,"event":"e11","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"pin 7"}
    "#);
}

#[test]
fn a_fork_goes_on_from_where_it_was_made() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md");
    home.file("more.jsonl", talk(&["another way", "sure"]));
    home.file("end.jsonl", said("user", "good"));
    assert_snapshot!(home.tell("
        fork T1 --at 7
        task push T2 more.jsonl
        fork T2 --json
        task push T3 end.jsonl
        view T3
        log T3 --at 8
        task show T3
        fork T1 --at e4
        view T4
        recall T3 7..10
    "), @r#"
    $ infold fork T1 --at 7
    T2
    ! continues T1 from message 7
    $ infold task push T2 more.jsonl
    8..9
    $ infold fork T2 --json
    {"event":1,"parent":"T2","seq":9,"uuid":"T3"}
    $ infold task push T3 end.jsonl
    10
    $ infold view T3
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    8        user   another way                                                                 6 tokens
    9        model  sure                                                                        5 tokens
    10       user   good                                                                        5 tokens
    ! view 116 tokens, log 116 in 10 messages
    $ infold log T3 --at 8
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                                     18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    6        model  It is a stub; I write it.                                                  13 tokens
    7        user   then the migration                                                          7 tokens
    e1       continues task T1 from message 7, event 0
    8        user   another way                                                                 6 tokens
    $ infold task show T3
    task       T3
    status     running
    about      Fix the login
    created    YYYY-MM-DD hh:mm:ss UTC
    active     YYYY-MM-DD hh:mm:ss UTC
    by         process N on HOST
    window     128,000 tokens
    continues  T2 from message 9, event 1
    log        10 messages, 2 events, 116 tokens
    view       116 tokens
    counted    0 model calls, 0 tool calls, 0 summary folds
    on disk    SIZE in ./contexts/running/T3
    $ infold fork T1 --at e4
    T4
    ! continues T1 from message 10
    $ infold view T4
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-6      e4 (summary of 4 messages, 78 tokens)                                             43 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 103 tokens, log 138 in 10 messages
    $ infold recall T3 7..10
    ── 7 user · YYYY-MM-DDThh:mm:ss.mmmZ
    then the migration
    ── 8 user · YYYY-MM-DDThh:mm:ss.mmmZ
    another way
    ── 9 model · YYYY-MM-DDThh:mm:ss.mmmZ
    sure
    ── 10 user · YYYY-MM-DDThh:mm:ss.mmmZ
    good
    "#);
    assert_eq!(home.objects("view T1").len(), 7);
    assert!(home.tell("verify").ends_with("! 4 tasks checked\n"));
}

#[test]
fn pins_survive_folds_and_notes_are_in_every_view() {
    let home = with_chat();
    assert_snapshot!(home.tell("
        pin T1 4
        pin T1 --note 'never touch main'
        condense T1 3..9 --text summary.md
        view T1
        unpin T1 5
        unpin T1 e5 --json
        view T1
        pin T1 7 --json
        pin T1 --note 'x' --json
    "), @r#"
    $ infold pin T1 4
    pinned message 4 and its round; view 138 → 138 tokens (undo: infold undo t1······)
    $ infold pin T1 --note 'never touch main'
    e5: pinned a note; view 138 → 145 tokens (undo: infold undo t1······)
    $ infold condense T1 3..9 --text summary.md
    e6: folded 3..9, 4 messages; view 145 → 135 tokens (undo: infold undo t1······)
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
             user   never touch main                                               [note]       7 tokens
    3-9      e6 (summary of 4 messages, 53 tokens)                                             43 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    4        tool   fn login() { todo!() }                                       [pinned]      18 tokens
    5        tool   test result: FAILED                                                        14 tokens
    10       model  done                                                                        5 tokens
    ! view 135 tokens, log 138 in 10 messages
    $ infold unpin T1 5
    unpinned message 5; view 135 → 70 tokens (undo: infold undo t1······)
    $ infold unpin T1 e5 --json
    {"event":"e8","tokens_after":63,"tokens_before":70,"unpinned":"note e5"}
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-9      e6 (summary of 4 messages, 53 tokens)                                             43 tokens
    10       model  done                                                                        5 tokens
    ! view 63 tokens, log 138 in 10 messages
    $ infold pin T1 7 --json
    {"event":"e9","round":7,"seq":7,"tokens_after":70,"tokens_before":63}
    $ infold pin T1 --note 'x' --json
    {"event":"e10","note":"e10","tokens_after":75,"tokens_before":70}
    "#);
}

#[test]
fn hidden_messages_are_recalled_in_full() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md");
    assert_snapshot!(home.tell("
        recall T1 2..4
        recall T1 4 --json
    "), @r#"
    $ infold recall T1 2..4
    ── 2 user · YYYY-MM-DDThh:mm:ss.mmmZ
    Fix the login
    ── 3 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    I look.
    → read(path: login.rs)
    → bash(command: cargo test)
    ── 4 tool · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    fn login() { todo!() }
    $ infold recall T1 4 --json
    {"role":"tool","seq":4,"shown":false,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","message":{"role":"tool","tool_call_id":"c1","content":"fn login() { todo!() }"}}
    "#);
}

#[test]
fn the_past_is_looked_at_with_at() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md\nunfold T1 e4\nrewind T1 --to 2");
    assert_snapshot!(home.tell("
        view T1
        view T1 --at 3
        view T1 --at e4
        log T1 --at e4 --json
        folds T1 --at 10
    "), @r#"
    $ infold view T1
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    ! view 15 tokens, log 138 in 10 messages
    $ infold view T1 --at 3
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3        model  I look. · calls read(login.rs) · calls bash(cargo test)                    33 tokens
    ! view 48 tokens, log 48 in 3 messages; its last round waits for tool results
    $ infold view T1 --at e4
    1        system You are careful.                                                            8 tokens
    2        user   Fix the login                                                               7 tokens
    3-6      e4 (summary of 4 messages, 78 tokens)                                             43 tokens
    7        user   then the migration                                                          7 tokens
    8        model  calls write(7.sql)                                                         17 tokens
    9        tool   ファイルを書きました。                                                     16 tokens
    10       model  done                                                                        5 tokens
    ! view 103 tokens, log 138 in 10 messages
    $ infold log T1 --at e4 --json
    {"place":"shown","role":"system","round":1,"seq":1,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":8,"message":{"role":"system","content":"You are careful."}}
    {"place":"shown","role":"user","round":2,"seq":2,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":7,"message":{"role":"user","content":"Fix the login"}}
    {"place":"in e4","role":"assistant","round":3,"seq":3,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":33,"message":{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"login.rs\"}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"command\":\"cargo test\"}"}}]}}
    {"place":"in e4","role":"tool","round":3,"seq":4,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":18,"message":{"role":"tool","tool_call_id":"c1","content":"fn login() { todo!() }"}}
    {"place":"in e4","role":"tool","round":3,"seq":5,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":14,"message":{"role":"tool","tool_call_id":"c2","content":"test result: FAILED"}}
    {"place":"in e4","role":"assistant","round":6,"seq":6,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":13,"message":{"role":"assistant","content":"It is a stub; I write it."}}
    {"place":"shown","role":"user","round":7,"seq":7,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":7,"message":{"role":"user","content":"then the migration"}}
    {"place":"shown","role":"assistant","round":8,"seq":8,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":17,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"write","arguments":"{\"path\":\"7.sql\"}"}}]}}
    {"place":"shown","role":"tool","round":8,"seq":9,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":16,"message":{"role":"tool","tool_call_id":"c3","content":"ファイルを書きました。"}}
    {"place":"shown","role":"assistant","round":10,"seq":10,"timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","tokens":5,"message":{"role":"assistant","content":"done"}}
    {"after":10,"event":"e1","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"read\",\"args\":{\"path\":\"login.rs\"},\"result\":\"fn login() { todo!() }\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e2","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"bash\",\"args\":{\"command\":\"cargo test\"},\"result\":\"test result: FAILED\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e3","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"tool {\"tool\":\"write\",\"args\":{\"path\":\"7.sql\"},\"result\":\"ファイルを書きました。\",\"status\":\"success\",\"duration_ms\":0}"}
    {"after":10,"event":"e4","timestamp":"YYYY-MM-DDThh:mm:ss.mmmZ","what":"fold summary 3..6: 4 messages, 78 → 43 tokens"}
    $ infold folds T1 --at 10
    ! no folds
    "#);
}

#[test]
fn verify_and_doctor_find_and_repair_damage() {
    let home = with_chat();
    home.tell("condense T1 3..6 --text summary.md");
    assert_snapshot!(home.tell("verify\ndoctor\nverify T1 --json\ndoctor --json"), @r#"
    $ infold verify
    T1  ok
    ! 1 task checked
    $ infold doctor
    infold     0.1.0
    contexts   DIR/contexts
    tasks      1 running
    on disk    SIZE
    ! no problems found
    $ infold verify T1 --json
    {"ok":true,"problems":[],"uuid":"T1"}
    $ infold doctor --json
    {"bytes":N,"checkpoints":{"bytes":N,"snapshots":0,"workspaces":0},"contexts":"DIR/contexts","problems":[],"repaired":[],"tasks":{"completed":0,"failed":0,"paused":0,"queued":0,"running":1},"version":"0.1.0"}
    "#);
    let dir = home.running("T1");
    std::fs::remove_file(dir.join("current.jsonl")).expect("it was there");
    let torn = [
        &std::fs::read(dir.join("messages.jsonl")).expect("it is there")[..],
        b"{\"ro",
    ];
    std::fs::write(dir.join("messages.jsonl"), torn.concat()).expect("it can be written");
    let before = home.bytes();
    assert_snapshot!(home.tell("verify T1\nverify --json\ndoctor"), @r#"
    $ infold verify T1
    T1  not ok
        messages.jsonl has torn bytes from byte 1436 on
        current.jsonl does not follow from the log
    ! error: 2 problems
    ! hint: `infold doctor --repair` repairs what can be repaired, and sets damaged bytes aside
    [1]
    $ infold verify --json
    {"ok":false,"problems":["messages.jsonl has torn bytes from byte 1436 on","current.jsonl does not follow from the log"],"uuid":"T1"}
    ! {"error":"2 problems","exit":1,"hint":"`infold doctor --repair` repairs what can be repaired, and sets damaged bytes aside"}
    [1]
    $ infold doctor
    infold     0.1.0
    contexts   DIR/contexts
    tasks      1 running
    on disk    SIZE
    problem  T1: messages.jsonl has torn bytes from byte 1436 on
    problem  T1: current.jsonl does not follow from the log
    ! error: 2 problems
    ! hint: `infold doctor --repair` repairs what can be repaired
    [1]
    "#);
    assert_eq!(home.bytes(), before, "looking changes nothing");
    let told = home.tell("doctor --repair");
    let told: String = told
        .split("torn-messages-")
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect();
    assert_snapshot!(told, @"
    $ infold doctor --repair
    infold     0.1.0
    contexts   DIR/contexts
    tasks      1 running
    on disk    SIZE
    repaired T1: 4 torn bytes of messages.jsonl moved to ./contexts/running/T1/
    repaired T1: index was behind by 14 entries; caught up
    repaired T1: current.jsonl was missing or behind; rebuilt
    repaired T1: everything derived was derived anew
    ! no problems found
    ");
    assert_snapshot!(home.tell("verify"), @r"
    $ infold verify
    T1  ok
    ! 1 task checked
    ");
}

#[test]
fn repairs_are_told_to_scripts_too() {
    let home = with_chat();
    std::fs::remove_file(home.running("T1").join("current.jsonl")).expect("it was there");
    assert_snapshot!(home.tell("pin T1 3 --json"), @r#"
    $ infold pin T1 3 --json
    {"event":"e4","round":3,"seq":3,"tokens_after":138,"tokens_before":138}
    ! {"repaired":"current.jsonl was missing or behind; rebuilt"}
    "#);
}

#[test]
fn looking_where_nothing_is_makes_nothing() {
    let home = Home::new();
    assert_snapshot!(home.tell("
        task list
        task list --json
        verify
        doctor
        task clean --older-than 1d
    "), @"
    $ infold task list
    ! no tasks
    $ infold task list --json
    $ infold verify
    ! no tasks
    $ infold doctor
    infold     0.1.0
    contexts   DIR/contexts (created with the first task)
    tasks      none
    on disk    SIZE
    ! no problems found
    $ infold task clean --older-than 1d
    ! 0 tasks removed
    ");
    assert!(!home.contexts().exists());
}

#[test]
fn completions_are_made_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Home::new().run(&format!("completions {shell}"), b"");
        assert_eq!((ran.code, ran.stderr.len()), (0, 0), "{shell}");
        assert!(
            String::from_utf8_lossy(&ran.stdout).contains("condense"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_speaks_json() {
    let home = with_chat();
    let record = br#"{"tool":"ls","args":{},"result":"","duration_ms":3}"#;
    for line in [
        "task new",
        "task list",
        "task show T1",
        "task push T1 chat.jsonl",
        "task tool T1",
        "task complete T2",
        "task clean --older-than 0s",
        "log T1",
        "view T1",
        "condense T1 3..6 --text summary.md",
        "folds T1",
        "unfold T1 e8",
        "truncate T1",
        "undo T1",
        "redo T1",
        "rewind T1 --to 9",
        "mask T1 9",
        "pin T1 7",
        "unpin T1 7",
        "fork T1",
        "recall T1 1..10",
        "verify",
        "doctor",
    ] {
        let ran = home.run(&format!("{line} --json"), record);
        assert!(ran.stderr.is_empty(), "{line}");
        assert_eq!(ran.code, 0, "{line}");
        let text = String::from_utf8(ran.stdout).expect("JSON is UTF-8");
        assert!(!text.is_empty(), "{line}");
        for object in text.lines() {
            let object: serde_json::Value = serde_json::from_str(object).expect(line);
            assert!(object.is_object(), "{line}");
        }
    }
}

/// Messages that a parser would change if it wrote them again.
const ODD: [&str; 9] = [
    r#"{"role":"user","content":"half a pair \ud83d and \u0041\/"}"#,
    r#"{"role":"user","content":"first","content":"second","x":1,"x":2}"#,
    r#"{"role":"user","content":"n","big":1e999,"one":1.0,"exp":1E+2,"long":123456789012345678901234567890,"neg":-0}"#,
    r#"{ "role" : "user" ,"content":   "odd  spacing"  }"#,
    r#"{"role":"user","content":"mine","seq":7,"timestamp":"never","tokens":-1}"#,
    "{\"role\":\"user\",\"content\":\"line\u{2028}and\u{2029}next\u{85}, del \u{7f}, csi \u{9b}31m, bom \u{feff}\"}",
    r#"{"content":"role last","role":"assistant"}"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"what_is_this","a":[]},{"type":"text","text":"x"}]}"#,
    r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}],"name":"\u0000"}"#,
];

#[test]
fn what_was_pushed_comes_back_byte_for_byte() {
    let home = with(&(ODD.join("\n") + "\n"));
    let raw = home.run("view T1 --raw", b"").stdout;
    assert_eq!(String::from_utf8_lossy(&raw), ODD.join("\n") + "\n");
    let recalled = home.run("recall T1 1..9 --json", b"").stdout;
    let recalled = String::from_utf8(recalled).expect("JSON is UTF-8");
    for (line, odd) in recalled.split_terminator('\n').zip(ODD) {
        assert!(line.ends_with(&format!(",\"message\":{odd}}}")), "{line}");
    }
    assert_eq!(recalled.split_terminator('\n').count(), ODD.len());
    // So do the messages that another task inherits, and a repeated push.
    home.file("again.jsonl", &raw);
    home.tell("fork T1\ntask new\ntask push T3 again.jsonl");
    for task in ["T2", "T3"] {
        let again = home.run(&format!("view {task} --raw"), b"").stdout;
        assert_eq!(again, raw, "{task}");
    }
    let current = std::fs::read(home.running("T1").join("current.jsonl"));
    assert_eq!(current.expect("it is there"), raw);
}

#[test]
fn line_breaks_between_tokens_are_all_that_goes() {
    let home = Home::new();
    home.tell("task new");
    home.fed(
        "task push T1",
        "[{\r\n  \"role\": \"user\",\n  \"content\": \"a\\nb\"\n}]",
    );
    assert_snapshot!(home.tell("view T1 --raw"), @r#"
    $ infold view T1 --raw
    {  "role": "user",  "content": "a\nb"}
    ! view 7 tokens, log 7 in 1 message
    "#);
}

#[test]
fn a_call_without_a_result_is_shown_as_interrupted() {
    let openai = [
        said("user", "go"),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}"#.to_owned() + "\n",
        r#"{"role":"tool","tool_call_id":"b","content":"text"}"#.to_owned() + "\n",
    ];
    let home = with(&openai.concat());
    assert_snapshot!(home.tell("view T1\nview T1 --raw"), @r#"
    $ infold view T1
    1        user   go                                                                          5 tokens
    2        model  calls ls() · calls cat()                                                   20 tokens
    3        tool   text                                                                       10 tokens
    ! view 35 tokens, log 35 in 3 messages; its last round waits for tool results
    $ infold view T1 --raw
    {"content":"go","role":"user"}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"b","content":"text"}
    ! view 35 tokens, log 35 in 3 messages; its last round waits for tool results
    "#);
    home.file("on.jsonl", talk(&["never mind", "fine"]));
    assert_snapshot!(home.tell("
        task push T1 on.jsonl
        view T1
        view T1 --raw
        view T1 --json
        verify
    "), @r#"
    $ infold task push T1 on.jsonl
    4..5
    $ infold view T1
    1        user   go                                                                          5 tokens
    2        model  calls ls() · calls cat()                                                   20 tokens
    3        tool   text                                                                       10 tokens
             tool   [interrupted: this call never returned a result]          [no result]      20 tokens
    4        user   never mind                                                                  6 tokens
    5        model  fine                                                                        5 tokens
    ! view 74 tokens, log 46 in 5 messages
    $ infold view T1 --raw
    {"content":"go","role":"user"}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"b","content":"text"}
    {"role":"tool","tool_call_id":"a","content":"[interrupted: this call never returned a result]"}
    {"content":"never mind","role":"user"}
    {"content":"fine","role":"assistant"}
    ! view 74 tokens, log 46 in 5 messages
    $ infold view T1 --json
    {"note":"","role":"user","seq":1,"tokens":5,"message":{"content":"go","role":"user"}}
    {"note":"","role":"assistant","seq":2,"tokens":20,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}}
    {"note":"","role":"tool","seq":3,"tokens":10,"message":{"role":"tool","tool_call_id":"b","content":"text"}}
    {"note":"no result","role":"tool","seq":null,"tokens":20,"message":{"role":"tool","tool_call_id":"a","content":"[interrupted: this call never returned a result]"}}
    {"note":"","role":"user","seq":4,"tokens":6,"message":{"content":"never mind","role":"user"}}
    {"note":"","role":"assistant","seq":5,"tokens":5,"message":{"content":"fine","role":"assistant"}}
    $ infold verify
    T1  ok
    ! 1 task checked
    "#);
}

#[test]
fn a_result_that_came_late_is_shown_as_text() {
    let anthropic = [
        said("user", "go"),
        r#"{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"cat","input":{}}]}"#.to_owned() + "\n",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"text"}]}"#.to_owned() + "\n",
        said("assistant", "no ls yet"),
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"files"}]}"#.to_owned() + "\n",
        said("assistant", "thanks"),
    ];
    let home = with(&anthropic.concat());
    assert_snapshot!(home.tell("view T1\nview T1 --raw\nverify"), @r#"
    $ infold view T1
    1        user   go                                                                          5 tokens
    2        model  I look · calls ls() · calls cat()                                          22 tokens
    3        tool   [interrupted: this call never returned a result] text                      29 tokens
    4        model  no ls yet                                                                   7 tokens
    5        user   [Tool result (a) without its call, or too late:] files  [late result]      19 tokens
    6        model  thanks                                                                      5 tokens
    ! view 87 tokens, log 59 in 6 messages
    $ infold view T1 --raw
    {"content":"go","role":"user"}
    {"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"cat","input":{}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[interrupted: this call never returned a result]","is_error":true},{"type":"tool_result","tool_use_id":"b","content":"text"}]}
    {"content":"no ls yet","role":"assistant"}
    {"role":"user","content":[{"type":"text","text":"[Tool result (a) without its call, or too late:]\nfiles"}]}
    {"content":"thanks","role":"assistant"}
    ! view 87 tokens, log 59 in 6 messages
    $ infold verify
    T1  ok
    ! 1 task checked
    "#);
}

#[test]
fn orphan_results_and_calls_of_one_id_are_shown_so_that_a_provider_takes_them() {
    let home = with(&[
        said("user", "go"),
        r#"{"role":"tool","tool_call_id":"nobody","content":"orphan"}"#.to_owned() + "\n",
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#.to_owned() + "\n",
        r#"{"role":"tool","tool_call_id":"a","content":"one"}"#.to_owned() + "\n",
        r#"{"role":"tool","tool_call_id":"a","content":"two"}"#.to_owned() + "\n",
        r#"{"role":"tool","tool_call_id":"a","content":"three"}"#.to_owned() + "\n",
        said("assistant", "done"),
    ]
    .concat());
    assert_snapshot!(home.tell("view T1\nview T1 --raw\nverify"), @r#"
    $ infold view T1
    1        user   go                                                                          5 tokens
    2        user   [Tool result (nobody) without its call, or too late:] … [late result]      21 tokens
    3        model  calls ls() · calls ls()                                                    20 tokens
    4        tool   one                                                                        10 tokens
    5        tool   two                                                                        10 tokens
    6        user   [Tool result (a) without its call, or too late:] three  [late result]      19 tokens
    7        model  done                                                                        5 tokens
    ! view 72 tokens, log 72 in 7 messages
    $ infold view T1 --raw
    {"content":"go","role":"user"}
    {"role":"user","content":"[Tool result (nobody) without its call, or too late:]\norphan"}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"a","content":"one"}
    {"role":"tool","tool_call_id":"a","content":"two"}
    {"role":"user","content":"[Tool result (a) without its call, or too late:]\nthree"}
    {"content":"done","role":"assistant"}
    ! view 72 tokens, log 72 in 7 messages
    $ infold verify
    T1  ok
    ! 1 task checked
    "#);
}

#[test]
fn columns_stay_in_line_in_narrow_and_wide_terminals() {
    for columns in [80, 120] {
        let home = Home::wide(columns);
        home.file(
            "chat.jsonl",
            CHAT.replace("Fix the login", &"Fix the login 日本語 ".repeat(20)),
        );
        home.file("summary.md", "all of it");
        home.tell("task new --source github --owner acme --repo a-very-long-name --type issue --id 42 --model gpt-5\ntask push T1 chat.jsonl\ncondense T1 3..6 --text summary.md\npin T1 8");
        for line in ["view T1", "log T1", "folds T1", "task list"] {
            let ran = home.run(line, b"");
            let text = String::from_utf8(ran.stdout).expect("UTF-8");
            for line in text.lines() {
                let wide = line
                    .chars()
                    .filter(|c| ('\u{3000}'..'\u{a000}').contains(c))
                    .count();
                assert!(line.chars().count() + wide <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn the_names_of_late_folds_are_shown_whole() {
    let home = with(&said("user", "on").repeat(10_010));
    home.tell("condense T1 2..10003 --text summary.md\ncondense T1 10005..10008 --text summary.md");
    assert_snapshot!(home.tell("view T1"), @"
    $ infold view T1
    1            user   on                                                                      5 tokens
    2-10003      e1 (summary of 10,002 messages, 50,010 tokens)                                46 tokens
    10004        user   on                                                                      5 tokens
    10005-10008  e2 (summary of 4 messages, 20 tokens)                                         47 tokens
    10009        user   on                                                                      5 tokens
    10010        user   on                                                                      5 tokens
    ! view 113 tokens, log 50,050 in 10,010 messages
    ");
}

#[test]
fn colour_comes_when_asked_for() {
    let home = with_chat();
    let coloured = home.run("view T1 --color always", b"").stdout;
    assert!(coloured.contains(&0x1b));
    let raw = home.run("view T1 --raw --color always", b"").stdout;
    assert_eq!(String::from_utf8_lossy(&raw), CHAT);
}

#[test]
fn a_push_with_a_key_is_repeated_without_being_done_twice() {
    let home = Home::new();
    home.file("chat.jsonl", talk(&["hi", "hello"]));
    home.tell("task new");
    let first = home.run("task push T1 chat.jsonl --key today", b"");
    let again = home.run("task push T1 chat.jsonl --key today", b"");
    assert_eq!((first.code, again.code), (0, 0));
    assert_eq!(first.stdout, again.stdout);
    let other = home.run("task push T1 --key today", said("user", "else").as_bytes());
    assert_eq!(other.code, 2);
    let told = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(told.contains("was used for other messages"), "{told}");
    assert!(told.contains("nothing was stored"), "{told}");
    let blank = home.run("task push T1 chat.jsonl --key=", b"");
    assert_eq!(blank.code, 2);
    let log = home.objects("log T1");
    let messages = log.iter().filter(|entry| entry["seq"].is_u64());
    assert_eq!(messages.count(), 2);
}

#[test]
fn hooks_are_asked_and_told_of_folds_by_hand() {
    let home = Home::new();
    home.config("hooks: {before_fold: 'cat >> before', after_fold: 'cat >> after'}\n");
    home.tell("task new");
    let texts: Vec<String> = (0..12)
        .map(|at| format!("{at} {}", "word ".repeat(40)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    home.fed("task push T1", talk(&texts));
    home.fed("condense T1 2..5 --text -", "all went well");
    home.tell("truncate T1 --fraction 0.3\nundo T1\ncondense T1 2..7 --preview");
    let told = |name: &str| {
        let text = std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect::<Vec<serde_json::Value>>()
    };
    let steps = |told: &[serde_json::Value]| -> Vec<String> {
        assert!(
            told.iter().all(|one| one["trigger"] == "manual"),
            "{told:?}"
        );
        let steps = told
            .iter()
            .map(|one| one["step"].as_str().unwrap_or_default());
        steps.map(str::to_owned).collect()
    };
    assert_eq!(steps(&told("before")), ["condense", "truncate"]);
    assert_eq!(steps(&told("after")), ["condense", "truncate"]);
    assert_eq!(told("after")[0]["outcome"]["fold"], "e1");
    // A hook that fails prevents the fold.
    home.config("hooks: {before_fold: 'echo not today >&2; false'}\n");
    insta::assert_snapshot!(home.tell("truncate T1\ncondense T1 2..7 --text config.yaml\nfolds T1"), @"
    $ infold truncate T1
    ! error: nothing was folded: the hook before_fold `echo not today >&2; false` ended with exit status: 1: not today
    ! hint: the configured `hooks.before_fold` decides; `infold config show` shows it
    [1]
    $ infold condense T1 2..7 --text config.yaml
    ! error: nothing was folded: the hook before_fold `echo not today >&2; false` ended with exit status: 1: not today
    ! hint: the configured `hooks.before_fold` decides; `infold config show` shows it
    [1]
    $ infold folds T1
    e1  summary  2..5  active    184 → 35 tokens  YYYY-MM-DD hh:mm:ss
    e2  window   6..7  inactive   92 → 30 tokens  YYYY-MM-DD hh:mm:ss
    ");
}
