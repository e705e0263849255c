//! Runs the Python tests of the package with the clients that `scripts/sdks` installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_package_does_in_python_what_the_command_does() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = built();
    let library = built.join("examples/liblibrary_for_tests.so");
    let command = built.join("infold");
    for (file, how) in [
        (
            &library,
            "cargo build -p infold-python --example library_for_tests",
        ),
        (&command, "cargo build -p infold-cli"),
    ] {
        assert!(file.is_file(), "{} is missing: {how}", file.display());
    }
    let place = tempfile::tempdir().unwrap();
    let package = place.path().join("infold");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(here.join("package/infold")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), package.join(entry.file_name())).unwrap();
        }
    }
    fs::copy(library, package.join("_infold.abi3.so")).unwrap();
    let output = Command::new(python(here))
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(here.join("tests"))
        .env("PYTHONPATH", place.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("INFOLD_COMMAND", command)
        .env_remove("INFOLD_CONTEXTS")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The interpreter of the virtual environment with the clients.
fn python(here: &Path) -> PathBuf {
    let sdks = std::env::var_os("INFOLD_SDKS").map_or(here.join("../target/sdks"), PathBuf::from);
    let python = sdks.join("bin/python");
    assert!(
        python.is_file(),
        "{} is missing: scripts/sdks installs it",
        python.display()
    );
    python
}

/// The directory that this test was built into.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().and_then(Path::parent);
    deps.expect("it lies in target/debug/deps").to_owned()
}
