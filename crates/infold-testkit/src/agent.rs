//! A model that follows the instructions in prompts, for agents with tools of their own.

use infold_wire::{Json, Wire, quote};

use crate::answer::NAMESPACE_END;
use crate::model::{messages, words};
use crate::reply_request::listed;
use crate::{Answer, Seen, Step};

/// The instructions in a prompt: ``please run `CMD` `` (`3 times`), ``please search `WORDS` ``, `please say 40 words`.
#[derive(Debug, Default, PartialEq, Eq)]
struct PromptOrders {
    run: Option<String>,
    search: Option<String>,
    times: usize,
    words: usize,
}

/// Follows the newest prompt that contains instructions.
///
/// A command is run by the first tool that looks like a shell, as often as requested; without such a tool, or
/// after the last run, the answer has a unique number. A model that thinks also writes a text before its calls.
pub(crate) fn obey(seen: &Seen, think: bool) -> Step {
    let wire = seen.wire().unwrap_or(Wire::Chat);
    let body = seen.json();
    let mut done = 0;
    let mut told = PromptOrders::default();
    for message in body.iter().flat_map(|body| messages(wire, *body)).rev() {
        let results = results(wire, message);
        done += results;
        // A tool result may quote a prompt, but contains no instructions to the agent.
        let found = PromptOrders::read(&words(message)).filter(|_| results == 0);
        if let Some(found) = found {
            told = found;
            break;
        }
    }
    // The summary request of an agent repeats the prompts, and forbids following them.
    let last = body.and_then(|body| messages(wire, body).pop());
    let last = last.map(words).unwrap_or_default().to_lowercase();
    let body = body.filter(|_| !last.contains("not call any tools"));
    let call = body.and_then(|body| told.call(wire, body));
    let thinking = think.then(|| format!("Thought {}.", seen.number));
    Step::answer(match call {
        Some(call) if done < told.times => Answer {
            text: thinking.as_ref().map(|_| format!("Call {}.", seen.number)),
            thinking,
            calls: vec![call],
            ..Answer::default()
        },
        _ => Answer {
            thinking,
            text: Some(format!("Answer {}.{}", seen.number, filler(told.words))),
            ..Answer::default()
        },
    })
}

impl PromptOrders {
    fn read(text: &str) -> Option<PromptOrders> {
        let run = text.rsplit_once("please run `").and_then(|(_, rest)| {
            let (run, rest) = rest.split_once('`')?;
            let times = rest.trim_start().split_once(" times");
            let times = times.and_then(|(times, _)| times.parse().ok());
            Some((run.to_owned(), times.unwrap_or(1)))
        });
        let words = text.rsplit_once("please say ").and_then(|(_, rest)| {
            let (words, _) = rest.split_once(" words")?;
            words.parse().ok()
        });
        let search = text.rsplit_once("please search `");
        let search = search.and_then(|(_, rest)| Some(rest.split_once('`')?.0.to_owned()));
        let (run, times) = match run {
            Some((run, times)) => (Some(run), times),
            None => (None, usize::from(search.is_some())),
        };
        let told = PromptOrders {
            run,
            search,
            times,
            words: words.unwrap_or_default(),
        };
        (told != PromptOrders::default()).then_some(told)
    }

