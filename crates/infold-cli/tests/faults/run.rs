//! A long run in which everything goes wrong that can.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use infold_log::Role;
use infold_testkit::{Faults, Model, Script, Seen, Server, Step, Tally};
use infold_wire::{Wire, quote};
use uuid::Uuid;

use crate::{KEY, Lot, PROVIDERS, Ran, World, failures, forms, holding, is_valid, messages};

/// The most requests of a call, and the most calls with further folds.
const ATTEMPTS: usize = 6;
const CALLS: usize = 4;

/// The longest first wait, in milliseconds.
const FIRST_WAIT: u64 = 20;

/// The counts of a run.
#[derive(Default)]
struct Figures {
    turns: u64,
    runs: u64,
    kills: u64,
    /// The kills by the progress of the turn: before the question was recorded, before the reply was, after.
    killed_at: [u64; 3],
    failed: u64,
    folds: u64,
    overflows: u64,
    recalled: u64,
    requests: u64,
    most: usize,
    faults: Tally,
    lost: u64,
    duplicates: u64,
    halves: u64,
}

/// One conversation with its server, and its known messages.
struct Lane<'a> {
    name: String,
    world: &'a World,
    server: Server,
    task: Uuid,
    lot: Lot,
    /// The complete texts of the server's replies, with the numbers of their requests.
    scripted: Arc<Mutex<HashMap<String, u64>>>,
    /// The acknowledged questions and replies, in order.
    known: Vec<(String, String)>,
    mixed: bool,
    /// The approximate duration of a command.
    takes: Duration,
    figures: Figures,
}

/// The moment of a kill.
enum Kill {
    /// A time after the start.
    After(Duration),
    /// A moment after the request arrived.
    Asked(Duration),
    /// The moment when the reply is recorded.
    Recorded,
}

