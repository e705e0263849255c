//! Categories of tools, by purpose. A phase shows tools by category.

use infold_wire::tool_action::{ToolKind, plain_name, tool_kind};

/// The categories that a phase can show.
pub const CATEGORIES: [&str; 16] = [
    "search", "analyze", "estimate", "read", "write", "delete", "execute", "modify", "test",
    "deploy", "evaluate", "compare", "measure", "verify", "audit", "approve",
];

/// The category of tools that every phase shows: they steer the work, and read or change no files.
pub const CONTROL: &str = "control";

/// The tools of the server `infold`, spelled as by [`plain_name`]. They read and steer the conversation itself.
const OWN_TOOLS: [&str; 11] = [
    "searchhistory",
    "recall",
    "listconversations",
    "view",
    "getstate",
    "setphase",
    "remember",
    "setplan",
    "markstep",
    "pin",
    "note",
];

/// The phases, and the categories that each shows.
pub(crate) const PHASES: [(&str, &[&str]); 4] = [
    ("planning", &["search", "analyze", "estimate", "read"]),
    (
        "executing",
        &[
            "read", "write", "delete", "execute", "modify", "test", "deploy",
        ],
    ),
    (
        "reflecting",
        &["evaluate", "test", "compare", "measure", "read"],
    ),
    ("verifying", &["verify", "audit", "approve", "test", "read"]),
];

/// Returns the canonical name of a category: `readFile` is another name for `read`.
pub(crate) fn canonical(category: &str) -> &str {
    match category {
        "readFile" => "read",
        "writeFile" => "write",
        "deleteFile" => "delete",
        other => other,
    }
}

/// Returns the permission that tools of a category require, unless the policy overrides it.
pub(crate) fn default_permission(category: &str) -> Option<&'static str> {
    Some(match category {
        "read" => "read",
        "search" => "search",
        "write" | "modify" => "write",
        "delete" => "admin",
        "execute" => "execute",
        "deploy" => "deploy",
        _ => return None,
    })
}

/// Returns the priority of tools of a category, unless the policy says otherwise.
pub(crate) fn default_priority(category: Option<&str>) -> u32 {
    match category {
        Some(CONTROL) => 100,
        Some("read") => 90,
        Some("write" | "modify") => 85,
        Some("search") => 80,
        Some("test") => 75,
        Some("deploy") => 60,
        Some("delete") => 50,
        Some(_) => 70,
        None => 40,
    }
}

/// Returns the category of a well-known tool by its name; none if the name is not known.
pub fn built_in_category(name: &str) -> Option<&'static str> {
    let plain = plain_name(name);
    let is_control = matches!(
        &*plain,
        "setphase" | "setplan" | "markstep" | "done" | "recall" | "searchhistory"
    );
    if is_control || is_own(name, &plain) {
        return Some(CONTROL);
    }
    // The table, which lists tools of servers, takes precedence over `tool_kind`, which takes every tool with a name
    // such as `move` for one that acts on files.
    let listed = WELL_KNOWN.iter().find_map(|(category, names)| {
        let mut names = names.split_ascii_whitespace();
        names.any(|known| known == plain).then_some(*category)
    });
    let category_of_same_name = || CATEGORIES.into_iter().find(|category| *category == plain);
    listed
        .or_else(category_of_same_name)
        .or_else(|| tool_kind(name).map(category_of_kind))
        .or_else(|| {
            let mut prefixes = PROVIDER_TOOL_PREFIXES.iter();
            let known = prefixes.find(|(prefix, _)| plain.starts_with(prefix));
            known.map(|(_, category)| *category)
        })
}

/// Prefixes of the names of tools that providers run, which end in dates and words such as `preview`; with their
/// categories.
const PROVIDER_TOOL_PREFIXES: [(&str, &str); 9] = [
    ("websearch", "search"),
    ("webfetch", "search"),
    ("googlesearch", "search"),
    ("googlemaps", "search"),
    ("enterprisewebsearch", "search"),
    ("filesearch", "search"),
    ("codeinterpreter", "execute"),
    ("codeexecution", "execute"),
    ("computeruse", "execute"),
];

/// Returns whether a tool reads the web.
pub(crate) fn reads_web(name: &str) -> bool {
    let plain = plain_name(name);
    // Other search tools of providers, such as `file_search`, do not read the web.
    let prefixes = ["web", "google", "enterprisewebsearch"];
    let is_known = PROVIDER_TOOL_PREFIXES
        .iter()
        .any(|(prefix, category)| *category == "search" && plain.starts_with(prefix));
    tool_kind(name) == Some(ToolKind::Web)
        || plain.ends_with("websearch")
        || is_known && prefixes.iter().any(|prefix| plain.starts_with(prefix))
}

