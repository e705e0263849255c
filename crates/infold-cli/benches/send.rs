//! Sends views of 1 MB to 1 GB to a server on loopback and prints rates and peak memory, beside
//! `cat FILE` into a socket.
//!
//! `cargo bench -p infold-cli --bench send [-- MEGABYTES…]`

mod watched;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use infold_testkit::{Script, Server, Step};
use watched::{Watched, run};

/// Bytes of a message.
const MESSAGE: usize = 50_000;

fn main() {
    let asked: Vec<u64> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let sizes = if asked.is_empty() {
        vec![1, 100, 1_000]
    } else {
        asked
    };
    println!("\n### `infold send`: a request from disk, beside `cat FILE` into a socket\n");
    println!(
        "| view | messages | s | MB/s | peak memory | more than the first | `cat`, MB/s | ratio |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("send");
    let mut first = None;
    for size in sizes {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("room for a task");
        let server = Server::start(Script::steps([Step::say("received")]));
        let config = format!(
            "llm: {{provider: here, here: {{provider: openai, model: m, base_url: \"{}\"}}}}\n",
            server.url()
        );
        fs::write(dir.join("config.yaml"), config).expect("a configuration");
        let file = dir.join("view.jsonl");
        let messages = write(&file, size * 1_000_000);
        let task = push(&dir, &file);
        let infold = env!("CARGO_BIN_EXE_infold");
        let Watched {
            elapsed: took,
            peak,
            ..
        } = run(&format!(
            "cd {} && {infold} --config config.yaml send {task}",
            dir.display()
        ));
        let arrived = server.requests().iter().map(|seen| seen.len).max();
        assert!(
            arrived >= Some(size * 1_000_000),
            "{arrived:?} bytes arrived"
        );
        let beside = copied(&file);
        let rate = |seconds: f64| size as f64 / seconds.max(0.001);
        let first = *first.get_or_insert(peak);
        println!(
            "| {size} MB | {messages} | {took:.2} | {:.0} | {:.1} MiB | {:+.1} MiB | {:.0} | {:.2} |",
            rate(took),
            peak as f64 / 1024.0,
            (peak as f64 - first as f64) / 1024.0,
            rate(beside),
            rate(took) / rate(beside),
        );
    }
    let _ = fs::remove_dir_all(dir);
}

/// Writes a conversation of about `size` bytes; returns the number of its messages.
fn write(file: &Path, size: u64) -> u64 {
    let mut out = BufWriter::new(File::create(file).expect("room for the view"));
    let (mut written, mut messages) = (0, 0);
    while written < size || messages % 2 == 0 {
        let role = if messages % 2 == 0 {
            "user"
        } else {
            "assistant"
        };
        let text = format!("message {messages} says what it says. ").repeat(MESSAGE / 20);
        let text = &text[..MESSAGE.min(size as usize)];
        let line = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        writeln!(out, "{line}").expect("room for the view");
        written += line.len() as u64 + 1;
        messages += 1;
    }
    messages
}

fn push(dir: &Path, file: &Path) -> String {
    let infold = || {
        let mut infold = Command::new(env!("CARGO_BIN_EXE_infold"));
        infold.current_dir(dir);
        infold
    };
    let made = infold().args(["task", "new"]).output().expect("a task");
    let task = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let pushed = infold().args(["task", "push", &task]).arg(file).output();
    assert!(pushed.expect("messages").status.success());
    task
}

/// Returns how long `cat` takes to write the file to a socket with an active reader.
fn copied(file: &Path) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let reader = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept()?;
        let mut buffer = vec![0; 1 << 20];
        while socket.read(&mut buffer)? > 0 {}
        io::Result::Ok(())
    });
    let took = run(&format!(
        "bash -c 'cat {} > /dev/tcp/127.0.0.1/{port}'",
        file.display()
    ));
    reader.join().expect("a reader").expect("a socket");
    took.elapsed
}
