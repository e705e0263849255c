//! Words that texts of agents start with, or are made of.

use super::Agent::{
    self, Aider, ClaudeCode, Cline, Codex, Copilot, Gemini, Goose, OpenHands, Opencode, Pi, Swe,
};

/// A text that starts with these words is the agent's, whole.
pub const TEXTS: &[(Agent, &str)] = &[
    (ClaudeCode, "Base directory for this skill: "),
    (ClaudeCode, "Called the Read tool with the following input:"),
    (ClaudeCode, "Called the LS tool with the following input:"),
    (ClaudeCode, "Result of calling the Read tool:"),
    (ClaudeCode, "Result of calling the LS tool:"),
    (ClaudeCode, "<channel source="),
    (ClaudeCode, "<tick>"),
    (ClaudeCode, "[Image: source: "),
    (ClaudeCode, "[Image: original "),
    (ClaudeCode, "Stop hook feedback:\n"),
    (ClaudeCode, "SubagentStop hook feedback:\n"),
    (ClaudeCode, "TaskCompleted hook feedback:\n"),
    (ClaudeCode, "TeammateIdle hook feedback:\n"),
    (ClaudeCode, "A background agent completed a task:\n"),
    (ClaudeCode, "Another Claude session sent a message"),
    (
        ClaudeCode,
        "Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests",
    ),
    (
        ClaudeCode,
        "Your task is to create a detailed summary of the RECENT portion of the conversation",
    ),
    (
        ClaudeCode,
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
    ),
    (
        ClaudeCode,
        "Please analyze this codebase and create a CLAUDE.md file, which will be given to future instances of Claude Code",
    ),
    (
        ClaudeCode,
        "You are a senior security engineer conducting a focused security review of the changes on this branch.",
    ),
    (Codex, "You are performing a CONTEXT CHECKPOINT COMPACTION."),
    (
        Codex,
        "You have exceeded the maximum number of tokens, please stop coding and instead write a short memento message",
    ),
    (Codex, "Continue working toward the active thread goal.\n"),
    (
        Codex,
        "Generate a file named AGENTS.md that serves as a contributor guide for this repository.",
    ),
    (Codex, "<skill>\n<name>"),
    (Gemini, "System: Please continue."),
    (Gemini, "System: Potential loop detected"),
    (
        Gemini,
        "Here is a summary of changes in the user's editor context, in JSON format.",
    ),
    (
        Gemini,
        "Analyze *only* the content and structure of your immediately preceding response",
    ),
    (
        Gemini,
        "First, reason in your scratchpad. Then, generate the <state_snapshot>.",
    ),
    (
        Gemini,
        "You are an AI agent that brings the power of Gemini directly into the terminal. Your task is to analyze the current directory",
    ),
    (
        Cline,
        "[ERROR] You did not use a tool in your previous response!",
    ),
    (
        Cline,
        "[NOTE] Some previous conversation history with the user has been removed",
    ),
    (Cline, "[TASK RESUMPTION] "),
    (Cline, "(The user did not provide a new message. "),
    (Cline, "(tool did not return anything)"),
    (
        Cline,
        "The tool execution failed with the following error:\n<error>",
    ),
    (
        Cline,
        "Task was interrupted before this tool call could be completed.",
    ),
    (
        Cline,
        "The current conversation is rapidly running out of context.",
    ),
    (
        Opencode,
        "Continue if you have next steps, or stop and ask for clarification",
    ),
    (Opencode, "Called the List tool with the following input:"),
    (Opencode, "Called the list tool with the following input:"),
    (Opencode, "<file>\n00001| "),
    (
        Opencode,
        "Please analyze this codebase and create an AGENTS.md file containing:",
    ),
    (
        Goose,
        "The previous message contains a summary that was prepared because a context limit was reached.",
    ),
    (Goose, "Your context was compacted. "),
    (Aider, "I have *added these files to the chat*"),
    (
        Aider,
        "Here are summaries of some files present in my git repo",
    ),
    (
        Aider,
        "Here are some READ ONLY files, provided for your reference.",
    ),
    (Aider, "I am not sharing any files that you can edit yet."),
    (
        Aider,
        "I am not sharing the full contents of any files with you yet.",
    ),
    (
        Aider,
        "Don't try and edit any existing code without asking me to add the files to the chat!",
    ),
    (
        Aider,
        "I switched to a new code base. Please don't consider the above files",
    ),
    (
        Aider,
        "I didn't see any properly formatted edits in your reply?!",
    ),
    (Aider, "# Fix any errors below, if possible.\n"),
    (Aider, "# Fix any linter errors below, if possible.\n"),
    (Aider, "# *SEARCH/REPLACE block* Rules:\n"),
    (Aider, "The LLM did not conform to the edit format.\n"),
    (OpenHands, "EXECUTION RESULT of ["),
    (
        OpenHands,
        "Please continue working on the task on whatever approach you think is suitable.",
    ),
    (
        Swe,
        "Your output was not formatted correctly. You must always include one discussion and one command",
    ),
    (Swe, "<returncode>"),
    (
        Swe,
        "Please always provide EXACTLY ONE action in triple backticks",
    ),
];

