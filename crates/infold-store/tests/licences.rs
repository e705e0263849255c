//! Every dependency has a licence that `deny.toml` allows.
//!
//! `cargo deny` says the same and more, where it is installed; this needs cargo alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[test]
fn every_dependency_may_be_used() {
    let allowed = allowed();
    let refused: Vec<String> = packages()
        .into_iter()
        .filter(|(_, licence)| !Expression::new(licence).met_by(&allowed))
        .map(|(name, licence)| format!("{name}: {licence}"))
        .collect();
    assert!(
        refused.is_empty(),
        "not allowed by deny.toml:\n{}",
        refused.join("\n")
    );
}

#[test]
fn expressions_mean_what_they_say() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]
        .map(str::to_owned)
        .into();
    for (licence, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("MIT AND Zlib", true),
        ("(GPL-3.0 OR MIT) AND Zlib", true),
        ("GPL-3.0 AND (MIT OR Zlib)", false),
        ("MIT OR GPL-3.0 AND BSL-1.0", true),
        ("Apache-2.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-3.0 OR (MIT AND Apache-2.0 WITH LLVM-exception)", true),
        ("none", false),
        ("", false),
        ("MIT OR", false),
        ("(MIT", false),
        ("MIT Zlib", false),
    ] {
        assert_eq!(Expression::new(licence).met_by(&allowed), met, "{licence}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The list `allow` in the section `[licenses]`, one quoted name a line.
fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let allowed: BTreeSet<String> = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[licenses]")
        .skip_while(|line| *line != "allow = [")
        .skip(1)
        .take_while(|line| *line != "]")
        .filter_map(|line| Some(line.strip_prefix('"')?.split_once('"')?.0.to_owned()))
        .collect();
    assert!(allowed.contains("MIT"), "deny.toml lists what is allowed");
    allowed
}

/// Returns name and licence of all packages that are built or tested here.
///
/// Packages for other systems only may not have been fetched, and are left to `cargo deny`.
fn packages() -> Vec<(String, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "host-tuple", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| (text(&package["name"]), text(&package["license"])))
        .collect()
}

/// A licence expression, read from left to right.
struct Expression {
    /// The words that are left, last first.
    words: Vec<String>,
}

impl Expression {
    fn new(text: &str) -> Expression {
        // Old packages write `MIT/Apache-2.0` for a choice.
        let spaced = text
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ");
        Expression {
            words: spaced.split_whitespace().rev().map(str::to_owned).collect(),
        }
    }

    /// Whether it can be met with what is allowed; one that cannot be read is not.
    fn met_by(mut self, allowed: &BTreeSet<String>) -> bool {
        self.choice(allowed) == Some(true) && self.words.is_empty()
    }

    // Each side is read even if the other decides, hence no `any` and `all`.
    fn choice(&mut self, allowed: &BTreeSet<String>) -> Option<bool> {
        let mut met = self.all(allowed)?;
        while self.take("OR") {
            met |= self.all(allowed)?;
        }
        Some(met)
    }

    fn all(&mut self, allowed: &BTreeSet<String>) -> Option<bool> {
        let mut met = self.one(allowed)?;
        while self.take("AND") {
            met &= self.one(allowed)?;
        }
        Some(met)
    }

    fn one(&mut self, allowed: &BTreeSet<String>) -> Option<bool> {
        if self.take("(") {
            let met = self.choice(allowed)?;
            return self.take(")").then_some(met);
        }
        let mut name = self.words.pop()?;
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.words.pop()?);
        }
        Some(allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| next == word).is_some()
    }
}
