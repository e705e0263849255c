//! From a view to the messages it would be sent as, on facts alone.

use infold_log::{Call, Facts, Line, Role, Rounds, Seq, Shows, Source, View};

use super::{Talk, facts};

/// The messages of a view, rendered by the rules of the wire.
pub fn lines(talk: &Talk, view: &View) -> Vec<Line> {
    let mut lines = Vec::new();
    for piece in view.pieces() {
        match &piece.shows {
            Shows::Verbatim(span) => lines.extend(span.seqs().map(|seq| verbatim(talk, seq))),
            Shows::Round {
                members, closed, ..
            } => lines.extend(round(talk, members, *closed)),
            Shows::StandIn(_) | Shows::Note(_) => lines.push(Line {
                source: Source::StandIn,
                facts: facts(Role::User),
            }),
        }
    }
    lines
}

fn verbatim(talk: &Talk, seq: Seq) -> Line {
    Line {
        source: Source::Message(seq),
        facts: talk.facts_at(seq).clone(),
    }
}

fn round(talk: &Talk, members: &[Seq], closed: bool) -> Vec<Line> {
    let mut rounds = Rounds::default();
    let (mut shown, mut late) = (Vec::new(), Vec::new());
    for seq in members {
        let mut line = verbatim(talk, *seq);
        let waiting = rounds.waiting().cloned().collect::<Vec<_>>();
        let (placement, paired) = rounds.pair(*seq, &line.facts, None);
        if placement.starts {
            interrupt(waiting, &mut shown);
            shown.append(&mut late);
        }
        line.facts.empty = false;
        keep_paired(&mut line.facts, &paired);
        if paired.is_empty() || paired.contains(&true) {
            shown.push(line)
        } else {
            late.push(Line {
                source: Source::Late(*seq),
                facts: facts(Role::User),
            })
        }
    }
    if closed {
        interrupt(rounds.waiting().cloned().collect::<Vec<_>>(), &mut shown);
    }
    shown.append(&mut late);
    shown
}

fn interrupt(waiting: Vec<Call>, shown: &mut Vec<Line>) {
    if !waiting.is_empty() {
        shown.push(Line {
            source: Source::Repair,
            facts: Facts {
                answers: waiting,
                ..facts(Role::Tool)
            },
        });
    }
}

fn keep_paired(facts: &mut Facts, paired: &[bool]) {
    let mut paired = paired.iter();
    facts.answers.retain(|_| paired.next() == Some(&true));
}
