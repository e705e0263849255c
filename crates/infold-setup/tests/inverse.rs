//! Whatever a configuration looks like: what was set is taken back byte for byte.

use infold_setup::{Applied, PathStep, Syntax, Unset, get, set, unset};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How a text is laid out.
#[derive(Clone, Debug)]
struct Layout {
    end: &'static str,
    has_bom: bool,
    ends_line: bool,
    indent: &'static str,
    comments: bool,
    /// Brackets on one line, or trailing commas, as far as the syntax has them.
    inline: bool,
    trailing: bool,
}

fn layouts() -> impl Strategy<Value = Layout> {
    let ends = prop_oneof![Just("\n"), Just("\r\n")];
    let indents = prop_oneof![Just("  "), Just("    "), Just("\t"), Just("")];
    let flags = any::<(bool, bool, bool, bool, bool)>();
    (ends, indents, flags).prop_map(|(end, indent, flags)| Layout {
        end,
        indent,
        has_bom: flags.0,
        ends_line: flags.1,
        comments: flags.2,
        inline: flags.3,
        trailing: flags.4,
    })
}

/// A value of a configuration: texts, and mappings of them.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Number(u32),
    Words(Vec<String>),
    Section(Vec<(String, Part)>),
}

fn parts(depth: u32) -> impl Strategy<Value = Vec<(String, Part)>> {
    let leaf = prop_oneof![
        "[a-z ./:#,\"']{0,12}".prop_map(Part::Text),
        Just(Part::Text("https://gateway.example/v1".to_owned())),
        Just(Part::Text("SENTINEL".to_owned())),
        any::<u32>().prop_map(Part::Number),
        prop::collection::vec("[a-z]{1,5}", 0..3).prop_map(Part::Words),
    ];
    let keys = prop_oneof![
        3 => "[a-z]{1,6}",
        2 => prop_oneof![Just("env"), Just("base_url"), Just("mcp"), Just("infold")]
            .prop_map(str::to_owned),
    ];
    let part = leaf.boxed().prop_recursive(depth, 12, 4, {
        let keys = keys.clone();
        move |inner| prop::collection::vec((keys.clone(), inner), 0..4).prop_map(Part::Section)
    });
    prop::collection::vec((keys, part), 0..5).prop_map(|mut all| {
        let mut known = Vec::new();
        all.retain(|(key, _)| {
            !known.contains(key) && {
                known.push(key.clone());
                true
            }
        });
        all
    })
}

fn unique(members: &[(String, Part)]) -> Vec<&(String, Part)> {
    let is_new = |at: usize| !members[..at].iter().any(|other| other.0 == members[at].0);
    let new = (0..members.len()).filter(|at| is_new(*at));
    new.map(|at| &members[at]).collect()
}

impl Layout {
    fn finish(&self, mut text: String) -> String {
        while text.ends_with(self.end) {
            text.truncate(text.len() - self.end.len());
        }
        let end = if self.ends_line { self.end } else { "" };
        let bom = if self.has_bom { "\u{feff}" } else { "" };
        format!("{bom}{text}{end}")
    }

    fn json(&self, members: &[(String, Part)]) -> String {
        let mut out = String::new();
        if self.comments {
            out += &format!("// first{}", self.end);
        }
        self.json_object(members, 0, &mut out);
        self.finish(out)
    }

