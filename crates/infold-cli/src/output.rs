//! Printing: results on standard output, everything else on standard error, tables and styles.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufWriter, IsTerminal as _, Stdout, Write, stdout};

use anstyle::{AnsiColor, Style};
pub use infold::numbers::{count, number};
use infold_log::Role;
use infold_store::Repair;
use serde_json::Value;

use crate::error::{CliError, CliResult};

/// Standard output: text for people, or JSON with one object per line.
pub struct Output {
    json: bool,
    width: usize,
    name_width: usize,
    plain: bool,
    to: BufWriter<Stdout>,
}

/// Hidden and secondary information.
pub const DIM: Style = Style::new().dimmed();
/// Folds and other things that infold itself added.
pub const FOLD: Style = AnsiColor::Magenta.on_default();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Problems.
pub const BAD: Style = AnsiColor::Red.on_default();

impl Output {
    /// Opens standard output.
    pub fn new(json: bool) -> Output {
        let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let columns = std::env::var("COLUMNS").ok();
        let columns = columns.and_then(|columns| columns.parse().ok());
        let choice = anstream::AutoStream::choice(&stdout());
        Output {
            json,
            width: columns.or(terminal).unwrap_or(100).clamp(40, 400),
            name_width: 9,
            plain: choice == anstream::ColorChoice::Never,
            // Not an anstream: it would strip escape sequences that are part of a message.
            to: BufWriter::new(stdout()),
        }
    }

    /// Returns whether results are printed as JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether text is printed in colour.
    pub fn is_colored(&self) -> bool {
        !self.plain
    }

    /// Returns standard output, for bytes that other code writes.
    pub fn writer(&mut self) -> &mut dyn Write {
        &mut self.to
    }

    /// Returns the width of a line in cells.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the width of the column with the names of messages, folds and events.
    pub fn name_width(&self) -> usize {
        self.name_width
    }

    /// Widens the name column for any fold in a log that ends with message `last`.
    pub fn widen_names(&mut self, last: u64) {
        let both = 2 * last.to_string().len() + "-".len();
        self.name_width = self.name_width.max(both + 2);
    }

    /// Prints a line of text.
    pub fn line(&mut self, text: impl AsRef<str>) -> CliResult {
        let text = escape_bidi(text.as_ref().trim_end());
        if self.plain {
            writeln!(self.to, "{}", anstream::adapter::strip_str(&text))?;
        } else {
            writeln!(self.to, "{text}")?;
        }
        Ok(())
    }

    /// Prints bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) -> CliResult {
        Ok(self.to.write_all(bytes)?)
    }

    /// Prints a JSON object.
    pub fn object(&mut self, object: &Value) -> CliResult {
        Ok(writeln!(self.to, "{object}")?)
    }

    /// Prints a result: the object if JSON is wanted, else the text.
    pub fn result(&mut self, object: &Value, text: impl AsRef<str>) -> CliResult {
        if self.json {
            self.object(object)
        } else {
            self.line(text)
        }
    }

    /// Prints a JSON object whose last member has the given bytes.
    pub fn object_with(&mut self, object: &Value, name: &str, raw: &[u8]) -> CliResult {
        let text = object.to_string();
        let head = text.strip_suffix('}').unwrap_or(&text);
        write!(self.to, "{head},\"{name}\":")?;
        self.to.write_all(raw)?;
        Ok(self.to.write_all(b"}\n")?)
    }

    /// Prints rows in columns below a dimmed heading; the columns in `right` are right-aligned.
    pub fn table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
        right: &[usize],
    ) -> CliResult {
        let mut all = vec![head.map(str::to_owned)];
        all.extend(rows);
        let mut lines = format_table(&all, right, self.width).into_iter();
        self.line(paint(DIM, lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| self.line(line))
    }

    /// Flushes standard output.
    pub fn finish(&mut self) -> CliResult {
        Ok(self.to.flush()?)
    }
}

/// Prints text on standard error, unless JSON is wanted.
pub fn say(json: bool, text: impl AsRef<str>) {
    if !json {
        print_stderr(text);
    }
}

