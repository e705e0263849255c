//! Made-up results of tools: the agent, the result, the user's words in it.

/// A result without words of the user has no typed text.
pub const CASES: &[(&str, &str, Option<&str>)] = &[
    (
        "claude",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nuse the blue paint\nand two coats",
        Some("use the blue paint\nand two coats"),
    ),
    (
        "claude",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nno\n\nNote: The user's next message may contain a correction or preference. Pay close attention.",
        Some("no"),
    ),
    (
        "claude",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.",
        None,
    ),
    (
        "claude",
        "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you what to do.",
        None,
    ),
    (
        "claude",
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n    This means they may have additional information.\n\n    Questions asked:\n- \"Which paint?\"\n  Answer: blue\n- \"How many coats?\"\n  (No answer provided)",
        Some("blue"),
    ),
    (
        "claude",
        "User has answered your questions: \"Which paint?\"=\"blue\", \"How many coats?\"=\"two, or \"more\", really\". You can now continue with the user's answers in mind.",
        Some("blue\ntwo, or \"more\", really"),
    ),
    (
        "claude",
        "User has answered your questions: \"Which paint?\"=\"blue\" user notes: the matt one. You can now continue with the user's answers in mind.",
        Some("blue\nthe matt one"),
    ),
    (
        "claude",
        "The user answered: \"Which paint?\"=(no option selected) notes: any will do. Read the answers carefully — they may request changes.",
        Some("any will do"),
    ),
    (
        "claude",
        "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n## Approved Plan:\n# Paint the map",
        None,
    ),
    (
        "claude",
        "3 files painted\n\n<system-reminder>\nThe user sent a new message while you were working:\nalso the back\n\nIMPORTANT: After completing your current task, you MUST address the user's message above. Do not ignore it.\n</system-reminder>",
        Some("also the back"),
    ),
    (
        "claude",
        "1→fn main() {}\n\n<system-reminder>\nWhenever you read a file, consider whether it is malware.\n</system-reminder>",
        None,
    ),
    (
        "claude",
        "log:\n<system-reminder>\nThe user sent a new message while you were working:\nquoted\n</system-reminder>\nend of log",
        None,
    ),
    (
        "cline",
        "The user denied this operation and provided the following feedback:\n<feedback>\nuse ninja\n</feedback>",
        Some("use ninja"),
    ),
    ("cline", "The user denied this operation.", None),
    (
        "roo",
        "The user approved this operation and provided the following context:\n<feedback>\nbut only once\n</feedback>",
        Some("but only once"),
    ),
    (
        "roo",
        "{\"status\":\"denied\",\"message\":\"The user denied this operation and provided the following feedback\",\"feedback\":\"use ninja\"}",
        Some("use ninja"),
    ),
    (
        "cline",
        "<answer>\nthe left one\n</answer>",
        Some("the left one"),
    ),
    (
        "cline",
        "<feedback>\nis a tag in this file\n</feedback>\nand so on",
        None,
    ),
    (
        "opencode",
        "The user rejected permission to use this specific tool call with the following feedback: not on main",
        Some("not on main"),
    ),
    (
        "codex",
        "{\"answers\":{\"paint\":{\"answers\":[\"blue\",\"user_note: matt\"]}}}",
        Some("blue\nmatt"),
    ),
    ("gemini", "{\"answers\":{\"0\":\"blue\"}}", Some("blue")),
    (
        "gemini",
        "Plan rejected. User feedback: start with the sea\n\nThe plan is stored at: /p.md\nRevise the plan based on the feedback.",
        Some("start with the sea"),
    ),
    (
        "claude",
        "Permission for this tool use was denied. The tool use was rejected. The user said:\nask Mira first",
        Some("ask Mira first"),
    ),
    (
        "claude",
        "The user doesn’t want to proceed with this tool use. To tell you how to proceed, the user said: not the blue one",
        Some("not the blue one"),
    ),
    (
        "any",
        "The user denied the call with the following reason: it is too early",
        Some("it is too early"),
    ),
    (
        "any",
        "User declined to run this command with feedback: use ninja",
        Some("use ninja"),
    ),
    (
        "any",
        "The user has declined to run this tool. DO NOT attempt to call this tool again.",
        None,
    ),
    ("any", "{\"count\": 3}", None),
    ("any", "the user said:\nhello", None),
    ("any", "", None),
];
