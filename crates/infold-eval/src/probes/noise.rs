//! Generates the messages between facts: tool calls and results that are mostly not worth keeping.
//!
//! `noise.txt` has a template for each kind of noise. Its `rows` are the number of rows and the values
//! that are drawn for each: a word, a number below a bound (`N+1` starts at one, `N:2` has two digits), and so on.
//! `row` uses them by position, `{^0}` with a capital letter.

use std::sync::LazyLock;

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
    pub tool: String,
    /// The name of its argument.
    pub argument: String,
    /// The value of its argument.
    pub value: String,
    /// The result.
    pub result: String,
}

/// The template of a kind of noise: its lines as names and values.
struct NoiseTemplate(Vec<(&'static str, String)>);

static TEMPLATES: LazyLock<Vec<NoiseTemplate>> = LazyLock::new(|| {
    let blocks = include_str!("noise.txt").split("\n\n");
    let templates = blocks.map(|block| {
        let lines = block.lines().filter_map(|line| line.split_once(": "));
        NoiseTemplate(
            lines
                .map(|(name, value)| (name, value.replace("\\n", "\n")))
                .collect(),
        )
    });
    templates.collect()
});

impl NoiseTemplate {
    fn get(&self, name: &str) -> &str {
        let line = self.0.iter().find(|(known, _)| *known == name);
        line.map_or("", |(_, value)| value)
    }
}

impl Noise {
    /// Returns a call and its result; chats have none.
    pub fn exchange(self, random: &mut XorShift) -> Option<ToolExchange> {
        let noun = draw("noun", random);
        let number = random.below(900) + 100;
        let runs_tests = self == Noise::Coding && random.below(4) == 0;
        let kind = if runs_tests { "tests" } else { self.name() };
        let template = TEMPLATES
            .iter()
            .find(|template| template.get("kind") == kind)?;
        let (count, draws) = template.get("rows").split_once(' ')?;
        let mut rows = String::new();
        for line in 0..count.parse().ok()? {
            let mut row = template.get("row").replace("{line}", &format!("{line:02}"));
            for (at, spec) in draws.split(' ').enumerate() {
                let value = draw(spec, random);
                row = row.replace(&format!("{{{at}}}"), &value);
                row = row.replace(&format!("{{^{at}}}"), &capitalize(&value));
            }
            rows += &row;
        }
        // A list in JSON has no comma before its first item.
        let rows = rows.strip_prefix(',').unwrap_or(&rows);
        let result = format!("{}{rows}{}", template.get("head"), template.get("tail"));
        let mut value = template
            .get("value")
            .replace("{number}", &number.to_string());
        if value.contains("{verb}") {
            value = value.replace("{verb}", &draw("verb", random));
        }
        let (tool, argument) = template.get("tool").split_once(' ')?;
        Some(ToolExchange {
            tool: tool.to_owned(),
            argument: argument.to_owned(),
            value: value.replace("{noun}", &noun),
            result: result.replace("{noun}", &noun),
        })
    }
}

/// Draws a random value.
fn draw(spec: &str, random: &mut XorShift) -> String {
    match spec {
        "noun" => NOUNS[random.below(NOUNS.len())].to_owned(),
        "verb" => VERBS[random.below(VERBS.len())].to_owned(),
        "level" => ["INFO", "INFO", "DEBUG", "WARN"][random.below(4)].to_owned(),
        "bool" => (random.below(2) == 0).to_string(),
        "hex" => format!("{:08x}", random.next() as u32),
        "base64" => (0..76)
            .map(|_| char::from(BASE64[random.below(64)]))
            .collect(),
        number => {
            let (number, digits) = number.split_once(':').unwrap_or((number, "0"));
            let (bound, first) = number.split_once('+').unwrap_or((number, "0"));
            let [bound, first, digits] =
                [bound, first, digits].map(|text| text.parse().expect("templates have numbers"));
            format!("{:0digits$}", random.below(bound) + first)
        }
    }
}

fn capitalize(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
