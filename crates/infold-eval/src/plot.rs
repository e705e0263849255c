//! Draws how strategies went, as SVG.

use std::fmt::Write as _;

/// A picture of how strategies went, as SVG: a strip for each, one under the other.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// What was replayed.
    pub title: String,
    /// The window, in tokens.
    pub window: u64,
    /// What of it a view may have.
    pub allow: u64,
    /// A strip for each strategy.
    pub lines: Vec<PlotStrip>,
    /// The requests at which another session begins.
    pub breaks: Vec<usize>,
}

/// How one strategy went.
#[derive(Clone, Debug, Default)]
pub struct PlotStrip {
    /// Its name.
    pub name: String,
    /// The tokens of each request, and whether something was folded just before.
    pub requests: Vec<(u64, bool)>,
    /// How many references were kept, of how many that were wanted.
    pub recall: (u64, u64),
}

const LEFT: f64 = 84.0;
const STRIP: f64 = 600.0;
const HEIGHT: f64 = 78.0;
const GAP: f64 = 26.0;
const TOP: f64 = 92.0;
const BARS: f64 = LEFT + STRIP + 56.0;
const BAR: f64 = 160.0;
const WIDTH: f64 = BARS + BAR + 40.0;

/// Colours that are told apart on white and on black, and by people who see few colours.
const STYLE: &str = "\
svg{color-scheme:light dark;font:13px system-ui,sans-serif;--ink:#1f2430;--dim:#667085;--rule:#d0d5dd;--page:#fff;\
--s0:#2563c9;--s1:#b45309;--s2:#0f7b5f;--s3:#a21caf;--s4:#5b6472}\
@media(prefers-color-scheme:dark){svg{--ink:#e6e9ef;--dim:#98a2b3;--rule:#3a4150;--page:#14171d;\
--s0:#7aa7ff;--s1:#f0a04b;--s2:#45c9a4;--s3:#e583f0;--s4:#a9b2c0}}\
.page{fill:var(--page)}text{fill:var(--ink)}.dim{fill:var(--dim);font-size:11px}.title{font-size:16px;font-weight:600}\
.name{font-weight:600}.rule{stroke:var(--rule);fill:none}.limit{stroke:var(--dim);stroke-dasharray:4 3}\
.track{fill:var(--rule);opacity:.5}.line{fill:none;stroke-width:1.4;stroke-linejoin:round}.under{opacity:.14}\
.mark{stroke:var(--page);stroke-width:.8}";

impl Plot {
    /// Draws it: self-contained, in the colours of the reader's system.
    pub fn svg(&self) -> String {
        let height = TOP + self.lines.len() as f64 * (HEIGHT + GAP) + 18.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
            title = escaped(&self.title),
        );
        text(&mut out, "title", (LEFT, 32.0), "start", &self.title);
        text(
            &mut out,
            "dim",
            (LEFT, 52.0),
            "start",
            &format!(
                "tokens sent with each request; a dot: something was folded just before. Dashed: the window ({}) and what of it a view may have ({})",
                short(self.window),
                short(self.allow)
            ),
        );
        text(
            &mut out,
            "dim",
            (BARS, TOP - 12.0),
            "start",
            "references to what was folded",
        );
        for (at, line) in self.lines.iter().enumerate() {
            self.strip(&mut out, at, line);
        }
        let requests = self.requests();
        let foot = height - 14.0;
        text(&mut out, "dim", (LEFT, foot), "start", "request 1");
        text(
            &mut out,
            "dim",
            (LEFT + STRIP, foot),
            "end",
            &requests.to_string(),
        );
        out.push_str("</svg>\n");
        out
    }

    fn requests(&self) -> usize {
        let counts = self.lines.iter().map(|line| line.requests.len());
        counts.max().unwrap_or(0)
    }

    /// The height of a strip, in tokens.
    fn most(&self) -> u64 {
        let all = self.lines.iter().flat_map(|line| &line.requests);
        let largest = all.map(|(tokens, _)| *tokens).max().unwrap_or(0);
        self.window.max(largest).max(1)
    }

    fn strip(&self, out: &mut String, at: usize, line: &PlotStrip) {
        let top = TOP + at as f64 * (HEIGHT + GAP);
        let bottom = top + HEIGHT;
        let last = self.requests().saturating_sub(1).max(1) as f64;
        let x = |request: usize| LEFT + request as f64 / last * STRIP;
        let most = self.most() as f64;
        let y = |tokens: u64| bottom - tokens as f64 / most * HEIGHT;
        let colour = format!("var(--s{})", at % 5);
        rule(out, "rule", (LEFT, bottom), (LEFT + STRIP, bottom));
        for limit in [self.window, self.allow] {
            rule(out, "limit", (LEFT, y(limit)), (LEFT + STRIP, y(limit)));
        }
        if at == 0 {
            let side = LEFT + STRIP + 4.0;
            text(
                out,
                "dim",
                (side, y(self.window) + 4.0),
                "start",
                &short(self.window),
            );
            text(
                out,
                "dim",
                (side, y(self.allow) + 4.0),
                "start",
                &short(self.allow),
            );
        }
        for request in &self.breaks {
            rule(out, "rule", (x(*request), top), (x(*request), bottom));
        }
        let mut path = String::new();
        let mut marks = String::new();
        for (request, tokens, folded) in thinned(&line.requests) {
            let (x, y) = (x(request), y(tokens));
            let _ = write!(path, "{x:.1},{y:.1} ");
            if folded {
                let _ = write!(
                    marks,
                    "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
                );
            }
        }
        let end = x(line.requests.len().saturating_sub(1));
        let _ = writeln!(
            out,
            "<polygon class=\"under\" fill=\"{colour}\" points=\"{LEFT},{bottom} {path}{end:.1},{bottom}\"/>\n<polyline class=\"line\" stroke=\"{colour}\" points=\"{path}\"/>\n{marks}"
        );
        let label = LEFT - 10.0;
        text(out, "name", (label, top + 36.0), "end", &line.name);
        let folds = line.requests.iter().filter(|(_, folded)| *folded).count();
        let folds = format!("folds {folds}×");
        text(out, "dim", (label, top + 52.0), "end", &folds);
        bar(out, (BARS, top), &colour, line.recall);
    }
}

