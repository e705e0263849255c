//! Texts to count: some like those of agents, and some artificial.

use std::fmt::Write;
use std::path::Path;

/// Returns all texts with their names, the same at each run.
pub fn all() -> Vec<(&'static str, String)> {
    let words = Words::of_this_workspace();
    let mut dice = Dice(7);
    vec![
        ("markdown", markdown(&words, &mut dice)),
        ("rust", words.source.clone()),
        ("json", json(&words, &mut dice)),
        ("cjk", cjk(&mut dice)),
        ("cyrillic", cyrillic(&mut dice)),
        ("base64", base64(&mut dice)),
        ("one letter", "a".repeat(MEGABYTE)),
        ("spaces", " ".repeat(MEGABYTE)),
        ("newlines", "\n".repeat(MEGABYTE)),
        ("one sign", "=".repeat(MEGABYTE)),
        ("one ideogram", "中".repeat(MEGABYTE / 3)),
        ("ideograms without a pause", ideograms(&mut dice)),
        ("letters without a pause", letters(&mut dice)),
    ]
}

const MEGABYTE: usize = 1 << 20;

/// A generator of numbers; good enough for this.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }

    /// Small numbers far more often than large ones, as with words.
    fn rank(&mut self, limit: usize) -> usize {
        let share = self.below(1 << 20) as f64 / f64::from(1 << 20);
        ((limit as f64).powf(share) - 1.0) as usize
    }
}

/// The words of this workspace's sources, frequent ones first.
struct Words {
    source: String,
    list: Vec<String>,
}

impl Words {
    fn of_this_workspace() -> Words {
        let mut source = String::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        gather(&crates, &mut source);
        let mut seen = std::collections::HashMap::new();
        for word in source.split(|char: char| !char.is_alphabetic()) {
            *seen.entry(word).or_insert(0) += 1;
        }
        let mut list: Vec<(i32, &str)> = seen
            .into_iter()
            .map(|(word, times)| (-times, word))
            .collect();
        list.sort();
        let list = list.into_iter().map(|(_, word)| word.to_owned());
        let list = list.filter(|word| !word.is_empty()).collect();
        Words { source, list }
    }

    fn one(&self, dice: &mut Dice) -> &str {
        &self.list[dice.rank(self.list.len())]
    }
}

fn gather(directory: &Path, source: &mut String) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(&path, source);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            source.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

fn markdown(words: &Words, dice: &mut Dice) -> String {
    let mut text = String::new();
    while text.len() < 2 * MEGABYTE {
        match dice.below(12) {
            0 => text.push_str("\n\n## "),
            1 => text.push_str("\n- "),
            2 => write!(text, " `{}.{}()`", words.one(dice), words.one(dice)).expect("written"),
            3 => write!(text, " {}", dice.below(100_000)).expect("written"),
            4 => text.push_str(". "),
            5 => text.push_str(", "),
            _ => write!(text, " {}", words.one(dice)).expect("written"),
        }
    }
    text
}

fn json(words: &Words, dice: &mut Dice) -> String {
    let mut text = String::from("[");
    while text.len() < 2 * MEGABYTE {
        let (id, size) = (dice.below(1 << 30), dice.below(10_000));
        writeln!(
            text,
            "{{\"id\":\"{id:08x}\",\"{}\":\"{} {} {}\",\"size\":{size},\"path\":\"src/{}/{}.rs\",\"ok\":true}},",
            words.one(dice),
            words.one(dice),
            words.one(dice),
            words.one(dice),
            words.one(dice),
            words.one(dice),
        )
        .expect("written");
    }
    text
}

fn cjk(dice: &mut Dice) -> String {
    let mut text = String::new();
    while text.len() < 2 * MEGABYTE {
        for _ in 0..4 + dice.below(20) {
            text.push(ideogram(dice, 3000));
        }
        text.push(['，', '。', '、', '\n'][dice.below(4)]);
    }
    text
}

fn ideogram(dice: &mut Dice, kinds: usize) -> char {
    let number = dice.rank(kinds) * 7919 % 20_900;
    char::from_u32(0x4e00 + number as u32).unwrap_or('中')
}

fn ideograms(dice: &mut Dice) -> String {
    (0..MEGABYTE / 3).map(|_| ideogram(dice, 20_000)).collect()
}

fn cyrillic(dice: &mut Dice) -> String {
    let mut text = String::new();
    while text.len() < MEGABYTE {
        for _ in 0..2 + dice.below(8) {
            text.push(char::from_u32(0x430 + dice.rank(32) as u32).unwrap_or('а'));
        }
        text.push(' ');
    }
    text
}

fn base64(dice: &mut Dice) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..MEGABYTE)
        .map(|_| char::from(DIGITS[dice.below(64)]))
        .collect()
}

fn letters(dice: &mut Dice) -> String {
    (0..MEGABYTE)
        .map(|_| char::from(b'a' + dice.below(26) as u8))
        .collect()
}
