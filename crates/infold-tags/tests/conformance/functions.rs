//! The recorded functions, each translated to ours and its result back to JSON.

use std::borrow::Cow;

use infold_tags::{
    Millis, OrphanTags, RewindTarget, RewoundTask, TagId, Tagged, TaskLists, effective,
    keep_with_tool_blocks, rewind_to_index, rewind_to_ts, since_last_summary, split_point,
    truncate, untag_orphans,
};
use infold_wire::{Json, js, quote, tokens};

use crate::input::{Input, Refused};
use crate::managing;

/// The output of a function: the recorded output as JSON.
pub type Output = Result<Vec<u8>, Refused>;

pub type Function = fn(Input<'_>) -> Output;

/// Finds a recorded function by its name.
pub fn named(name: &str) -> Option<Function> {
    Some(match name {
        "truncateConversation" => truncated,
        "getEffectiveApiHistory" => effective_history,
        "cleanupAfterTruncation" => cleaned_up,
        "getKeepMessagesWithToolBlocks" => kept,
        "getMessagesSinceLastSummary" => since,
        "MessageManager.rewindToTimestamp" => rewound_to_ts,
        "MessageManager.rewindToIndex" => rewound_to_index,
        "findCompressSplitPoint" => split,
        "summarizeConversation" => managing::summarized,
        "manageContext" => managing::managed,
        "willManageContext" => managing::will_be_managed,
        "tiktoken" => counted,
        "estimateTokenCountSync" => guessed,
        _ => return None,
    })
}

/// The fixed clock of the recordings.
pub const NOW: Millis = Millis(1_767_225_600_000.0);

fn truncated(input: Input<'_>) -> Output {
    let id = TagId::new("id-1");
    let messages = input.messages("messages")?;
    let done = truncate(&messages, input.number("fracToRemove")?, &id, NOW);
    Ok(object(&[
        ("messages", list(&done.messages)),
        ("truncationId", id.json().into()),
        ("messagesRemoved", js::json_number(done.reported).into()),
    ]))
}

fn effective_history(input: Input<'_>) -> Output {
    Ok(list(&effective(&input.messages("messages")?)))
}

fn cleaned_up(input: Input<'_>) -> Output {
    Ok(list(&untag_orphans(&input.messages("messages")?)))
}

fn kept(input: Input<'_>) -> Output {
    let messages = input.messages("messages")?;
    // A negative count becomes zero, and both keep nothing.
    let kept = keep_with_tool_blocks(&messages, input.number("keepCount")? as usize);
    let blocks = |blocks: &[Json<'_>]| array(blocks.iter().map(|block| block.bytes().into()));
    Ok(object(&[
        ("keepMessages", list(kept.messages)),
        ("toolUseBlocksToPreserve", blocks(&kept.calls)),
        ("reasoningBlocksToPreserve", blocks(&kept.reasoning)),
    ]))
}

fn since(input: Input<'_>) -> Output {
    Ok(list(&since_last_summary(&input.messages("messages")?, NOW)))
}

fn rewound_to_ts(input: Input<'_>) -> Output {
    let ts = Millis(input.number("ts")?);
    let target = if input.option("includeTargetMessage") {
        RewindTarget::Keep
    } else {
        RewindTarget::Cut
    };
    rewound(input, |task, orphans| {
        rewind_to_ts(task, ts, target, orphans).map_err(|error| error.to_string())
    })
}

fn rewound_to_index(input: Input<'_>) -> Output {
    let index = input.number("toIndex")?;
    rewound(input, |task, orphans| {
        if index < 0.0 {
            return Err("a negative index is no index".to_owned());
        }
        Ok(rewind_to_index(task, index as usize, orphans, NOW))
    })
}

fn rewound(
    input: Input<'_>,
    rewind: impl for<'a> Fn(TaskLists<'a>, OrphanTags) -> Result<RewoundTask<'a>, String>,
) -> Output {
    let (ui, history) = (
        input.entries("clineMessages")?,
        input.messages("apiConversationHistory")?,
    );
    let task = TaskLists {
        ui: &ui,
        history: &history,
    };
    let orphans = if input.option("skipCleanup") {
        OrphanTags::Leave
    } else {
        OrphanTags::Untag
    };
    let result = rewind(task, orphans);
    let shown = result.as_ref().map_or(task.ui, |rewound| rewound.ui);
    let changed = result
        .as_ref()
        .ok()
        .and_then(|rewound| rewound.history.as_deref());
    let mut output = vec![
        (
            "clineMessages",
            array(shown.iter().map(|entry| entry.bytes().into())),
        ),
        (
            "apiConversationHistory",
            list(changed.unwrap_or(task.history)),
        ),
        ("clineWrites", count(result.is_ok())),
        ("apiWrites", count(changed.is_some())),
    ];
    output.extend(
        result
            .err()
            .map(|message| ("throws", thrown("Error", &message))),
    );
    Ok(object(&output))
}

fn split(input: Input<'_>) -> Output {
    let contents: Vec<_> = input.json("contents")?.elements().collect();
    Ok(match split_point(&contents, input.number("fraction")?) {
        Ok(index) => index.to_string().into(),
        Err(error) => object(&[("throws", thrown("Error", &error.to_string()))]),
    })
}

fn counted(input: Input<'_>) -> Output {
    Ok(infold_tags::count_tokens(input.json("content")?)
        .to_string()
        .into())
}

fn guessed(input: Input<'_>) -> Output {
    let parts = input.json("parts")?.elements();
    Ok(tokens::chars::parts(parts).to_string().into())
}

pub fn thrown(name: &str, message: &str) -> Vec<u8> {
    object(&[
        ("name", quote(name).into()),
        ("message", quote(message).into()),
    ])
}

fn count(written: bool) -> Vec<u8> {
    u8::from(written).to_string().into()
}

pub fn list(messages: &[Tagged]) -> Vec<u8> {
    array(messages.iter().map(Tagged::bytes))
}

pub fn array<'a>(items: impl Iterator<Item = Cow<'a, [u8]>>) -> Vec<u8> {
    let items: Vec<_> = items.collect();
    [b"[", items.join(&b',').as_slice(), b"]"].concat()
}

pub fn object(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let member = |(name, value): &(&str, Vec<u8>)| [quote(name).as_bytes(), b":", value].concat();
    let members: Vec<_> = members.iter().map(member).collect();
    [b"{", members.join(&b',').as_slice(), b"}"].concat()
}
