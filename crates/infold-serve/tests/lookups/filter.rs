//! The filter alone: any rounds, cut anywhere.

use infold_translate::{stream_reply, write_reply};
use infold_wire::lookup::{HeldCalls, LookupNames, ReplyFilter};
use infold_wire::{Delivery, Json, Reply, ReplyReader, Wire};
use proptest::prelude::*;

use crate::blocks::{Block, Numbered, merged, numbered, reply};

fn lookups() -> HeldCalls {
    HeldCalls::new(LookupNames::beside(&[]), None)
}

/// Returns the bytes that a client of a stream gets of these rounds.
pub fn streamed(wire: Wire, rounds: &[Vec<Numbered>], piece: usize, cut: usize) -> Vec<u8> {
    let mut filter = ReplyFilter::new(wire, Delivery::Stream, lookups());
    let mut out = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        let bytes = stream_reply(wire, &reply(wire, at, round), piece).concat();
        for chunk in bytes.chunks(cut) {
            out.extend(filter.push(chunk));
        }
        let outcome = filter.end_round();
        let goes_on = at + 1 < rounds.len();
        assert_eq!(outcome.waits_for_lookups(), goes_on, "{wire} {outcome:?}");
        out.extend(if goes_on {
            filter.next_round()
        } else {
            filter.finish()
        });
    }
    out
}

/// Returns the body that a client without streaming gets of these rounds.
fn whole(wire: Wire, rounds: &[Vec<Numbered>]) -> Vec<u8> {
    let mut filter = ReplyFilter::new(wire, Delivery::Whole, lookups());
    for (at, round) in rounds.iter().enumerate() {
        let body = write_reply(wire, &reply(wire, at, round));
        filter.push_body(&body);
        let outcome = filter.end_round();
        if at + 1 == rounds.len() {
            return filter.last_body(&body);
        }
        assert!(outcome.waits_for_lookups(), "{wire} {outcome:?}");
        filter.next_body(&body);
    }
    Vec::new()
}

fn read(wire: Wire, delivery: Delivery, bytes: &[u8]) -> Reply {
    let mut reader = ReplyReader::new(wire, delivery);
    let read = reader.push(bytes, &mut |_| {});
    let reply = read.and_then(|()| reader.finish());
    reply.unwrap_or_else(|error| panic!("{wire}: {error}: {}", String::from_utf8_lossy(bytes)))
}

/// The data of the events of a stream.
fn data(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let line = |line: &str| Some(line.strip_prefix("data: ").unwrap_or(line).to_owned());
    let is_data = |line: &&str| line.starts_with("data: ") || line.starts_with('{');
    text.lines().filter(is_data).filter_map(line).collect()
}

fn number(json: Json<'_>, name: &str) -> Option<u64> {
    Some(json.get(name)?.number()? as u64)
}

/// A stream has one beginning, one end, and numbers without gaps.
fn is_one_stream(wire: Wire, bytes: &[u8]) -> Result<(), TestCaseError> {
    let events = data(bytes);
    let count = |what: &str| events.iter().filter(|event| event.contains(what)).count();
    let parsed = events
        .iter()
        .filter_map(|event| Json::parse(event.as_bytes()).ok());
    match wire {
        Wire::Anthropic => {
            prop_assert_eq!(count("\"type\":\"message_start\""), 1);
            prop_assert_eq!(count("\"type\":\"message_stop\""), 1);
            let starts = parsed.filter(|it| it.get("content_block").is_some());
            for (at, start) in starts.enumerate() {
                prop_assert_eq!(number(start, "index"), Some(at as u64));
            }
        }
        Wire::Responses => {
            prop_assert_eq!(count("\"type\":\"response.created\""), 1);
            prop_assert_eq!(count("\"type\":\"response.completed\""), 1);
            let mut items = 0;
            for (at, event) in parsed.enumerate() {
                prop_assert_eq!(number(event, "sequence_number"), Some(at as u64));
                let is_added = event
                    .get("type")
                    .is_some_and(|it| it.is("response.output_item.added"));
                if is_added {
                    prop_assert_eq!(number(event, "output_index"), Some(items));
                    items += 1;
                }
            }
        }
        Wire::Chat => {
            prop_assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
            prop_assert_eq!(count("[DONE]"), 1);
            prop_assert_eq!(count("\"role\":\"assistant\""), 1);
            prop_assert_eq!(count("\"finish_reason\":\""), 1);
            let ids = parsed.filter_map(|it| Some(it.get("id")?.bytes().to_vec()));
            let ids: std::collections::BTreeSet<Vec<u8>> = ids.collect();
            prop_assert_eq!(ids.len(), 1);
        }
        Wire::Gemini => prop_assert_eq!(count("\"finishReason\":\""), 1),
        Wire::Ollama => prop_assert_eq!(count("\"done\":true"), 1),
    }
    Ok(())
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a \"quoted\" word",
        "é🚀",
        "line\nbreak",
        "x",
        "data: y",
    ])
    .prop_map(str::to_owned)
}

