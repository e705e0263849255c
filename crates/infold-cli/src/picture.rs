use anstyle::{AnsiColor, Style};
use infold::{Fate, Picture};

use crate::out::{number, paint};

/// How many cells a picture has.
const WIDTH: usize = 64;

/// A conversation as a bar, and what its shades mean.
pub fn draw(picture: &Picture) -> Vec<String> {
    let mut bar = String::new();
    for fate in picture.cells(WIDTH) {
        bar += &paint(style(fate), shade(fate));
    }
    let meant = Fate::ALL.into_iter().filter_map(|fate| {
        let tokens = picture.total(fate);
        (tokens > 0).then(|| {
            let shade = paint(style(fate), shade(fate));
            format!("{shade} {} {}", fate.name(), number(tokens))
        })
    });
    let meant: Vec<String> = meant.collect();
    vec![bar, meant.join("   ")]
}

fn shade(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "█",
        Fate::Masked => "▓",
        Fate::Condensed => "▒",
        Fate::Hidden => "░",
    }
}

fn style(fate: Fate) -> Style {
    match fate {
        Fate::Kept => AnsiColor::Green.on_default(),
        Fate::Masked => AnsiColor::Yellow.on_default(),
        Fate::Condensed => AnsiColor::Magenta.on_default(),
        Fate::Hidden => AnsiColor::BrightBlack.on_default(),
    }
}
