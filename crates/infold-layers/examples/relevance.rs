//! Measures relevance and the building of a document: `cargo run --release -p infold-layers --example relevance -- tests/search/*.jsonl`.
//!
//! For each question of the files the documents of its set are ranked by relevance, and by how many of the question's words
//! they have; the table says how often an answer is among the first five.

use std::collections::HashSet;
use std::time::Instant;

use infold_layers::{Author, BuildRequest, Change, Field, LayerItem, LayerState, build, relevance};
use infold_wire::Json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<28} {:>9} {:>9} {:>9}",
        "set", "questions", "relevance", "words"
    );
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file)?;
        let (mut asked, mut ours, mut plain) = (0, 0.0, 0.0);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let set = Json::parse(line.as_bytes())?;
            let string = |json: Json<'_>, name: &str| {
                let text = json.get(name).and_then(Json::text);
                text.map(|text| text.into_owned()).unwrap_or_default()
            };
            let docs: Vec<(String, String)> = set
                .get("docs")
                .into_iter()
                .flat_map(Json::elements)
                .map(|doc| (id_of(doc.get("id")), string(doc, "text")))
                .collect();
            let texts: Vec<&str> = docs.iter().map(|(_, text)| text.as_str()).collect();
            for question in set.get("questions").into_iter().flat_map(Json::elements) {
                let goal = string(question, "q");
                let answers = question.get("ids").into_iter().flat_map(Json::elements);
                let answers: HashSet<String> = answers.map(|id| id_of(Some(id))).collect();
                asked += 1;
                let hits = |scores: &[f64]| {
                    let mut order: Vec<usize> = (0..scores.len()).collect();
                    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
                    let mut first = order.iter().take(5);
                    f64::from(first.any(|at| answers.contains(&docs[*at].0)))
                };
                ours += hits(&relevance(&goal, &texts));
                plain += hits(&by_words(&goal, &texts));
            }
        }
        let name = file.rsplit('/').next().unwrap_or(&file);
        let share = |hits: f64| hits / f64::from(asked.max(1));
        println!(
            "{name:<28} {asked:>9} {:>9.3} {:>9.3}",
            share(ours),
            share(plain)
        );
    }
    measure_build()
}

fn id_of(json: Option<Json<'_>>) -> String {
    let text = json.and_then(|json| json.text().map(|text| text.into_owned()));
    text.or_else(|| json.map(|json| String::from_utf8_lossy(json.bytes()).into_owned()))
        .unwrap_or_default()
}

/// How many words of the goal a text has, split at white space.
fn by_words(goal: &str, texts: &[&str]) -> Vec<f64> {
    let goal = goal.to_lowercase();
    let words: HashSet<&str> = goal.split_whitespace().collect();
    let score = |text: &&str| {
        let text = text.to_lowercase();
        let own: HashSet<&str> = text.split_whitespace().collect();
        own.intersection(&words).count() as f64
    };
    texts.iter().map(score).collect()
}

/// Builds a document of a state with 100,000 facts.
fn measure_build() -> Result<(), Box<dyn std::error::Error>> {
    let mut state = LayerState::default();
    let goal = LayerItem::new("find out why service 4711 answers slowly");
    state.apply(&Change::Set(Field::Goal, vec![goal]), Author::Person)?;
    let facts = (0..100_000)
        .map(|at| LayerItem::new(format!("service {at} answers after {} ms", at % 977)));
    state.extend(Field::Facts, facts);
    let (start, processor_start) = (Instant::now(), processor_millis());
    let built = build(&state, &BuildRequest::new(8_000))?;
    let millis = start.elapsed().as_millis();
    let processor = processor_millis() - processor_start;
    let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = memory.lines().find(|line| line.starts_with("VmHWM"));
    println!(
        "100,000 facts: {millis} ms, {processor} ms of processor time, {} of {} tokens; {}",
        built.tokens,
        built.limit,
        peak.unwrap_or_default()
    );
    assert!(built.document().contains("service 4711 "));
    Ok(())
}

/// The processor time of this process so far, in milliseconds; zero where the system does not say.
fn processor_millis() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    nanos.unwrap_or(0_u64) / 1_000_000
}
