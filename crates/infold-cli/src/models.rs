//! `infold models`: the table of models, and the values that apply to one of them.

use clap::Args;
use infold::config::ProfileRequest;
use infold::models::{self, Model, Prices};
use infold::profile::{KeepRecent, Origin, ResolvedProfile};
use infold::{Config, usage};
use infold_store::{Contexts, LearnedWindow};
use serde_json::{Map, Value, json};

use crate::error::{CliError, CliResult};
use crate::fold_options::no_profile;
use crate::output::{DIM, FOLD, Output, format_table, number, one_line, paint};

/// The arguments of `infold models`.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// A model: show its settings and where they come from
    name: Option<String>,
    /// Use this profile of the configuration
    #[arg(long, requires = "name")]
    profile: Option<String>,
    /// Forget the window learned from a provider's error
    #[arg(long, requires = "name", conflicts_with = "profile")]
    forget: bool,
    /// List only the models of this provider
    #[arg(long, conflicts_with = "name")]
    provider: Option<String>,
}

/// `infold models`
pub fn run(contexts: &Contexts, config: &Config, args: &ModelsArgs, out: &mut Output) -> CliResult {
    let Some(name) = &args.name else {
        return list(config, args.provider.as_deref(), out);
    };
    let learned = learned_windows(contexts, name)?;
    if args.forget {
        return forget(contexts, name, &learned, out);
    }
    show_model(config, name, args.profile.clone(), &learned, out)
}

/// Returns the windows learned from providers' errors. Does not create a registry.
fn learned_windows(contexts: &Contexts, model: &str) -> CliResult<Vec<LearnedWindow>> {
    if !contexts.root().join("tasks.db").exists() {
        return Ok(Vec::new());
    }
    Ok(usage::learned_windows(contexts, model)?)
}

fn forget(
    contexts: &Contexts,
    model: &str,
    learned: &[LearnedWindow],
    out: &mut Output,
) -> CliResult {
    if !learned.is_empty() {
        usage::forget_windows(contexts, model)?;
    }
    if out.is_json() {
        return out.object(&json!({ "model": model, "forgotten": learned_json(learned) }));
    }
    if learned.is_empty() {
        let model = one_line(model);
        return out.line(format!("no learned window for {model}"));
    }
    for row in learned {
        let (window, by) = (number(row.window), one_line(&row.provider));
        out.line(format!("forgotten: {window} tokens, learned from {by}"))?;
    }
    Ok(())
}

fn learned_json(learned: &[LearnedWindow]) -> Value {
    let object = |row: &LearnedWindow| {
        json!({
            "provider": row.provider, "model": row.model, "window": row.window,
            "learned_at": format!("{:.3}", row.learned_at),
        })
    };
    learned.iter().map(object).collect()
}

fn list(config: &Config, provider: Option<&str>, out: &mut Output) -> CliResult {
    let own = config.models.iter().map(|own| &own.row);
    let replaced = |row: &&Model| config.models.iter().any(|own| own.row.name == row.name);
    let built_in = models::all().iter().filter(|row| !replaced(row));
    let rows = own
        .chain(built_in)
        .filter(|row| provider.is_none_or(|provider| row.provider == provider));
    let mut rows: Vec<&Model> = rows.collect();
    rows.sort_by(|a, b| a.provider.cmp(&b.provider));
    if rows.is_empty() {
        let mut all: Vec<&str> = models::all()
            .iter()
            .map(|row| row.provider.as_str())
            .collect();
        all.dedup();
        let text = format!("no models of `{}`", provider.unwrap_or_default());
        return Err(CliError::usage(text).hint(format!("available: {}", all.join(", "))));
    }
    if out.is_json() {
        return rows.iter().try_for_each(|row| out.object(&row_json(row)));
    }
    let head = [
        "model",
        "window",
        "output",
        "tokens",
        "prices",
        "fold at",
        "keep",
        "condensed by",
    ];
    let mut cells = vec![head.map(str::to_owned)];
    cells.extend(rows.iter().map(|row| columns(row)));
    let mut lines = format_table(&cells, &[1, 2, 5, 6], out.width()).into_iter();
    out.line(paint(DIM, lines.next().unwrap_or_default()))?;
    let mut provider = "";
    for (row, line) in rows.iter().zip(lines) {
        if row.provider != provider {
            provider = &row.provider;
            out.line(paint(FOLD, one_line(provider)))?;
        }
        out.line(line)?;
    }
    Ok(())
}

fn columns(row: &Model) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        one_line(&row.name),
        number(row.window),
        number(row.max_output),
        row.tokenizer.to_string(),
        or_dash(row.prices.map(format_prices)),
        or_dash(row.threshold.map(|threshold| threshold.to_string())),
        or_dash(row.keep.map(|keep| match keep {
            KeepRecent::Messages(count) => count.to_string(),
            KeepRecent::Share(_) => keep.to_string(),
        })),
        or_dash(row.condense_model.as_deref().map(one_line)),
    ]
}