    fn json_object(&self, members: &[(String, Part)], depth: usize, out: &mut String) {
        out.push('{');
        let members = unique(members);
        let inner = format!("{}{}", self.end, self.indent.repeat(depth + 1));
        for (at, (key, part)) in members.iter().enumerate() {
            if self.comments && !self.inline && at == 1 {
                *out += &format!("{inner}// \"about\": {{ it");
            }
            *out += if self.inline {
                if at > 0 { " " } else { "" }
            } else {
                &inner
            };
            *out += &format!("{}: ", json!(key));
            match part {
                Part::Text(text) => *out += &json!(text).to_string(),
                Part::Number(number) => *out += &number.to_string(),
                Part::Words(words) => *out += &json!(words).to_string(),
                Part::Section(members) => self.json_object(members, depth + 1, out),
            }
            if at + 1 < members.len() || self.trailing {
                out.push(',');
            }
            if self.comments && at % 2 == 0 {
                *out += if self.inline {
                    " /* , */"
                } else {
                    " // it's, \"one\""
                };
            }
        }
        if !self.inline && (!members.is_empty() || self.trailing) {
            *out += &format!("{}{}", self.end, self.indent.repeat(depth));
        }
        out.push('}');
    }

    fn yaml(&self, members: &[(String, Part)]) -> String {
        let mut out = String::new();
        if self.comments {
            out += &format!("# first{}---{}", self.end, self.end);
        }
        self.yaml_block(members, 0, &mut out);
        self.finish(out)
    }

    fn yaml_block(&self, members: &[(String, Part)], depth: usize, out: &mut String) {
        let unit = if self.indent.len() == 4 { 4 } else { 2 };
        for (at, (key, part)) in unique(members).into_iter().enumerate() {
            if self.comments && at == 1 {
                *out += &format!("# about: it{}", self.end);
            }
            *out += &format!("{}{}:", " ".repeat(unit * depth), json!(key));
            match part {
                Part::Text(text) if self.trailing && !text.is_empty() && depth == 0 => {
                    *out += &format!(" |{}      {}x", self.end, text.trim());
                }
                Part::Text(text) => *out += &format!(" {}", json!(text)),
                Part::Number(number) => *out += &format!(" {number}"),
                Part::Words(words) if self.inline => *out += &format!(" {}", json!(words)),
                // A list at the indentation of its key, with collections in brackets as items.
                Part::Words(words) if self.trailing => {
                    let blank = " ".repeat(unit * depth);
                    for word in words {
                        let item = match word.len() {
                            1 | 2 => "{}".to_owned(),
                            3 => format!("[{word}]"),
                            _ => format!("{{a: {word}}} # c"),
                        };
                        *out += &format!("{}{blank}- {item}", self.end);
                    }
                }
                Part::Words(words) => {
                    for word in words {
                        *out += &format!("{}{}- w{word}", self.end, " ".repeat(unit * depth + 2));
                    }
                }
                Part::Section(members) if self.inline => {
                    *out += " ";
                    let plain = Layout {
                        comments: false,
                        ..self.clone()
                    };
                    plain.json_object(members, 0, out);
                }
                Part::Section(members) if members.is_empty() => {}
                Part::Section(members) => {
                    *out += self.end;
                    self.yaml_block(members, depth + 1, out);
                    continue;
                }
            }
            let is_long =
                self.trailing && depth == 0 && matches!(part, Part::Text(text) if !text.is_empty());
            if self.comments && at % 2 == 0 && !is_long && !matches!(part, Part::Words(_)) {
                *out += " # it's \"one\"";
            }
            *out += self.end;
        }
    }

    fn toml(&self, members: &[(String, Part)]) -> String {
        let mut out = String::new();
        if self.comments {
            out += &format!("# first [x]{}", self.end);
        }
        self.toml_table(members, &mut Vec::new(), &mut out);
        self.finish(out)
    }

