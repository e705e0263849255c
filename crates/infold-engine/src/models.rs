//! The table of models: windows, tokenizers, prices, defaults.

use std::fmt;
use std::sync::LazyLock;

use crate::profile::{KeepRecent, Threshold};

/// The window of an unknown model.
pub const UNKNOWN_WINDOW: u64 = 128_000;

/// A row of the table: a model, or a family of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The prefix of the names that it matches.
    pub name: String,
    /// The maker of the model.
    pub provider: String,
    /// The most tokens of a request.
    pub window: u64,
    /// The most tokens of a reply.
    pub max_output: u64,
    /// The model's tokenizer.
    pub tokenizer: Tokenizer,
    /// The model's prices.
    pub prices: Option<Prices>,
    /// When to start folding.
    pub threshold: Option<Threshold>,
    /// The newest part of a conversation that is kept.
    pub keep: Option<KeepRecent>,
    /// The largest size of a summary relative to the messages that it replaces.
    pub ratio: Option<f64>,
    /// The model that writes summaries; itself if there is none.
    pub condense_model: Option<String>,
}

/// The tokenizer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenizer {
    /// OpenAI's since gpt-4o, which infold counts with.
    O200k,
    /// OpenAI's, up to gpt-4-turbo.
    Cl100k,
    /// Anthropic's, which is not public.
    Claude,
    /// An unknown tokenizer.
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

    /// Returns the tokenizer of a name.
    pub fn named(name: &str) -> Option<Tokenizer> {
        use Tokenizer::{Cl100k, Claude, O200k, Other};
        let mut all = [O200k, Cl100k, Claude, Other].into_iter();
        all.find(|tokenizer| tokenizer.to_string() == name)
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

/// Returns all models of the built-in table, by provider and name.
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

/// Returns the row of the built-in table with the longest name that matches.
pub fn find(name: &str) -> Option<&'static Model> {
    longest(name, all(), |model| &model.name)
}

/// Says whether a model signs its thinking together with all that precedes it: Claude does from
/// version 5.1 on, in any spelling of its name.
pub fn binds_thinking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some((_, version)) = name.split_once("claude") else {
        return false;
    };
    let mut words = version.split(|at: char| !at.is_ascii_alphanumeric());
    // A date is no version.
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let major = words.by_ref().find_map(number).unwrap_or(0);
    let minor = words.next().and_then(number).unwrap_or(0);
    (major, minor) >= (5, 1)
}

/// The window of a request that asks for a long context.
pub const LONG_CONTEXT_WINDOW: u64 = 1_000_000;

/// Returns the window of a model by its name and its row: a name may end in a mark of a long context, such as
/// `claude-sonnet-4-5[1m]`.
pub fn window(name: &str, row: Option<&Model>) -> Option<u64> {
    let known = row.map(|row| row.window);
    if asks_for_long_context(name) {
        return known.max(Some(LONG_CONTEXT_WINDOW));
    }
    known
}

/// Says whether a name ends in a mark of a long context. A longer number is one of parameters:
/// `smollm:135m`.
fn asks_for_long_context(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let marked = |mark: &str| name.strip_suffix(mark).is_some_and(|rest| !rest.is_empty());
    ["[1m]", ":1m", "-1m", "@1m"].into_iter().any(marked)
}

/// Returns the item whose name is the longest start of `name`.
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

/// Returns the ends of a name in which the model's own name may begin. Their number is bounded: names come from outside.
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

/// Says whether `name` begins with `prefix`, and `prefix` ends where a word or a version ends.
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

