use std::borrow::Cow;
use std::io::{BufWriter, Stdout, Write, stdout};

use anstyle::{AnsiColor, Style};
pub use infold::numbers::{count, number};
use infold_log::Role;
use infold_store::Repair;

use crate::failure::Failure;

/// Where results go: text for people, or JSON, one object a line.
pub struct Out {
    json: bool,
    width: usize,
    names: usize,
    plain: bool,
    to: BufWriter<Stdout>,
}

/// Quiet things: what is hidden, what is said beside.
pub const DIM: Style = Style::new().dimmed();
/// Folds and other things that infold made.
pub const MADE: Style = AnsiColor::Magenta.on_default();
/// What is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub const BAD: Style = AnsiColor::Red.on_default();

impl Out {
    /// Prints to standard output.
    pub fn new(json: bool) -> Out {
        let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        let choice = anstream::AutoStream::choice(&stdout());
        Out {
            json,
            width: columns.or(terminal).unwrap_or(100).clamp(40, 400),
            names: 9,
            plain: choice == anstream::ColorChoice::Never,
            // Not anstream's: what looks like colour to it may be part of a message.
            to: BufWriter::new(stdout()),
        }
    }

    /// Results are for scripts.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// How many characters a line may have.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How wide the column is that names messages, folds and events.
    pub fn names(&self) -> usize {
        self.names
    }

    /// Makes room for the name of any fold in a log that ends with message `last`.
    pub fn widen_names(&mut self, last: u64) {
        let both = 2 * last.to_string().len() + "-".len();
        self.names = self.names.max(both + 2);
    }

    /// Prints a line for people.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        let text = visible(text.as_ref().trim_end());
        match self.plain {
            true => writeln!(self.to, "{}", anstream::adapter::strip_str(&text))?,
            false => writeln!(self.to, "{text}")?,
        }
        Ok(())
    }

    /// Prints bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.to.write_all(bytes)?)
    }

    /// Prints an object for scripts.
    pub fn object(&mut self, object: &serde_json::Value) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{object}")?)
    }

    /// Prints an object that ends with a member whose bytes stay as they are.
    pub fn object_with(
        &mut self,
        object: &serde_json::Value,
        name: &str,
        raw: &[u8],
    ) -> Result<(), Failure> {
        let text = object.to_string();
        let head = text.strip_suffix('}').unwrap_or(&text);
        write!(self.to, "{head},\"{name}\":")?;
        self.to.write_all(raw)?;
        Ok(self.to.write_all(b"}\n")?)
    }

    /// Makes sure that all is out.
    pub fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// Says something to the person, not to a script.
pub fn say(json: bool, text: impl AsRef<str>) {
    if !json {
        aside(text);
    }
}

/// Says what was put in order on the way, to scripts too.
pub fn repaired(json: bool, repairs: &[Repair]) {
    for repair in repairs {
        match json {
            true => aside(serde_json::json!({"repaired": repair.to_string()}).to_string()),
            false => aside(paint(MADE, format!("repaired: {repair}"))),
        }
    }
}

/// Prints to standard error. When nobody listens there, that is no failure.
pub fn aside(text: impl AsRef<str>) {
    let _ = writeln!(anstream::stderr(), "{}", visible(text.as_ref()));
}

/// Escapes the characters that turn the direction of text: with them a line could look like another.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_bidi_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_bidi_control(c) {
            // As JSON writes it: what is shown of a message may be JSON.
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A text of several lines that other people gave, safe on a terminal.
pub fn printable(text: &str) -> String {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t';
    visible(text).replace(is_command, "\u{fffd}")
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Says what went wrong after the command had done what it was asked to.
pub fn warn(json: bool, done: Result<(), impl Into<Failure>>) {
    if let Err(failure) = done.map_err(Into::into) {
        failure.warn(json);
    }
}

/// A text in a style, padded to a width first so that columns stay in line.
pub fn paint(style: Style, text: impl AsRef<str>) -> String {
    format!("{style}{}{style:#}", text.as_ref())
}

/// The style of a role.
pub fn of_role(role: Role) -> Style {
    match role {
        Role::System => AnsiColor::Yellow.on_default(),
        Role::User => AnsiColor::Cyan.on_default(),
        Role::Assistant => AnsiColor::Green.on_default(),
        Role::Tool => AnsiColor::Blue.on_default(),
    }
}

/// A size in bytes, for people.
pub fn bytes(size: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = size as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{size} bytes")
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// How many terminal cells a text takes, as far as it matters here: wide characters take two.
pub fn cells(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd)
}

/// Pads a text with spaces on the right to so many cells, or cuts it.
pub fn fit(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let cell = if is_wide(c) { 2 } else { 1 };
        if used + cell > width {
            break;
        }
        out.push(c);
        used += cell;
    }
    if cells(&out) < cells(text) {
        while used > width.saturating_sub(1) {
            used -= out.pop().map_or(used, |c| if is_wide(c) { 2 } else { 1 });
        }
        out.push('…');
        used += 1;
    }
    out + &" ".repeat(width.saturating_sub(used))
}

/// Sets out rows in columns, two spaces apart; those named in `right` end in line.
///
/// The last column is cut to the width of the terminal.
pub fn table<const N: usize>(rows: &[[String; N]], right: &[usize], width: usize) -> Vec<String> {
    let widths: Vec<usize> = (0..N - 1)
        .map(|at| rows.iter().map(|row| cells(&row[at])).max().unwrap_or(0))
        .collect();
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (at, (text, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cells(text));
            line += &match right.contains(&at) {
                true => format!("{space}{text}  "),
                false => format!("{text}{space}  "),
            };
        }
        let room = width.saturating_sub(cells(&line)).max(10);
        line + fit(&row[N - 1], room).trim_end()
    });
    lines.collect()
}

/// A text that other people gave, safe in a line of a terminal.
pub fn one_line(text: &str) -> String {
    infold_wire::shorten(text, 1000)
}