impl<'a> Lane<'a> {
    fn new(world: &'a World, number: usize, seed: u64) -> Lane<'a> {
        let mixed = number >= PROVIDERS.len();
        let wire = PROVIDERS[number % PROVIDERS.len()].2;
        let name = if mixed {
            "mixed".to_owned()
        } else {
            wire.name().to_owned()
        };
        let scripted = Arc::new(Mutex::new(HashMap::new()));
        let server = server(&name, seed, Arc::clone(&scripted));
        world.configure(&name, &server);
        Lane {
            task: world.task(wire),
            lot: Lot::new(seed),
            name,
            world,
            server,
            scripted,
            known: Vec::new(),
            mixed,
            takes: Duration::from_millis(400),
            figures: Figures::default(),
        }
    }

    /// Repeats one question until it is acknowledged.
    fn turn(&mut self) {
        self.figures.turns += 1;
        let number = self.known.len();
        let size = 20 + self.lot.below(150);
        let question = format!(
            "question {}.{number}: {}",
            self.name,
            words(&mut self.lot, size)
        );
        // The reply that a killed process recorded before it could print it.
        let mut recorded: Option<String> = None;
        for tries in 0.. {
            assert!(tries < 60, "{}: no end of {question}", self.name);
            let seen = self.server.count();
            let before = failures(&self.world.read(self.task)).len();
            let ran = self.ask(&question, recorded.is_some());
            let asked = self.server.count() - seen;
            self.figures.runs += 1;
            self.figures.most = self.figures.most.max(asked);
            assert!(asked <= ATTEMPTS * CALLS, "{asked} requests: {}", ran.err);
            let log = self.world.read(self.task);
            is_valid(&log);
            let failed = failures(&log).len() - before;
            let found = self.check(&question);
            let what = format!(
                "{} {question:.40}: {:?} {}{}",
                self.name, ran.code, ran.out, ran.err
            );
            assert!(recorded.is_none() || recorded == found, "{what}");
            match ran.code {
                Some(0) => {
                    let object = ran.object();
                    let text = object["text"].as_str().expect("a text").to_owned();
                    assert_eq!(found.as_ref(), Some(&text), "{what}");
                    assert!(!self.world.has_request(self.task), "{what}");
                    let counted = object["requests"].as_u64().expect("a number");
                    assert!(asked as u64 <= counted, "{asked} were seen: {what}");
                    if recorded.is_some() {
                        assert_eq!(asked, 0, "it was recorded already: {what}");
                        self.figures.recalled += 1;
                    }
                    self.known.push((question, text));
                    return;
                }
                Some(4) => {
                    self.figures.failed += 1;
                    assert_eq!(found, None, "{what}");
                    assert!(failed > 0 && self.world.has_request(self.task), "{what}");
                }
                None => {
                    self.figures.kills += 1;
                    let kept = messages(&log).len() > self.kept();
                    self.figures.killed_at[usize::from(kept) + usize::from(found.is_some())] += 1;
                    recorded = found;
                    if recorded.is_some() && !self.world.has_untold(self.task) {
                        // The command printed the whole reply, and only its end was missing.
                        let text = ran.object()["text"].as_str().map(str::to_owned);
                        assert_eq!(text, recorded, "{what}");
                        self.known.extend(recorded.map(|text| (question, text)));
                        return;
                    }
                }
                Some(_) => panic!("{what}"),
            }
        }
    }

    /// Returns the number of acknowledged messages.
    fn kept(&self) -> usize {
        let log = self.world.read(self.task);
        let all = messages(&log);
        let mut pairs = 0;
        all.iter()
            .position(|(role, _)| {
                pairs += usize::from(*role == Role::User);
                pairs > self.known.len()
            })
            .unwrap_or(all.len())
    }

    /// Checks that all acknowledged messages are there once, in order; behind them at most this question and a whole
    /// reply, which is returned.
    fn check(&self, question: &str) -> Option<String> {
        let mut pairs: Vec<(String, Option<String>)> = Vec::new();
        for (role, text) in messages(&self.world.read(self.task)) {
            match (role, pairs.last_mut()) {
                (Role::User, _) => pairs.push((text, None)),
                // Reasoning may be a separate message, without text.
                (Role::Assistant, Some((_, reply))) if text.is_empty() => {
                    assert!(reply.is_none(), "nothing follows a reply");
                }
                (Role::Assistant, Some((asked, reply))) => {
                    assert!(reply.is_none(), "two replies to {asked}");
                    let scripted = self.scripted.lock().expect("nobody fails");
                    assert!(scripted.contains_key(&text), "never said so: {text}");
                    *reply = Some(text);
                }
                (role, _) => panic!("nobody said {role:?} {text}"),
            }
        }
        for (at, (asked, reply)) in self.known.iter().enumerate() {
            let there = pairs.get(at).map(|(asked, reply)| (asked, reply.as_ref()));
            assert_eq!(
                there,
                Some((asked, Some(reply))),
                "turn {at} of {}",
                self.name
            );
        }
        let rest = &pairs[self.known.len()..];
        assert!(rest.len() <= 1, "asked twice: {rest:?}");
        rest.iter()
            .for_each(|(asked, _)| assert_eq!(asked, question));
        rest.first()?.1.clone()
    }

    /// Runs the command, and perhaps kills it.
    fn ask(&mut self, question: &str, to_the_end: bool) -> Ran {
        let task = self.task.to_string();
        let wait = FIRST_WAIT.to_string();
        let mut args = vec!["ask", &task, question, "--json", "--window", "4000"];
        args.extend(["--max-tokens", "500", "--first-wait", &wait]);
        if self.mixed {
            args.extend(["--provider", PROVIDERS[self.lot.below(5) as usize].0]);
        }
        if self.lot.chance(15) {
            args.push("--no-stream");
        }
        if self.lot.chance(6) {
            // Without retries: the first failure counts.
            args.extend(["--deadline", "0"]);
        }
        let kill = match self.lot.below(100) {
            _ if to_the_end && self.lot.chance(70) => None,
            0..16 => Some(Kill::After(
                self.takes.mul_f64(self.lot.below(1100) as f64 / 1000.0),
            )),
            16..24 => Some(Kill::Asked(Duration::from_micros(self.lot.below(20_000)))),
            24..34 => Some(Kill::Recorded),
            _ => None,
        };
        let start = Instant::now();
        let file = self.world.read(self.task).dir().join("messages.jsonl");
        let (seen, asked) = (
            self.server.count(),
            messages(&self.world.read(self.task)).len(),
        );
        let mut child = self
            .world
            .command(&self.name, &args)
            .spawn()
            .expect("infold runs");
        let mut is_over = || child.try_wait().expect("it can be looked at").is_some();
        match &kill {
            None => return self.world.wait(child),
            Some(Kill::After(delay)) => std::thread::sleep(delay.saturating_sub(start.elapsed())),
            Some(Kill::Asked(delay)) => {
                while self.server.count() == seen && !is_over() {
                    std::thread::sleep(Duration::from_micros(300));
                }
                std::thread::sleep(*delay);
            }
            Some(Kill::Recorded) => {
                // The question makes one line, the reply the next.
                let lines = || {
                    fs::read(&file).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count())
                };
                let wanted = asked + if asked > self.kept() { 1 } else { 2 };
                while lines() < wanted && !is_over() {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        }
        child.kill().expect("it can be killed");
        let ran = self.world.wait(child);
        if matches!(kill, Some(Kill::After(_))) {
            // The duration depends on the load of the machine, so the delays adapt.
            let by = if ran.code.is_none() { 1.04 } else { 0.9 };
            self.takes = self.takes.mul_f64(by);
        }
        ran
    }

    /// Counts forbidden states by texts alone, independent of the earlier checks.
    fn audit(&mut self) {
        let mut often: HashMap<String, u64> = HashMap::new();
        for (_, text) in messages(&self.world.read(self.task)) {
            if !text.is_empty() {
                *often.entry(text).or_default() += 1;
            }
        }
        let acknowledged = self.known.iter().flat_map(|(asked, reply)| [asked, reply]);
        let lost = acknowledged.filter(|text| !often.contains_key(*text));
        self.figures.lost = lost.count() as u64;
        self.figures.duplicates = often.values().map(|times| times - 1).sum();
        let scripted = self.scripted.lock().expect("nobody fails");
        let half = |text: &&String| {
            let whole = scripted.contains_key(*text);
            !whole && text.starts_with("reply ")
        };
        self.figures.halves = often.keys().filter(half).count() as u64;
    }

    /// Checks the final state, after a last turn without faults that repairs the effects of kills.
    fn finish(mut self) -> Figures {
        self.audit();
        self.figures.faults = self.server.faults();
        let log = self.world.read(self.task);
        let task = self.task.to_string();
        self.world
            .run(&self.name, &["pin", &task, "--note", "the end"]);
        assert_eq!(
            self.world.problems(&self.name, self.task),
            "",
            "{}",
            self.name
        );
        let shown = self.world.run(&self.name, &["view", &task, "--json"]);
        assert_eq!(shown.code, Some(0), "{}", shown.err);
        let folds = self.world.run(&self.name, &["folds", &task, "--json"]);
        self.figures.folds = folds.out.lines().count() as u64;
        self.figures.requests = self.server.count() as u64;
        let long = |error: &&String| error.contains("oo long") || error.contains("xceed");
        self.figures.overflows = failures(&log).iter().filter(long).count() as u64;
        self.figures
    }
}

/// A server that fails in every way, and whose replies are distinct.
fn server(name: &str, seed: u64, scripted: Arc<Mutex<HashMap<String, u64>>>) -> Server {
    let name = name.to_owned();
    let mut lot = Lot::new(seed ^ 0xfeed);
    let faults = Faults {
        seed,
        disconnect: 0.10,
        busy: 0.07,
        server_error: 0.06,
        slow: 0.08,
        malformed: 0.07,
        empty: 0.03,
    };
    let model = Model {
        key: Some(KEY.to_owned()),
        ..Model::window(2900)
    };
    let decide = move |seen: &Seen| {
        if lot.chance(4) {
            return refusal(&mut lot, seen.wire());
        }
        let number = seen.number;
        let size = 5 + lot.below(120);
        let text = format!(
            "reply {name}.{number}: {} end of {name}.{number}",
            words(&mut lot, size)
        );
        scripted
            .lock()
            .expect("nobody fails")
            .insert(text.clone(), number);
        let step = if lot.chance(20) {
            Step::think(words(&mut lot, 20), text)
        } else {
            Step::say(text)
        };
        if lot.chance(20) {
            step.in_pieces(9).pausing(Duration::from_millis(1))
        } else {
            step
        }
    };
    Server::start(Script::decide(decide).model(model).faults(faults))
}

/// Refusals that repeat the key, as some providers do, and gateways with all headers.
fn refusal(lot: &mut Lot, wire: Option<Wire>) -> Step {
    let said = match lot.below(3) {
        0 => format!("Incorrect API key provided: {KEY}. You can find your API key there."),
        1 => format!("bad gateway; the request was: Authorization: Bearer {KEY}, x-api-key: {KEY}"),
        _ => format!("no route for /v1/models?key={KEY}&alt=sse"),
    };
    let status = [401, 503, 400, 429][lot.below(4) as usize];
    let message = quote(&said);
    match (lot.chance(20), wire) {
        // Not a provider's error, but a foreign web page.
        (true, _) => Step::error(
            200,
            format!("{} {said}", "x".repeat(lot.below(190) as usize)),
        ),
        (_, Some(Wire::Ollama)) => Step::error(status, format!(r#"{{"error":{message}}}"#)),
        _ => Step::error(status, format!(r#"{{"error":{{"message":{message}}}}}"#)),
    }
}

/// Returns a text of `count` words, some of them odd.
fn words(lot: &mut Lot, count: u64) -> String {
    const WORDS: [&str; 16] = [
        "the",
        "river",
        "naïve",
        "\"quoted\"",
        "back\\slash",
        "日本語",
        "🦀",
        "line\nbreak",
        "a",
        "lamp",
        "under",
        "{brace}",
        "data:",
        "[DONE]",
        "and",
        "then",
    ];
    let word = |_| WORDS[lot.below(16) as usize];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Turn after turn on every wire at once, with every fault and many kills. All acknowledged messages are there, once
/// and complete; no call exceeds its number of requests; the key is nowhere.
#[test]
fn nothing_acknowledged_is_lost_whatever_goes_wrong() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let turns: u64 = number("INFOLD_FAULT_TURNS").unwrap_or(72);
    let seed: u64 = number("INFOLD_FAULT_SEED").unwrap_or(20_260_115);
    println!("seed {seed} (INFOLD_FAULT_SEED)");
    let world = &World::new();
    let start = Instant::now();
    let lanes = PROVIDERS.len() + 1;
    let all: Vec<Figures> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..lanes)
            .map(|lane| {
                scope.spawn(move || {
                    let mut here = Lane::new(world, lane, seed + lane as u64);
                    let share =
                        turns / lanes as u64 + u64::from((lane as u64) < turns % lanes as u64);
                    for _ in 0..share {
                        here.turn();
                    }
                    here.finish()
                })
            })
            .collect();
        let ended = running.into_iter().map(|lane| lane.join());
        ended.map(|lane| lane.expect("a lane holds")).collect()
    });
    let hits = holding(world.root.path(), &forms(KEY));
    report(&all, start.elapsed(), hits.len());
    assert_eq!(hits, [], "the key was written down");
}

fn report(all: &[Figures], took: Duration, hits: usize) {
    let sum = |of: fn(&Figures) -> u64| all.iter().map(of).sum::<u64>();
    let (turns, requests, runs) = (sum(|it| it.turns), sum(|it| it.requests), sum(|it| it.runs));
    let (kills, failed) = (sum(|it| it.kills), sum(|it| it.failed));
    println!(
        "{turns} turns in {runs} runs of `infold ask`, {:.0} s",
        took.as_secs_f64()
    );
    println!(
        "{kills} runs killed: {} before the question was kept, {} before the reply was, {} after",
        sum(|it| it.killed_at[0]),
        sum(|it| it.killed_at[1]),
        sum(|it| it.killed_at[2])
    );
    println!(
        "{failed} runs gave up; {} replies were told by the next run",
        sum(|it| it.recalled)
    );
    println!(
        "faults: {} disconnects, {} busy, {} server errors, {} slow, {} malformed, {} empty, {} too long",
        sum(|it| it.faults.disconnect),
        sum(|it| it.faults.busy),
        sum(|it| it.faults.server_error),
        sum(|it| it.faults.slow),
        sum(|it| it.faults.malformed),
        sum(|it| it.faults.empty),
        sum(|it| it.overflows)
    );
    let most = all.iter().map(|it| it.most).max().unwrap_or(0);
    println!(
        "{requests} requests: {:.2} a turn, {:.2} a run, at most {most} in one; {} folds",
        requests as f64 / turns as f64,
        requests as f64 / runs as f64,
        sum(|it| it.folds)
    );
    let wrong = [
        sum(|it| it.lost),
        sum(|it| it.duplicates),
        sum(|it| it.halves),
    ];
    println!(
        "lost {}, duplicates {}, half messages {}, hits of the key {hits}",
        wrong[0], wrong[1], wrong[2]
    );
    assert_eq!(wrong, [0; 3]);
    assert!(kills * 8 > turns, "only {kills} kills");
    assert!(sum(|it| it.folds) > 0, "nothing was folded");
    assert!(requests < 3 * runs, "{requests} requests in {runs} runs");
}