/// A round that only looks something up, perhaps with words before and between.
fn lookup_round() -> impl Strategy<Value = Vec<Block>> {
    let block = prop_oneof![word().prop_map(Block::Text), word().prop_map(Block::Lookup),];
    (
        prop::option::of(word()),
        prop::collection::vec(block, 0..4),
        word(),
    )
        .prop_map(|(thought, mut blocks, query)| {
            blocks.push(Block::Lookup(query));
            blocks.splice(0..0, thought.map(Block::Think));
            blocks
        })
}

/// A last round with any content.
fn last_round() -> impl Strategy<Value = Vec<Block>> {
    let block = prop_oneof![
        word().prop_map(Block::Text),
        word().prop_map(Block::Lookup),
        word().prop_map(Block::Call),
    ];
    (
        prop::option::of(word()),
        prop::collection::vec(block, 0..5),
        word(),
        any::<bool>(),
    )
        .prop_map(|(thought, mut blocks, last, calls)| {
            let has_call = blocks.iter().any(|it| matches!(it, Block::Call(_)));
            let has_lookup = blocks.iter().any(|it| matches!(it, Block::Lookup(_)));
            blocks.push(if calls || has_lookup && !has_call {
                Block::Call(last)
            } else {
                Block::Text(last)
            });
            blocks.splice(0..0, thought.map(Block::Think));
            blocks
        })
}

pub fn rounds() -> impl Strategy<Value = Vec<Vec<Block>>> {
    (prop::collection::vec(lookup_round(), 0..3), last_round()).prop_map(|(mut rounds, last)| {
        rounds.push(last);
        rounds
    })
}

pub fn all_numbered(rounds: &[Vec<Block>]) -> Vec<Vec<Numbered>> {
    let rounds = rounds.iter().enumerate();
    rounds.map(|(at, round)| numbered(at, round)).collect()
}

/// A stream may break off anywhere: the client has seen nothing of a look-up, and a withheld end is reported.
#[test]
fn a_stream_that_breaks_off_anywhere_shows_nothing_of_a_look_up() {
    let text = Block::Text("Let me see. ".to_owned());
    let blocks = numbered(0, &[text, Block::Lookup("zanzibar".to_owned())]);
    for wire in Wire::ALL {
        let bytes = stream_reply(wire, &reply(wire, 0, &blocks), 5).concat();
        let text = String::from_utf8_lossy(&bytes);
        let call = text.find("search_history").expect("a call");
        for cut in 1..bytes.len() {
            let mut filter = ReplyFilter::new(wire, Delivery::Stream, lookups());
            let mut seen = filter.push(&bytes[..cut]);
            let outcome = filter.end_round();
            if outcome.reply.is_ok() {
                continue;
            }
            if !outcome.is_withheld {
                assert!(cut <= call, "{wire} {cut}");
                seen.extend(filter.finish());
            }
            let seen = String::from_utf8_lossy(&seen);
            for part in ["search", "_history", "zanz", "tool_use\"", "functionCall\""] {
                assert!(!seen.contains(part), "{wire} {cut}: {seen}");
            }
        }
    }
}

