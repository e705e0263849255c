//! Folds transcripts of 10 MB to 1 GB and prints rates and peak memory, beside `wc -m`.
//!
//! `cargo bench -p infold-cli --bench fold [-- MEGABYTES…]`

mod watched;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use watched::run;

/// A tool result, on average.
const RESULT: usize = 19_000;

fn main() {
    let asked: Vec<u64> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let sizes = if asked.is_empty() {
        vec![10, 100, 1_000]
    } else {
        asked
    };
    println!("\n### `infold fold --window 32k` (Rust sources as tool results, no model)\n");
    println!(
        "| transcript | messages | CPU, s | MB/s per core | own memory | with the program's pages | `wc -m`, MB/s | ratio |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let texts = texts();
    for size in sizes {
        let file = dir.join(format!("fold-{size}.jsonl"));
        let messages = write(&file, size * 1_000_000, &texts);
        let infold = env!("CARGO_BIN_EXE_infold");
        let folded = run(&format!("{infold} fold {} --window 32k", file.display()));
        let seconds = folded.processor;
        let beside = run(&format!("wc -m {}", file.display())).processor;
        let rate = |seconds: f64| size as f64 / seconds.max(0.01);
        println!(
            "| {size} MB | {messages} | {seconds:.2} | {:.0} | {:.0} MiB | {:.0} MiB | {:.0} | {:.2} |",
            rate(seconds),
            folded.own as f64 / 1024.0,
            folded.peak as f64 / 1024.0,
            rate(beside),
            rate(seconds) / rate(beside),
        );
        let _ = fs::remove_file(file);
    }
}

/// The sources of this workspace, in pieces.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("the workspace").flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let name = path.display().to_string();
                let lines: Vec<&str> = text.lines().collect();
                for part in lines.chunks(400) {
                    texts.push((name.clone(), part.join("\n")));
                }
            }
        }
    }
    texts.sort();
    texts
}

/// Writes a session of about `size` bytes; returns the number of its messages.
fn write(file: &Path, size: u64, texts: &[(String, String)]) -> u64 {
    let mut out = BufWriter::new(File::create(file).expect("room for the transcript"));
    let (mut written, mut messages, mut turn) = (0, 0, 0);
    let mut sources = texts.iter().cycle();
    while written < size {
        let mut lines = Vec::new();
        if turn % 20 == 0 {
            lines.push(format!(
                r#"{{"role":"user","content":"request {turn}: why is value_{} wrong?"}}"#,
                turn % 977
            ));
        }
        let (mut path, mut text) = (String::new(), String::new());
        while text.len() < RESULT {
            let (name, part) = sources.next().expect("a cycle");
            path.clone_from(name);
            text += part;
        }
        let (path, text) = (infold_wire::quote(&path), infold_wire::quote(&text));
        lines.push(format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"I look for value_{}."}},{{"type":"tool_use","id":"t{turn}","name":"Read","input":{{"file_path":{path}}}}}]}}"#,
            turn % 977
        ));
        lines.push(format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{turn}","content":{text}}}]}}"#
        ));
        for line in lines {
            writeln!(out, "{line}").expect("room for the transcript");
            written += line.len() as u64 + 1;
            messages += 1;
        }
        turn += 1;
    }
    messages
}