/// Prints dimmed text on standard error, unless JSON is wanted.
pub fn note(json: bool, text: impl AsRef<str>) {
    say(json, paint(DIM, text));
}

/// Reports repairs on standard error, as JSON too.
pub fn report_repairs(json: bool, repairs: &[Repair]) {
    for repair in repairs {
        print_stderr(if json {
            serde_json::json!({"repaired": repair.to_string()}).to_string()
        } else {
            paint(FOLD, format!("repaired: {repair}"))
        });
    }
}

/// Prints to standard error, ignoring a closed pipe.
pub fn print_stderr(text: impl AsRef<str>) {
    let _ = writeln!(anstream::stderr(), "{}", escape_bidi(text.as_ref()));
}

/// Asks for confirmation on the terminal; fails with `refusal` if there is none.
pub fn confirm(details: &[String], question: &str, refusal: CliError) -> CliResult<bool> {
    if !io::stdin().is_terminal() {
        return Err(refusal);
    }
    for line in details {
        eprintln!("  {line}");
    }
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Escapes the characters that change the direction of text, which could disguise a line.
pub fn escape_bidi(text: &str) -> Cow<'_, str> {
    if !text.contains(is_bidi_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bidi_control(c) {
            // The JSON form, because the text may be JSON.
            out += &format!("\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Replaces the control characters in foreign text of several lines.
pub fn printable(text: &str) -> String {
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    escape_bidi(text).replace(is_control, "\u{fffd}")
}

/// Makes foreign text printable in one line.
pub fn one_line(text: &str) -> String {
    infold_wire::shorten(text, 1000)
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints an error that came after the command had succeeded as a warning.
pub fn warn(json: bool, done: Result<(), impl Into<CliError>>) {
    if let Err(error) = done.map_err(Into::into) {
        error.warn(json);
    }
}

/// Wraps text in a style. Pad it first: escape sequences count as characters.
pub fn paint(style: Style, text: impl AsRef<str>) -> String {
    format!("{style}{}{style:#}", text.as_ref())
}

/// Returns the style of a role.
pub fn role_style(role: Role) -> Style {
    match role {
        Role::System => AnsiColor::Yellow.on_default(),
        Role::User => AnsiColor::Cyan.on_default(),
        Role::Assistant => AnsiColor::Green.on_default(),
        Role::Tool => AnsiColor::Blue.on_default(),
    }
}

/// Formats a size in bytes.
pub fn bytes(size: u64) -> String {
    let mut value = size as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let decimals = usize::from(unit != "bytes");
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Returns how many terminal cells a text takes: wide characters take two.
pub fn cells(text: &str) -> usize {
    text.chars().map(cell_width).sum()
}

fn cell_width(c: char) -> usize {
    let is_wide = matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3
        | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd);
    if is_wide { 2 } else { 1 }
}

/// Pads or cuts a text to a number of cells.
pub fn fit(text: &str, width: usize) -> String {
    let needed = cells(text);
    if needed <= width {
        return text.to_owned() + &" ".repeat(width - needed);
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + cell_width(c) >= width {
            break;
        }
        out.push(c);
        used += cell_width(c);
    }
    out.push('…');
    out + &" ".repeat(width.saturating_sub(used + 1))
}

/// Formats rows in columns, two spaces apart; the columns in `right` are right-aligned.
///
/// The last column is cut to the width of the terminal.
pub fn format_table<const N: usize>(
    rows: &[[String; N]],
    right: &[usize],
    width: usize,
) -> Vec<String> {
    let widths: Vec<usize> = (0..N - 1)
        .map(|at| rows.iter().map(|row| cells(&row[at])).max().unwrap_or(0))
        .collect();
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (at, (text, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cells(text));
            line += &if right.contains(&at) {
                format!("{space}{text}  ")
            } else {
                format!("{text}{space}  ")
            };
        }
        let room = width.saturating_sub(cells(&line)).max(10);
        line + fit(&row[N - 1], room).trim_end()
    });
    lines.collect()
}
