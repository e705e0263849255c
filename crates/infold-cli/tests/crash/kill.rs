//! Killed at any moment, with nothing acknowledged lost.

use std::time::{Duration, Instant};

use crate::{Author, Lot, Ran, World, authored, id, is_valid, message};
use uuid::Uuid;

/// A command that is killed again and again, after delays up to the time it takes.
struct Victim {
    lot: Lot,
    takes: Duration,
    kills: u32,
}

impl Victim {
    /// Measures the duration of commands of a kind by running one to its end.
    fn new(seed: u64, run: impl FnOnce()) -> Victim {
        let start = Instant::now();
        run();
        Victim {
            lot: Lot(seed),
            takes: start.elapsed(),
            kills: 0,
        }
    }

    /// Runs a command and kills it at a random moment, unless it has ended by then.
    fn strike(&mut self, world: &World, args: &[&str]) -> Ran {
        let delay = self.takes.mul_f64(self.lot.below(1100) as f64 / 1000.0);
        let start = Instant::now();
        let mut child = world.command(args).spawn().expect("infold runs");
        std::thread::sleep(delay.saturating_sub(start.elapsed()));
        child.kill().expect("it can be killed");
        let ran = Ran::of(child.wait_with_output().expect("it has ended"));
        let killed = ran.code.is_none();
        self.kills += u32::from(killed);
        // The duration depends on the load of the machine, so the delays adapt.
        self.takes = self.takes.mul_f64(if killed { 1.1 } else { 0.8 });
        ran
    }

    /// The delays must have hit: some commands were killed.
    fn done(self, asked: u32) {
        println!("{} of {asked} killed before their end", self.kills);
        assert!(
            self.kills > asked / 4,
            "only {} of {asked} were killed",
            self.kills
        );
    }
}

/// The known contents of a task.
struct Known {
    task: Uuid,
    said: Vec<Vec<u8>>,
}

impl Known {
    /// Checks a task after a push of `batch`, killed or not: it has all messages from before, and a prefix of the
    /// batch.
    fn check(&mut self, world: &World, batch: &[Vec<u8>], ran: &Ran) {
        let log = world.read(self.task);
        is_valid(&log);
        let before = self.said.len();
        let acknowledged = ran.object()["to"].as_u64().unwrap_or(before as u64) as usize;
        let now = log.state().at().seq as usize;
        assert!(
            now >= acknowledged,
            "{acknowledged} were acknowledged, {now} are there"
        );
        assert!(now <= before + batch.len());
        self.said.extend_from_slice(&batch[..now - before]);
        for (number, said) in (1..).zip(&self.said) {
            assert!(
                &message(&log, number) == said,
                "message {number} is another one"
            );
        }
        self.is_undamaged(world);
    }

    /// Right after a kill there may be torn and stale things, but no damage.
    fn is_undamaged(&self, world: &World) {
        for problem in world.problems(self.task) {
            let harmless = [
                "has torn bytes",
                "does not follow from the log",
                "registry: it counts",
            ];
            assert!(
                harmless.iter().any(|text| problem.contains(text)),
                "{problem}"
            );
        }
    }
}

fn lines(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.join(&b'\n')
}

fn pushes(seed: u64, rounds: u32, batch: impl Fn(u32) -> Vec<Vec<u8>>) {
    let world = World::new();
    let task = world.task();
    let name = task.to_string();
    let mut known = Known {
        task,
        said: Vec::new(),
    };
    let push = |known: &mut Known, number: u32, run: &mut dyn FnMut(&[&str]) -> Ran| {
        let batch = batch(number);
        let file = world.file("batch.jsonl", &lines(&batch));
        let ran = run(&["task", "push", &name, file.to_str().expect("a plain path")]);
        known.check(&world, &batch, &ran);
    };
    push(&mut known, 0, &mut |args| world.run(args));
    let mut victim = Victim::new(seed, || push(&mut known, 0, &mut |args| world.run(args)));
    for number in 1..=rounds {
        push(&mut known, number, &mut |args| victim.strike(&world, args));
        if number % 5 == 0 {
            // There is nothing to redo, but opening the task to write repairs it.
            assert_eq!(world.run(&["redo", &name]).code, Some(1));
            assert_eq!(world.problems(task), [""; 0], "after it was opened again");
        }
        if number % 10 == 0 {
            push(&mut known, number, &mut |args| world.run(args));
            assert_eq!(world.problems(task), [""; 0], "after a whole push");
        }
    }
    victim.done(rounds);
}

