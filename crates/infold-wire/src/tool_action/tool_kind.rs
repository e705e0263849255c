//! The kind of action of a well-known tool, by its name alone.

/// The kind of action of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads a file, a resource or the state of something.
    Read,
    /// Writes a whole file.
    Write,
    /// Creates a file or a directory.
    Create,
    /// Changes part of a file.
    Edit,
    /// Applies a patch, which may add and remove files too.
    Patch,
    /// Removes a file.
    Delete,
    /// Renames a file.
    Move,
    /// Views, creates or edits, by its `command`.
    Editor,
    /// Ticks off todos.
    Todos,
    /// Shows a plan, or asks the user.
    Plan,
    /// Searches, or lists files.
    Search,
    /// Reads or searches the web.
    Web,
    /// Runs a command, code or another agent.
    Run,
}

/// Returns the kind of action of a tool of a well-known agent or server; `None` if the name is unknown.
///
/// Prefixes and spelling do not matter: `mcp__files__read_file`, `functions.readFile` and `Read-File` are one name.
pub fn tool_kind(name: &str) -> Option<ToolKind> {
    kind_of_plain(&plain_name(name))
}

/// Like [`tool_kind`], for a name from [`plain_name`].
pub(super) fn kind_of_plain(plain: &str) -> Option<ToolKind> {
    Some(match plain {
        "read"
        | "readfile"
        | "view"
        | "viewfile"
        | "open"
        | "openfile"
        | "cat"
        | "readmanyfiles"
        | "notebookread"
        | "listcodedefinitionnames" => ToolKind::Read,
        "write" | "writefile" | "writetofile" | "savefile" | "newfile" => ToolKind::Write,
        "create" | "createfile" => ToolKind::Create,
        "edit" | "multiedit" | "replace" | "editfile" | "applydiff" | "searchandreplace"
        | "insertcontent" | "strreplace" | "replaceinfile" | "notebookedit" | "insert" => {
            ToolKind::Edit
        }
        "applypatch" => ToolKind::Patch,
        "delete" | "deletefile" | "remove" | "removefile" => ToolKind::Delete,
        "move" | "movefile" | "rename" | "renamefile" => ToolKind::Move,
        "strreplaceeditor" | "strreplacebasededittool" | "texteditor" | "editor" => {
            ToolKind::Editor
        }
        "todowrite" | "updatetodolist" | "writetodos" | "updateplan" | "settodos" => {
            ToolKind::Todos
        }
        "exitplanmode" => ToolKind::Plan,
        "grep" | "glob" | "search" | "find" | "ls" | "list" | "searchfiles" | "listfiles"
        | "listdirectory" | "listdir" | "codebasesearch" | "searchfilecontent" | "websearch"
        | "findfiles" | "grepsearch" | "filesearch" => ToolKind::Search,
        "webfetch" | "fetch" | "googlewebsearch" | "googlesearch" | "urlcontext" => ToolKind::Web,
        "bash" | "shell" | "sh" | "exec" | "execute" | "execcommand" | "shellcommand"
        | "localshell" | "runshellcommand" | "executecommand" | "runcommand" | "runterminalcmd"
        | "runinterminal" | "terminal" | "writestdin" | "codeinterpreter" | "codeexecution"
        | "python" | "jsrepl" | "task" | "agent" | "spawnagent" | "run" => ToolKind::Run,
        _ => return None,
    })
}

/// Normalises a name: `mcp__files__read_file`, `functions.readFile` and `Read-File` are all `readfile`.
pub fn plain_name(name: &str) -> String {
    let last = name.rsplit("__").next().unwrap_or(name);
    let last = last.rsplit(['.', ':', '/']).next().unwrap_or(last);
    let letters = last.chars().filter(char::is_ascii_alphanumeric);
    letters.take(60).map(|c| c.to_ascii_lowercase()).collect()
}
