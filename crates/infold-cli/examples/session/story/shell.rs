//! The commands whose output follows from the files.

use std::fmt::Write as _;

use super::disk::Disk;
use super::script::Command;
use super::transcript::Answer;

/// Runs a command; an unknown one has the outcome in the script.
pub fn run(disk: &mut Disk, command: &Command) -> Answer {
    let words: Vec<&str> = command.line.split_whitespace().collect();
    let output = match words.as_slice() {
        ["python", "-m", "pytest", options @ ..] => return pytest(disk, options, command),
        ["git", "ls-files"] => disk.files().keys().cloned().collect(),
        ["git", "status", "--short"] => status(disk),
        ["git", "log", ..] => disk.log(),
        ["git", "add", "-A", "&&", "git", "commit", ..] => commit(disk, &command.line),
        ["git", "checkout", path] => {
            disk.restore(path);
            vec!["Updated 1 path from the index".to_owned()]
        }
        ["git", "rm", path] => {
            disk.remove(path);
            vec![format!("rm '{path}'")]
        }
        ["sed", "-i", ..] => {
            substitute(disk, &command.line);
            Vec::new()
        }
        ["wc", "-l", paths @ ..] => paths.iter().map(|path| counted(disk, path)).collect(),
        _ => command.output.clone(),
    };
    Answer::ended(command.status, output.join("\n"))
}

fn status(disk: &Disk) -> Vec<String> {
    let changes = disk.changes().into_iter();
    changes
        .map(|(letter, path)| match letter {
            'A' => format!("?? {path}"),
            'D' => format!("D  {path}"),
            _ => format!(" {letter} {path}"),
        })
        .collect()
}

fn commit(disk: &mut Disk, line: &str) -> Vec<String> {
    let title = line.split('"').nth(1).expect("a commit has a message");
    let name = name_of(disk);
    let mut said = vec![
        format!("[main {name}] {title}"),
        format!(" {} files changed", disk.changes().len()),
    ];
    for (letter, path) in disk.changes() {
        match letter {
            'A' => said.push(format!(" create mode 100644 {path}")),
            'D' => said.push(format!(" delete mode 100644 {path}")),
            _ => {}
        }
    }
    disk.commit(format!("{name} {title}"));
    said
}

/// A commit's name: the FNV hash of all files.
fn name_of(disk: &Disk) -> String {
    let texts = disk.files().iter().flat_map(|(path, text)| [path, text]);
    let bytes = texts.flat_map(|text| text.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:07x}", hash >> 36)
}

/// `sed -i 's/old/new/g' PATH…`
fn substitute(disk: &mut Disk, line: &str) {
    let parts: Vec<&str> = line.splitn(3, '\'').collect();
    let [_, change, paths] = parts[..] else {
        panic!("`{line}` has no quotes");
    };
    let mark = change.chars().nth(1).unwrap_or('/');
    let parts: Vec<&str> = change.split(mark).collect();
    let ["s", old, new, "g"] = parts[..] else {
        panic!("`{change}` is no plain replacement");
    };
    for path in paths.split_whitespace() {
        disk.rename(path, old, new);
    }
}

fn counted(disk: &Disk, path: &str) -> String {
    format!("{:>4} {path}", disk.text(path).lines().count())
}

/// A test: its file, its name, and the error it fails with.
struct Test<'a> {
    path: &'a str,
    name: &'a str,
    error: Option<&'a str>,
}

/// Prints a report on the tests in the files, like pytest.
fn pytest(disk: &Disk, options: &[&str], command: &Command) -> Answer {
    let tests = collect(disk, options, command);
    let failed: Vec<&Test> = tests.iter().filter(|test| test.error.is_some()).collect();
    assert!(
        failed.len() == command.failing.len(),
        "`{}` misses a test",
        command.line
    );
    let mut out = String::new();
    if options.contains(&"-v") {
        verbose(&mut out, &tests);
    } else {
        dots(&mut out, &tests);
    }
    if !failed.is_empty() {
        failures(&mut out, disk, &failed);
    }
    let seconds = format!("{:.2}s", 0.08 + 0.011 * tests.len() as f64);
    let passed = tests.len() - failed.len();
    let _ = match failed.len() {
        0 => write!(out, "{passed} passed in {seconds}"),
        bad => write!(out, "{bad} failed, {passed} passed in {seconds}"),
    };
    Answer::ended(u8::from(!failed.is_empty()), out)
}

fn collect<'a>(disk: &'a Disk, options: &[&str], command: &'a Command) -> Vec<Test<'a>> {
    let asked: Vec<&&str> = options
        .iter()
        .filter(|option| !option.starts_with('-'))
        .collect();
    let mut tests = Vec::new();
    for (path, text) in disk.files() {
        if !path.starts_with("tests/test_")
            || !(asked.is_empty() || asked.contains(&&path.as_str()))
        {
            continue;
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("def ")) {
            let name = line.split('(').next().unwrap_or_default();
            if name.starts_with("test_") {
                let error = command.failing.iter().find(|(failing, _)| failing == name);
                let error = error.map(|(_, error)| error.as_str());
                tests.push(Test { path, name, error });
            }
        }
    }
    tests
}

fn verbose(out: &mut String, tests: &[Test]) {
    let _ = writeln!(out, "collected {} items\n", tests.len());
    for (n, test) in tests.iter().enumerate() {
        let word = if test.error.is_some() {
            "FAILED"
        } else {
            "PASSED"
        };
        let name = format!("{}::{}", test.path, test.name);
        let share = (n + 1) * 100 / tests.len();
        let _ = writeln!(out, "{name:<70} {word} [{share:>3}%]");
    }
    out.push('\n');
}

fn dots(out: &mut String, tests: &[Test]) {
    let marks = tests
        .iter()
        .map(|test| if test.error.is_some() { 'F' } else { '.' });
    let marks: String = marks.collect();
    let _ = writeln!(out, "{marks:<72} [100%]");
}

fn failures(out: &mut String, disk: &Disk, failed: &[&Test]) {
    let _ = writeln!(out, "{:=^80}", " FAILURES ");
    for test in failed {
        let _ = writeln!(out, "{:_^80}\n", format!(" {} ", test.name));
        for line in source(disk.text(test.path), test.name) {
            let _ = writeln!(out, "    {line}");
        }
        let _ = writeln!(out, "E       {}\n", test.error.unwrap_or_default());
    }
    let _ = writeln!(out, "{:=^80}", " short test summary info ");
    for test in failed {
        let error = test.error.unwrap_or_default();
        let _ = writeln!(out, "FAILED {}::{} - {error}", test.path, test.name);
    }
}

/// The lines of a function.
fn source<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let head = format!("def {name}(");
    let mut lines = text
        .lines()
        .skip_while(move |line| !line.starts_with(&head));
    let first = lines.next().into_iter();
    first.chain(lines.take_while(|line| line.starts_with(' ')))
}
