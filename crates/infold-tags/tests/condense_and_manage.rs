//! The invariants of condensing and managing a tagged history.

mod history;

use std::collections::HashSet;

use history::{Agent, Deed, any_next, stored, tagged, text, texts};
use infold_tags::{
    CondenseError, CondenseThreshold, ImageHandling, ManageAction, Millis, Stamps, SummaryModel,
    SummaryPrompt, SummaryReply, TagId, TagKind, TagManageError, Tagged, TaggedConversation,
    ToolCallStyle, WindowLimits, condense, count_tokens, effective, manage, manage_despite_failure,
    will_manage,
};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(1000),
        failure_persistence: None,
        ..asked
    }
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => any_next().prop_map(Deed::Say),
        1 => (0..=100u8).prop_map(Deed::Truncate),
        1 => Just(Deed::Condense),
        1 => any::<u16>().prop_map(Deed::Rewind),
        1 => Just(Deed::Store),
    ]
}

fn any_history() -> impl Strategy<Value = Vec<Tagged>> {
    prop::collection::vec(any_deed(), 0..12).prop_map(|deeds| {
        let mut agent = Agent::asked();
        deeds.into_iter().for_each(|deed| agent.does(deed));
        agent.history
    })
}

/// The model's reaction to a request.
#[derive(Clone, Debug)]
enum Mood {
    Absent,
    Fails,
    Says(&'static str, f64),
}

fn any_mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        1 => Just(Mood::Absent),
        1 => Just(Mood::Fails),
        6 => (prop::sample::select(vec![" ", "in \"short\"\n"]), 0..99u8)
            .prop_map(|(text, tokens)| Mood::Says(text, f64::from(tokens))),
    ]
}

impl Mood {
    fn model<'a>(&self, asked: &'a mut bool) -> Option<SummaryModel<'a, &'static str>> {
        let reply = match *self {
            Mood::Absent => return None,
            Mood::Fails => Err("no route"),
            Mood::Says(text, tokens) => Ok(SummaryReply {
                text: text.to_owned(),
                cost: 0.5,
                tokens,
            }),
        };
        Some(Box::new(move |_| {
            *asked = true;
            reply
        }))
    }
}

fn conversation(messages: &[Tagged], tools: ToolCallStyle) -> TaggedConversation<'_> {
    TaggedConversation {
        messages,
        system: "be brief",
        prompt: SummaryPrompt::Default,
        tools,
        images: ImageHandling::Named,
    }
}

fn any_tools() -> impl Strategy<Value = ToolCallStyle> {
    prop::sample::select(vec![ToolCallStyle::Blocks, ToolCallStyle::Text])
}

fn any_limits() -> impl Strategy<Value = WindowLimits> {
    let percent = || prop::sample::select(vec![-1.0, 0.0, 5.0, 50.0, 75.0, 100.0, 101.0]);
    let threshold = (percent(), prop::option::of(percent())).prop_map(|(everywhere, profile)| {
        CondenseThreshold {
            everywhere,
            profile,
        }
    });
    let reply = prop::option::of(prop::sample::select(vec![0.0, 1.0, 500.0]));
    let window = prop::sample::select(vec![0.0, 1000.0, 10_000.0]);
    (0..11_000u16, window, reply, prop::option::of(threshold)).prop_map(
        |(used, window, reply, condense_at)| WindowLimits {
            used: f64::from(used),
            window,
            reply,
            condense_at,
        },
    )
}

/// Returns the tags that refer to no stand-in in the list.
fn orphans(messages: &[Tagged]) -> Vec<&TagId> {
    let mut orphans = Vec::new();
    for fold in TagKind::ALL {
        let present: HashSet<_> = messages.iter().filter_map(|m| m.stands_for(fold)).collect();
        let parents = messages.iter().filter_map(|message| message.parent(fold));
        orphans.extend(parents.filter(|id| !present.contains(id)));
    }
    orphans
}