/// Lines that end with CR alone, and a comment within which a round breaks off, do not affect the following events.
#[test]
fn lines_that_only_began_do_not_run_into_others() {
    let first = numbered(
        0,
        &[
            Block::Text("Let me see. ".to_owned()),
            Block::Lookup("it".to_owned()),
        ],
    );
    let second = numbered(1, &[Block::Text("So it is.".to_owned())]);
    let rounds = [first, second];
    // The other wires have no server-sent events.
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini] {
        let expected = read(
            wire,
            Delivery::Stream,
            &streamed(wire, &rounds, 5, usize::MAX),
        );
        for (with_cr, cut) in [false, true]
            .into_iter()
            .flat_map(|cr| (1..12).map(move |cut| (cr, cut)))
        {
            let mut filter = ReplyFilter::new(wire, Delivery::Stream, lookups());
            let mut seen = Vec::new();
            for (at, round) in rounds.iter().enumerate() {
                let bytes = stream_reply(wire, &reply(wire, at, round), 5).concat();
                let text = String::from_utf8(bytes).expect("text");
                let mut bytes = if with_cr {
                    text.replace('\n', "\r")
                } else {
                    text
                };
                bytes += if at == 0 { ": k" } else { "" };
                for chunk in bytes.as_bytes().chunks(cut) {
                    seen.extend(filter.push(chunk));
                }
                filter.end_round();
                seen.extend(if at == 0 {
                    filter.next_round()
                } else {
                    filter.finish()
                });
            }
            assert_eq!(
                read(wire, Delivery::Stream, &seen),
                expected,
                "{wire} {cut} {with_cr}"
            );
        }
    }
}

/// Bytes behind the end of a reply do not break it.
#[test]
fn nonsense_behind_the_end_of_a_reply_is_left_out() {
    let blocks = numbered(0, &[Block::Text("So it is.".to_owned())]);
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Gemini) {
        let bytes = stream_reply(wire, &reply(wire, 0, &blocks), 5).concat();
        let mut filter = ReplyFilter::new(wire, Delivery::Stream, lookups());
        let mut seen = filter.push(&bytes);
        seen.extend(filter.push(b"data: {\"function\n\n"));
        let outcome = filter.end_round();
        assert!(outcome.reply.is_ok(), "{wire}: {outcome:?}");
        seen.extend(filter.finish());
        assert_eq!(seen.trim_ascii_end(), bytes.trim_ascii_end(), "{wire}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The client sees the same as if the model had looked nothing up.
    #[test]
    fn look_ups_leave_no_trace(rounds in rounds(), piece in 1..9usize, cut in 1..40usize) {
        let rounds = all_numbered(&rounds);
        for wire in Wire::ALL {
            let expected = merged(wire, &rounds);
            let plain = stream_reply(wire, &expected, piece).concat();
            let bytes = streamed(wire, &rounds, piece, cut);
            is_one_stream(wire, &bytes)?;
            let seen = read(wire, Delivery::Stream, &bytes);
            prop_assert_eq!(&seen, &read(wire, Delivery::Stream, &plain), "{} streams", wire);
            let body = whole(wire, &rounds);
            let plain = write_reply(wire, &expected);
            let seen = read(wire, Delivery::Whole, &body);
            prop_assert_eq!(&seen, &read(wire, Delivery::Whole, &plain), "{} whole", wire);
            let leaks = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("search_history");
            prop_assert!(!leaks(&bytes) && !leaks(&body), "{} leaks", wire);
        }
    }

    /// Without look-ups the bytes are unchanged.
    #[test]
    fn a_reply_without_look_ups_is_not_touched(last in last_round(), cut in 1..40usize) {
        let is_plain = |block: &Block| !matches!(block, Block::Lookup(_));
        let last: Vec<Block> = last.into_iter().filter(is_plain).collect();
        let rounds = [numbered(0, &last)];
        for wire in Wire::ALL {
            let plain = stream_reply(wire, &reply(wire, 0, &rounds[0]), 5).concat();
            prop_assert_eq!(streamed(wire, &rounds, 5, cut), plain);
            let plain = write_reply(wire, &reply(wire, 0, &rounds[0]));
            prop_assert_eq!(whole(wire, &rounds), plain);
        }
    }
}
