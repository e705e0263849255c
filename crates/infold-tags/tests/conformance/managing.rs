//! The recorded functions that decide on a conversation as a whole, and may ask a model.

use std::borrow::Cow;

use infold_tags::{
    CondenseError, CondenseRefusal, CondenseThreshold, Condensed, ImageHandling, ManageAction,
    ManageReport, RefusalReason, Stamps, SummaryPrompt, TagId, TagManageError, Tagged,
    TaggedConversation, ToolCallStyle, WindowLimits, condense, manage, will_manage,
};
use infold_wire::{Json, js, quote};

use crate::functions::{NOW, Output, array, list, object, thrown};
use crate::input::{self, Input};
use crate::script::Script;

type Members = Vec<(&'static str, Vec<u8>)>;

pub fn summarized(input: Input<'_>) -> Output {
    let told = Told::of(input)?;
    let before = input.number("prevContextTokens")?;
    let mut script = Script::usable(input).next();
    let model = script.as_mut().map(Script::model);
    let outcome = condense(told.conversation(), before, model, stamps(&mut ids()));
    let counted = match &outcome {
        Ok(done) => Some(done.tokens),
        Err(CondenseError::Refused(CondenseRefusal {
            reason: RefusalReason::Grew { tokens },
            ..
        })) => Some(*tokens),
        Err(_) => None,
    };
    let mut output = match outcome {
        Ok(done) => vec![("result", object(&condensed(&done)))],
        Err(CondenseError::Refused(refused)) => {
            let mut members = unsummarized(Some(refused));
            members.push(("messages", list(&told.messages)));
            vec![("result", object(&members))]
        }
        Err(CondenseError::Model(message)) => vec![("throws", thrown("Error", &message))],
    };
    let said = script.as_ref().map_or(0.0, |script| script.said);
    let counted = counted.map(|tokens| number(tokens - said).into());
    output.push(("tokenCounts", array(counted.into_iter())));
    output.push(("llmCalls", calls(script.as_ref())));
    Ok(object(&output))
}

pub fn managed(input: Input<'_>) -> Output {
    let told = Told::of(input)?;
    let limits = limits(input)?;
    let mut script = Script::usable(input).next();
    let model = script.as_mut().map(Script::model);
    let outcome = manage(told.conversation(), &limits, model, stamps(&mut ids()));
    let warnings = warnings(input, &outcome, script.as_ref())?;
    let mut output = match outcome {
        Ok(done) => vec![("result", object(&result(&done, &told.messages)))],
        Err(TagManageError::Model(message)) => vec![("throws", thrown("Error", &message))],
        Err(error @ TagManageError::NoMessages) => {
            vec![("throws", thrown("TypeError", &error.to_string()))]
        }
    };
    output.push(("llmCalls", calls(script.as_ref())));
    output.push(("warnings", number(warnings)));
    Ok(object(&output))
}

pub fn will_be_managed(input: Input<'_>) -> Output {
    let last = input.number("lastMessageTokens")?;
    Ok(will_manage(&limits(input)?, last).to_string().into())
}

/// The messages that the peer logs: a threshold it ignores, a handler it cannot ask.
fn warnings(
    input: Input<'_>,
    outcome: &Result<ManageReport, TagManageError<String>>,
    script: Option<&Script<'_>>,
) -> Result<f64, input::Refused> {
    // Without a message it fails before it looks.
    let looked = !matches!(outcome, Err(TagManageError::NoMessages));
    let ignored = looked && threshold(input)?.is_profile_ignored();
    let refused = outcome.as_ref().ok().and_then(|done| done.refused);
    let asked = script.is_some_and(|script| !script.calls.is_empty())
        || refused.is_some_and(|refused| refused.reason == RefusalReason::NoModel);
    let fell_back = asked && Script::falls_back(input);
    Ok(f64::from(u8::from(ignored) + u8::from(fell_back)))
}

fn result(managed: &ManageReport, before: &[Tagged]) -> Members {
    let mut members = vec![("prevContextTokens", number(managed.before))];
    match &managed.action {
        ManageAction::Condensed(done) => members.extend(condensed(done)),
        ManageAction::Nothing => {
            members.push(("messages", list(before)));
            members.extend(unsummarized(managed.refused));
        }
        ManageAction::Truncated {
            truncated,
            id,
            tokens,
        } => {
            members.extend(unsummarized(managed.refused));
            members.extend([
                ("messages", list(&truncated.messages)),
                ("truncationId", id.json().into()),
                ("messagesRemoved", number(truncated.reported)),
                ("newContextTokensAfterTruncation", number(*tokens)),
            ]);
        }
    }
    members
}

fn condensed(done: &Condensed) -> Members {
    vec![
        ("messages", list(&done.messages)),
        ("summary", quote(&done.summary).into()),
        ("cost", number(done.cost)),
        ("newContextTokens", number(done.tokens)),
        ("condenseId", done.id.json().into()),
    ]
}

fn unsummarized(refused: Option<CondenseRefusal>) -> Members {
    let mut members = vec![
        ("summary", quote("").into()),
        ("cost", number(refused.map_or(0.0, |refused| refused.cost))),
    ];
    let key = |refused: CondenseRefusal| match refused.reason {
        RefusalReason::TooFew => "condense_not_enough_messages",
        RefusalReason::Recent => "condensed_recently",
        RefusalReason::NoModel => "condense_handler_invalid",
        RefusalReason::Empty => "condense_failed",
        RefusalReason::Grew { .. } => "condense_context_grew",
    };
    let error = refused.map(|refused| quote(&format!("common:errors.{}", key(refused))));
    members.extend(error.map(|error| ("error", error.into())));
    members
}

/// The conversation and settings of a case.
struct Told<'a> {
    messages: Vec<Tagged>,
    system: Cow<'a, str>,
    prompt: Option<Cow<'a, str>>,
    tools: ToolCallStyle,
    images: ImageHandling,
}

