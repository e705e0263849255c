//! Plants facts at the start of a conversation, lets work follow, and asks for each: is its value in the request?

use infold::recall::{recall_references, scanned_mentions};
use infold::summarizer::Extractive;
use infold::{Aim, Hooks, ManageError, Scratch, ScratchError, manage};
use infold_log::View;
use infold_log::steer::{Side, Target};
use infold_wire::tokens::{Encoding, count};
use serde_json::json;

use crate::{ParsedSession, RecordedSession, ReplayError};

/// A fact that the user states, and a later question about it.
#[derive(Clone, Copy, Debug)]
pub struct PlantedFact {
    /// The kind of the fact.
    pub kind: &'static str,
    /// The sentence of the user; a second one corrects the first.
    pub said: &'static [&'static str],
    /// The later message.
    pub question: &'static str,
    /// The value that has to be in the request; the question does not hold it.
    pub value: &'static str,
}

/// The place of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactPlace {
    /// In a message of the user's own.
    Alone,
    /// In the middle of minutes that the user pastes.
    Pasted,
    /// In the middle of a long answer of the assistant.
    Answered,
    /// In the middle of a long result of a tool, among names.
    Result,
}

/// All places.
pub const FACT_PLACES: [FactPlace; 4] = [
    FactPlace::Alone,
    FactPlace::Pasted,
    FactPlace::Answered,
    FactPlace::Result,
];

/// Whether a fact was in the request that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedResult {
    /// The kind of the fact.
    pub kind: &'static str,
    /// Whether the fact's value is in the bytes of the request.
    pub is_in_request: bool,
    /// The number of excerpts that were recalled for the question.
    pub excerpts: usize,
}

const fn fact(
    kind: &'static str,
    said: &'static [&'static str],
    question: &'static str,
    value: &'static str,
) -> PlantedFact {
    PlantedFact {
        kind,
        said,
        question,
        value,
    }
}

/// One fact of each of 20 kinds.
pub const PLANTED_FACTS: [PlantedFact; 20] = [
    fact(
        "constraint",
        &[
            "Whatever happens, the nightly export must not touch ledger_archive while the Rotterdam office is open.",
        ],
        "May I run the nightly export against ledger_archive now?",
        "Rotterdam",
    ),
    fact(
        "decision",
        &["We decided against Redis for sessions, because of the Helsinki audit."],
        "Why did we decide against Redis for sessions?",
        "Helsinki",
    ),
    fact(
        "value",
        &["MAX_BATCH_ROWS is 7340 from now on."],
        "What did I say MAX_BATCH_ROWS is?",
        "7340",
    ),
    fact(
        "path",
        &["The golden files of the ledger are kept in /srv/fixtures/golden-2019."],
        "Where are the golden files kept?",
        "golden-2019",
    ),
    fact(
        "error text",
        &["On Windows the linker stops with \"LNK1181: cannot open input file zstd_static.lib\"."],
        "Which file did LNK1181 complain about?",
        "zstd_static.lib",
    ),
    fact(
        "name in Japanese",
        &["担当者は田中美咲さんで、内線は4471です。"],
        "田中美咲さんの内線は何番でしたか？",
        "4471",
    ),
    fact(
        "corrected value",
        &[
            "The retry window is 45 minutes.",
            "No, make the retry window 95 minutes.",
        ],
        "How long is the retry window?",
        "95 minutes",
    ),
    fact(
        "port",
        &["The staging gateway listens on port 48213."],
        "Which port does the staging gateway listen on?",
        "48213",
    ),
    fact(
        "commit hash",
        &["The rounding regression came in with commit 9f3c2ab7d1."],
        "Which commit brought the rounding regression?",
        "9f3c2ab7d1",
    ),
    fact(
        "URL",
        &["The runbook for pagers is https://wiki.example.net/ops/17-night."],
        "Give me the link to the pagers runbook, please.",
        "17-night",
    ),
    fact(
        "environment variable",
        &["CI needs LEDGER_SIGNING_HINT set to teal-otter."],
        "What must LEDGER_SIGNING_HINT be set to?",
        "teal-otter",
    ),
    fact(
        "command",
        &["Rebuild the catalogue with `make -C tools recatalogue FAST=3`."],
        "How do I rebuild the catalogue?",
        "FAST=3",
    ),
    fact(
        "version",
        &["We stay on protoc 24.7.1, since 25 breaks the plugin."],
        "Which protoc do we stay on?",
        "24.7.1",
    ),
    fact(
        "date",
        &["The cutover of the harbour system is on 2031-08-19."],
        "When is the harbour cutover?",
        "2031-08-19",
    ),
    fact(
        "person",
        &["Oluwaseun Adeyemi signs off on every schema change."],
        "Who signs off on a schema change?",
        "Oluwaseun",
    ),
    fact(
        "quoted phrase",
        &["Marketing insists on the wording \"calm seas, full holds\" in the footer."],
        "What wording does marketing want in the footer?",
        "calm seas",
    ),
    fact(
        "table name",
        &["Refunds are booked in acct_refund_lines_v3."],
        "Which table are refunds booked in?",
        "acct_refund_lines_v3",
    ),
    fact(
        "function name",
        &["The harbour clock has to go through computeTideOffset."],
        "Which function does the harbour clock go through?",
        "computeTideOffset",
    ),
    fact(
        "number with a unit",
        &["The gantry crane lifts 1850 kg at most."],
        "How much does the gantry crane lift?",
        "1850 kg",
    ),
    fact(
        "configuration key",
        &["Lazy flushing is turned off by sync.lazyFlush in app.toml."],
        "Which key turns off lazy flushing?",
        "sync.lazyFlush",
    ),
];

