//! The cost of recording a conversation, as ratios against a baseline that runs beside it.
//!
//! `scripts/bench` runs this and puts the table into `docs/BENCHMARKS.md`. Times are
//! medians of interleaved rounds: the machine drifts, the ratios do not.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use infold_log::steer::{self, Side, Target};
use infold_log::{Cause, Event, Memory, Past as _, Seq, Span, View};
use infold_store::{
    Access, ChainIndex, Contexts, Durability, Key, Log, Metadata, TaskDirs, Writer,
};
use infold_tags::{self as tags, Millis, TagId, Tagged};
use infold_wire::Message;
use uuid::Uuid;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, dir] = &args[..]
        && flag == "--open"
    {
        return open_once(Path::new(dir));
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let wanted = |name: &str| {
        let mut names = args[1..]
            .iter()
            .filter(|arg| !arg.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|arg| arg == name)
    };
    if wanted("append") {
        append(dir.path());
    }
    if wanted("folds") {
        folds(dir.path());
    }
    if wanted("tasks") {
        tasks(dir.path());
    }
    if wanted("chains") {
        chains(dir.path());
    }
    if wanted("functions") {
        functions();
    }
}

/// A conversation that looks like an agent's: a request, then calls and results.
fn message(number: u64) -> String {
    let filler = "the quick brown fox jumps over the lazy dog; ".repeat(7);
    match number % 4 {
        0 => format!(r#"{{"role":"user","content":"request {number}: {filler}"}}"#),
        1 => format!(
            r#"{{"role":"assistant","content":"step {number}","tool_calls":[{{"id":"call_{number}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"src/{number}.rs\",\"why\":\"{filler}\"}}"}}}}]}}"#
        ),
        2 => format!(
            r#"{{"role":"tool","tool_call_id":"call_{}","content":"{filler}"}}"#,
            number - 1
        ),
        _ => format!(r#"{{"role":"assistant","content":"done {number}: {filler}"}}"#),
    }
}

fn open(dir: &Path) -> Writer {
    let opened = Writer::open(dir, Durability::Never, &TaskDirs::none());
    opened.expect("the task opens").0
}

fn fill(writer: &mut Writer, from: u64, to: u64) {
    let mut next = from;
    while next < to {
        let end = (next + 5_000).min(to);
        let batch: Vec<String> = (next..end).map(message).collect();
        writer.append(&batch).expect("messages are appended");
        next = end;
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Makes tasks with a turn in them, in a directory that already has some.
fn tasks(root: &Path) {
    println!("\n### Make a task, open it, append a turn, count it: tasks/s\n");
    println!("| tasks before | durability | a registry for each call | one that is kept |");
    println!("| ---: | --- | ---: | ---: |");
    for before in [10, 10_000] {
        let dir = root.join(format!("tasks-{before}"));
        fill_with_tasks(&dir, before);
        for durability in [Durability::Never, Durability::Turn] {
            let contexts = Contexts::new(&dir, durability);
            let each = rate(&contexts);
            let kept = rate(&contexts.keeping().expect("the registry stays open"));
            println!("| {before} | {durability:?} | {each:.0} | {kept:.0} |");
        }
    }
}

/// How many tasks are made in a second.
fn rate(contexts: &Contexts) -> f64 {
    let (start, mut made) = (Instant::now(), 0);
    while made < 300 && start.elapsed() < Duration::from_secs(4) {
        make_task(contexts, made);
        made += 1;
    }
    made as f64 / start.elapsed().as_secs_f64()
}

fn make_task(contexts: &Contexts, number: u64) {
    let id = contexts
        .create(Metadata::default())
        .expect("a task is made");
    let (mut writer, _) = contexts.write(id).expect("it opens");
    let turn = [message(number * 4), message(3)];
    writer.append(&turn).expect("a turn is appended");
    contexts.settle(id, &writer).expect("it is counted");
}

/// Copies of one task, entered into the registry by opening it.
fn fill_with_tasks(dir: &Path, count: u64) {
    let contexts = Contexts::new(dir, Durability::Never);
    make_task(&contexts, 0);
    let first = contexts.tasks().expect("tasks")[0];
    let from = contexts.place(first).expect("it is there");
    let metadata = fs::read_to_string(from.join("metadata.json")).expect("metadata");
    for _ in 1..count {
        let id = Uuid::new_v4().to_string();
        let to = dir.join("running").join(&id);
        fs::create_dir(&to).expect("a directory");
        for entry in fs::read_dir(&from).expect("files").flatten() {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
        let metadata = metadata.replace(&first.to_string(), &id);
        fs::write(to.join("metadata.json"), metadata).expect("metadata");
    }
    contexts.registry().expect("the registry takes them in");
}

/// Looks conversations up among many, and adds to them.
fn chains(root: &Path) {
    const LONG: u64 = 80;
    println!("\n### Find the task of a conversation of {LONG} messages\n");
    println!("| rows | all but two known, µs | none known, µs | add two, µs |");
    println!("| ---: | ---: | ---: | ---: |");
    let mut chains = ChainIndex::open(root).expect("an index");
    let mut tasks = Vec::new();
    for rows in [1_000, 1_000_000] {
        while (tasks.len() as u64) < rows / LONG {
            let task = Uuid::new_v4();
            let all: Vec<_> = (1..=LONG)
                .map(|at| (chain_key(task, at), seq(at)))
                .collect();
            chains.add(task, &all).expect("rows are added");
            tasks.push(task);
        }
        let (mut hits, mut misses, mut adds) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..1_000 {
            let task = tasks[round * 7919 % tasks.len()];
            let known: Vec<_> = (1..=LONG + 2).map(|at| chain_key(task, at)).collect();
            let start = Instant::now();
            let found = chains.find(&known[2..]).expect("an answer");
            hits.push(start.elapsed());
            assert_eq!(found.expect("it is known").1[0].0, task);
            let stranger = Uuid::new_v4();
            let unknown: Vec<_> = (1..=LONG).map(|at| chain_key(stranger, at)).collect();
            let start = Instant::now();
            assert_eq!(chains.find(&unknown).expect("an answer"), None);
            misses.push(start.elapsed());
            let next = LONG + 3 + 2 * round as u64;
            let two = [next, next + 1].map(|at| (chain_key(task, at), seq(at)));
            let start = Instant::now();
            chains.add(task, &two).expect("rows are added");
            adds.push(start.elapsed());
        }
        let [hit, miss, add] = [hits, misses, adds].map(|times| micros(median(times)));
        println!("| {rows} | {hit:.0} | {miss:.0} | {add:.0} |");
    }
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("not zero")
}

/// As good as a digest: all its bytes differ from one to the next.
fn chain_key(task: Uuid, at: u64) -> Key {
    let mixed =
        (task.as_u128() ^ u128::from(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    (mixed ^ mixed >> 64).to_be_bytes()
}

/// Appends one message at a time, beside a loop that only writes the same bytes.
fn append(root: &Path) {
    const ROUND: u64 = 500;
    const ROUNDS: usize = 21;
    println!("\n### Append one message (about 440 bytes, durability `never`)\n");
    println!("| messages before | infold, µs | only writing the same bytes, µs | ratio |");
    println!("| ---: | ---: | ---: | ---: |");
    let dir = root.join("append");
    fs::create_dir(&dir).expect("a directory");
    let mut writer = open(&dir);
    let mut plain = OpenOptions::new()
        .create(true)
        .append(true)
        .open(root.join("plain"))
        .expect("a file");
    let mut count = 0;
    for before in [10, 10_000, 1_000_000] {
        fill(&mut writer, count, before);
        count = before;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let batch: Vec<String> = (count..count + ROUND).map(message).collect();
            let start = Instant::now();
            for message in &batch {
                writer.append(&[message]).expect("a message is appended");
            }
            ours.push(start.elapsed() / ROUND as u32);
            let lines = last_lines(&dir, ROUND as usize);
            let start = Instant::now();
            for line in &lines {
                plain.write_all(line).expect("a line is written");
            }
            theirs.push(start.elapsed() / ROUND as u32);
            count += ROUND;
        }
        let (ours, theirs) = (micros(median(ours)), micros(median(theirs)));
        println!(
            "| {before} | {ours:.2} | {theirs:.2} | {:.2} |",
            ours / theirs
        );
    }
    drop(writer);
    opening(&dir, count);
}

/// The last lines of `messages.jsonl`, as they were written.
fn last_lines(dir: &Path, count: usize) -> Vec<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let file = File::open(dir.join("messages.jsonl")).expect("the log is there");
    let len = file.metadata().expect("it has a length").len();
    let from = len.saturating_sub(count as u64 * 1_000);
    let mut bytes = vec![0; (len - from) as usize];
    file.read_exact_at(&mut bytes, from)
        .expect("its end is read");
    let lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines[lines.len() - count..].to_vec()
}

/// Opens a long task in a process of its own, beside one with ten messages.
fn opening(dir: &Path, messages: u64) {
    println!("\n### Open a task, index intact\n");
    println!("| messages | log | open for reading | open for writing | peak memory |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    let small = dir.with_file_name("small");
    fs::create_dir(&small).expect("a directory");
    fill(&mut open(&small), 0, 10);
    for (dir, messages) in [(&*small, 10), (dir, messages)] {
        let size = fs::metadata(dir.join("messages.jsonl")).map_or(0, |meta| meta.len());
        let program = std::env::current_exe().expect("this program");
        let runs = (0..7).map(|_| {
            let output = Command::new(&program)
                .arg("--open")
                .arg(dir)
                .output()
                .expect("it runs");
            let text = String::from_utf8(output.stdout).expect("numbers");
            let numbers: Vec<f64> = text
                .split_whitespace()
                .map(|word| word.parse().expect("a number"))
                .collect();
            (numbers[0], numbers[1], numbers[2])
        });
        let mut runs: Vec<(f64, f64, f64)> = runs.collect();
        runs.sort_by(|a, b| a.partial_cmp(b).expect("numbers compare"));
        let (read, write, memory) = runs[runs.len() / 2];
        println!(
            "| {messages} | {:.1} MB | {read:.2} ms | {write:.2} ms | {:.1} MiB |",
            size as f64 / 1e6,
            memory / 1024.0
        );
    }
}

fn open_once(dir: &Path) {
    let start = Instant::now();
    let (log, _) = Log::open(dir, Access::Read, &TaskDirs::none()).expect("the log opens");
    let read = start.elapsed();
    drop(log);
    let start = Instant::now();
    let writer = open(dir);
    let write = start.elapsed();
    drop(writer);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("0 kB");
    let peak = peak.trim().trim_end_matches(" kB");
    println!("{} {} {peak}", micros(read) / 1e3, micros(write) / 1e3);
}

/// A hundred folds, one over the other, on a long task.
fn folds(root: &Path) {
    let dir = root.join("folds");
    fs::create_dir(&dir).expect("a directory");
    let mut writer = open(&dir);
    fill(&mut writer, 0, 100_000);
    writer.sync().expect("it is written");
    let text = "goal, decisions, files, errors, open work; ".repeat(10);
    let added = [
        "events.jsonl",
        "summaries.jsonl",
        "events.idx",
        "states.idx",
        "messages.jsonl",
        "messages.idx",
    ];
    let size = |name: &str| fs::metadata(dir.join(name)).map_or(0, |meta| meta.len());
    let before: Vec<u64> = added.iter().map(|name| size(name)).collect();
    let start = Instant::now();
    for fold in 1..=100_u64 {
        let span = format!("2..{}", fold * 900)
            .parse::<Span>()
            .expect("a range");
        writer.condense(span, &text).expect("it folds");
    }
    let time = start.elapsed() / 100;
    println!("\n### 100 successive folds on a task with 100,000 messages\n");
    println!(
        "Each covers the one before and 900 more messages; the summary has {} bytes.\n",
        text.len()
    );
    println!("| file | bytes added per fold |");
    println!("| --- | ---: |");
    let mut total = 0;
    for (name, before) in added.iter().zip(before) {
        let per_fold = (size(name) - before) as f64 / 100.0;
        total += size(name) - before;
        println!("| {name} | {per_fold:.0} |");
    }
    println!("| in all | {:.0} |", total as f64 / 100.0);
    println!(
        "\nA fold takes {:.1} ms, the rewriting of `current.jsonl` included.",
        micros(time) / 1e3
    );
}

/// The same operations on arrays with tags and on the engine's log, in memory.
fn functions() {
    println!("\n### Truncate, effective history or view, rewind: tag form and engine\n");
    println!("| messages | | tag form, µs | engine, µs | ratio |");
    println!("| ---: | --- | ---: | ---: | ---: |");
    for count in [1_000_u64, 10_000, 100_000] {
        let tagged = (0..count).map(|number| {
            let text = message(number).replacen('{', &format!("{{\"ts\":{},", 1_000 + number), 1);
            Tagged::parse(text.as_bytes()).expect("a message")
        });
        let tagged: Vec<Tagged> = tagged.collect();
        let mut log = Memory::default();
        for number in 0..count {
            let text = message(number);
            let facts = Message::parse(text.as_bytes()).expect("a message").facts();
            log.message(&facts, 1_000 + number);
        }
        measure(count, &tagged, &mut log);
    }
}

fn measure(count: u64, tagged: &[Tagged], log: &mut Memory) {
    let id = TagId::new("t1");
    let now = Millis(2_000_000_000_000.0);
    let half = Millis((1_000 + count / 2) as f64);
    let truncated = tags::truncate(tagged, 0.5, &id, now).messages;
    let cover = steer::oldest(log.state(), 0.5, log).expect("there is something to hide");
    let mut folded = log.clone();
    folded.event(&steer::folded(Cause::Window, &cover, 20), None, 0);
    let rewind = |log: &Memory| match steer::rewind(
        log.state(),
        Side::To,
        Target::Message(count / 2),
        log,
    ) {
        Ok(Event::Rewind(point)) => log.shown(point),
        other => panic!("a rewind, not {other:?}"),
    };
    type Run<'a> = &'a dyn Fn();
    let rows: [(&str, Run<'_>, Run<'_>); 3] = [
        (
            "truncate",
            &|| drop(tags::truncate(tagged, 0.5, &id, now)),
            &|| drop(steer::oldest(log.state(), 0.5, &*log)),
        ),
        (
            "effective / view",
            &|| drop(tags::effective(&truncated)),
            &|| drop(View::of(folded.state().shown(), &folded)),
        ),
        (
            "rewind",
            &|| {
                let task = tags::TaskLists {
                    ui: &[],
                    history: &truncated,
                };
                let _ = tags::rewind_to_index(task, 0, tags::OrphanTags::Untag, half);
            },
            &|| drop(rewind(&folded)),
        ),
    ];
    for (name, tag_form, engine) in rows {
        let time = |run: &dyn Fn()| {
            let start = Instant::now();
            run();
            start.elapsed()
        };
        let both: Vec<(Duration, Duration)> =
            (0..31).map(|_| (time(tag_form), time(engine))).collect();
        let theirs = micros(median(both.iter().map(|(tag, _)| *tag).collect()));
        let ours = micros(median(both.iter().map(|(_, engine)| *engine).collect()));
        println!(
            "| {count} | {name} | {theirs:.1} | {ours:.2} | {:.0} |",
            theirs / ours.max(0.01)
        );
    }
}
