//! Generates the messages between facts: tool calls and results that are mostly not worth keeping.

use std::fmt::Write as _;

use super::Noise;
use crate::bootstrap::XorShift;

const NOUNS: [&str; 16] = [
    "berth", "ledger", "tariff", "buoy", "crane", "cargo", "pilot", "anchor", "locker", "pontoon",
    "invoice", "voucher", "channel", "signal", "hatch", "winch",
];
const VERBS: [&str; 12] = [
    "load", "merge", "parse", "check", "split", "sort", "fetch", "store", "count", "render",
    "close", "open",
];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A tool call and its result.
pub struct ToolExchange {
    /// The name of the tool.
    pub tool: &'static str,
    /// The name of its argument.
    pub argument: &'static str,
    /// The value of its argument.
    pub value: String,
    /// The result.
    pub result: String,
}

impl Noise {
    /// Returns a call and its result; chats have none.
    pub fn exchange(self, random: &mut XorShift) -> Option<ToolExchange> {
        let noun = pick(&NOUNS, random);
        let number = random.below(900) + 100;
        let (tool, argument, value, result) = match self {
            Noise::Chat => return None,
            Noise::Coding => coding(noun, number, random),
            Noise::Base64 => (
                "fetch_attachment",
                "id",
                format!("{noun}-{number}"),
                base64(random),
            ),
            Noise::Json => (
                "http_get",
                "url",
                format!("https://api.harbour.example/v2/{noun}s?page={number}"),
                json(noun, random),
            ),
            Noise::Html => (
                "fetch_page",
                "url",
                format!("https://www.harbour.example/{noun}s/{number}.html"),
                html(noun, random),
            ),
            Noise::Logs => (
                "bash",
                "command",
                format!("tail -n 60 /var/log/{noun}-{number}.log"),
                logs(noun, random),
            ),
            Noise::Sql => (
                "query",
                "sql",
                format!(
                    "SELECT id, {noun}, amount, updated_at FROM {noun}s WHERE lot = {number} LIMIT 60"
                ),
                rows(noun, random),
            ),
        };
        Some(ToolExchange {
            tool,
            argument,
            value,
            result,
        })
    }
}

fn pick<'a>(list: &[&'a str], random: &mut XorShift) -> &'a str {
    list[random.below(list.len())]
}

fn coding(
    noun: &str,
    number: usize,
    random: &mut XorShift,
) -> (&'static str, &'static str, String, String) {
    if random.below(4) == 0 {
        let mut result = String::new();
        for _ in 0..25 {
            let (verb, thing) = (pick(&VERBS, random), pick(&NOUNS, random));
            let _ = writeln!(
                result,
                "test {noun}::{verb}_{thing}_{} ... ok",
                random.below(500)
            );
        }
        let _ = writeln!(result, "test result: ok. 25 passed; 0 failed");
        return ("bash", "command", format!("cargo test {noun}"), result);
    }
    let mut result = format!("//! Deals with each {noun}.\n\n");
    for _ in 0..14 {
        let (verb, thing) = (pick(&VERBS, random), pick(&NOUNS, random));
        let id = random.below(2000);
        let _ = writeln!(
            result,
            "pub fn {verb}_{thing}_{id}({thing}: &{}) -> Result<u32, Error> {{\n    let {verb}ed = {thing}.{verb}()?;\n    Ok({verb}ed.len() as u32 + {})\n}}\n",
            capital(thing),
            random.below(90)
        );
    }
    let path = format!("src/{noun}/{}_{number}.rs", pick(&VERBS, random));
    ("read_file", "path", path, result)
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

fn base64(random: &mut XorShift) -> String {
    let mut out = String::from("Content-Transfer-Encoding: base64\n\n");
    for _ in 0..24 {
        for _ in 0..76 {
            out.push(char::from(BASE64[random.below(64)]));
        }
        out.push('\n');
    }
    out
}

fn json(noun: &str, random: &mut XorShift) -> String {
    let mut out = String::from("{\"items\":[");
    for at in 0..30 {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            out,
            "{comma}{{\"id\":\"{noun}_{}\",\"kind\":\"{}\",\"amount\":{}.{:02},\"open\":{},\"checksum\":\"{:08x}\"}}",
            random.below(90_000),
            pick(&NOUNS, random),
            random.below(4000),
            random.below(100),
            random.below(2) == 0,
            random.next() as u32
        );
    }
    out + "],\"next\":null}"
}

fn html(noun: &str, random: &mut XorShift) -> String {
    let mut out = format!(
        "<!doctype html><html><head><title>{noun}</title><style>.c{{margin:0}}</style></head><body>\n"
    );
    for _ in 0..22 {
        let (verb, thing) = (pick(&VERBS, random), pick(&NOUNS, random));
        let id = random.below(9000);
        let _ = writeln!(
            out,
            "<div class=\"c c-{id}\" data-id=\"{id}\"><a href=\"/{thing}s/{id}\">{} {thing}</a><p>How to {verb} the {thing} in {id} steps.</p></div>",
            capital(verb)
        );
    }
    out + "</body></html>"
}

fn logs(noun: &str, random: &mut XorShift) -> String {
    let mut out = String::new();
    for line in 0..40 {
        let level = ["INFO", "INFO", "DEBUG", "WARN"][random.below(4)];
        let _ = writeln!(
            out,
            "2031-04-{:02}T{:02}:{line:02}:{:02}Z {level} {noun}d[{}]: {} {} took {} ms",
            random.below(28) + 1,
            random.below(24),
            random.below(60),
            random.below(9000),
            pick(&VERBS, random),
            pick(&NOUNS, random),
            random.below(3000)
        );
    }
    out
}

fn rows(noun: &str, random: &mut XorShift) -> String {
    let mut out = format!("id | {noun} | amount | updated_at\n---+---+---+---\n");
    for _ in 0..45 {
        let _ = writeln!(
            out,
            "{} | {} {} | {}.{:02} | 2031-0{}-{:02}",
            random.below(90_000),
            pick(&NOUNS, random),
            random.below(400),
            random.below(4000),
            random.below(100),
            random.below(9) + 1,
            random.below(28) + 1
        );
    }
    out
}
