//! Draws which parts of a conversation are shown, as a bar.

use anstyle::AnsiColor;
use infold::{FoldMap, Treatment};

use crate::output::{number, paint};

const BAR_WIDTH: usize = 64;

/// Draws a conversation as a bar, with a legend below.
pub fn draw(picture: &FoldMap) -> Vec<String> {
    let bar: String = picture.cells(BAR_WIDTH).into_iter().map(cell).collect();
    let legend = Treatment::ALL
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

fn cell(fate: Treatment) -> String {
    let (color, shade) = match fate {
        Treatment::Kept => (AnsiColor::Green, "█"),
        Treatment::Masked => (AnsiColor::Yellow, "▓"),
        Treatment::Condensed => (AnsiColor::Magenta, "▒"),
        Treatment::Hidden => (AnsiColor::BrightBlack, "░"),
    };
    paint(color.on_default(), shade)
}
