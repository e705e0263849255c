//! Measures the search on sets of documents and questions: ours beside plain FTS5, in one run.
//!
//! Reads files of JSON Lines `{"docs":[{"id","text"}],"questions":[{"q","ids":[…]}]}`. The documents of a line are one conversation, in
//! order; a question is answered by any of its ids. `--misses` lists the questions whose answer is not among the first five.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use infold_store::{Contexts, Durability, Matching, Metadata, SearchRequest};
use rusqlite::Connection;
use serde_json::{Value, json};

/// The ranks up to which hits are counted.
const PLACES: [usize; 3] = [1, 5, 20];

fn main() -> ExitCode {
    let (flags, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|arg| arg.starts_with("--"));
    if files.is_empty() || flags.iter().any(|flag| flag != "--misses") {
        eprintln!("usage: eval-search [--misses] FILE…");
        return ExitCode::from(2);
    }
    match run(&files, !flags.is_empty()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(files: &[String], lists_misses: bool) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<28} {:<10} {:>9} {:>7} {:>7} {:>7} {:>7}",
        "set", "search", "questions", "hit@1", "hit@5", "hit@20", "MRR"
    );
    let mut totals: [Figures; 3] = Default::default();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let mut figures: [Figures; 3] = Default::default();
        for (at, line) in (1..)
            .zip(text.lines())
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let set = Set::read(line).map_err(|error| format!("{file}, line {at}: {error}"))?;
            let found = [set.ours()?, set.plain("unicode61")?, set.plain("trigram")?];
            for (found, figures) in found.iter().zip(&mut figures) {
                figures.add(&set, found);
            }
            if lists_misses {
                set.print_misses(&found[0]);
            }
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        print_figures(name, &figures);
        for (total, figures) in totals.iter_mut().zip(&figures) {
            total.join(figures);
        }
    }
    if files.len() > 1 {
        print_figures("all", &totals);
    }
    Ok(())
}

fn print_figures(name: &str, figures: &[Figures; 3]) {
    for (search, figures) in ["ours", "unicode61", "trigram"].iter().zip(figures) {
        let share = |sum: f64| sum / (figures.questions as f64).max(1.0);
        let [one, five, twenty] = figures.hits.map(|hits| share(hits as f64));
        println!(
            "{name:<28} {search:<10} {:>9} {one:>7.3} {five:>7.3} {twenty:>7.3} {:>7.3}",
            figures.questions,
            share(figures.reciprocal)
        );
    }
}

#[derive(Default)]
struct Figures {
    questions: usize,
    hits: [usize; PLACES.len()],
    reciprocal: f64,
}

impl Figures {
    fn add(&mut self, set: &Set, found: &[Vec<usize>]) {
        for ((_, wanted), found) in set.questions.iter().zip(found) {
            self.questions += 1;
            let place = found.iter().position(|doc| wanted.contains(doc));
            let Some(place) = place else { continue };
            for (hits, within) in self.hits.iter_mut().zip(PLACES) {
                *hits += usize::from(place < within);
            }
            self.reciprocal += 1.0 / (place + 1) as f64;
        }
    }

    fn join(&mut self, other: &Figures) {
        self.questions += other.questions;
        for (hits, more) in self.hits.iter_mut().zip(other.hits) {
            *hits += more;
        }
        self.reciprocal += other.reciprocal;
    }
}

/// One conversation: its documents, and questions with the documents that answer them.
struct Set {
    docs: Vec<String>,
    questions: Vec<(String, Vec<usize>)>,
}

impl Set {
    fn read(line: &str) -> Result<Set, Box<dyn Error>> {
        let value: Value = serde_json::from_str(line)?;
        let list = |name: &str| value[name].as_array().ok_or(format!("no list \"{name}\""));
        let mut ids = HashMap::new();
        let mut docs = Vec::new();
        for doc in list("docs")? {
            ids.insert(doc["id"].to_string(), docs.len());
            docs.push(
                doc["text"]
                    .as_str()
                    .ok_or("a document has no text")?
                    .to_owned(),
            );
        }
        let mut questions = Vec::new();
        for question in list("questions")? {
            let text = question["q"].as_str().ok_or("a question has no \"q\"")?;
            let wanted = question["ids"].as_array().into_iter().flatten();
            let wanted = wanted.filter_map(|id| ids.get(&id.to_string()).copied());
            questions.push((text.to_owned(), wanted.collect()));
        }
        Ok(Set { docs, questions })
    }

    /// Returns the results of our search for each question.
    fn ours(&self) -> Result<Vec<Vec<usize>>, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default())?;
        let messages = self.docs.iter().map(|text| {
            // A message without text is not one that a log takes.
            let text = if text.trim().is_empty() { "-" } else { text };
            json!({"role": "user", "content": text}).to_string()
        });
        let messages: Vec<String> = messages.collect();
        contexts.write(task)?.0.append(&messages)?;
        let mut found = Vec::new();
        for (question, _) in &self.questions {
            let mut request = SearchRequest::new(Matching::Words(question));
            request.tasks = Some(vec![task]);
            request.patience = Duration::from_secs(600);
            let hits = contexts.search(&request)?.hits;
            let docs = hits.iter().map(|hit| hit.seq.get() as usize - 1);
            found.push(docs.collect());
        }
        Ok(found)
    }

    /// Returns the results of plain FTS5: all words of the question, any of which may match.
    fn plain(&self, tokenizer: &str) -> Result<Vec<Vec<usize>>, Box<dyn Error>> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(&format!(
            "CREATE VIRTUAL TABLE docs USING fts5 (text, tokenize = '{tokenizer}')"
        ))?;
        for (at, text) in self.docs.iter().enumerate() {
            db.execute(
                "INSERT INTO docs (rowid, text) VALUES (?1, ?2)",
                (at as i64, text),
            )?;
        }
        let mut found = Vec::new();
        for (question, _) in &self.questions {
            let words = question.split(|c: char| !c.is_alphanumeric());
            let words = words.filter(|word| !word.is_empty());
            let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
            let mut statement =
                db.prepare("SELECT rowid FROM docs WHERE docs MATCH ?1 ORDER BY rank LIMIT 20")?;
            let rows = statement.query_map([words.join(" OR ")], |row| row.get::<_, i64>(0))?;
            let rows = rows.map(|row| row.map(|row| row as usize));
            found.push(rows.collect::<Result<Vec<usize>, _>>()?);
        }
        Ok(found)
    }

    fn print_misses(&self, found: &[Vec<usize>]) {
        for ((question, wanted), found) in self.questions.iter().zip(found) {
            let place = found.iter().position(|doc| wanted.contains(doc));
            if place.is_some_and(|place| place < 5) {
                continue;
            }
            println!("miss: {question}\n  found at {place:?}");
            let docs = wanted.iter().take(2).chain(found.iter().take(2));
            for doc in docs {
                let text: String = self.docs[*doc].chars().take(160).collect();
                println!("  {doc}: {}", text.replace('\n', " "));
            }
        }
    }
}
