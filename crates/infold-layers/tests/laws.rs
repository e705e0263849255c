//! Properties of every document, for any state and any limit.

use std::io::Write as _;
use std::process::{Command, Stdio};

use infold_layers::{
    Attribute, Author, BuildError, BuildRequest, BuiltDocument, Change, DocumentPart, Field,
    FieldForm, LayerItem, LayerState, Priority, STATUSES, Verdict, build, decode_changes,
    encode_changes, unescape,
};
use infold_wire::Json;
use infold_wire::tokens::{Encoding, count};
use proptest::prelude::*;
use quick_xml::events::Event;

/// Texts that try to leave their element, that XML cannot hold, or that are merely long.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z]{1,8}( [a-z]{1,8}){0,12}",
        2 => prop::collection::vec(
            prop::sample::select(vec![
                "]]>", "</context>", "<system>", "&amp;", "&#0;", "\"", "'", "\u{0}", "\u{1b}", "\r\n", "\n", "\t",
                "\\u{1}", "\\", "\u{ffff}", "日本語", "😀", " ", "a", "<!--", "?>", "\u{85}", "\u{2028}",
            ]),
            1..12,
        ).prop_map(|parts| format!("x{}", parts.concat())),
        1 => "[a-z]{3,6}( [a-z]{3,6}){60,120}",
    ]
}

fn any_item(field: Field) -> BoxedStrategy<LayerItem> {
    let attributes = field.attributes();
    (
        any_text(),
        prop::collection::vec(any_text(), attributes.len()),
        -1..2_i64,
        any::<bool>(),
    )
        .prop_map(move |(text, values, priority, has_attributes)| {
            let text = match field.form() {
                FieldForm::Phase => "planning".to_owned(),
                FieldForm::Environment => "prod".to_owned(),
                FieldForm::Schema => r#"{"type":"object"}"#.to_owned(),
                FieldForm::Time => "2026-01-31T18:00:00Z".to_owned(),
                FieldForm::Text | FieldForm::List | FieldForm::Map => text,
            };
            let mut item = LayerItem {
                priority,
                ..LayerItem::new(text)
            };
            for (attribute, value) in attributes.iter().zip(values) {
                let value = match attribute {
                    Attribute::Relevance => "0.5".to_owned(),
                    Attribute::Status if field == Field::Plan => {
                        STATUSES[value.len() % STATUSES.len()].to_owned()
                    }
                    _ => value,
                };
                if has_attributes || field.form() == FieldForm::Map {
                    item.attributes.insert(*attribute, value);
                }
            }
            item.time = (field.form() == FieldForm::Time).then_some(1);
            item
        })
        .boxed()
}

fn any_state() -> impl Strategy<Value = LayerState> {
    let fields: Vec<Field> = Field::all().collect();
    prop::sample::subsequence(fields, 0..20).prop_flat_map(|fields| {
        let each: Vec<BoxedStrategy<(Field, Vec<LayerItem>)>> = fields
            .into_iter()
            .map(|field| {
                let most = if field.is_list() { 9 } else { 2 };
                let items = prop::collection::vec(any_item(field), 1..most);
                items.prop_map(move |items| (field, items)).boxed()
            })
            .collect();
        each.prop_map(|fields| {
            let mut state = LayerState::default();
            for (field, items) in fields {
                let change = Change::Set(field, items);
                state
                    .apply(&change, Author::Person)
                    .expect("a person may set every field");
            }
            state
        })
    })
}

/// The names and values of attributes.
type Attributes = Vec<(String, String)>;

/// The elements without children, with their attributes and texts, in order.
fn leaves(document: &str) -> Vec<(String, Attributes, String)> {
    let mut reader = quick_xml::Reader::from_str(document);
    let mut leaves = Vec::new();
    let mut open: Vec<(String, Attributes, String, bool)> = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(start) => {
                if let Some(parent) = open.last_mut() {
                    parent.3 = true;
                }
                let name = start.name();
                let name = AsRef::<str>::as_ref(&name).to_owned();
                let attributes = start.attributes().map(|one| {
                    let one = one.expect("an attribute");
                    let key = AsRef::<str>::as_ref(&one.key).to_owned();
                    let raw = one.value.into_owned();
                    (
                        key,
                        quick_xml::escape::unescape(&raw)
                            .expect("escapes")
                            .into_owned(),
                    )
                });
                open.push((name, attributes.collect(), String::new(), false));
            }
            Event::Text(text) => {
                let text: &str = &text;
                if let Some(top) = open.last_mut() {
                    top.2.push_str(text);
                }
            }
            Event::GeneralRef(name) => {
                let name: &str = &name;
                let text = quick_xml::escape::unescape(&format!("&{name};"))
                    .expect("a reference")
                    .into_owned();
                if let Some(top) = open.last_mut() {
                    top.2.push_str(&text);
                }
            }
            Event::End(_) => {
                let (name, attributes, text, has_children) = open.pop().expect("an open element");
                if !has_children {
                    leaves.push((name, attributes, text));
                }
            }
            Event::Eof => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(open.is_empty());
    leaves
}