fn format_prices(prices: Prices) -> String {
    let Prices {
        input,
        cached,
        write,
        output,
    } = prices;
    format!("{input}/{cached}/{write}/{output}")
}

/// Returns a number of messages, or a share below 1.
pub fn keep_json(keep: KeepRecent) -> Value {
    match keep {
        KeepRecent::Messages(count) => json!(count),
        KeepRecent::Share(share) => json!(share),
    }
}

fn prices_json(prices: Option<Prices>) -> Value {
    let object = |prices: Prices| {
        json!({
            "input": prices.input, "cached": prices.cached,
            "write": prices.write, "output": prices.output,
        })
    };
    prices.map(object).unwrap_or_default()
}

fn row_json(row: &Model) -> Value {
    json!({
        "name": row.name, "provider": row.provider, "window": row.window,
        "max_output": row.max_output, "tokenizer": row.tokenizer.to_string(),
        "prices": prices_json(row.prices),
        "threshold": row.threshold.map(|threshold| threshold.percent()),
        "keep": row.keep.map(keep_json), "ratio": row.ratio,
        "condense_model": row.condense_model,
    })
}

fn show_model(
    config: &Config,
    name: &str,
    profile: Option<String>,
    learned: &[LearnedWindow],
    out: &mut Output,
) -> CliResult {
    let asked = ProfileRequest {
        model: Some(name.to_owned()),
        profile,
        ..ProfileRequest::default()
    };
    let resolved = config.resolve(&asked).map_err(no_profile)?;
    let matched = config.find(name).map(|row| row.name.as_str());
    if out.is_json() {
        let mut object = resolved_json(&resolved, matched);
        object["learned_windows"] = learned_json(learned);
        out.object(&object)?;
    } else {
        let mut rows = resolved_rows(&resolved, matched);
        rows.extend(learned.iter().map(learned_row));
        for line in format_table(&rows, &[], out.width()) {
            out.line(line)?;
        }
    }
    out.finish()?;
    for warning in &resolved.warnings {
        CliError::usage(warning).warn(out.is_json());
    }
    Ok(())
}

fn learned_row(row: &LearnedWindow) -> [String; 3] {
    let (by, at) = (one_line(&row.provider), row.learned_at);
    [
        "learned window".to_owned(),
        format!("{} tokens", number(row.window)),
        format!("from {by} at {at:.0}, valid for a day"),
    ]
}

fn resolved_rows(resolved: &ResolvedProfile, matched: Option<&str>) -> Vec<[String; 3]> {
    let profile = &resolved.profile;
    let tokens = |count: Option<u64>| count.map(|count| format!("{} tokens", number(count)));
    let trigger = profile.threshold.of(profile.window);
    let mut rows = vec![
        [
            "model".to_owned(),
            one_line(&profile.model),
            matched.map_or("not in the table".to_owned(), |name| {
                format!("matches {}", one_line(name))
            }),
        ],
        [
            "provider".to_owned(),
            profile.provider.as_deref().map_or("-".to_owned(), one_line),
            String::new(),
        ],
    ];
    for (name, origin) in &resolved.origins {
        let value = match *name {
            "window" => tokens(Some(profile.window)),
            "max_output" => tokens(profile.max_output),
            "max_tokens" => tokens(profile.max_tokens),
            "threshold" => Some(format!("{}, {} tokens", profile.threshold, number(trigger))),
            "auto" => Some(profile.auto.to_string()),
            "keep" => Some(profile.keep.to_string()),
            "ratio" => Some(profile.ratio.to_string()),
            "condense_model" => Some(one_line(&profile.condense_model)),
            "prompt" => profile
                .prompt
                .as_deref()
                .map(|prompt| infold_wire::shorten(prompt, 50)),
            "strategy" => Some(one_line(&profile.strategy)),
            "tokenizer" => Some(profile.tokenizer.to_string()),
            "factor" => Some(format!("× {}", profile.factor)),
            "prices" => profile.prices.map(format_prices),
            _ => None,
        };
        let Some(value) = value else { continue };
        rows.push([(*name).to_owned(), value, one_line(&origin.to_string())]);
    }
    rows
}

fn resolved_json(resolved: &ResolvedProfile, matched: Option<&str>) -> Value {
    let profile = &resolved.profile;
    let origin =
        |(name, origin): &(&'static str, Origin)| ((*name).to_owned(), origin.to_string().into());
    let origins: Map<String, Value> = resolved.origins.iter().map(origin).collect();
    json!({
        "model": profile.model, "matched": matched, "provider": profile.provider,
        "window": profile.window, "max_output": profile.max_output,
        "max_tokens": profile.max_tokens, "threshold": profile.threshold.percent(),
        "auto": profile.auto, "keep": keep_json(profile.keep), "ratio": profile.ratio,
        "condense_model": profile.condense_model, "prompt": profile.prompt,
        "strategy": profile.strategy, "tokenizer": profile.tokenizer.to_string(),
        "factor": profile.factor, "prices": prices_json(profile.prices),
        "origins": origins, "warnings": resolved.warnings,
    })
}