/// States all facts, appends work of at least `tokens` tokens, folds before each reply, and then asks for each fact in
/// turn.
///
/// Every question comes in the same state: earlier questions are rewound. `aim.recall` sets whether messages are
/// recalled.
pub fn plant_facts(
    work: &[RecordedSession],
    aim: &Aim,
    tokens: u64,
    place: FactPlace,
) -> Result<Vec<PlantedResult>, ReplayError> {
    let mut task = Scratch::new()?;
    task.push(text("user", "Help me with the harbour ledger."))?;
    task.push(text("assistant", "Gladly."))?;
    for fact in &PLANTED_FACTS {
        for said in fact.said {
            for message in stated(said, place, work) {
                task.push(message)?;
            }
            fold(&mut task, aim)?;
            task.push(text("assistant", "Noted."))?;
        }
    }
    append_work(&mut task, work, aim, tokens)?;
    let mut mentions = scanned_mentions();
    let mut results = Vec::new();
    for fact in &PLANTED_FACTS {
        task.push(text("user", fact.question))?;
        fold(&mut task, aim)?;
        let writer = task.writer()?;
        let recalled = match aim.recall {
            Some(limits) => recall_references(writer, limits, &mut mentions),
            None => Ok(Vec::new()),
        };
        let recalled = recalled.map_err(ScratchError::from)?;
        let log = writer.log();
        let view = View::of(log.state().shown(), log)?;
        let sent = String::from_utf8_lossy(&log.rendered(&view)?).into_owned();
        let last = log.state().shown().last();
        results.push(PlantedResult {
            kind: fact.kind,
            is_in_request: sent.contains(fact.value),
            excerpts: recalled.len(),
        });
        if let Some(last) = last {
            writer.rewind(Side::Before, Target::Message(last.get()))?;
        }
    }
    Ok(results)
}

/// Returns the messages that state a fact; the model answers the last of them.
fn stated(said: &str, place: FactPlace, work: &[RecordedSession]) -> Vec<Vec<u8>> {
    let minutes = || {
        let line = |at: usize| {
            format!(
                "{at}. Berth {} reported nothing unusual in watch {}.",
                at * 7 % 31,
                at % 5
            )
        };
        in_the_middle(said, line)
    };
    match place {
        FactPlace::Alone => vec![text("user", said)],
        FactPlace::Pasted => vec![text("user", &minutes())],
        FactPlace::Answered => vec![
            text("user", "Sum up the minutes."),
            text("assistant", &minutes()),
            text("user", "Good."),
        ],
        FactPlace::Result => {
            let of = said.len() * 31 + usize::from(said.as_bytes()[0]);
            let line = |at: usize| {
                let [worker, queue, rows] = [at * 17 + of, at * 5 + of, at * of].map(|n| n % 9_000);
                format!(
                    "worker_{worker} takes {rows} rows of queue_{queue} from node-{}",
                    at + of
                )
            };
            let mut all = vec![text("user", "Read the next page of the handbook.")];
            all.extend(call_and_result(&in_the_middle(said, line), of, work));
            all
        }
    }
}

fn in_the_middle(said: &str, line: impl Fn(usize) -> String) -> String {
    const LINES: usize = 60;
    let lines = (1..=LINES).map(|at| {
        if at == LINES / 2 {
            said.to_owned()
        } else {
            line(at)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a call and its result as the sessions write them.
fn call_and_result(result: &str, number: usize, work: &[RecordedSession]) -> [Vec<u8>; 2] {
    let id = format!("call_page_{number}");
    let mut messages = work.iter().flat_map(|session| &session.messages);
    let has_blocks = messages.any(|bytes| bytes.windows(13).any(|part| part == b"\"tool_use_id\""));
    let messages = if has_blocks {
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "page", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]}),
        ]
    } else {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "page", "arguments": "{}"}});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ]
    };
    messages.map(|message| message.to_string().into_bytes())
}

/// Appends sessions, each up to its last request, until there are enough tokens; starts again if they are too short.
fn append_work(
    task: &mut Scratch,
    work: &[RecordedSession],
    aim: &Aim,
    tokens: u64,
) -> Result<(), ReplayError> {
    let mut done = 0;
    while done < tokens {
        let before = done;
        for session in work {
            let Ok(parsed) = ParsedSession::without_terms(session) else {
                continue;
            };
            let is_request = |at: &usize| parsed.messages[*at].is_request();
            let requests: Vec<usize> = (0..parsed.len()).filter(is_request).collect();
            let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
                continue;
            };
            for at in *first..*last {
                if done >= tokens && requests.contains(&at) {
                    return Ok(());
                }
                if parsed.messages[at].role == infold_log::Role::Assistant {
                    fold(task, aim)?;
                }
                let text = parsed.messages[at].text();
                done += count(Encoding::O200k, &text);
                task.push(session.messages[at].clone())?;
            }
        }
        if done == before {
            break;
        }
    }
    Ok(())
}

/// Folds as far as the next request needs; one that does not fit stays unchanged.
fn fold(task: &mut Scratch, aim: &Aim) -> Result<(), ReplayError> {
    match manage(task.writer()?, aim, &mut Extractive, &Hooks::default()) {
        Ok(_) | Err(ManageError::Floor { .. } | ManageError::Cancelled) => Ok(()),
        Err(ManageError::Step(error)) => Err(error.into()),
        Err(ManageError::Log(error)) => Err(error.into()),
    }
}

fn text(role: &str, content: &str) -> Vec<u8> {
    json!({"role": role, "content": content})
        .to_string()
        .into_bytes()
}
