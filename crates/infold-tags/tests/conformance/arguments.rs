//! The arguments that `cargo test` and `cargo nextest` pass to a test binary.

/// The requested action.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// Run the only test.
    Run,
    /// Print its name.
    Name,
    /// Report that it was not requested.
    Nothing,
    /// Say nothing: the list of ignored tests is empty.
    Silence,
}

/// Reads the arguments. Options that change nothing here are passed over.
pub fn asked(arguments: impl Iterator<Item = String>) -> Asked {
    const NAME: &str = "conformance";
    const TAKE_A_VALUE: [&str; 7] = [
        "--format",
        "--test-threads",
        "--color",
        "--logfile",
        "--shuffle-seed",
        "--report-time",
        "-Z",
    ];
    let mut arguments = arguments.peekable();
    let (mut list, mut ignored, mut exact) = (false, false, false);
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => list = true,
            "--ignored" => ignored = true,
            "--exact" => exact = true,
            "--skip" => skipped.extend(arguments.next()),
            option if TAKE_A_VALUE.contains(&option) => drop(arguments.next()),
            option if option.starts_with('-') => {}
            _ => wanted.push(argument),
        }
    }
    let matches = |filter: &String| {
        if exact {
            filter == NAME
        } else {
            NAME.contains(filter.as_str())
        }
    };
    let chosen = (wanted.is_empty() || wanted.iter().any(matches)) && !skipped.iter().any(matches);
    match (list, chosen && !ignored) {
        (true, true) => Asked::Name,
        (true, false) => Asked::Silence,
        (false, true) => Asked::Run,
        (false, false) => Asked::Nothing,
    }
}