    /// The call that is asked for, if there is a tool for it: its name and arguments.
    fn call(&self, wire: Wire, body: Json<'_>) -> Option<(String, String)> {
        if let Some(run) = &self.run {
            let shell = tool_of(wire, body, |bare| SHELLS.contains(&bare))?;
            return Some((shell.name, arguments(shell.schema, run)));
        }
        let search = self.search.as_ref()?;
        let tool = tool_of(wire, body, |bare| bare.ends_with("search_history"))?;
        Some((tool.name, format!(r#"{{"query":{}}}"#, quote(search))))
    }
}

/// So many words, with a space before each.
fn filler(words: usize) -> String {
    let some = [
        "alder", "birch", "cedar", "elder", "hazel", "larch", "maple",
    ];
    let some = some.iter().cycle().take(words);
    some.flat_map(|word| [" ", word]).collect()
}

/// How many results of calls a message carries.
fn results(wire: Wire, message: Json<'_>) -> usize {
    let is = |json: Json<'_>, name: &str, text: &str| json.get(name).is_some_and(|it| it.is(text));
    match wire {
        Wire::Chat | Wire::Ollama => usize::from(is(message, "role", "tool")),
        Wire::Responses => {
            let kind = message.get("type").and_then(Json::text);
            usize::from(kind.is_some_and(|kind| kind.ends_with("_output")))
        }
        Wire::Anthropic => listed(message, "content")
            .iter()
            .filter(|block| is(**block, "type", "tool_result"))
            .count(),
        Wire::Gemini => listed(message, "parts")
            .iter()
            .filter(|part| part.get("functionResponse").is_some())
            .count(),
    }
}

/// A tool that the client offers.
struct Offered<'a> {
    name: String,
    schema: Option<Json<'a>>,
}

/// Names of tools that run commands, after any prefix.
const SHELLS: [&str; 7] = [
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "execute_command",
    "run_command",
    "run_shell_command",
];

fn tool_of<'a>(
    wire: Wire,
    body: Json<'a>,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<Offered<'a>> {
    let tools = listed(body, "tools").into_iter();
    let tools = tools.flat_map(|tool| {
        let is_namespace = tool.get("type").is_some_and(|kind| kind.is("namespace"));
        let space = tool.get("name").filter(|_| is_namespace);
        let tools = match wire {
            Wire::Chat | Wire::Ollama => listed(tool, "function"),
            Wire::Gemini => listed(tool, "functionDeclarations"),
            Wire::Responses if is_namespace => listed(tool, "tools"),
            Wire::Responses | Wire::Anthropic => vec![tool],
        };
        tools.into_iter().map(move |tool| (space, tool))
    });
    let schemas = ["parameters", "input_schema", "parametersJsonSchema"];
    let mut offered = tools.filter_map(|(space, tool)| {
        let name = tool.get("name")?.text()?;
        let space = space.and_then(Json::text);
        let space = space.map(|space| format!("{space}{NAMESPACE_END}"));
        let name = space.unwrap_or_default() + &name;
        let bare = name.rsplit(NAMESPACE_END).next()?;
        let bare = bare.rsplit("__").next()?.to_lowercase();
        let schema = schemas.iter().find_map(|name| tool.get(name));
        is_wanted(&bare).then_some(Offered { name, schema })
    });
    offered.next()
}

/// Returns the arguments that a schema requires; arguments other than commands get placeholders.
fn arguments(schema: Option<Json<'_>>, run: &str) -> String {
    let properties = schema.and_then(|schema| schema.get("properties"));
    let properties = properties.map(|all| all.members().collect::<Vec<_>>());
    let required = schema.map(|schema| listed(schema, "required"));
    let required = required.unwrap_or_default();
    let mut out = Vec::new();
    for (name, property) in properties.unwrap_or_default() {
        let Some(name) = name.text() else { continue };
        let kind = property.get("type").and_then(Json::text);
        let kind = kind.unwrap_or_default().to_lowercase();
        let value = match (&*name, &*kind) {
            ("command" | "cmd", "array") => format!(r#"["bash","-lc",{}]"#, quote(run)),
            ("command" | "cmd", _) => quote(run),
            _ if !required.iter().any(|it| it.is(&name)) => continue,
            (_, "boolean") => "false".to_owned(),
            (_, "integer" | "number") => "1".to_owned(),
            (_, "array") => "[]".to_owned(),
            (_, "object") => "{}".to_owned(),
            _ => quote("as asked"),
        };
        out.push(format!("{}:{value}", quote(&name)));
    }
    if out.is_empty() {
        out.push(format!(r#""command":{}"#, quote(run)));
    }
    format!("{{{}}}", out.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_tells_in_so_many_words() {
        let run = |text: &str| PromptOrders::read(text).expect("it tells something");
        let told = run("Now please run `expr 1 + 2` 3 times, and please say 40 words.");
        assert_eq!(told.run.as_deref(), Some("expr 1 + 2"));
        assert_eq!((told.times, told.words), (3, 40));
        assert_eq!(run("please run `ls`").times, 1);
        let told = run("please search `pool limit`, please say 3 words");
        assert_eq!(told.search.as_deref(), Some("pool limit"));
        assert_eq!((told.times, told.words), (1, 3));
        assert_eq!(PromptOrders::read("Hello"), None);
        assert_eq!(
            filler(8),
            " alder birch cedar elder hazel larch maple alder"
        );
    }

    #[test]
    fn arguments_are_those_of_the_schema() {
        let given = |schema: &str| {
            let schema = Json::parse(schema.as_bytes()).expect("a schema");
            arguments(Some(schema), "ls")
        };
        let full = r#"{"properties":{"cmd":{"type":"string"},"why":{"type":"string"},"wait":{"type":"integer"}},"required":["cmd","why"]}"#;
        assert_eq!(given(full), r#"{"cmd":"ls","why":"as asked"}"#);
        let list = r#"{"properties":{"command":{"type":"array"}}}"#;
        assert_eq!(given(list), r#"{"command":["bash","-lc","ls"]}"#);
        assert_eq!(arguments(None, "ls"), r#"{"command":"ls"}"#);
    }
}