fn condensed(text: &str, tokens: u64) -> Option<String> {
    let mut short: String = text.chars().take(4 * tokens as usize).collect();
    while count(Encoding::O200k, &short) > tokens {
        short.pop();
    }
    Some(short)
}

fn request(max_tokens: u64, min_relevance: f64) -> BuildRequest<'static> {
    BuildRequest {
        min_relevance,
        condense: &condensed,
        ..BuildRequest::new(max_tokens)
    }
}

fn is_in(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::In | Verdict::Condensed { .. })
}

/// The document with one more item, as the builder would count it.
fn tokens_with(state: &LayerState, built: &BuiltDocument, field: Field, index: usize) -> u64 {
    let mut with = LayerState::default();
    for decision in &built.decisions {
        let is_wanted =
            is_in(decision.verdict) || (decision.field, decision.index) == (field, index);
        if is_wanted {
            with.extend(
                decision.field,
                [state.items(decision.field)[decision.index - 1].clone()],
            );
        }
    }
    let all = build(&with, &BuildRequest::new(1 << 40)).expect("room for all");
    count(Encoding::O200k, &all.document())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The document is within the limit, by the real tokenizer, and counted as it is.
    #[test]
    fn it_fits(state in any_state(), max in 0_u64..3_000) {
        match build(&state, &request(max, 0.0)) {
            Ok(built) => {
                let tokens = count(Encoding::O200k, &built.document());
                prop_assert!(tokens <= max * 90 / 100);
                prop_assert_eq!(tokens, built.tokens);
            }
            Err(BuildError::TooSmall { needed, limit, .. }) => prop_assert!(needed > limit),
        }
    }

    /// Critical parts are whole, or there is no document.
    #[test]
    fn critical_parts_are_whole(state in any_state(), max in 0_u64..2_000) {
        if let Ok(built) = build(&state, &request(max, 0.0)) {
            for decision in &built.decisions {
                if decision.field.part().priority() == Priority::Critical {
                    prop_assert_eq!(decision.verdict, Verdict::In);
                }
            }
        }
    }

    /// An item is out only if it does not fit beside those that are in.
    #[test]
    fn what_fits_is_in(state in any_state(), max in 50_u64..1_500) {
        let Ok(built) = build(&state, &BuildRequest::new(max)) else { return Ok(()) };
        for decision in &built.decisions {
            if let Verdict::NoRoom { .. } = decision.verdict {
                let with = tokens_with(&state, &built, decision.field, decision.index);
                // The number of a step is its place, which a smaller state changes.
                let slack = if decision.field == Field::Plan { 2 } else { 0 };
                prop_assert!(with + slack > built.limit, "{:?} {with} {}", decision, built.limit);
            }
        }
    }

    /// Every item that is in can be read back from its element, its attributes too.
    #[test]
    fn items_come_back(state in any_state()) {
        let built = build(&state, &BuildRequest::new(1 << 40)).expect("room for all");
        let document = built.document();
        let mut leaves = leaves(&document).into_iter();
        for (field, items) in state.fields() {
            for item in items {
                let is_marked = |attributes: &[(String, String)]| attributes.iter().any(|(name, _)| name == "escaped");
                if field == Field::Retrieved {
                    // The mark stands on the element around both.
                    if let Some(source) = item.attribute(Attribute::Source) {
                        let (name, _, text) = leaves.next().expect("a source");
                        prop_assert_eq!(name, "source");
                        prop_assert!(text == source || unescape(&text) == source);
                    }
                    let (name, _, text) = leaves.next().expect("a content");
                    prop_assert_eq!(name, "content");
                    prop_assert!(text == item.text || unescape(&text) == item.text);
                    continue;
                }
                let (_, attributes, text) = leaves.next().expect("an element for each item");
                let read = |text: &str| if is_marked(&attributes) { unescape(text) } else { text.to_owned() };
                prop_assert_eq!(read(&text), item.text.clone());
                for (attribute, value) in &item.attributes {
                    let found = attributes.iter().find(|(name, _)| name == attribute.name());
                    prop_assert_eq!(found.map(|(_, text)| read(text)), Some(value.clone()));
                }
            }
        }
        prop_assert!(leaves.next().is_none());
    }

    /// The parts of a document that go to different places are all of it.
    #[test]
    fn stable_and_changing_parts_are_the_whole(state in any_state(), max in 500_u64..3_000) {
        let Ok(built) = build(&state, &request(max, 0.0)) else { return Ok(()) };
        let count = |document: Option<String>| document.map_or(0, |document| leaves(&document).len());
        let stable = count(built.document_of(Field::is_stable));
        let changing = count(built.document_of(|field| !field.is_stable()));
        prop_assert_eq!(stable + changing, leaves_or_none(&built.document()));
    }

    /// A state is what its changes make of nothing, also when they were written and read.
    #[test]
    fn changes_are_kept(state in any_state()) {
        let text = encode_changes(&state.to_changes());
        let changes = decode_changes(Json::parse(text.as_bytes()).expect("JSON")).expect("changes");
        let mut again = LayerState::default();
        for change in &changes {
            again.apply(change, Author::Person).expect("what was applied before");
        }
        prop_assert_eq!(again, state);
    }

    /// A model changes its phase, its memory and its work, and nothing else.
    #[test]
    fn a_model_changes_nothing_that_binds_it(state in any_state(), at in any::<prop::sample::Index>()) {
        let fields: Vec<Field> = Field::all().collect();
        let field = fields[at.index(fields.len())];
        let mut changed = state.clone();
        let result = changed.apply(&Change::Set(field, vec![]), Author::Model);
        let is_binding = matches!(field.part(), DocumentPart::System | DocumentPart::Task | DocumentPart::Runtime)
            || matches!(field.part(), DocumentPart::Observations | DocumentPart::Retrieved);
        prop_assert_eq!(result.is_err(), is_binding);
        if is_binding {
            prop_assert_eq!(changed, state);
        }
    }
}

