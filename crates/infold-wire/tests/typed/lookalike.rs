//! Made-up texts that look like an agent's but were typed: the likeness, the text.

/// Each comes back whole.
pub const CASES: &[(&str, &str)] = &[
    ("a tag in a sentence", "what does <system-reminder> do?"),
    (
        "both tags in a sentence",
        "why is there <system-reminder>x</system-reminder> in my log",
    ),
    (
        "a tag that starts a sentence",
        "<system-reminder> shows up in my log, why?",
    ),
    (
        "an element that starts a sentence",
        "<system-reminder>x</system-reminder> is what I see, why?",
    ),
    (
        "a tag in backticks",
        "`<system-reminder>`\nshould be hidden\n`</system-reminder>`",
    ),
    (
        "a tag in quotes",
        "the parser eats \"<environment_context>\" and then \"</environment_context>\"",
    ),
    (
        "a block in a code fence",
        "hide this:\n```\n<system-reminder>\nThe todo list is empty.\n</system-reminder>\n```\nin the view",
    ),
    (
        "a block in a fence with a name",
        "```xml\n<environment_details>\nx\n</environment_details>\n```\nis what Cline adds",
    ),
    (
        "a block in a fence of tildes",
        "~~~\n<user_query>\nx\n</user_query>\n~~~\nparse that",
    ),
    (
        "a quoted block",
        "> <system-reminder>\n> x\n> </system-reminder>\nwhat is it?",
    ),
    (
        "a tag without an end",
        "<user_query>\nis never closed, is that a bug?",
    ),
    (
        "an end without a tag",
        "there is a stray </system-reminder> at the end of line 3",
    ),
    (
        "a block behind a blank",
        "strip <system-reminder>\nx\n</system-reminder> from the view",
    ),
    (
        "pasted HTML",
        "<div class=\"map\"><b>North</b></div>\nwhy is it upside down?",
    ),
    ("pasted HTML alone", "<div>\n<p>North</p>\n</div>"),
    (
        "a pasted component alone",
        "<HarbourMap turned={true}>\n  <Pin />\n</HarbourMap>",
    ),
    (
        "a pasted element with attributes",
        "<harbour-map zoom=\"3\">North</harbour-map>",
    ),
    (
        "a pasted project file",
        "<project>\n<version>1</version>\n</project>\nbump it",
    ),
    (
        "an unknown block with words around",
        "this is in the file:\n<map_config>\nnorth = up\n</map_config>\nturn it",
    ),
    (
        "a prompt in tags",
        "<instructions>\nTurn the map.\n</instructions>\n<context>\nIt is upside down.\n</context>",
    ),
    (
        "one plain tag",
        "<context>\nThe map is upside down.\n</context>",
    ),
    (
        "a task with words around",
        "do this:\n<task>turn the map</task>\nand nothing else",
    ),
    (
        "a caveat of a person",
        "Caveat: the messages below the map were made up by me",
    ),
    (
        "an interruption of a person",
        "[Request interrupted] is what I see, why?",
    ),
    (
        "an interruption that is talked of",
        "why do I get \"[Request interrupted by user]\" here?",
    ),
    (
        "a heading as in a skill",
        "# Sailing\n\n## Overview\n\nMind the wind.\n\n## Steps\n\n1. Cast off.",
    ),
    (
        "a role as in a template",
        "You are a sailor. Tell me about the wind.",
    ),
    (
        "a skill that is talked of",
        "it prints \"Base directory for this skill: /a\" twice",
    ),
    ("an image", "[Image #1] why so blue?"),
    ("two images", "[Image #1] [Image #2]\ncompare"),
    ("a slash", "/model is broken"),
    ("a path", "/home/mira/a.rs has a bug"),
    (
        "output of a build",
        "[ERROR] Failed to compile a.rs, what now?",
    ),
    (
        "output in brackets",
        "[INFO] Result: 3 maps\nis that right?",
    ),
    (
        "a result that is talked of",
        "[read_file] Results are wrong",
    ),
    (
        "an observation of a person",
        "Observation: it only fails on Mondays. Can you check?",
    ),
    (
        "an observation in a sentence",
        "My observation: it only fails on Mondays",
    ),
    (
        "a tool result that is talked of",
        "Tool result: should be hidden, please fix",
    ),
    (
        "a shell session",
        "bash-$ ls\nmap.py\nbash-$ make\nwhy does it fail?",
    ),
    ("the end of a shell session", "it hangs at\nbash-$"),
    (
        "the name of a directory",
        "what is (Current directory: /a) for?",
    ),
    (
        "an exit code",
        "it says [The command completed with exit code 1.], why?",
    ),
    (
        "instructions of a person",
        "AGENTS.md instructions for the map are wrong",
    ),
    (
        "a heading of a person",
        "# Context from my IDE setup:\nI use two screens, and the map is on the left one.",
    ),
    (
        "a plan of a person",
        "Implement the following plan:\n\n1. Turn the map.\n2. Paint it.",
    ),
    (
        "a request to go on",
        "Continue from where you left off, but slower",
    ),
    (
        "a question of a person",
        "What did we do so far? I was away",
    ),
    (
        "files of a person",
        "I have added these files to the chat server",
    ),
    (
        "a code base of a person",
        "I switched to a new code base yesterday, look at it first",
    ),
    ("errors of a person", "# Fix these errors\n\na.py:1: E1"),
    (
        "a set-up of a person",
        "This is the harbour. We are setting up the map for our guests.",
    ),
    ("a separator of a person", "see below\n--- Content ---\nmap"),
    (
        "a system of a person",
        "System: please continue is what it prints",
    ),
    (
        "answers of a person",
        "User has answered your questions: no",
    ),
    (
        "a refusal that is quoted",
        "The user doesn't want to proceed with this tool use is a bad message",
    ),
    ("JSON", "{\"answers\": {\"a\": \"b\"}}\nis what I send"),
    ("comparison signs", "if a < b && c > d { x<T>() }"),
    (
        "letters beyond ASCII",
        "Die Karte steht kopf – dreh sie bitte um 🙃",
    ),
    ("a file list in a shell", "~/maps ❯ ls <dir>\nmap.py"),
    (
        "a hook that is talked of",
        "Stop hook feedback: it is too slow",
    ),
    (
        "a made-up block with words around",
        "the status is\n<git_status>\nM map.py\n</git_status>\ncommit it",
    ),
    (
        "a made-up file with words around",
        "<file_content>\nnorth = up\n</file_content>\nturn it",
    ),
    (
        "results with words around",
        "I see\n<tool_result>\n3\n</tool_result>\nwhy 3?",
    ),
    (
        "a heading of rules",
        "do this\n# File editing rules:\n\nuse tabs",
    ),
    (
        "a role with steps",
        "You are an expert code reviewer. Follow these steps:\n\n1. Look at the map.",
    ),
    ("a level and a result", "[info] Result: 3 maps"),
    (
        "a block in quotes",
        "the log has \"<system-reminder>\nx\n</system-reminder>\n\" in it",
    ),
    (
        "a command of a person",
        "I ran this command:\n\nmake test\n\nand it hangs, why?",
    ),
    (
        "a commit of a person",
        "I committed the changes with git hash 1a2b, now push",
    ),
    (
        "files that a person added",
        "I added these files to the chat: a.py and b.py, read them",
    ),
    (
        "output of a hook",
        "UserPromptSubmit hook success: is printed twice, why?",
    ),
    (
        "output of another hook",
        "SessionStart:startup hook success: clean\nbut nothing happens",
    ),
    (
        "a reminder without an end",
        "<system-reminder>\nis never closed, is that a bug?",
    ),
    (
        "an observation with I",
        "Observation: I clicked twice and it crashed",
    ),
    ("one word", "yes"),
];