/// Parses one line of the table, whose head names the columns.
fn row(line: &str) -> Option<Model> {
    let mut cells = line.split_whitespace();
    let mut cell = || {
        cells
            .next()
            .map(|cell| Some(cell).filter(|cell| *cell != "-"))
    };
    let (name, provider) = (cell()??.to_owned(), cell()??.to_owned());
    let (window, max_output) = (cell()??.parse().ok()?, cell()??.parse().ok()?);
    let tokenizer = Tokenizer::named(cell()??)?;
    let mut number = || match cell()? {
        Some(cell) => cell.parse::<f64>().ok().map(Some),
        None => Some(None),
    };
    let [input, cached, write, output] = [number()?, number()?, number()?, number()?];
    let prices = input.zip(output).map(|(input, output)| Prices {
        input,
        cached: cached.unwrap_or(input),
        write: write.unwrap_or(input),
        output,
    });
    let (threshold, keep, ratio) = (number()?, number()?, number()?);
    let condense_model = cell()?.map(str::to_owned);
    cells.next().is_none().then_some(())?;
    Some(Model {
        name,
        provider,
        window,
        max_output,
        tokenizer,
        prices,
        threshold: threshold.map(Threshold::new).transpose().ok()?,
        keep: keep.map(|count| KeepRecent::Messages(count as u32)),
        ratio,
        condense_model,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn models_that_sign_what_stands_before_their_thinking_are_known_by_version() {
        for name in [
            "claude-fable-5-1",
            "anthropic/claude-opus-5.5",
            "us.anthropic.claude-sonnet-5-5-20261001-v1:0",
            "claude-opus-6",
        ] {
            assert!(binds_thinking(name), "{name}");
        }
        for name in [
            "claude-opus-5-20260901",
            "claude-sonnet-4-5",
            "claude-3-5-sonnet-20241022",
            "claude",
            "gpt-5.5",
        ] {
            assert!(!binds_thinking(name), "{name}");
        }
    }

    fn matched(name: &str) -> &str {
        find(name).map_or("-", |model| &model.name)
    }

    #[test]
    fn every_row_of_the_table_makes_sense() {
        assert!(all().len() > 150);
        for model in all() {
            assert_eq!(matched(&model.name), model.name);
            assert!(
                model.max_output <= model.window && model.window >= 4096,
                "{model:?}"
            );
            if let Some(prices) = model.prices {
                assert!(prices.cached <= prices.input, "{model:?}");
                assert!(prices.input <= prices.write, "{model:?}");
                assert!(
                    prices.input > 0.0 && prices.input <= prices.output,
                    "{model:?}"
                );
            }
            if let Some(name) = &model.condense_model {
                let condenser = find(name).expect("a condensing model is in the table");
                assert_eq!(condenser.provider, model.provider);
            }
        }
    }

    #[test]
    fn models_are_found_as_people_and_servers_spell_them() {
        for (name, row) in [
            ("gpt-5", "gpt-5"),
            ("GPT-5-2025-08-07", "gpt-5"),
            ("openai/gpt-4o-mini", "gpt-4o-mini"),
            ("ft:gpt-4o-2024-08-06:acme::x1", "gpt-4o"),
            ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4"),
            (
                "openrouter/anthropic/claude-3.5-sonnet:beta",
                "claude-3-5-sonnet",
            ),
            (
                "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
                "claude-3-5-sonnet",
            ),
            ("vertex_ai/claude-3-opus@20240229", "claude-3-opus"),
            ("claude-opus-4-6", "claude-opus-4-6"),
            ("claude-opus-9", "claude-opus"),
            ("claude-2.1", "claude-"),
            ("models/gemini-2.5-flash-lite-001", "gemini-2.5-flash-lite"),
            ("gemini-1.5-flash", "gemini-"),
            ("deepseek/deepseek-r1:free", "deepseek-r1"),
            ("llama3.1:8b-instruct-q4_0", "llama3.1"),
            ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3"),
            ("meta.llama3-1-70b", "llama"),
            ("qwen2.5-coder:7b", "qwen"),
            ("mistral", "mistral"),
            (" o3 ", "o3"),
        ] {
            assert_eq!(matched(name), row, "{name}");
        }
    }

    #[test]
    fn a_name_ends_where_a_word_or_a_version_ends() {
        for (name, row) in [
            ("gpt-4", "gpt-4"),
            ("gpt-4-0613", "gpt-4"),
            ("gpt-4.9", "gpt-"),
            ("gpt-40", "gpt-"),
            ("gpt-4z", "gpt-"),
            ("o1", "o1"),
            ("o10", "-"),
            ("o1x", "-"),
            ("mistralish", "-"),
            ("my-gpt-4", "-"),
            ("gpt", "-"),
            ("", "-"),
            ("/", "-"),
        ] {
            assert_eq!(matched(name), row, "{name}");
        }
    }

    #[test]
    fn families_have_their_windows_and_defaults() {
        let of = |name: &str| {
            let model = find(name).expect("known");
            let threshold = model.threshold.map(Threshold::percent);
            (model.window, threshold, model.keep, model.ratio)
        };
        let keep = |count| Some(KeepRecent::Messages(count));
        assert_eq!(
            of("claude-3-opus"),
            (200_000, Some(80.0), keep(5), Some(0.3))
        );
        assert_eq!(
            of("claude-sonnet-4"),
            (200_000, Some(75.0), keep(3), Some(0.25))
        );
        assert_eq!(
            of("claude-haiku-4-5"),
            (200_000, Some(60.0), keep(3), Some(0.2))
        );
        assert_eq!(
            of("gpt-4-turbo"),
            (128_000, Some(70.0), keep(3), Some(0.25))
        );
        assert_eq!(of("gpt-3.5-turbo").1, Some(50.0));
        assert_eq!(of("gemini-1.5-pro"), (2_097_152, Some(50.0), None, None));
        assert_eq!(of("gemini-2.5-pro").0, 1_048_576);
        assert_eq!(of("gpt-5").1, None);
        let unlisted = (128_000, Some(70.0), keep(3), None);
        assert_eq!(of("gpt-9"), unlisted);
        assert_eq!(of("chatgpt-9"), unlisted);
    }

    #[test]
    fn windows_are_told_by_names_with_all_that_stands_around_them() {
        for (name, expected) in [
            // A mark of a long context, for the models of any maker.
            ("claude-sonnet-4-5[1m]", 1_000_000),
            ("claude-sonnet-4-5-20250929[1M]", 1_000_000),
            ("opus[1m]", 1_000_000),
            ("anthropic/claude-sonnet-4.5:1m", 1_000_000),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0[1m]", 1_000_000),
            ("vertex_ai/claude-sonnet-4@20250514[1m]", 1_000_000),
            ("qwen2.5-14b-instruct-1m", 1_000_000),
            ("mystery-1m", 1_000_000),
            // A window that is larger anyway stays.
            ("gemini-1.5-pro[1m]", 2_097_152),
            // Without it, the table.
            ("claude-sonnet-4-5", 200_000),
            ("claude-sonnet-4-5-20250929", 200_000),
            ("anthropic/claude-sonnet-4.5", 200_000),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
            ("eu.anthropic.claude-opus-4-1-20250805-v1:0", 200_000),
            ("vertex_ai/claude-sonnet-4@20250514", 200_000),
            (
                "publishers/anthropic/models/claude-3-5-haiku@20241022",
                200_000,
            ),
            ("claude-opus-4-6", 1_000_000),
            ("anthropic.claude-opus-4-6-v1", 1_000_000),
            ("claude-sonnet-4-6", 1_000_000),
            ("gpt-4.1", 1_047_576),
            ("gpt-4.1-2025-04-14", 1_047_576),
            ("azure/gpt-4.1-mini", 1_047_576),
            ("openai/gpt-4.1-nano", 1_047_576),
            ("gpt-5", 272_000),
            ("gpt-5-2025-08-07", 272_000),
            ("openrouter/openai/gpt-5-mini", 272_000),
            ("gpt-5.4", 1_050_000),
            ("gpt-4-32k-0613", 32_768),
            ("moonshot-v1-128k", 131_072),
            ("models/gemini-2.5-pro", 1_048_576),
            ("google/gemini-2.5-flash-preview-09-2025", 1_048_576),
            ("gemini-1.5-pro-002", 2_097_152),
        ] {
            assert_eq!(window(name, find(name)), Some(expected), "{name}");
        }
        // A number of parameters is none of tokens.
        for name in ["smollm:135m", "mystery:21m", "mystery-11m", "1m", "-1m"] {
            assert_eq!(window(name, None), None, "{name}");
        }
    }

    proptest! {
        /// Case, a provider in front and a date or tag behind do not change the result.
        #[test]
        fn trimmings_do_not_matter(
            at in any::<prop::sample::Index>(),
            before in prop::sample::select(vec!["", "openrouter/", "a/b/c/", "models/", "x.y."]),
            after in prop::sample::select(vec!["", "-20300101", ":latest", "@001", ":8b-q4"]),
            upper in any::<bool>(),
        ) {
            let row = &all()[at.index(all().len())];
            let name = format!("{before}{}{after}", row.name);
            let name = if upper { name.to_uppercase() } else { name };
            prop_assert_eq!(matched(&name), &row.name);
        }

        /// Any name may be looked up, and a result is part of the name.
        #[test]
        fn any_name_is_looked_up(name in "\\PC{0,40}") {
            if let Some(model) = find(&name) {
                let plain = name.to_ascii_lowercase().replace('.', "-");
                prop_assert!(plain.contains(&model.name.replace('.', "-")));
            }
        }
    }
}
