use std::fmt;
use std::sync::LazyLock;

use crate::profile::{Keep, Threshold};

/// The window of a model that nobody knows.
pub const UNKNOWN_WINDOW: u64 = 128_000;

/// What is known of a model, or of a family of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The start of the names it stands for.
    pub name: String,
    /// Whose model it is.
    pub provider: String,
    /// How many tokens a request may hold.
    pub window: u64,
    /// How many tokens a reply may have.
    pub max_output: u64,
    /// How it cuts text.
    pub tokenizer: Tokenizer,
    /// What it costs.
    pub prices: Option<Prices>,
    /// When to start folding.
    pub threshold: Option<Threshold>,
    /// How much to keep of what is newest.
    pub keep: Option<Keep>,
    /// How large a summary may be against what it replaces.
    pub ratio: Option<f64>,
    /// The model that writes summaries; itself if there is none.
    pub condense_model: Option<String>,
}

/// How a model cuts text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenizer {
    /// OpenAI's, since gpt-4o; what infold counts with.
    O200k,
    /// OpenAI's, up to gpt-4-turbo.
    Cl100k,
    /// Anthropic's, which is not public.
    Claude,
    /// One that is not known here.
    Other,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Input that no cache holds.
    pub input: f64,
    /// Input read from the provider's cache.
    pub cached: f64,
    /// Input written to the provider's cache.
    pub write: f64,
    /// Output.
    pub output: f64,
}

impl Tokenizer {
    /// By how much to multiply a count of o200k tokens before the provider has reported any.
    ///
    /// Too high folds a little early, too low overflows, so each is at the upper end.
    /// Claude: sessions measured at 2.8 to 3.1 bytes a token where o200k has about 4, so
    /// 1.29 to 1.43 times as many.
    pub fn factor(self) -> f64 {
        match self {
            Tokenizer::O200k => 1.0,
            Tokenizer::Cl100k => 1.1,
            Tokenizer::Claude => 1.45,
            Tokenizer::Other => 1.5,
        }
    }

    /// The tokenizer of that name.
    pub fn named(name: &str) -> Option<Tokenizer> {
        let all = [
            Tokenizer::O200k,
            Tokenizer::Cl100k,
            Tokenizer::Claude,
            Tokenizer::Other,
        ];
        all.into_iter()
            .find(|tokenizer| tokenizer.to_string() == name)
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tokenizer::O200k => "o200k",
            Tokenizer::Cl100k => "cl100k",
            Tokenizer::Claude => "claude",
            Tokenizer::Other => "other",
        })
    }
}

/// All models of the built-in table, by provider and name.
pub fn all() -> &'static [Model] {
    static TABLE: LazyLock<Vec<Model>> = LazyLock::new(|| {
        let lines = include_str!("../data/models.txt").lines();
        lines
            .filter(|line| !line.starts_with('#'))
            .map(|line| row(line).expect("the built-in table is well-formed, a test reads it"))
            .collect()
    });
    &TABLE
}

/// Returns what the built-in table knows of a model: the row with the longest matching name.
pub fn find(name: &str) -> Option<&'static Model> {
    longest(name, all(), |model| &model.name)
}

/// Of several things that have names, the one whose name is the longest start of `name`.
///
/// Case, a provider before a slash (`anthropic/claude-…`), a prefix ended by a dot or a
/// colon (`us.anthropic.claude-…`, `ft:gpt-4o`) and all that follows (dates, `:tag`, `@version`)
/// do not matter. A name ends at a boundary: `gpt-4` is no start of `gpt-4o` or `gpt-4.1`.
pub fn longest<'a, T>(name: &str, all: &'a [T], of: impl Fn(&T) -> &str) -> Option<&'a T> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    // Resellers write Claude's versions with a dot.
    let dashed = name.contains("claude").then(|| name.replace('.', "-"));
    let mut best: Option<(usize, &T)> = None;
    for spelling in [Some(name), dashed.as_deref()].into_iter().flatten() {
        for start in starts(spelling) {
            for one in all {
                let prefix = of(one).to_ascii_lowercase();
                if best.is_none_or(|(length, _)| length < prefix.len()) && begins(start, &prefix) {
                    best = Some((prefix.len(), one));
                }
            }
        }
    }
    best.map(|(_, one)| one)
}

/// Where in a name the model's own name may begin. A bounded number: names come from outside.
fn starts(name: &str) -> impl Iterator<Item = &str> {
    let inner = name
        .match_indices(['.', ':', '-'])
        .filter_map(|(at, mark)| {
            let rest = &name[at + 1..];
            // With dots made dashes, `us-anthropic-claude-…`: only Claude may begin after a dash.
            let begins = match mark {
                "-" => rest.starts_with("claude"),
                _ => rest.starts_with(|c: char| c.is_ascii_alphabetic()),
            };
            begins.then_some(rest)
        });
    std::iter::once(name).chain(inner.take(8))
}

/// Whether `name` begins with `prefix`, and `prefix` ends where a word or a version ends.
fn begins(name: &str, prefix: &str) -> bool {
    let Some(rest) = name.strip_prefix(prefix) else {
        return false;
    };
    let mut rest = rest.chars();
    let (Some(last), Some(next)) = (prefix.chars().next_back(), rest.next()) else {
        return !prefix.is_empty();
    };
    let version_goes_on = next == '.' && rest.next().is_some_and(|c| c.is_ascii_digit());
    match last {
        _ if last.is_ascii_digit() => !next.is_alphanumeric() && !version_goes_on,
        _ if last.is_alphabetic() => !next.is_alphabetic(),
        _ => true,
    }
}

/// One line of the table, whose head says what the columns are.
fn row(line: &str) -> Option<Model> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let &[
        name,
        provider,
        window,
        max_output,
        tokenizer,
        input,
        cached,
        write,
        output,
        threshold,
        keep,
        ratio,
        condense,
    ] = cells.as_slice()
    else {
        return None;
    };
    let number = |cell: &str| match cell {
        "-" => Some(None),
        _ => cell.parse::<f64>().ok().map(Some),
    };
    let prices = match (number(input)?, number(output)?) {
        (Some(input), Some(output)) => Some(Prices {
            input,
            cached: number(cached)?.unwrap_or(input),
            write: number(write)?.unwrap_or(input),
            output,
        }),
        _ => None,
    };
    let threshold = match number(threshold)? {
        Some(percent) => Some(Threshold::new(percent).ok()?),
        None => None,
    };
    Some(Model {
        name: name.to_owned(),
        provider: provider.to_owned(),
        window: window.parse().ok()?,
        max_output: max_output.parse().ok()?,
        tokenizer: Tokenizer::named(tokenizer)?,
        prices,
        threshold,
        keep: match keep {
            "-" => None,
            keep => Some(Keep::Messages(keep.parse().ok()?)),
        },
        ratio: number(ratio)?,
        condense_model: (condense != "-").then(|| condense.to_owned()),
    })
}