/// A text that starts with the first words, and has the second near its front, is the agent's, whole.
pub const PAIRS: &[(Agent, &str, &str)] = &[
    (
        ClaudeCode,
        "A session-scoped Stop hook is now active with condition: ",
        "Briefly acknowledge the goal, then immediately start",
    ),
    (
        Cline,
        "Skipping tool [",
        "] due to user rejecting a previous tool",
    ),
    (
        Cline,
        "Tool [",
        "] was not executed because a tool has already been used",
    ),
    (
        Cline,
        "Missing value for required parameter '",
        "Please retry with complete response.",
    ),
    (Opencode, "<path>", "</path>\n<type>"),
    (
        Aider,
        "I committed the changes with git hash ",
        " & commit msg: ",
    ),
    (
        Aider,
        "I added these files to the chat: ",
        "Let me know if there are others we should add.",
    ),
    (Aider, "# ", " SEARCH/REPLACE block failed to match!"),
    (Aider, "# ", " SEARCH/REPLACE blocks failed to match!"),
];

/// A text of just these words is the agent's. A person may well say more that begins so.
pub const WHOLE_TEXTS: &[(Agent, &str)] = &[
    (ClaudeCode, "Continue from where you left off."),
    (ClaudeCode, "(no content)"),
    (Opencode, "The following tool was executed by the user"),
    (Opencode, "What did we do so far?"),
    (Opencode, "Continue if you have next steps"),
    (
        Opencode,
        "Summarize the task tool output above and continue with your task.",
    ),
    (Aider, "I updated the files."),
    // The requests of its worked examples.
    (Aider, "Change get_factorial() to use math.factorial"),
    (Aider, "Refactor hello() into its own file."),
    (Aider, "Change the greeting to be more casual"),
];

/// A text that starts with these words is a summary that an agent wrote of its own conversation.
pub const COMPACTIONS: &[(Agent, &str)] = &[
    (
        ClaudeCode,
        "This session is being continued from a previous conversation that ran out of context.",
    ),
    (
        Codex,
        "Another language model started to solve this problem and produced a summary of its thinking process.",
    ),
    (
        Codex,
        "You were originally given instructions from a user over one or more turns. Here were the user messages:",
    ),
    (Gemini, "<state_snapshot>"),
    (Gemini, "<compressed_chat_history>"),
    (Aider, "I spoke to you previously about a number of things."),
    (
        Pi,
        "The conversation history before this point was compacted into the following summary:",
    ),
    (
        Pi,
        "The following is a summary of a branch that this conversation came back from:",
    ),
    (OpenHands, "<CONVERSATION SUMMARY>"),
    (Copilot, "<conversation-summary>"),
];

/// Slash commands of Claude Code that it runs by itself: nothing that it puts in follows them.
pub const LOCAL_COMMANDS: &[&str] = &[
    "add-dir",
    "agents",
    "bug",
    "clear",
    "compact",
    "config",
    "context",
    "cost",
    "doctor",
    "effort",
    "exit",
    "export",
    "extra-usage",
    "fast",
    "feedback",
    "help",
    "hooks",
    "ide",
    "login",
    "logout",
    "mcp",
    "memory",
    "mobile",
    "model",
    "output-style",
    "permissions",
    "plan",
    "plugin",
    "quit",
    "release-notes",
    "reload-plugins",
    "remote-env",
    "rename",
    "resume",
    "rewind",
    "sandbox",
    "stats",
    "status",
    "tasks",
    "terminal-setup",
    "theme",
    "todos",
    "upgrade",
    "usage",
    "vim",
    "voice",
];