fn leaves_or_none(document: &str) -> usize {
    if document.is_empty() {
        0
    } else {
        leaves(document).len()
    }
}

/// Python's parser (expat) reads what ours wrote.
#[test]
fn another_parser_reads_the_documents() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut documents = Vec::new();
    for _ in 0..200 {
        let state = any_state()
            .new_tree(&mut runner)
            .expect("a state")
            .current();
        let built = build(&state, &BuildRequest::new(1 << 40)).expect("room for all");
        if !built.document().is_empty() {
            documents.push(built.document());
        }
    }
    let program = "import sys, xml.parsers.expat as x\n\
        n = 0\n\
        for d in sys.stdin.buffer.read().split(b'\\0')[:-1]:\n    \
            x.ParserCreate().Parse(d, True); n += 1\n\
        print(n)";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3, which the tests of client libraries need too");
    let mut input = python.stdin.take().expect("piped");
    for document in &documents {
        input.write_all(document.as_bytes()).expect("read");
        input.write_all(b"\0").expect("read");
    }
    drop(input);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        documents.len().to_string()
    );
}

#[test]
fn a_text_is_whole_where_it_fits_and_else_as_long_as_it_can_be() {
    let mut state = LayerState::default();
    let draft: Vec<String> = (0..400)
        .map(|at| format!("Sentence {at} says something."))
        .collect();
    state.fill(Field::Draft, vec![LayerItem::new(draft.join(" "))]);
    let whole = build(&state, &request(10_000, 0.0)).expect("room");
    assert_eq!(whole.decisions[0].verdict, Verdict::In);
    let short = build(&state, &request(1_000, 0.0)).expect("room");
    assert!(matches!(
        short.decisions[0].verdict,
        Verdict::Condensed { .. }
    ));
    assert!(
        short.tokens <= short.limit && short.tokens > short.limit / 2,
        "{}",
        short.tokens
    );
}
