//! Completion scripts: clap's own, extended by the ids of tasks.

use clap::Command;
use clap_complete::Shell;

use crate::help;

/// The command that prints an id and a title per line.
const LIST_COMMAND: &str = "infold task list --ids 2>/dev/null";

/// Returns the script for a shell.
pub fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "infold", &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => bash(script),
        Shell::Zsh => zsh(&script),
        Shell::Fish => fish(script),
        // The other shells complete only commands and options.
        _ => script,
    }
}

fn bash(mut script: String) -> String {
    for path in commands_with_tasks() {
        let case = format!(
            "        infold__subcmd__{})\n            opts=\"",
            path.join("__subcmd__")
        );
        script = script.replace(&case, &format!("{case}$(_infold_tasks) "));
    }
    let tasks = format!(
        "_infold_tasks() {{\n    [[ ${{cur}} == -* ]] || {LIST_COMMAND} | cut -f1 | tr '\\n' ' '\n}}\n"
    );
    tasks + &script
}

fn zsh(script: &str) -> String {
    let lines = script.lines().map(|line| {
        let is_task = [":task -- ", ":tasks -- "].iter().any(|start| {
            let from = line.trim_start_matches(['\'', '*', ':']);
            from.starts_with(&start[1..])
        });
        if is_task {
            line.replace(":_default'", ":_infold_tasks'")
        } else {
            line.to_owned()
        }
    });
    let tasks = format!(
        "_infold_tasks() {{\n    local -a tasks\n    tasks=(\"${{(@f)$({LIST_COMMAND} | sed 's/:/\\\\:/g; s/\\t/:/')}}\")\n    _describe -t tasks 'task' tasks\n}}"
    );
    let mut script = String::new();
    for line in lines {
        // The line with `#compdef` must stay the first.
        script.push_str(&line);
        script.push('\n');
        if line.starts_with("#compdef") {
            script.push_str(&format!("\n{tasks}\n"));
        }
    }
    script
}

fn fish(mut script: String) -> String {
    for path in commands_with_tasks() {
        let seen = match path.as_slice() {
            [command] => format!("__fish_infold_using_subcommand {command}"),
            [command, inner, ..] => format!(
                "__fish_infold_using_subcommand {command}; and __fish_seen_subcommand_from {inner}"
            ),
            [] => continue,
        };
        script.push_str(&format!(
            "complete -c infold -n \"{seen}\" -f -k -a \"({LIST_COMMAND})\"\n"
        ));
    }
    script
}

/// Returns the commands that take a task, each as its path of names.
fn commands_with_tasks() -> Vec<Vec<String>> {
    fn collect(command: &Command, path: &[String], found: &mut Vec<Vec<String>>) {
        let mut places = command.get_positionals();
        if places.any(|place| matches!(place.get_id().as_str(), "task" | "tasks")) {
            found.push(path.to_vec());
        }
        for inner in command.get_subcommands() {
            let path = [path, &[inner.get_name().to_owned()]].concat();
            collect(inner, &path, found);
        }
    }
    let mut found = Vec::new();
    collect(&help::command(), &[], &mut found);
    found
}
