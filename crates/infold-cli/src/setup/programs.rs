//! The programs of agents on the search path.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use infold_setup::Agent;

use crate::config::with_tilde;

/// Returns the programs of an agent, the one that is started first; links to one file count once.
pub fn find(agent: Agent) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for directory in std::env::split_paths(&path).filter(|dir| dir.is_absolute()) {
        for name in agent.programs() {
            let file = directory.join(name);
            let metadata = std::fs::metadata(&file);
            let runs =
                metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
            let target = std::fs::canonicalize(&file).unwrap_or(file.clone());
            if runs && !real.contains(&target) {
                real.push(target);
                found.push(file);
            }
        }
    }
    found
}

/// Says where an agent was found.
pub fn describe(agent: Agent) -> String {
    match find(agent).as_slice() {
        [] => "its configuration was found, its program was not".to_owned(),
        [one] => with_tilde(one.display().to_string()),
        [first, others @ ..] => format!(
            "{}; {} behind it on the path",
            with_tilde(first.display().to_string()),
            others
                .iter()
                .map(|path| with_tilde(path.display().to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}
