//! Draws the replays of strategies as SVG.

use std::fmt::Write as _;

/// A picture of replays: a strip for each strategy, one under the other.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The window, in tokens.
    pub window: u64,
    /// The tokens that a view may have.
    pub allow: u64,
    /// A strip for each strategy.
    pub strips: Vec<PlotStrip>,
    /// The requests at which another session begins.
    pub breaks: Vec<usize>,
}

/// The replay of one strategy.
#[derive(Clone, Debug, Default)]
pub struct PlotStrip {
    /// Its name.
    pub name: String,
    /// The tokens of each request, and whether something was folded just before.
    pub requests: Vec<(u64, bool)>,
    /// The numbers of kept and of wanted references.
    pub recall: (u64, u64),
}

// Lengths in pixels.
const STRIP_LEFT: f64 = 84.0;
const STRIP_WIDTH: f64 = 600.0;
const STRIP_RIGHT: f64 = STRIP_LEFT + STRIP_WIDTH;
const STRIP_HEIGHT: f64 = 78.0;
const STRIP_GAP: f64 = 26.0;
const FIRST_STRIP_TOP: f64 = 92.0;
const BAR_LEFT: f64 = STRIP_RIGHT + 56.0;
const BAR_WIDTH: f64 = 160.0;
const PLOT_WIDTH: f64 = BAR_LEFT + BAR_WIDTH + 40.0;

/// The style sheet: its colours differ on white and on black, also for colour-blind readers.
const STYLE: &str = include_str!("plot.css");

/// The legend below the title.
const LEGEND: &str =
    "tokens sent with each request; a dot: something was folded just before. Dashed: the window";

impl Plot {
    /// Returns the picture: self-contained, in the colours of the reader's system.
    pub fn svg(&self) -> String {
        let height = FIRST_STRIP_TOP + self.strips.len() as f64 * (STRIP_HEIGHT + STRIP_GAP) + 18.0;
        let size = format!("width=\"{PLOT_WIDTH}\" height=\"{height}\"");
        let title = escape_xml(&self.title);
        let style = STYLE.replace('\n', "");
        let mut svg = Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {PLOT_WIDTH} {height}\" {size} role=\"img\">\n\
             <title>{title}</title>\n<style>{style}</style>\n<rect class=\"page\" {size}/>\n"
        ));
        svg.text("title", (STRIP_LEFT, 32.0), "start", &self.title);
        let (window, allow) = (short_number(self.window), short_number(self.allow));
        let legend = format!("{LEGEND} ({window}) and what of it a view may have ({allow})");
        svg.text("dim", (STRIP_LEFT, 52.0), "start", &legend);
        let heading = "references to what was folded";
        svg.text("dim", (BAR_LEFT, FIRST_STRIP_TOP - 12.0), "start", heading);
        for (at, strip) in self.strips.iter().enumerate() {
            self.draw_strip(&mut svg, at, strip);
        }
        let foot = height - 14.0;
        svg.text("dim", (STRIP_LEFT, foot), "start", "request 1");
        svg.text(
            "dim",
            (STRIP_RIGHT, foot),
            "end",
            &self.requests().to_string(),
        );
        svg.0 + "</svg>\n"
    }

    fn requests(&self) -> usize {
        let counts = self.strips.iter().map(|strip| strip.requests.len());
        counts.max().unwrap_or(0)
    }

    /// Returns the tokens at the top of a strip.
    fn max_tokens(&self) -> u64 {
        let all = self.strips.iter().flat_map(|strip| &strip.requests);
        let largest = all.map(|(tokens, _)| *tokens).max().unwrap_or(0);
        self.window.max(largest).max(1)
    }

    fn draw_strip(&self, svg: &mut Svg, at: usize, strip: &PlotStrip) {
        let top = FIRST_STRIP_TOP + at as f64 * (STRIP_HEIGHT + STRIP_GAP);
        let bottom = top + STRIP_HEIGHT;
        let last = self.requests().saturating_sub(1).max(1) as f64;
        let x = |request: usize| STRIP_LEFT + request as f64 / last * STRIP_WIDTH;
        let max = self.max_tokens() as f64;
        let y = |tokens: u64| bottom - tokens as f64 / max * STRIP_HEIGHT;
        let colour = format!("var(--s{})", at % 5);
        svg.line("rule", (STRIP_LEFT, bottom), (STRIP_RIGHT, bottom));
        for limit in [self.window, self.allow] {
            svg.line("limit", (STRIP_LEFT, y(limit)), (STRIP_RIGHT, y(limit)));
        }
        if at == 0 {
            for limit in [self.window, self.allow] {
                let place = (STRIP_RIGHT + 4.0, y(limit) + 4.0);
                svg.text("dim", place, "start", &short_number(limit));
            }
        }
        for request in &self.breaks {
            svg.line("rule", (x(*request), top), (x(*request), bottom));
        }
        let (mut path, mut marks) = (String::new(), String::new());
        for (request, tokens, folded) in thin_out(&strip.requests) {
            let (x, y) = (x(request), y(tokens));
            let _ = write!(path, "{x:.1},{y:.1} ");
            if folded {
                let _ = write!(
                    marks,
                    "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
                );
            }
        }
        let end = x(strip.requests.len().saturating_sub(1));
        svg.push(&format!(
            "<polygon class=\"under\" fill=\"{colour}\" points=\"{STRIP_LEFT},{bottom} {path}{end:.1},{bottom}\"/>\n\
             <polyline class=\"line\" stroke=\"{colour}\" points=\"{path}\"/>\n{marks}"
        ));
        let label = STRIP_LEFT - 10.0;
        svg.text("name", (label, top + 36.0), "end", &strip.name);
        let folds = strip.requests.iter().filter(|(_, folded)| *folded).count();
        svg.text(
            "dim",
            (label, top + 52.0),
            "end",
            &format!("folds {folds}×"),
        );
        svg.recall_bar(top + 22.0, &colour, strip.recall);
    }
}

