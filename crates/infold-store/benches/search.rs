//! The cost of search with very many messages: filling the index, its size, queries, and appends beside it.
//!
//! `cargo bench -p infold-store --bench search [-- MESSAGES]`; the default is a million.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use infold_store::{Contexts, Durability, Matching, Metadata, SearchRequest, Writer};
use uuid::Uuid;

/// So many messages are in one task.
const TASK_MESSAGES: u64 = 10_000;
/// So many different words there are; a few are in most messages, most in a few.
const VOCABULARY: u64 = 100_000;
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }

    /// A word, by its rank: the first ones come up far more often than the last.
    fn rank(&mut self) -> u64 {
        let share = self.next(1 << 20) as f64 / f64::from(1 << 20);
        (VOCABULARY as f64).powf(share) as u64 - 1
    }
}

fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "ro", "mi", "ten", "sol", "ve", "dan", "lu", "per", "gi", "no", "sta", "bri", "ec",
        "hu", "ja",
    ];
    let mut rest = rank + 16;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[(rest % 16) as usize]);
        rest /= 16;
    }
    word
}

fn words(numbers: &mut Numbers, count: u64) -> String {
    let words: Vec<String> = (0..count).map(|_| word(numbers.rank())).collect();
    words.join(" ")
}

/// A conversation that looks like an agent's: a request, then calls and results.
fn message(number: u64, numbers: &mut Numbers) -> String {
    let text = words(numbers, 40);
    match number % 4 {
        0 => format!(r#"{{"role":"user","content":"request {number}: {text}"}}"#),
        1 => format!(
            r#"{{"role":"assistant","content":"step {number}","tool_calls":[{{"id":"call_{number}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"src/{}/{}.rs\",\"why\":\"{text}\"}}"}}}}]}}"#,
            word(numbers.rank()),
            word(numbers.rank())
        ),
        2 => format!(
            r#"{{"role":"tool","tool_call_id":"call_{}","content":"{text}"}}"#,
            number - 1
        ),
        _ => format!(r#"{{"role":"assistant","content":"done with {number}: {text}"}}"#),
    }
}

fn append(writer: &mut Writer, from: u64, count: u64, numbers: &mut Numbers) {
    for first in (from..from + count).step_by(1000) {
        let to = (from + count).min(first + 1000);
        let batch: Vec<String> = (first..to).map(|at| message(at, numbers)).collect();
        writer.append(&batch).expect("messages are taken");
    }
}

fn size(root: &Path, name: &str) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    let mut sum = size(&root.join(name)) + size(&root.join(format!("{name}-wal")));
    let tasks = fs::read_dir(root.join("running")).into_iter().flatten();
    for task in tasks.flatten() {
        sum += size(&task.path().join(name));
    }
    sum
}

fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

fn main() {
    let count = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let count: u64 = count.unwrap_or(1_000_000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let contexts = Contexts::new(dir.path(), Durability::Never);
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut last = Uuid::nil();
    for first in (0..count).step_by(TASK_MESSAGES as usize) {
        last = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(last).expect("a writer");
        append(
            &mut writer,
            first,
            TASK_MESSAGES.min(count - first),
            &mut numbers,
        );
    }
    let log = size(dir.path(), "messages.jsonl");
    let before = append_cost(&contexts, last, &mut numbers);
    let base = peak_memory();

    let started = Instant::now();
    let coverage = contexts
        .fill_search_index(started + MAX_WAIT)
        .expect("filled");
    let took = started.elapsed();
    assert!(coverage.is_complete(), "{coverage:?}");
    let index = size(dir.path(), "search.db");
    let memory = peak_memory() - base;
    let after = append_cost(&contexts, last, &mut numbers);
    contexts
        .fill_search_index(Instant::now() + MAX_WAIT)
        .expect("filled");

    println!("\n### Search, {count} messages\n\n| | |\n| --- | --- |");
    println!("| log | {} MB |", log / 1_000_000);
    println!(
        "| filling the index | {:.1} s, {:.1} MB/s of log |",
        took.as_secs_f64(),
        log as f64 / 1e6 / took.as_secs_f64()
    );
    println!(
        "| size of the index | {} MB, {:.2} of the log |",
        index / 1_000_000,
        index as f64 / log as f64
    );
    println!("| memory for that | {memory:.0} MB more at the peak |");
    println!(
        "| append of one message, without an index | {:.1} µs |",
        before.as_secs_f64() * 1e6
    );
    println!(
        "| append of one message, with it | {:.1} µs |",
        after.as_secs_f64() * 1e6
    );
    for (name, low, high) in [
        ("two rare words", 5_000, VOCABULARY),
        ("two common words", 20, 500),
        ("two of the most frequent words", 0, 20),
    ] {
        let mut times: Vec<Duration> = (0..200)
            .map(|_| {
                let mut pick = || word(low + numbers.next(high - low));
                let query = format!("{} {}", pick(), pick());
                let started = Instant::now();
                let mut request = SearchRequest::new(Matching::Words(&query));
                request.patience = MAX_WAIT;
                contexts.search(&request).expect("an answer");
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!(
            "| query of {name} | p50 {:.1} ms, p99 {:.1} ms |",
            times[100].as_secs_f64() * 1e3,
            times[197].as_secs_f64() * 1e3
        );
    }
}

/// Returns the time of an append of one message.
fn append_cost(contexts: &Contexts, task: Uuid, numbers: &mut Numbers) -> Duration {
    let (mut writer, _) = contexts.write(task).expect("a writer");
    let messages: Vec<String> = (0..2000).map(|at| message(4 * at, numbers)).collect();
    let mut times: Vec<Duration> = messages
        .iter()
        .map(|message| {
            let started = Instant::now();
            writer.append(std::slice::from_ref(message)).expect("taken");
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}
