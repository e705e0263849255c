//! The pairing of every block, item and part type that the providers document.
//!
//! A provider refuses a conversation with one half of a pair but not the other, so both are shown or hidden together.
//! Calls of the client's tools are answered at once (`Call`, `Result`); uses of the provider's own tools may end in a
//! later message, with other exchanges in between (`Opens`, `Continues`, `Ends`). An id in a block of an unlisted type
//! may be half of a pair as well: every block with the same id belongs to it (`Unknown`).

/// The pairing of a block, an item or a part with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Complete by itself.
    Alone,
    /// A call that the client answers, identified by this member.
    Call(&'static str),
    /// The client's answer to the call that this member names.
    Result(&'static str),
    /// A use of one of the provider's tools, identified by this member.
    Opens(&'static str),
    /// A part of the use that this member identifies, which continues.
    Continues(&'static str),
    /// The end of the use that this member names.
    Ends(&'static str),
    /// A type that is not listed.
    Unknown,
}

use Pairing::{Alone, Call, Continues, Ends, Opens, Result};

/// Blocks of a message's content (Anthropic, chat completions, messages of Responses). A `tool_use` or
/// a `server_tool_use` may also name the use whose program made it, in `caller.tool_id`.
const BLOCKS: &[(&str, Pairing)] = &[
    ("tool_use", Call("id")),
    ("tool_result", Result("tool_use_id")),
    ("server_tool_use", Opens("id")),
    ("mcp_tool_use", Opens("id")),
    // Results of all other tools of the provider's end in `_tool_result` as well.
    ("mcp_tool_result", Ends("tool_use_id")),
];

/// Blocks that are complete by themselves.
const LONE_BLOCKS: &str = "\
    text image document search_result container_upload thinking redacted_thinking compaction \
    reasoning image_url input_audio file refusal input_text input_image input_file output_text";

/// Items of OpenAI Responses. An `mcp_call` that needed no approval names none, and is unpaired. A `shell_call` whose
/// `environment` is a container, and a tool search without a `call_id`, are carried out by the provider within one
/// output.
const ITEMS: &[(&str, Pairing)] = &[
    ("function_call", Call("call_id")),
    ("function_call_output", Result("call_id")),
    ("custom_tool_call", Call("call_id")),
    ("custom_tool_call_output", Result("call_id")),
    ("local_shell_call", Call("call_id")),
    ("local_shell_call_output", Result("call_id")),
    ("shell_call", Call("call_id")),
    ("shell_call_output", Result("call_id")),
    ("apply_patch_call", Call("call_id")),
    ("apply_patch_call_output", Result("call_id")),
    ("computer_call", Call("call_id")),
    ("computer_call_output", Result("call_id")),
    ("tool_search_call", Call("call_id")),
    ("tool_search_output", Result("call_id")),
    ("mcp_approval_request", Opens("id")),
    ("mcp_approval_response", Continues("approval_request_id")),
    ("mcp_call", Ends("approval_request_id")),
];

/// Items that are complete by themselves.
const LONE_ITEMS: &str = "\
    message reasoning mcp_list_tools web_search_call file_search_call image_generation_call \
    code_interpreter_call compaction compaction_summary item_reference";

/// Parts of Gemini's contents, by the member that names their type. A program and its result have no
/// ids: they follow each other.
const PARTS: &[(&str, Pairing)] = &[
    ("functionCall", Call("id")),
    ("functionResponse", Result("id")),
    ("toolCall", Opens("id")),
    ("toolResponse", Ends("id")),
    ("executableCode", Opens("id")),
    ("codeExecutionResult", Ends("id")),
];

/// Parts that are complete by themselves.
const LONE_PARTS: &str = "text inlineData fileData";

/// Ids of things that many messages refer to.
const SHARED_IDS: &str =
    "file_id container_id session_id thread_id conversation_id user_id model_id vector_store_id";

/// Returns the pairing of a block of this type.
pub(crate) fn block_pairing(kind: &[u8]) -> Pairing {
    match look_up(BLOCKS, LONE_BLOCKS, kind) {
        Some(pairing) => pairing,
        None if kind.ends_with(b"_tool_result") => Ends("tool_use_id"),
        None => Pairing::Unknown,
    }
}

/// Returns the pairing of an item of this type.
pub(super) fn item_pairing(kind: &[u8]) -> Pairing {
    look_up(ITEMS, LONE_ITEMS, kind).unwrap_or(Pairing::Unknown)
}

/// Returns the pairing of a part with this member; `None` if the member does not determine the part's type.
pub(crate) fn part_pairing(member: &[u8]) -> Option<Pairing> {
    match member {
        b"executable_code" | b"tool_call" => Some(Opens("id")),
        b"code_execution_result" | b"tool_response" => Some(Ends("id")),
        _ => look_up(PARTS, LONE_PARTS, member),
    }
}

/// Returns whether a member of a block of unknown type may name its other half.
pub(crate) fn may_be_pair_id(member: &[u8]) -> bool {
    let is_shared = |id: &str| id.as_bytes() == member;
    member == b"id"
        || member.ends_with(b"_id") && !SHARED_IDS.split_ascii_whitespace().any(is_shared)
}

fn look_up(table: &[(&str, Pairing)], lone: &str, kind: &[u8]) -> Option<Pairing> {
    let is_kind = |name: &str| name.as_bytes() == kind;
    let row = table.iter().find(|(name, _)| is_kind(name));
    let is_lone = || lone.split_ascii_whitespace().any(is_kind);
    row.map_or_else(|| is_lone().then_some(Alone), |(_, pairing)| Some(*pairing))
}

#[cfg(test)]
mod tests {
    use infold_log::{Facts, Link, LinkKind, Role, Rounds, Seq};

    use super::*;
    use crate::Message;

    fn facts(text: &str) -> Facts {
        let message = Message::parse(text.as_bytes());
        message
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .facts()
    }

    fn listed(
        table: &'static [(&str, Pairing)],
        lone: &'static str,
    ) -> impl Iterator<Item = (&'static str, Pairing)> {
        let lone = lone.split_ascii_whitespace().map(|kind| (kind, Alone));
        table.iter().copied().chain(lone)
    }

    /// Returns the number of rounds in messages.
    fn rounds(messages: &[&str]) -> usize {
        let mut rounds = Rounds::default();
        let mut seq = Seq::FIRST;
        let mut starts = 0;
        for text in messages {
            starts += usize::from(rounds.add(seq, &facts(text), None).round == seq);
            seq = seq.next();
        }
        starts
    }

    fn ids(links: &[Link], kind: LinkKind) -> Vec<&str> {
        let links = links.iter().filter(|link| link.kind == kind);
        links.map(|link| link.id.as_str()).collect()
    }

    #[test]
    fn every_listed_block_is_what_the_table_says() {
        for (kind, pairing) in listed(BLOCKS, LONE_BLOCKS) {
            let of = |role: &str| {
                let block = format!(
                    r#"{{"type":"{kind}","id":"i","tool_use_id":"u","name":"n","text":"x"}}"#
                );
                facts(&format!(r#"{{"role":"{role}","content":[{block}]}}"#))
            };
            let (model, user) = (of("assistant"), of("user"));
            match pairing {
                Call(_) => assert_eq!(model.calls[0].id.as_deref(), Some("i"), "{kind}"),
                Result(_) => assert_eq!(user.answers[0].id.as_deref(), Some("u"), "{kind}"),
                Opens(_) => assert_eq!(ids(&model.links, LinkKind::Opens), ["i"], "{kind}"),
                Ends(_) => assert_eq!(ids(&model.links, LinkKind::Ends), ["u"], "{kind}"),
                _ => assert!(model.links.is_empty() && model.calls.is_empty(), "{kind}"),
            }
        }
    }

    #[test]
    fn every_listed_item_is_what_the_table_says() {
        for (kind, pairing) in listed(ITEMS, LONE_ITEMS) {
            let item = match kind {
                "message" => {
                    r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#
                        .to_owned()
                }
                kind if kind.ends_with("_output") || kind.ends_with("_call") && matches!(pairing, Call(_)) => {
                    format!(r#"{{"type":"{kind}","id":"i","call_id":"c","output":"x","name":"n"}}"#)
                }
                kind => format!(r#"{{"type":"{kind}","id":"i","approval_request_id":"a"}}"#),
            };
            let facts = facts(&item);
            match pairing {
                Call(_) => assert_eq!(facts.calls[0].id.as_deref(), Some("c"), "{kind}"),
                Result(_) => assert_eq!(facts.answers[0].id.as_deref(), Some("c"), "{kind}"),
                Opens(_) => assert_eq!(ids(&facts.links, LinkKind::Opens), ["i"], "{kind}"),
                Continues(_) => assert_eq!(ids(&facts.links, LinkKind::Continues), ["a"], "{kind}"),
                Ends(_) => assert_eq!(ids(&facts.links, LinkKind::Ends), ["a"], "{kind}"),
                Alone | Pairing::Unknown => assert!(facts.links.is_empty(), "{kind}"),
            }
        }
    }

    #[test]
    fn every_listed_part_is_what_the_table_says() {
        for (member, pairing) in listed(PARTS, LONE_PARTS) {
            let of = |role: &str| {
                let part = format!(r#"{{"{member}":{{"id":"i","name":"n"}}}}"#);
                let part = if member == "text" {
                    r#"{"text":"x"}"#.to_owned()
                } else {
                    part
                };
                facts(&format!(r#"{{"role":"{role}","parts":[{part}]}}"#))
            };
            let (model, user) = (of("model"), of("user"));
            match pairing {
                Call(_) => assert_eq!(model.calls[0].id.as_deref(), Some("i"), "{member}"),
                Result(_) => assert_eq!(user.answers[0].id.as_deref(), Some("i"), "{member}"),
                Opens(_) => assert_eq!(ids(&model.links, LinkKind::Opens), ["i"], "{member}"),
                Ends(_) => assert_eq!(ids(&model.links, LinkKind::Ends), ["i"], "{member}"),
                _ => assert!(model.links.is_empty(), "{member}"),
            }
        }
    }

    #[test]
    fn what_is_not_listed_is_known_by_its_ids() {
        let block = facts(
            r#"{"role":"assistant","content":[{"type":"new_block","id":"n_1","parent_id":"p_1","file_id":"f","size":1}]}"#,
        );
        assert_eq!(ids(&block.links, LinkKind::Mentions), ["n_1", "p_1"]);
        let item = facts(r#"{"type":"new_item","id":"n_1","ref_id":"p_1","payload":{}}"#);
        assert_eq!((item.role, item.item), (Role::Assistant, true));
        assert_eq!(ids(&item.links, LinkKind::Mentions), ["n_1", "p_1"]);
        let ends = facts(
            r#"{"role":"assistant","content":[{"type":"new_tool_result","tool_use_id":"u"}]}"#,
        );
        assert_eq!(ids(&ends.links, LinkKind::Ends), ["u"]);
    }

    #[test]
    fn a_paused_search_is_one_round() {
        let paused = r#"{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}"#;
        let result = r#"{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"x"}]}"#;
        let user = r#"{"role":"user","content":"x"}"#;
        assert_eq!(rounds(&[user, paused, result, user]), 3);
    }

    #[test]
    fn a_program_that_calls_the_clients_tools_is_one_round() {
        let calls = |id: &str, more: &str| {
            format!(
                r#"{{"role":"assistant","content":[{more}{{"type":"tool_use","id":"{id}","name":"f","input":{{}},"caller":{{"type":"code_execution_20250825","tool_id":"s"}}}}]}}"#
            )
        };
        let result = |id: &str| {
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}]}}"#
            )
        };
        let begins = r#"{"type":"server_tool_use","id":"s","name":"code_execution","input":{}},"#;
        let ends = r#"{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"s","content":{}},{"type":"text","text":"x"}]}"#;
        let messages = [
            calls("a", begins),
            result("a"),
            calls("b", ""),
            result("b"),
            ends.to_owned(),
            r#"{"role":"assistant","content":"x"}"#.to_owned(),
        ];
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        assert_eq!(rounds(&messages), 2);
    }

    #[test]
    fn an_approval_is_one_round_with_what_it_allows() {
        let asks = r#"{"type":"mcp_approval_request","id":"m","name":"f","arguments":"{}","server_label":"l"}"#;
        let yes = r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#;
        let call = r#"{"type":"mcp_call","id":"c","approval_request_id":"m","name":"f","arguments":"{}","server_label":"l","output":"x"}"#;
        let user = r#"{"role":"user","content":"x"}"#;
        assert_eq!(rounds(&[user, asks, yes, call, user]), 3);
        let no = r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":false}"#;
        let said = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#;
        assert_eq!(rounds(&[user, asks, no, said, user]), 4);
    }

    #[test]
    fn a_program_of_gemini_and_its_result_are_one_round() {
        let code =
            r#"{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"x"}}]}"#;
        let result = r#"{"role":"model","parts":[{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"x"}}]}"#;
        let user = r#"{"role":"user","parts":[{"text":"x"}]}"#;
        assert_eq!(rounds(&[user, code, result, user]), 3);
    }
}
