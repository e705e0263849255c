//! Tags are another notation of the folds that they represent.

mod history;

use history::{Agent, Deed, Next, any_next, stored, tagged, text, texts};
use infold_log::{Cause, Seq};
use infold_tags::{Tagged, UntaggedHistory, effective, from_tags, to_tags};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(4000),
        failure_persistence: None,
        ..asked
    }
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => any_next().prop_map(Deed::Say),
        3 => (0..=100u8).prop_map(Deed::Truncate),
        3 => Just(Deed::Condense),
        1 => any::<u16>().prop_map(Deed::Rewind),
        1 => Just(Deed::Store),
    ]
}

fn any_deeds() -> impl Strategy<Value = Vec<Deed>> {
    prop::collection::vec(any_deed(), 0..40)
}

/// Forgets everything but bytes.
fn reread(mut parts: UntaggedHistory) -> UntaggedHistory {
    parts.messages = stored(&parts.messages);
    for fold in &mut parts.folds {
        fold.stand_in = tagged(&text(&fold.stand_in));
    }
    parts
}

proptest! {
    #![proptest_config(config())]

    /// Taking an array apart and putting it together gives the same bytes.
    #[test]
    fn tags_become_folds_and_tags_again(deeds in any_deeds()) {
        let mut agent = Agent::asked();
        deeds.iter().for_each(|deed| agent.does(*deed));
        let parts = reread(from_tags(&agent.history));
        let back = to_tags(&parts.messages, &parts.folds);
        prop_assert_eq!(texts(&back), texts(&agent.history));
    }

    /// Messages come out as they were before anything was tagged.
    #[test]
    fn messages_come_out_as_they_were(deeds in any_deeds()) {
        let (mut agent, mut plain) = (Agent::asked(), Agent::asked());
        for deed in deeds.iter().filter(|deed| !matches!(deed, Deed::Rewind(_))) {
            agent.does(*deed);
            if let Deed::Say(next) = deed {
                plain.say(*next);
            }
        }
        let messages = from_tags(&agent.history).messages;
        prop_assert_eq!(texts(&messages), texts(&plain.history));
    }

    /// The folds cover the messages that would not be sent, and no others.
    #[test]
    fn folds_cover_what_tags_hide(deeds in any_deeds()) {
        let mut agent = Agent::asked();
        deeds.iter().for_each(|deed| agent.does(*deed));
        let parts = from_tags(&agent.history);
        let covered = |seq: Seq| {
            parts.folds.iter().any(|fold| fold.covers.is_some_and(|span| span.holds(seq)))
        };
        let seqs = (1..).filter_map(Seq::new);
        let shown = parts.messages.iter().zip(seqs).filter(|(_, seq)| !covered(*seq));
        let shown: Vec<String> = shown.map(|(message, _)| text(message)).collect();
        let sent = from_tags(&effective(&agent.history)).messages;
        prop_assert_eq!(shown, texts(&sent));
    }

    /// Folds come in the order in which they were made, if there were messages between them and nothing was removed
    /// since. Inner ones come first in any case.
    #[test]
    fn folds_come_in_the_order_in_which_they_were_made(deeds in any_deeds()) {
        let mut agent = Agent::asked();
        for deed in &deeds {
            if matches!(deed, Deed::Truncate(_) | Deed::Condense) {
                (0..2).for_each(|_| agent.say(Next::Talk));
            }
            agent.does(*deed);
        }
        let rewound = deeds.iter().any(|deed| matches!(deed, Deed::Rewind(_)));
        let folds = from_tags(&agent.history).folds;
        let made = |id: &str| id.trim_matches(['"', 'T', 'C']).parse::<u64>().expect("a number");
        let made: Vec<u64> = folds.iter().map(|fold| made(fold.id.json())).collect();
        prop_assert!(rewound || made.is_sorted(), "{:?} {:#?}", made, texts(&agent.history));
        for (at, fold) in folds.iter().enumerate() {
            prop_assert!(fold.inside.is_none_or(|outer| outer > at));
        }
    }

    /// With any tags, every entry becomes a message or a stand-in, and can be converted back.
    #[test]
    fn scrambled_tags_lose_no_message(entries in prop::collection::vec(any_entry(), 0..14)) {
        let array: Vec<Tagged> = entries.iter().map(|entry| tagged(entry)).collect();
        let parts = reread(from_tags(&array));
        prop_assert_eq!(parts.messages.len() + parts.folds.len(), array.len());
        let back = to_tags(&parts.messages, &parts.folds);
        let names = |list: &[Tagged]| -> Vec<String> {
            let names = list.iter().map(|m| m.content().map(|name| format!("{name:?}")));
            names.flatten().collect()
        };
        prop_assert_eq!(names(&back), names(&array));
        let again = from_tags(&back);
        prop_assert_eq!(texts(&again.messages), texts(&parts.messages));
    }
}

