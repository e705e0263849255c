//! A failing disk under the command: samples of the checks in `scripts/sweep-faults`, `power-cuts` and `fuzz-store`,
//! and proof that they detect a command that breaks its promises.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use infold_testkit::{
    CheckReport, Flaw, Fuzz, PowerCuts, Sweep, TrialFilter, cut_power, fuzz_store, sweep_faults,
};
use tempfile::TempDir;

fn infold() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_infold"))
}

/// If calls cannot be intercepted, nothing is checked.
fn tried(report: Result<CheckReport, String>) -> Option<CheckReport> {
    match report {
        Err(why) if cfg!(not(target_os = "linux")) => {
            println!("skipped: {why}");
            None
        }
        report => Some(report.expect("it can be tried")),
    }
}

fn is_fine(report: &CheckReport) {
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}\n{report}", findings.join("\n"));
}

#[test]
fn a_sample_of_faults_breaks_no_promise() {
    let sweep = Sweep {
        runs: 240,
        ..Sweep::default()
    };
    if let Some(report) = tried(sweep_faults(infold(), &sweep)) {
        assert!(report.total("faults") >= 240, "{report}");
        is_fine(&report);
    }
}

#[test]
fn what_is_killed_while_it_redacts_or_removes_is_done_or_not_done() {
    let sweep = Sweep {
        runs: 200,
        only: only(
            "redact::kill,redact::kill-half,redact-leaf::kill,redact-pattern::kill,redact-pattern::kill-half,delete::kill,delete::kill-half",
        ),
        ..Sweep::default()
    };
    if let Some(report) = tried(sweep_faults(infold(), &sweep)) {
        assert!(report.total("faults") >= 200, "{report}");
        is_fine(&report);
    }
}

#[test]
fn a_sample_of_power_cuts_loses_nothing() {
    let cuts = PowerCuts {
        states: 60,
        ..PowerCuts::default()
    };
    if let Some(report) = tried(cut_power(infold(), &cuts)) {
        assert_eq!(report.total("states"), 60, "{report}");
        is_fine(&report);
    }
}

#[test]
fn a_sample_of_damage_is_answered_and_repaired() {
    let fuzz = Fuzz {
        cases: 30,
        ..Fuzz::default()
    };
    if let Some(report) = tried(fuzz_store(infold(), &fuzz)) {
        assert_eq!(report.total("cases"), 30, "{report}");
        is_fine(&report);
    }
}

/// A command that breaks promises: a script around the real one.
struct Liar {
    dir: TempDir,
}

impl Liar {
    fn new(lies: &str) -> Liar {
        let dir = tempfile::tempdir().expect("a directory");
        let real = infold().display();
        let script =
            format!("#!/bin/sh\n{lies}\nexec {real} \"$@\"\n").replace("REAL", &real.to_string());
        let liar = Liar { dir };
        fs::write(liar.path(), script).expect("a file");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(liar.path(), mode).expect("it may be run");
        liar
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("infold")
    }
}

fn only(names: &str) -> TrialFilter {
    let Ok(only) = names.parse();
    only
}

/// Returns the kinds of flaws in the runs whose name begins with `run`.
fn kinds(report: &CheckReport, run: &str) -> Vec<Flaw> {
    let findings = report.findings.iter();
    let of_run = findings.filter(|finding| finding.run.starts_with(run));
    let mut kinds: Vec<Flaw> = of_run.map(|finding| finding.wrong).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[test]
fn a_command_that_lies_when_the_disk_fails_is_found_out() {
    // While a fault is injected: reports success without doing anything, reports failure after a change, drops the last
    // message, aborts.
    let liar = Liar::new(
        r#"
        if [ "$SHIM_MODE" = fault ]; then
            unset LD_PRELOAD
            echo 'read x' > "$SHIM_LOG"
            case "$*" in
            *'task push'*turn.jsonl) echo '{"count":2,"from":18,"to":19}'; exit 0;;
            *'--note gently'*) REAL "$@" > /dev/null; echo '{"error":"no room","hint":"nothing was changed"}' >&2; exit 3;;
            *'undo '*) for log in "$INFOLD_CONTEXTS"/running/*/messages.jsonl; do sed -i '$d' "$log"; done;;
            *'task list'*) kill -ABRT $$;;
            esac
        fi"#,
    );
    let sweep = Sweep {
        runs: 8,
        only: only("push,note,undo,list"),
        ..Sweep::default()
    };
    let Some(report) = tried(sweep_faults(&liar.path(), &sweep)) else {
        return;
    };
    assert_eq!(kinds(&report, "push"), [Flaw::Lost]);
    assert_eq!(kinds(&report, "note"), [Flaw::Untrue]);
    assert!(kinds(&report, "undo").contains(&Flaw::Lost), "{report}");
    assert!(kinds(&report, "list").contains(&Flaw::Crash), "{report}");
}

#[test]
fn a_command_that_does_not_force_what_it_acknowledges_onto_the_disk_is_found_out() {
    let liar = Liar::new(
        r#"for word; do
            shift
            [ "$word" = always ] && word=never
            set -- "$@" "$word"
        done"#,
    );
    let cuts = PowerCuts {
        states: 40,
        only: only("always"),
        ..PowerCuts::default()
    };
    if let Some(report) = tried(cut_power(&liar.path(), &cuts)) {
        assert!(kinds(&report, "").contains(&Flaw::Lost), "{report}");
    }
}

#[test]
fn a_repair_that_destroys_what_it_takes_out_is_found_out() {
    let liar = Liar::new(
        r#"case "$*" in
        *doctor*--repair*) REAL "$@"; code=$?; rm -f "$INFOLD_CONTEXTS"/*/*/torn-*; exit $code;;
        esac"#,
    );
    let fuzz = Fuzz {
        cases: 2000,
        only: only("messages.jsonl:garbage:imported"),
        ..Fuzz::default()
    };
    if let Some(report) = tried(fuzz_store(&liar.path(), &fuzz)) {
        assert!(kinds(&report, "").contains(&Flaw::Lost), "{report}");
    }
}