impl<'a> Told<'a> {
    fn of(input: Input<'a>) -> Result<Told<'a>, input::Refused> {
        let images = input.json("apiHandler")?.get("supportsImages");
        Ok(Told {
            messages: input.messages("messages")?,
            system: input.text("systemPrompt").unwrap_or_default(),
            prompt: input.text("customCondensingPrompt"),
            tools: if input.flag("useNativeTools") {
                ToolCallStyle::Blocks
            } else {
                ToolCallStyle::Text
            },
            images: if images.is_some_and(Json::is_true) {
                ImageHandling::Sent
            } else {
                ImageHandling::Named
            },
        })
    }

    fn conversation(&self) -> TaggedConversation<'_> {
        TaggedConversation {
            messages: &self.messages,
            system: &self.system,
            prompt: SummaryPrompt::of(self.prompt.as_deref()),
            tools: self.tools,
            images: self.images,
        }
    }
}

fn limits(input: Input<'_>) -> Result<WindowLimits, input::Refused> {
    let threshold = threshold(input)?;
    Ok(WindowLimits {
        used: input.number("totalTokens")?,
        window: input.number("contextWindow")?,
        reply: input.get("maxTokens").and_then(Json::number),
        condense_at: input.flag("autoCondenseContext").then_some(threshold),
    })
}

fn threshold(input: Input<'_>) -> Result<CondenseThreshold, input::Refused> {
    let id = input.text("currentProfileId").unwrap_or_default();
    let profile = input.json("profileThresholds")?.get(&id);
    Ok(CondenseThreshold {
        everywhere: input.number("autoCondenseContextPercent")?,
        // A value that is not a number is not a percentage.
        profile: profile.map(|own| own.number().unwrap_or(f64::NAN)),
    })
}

fn ids() -> impl FnMut() -> TagId {
    let mut drawn = 0;
    move || {
        drawn += 1;
        TagId::new(&format!("id-{drawn}"))
    }
}

fn stamps(ids: &mut dyn FnMut() -> TagId) -> Stamps<'_> {
    Stamps { now: NOW, ids }
}

fn calls(script: Option<&Script<'_>>) -> Vec<u8> {
    let calls = script.into_iter().flat_map(|script| &script.calls);
    array(calls.map(|call| call.as_slice().into()))
}

fn number(number: f64) -> Vec<u8> {
    js::json_number(number).into()
}