/// Returns whether a tool belongs to the server `infold`, by the names that agents give to tools of servers, such as
/// `mcp__infold__remember` and `infold_remember`.
fn is_own(name: &str, plain: &str) -> bool {
    let is_of_server = name.split("__").any(|part| part == "infold");
    let own = plain.strip_prefix("infold");
    let own = own.or_else(|| is_of_server.then_some(plain));
    own.is_some_and(|own| OWN_TOOLS.contains(&own))
}

/// Returns whether a tool runs more than its command argument: another agent, code, or input for an earlier
/// command. Such a tool cannot be narrowed.
pub(crate) fn runs_more_than_commands(name: &str) -> bool {
    let plain = plain_name(name);
    let listed = WELL_KNOWN
        .iter()
        .find(|(category, _)| *category == "execute");
    let listed = listed.map_or("", |(_, names)| names);
    let mut names = listed.split_ascii_whitespace().chain([
        "task",
        "agent",
        "spawnagent",
        "writestdin",
        "codeinterpreter",
        "codeexecution",
        "python",
        "jsrepl",
    ]);
    names.any(|known| known == plain)
}

/// Returns the category of a kind of tool that agents have for files, patterns and commands.
fn category_of_kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Write | ToolKind::Create => "write",
        ToolKind::Edit | ToolKind::Patch | ToolKind::Move | ToolKind::Editor => "modify",
        ToolKind::Delete => "delete",
        ToolKind::Todos | ToolKind::Plan => CONTROL,
        ToolKind::Search | ToolKind::Web => "search",
        ToolKind::Run => "execute",
    }
}

/// Tools that cannot be classified by files, patterns or commands, as agents and servers name them: Claude
/// Code, Codex, Gemini CLI, opencode, goose; the MCP servers filesystem, git, memory, fetch, time, sequential
/// thinking, GitHub and Playwright. The names are those of [`plain_name`], with spaces between them.
const WELL_KNOWN: [(&str, &str); 10] = [
    (
        CONTROL,
        "todo todoread todowrite taskcreate taskget taskupdate tasklist enterplanmode askuserquestion askuser question requestuserinput \
         askfollowupquestion attemptcompletion sequentialthinking think finish toolsearch discovertools reportfindings schedulewakeup \
         creategoal updategoal updatetopic",
    ),
    (
        "read",
        "bashoutput taskoutput viewimage readmultiplefiles readtextfile readmediafile getfileinfo listalloweddirectories \
         listmcpresources listmcpresourcestool listmcpresourcetemplates readmcpresource readmcpresourcetool readresource \
         listresources skill loadskill activateskill getinternaldocs clihelp readgraph opennodes getcurrenttime converttime \
         gitstatus gitdiff gitdiffunstaged gitdiffstaged gitlog gitshow gitbranch getfilecontents getissue listissues \
         getpullrequest listpullrequests listcommits getcommit listbranches getme browsersnapshot browsertakescreenshot \
         browserconsolemessages browsernetworkrequests readthread wait waitagent cronlist getgoal listapps load readimage",
    ),
    (
        "search",
        "codesearch searchnodes searchcode searchrepositories searchissues searchusers directorytree listdirectorywithsizes tree \
         bravewebsearch searchavailableextensions",
    ),
    (
        "analyze",
        "lsp diagnostics getdiagnostics codebaseinvestigator",
    ),
    (
        "write",
        "savememory createdirectory createentities createrelations addobservations rememberfact gitinit createissue addissuecomment \
         remember writeplan createapp",
    ),
    (
        "modify",
        "patch gitadd gitcommit gitcheckout gitcreatebranch createorupdatefile pushfiles updateissue createbranch createpullrequest enterworktree exitworktree iterateapp",
    ),
    (
        "delete",
        "deleteentities deleteobservations deleterelations gitreset deleteapp",
    ),
    (
        "execute",
        "killshell killbash taskstop slashcommand sendinput closeagent resumeagent delegate dynamictask subagent generalist \
         browsernavigate browserclick browsertype browserevaluate browserfillform browserpresskey computer computeruse batch \
         croncreate crondelete sendmessage workflow invokeagent manageextensions",
    ),
    ("test", "runtests runtest unittest"),
    ("deploy", "mergepullrequest publish release"),
];