proptest! {
    #![proptest_config(config())]

    /// After condensing the first message, the summary and the kept ones are sent unchanged.
    #[test]
    fn condensing_leaves_first_summary_and_kept(history in any_history(), tools in any_tools()) {
        let mut asked = false;
        let model = Mood::Says("in short", 3.0).model(&mut asked);
        let stamps = Stamps { now: Millis(7.0), ids: &mut || TagId::new("new") };
        let Ok(done) = condense(conversation(&history, tools), 1e9, model, stamps) else {
            return Ok(());
        };
        let kept = history.len() - 3;
        let sent: HashSet<String> = texts(&effective(&history)).into_iter().collect();
        let kept_texts = texts(&history[kept..]);
        let mut expected = vec![text(&history[0]), text(&done.messages[kept])];
        expected.extend(kept_texts.into_iter().filter(|text| sent.contains(text)));
        prop_assert_eq!(texts(&effective(&done.messages)), expected.clone());
        prop_assert_eq!(texts(&effective(&stored(&done.messages))), expected);
        prop_assert_eq!(done.messages[kept].stands_for(TagKind::Summary), Some(&done.id));
    }

    /// Taking the summary and its tags away gives back the same bytes.
    #[test]
    fn condensing_changes_tags_only(history in any_history(), tools in any_tools()) {
        let mut asked = false;
        let model = Mood::Says("in short", 0.0).model(&mut asked);
        let stamps = Stamps { now: Millis(7.0), ids: &mut || TagId::new("new") };
        let Ok(mut done) = condense(conversation(&history, tools), 1e9, model, stamps) else {
            return Ok(());
        };
        done.messages.remove(history.len() - 3);
        for message in &mut done.messages {
            if message.parent(TagKind::Summary) == Some(&done.id) {
                message.untag(TagKind::Summary);
            }
        }
        prop_assert_eq!(texts(&done.messages), texts(&history));
    }

    /// The model is called only if there is no refusal before, and its cost is reported.
    #[test]
    fn an_answer_is_paid_for_even_if_refused(
        history in any_history(), mood in any_mood(), before in 0..200u8,
    ) {
        let mut asked = false;
        let model = mood.model(&mut asked);
        let stamps = Stamps { now: Millis(7.0), ids: &mut || TagId::new("new") };
        let outcome = condense(conversation(&history, ToolCallStyle::Blocks), f64::from(before), model, stamps);
        let (cost, failed) = match outcome {
            Ok(done) => {
                prop_assert!(done.tokens < f64::from(before));
                (done.cost, false)
            }
            Err(CondenseError::Refused(refused)) => (refused.cost, false),
            Err(CondenseError::Model(_)) => (0.0, true),
        };
        prop_assert_eq!(cost > 0.0 || failed, asked);
    }

    /// Managing acts exactly if that was predicted, and every tag has its stand-in.
    #[test]
    fn managing_is_foretold(
        history in any_history(), tools in any_tools(), mood in any_mood(), limits in any_limits(),
    ) {
        let last = history.last().and_then(Tagged::content).map_or(0, count_tokens) as f64;
        let foretold = will_manage(&limits, last);
        let (mut asked, mut drawn) = (false, 0);
        let mut ids = || {
            drawn += 1;
            TagId::new(&format!("new-{drawn}"))
        };
        let stamps = Stamps { now: Millis(7.0), ids: &mut ids };
        let outcome = manage(conversation(&history, tools), &limits, mood.model(&mut asked), stamps);
        prop_assert!(foretold || !asked && drawn == 0);
        match outcome {
            Ok(managed) => {
                prop_assert_eq!(managed.before, limits.used + last);
                let tried = managed.refused.is_some() || !matches!(managed.action, ManageAction::Nothing);
                prop_assert_eq!(tried, foretold);
                let messages = match &managed.action {
                    ManageAction::Nothing => &history,
                    ManageAction::Condensed(done) => &done.messages,
                    ManageAction::Truncated { truncated, .. } => &truncated.messages,
                };
                prop_assert_eq!(orphans(messages), Vec::<&TagId>::new());
            }
            Err(TagManageError::Model(_)) => prop_assert!(asked),
            Err(TagManageError::NoMessages) => prop_assert!(history.is_empty()),
        }
    }
}

/// A failing model leaves the conversation alone, even one that is far too long.
#[test]
fn a_failing_model_is_not_made_up_for_by_truncation() {
    let history: Vec<Tagged> = (0..9)
        .map(|ts| tagged(&format!(r#"{{"role":"user","content":"go","ts":{ts}}}"#)))
        .collect();
    let limits = WindowLimits {
        used: 1e6,
        window: 1000.0,
        reply: None,
        condense_at: Some(CondenseThreshold {
            everywhere: 75.0,
            profile: None,
        }),
    };
    let mut asked = false;
    let stamps = Stamps {
        now: Millis(7.0),
        ids: &mut || TagId::new("new"),
    };
    let model = Mood::Fails.model(&mut asked);
    let outcome = manage(
        conversation(&history, ToolCallStyle::Text),
        &limits,
        model,
        stamps,
    );
    assert_eq!(outcome.unwrap_err(), TagManageError::Model("no route"));
}

#[test]
fn on_request_a_failing_model_is_made_up_for_by_truncation() {
    let said = r#"{"role":"user","content":"go on"}"#;
    let list = format!("[{}]", [said; 20].join(","));
    let messages = Tagged::parse_list(list.as_bytes()).expect("messages");
    let limits = |used| WindowLimits {
        used,
        window: 10_000.0,
        reply: Some(500.0),
        condense_at: Some(CondenseThreshold {
            everywhere: 75.0,
            profile: None,
        }),
    };
    let managed = |used| {
        let mut asked = false;
        let stamps = Stamps {
            now: Millis(9.0),
            ids: &mut || TagId::new("t1"),
        };
        manage_despite_failure(
            conversation(&messages, ToolCallStyle::Blocks),
            &limits(used),
            Mood::Fails.model(&mut asked),
            stamps,
        )
        .expect("there are messages")
    };
    let (truncated, error) = managed(9_000.0);
    assert_eq!(error, Some("no route"));
    match truncated.action {
        ManageAction::Truncated { id, truncated, .. } => {
            assert_eq!(id, TagId::new("t1"));
            assert!(effective(&truncated.messages).len() < messages.len());
        }
        done => panic!("{done:?}"),
    }
    // A history that still fits is left as it is.
    let (kept, error) = managed(8_000.0);
    assert_eq!(error, Some("no route"));
    assert!(matches!(kept.action, ManageAction::Nothing));
}