    fn toml_table(&self, members: &[(String, Part)], path: &mut Vec<String>, out: &mut String) {
        let members = unique(members);
        for (at, (key, part)) in members.iter().enumerate() {
            let value = match part {
                Part::Text(text) if self.trailing && !text.contains('\'') => format!("'{text}'"),
                Part::Text(text) => json!(text).to_string(),
                Part::Number(number) => number.to_string(),
                Part::Words(words) if self.inline => json!(words).to_string(),
                Part::Words(words) => {
                    let lines = words
                        .iter()
                        .map(|word| format!("{}  \"{word}\", # x", self.end));
                    format!("[{}{}]", lines.collect::<String>(), self.end)
                }
                Part::Section(_) => continue,
            };
            *out += &format!(
                "{}{key}{}={} {value}",
                self.indent, self.indent, self.indent
            );
            if self.comments && at % 2 == 0 {
                *out += " # it's \"one\"";
            }
            *out += self.end;
        }
        for (key, part) in members {
            if let Part::Section(members) = part {
                path.push(key.clone());
                *out += &format!("{}[{}]{}", self.end, path.join("."), self.end);
                self.toml_table(members, path, out);
                path.pop();
            }
        }
    }

    fn dotenv(&self, members: &[(String, Part)]) -> String {
        let mut out = String::new();
        for (at, (key, part)) in unique(members).into_iter().enumerate() {
            if self.comments {
                out += &format!("# about {key}={}", self.end);
            }
            let export = if self.trailing { "export " } else { "" };
            let value = match part {
                Part::Text(text) => format!("'{}'", text.replace('\'', "")),
                Part::Number(number) => number.to_string(),
                _ if self.inline => "\"a\nb\"".to_owned(),
                _ => String::new(),
            };
            let comment = if self.comments && at % 2 == 0 {
                " # one"
            } else {
                ""
            };
            out += &format!("{export}{key}={value}{comment}{}", self.end);
        }
        self.finish(out)
    }

    fn write(&self, syntax: Syntax, members: &[(String, Part)]) -> String {
        match syntax {
            Syntax::Json => self.json(members),
            Syntax::Yaml => self.yaml(members),
            Syntax::Toml => self.toml(members),
            Syntax::Dotenv => self.dotenv(members),
        }
    }
}

/// The values that setup sets.
fn edits(syntax: Syntax) -> Vec<(Vec<PathStep>, Value)> {
    let url = json!("http://127.0.0.1:7333/v1");
    let mut all = vec![(PathStep::keys(&["base_url"]), url.clone())];
    if syntax != Syntax::Dotenv {
        let server = json!({"command": "infold", "args": ["mcp"]});
        all.push((PathStep::keys(&["mcp", "infold"]), server));
        all.push((PathStep::keys(&["env", "base_url"]), url));
    }
    all
}

fn syntaxes() -> impl Strategy<Value = Syntax> {
    prop_oneof![
        Just(Syntax::Json),
        Just(Syntax::Yaml),
        Just(Syntax::Toml),
        Just(Syntax::Dotenv)
    ]
}

/// Sets all that can be set.
fn write(syntax: Syntax, text: &str) -> (String, Vec<Applied>) {
    let mut text = text.to_owned();
    let mut done = Vec::new();
    for (path, value) in edits(syntax) {
        match set(syntax, &text, &path, &value) {
            Ok(Some((new, applied))) => {
                assert_eq!(set(syntax, &new, &path, &value), Ok(None), "twice: {new:?}");
                text = new;
                done.push(applied);
            }
            Ok(None) => {}
            // A list or a text is where a section should be, or a block ends the text without a line end.
            Err(error) => {
                let said = error.to_string();
                let is_known = said.contains("in place") || said.contains("without a line end");
                assert!(is_known, "{error}: {text:?}");
            }
        }
    }
    (text, done)
}