/// An entry with any flags, ids and tags.
fn any_entry() -> impl Strategy<Value = String> {
    let id = || prop::sample::select(vec!["", r#""a""#, r#""b""#, r#""c""#, r#""""#]);
    let kind = || prop::sample::select(vec![0, 0, 1, 2, 3]);
    (any::<u16>(), kind(), [id(), id(), id(), id()]).prop_map(|(name, kind, ids)| {
        let names = [
            "condenseId",
            "truncationId",
            "truncationParent",
            "condenseParent",
        ];
        let mut text = format!(r#"{{"role":"user","content":{name}"#);
        for (name, id) in names.iter().zip(ids).filter(|(_, id)| !id.is_empty()) {
            text += &format!(r#","{name}":{id}"#);
        }
        for flag in ["isSummary", "isTruncationMarker"].iter().zip([1, 2]) {
            if kind & flag.1 != 0 {
                text += &format!(r#","{}":true"#, flag.0);
            }
        }
        text + "}"
    })
}

/// Returns the folds of a history: id, covered messages, and the fold around it.
fn told(agent: &Agent) -> Vec<String> {
    let folds = from_tags(&agent.history).folds;
    let told = folds.iter().map(|fold| {
        let covers = fold
            .covers
            .map_or("nothing".to_owned(), |span| span.to_string());
        let outer = fold
            .inside
            .map(|outer| format!(" in {}", folds[outer].id.json()));
        format!("{} {covers}{}", fold.id.json(), outer.unwrap_or_default())
    });
    told.collect()
}

fn worked(rounds: usize) -> Agent {
    let mut agent = Agent::asked();
    (0..rounds).for_each(|_| agent.say(Next::Work(1)));
    agent
}

#[test]
fn a_summary_over_a_summary_holds_it() {
    let mut agent = worked(4);
    assert!(agent.condense());
    (0..3).for_each(|_| agent.say(Next::Talk));
    assert!(agent.condense());
    assert_eq!(told(&agent), [r#""C1" 2..6 in "C2""#, r#""C2" 2..12"#]);
}

#[test]
fn a_summary_over_a_marker_holds_it() {
    let mut agent = worked(4);
    agent.truncate(0.5);
    assert!(agent.condense());
    assert_eq!(told(&agent), [r#""T1" 2..5 in "C2""#, r#""C2" 2..6"#]);
}

#[test]
fn a_marker_over_a_summary_holds_it() {
    let mut agent = worked(4);
    assert!(agent.condense());
    agent.truncate(0.9);
    assert_eq!(told(&agent), [r#""C1" 2..6 in "T2""#, r#""T2" 2..8"#]);
}

#[test]
fn a_marker_over_condensed_messages_hides_nothing() {
    let mut agent = worked(4);
    assert!(agent.condense());
    agent.truncate(0.5);
    assert_eq!(told(&agent), [r#""C1" 2..6"#, r#""T2" nothing"#]);
}

#[test]
fn markers_stand_side_by_side() {
    let mut agent = worked(4);
    agent.truncate(0.5);
    agent.truncate(0.5);
    assert_eq!(told(&agent), [r#""T1" 2..5"#, r#""T2" 6..7"#]);
}

#[test]
fn a_tag_that_points_to_nothing_is_no_fold() {
    let array = [tagged(r#"{"role":"user","condenseParent":"gone"}"#)];
    let parts = from_tags(&array);
    assert!(parts.folds.is_empty());
    assert_eq!(texts(&parts.messages), [r#"{"role":"user"}"#]);
}

#[test]
fn folds_of_another_origin_can_be_written_as_tags() {
    use infold_tags::{TagFold, TagId};
    let agent = worked(3);
    let fold = |id: &str, cause, span: &str, flag: &str| {
        let stand_in = tagged(&format!(r#"{{"role":"user",{flag}:"{id}"}}"#));
        TagFold::new(TagId::new(id), cause, span.parse().unwrap(), stand_in)
    };
    let folds = [
        fold(
            "t",
            Cause::Window,
            "2..3",
            r#""isTruncationMarker":1,"truncationId""#,
        ),
        fold("c", Cause::Summary, "2..5", r#""isSummary":1,"condenseId""#),
    ];
    let array = to_tags(&agent.history, &folds);
    let sent = effective(&array);
    let expected = [0, 7, 8].map(|at| text(&array[at]));
    assert_eq!(
        [&sent[0], &sent[2], &sent[3]].map(text),
        [0, 7, 8].map(|at| text(&array[at])),
        "{expected:?}"
    );
    assert_eq!(
        sent[1].stands_for(infold_tags::TagKind::Summary),
        Some(&TagId::new("c"))
    );
    let again = from_tags(&array).folds;
    assert_eq!(again[0].covers, folds[0].covers);
    assert_eq!(again[1].covers, folds[1].covers);
    assert!(again[0].inside.is_some());
}
