//! The tables: a row for each session, and one for all.

use infold::numbers::number;

use crate::measure::{Figures, InView, Setting, Share, least, mean};

/// Prints the figures measured at one window.
pub fn print(rows: &[(String, Figures)], setting: &Setting<'_>) {
    let mut all = Figures::default();
    rows.iter().for_each(|(_, figures)| all.add(figures));
    let mut rows: Vec<(&str, &Figures)> = rows.iter().map(|(name, row)| (&**name, row)).collect();
    if rows.len() > 1 {
        rows.push(("all", &all));
    }
    println!(
        "Window {}, replies up to {}, {}: live, through the proxy\n",
        number(setting.window),
        number(setting.max_tokens),
        setting.model
    );
    let mut table = vec![words(
        "session|requests|refused|failed|tasks|passes|summaries|windows|masks|breaks|references kept|words kept|filled after folds|least|at end|tokens sent|cached|cost|estimate",
    )];
    table.extend(rows.iter().map(|(name, row)| turns(name, row)));
    lines(&table);
    for (at, point) in all.points.iter().enumerate() {
        let from = match point.percent {
            100 => "before the last reply".to_owned(),
            percent => format!("after {percent} % of the requests"),
        };
        println!(
            "\nIn view {from}, of what the rest of the session needs: live and folded in one go\n"
        );
        let mut table = vec![words(
            "session|tokens|one go|stand-ins|one go|references there|one go|words there|one go|references kept|one go|words kept|one go|typed verbatim|one go",
        )];
        for (name, row) in &rows {
            if let Some(point) = row.points.get(at) {
                table.push(in_view(name, &point.live, &point.one_go));
            }
        }
        lines(&table);
    }
    println!(
        "\nUnfolded, and what `infold gain` says of the same: tokens sent, cached, unfolded, cost\n"
    );
    let mut table = vec![words(
        "session|sent|gain|cached|gain|unfolded|gain|cost|gain",
    )];
    table.extend(rows.iter().map(|(name, row)| gained(name, row)));
    lines(&table);
    println!();
}

fn gained(name: &str, row: &Figures) -> Vec<String> {
    let gain = row.gain;
    vec![
        name.to_owned(),
        number(row.tokens),
        number(gain.sent),
        number(row.cached),
        number(gain.cached),
        number(row.unfolded),
        number(gain.unfolded),
        format!("${:.2}", row.cost),
        format!("${:.2}", gain.cost),
    ]
}

fn turns(name: &str, row: &Figures) -> Vec<String> {
    let folds = row.folds;
    vec![
        name.to_owned(),
        number(row.requests),
        number(row.refused),
        number(row.failed),
        number(folds.tasks),
        number(folds.passes),
        number(folds.summaries),
        number(folds.windows),
        number(folds.masks),
        number(row.breaks),
        share(row.recall.references),
        share(row.recall.words),
        percent(mean(&row.after_folds)),
        percent(least(&row.after_folds)),
        percent(mean(&row.at_end)),
        number(row.tokens),
        percent((row.tokens > 0).then(|| row.cached as f64 / row.tokens as f64)),
        format!("${:.2}", row.cost),
        mean(&row.estimates).map_or("–".to_owned(), |mean| format!("× {mean:.2}")),
    ]
}

fn in_view(name: &str, live: &InView, one_go: &InView) -> Vec<String> {
    let both = |of: &dyn Fn(&InView) -> String| match one_go.requests {
        0 => [of(live), "–".to_owned()],
        _ => [of(live), of(one_go)],
    };
    let cells = [
        both(&|view| number(view.tokens / view.requests.max(1))),
        both(&|view| number(view.stand_in_tokens / view.requests.max(1))),
        both(&|view| share(view.there.references)),
        both(&|view| share(view.there.words)),
        both(&|view| share(view.recall.references)),
        both(&|view| share(view.recall.words)),
        both(&|view| format!("{} of {}", view.verbatim.kept, view.verbatim.wanted)),
    ];
    let name = std::iter::once(name.to_owned());
    name.chain(cells.into_iter().flatten()).collect()
}

fn share(share: Share) -> String {
    match share.wanted {
        0 => "–".to_owned(),
        wanted => format!(
            "{:.3} ({} of {})",
            share.kept as f64 / wanted as f64,
            number(share.kept),
            number(wanted)
        ),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn words(heads: &str) -> Vec<String> {
    heads.split('|').map(str::to_owned).collect()
}

/// Prints rows as a table of Markdown, columns in line.
fn lines(rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|at| width(at).unwrap_or(0).max(4))
        .collect();
    for (line, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if line == 0 {
            let dashes = widths.iter().enumerate().map(|(at, width)| match at {
                0 => "-".repeat(*width),
                _ => format!("{}:", "-".repeat(width - 1)),
            });
            println!("| {} |", dashes.collect::<Vec<_>>().join(" | "));
        }
    }
}