/// How much of what was wanted was kept.
fn bar(out: &mut String, (x, top): (f64, f64), colour: &str, (kept, wanted): (u64, u64)) {
    let y = top + 22.0;
    let share = match wanted {
        0 => {
            return text(out, "dim", (x, y + 12.0), "start", "nothing was wanted");
        }
        wanted => kept as f64 / wanted as f64,
    };
    let _ = writeln!(
        out,
        "<rect class=\"track\" x=\"{x}\" y=\"{y}\" width=\"{BAR}\" height=\"14\" rx=\"3\"/><rect x=\"{x}\" y=\"{y}\" width=\"{:.1}\" height=\"14\" rx=\"3\" fill=\"{colour}\"/>",
        share * BAR
    );
    let told = format!("{:.0} % kept ({kept} of {wanted})", share * 100.0);
    text(out, "dim", (x, y + 30.0), "start", &told);
}

/// At most two points for each pixel: the largest, and those after a fold.
fn thinned(requests: &[(u64, bool)]) -> Vec<(usize, u64, bool)> {
    let step = requests.len().div_ceil(STRIP as usize * 2).max(1);
    let groups = requests.chunks(step).enumerate();
    groups
        .map(|(at, group)| {
            let tokens = group.iter().map(|(tokens, _)| *tokens).max();
            let folded = group.iter().any(|(_, folded)| *folded);
            (at * step, tokens.unwrap_or(0), folded)
        })
        .collect()
}

fn rule(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, class: &str, at: (f64, f64), anchor: &str, said: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
        at.0,
        at.1,
        escaped(said)
    );
}

/// A text as XML has it; characters that XML does not have are left out.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

/// 32000 as 32k.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", trimmed(tokens as f64 / 1e3)),
        _ => format!("{}m", trimmed(tokens as f64 / 1e6)),
    }
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.1}");
    text.trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says whether tags are closed in order, and attributes and entities whole.
    fn is_well_formed(xml: &str) -> bool {
        let mut open = Vec::new();
        for piece in xml.split('<').skip(1) {
            let Some((tag, text)) = piece.split_once('>') else {
                return false;
            };
            let entities = text.split('&').skip(1);
            let known = ["amp;", "lt;", "gt;", "quot;"];
            let mut broken =
                entities.filter(|rest| !known.iter().any(|name| rest.starts_with(name)));
            if tag.matches('"').count() % 2 != 0 || broken.next().is_some() {
                return false;
            }
            let name = tag.split_whitespace().next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return false,
                Some(_) => {}
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        open.is_empty()
    }

    #[test]
    fn a_picture_is_whole_whatever_is_in_it() {
        let line = |name: &str, requests: Vec<(u64, bool)>, recall| PlotStrip {
            name: name.to_owned(),
            requests,
            recall,
        };
        let plot = Plot {
            title: "a <b> & \"c\"\u{1}.jsonl".to_owned(),
            window: 8_000,
            allow: 5_200,
            lines: vec![
                line(
                    "infold",
                    vec![(100, false), (9_000, false), (900, true)],
                    (1, 4),
                ),
                line("none", Vec::new(), (0, 0)),
                line(
                    "long",
                    (0..100_000)
                        .map(|at| (at % 7_000, at % 7_000 == 0))
                        .collect(),
                    (3, 3),
                ),
            ],
            breaks: vec![1],
        };
        let svg = plot.svg();
        assert!(is_well_formed(&svg), "{svg}");
        assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;.jsonl"));
        assert!(svg.contains("25 % kept (1 of 4)") && svg.contains("nothing was wanted"));
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
        assert!(is_well_formed(&Plot::default().svg()));
    }
}