#[test]
fn pushes_of_many_small_messages_are_killed() {
    pushes(0x51, 90, |round| {
        let each = (0..40).map(|number| match number % 2 {
            0 => format!(r#"{{"role":"user","content":"round {round}, message {number}"}}"#),
            _ => format!(
                r#"{{"role":"assistant","content":"{}"}}"#,
                "y".repeat(number * 9)
            ),
        });
        each.map(String::into_bytes).collect()
    });
}

#[test]
fn pushes_of_big_messages_are_killed() {
    pushes(0xb16, 25, |round| {
        let each = (0..4).map(|number| {
            let text = format!("{round} {number} ").repeat(100_000);
            format!(r#"{{"role":"user","content":"{text}"}}"#)
        });
        each.map(String::into_bytes).collect()
    });
}

#[test]
fn steps_are_killed() {
    let world = World::new();
    let task = world.task();
    let name = task.to_string();
    let said: Vec<Vec<u8>> = (1..=120)
        .map(|number| authored(number).into_bytes())
        .collect();
    let file = world.file("said.jsonl", &lines(&said));
    let ran = world.run(&["task", "push", &name, file.to_str().expect("a plain path")]);
    let mut known = Known {
        task,
        said: Vec::new(),
    };
    known.check(&world, &said, &ran);
    let text = world.file("text.md", b"what was said");
    let text = text.to_str().expect("a plain path");
    let mut victim = Victim::new(0x57e9, || drop(world.ok(&["truncate", &name])));
    let mut events = world.read(task).state().at().event;
    for number in 0..100 {
        let at = victim.lot.below(110) + 2;
        let (seq, range) = (at.to_string(), format!("{at}..{}", at + 7));
        let args: &[&str] = match victim.lot.below(6) {
            0 => &["condense", &name, &range, "--text", text],
            1 => &["truncate", &name, "--fraction", "0.3"],
            2 => &["rewind", &name, "--to", &seq],
            3 => &["redo", &name],
            _ => &["undo", &name],
        };
        let ran = victim.strike(&world, args);
        let now = world.read(task).state().at().event;
        let done = ran.code == Some(0);
        assert!(
            now == events + 1 || now == events && !done,
            "{args:?}: from e{events} to e{now}, {}",
            ran.err
        );
        events = now;
        known.check(
            &world,
            &[],
            &Ran {
                out: String::new(),
                ..ran
            },
        );
        if number % 10 == 9 {
            world.ok(&["pin", &name, "--note", "mind this"]);
            events += 1;
            assert_eq!(world.problems(task), [""; 0], "after a whole step");
        }
    }
    victim.done(100);
}

/// Registry and directory agree on whether a task runs or has ended.
fn is_in_one_place(world: &World, task: Uuid) -> String {
    let status = world.list().remove(&task).expect("it has a row");
    let there = |place: &str| world.path().join(place).join(task.to_string()).is_dir();
    let ended = status != "running";
    assert_eq!(
        (there("running"), there("completed")),
        (!ended, ended),
        "{status}"
    );
    is_valid(&world.read(task));
    status
}

#[test]
fn ends_are_killed() {
    let world = World::new();
    let file = world.file("said.jsonl", authored(1).as_bytes());
    let file = file.to_str().expect("a plain path");
    let begin = || {
        let task = world.task();
        world.ok(&["task", "push", &task.to_string(), file]);
        task
    };
    let first = begin().to_string();
    let mut victim = Victim::new(0xe4d, || drop(world.ok(&["task", "complete", &first])));
    for number in 0..60 {
        let task = begin();
        let name = task.to_string();
        let (args, end): (&[&str], _) = match number % 2 {
            0 => (&["task", "complete", &name], "completed"),
            _ => (&["task", "fail", &name, "--error", "no"], "failed"),
        };
        let ran = victim.strike(&world, args);
        let status = is_in_one_place(&world, task);
        assert!(
            status == end || status == "running" && ran.out.is_empty(),
            "{status}: {}",
            ran.out
        );
        assert_eq!(message(&world.read(task), 1), authored(1).as_bytes());
        if status == "running" {
            world.ok(args);
            assert_eq!(is_in_one_place(&world, task), end);
        }
        assert_eq!(world.problems(task), [""; 0]);
    }
    victim.done(60);
}

#[test]
fn births_and_forks_are_killed() {
    let world = World::new();
    let parent = world.task().to_string();
    let said: Vec<Vec<u8>> = (1..=8)
        .map(|number| authored(number).into_bytes())
        .collect();
    let file = world.file("said.jsonl", &lines(&said));
    world.ok(&[
        "task",
        "push",
        &parent,
        file.to_str().expect("a plain path"),
    ]);
    let mut victim = Victim::new(0xf0, || drop(world.ok(&["fork", &parent, "--at", "6"])));
    for number in 0..60 {
        let args: &[&str] = match number % 3 {
            0 => &["task", "new"],
            1 => &["fork", &parent],
            _ => &["fork", &parent, "--at", "6"],
        };
        let ran = victim.strike(&world, args);
        let rows = world.list();
        if !ran.out.is_empty() {
            assert!(rows.contains_key(&id(&ran.object())), "{}", ran.out);
        }
        let there = world.contexts().tasks().expect("directories");
        assert_eq!(there, rows.into_keys().collect::<Vec<_>>());
    }
    for task in world.contexts().tasks().expect("directories") {
        // Every task that was created can be continued.
        world.ok(&["pin", &task.to_string(), "--note", "on"]);
        assert_eq!(world.problems(task), [""; 0]);
        let log = world.read(task);
        for number in 1..=log.state().at().seq {
            assert_eq!(message(&log, number), said[number as usize - 1]);
        }
    }
    victim.done(60);
}

#[test]
fn an_author_is_killed_between_any_two_acknowledgements() {
    let world = World::new();
    let task = world.task();
    let mut lot = Lot(0xa7);
    let mut before = (0, 0);
    for number in 0..60 {
        let durability = ["never", "turn", "always"][number % 3];
        let mut author = Author::start(&world.path(), task, durability);
        let mut last = None;
        for _ in 0..=lot.below(40) {
            last = author.acknowledged();
        }
        let (seq, event) = author.kill(last).expect("it acknowledged something");
        let log = world.read(task);
        is_valid(&log);
        let at = log.state().at();
        // At most one more of each was under way.
        assert!(
            at.seq == seq || at.seq == seq + 1,
            "{seq} acknowledged, {} there",
            at.seq
        );
        assert!(
            at.event == event || at.event == event + 1,
            "e{event} acknowledged, e{} there",
            at.event
        );
        for number in before.0 + 1..=at.seq {
            assert_eq!(message(&log, number), authored(number).as_bytes());
        }
        assert!(event >= before.1);
        before = (at.seq, at.event);
    }
    world.ok(&["pin", &task.to_string(), "--note", "on"]);
    assert_eq!(world.problems(task), [""; 0]);
    let log = world.read(task);
    for number in 1..=before.0 {
        assert_eq!(message(&log, number), authored(number).as_bytes());
    }
}

/// Returns a transcript of `turns` turns.
fn transcript(turns: usize) -> String {
    let words = "some words that take room ".repeat(12);
    let turn = |at| {
        format!(
            "{{\"role\":\"user\",\"content\":\"ask {at}\"}}\n{{\"role\":\"assistant\",\"content\":\"{words}\"}}\n"
        )
    };
    (0..turns).map(turn).collect()
}

#[test]
fn an_import_is_there_whole_or_not_at_all() {
    let world = World::new();
    let file = world.file("talk.jsonl", transcript(2_000).as_bytes());
    let file = file.to_str().expect("a path in UTF-8");
    let mut victim = Victim::new(11, || drop(world.ok(&["import", file])));
    for _ in 0..30 {
        victim.strike(&world, &["import", file]);
    }
    world.run(&["doctor", "--repair"]);
    for task in world.list().into_keys() {
        let log = world.read(task);
        assert_eq!(log.state().at().seq, 4_000, "{task}");
        is_valid(&log);
    }
    victim.done(30);
}

#[test]
fn a_pass_that_is_killed_while_a_summary_is_written_folds_nothing_and_leaves_nobody_running() {
    let world = World::new();
    let file = world.file("talk.jsonl", transcript(200).as_bytes());
    let task = id(&world.ok(&["import", file.to_str().expect("a path in UTF-8")]));
    let name = task.to_string();
    let pid = world.file("pid", b"");
    let slow = format!("command:echo $$ > {}; sleep 600; echo x", pid.display());
    let manage = ["manage", &name, "--window", "4k", "--summarizer", &slow];
    let mut child = world.command(&manage).spawn().expect("infold runs");
    let until = Instant::now() + Duration::from_secs(60);
    let in_time = |what: &str| {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let asked = loop {
        let said = std::fs::read_to_string(&pid).expect("it can be read");
        if said.ends_with('\n') {
            break said.trim().to_owned();
        }
        in_time("the summarizer is asked");
    };
    child.kill().expect("it can be killed");
    child.wait().expect("it has ended");
    // The process has ended, but may still be a zombie.
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{asked}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while std::path::Path::new("/proc/self/stat").exists() && runs() {
        in_time("the summarizer is ended");
    }
    let dir = world.read(task).dir().to_owned();
    assert!(dir.join("transcript.txt").exists());
    assert_eq!(world.read(task).state().at().event, 0);
    world.ok(&["pin", &name, "3"]);
    for left in ["transcript.txt", "unsummarized.jsonl"] {
        assert!(!dir.join(left).exists(), "{left}");
    }
    assert_eq!(world.problems(task), Vec::<String>::new());
}
