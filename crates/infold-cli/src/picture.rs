//! Draws which parts of a conversation are shown, as a bar.

use anstyle::AnsiColor;
use infold::{Fate, Picture};

use crate::output::{number, paint};

const BAR_WIDTH: usize = 64;

/// Draws a conversation as a bar, with a legend below.
pub fn draw(picture: &Picture) -> Vec<String> {
    let bar: String = picture.cells(BAR_WIDTH).into_iter().map(cell).collect();
    let legend = Fate::ALL
        .into_iter()
        .filter(|fate| picture.total(*fate) > 0);
    let legend = legend.map(|fate| {
        format!(
            "{} {} {}",
            cell(fate),
            fate.name(),
            number(picture.total(fate))
        )
    });
    vec![bar, legend.collect::<Vec<_>>().join("   ")]
}

fn cell(fate: Fate) -> String {
    let (color, shade) = match fate {
        Fate::Kept => (AnsiColor::Green, "█"),
        Fate::Masked => (AnsiColor::Yellow, "▓"),
        Fate::Condensed => (AnsiColor::Magenta, "▒"),
        Fate::Hidden => (AnsiColor::BrightBlack, "░"),
    };
    paint(color.on_default(), shade)
}
