//! The members of messages and transcript records that are structure, not content.

use crate::Json;

/// Members that hold the input or the output of a tool.
pub const TOOL_DATA: &str = "input args result arguments response output action operation";

/// Members of messages, blocks, parts and items that providers document. Other members hold content, so their names and
/// numbers are searched like texts.
pub const DOCUMENTED: &str = "\
    action annotations approval_request_id approve args arguments audio behavior cache_control call_id caller \
    citations cited_text code codeExecutionResult code_execution_result command container_id content context \
    created_at custom data detail displayName document_index document_title enabled encrypted_content encrypted_index \
    end_block_index end_char_index end_index end_page_number env environment error error_code executableCode \
    executable_code expires_at file fileData fileUri file_data file_id file_uri filename format fps function \
    functionCall functionResponse function_call function_response id image_url images index inlineData inline_data \
    input input_audio isError is_error language logprobs media_type mimeType mime_type name operation outcome output \
    parts phase queries reasoning reasoning_content reasoning_details refusal response result results role \
    server_label server_name signature source start_index status summary text thinking thought thoughtSignature \
    thought_signature title tool_calls ttl type url videoMetadata";

/// Members of transcript records, and of documents with records, besides those of messages: the members by which a
/// transcript is read, and the counters and switches of agents.
pub const DOCUMENTED_IN_RECORDS: &str = "\
    $rewindTo $set base_instructions branch cache_creation_input_tokens cache_read_input_tokens cli_version \
    compactMetadata condenseId condenseParent contents cwd description durationMs firstKeptEntryId firstKeptEntryIndex \
    git gitBranch history info input_tokens instructions isApiErrorMessage isCompactSummary isMeta isSidechain \
    isSnapshotUpdate isSummary isTruncationMarker isVisibleInTranscriptOnly kind lastUpdated leafUuid level \
    logicalParentUuid message messages model originator output_tokens parentId parentToolUseID parentUuid payload \
    projectHash record_type requestId say sessionId sourceToolAssistantUUID sourceToolUseID startTime stop_reason subject \
    subtype system systemInstruction system_instruction thinkingSignature thoughts timestamp toolCallId toolCalls toolName \
    toolUseID toolUseResult tool_call_id tool_call_ids tool_use_id traj trajectory truncationId truncationParent ts usage \
    userType uuid version";

pub fn contains(names: &str, name: &[u8]) -> bool {
    let mut names = names.split_ascii_whitespace();
    names.any(|listed| listed.as_bytes() == name)
}

/// Returns whether a member belongs to the structure of messages, not to their content.
pub fn is_structure(name: &[u8]) -> bool {
    matches!(name, b"role" | b"type" | b"name" | b"tool_name" | b"status")
        || name == b"id"
        || name.ends_with(b"_id")
}

/// Returns whether a text of a transcript record belongs to its structure: an id, or the time of the record.
pub fn is_record_structure(name: &[u8], value: Json<'_>) -> bool {
    const ID_SUFFIXES: [&[u8]; 4] = [b"Id", b"ID", b"Uuid", b"UUID"];
    let is_id = name == b"uuid" || ID_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    let is_time = matches!(name, b"timestamp" | b"startTime" | b"lastUpdated")
        && value.text().is_some_and(|text| is_timestamp(&text));
    is_id || is_time || matches!(name, b"subtype" | b"record_type" | b"toolName")
}

/// Returns whether a text has only characters of an ISO 8601 time.
fn is_timestamp(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_digit())
        && (10..=40).contains(&text.len())
        && text.contains('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:.+ TZ".contains(&byte))
}
