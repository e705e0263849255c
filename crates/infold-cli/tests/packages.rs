//! The manifests of all packages have the same version, and scripts/package packs all files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn all_packages_have_the_version_of_the_workspace() {
    let npm = json("scripts/packages/npm/package.json");
    let platform = json("scripts/packages/npm/platform.json");
    assert_eq!(npm["version"], VERSION);
    assert_eq!(platform["version"], VERSION);
    let name = platform["name"].as_str().expect("a name");
    assert_eq!(npm["optionalDependencies"][name], VERSION);
    // The wheel has that of its crate, which has that of the workspace.
    assert!(read("python/pyproject.toml").contains("dynamic = [\"version\"]"));
    assert!(read("python/Cargo.toml").contains("version.workspace = true"));
}

#[test]
fn crates_that_are_published_depend_on_published_ones_of_this_version() {
    let workspace = read("Cargo.toml");
    let dependencies = workspace.lines().filter(|line| line.starts_with("infold-"));
    for line in dependencies {
        let (name, value) = line.split_once(" = ").expect("a dependency");
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let is_published = !manifest.contains("publish = false");
        // A dependency with a version would have to be published for the others' tests.
        let has_version = value.contains(&format!("version = \"{VERSION}\""));
        assert_eq!(is_published, has_version, "{name}");
    }
}