/// An SVG document that is being written.
struct Svg(String);

impl Svg {
    fn push(&mut self, element: &str) {
        self.0.push_str(element);
        self.0.push('\n');
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(&format!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escape_xml(text);
        self.push(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Draws the share of the wanted references that was kept.
    fn recall_bar(&mut self, y: f64, colour: &str, (kept, wanted): (u64, u64)) {
        if wanted == 0 {
            return self.text("dim", (BAR_LEFT, y + 12.0), "start", "nothing was wanted");
        }
        let share = kept as f64 / wanted as f64;
        let place = format!("x=\"{BAR_LEFT}\" y=\"{y}\"");
        self.push(&format!(
            "<rect class=\"track\" {place} width=\"{BAR_WIDTH}\" height=\"14\" rx=\"3\"/>\
             <rect {place} width=\"{:.1}\" height=\"14\" rx=\"3\" fill=\"{colour}\"/>",
            share * BAR_WIDTH
        ));
        let label = format!("{:.0} % kept ({kept} of {wanted})", share * 100.0);
        self.text("dim", (BAR_LEFT, y + 30.0), "start", &label);
    }
}

/// Returns at most two points for each pixel: the largest request of each group, and whether one follows a fold.
fn thin_out(requests: &[(u64, bool)]) -> Vec<(usize, u64, bool)> {
    let step = requests.len().div_ceil(STRIP_WIDTH as usize * 2).max(1);
    let groups = requests.chunks(step).enumerate();
    groups
        .map(|(at, group)| {
            let tokens = group.iter().map(|(tokens, _)| *tokens).max();
            let folded = group.iter().any(|(_, folded)| *folded);
            (at * step, tokens.unwrap_or(0), folded)
        })
        .collect()
}

/// Escapes a text for XML, without the characters that XML does not allow.
fn escape_xml(text: &str) -> String {
    let is_allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().filter(is_allowed).collect();
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Writes 32000 as 32k.
fn short_number(tokens: u64) -> String {
    let (number, unit) = match tokens {
        0..1_000 => return tokens.to_string(),
        1_000..1_000_000 => (tokens as f64 / 1e3, "k"),
        _ => (tokens as f64 / 1e6, "m"),
    };
    let text = format!("{number:.1}");
    format!("{}{unit}", text.trim_end_matches(".0"))
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
        let strip = |name: &str, requests: Vec<(u64, bool)>, recall| PlotStrip {
            name: name.to_owned(),
            requests,
            recall,
        };
        let plot = Plot {
            title: "a <b> & \"c\"\u{1}.jsonl".to_owned(),
            window: 8_000,
            allow: 5_200,
            strips: vec![
                strip(
                    "infold",
                    vec![(100, false), (9_000, false), (900, true)],
                    (1, 4),
                ),
                strip("none", Vec::new(), (0, 0)),
                strip(
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