fn undo(syntax: Syntax, text: &str, done: &[Applied]) -> String {
    let mut text = text.to_owned();
    for applied in done.iter().rev() {
        match unset(syntax, &text, applied) {
            Ok(Unset::Done(new)) => text = new,
            other => panic!("{other:?}: {applied:?} in {text:?}"),
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Undo gives the text back byte for byte.
    #[test]
    fn undo_after_write_is_the_identity(
        syntax in syntaxes(), layout in layouts(), members in parts(2)
    ) {
        let before = layout.write(syntax, &members);
        prop_assert!(infold_setup::read(syntax, &before).is_ok() || before.trim().is_empty(),
            "{before:?}: {:?}", infold_setup::read(syntax, &before));
        if infold_setup::read(syntax, &before).is_err() { return Ok(()); }
        let (after, done) = write(syntax, &before);
        prop_assert_eq!(undo(syntax, &after, &done), before);
    }

    /// Changes that others made elsewhere meanwhile stay.
    #[test]
    fn changes_elsewhere_are_kept(
        syntax in syntaxes(), layout in layouts(), members in parts(2)
    ) {
        let before = layout.write(syntax, &members);
        let (after, done) = write(syntax, &before);
        // A value that ours replaced is not elsewhere.
        let is_ours = |applied: &Applied| applied.before.as_ref().is_some_and(|text| text.contains("SENTINEL"));
        prop_assume!(!done.iter().any(is_ours));
        let edited = |text: &str| text.replace("SENTINEL", "other value");
        prop_assert_eq!(undo(syntax, &edited(&after), &done), edited(&before));
    }

    /// A key that was added behind ours stays, and is all that stays.
    #[test]
    fn keys_added_meanwhile_are_kept(
        syntax in syntaxes(), layout in layouts(), members in parts(2)
    ) {
        let before = layout.write(syntax, &members);
        let (after, done) = write(syntax, &before);
        let path = PathStep::keys(&["added_later"]);
        if let Ok(Some((more, added))) = set(syntax, &after, &path, &json!("yes")) {
            let undone = undo(syntax, &more, &done);
            prop_assert_eq!(get(syntax, &undone, &path).expect("valid"), Some(json!("yes")));
            // Brackets that held nothing may have got a line of their own.
            let words = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(words(&undo(syntax, &undone, &[added])), words(&before));
        }
    }
}

/// The agent wrote the whole file anew, in another form and order.
#[test]
fn a_file_that_was_written_anew_loses_our_lines_alone() {
    let before = "{\n  \"b\": 1\n}\n";
    let (after, done) = write(Syntax::Json, before);
    let value: Value = serde_json::from_str(&after).expect("JSON");
    for text in [
        value.to_string(),
        format!("{value:#}\n"),
        format!("{value:#}").replace("  ", "\t"),
    ] {
        let undone = undo(Syntax::Json, &text, &done);
        let left: Value = serde_json::from_str(&undone).expect("JSON");
        assert_eq!(left, json!({"b": 1}), "{undone}");
    }
}

#[test]
fn what_was_changed_is_left() {
    let (after, done) = write(Syntax::Toml, "a = 1\n");
    let edited = after.replace("127.0.0.1:7333", "example.com");
    let found = unset(Syntax::Toml, &edited, &done[0]).expect("valid");
    assert_eq!(found, Unset::Changed(json!("http://example.com/v1")));
    assert_eq!(unset(Syntax::Toml, "a = 1\n", &done[0]), Ok(Unset::Gone));
}

#[test]
fn what_is_not_valid_is_refused_with_its_place() {
    for (syntax, text, said) in [
        (
            Syntax::Json,
            "{\n  \"a\": 1\n  \"b\": 2\n}",
            "line 3, column 3: `,` or `}` is expected",
        ),
        (Syntax::Json, "", "line 1, column 1: a value is missing"),
        (
            Syntax::Json,
            "{\"a\": tru}",
            "line 1, column 7: a value is expected",
        ),
        (
            Syntax::Json,
            "{} {}",
            "line 1, column 4: there is more behind the value",
        ),
        (
            Syntax::Toml,
            "a = 1\nb = no\n",
            "line 2, column 5: a value is expected: texts stand in quotes",
        ),
        (
            Syntax::Toml,
            "[a]\n[b]\n[a]\n",
            "line 3, column 1: the table [a] is there twice",
        ),
        (
            Syntax::Toml,
            "a = 1\na = 2\n",
            "line 2, column 1: the key `a` is there twice",
        ),
        (
            Syntax::Toml,
            "a = \"x\n",
            "line 1, column 5: the text does not end",
        ),
        (
            Syntax::Yaml,
            "a: 1\na: 2\n",
            "line 2, column 1: the key `a` is there twice",
        ),
        (Syntax::Yaml, "a: 1\n b: [\n", "line 2, column 3"),
        (
            Syntax::Dotenv,
            "A=1\nwhat is this\n",
            "line 2, column 1: `NAME=value` is expected",
        ),
    ] {
        let error = set(syntax, text, &PathStep::keys(&["x"]), &json!("y")).expect_err(text);
        assert!(error.to_string().starts_with(said), "{text:?}: {error}");
    }
}

#[test]
fn lists_of_named_entries_are_edited() {
    let before = "models:\n  - name: a\n    apiBase: https://gw/v1 # corp\n  - name: b\n    provider: openai\n";
    let entry = |name: &str, key: &str| {
        let entry = PathStep::Entry("name".to_owned(), name.to_owned());
        vec![
            PathStep::Key("models".to_owned()),
            entry,
            PathStep::Key(key.to_owned()),
        ]
    };
    let mut text = before.to_owned();
    let mut done = Vec::new();
    let server = vec![
        PathStep::Key("mcpServers".to_owned()),
        PathStep::Entry("name".to_owned(), "infold".to_owned()),
    ];
    for (path, value) in [
        (entry("a", "apiBase"), json!("http://B/v1")),
        (entry("b", "apiBase"), json!("http://B/v1")),
        (
            server,
            json!({"name": "infold", "command": "infold", "args": ["mcp"]}),
        ),
    ] {
        let (new, applied) = set(Syntax::Yaml, &text, &path, &value)
            .expect("valid")
            .expect("new");
        (text, _) = (new, done.push(applied));
    }
    assert_eq!(
        text,
        "models:\n  - name: a\n    apiBase: http://B/v1 # corp\n  - name: b\n    provider: openai\n    \
         apiBase: http://B/v1\nmcpServers:\n  - args: [\"mcp\"]\n    command: infold\n    name: infold\n"
    );
    assert_eq!(undo(Syntax::Yaml, &text, &done), before);
}

#[test]
fn values_that_others_moved_about_but_did_not_change_are_taken_back() {
    let server = vec![
        PathStep::Key("mcpServers".to_owned()),
        PathStep::Entry("name".to_owned(), "infold".to_owned()),
    ];
    let value = json!({"name": "infold", "command": "infold"});
    let (after, applied) = set(Syntax::Yaml, "a: b\nmcpServers:\n", &server, &value)
        .expect("valid")
        .expect("new");
    let after = format!("{after}# a comment\n");
    assert_eq!(
        undo(Syntax::Yaml, &after, &[applied]),
        "a: b\nmcpServers:\n# a comment\n"
    );
    let path = vec![
        PathStep::Key("models".to_owned()),
        PathStep::Entry("name".to_owned(), "a".to_owned()),
        PathStep::Key("apiBase".to_owned()),
    ];
    let (_, applied) = set(
        Syntax::Yaml,
        "models:\n- name: a\n",
        &path,
        &json!("http://B/v1"),
    )
    .expect("valid")
    .expect("new");
    for (moved, left) in [
        (
            "models:\n- apiBase: http://B/v1\n  name: a\n",
            "models:\n- name: a\n",
        ),
        (
            "models:\n- apiBase: http://B/v1 # c\n  name: a\n",
            "models:\n-  # c\n  name: a\n",
        ),
    ] {
        assert_eq!(
            undo(Syntax::Yaml, moved, std::slice::from_ref(&applied)),
            left
        );
    }
}

#[test]
fn a_block_at_the_end_without_a_line_end_keeps_its_value() {
    let key = PathStep::keys(&["x"]);
    for text in ["k: |\n  no end", "k: >\n  no end"] {
        let error = set(Syntax::Yaml, text, &key, &json!("y")).expect_err(text);
        assert!(error.to_string().contains("without a line end"), "{error}");
    }
    assert!(set(Syntax::Yaml, "k: |\n  an end\n", &key, &json!("y")).is_ok());
    assert!(set(Syntax::Yaml, "k: plain", &key, &json!("y")).is_ok());
}

#[test]
fn keys_in_lines_that_change_are_not_shown() {
    for (before, shown) in [
        (
            r#"{"a":{"apiKey":"s3\"cret","x":1}}"#,
            r#"- {"a":{"apiKey":"…","x":1}}"#,
        ),
        (
            "a: {api_key: s3cret, headers: {Authorization: Bearer s3cret}}",
            "- a: {api_key: …, headers: {Authorization: …}}",
        ),
        ("OPENAI_API_KEY=s3cret", "- OPENAI_API_KEY=…"),
        (
            r#"x = { keys = ["s3cret"], max_tokens = 5 }"#,
            "- x = { keys = […], max_tokens = 5 }",
        ),
        (
            r#""args": ["--key-is", "sk-s3cret"]"#,
            r#"- "args": ["--key-is", "…"]"#,
        ),
    ] {
        assert_eq!(infold_setup::diff(before, ""), [shown]);
    }
}

#[test]
fn a_comment_behind_brackets_that_replaced_a_value_stays() {
    let before = "mcp:\n  infold: 0 # it's \"one\"";
    let (after, done) = write(Syntax::Yaml, before);
    assert!(after.contains("} # it's \"one\"\n"), "{after}");
    assert_eq!(undo(Syntax::Yaml, &after, &done), before);
}

#[test]
fn a_list_of_brackets_at_the_indentation_of_its_key_may_end_a_text() {
    let list = "k:\n- ";
    let models = "name: x\nmodels:\n- {name: a, provider: openai, model: gpt}\n";
    let items = ["{}", "[]", "[1]", "{} # c", "&x {}", "{\n  a: b\n  }"];
    let texts = items.iter().flat_map(|item| {
        let text = format!("{list}{item}");
        [format!("{text}\n"), format!("\u{feff}{text}\n"), text]
    });
    for before in texts.chain([models.to_owned(), "- {}".to_owned()]) {
        let (after, done) = write(Syntax::Yaml, &before);
        assert_eq!(undo(Syntax::Yaml, &after, &done), before, "{after}");
    }
}

#[test]
fn a_comment_behind_a_quoted_value_stays() {
    let path = PathStep::keys(&["k"]);
    for (before, wanted) in [
        ("k: \"a # \\\" b\" # c\n", "k: new # c\n"),
        ("k: 'it''s'   # c", "k: new   # c"),
        ("k: &x !!str \"a\" # c\n", "k: new # c\n"),
        ("k: ''\nz: 1\n", "k: new\nz: 1\n"),
    ] {
        let (after, applied) = set(Syntax::Yaml, before, &path, &json!("new"))
            .expect("valid")
            .expect("new");
        assert_eq!(after, wanted);
        assert_eq!(undo(Syntax::Yaml, &after, &[applied]), before);
    }
}

/// The entry of the MCP server in Continue's list.
fn entry() -> (Vec<PathStep>, Value) {
    let path = vec![
        PathStep::Key("mcpServers".to_owned()),
        PathStep::Entry("name".to_owned(), "infold".to_owned()),
    ];
    let value = json!({"name": "infold", "command": "infold", "args": ["mcp"]});
    (path, value)
}

#[test]
fn an_entry_that_got_another_form_is_taken_back() {
    let (path, value) = entry();
    let before = "mcpServers:\n  - name: foo\n    command: foo\n";
    let (_, applied) = set(Syntax::Yaml, before, &path, &value)
        .expect("valid")
        .expect("new");
    let ours = "{args: [mcp], command: infold, name: infold}";
    for (changed, left) in [
        (format!("mcpServers: [{{name: foo}}, {ours}]\n"), "mcpServers: [{name: foo}]\n"),
        (format!("mcpServers: [{ours}, {{name: foo}}]\n"), "mcpServers: [{name: foo}]\n"),
        (format!("mcpServers: [{ours}]\n"), "mcpServers: []\n"),
        (
            format!("mcpServers: [\n  {{name: foo}},\n  {ours}\n]\n"),
            "mcpServers: [\n  {name: foo}\n]\n",
        ),
        (
            "mcpServers:\n  -\n    name: foo\n  -\n    name: infold\n    command: infold\n    args:\n      - mcp\n".to_owned(),
            "mcpServers:\n  -\n    name: foo\n",
        ),
        (
            "mcpServers:\n-\n  name: infold\n  command: infold\n  args:\n  - mcp\n-\n  name: foo\n".to_owned(),
            "mcpServers:\n-\n  name: foo\n",
        ),
    ] {
        assert_eq!(undo(Syntax::Yaml, &changed, std::slice::from_ref(&applied)), left);
    }
}

#[test]
fn line_ends_may_be_converted_meanwhile() {
    let path = PathStep::keys(&["extensions", "infold"]);
    let value = json!({"cmd": "infold", "timeout": 60});
    for (syntax, before) in [
        (
            Syntax::Yaml,
            "GOOSE_PROVIDER: openai\nextensions: {}\nz: 1\n",
        ),
        (Syntax::Yaml, "a: 1\nextensions: {} # c\nz: 1\n"),
        (
            Syntax::Json,
            "{\n  \"extensions\": {\n    \"A\": \"b\"\n  }\n}\n",
        ),
        (Syntax::Json, "{\"extensions\": {}}"),
        (Syntax::Toml, "a = 1\n"),
    ] {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let set = |text: &str| {
            set(syntax, text, &path, &value)
                .expect("valid")
                .expect("new")
        };
        let (after, applied) = set(before);
        assert_eq!(undo(syntax, &crlf(&after), &[applied]), crlf(before));
        let (after, applied) = set(&crlf(before));
        let lf = after.replace("\r\n", "\n");
        assert_eq!(undo(syntax, &lf, &[applied]), before);
    }
}

#[test]
fn an_empty_mapping_in_brackets_stays_one() {
    let path = PathStep::keys(&["extensions", "infold"]);
    let value = json!({"cmd": "infold", "timeout": 60});
    let (_, applied) = set(Syntax::Yaml, "z: b\nextensions: {}\na: b\n", &path, &value)
        .expect("valid")
        .expect("new");
    for (dumped, left) in [
        (
            "a: b\nextensions:\n  infold:\n    cmd: infold\n    timeout: 60\n",
            "a: b\nextensions: {}\n",
        ),
        (
            "extensions: # c\n  infold:\n    cmd: infold\n    timeout: 60\na: b\n",
            "extensions: # c\n  {}\na: b\n",
        ),
    ] {
        let undone = undo(Syntax::Yaml, dumped, std::slice::from_ref(&applied));
        assert_eq!(undone, left);
    }
}

#[test]
fn a_blank_or_a_comment_may_stand_behind_an_opening_bracket() {
    let path = PathStep::keys(&["x", "new"]);
    for before in [
        "x: { a: b }\n",
        "x: { # c\n  a: b,  # d\n  }\n",
        "x: &y {\n  a: b\n  }\n",
        "x: {   }\nz: 1\n",
    ] {
        let (after, applied) = set(Syntax::Yaml, before, &path, &json!("y"))
            .expect(before)
            .expect("new");
        assert_eq!(undo(Syntax::Yaml, &after, &[applied]), before);
    }
    let (after, _) = set(Syntax::Yaml, "{ a: b}\n", &path[1..], &json!("y"))
        .expect("valid")
        .expect("new");
    assert_eq!(after, "{ a: b, \"new\": \"y\"}\n");
}
