//! The speed of counting tokens, on generated texts and on texts that are made to be slow.
//!
//! `--write DIR` also writes the texts, so that other programs can be measured on the same.
//! `--count FILE…` prints the count of each file and stops.

#[path = "tokens/texts.rs"]
mod texts;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use infold_wire::tokens::{Encoding, count};

fn main() {
    // Cargo adds its own arguments.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match arguments.first().map(String::as_str) {
        Some("--write") => write(Path::new(&arguments[1])),
        Some("--count") => arguments[1..].iter().for_each(|file| {
            let text = std::fs::read_to_string(file).expect("a text to count");
            measure(file, &text);
        }),
        _ => table(),
    }
}

fn write(directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory to write to");
    for (name, text) in texts::all() {
        std::fs::write(directory.join(name), text).expect("a place for the text");
    }
}

fn table() {
    let before = resident();
    let start = spent();
    count(Encoding::O200k, "");
    let load = spent() - start;
    println!(
        "| text | bytes | tokens | MB/s | newline scan GB/s |\n| --- | --- | --- | --- | --- |"
    );
    let texts = texts::all();
    let with_texts = resident();
    for (name, text) in &texts {
        measure(name, text);
    }
    println!(
        "\nload {:.1} ms; memory {} KiB to load, {} KiB more to count",
        load.as_secs_f64() * 1e3,
        (with_texts - before)
            .saturating_sub(texts.iter().map(|(_, text)| text.len() as u64 / 1024).sum()),
        resident().saturating_sub(with_texts)
    );
}

fn measure(name: &str, text: &str) {
    let tokens = count(Encoding::O200k, text);
    let rate = rate(text, |text| count(Encoding::O200k, text));
    let scan = self::rate(text, |text| {
        memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
    });
    println!(
        "| {name} | {} | {tokens} | {:.1} | {:.1} |",
        text.len(),
        rate / 1e6,
        scan / 1e9
    );
}

/// Returns the bytes per second of CPU time: other processes share the machine.
fn rate(text: &str, work: impl Fn(&str) -> u64) -> f64 {
    let (start, mut runs) = (spent(), 0);
    // The system counts in ticks of some milliseconds, so one run is not enough.
    while spent() - start < Duration::from_millis(200) {
        for _ in 0..4 {
            black_box(work(black_box(text)));
        }
        runs += 4;
    }
    (text.len() * runs) as f64 / (spent() - start).as_secs_f64()
}

/// Returns the CPU time of this thread.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns the resident memory of the process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
