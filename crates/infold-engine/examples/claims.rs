//! Measures the check of summaries on transcripts with summaries: which of their sentences are dropped, and whether
//! planted claims pass.
//!
//! `cargo run -p infold-engine --example claims -- [--dropped] [--claims] [--planted] [--summary=FILE] SESSION…`
//!
//! With `--summary` a text is checked against all of a session instead of the summaries in it.

#[path = "../tests/claims/mod.rs"]
#[allow(dead_code)]
mod made_up;

use std::fs::File;
use std::io::BufReader;

use infold::claims::{ClaimChecker, append_typed_text};
use infold_log::Role;
use infold_wire::transcript::{Transcript, TranscriptEntry};
use infold_wire::{Message, TypedTextFilter, append_words};

/// Claims that are about no conversation at all.
const INVENTED: &str = include_str!("../tests/claims/invented.txt");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|arg| arg.starts_with("--"));
    let shows = |flag: &str| flags.iter().any(|given| given == flag);
    let given = flags
        .iter()
        .find_map(|flag| flag.strip_prefix("--summary="));
    let given = given.map(std::fs::read_to_string).transpose()?;
    let mut total = Counts::default();
    for file in &files {
        let mut said = Vec::new();
        for entry in Transcript::open(BufReader::new(File::open(file)?), None)? {
            match entry? {
                TranscriptEntry::Message { text, .. } => said.push(text),
                TranscriptEntry::Next => said.clear(),
                TranscriptEntry::Compaction { .. } if given.is_some() => {}
                TranscriptEntry::Compaction { summary, .. } => {
                    let counts = measure(&summary, &said, &shows);
                    println!("{file} after {} messages: {counts}", said.len());
                    total.add(&counts);
                }
                TranscriptEntry::Fold { .. } => {}
            }
        }
        if let Some(summary) = &given {
            let counts = measure(summary, &said, &shows);
            println!("{file} after {} messages: {counts}", said.len());
            total.add(&counts);
        }
    }
    println!("all: {total}");
    Ok(())
}

/// The counts over all summaries.
#[derive(Default)]
struct Counts {
    sentences: usize,
    claims: usize,
    dropped: usize,
    planted: usize,
    passed: usize,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.sentences += other.sentences;
        self.claims += other.claims;
        self.dropped += other.dropped;
        self.planted += other.planted;
        self.passed += other.passed;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts {
            sentences,
            claims,
            dropped,
            planted,
            passed,
        } = self;
        write!(
            f,
            "{sentences} sentences, {claims} claims, {dropped} dropped; {planted} planted, {passed} passed"
        )
    }
}

fn measure(summary: &str, said: &[Vec<u8>], shows: &dyn Fn(&str) -> bool) -> Counts {
    let mut claims = ClaimChecker::new(summary);
    let (sentences, claimed) = (claims.count_sentences(), claims.claimed_sentences());
    hold(&mut claims, said);
    let checked = claims.finish();
    for dropped in checked.dropped.iter().filter(|_| shows("--dropped")) {
        println!("- {}\n    {}", dropped.line.trim(), dropped.why);
    }
    let gone = |claim: &str| {
        checked
            .dropped
            .iter()
            .any(|dropped| dropped.line.ends_with(claim.trim()))
    };
    let mut planted: Vec<String> = INVENTED.lines().map(str::to_owned).collect();
    for claim in &claimed {
        if shows("--claims") {
            println!("{} {}", if gone(claim) { "-" } else { "+" }, claim.trim());
        }
        if !gone(claim) {
            let changed = made_up::mutated(about_user(claim.trim()))
                .into_iter()
                .map(|(_, changed)| changed);
            planted.extend(changed.filter(|changed| ClaimChecker::new(changed).has_claims()));
        }
    }
    let all = planted.join("\n\n");
    let mut claims = ClaimChecker::new(&all);
    hold(&mut claims, said);
    let checked_plants = claims.finish();
    let passed: Vec<&str> = checked_plants
        .text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for claim in passed.iter().filter(|_| shows("--planted")) {
        println!("passed: {claim}");
    }
    Counts {
        sentences,
        claims: claimed.len(),
        dropped: checked.dropped.len(),
        planted: planted.len(),
        passed: passed.len(),
    }
}

/// Returns the part of a sentence about the user: neither a label before it nor the assistant's actions after it.
fn about_user(claim: &str) -> &str {
    let start = claim
        .rfind("User ")
        .or_else(|| claim.find("user "))
        .unwrap_or(0);
    let claim = &claim[start..];
    let end = [" - ", " — ", "**: "]
        .iter()
        .filter_map(|mark| claim.find(mark))
        .min();
    &claim[..end.unwrap_or(claim.len())]
}

/// Holds claims against a conversation.
fn hold(claims: &mut ClaimChecker<'_>, said: &[Vec<u8>]) {
    let mut text = String::new();
    let mut typist = TypedTextFilter::default();
    for (at, bytes) in said.iter().enumerate() {
        let Ok(message) = Message::parse(bytes) else {
            continue;
        };
        text.clear();
        match message.role() {
            Role::Assistant => {
                typist.reply();
                append_words(&message, &mut text);
                claims.read_assistant(&text);
            }
            _ => {
                append_typed_text(&mut typist, &message, &mut text);
                claims.read_user(Some(at as u64 + 1), &text);
            }
        }
    }
}
