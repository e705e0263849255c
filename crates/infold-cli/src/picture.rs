use anstyle::{AnsiColor, Style};
use infold::{FoldMap, Treatment};

use crate::out::{number, paint};

/// How many cells a picture has.
const WIDTH: usize = 64;

/// A conversation as a bar, and what its shades mean.
pub fn draw(picture: &FoldMap) -> Vec<String> {
    let mut bar = String::new();
    for fate in picture.cells(WIDTH) {
        bar += &paint(style(fate), shade(fate));
    }
    let meant = Treatment::ALL.into_iter().filter_map(|fate| {
        let tokens = picture.total(fate);
        (tokens > 0).then(|| {
            let shade = paint(style(fate), shade(fate));
            format!("{shade} {} {}", fate.name(), number(tokens))
        })
    });
    let meant: Vec<String> = meant.collect();
    vec![bar, meant.join("   ")]
}

fn shade(fate: Treatment) -> &'static str {
    match fate {
        Treatment::Kept => "█",
        Treatment::Masked => "▓",
        Treatment::Condensed => "▒",
        Treatment::Hidden => "░",
    }
}

fn style(fate: Treatment) -> Style {
    match fate {
        Treatment::Kept => AnsiColor::Green.on_default(),
        Treatment::Masked => AnsiColor::Yellow.on_default(),
        Treatment::Condensed => AnsiColor::Magenta.on_default(),
        Treatment::Hidden => AnsiColor::BrightBlack.on_default(),
    }
}
