//! Plants facts of 20 kinds, appends 200,000 tokens of work, and prints which of them a later question has in its
//! request.
//!
//! `scripts/eval-recall [--window TOKENS] [--tokens TOKENS] FILE…`; the work is that of the transcripts.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use infold::recall::RecallLimits;
use infold::{Aim, Strategy};
use infold_eval::{FACT_PLACES, PLANTED_FACTS, RecordedSession, plant_facts};
use infold_log::{Budget, Limits};
use infold_wire::transcript::Transcript;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut window, mut tokens, mut work) = (32_000, 200_000, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or("a number is missing");
        match &*arg {
            "--window" => window = value()?.parse()?,
            "--tokens" => tokens = value()?.parse()?,
            file => {
                let mut transcript = Transcript::open(BufReader::new(File::open(file)?), None)?;
                while let Some(session) = RecordedSession::next(&mut transcript)? {
                    work.push(session);
                }
            }
        }
    }
    let budget = Budget::new(Limits {
        window,
        threshold: Some(75.0),
        ..Limits::default()
    })?;
    let off = Aim::new(budget, Strategy::default());
    let auto = Aim {
        recall: Some(RecallLimits::of_window(window)),
        ..off.clone()
    };
    let mut columns = Vec::new();
    for place in FACT_PLACES {
        for aim in [&off, &auto] {
            columns.push(plant_facts(&work, aim, tokens, place)?);
        }
    }
    println!(
        "{:<22} user alone   user pasted  assistant    tool result  question",
        ""
    );
    println!(
        "{:<22} {}",
        "fact",
        "off   auto   ".repeat(FACT_PLACES.len())
    );
    for (at, fact) in PLANTED_FACTS.iter().enumerate() {
        print!("{:<22} ", fact.kind);
        for (number, column) in columns.iter().enumerate() {
            let mark = if column[at].is_in_request { "yes" } else { "-" };
            print!("{mark:<width$}", width = 6 + number % 2);
        }
        println!("{}", fact.question);
    }
    print!("{:<22} ", "of 20");
    for (number, column) in columns.iter().enumerate() {
        let found = column.iter().filter(|result| result.is_in_request).count();
        print!("{found:<width$}", width = 6 + number % 2);
    }
    println!();
    Ok(())
}
