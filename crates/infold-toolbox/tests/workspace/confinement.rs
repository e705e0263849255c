//! Nothing outside the workspace is read or changed, whatever paths, links and other processes do.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use infold_toolbox::CallStatus;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Fixture, snapshot};

/// Longer than the paths of links to it, whose own size a list may show.
const CANARY: &str = "canary that nobody may read, and that is so long that no path of a link to it has just as many bytes, wherever the directory for temporary files is, which is seldom as far down as this text is long, and never farther on any machine that runs these tests";

impl Fixture {
    /// Makes what must not be reached: files beside the workspace, named like those within.
    fn with_outside() -> Fixture {
        let fixture = Fixture::new();
        let outside = fixture.directory.path().join("outside");
        for name in ["a", "b", "c/a", "c/b"] {
            let path = outside.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, CANARY).unwrap();
        }
        std::fs::write(fixture.directory.path().join("a"), CANARY).unwrap();
        fixture
    }

    /// Returns everything but the workspace.
    fn surroundings(&self) -> Vec<(String, String)> {
        let root = self.root().display().to_string();
        let mut entries = snapshot(self.directory.path());
        entries.retain(|(path, _)| !path.starts_with(&root));
        entries
    }

    /// Calls every tool with a path, and checks that nothing of the outside is in a result.
    fn call_all(&self, path: &str) {
        for (tool, arguments) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "overwritten"})),
            (
                "edit",
                json!({"path": path, "old_string": "canary", "new_string": "overwritten"}),
            ),
            (
                "edit",
                json!({"path": path, "old_string": "o", "new_string": "O", "replace_all": true}),
            ),
            ("list", json!({"path": path, "depth": 9, "all": true})),
            (
                "search",
                json!({"path": path, "pattern": "canary", "all": true}),
            ),
        ] {
            let result = self.call(tool, arguments);
            assert!(
                !result.text.contains(CANARY),
                "{tool} {path}: {}",
                result.text
            );
            if tool == "list" && result.status == CallStatus::Success {
                let size = format!("({} bytes)", CANARY.len());
                assert!(!result.text.contains(&size), "{}", result.text);
            }
        }
    }
}

#[test]
fn paths_do_not_leave() {
    let fixture = Fixture::with_outside();
    fixture.put("inside/file", "x");
    let before = fixture.surroundings();
    let outside = fixture.directory.path().join("outside");
    let outside = outside.to_str().unwrap();
    symlink(outside, fixture.root().join("absolute")).unwrap();
    symlink("../outside", fixture.root().join("relative")).unwrap();
    symlink("../../outside/a", fixture.root().join("inside/file-link")).unwrap();
    symlink("inside/../../outside", fixture.root().join("winding")).unwrap();
    symlink("/proc/self/root", fixture.root().join("magic")).unwrap();
    symlink("relative", fixture.root().join("chain")).unwrap();
    let magic = format!("magic{outside}/a");
    for path in [
        "..",
        "../",
        "../a",
        "../outside/a",
        "inside/../../a",
        "inside/../../outside/new",
        "absolute",
        "absolute/a",
        "absolute/new",
        "relative/a",
        "relative/c/new",
        "inside/file-link",
        "winding/a",
        "chain/a",
        "chain/..",
        "relative/../a",
        &magic,
        "/etc/passwd",
        "/",
        outside,
        "../workspace/../a",
        "../workspace/inside/file",
    ] {
        fixture.call_all(path);
        let refused = fixture.fails("read", json!({"path": path}));
        assert!(
            refused.contains("outside the workspace"),
            "{path}: {refused}"
        );
    }
    // A path with the same prefix is not below the root.
    let alike = format!("{}-other", fixture.root().display());
    assert!(
        fixture
            .fails("read", json!({"path": alike}))
            .contains("outside")
    );
    assert_eq!(fixture.surroundings(), before);
}

/// A link or directory of a generated tree.
#[derive(Clone, Debug)]
enum Made {
    Directory(String),
    File(String),
    Link(String, String),
}

fn any_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just("outside"),
        Just("workspace")
    ]
}

/// A path of a few components, with `..` among them.
fn any_path() -> impl Strategy<Value = String> {
    let component = prop_oneof![6 => any_name(), 3 => Just(".."), 1 => Just(".")];
    prop::collection::vec(component, 1..6).prop_map(|components| components.join("/"))
}

fn any_tree() -> impl Strategy<Value = Vec<Made>> {
    let place = || prop::collection::vec(any_name(), 1..4).prop_map(|names| names.join("/"));
    let target = prop_oneof![
        5 => any_path(),
        1 => any_path().prop_map(|path| format!("ROOT/{path}")),
        1 => any_path().prop_map(|path| format!("ROOT/workspace/{path}")),
    ];
    let made = prop_oneof![
        2 => place().prop_map(Made::Directory),
        2 => place().prop_map(Made::File),
        3 => (place(), target).prop_map(|(place, target)| Made::Link(place, target)),
    ];
    prop::collection::vec(made, 1..12)
}

/// Makes a tree below the workspace, through its links as they are; what does not work is left out.
fn make(fixture: &Fixture, tree: &[Made]) {
    let root = fixture.root();
    // A path that leads through a link could make something outside.
    let is_inside = |path: &Path| {
        let parent = path.parent().unwrap_or(path);
        parent
            .canonicalize()
            .is_ok_and(|parent| parent.starts_with(&root))
    };
    for made in tree {
        match made {
            Made::Directory(path) => {
                let mut at = root.clone();
                for name in path.split('/') {
                    at.push(name);
                    if is_inside(&at) && !at.is_symlink() {
                        let _ = std::fs::create_dir(&at);
                    }
                }
            }
            Made::File(path) => {
                let path = root.join(path);
                if is_inside(&path) && !path.is_symlink() {
                    let _ = std::fs::write(path, "harmless o");
                }
            }
            Made::Link(path, target) => {
                let path = root.join(path);
                let base = fixture.directory.path().to_str().unwrap();
                if is_inside(&path) {
                    let _ = symlink(target.replace("ROOT", base), path);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever links there are and whatever path is given, nothing outside is read or changed.
    #[test]
    fn no_tree_and_no_path_lead_outside(
        tree in any_tree(),
        paths in prop::collection::vec(any_path(), 1..6),
    ) {
        let fixture = Fixture::with_outside();
        make(&fixture, &tree);
        let before = fixture.surroundings();
        for path in &paths {
            fixture.call_all(path);
        }
        prop_assert_eq!(fixture.surroundings(), before);
    }
}

/// While tools run, a thread swaps a directory of the workspace for a link to the outside, and a file for a link.
#[test]
fn swapping_directories_for_links_leads_nowhere() {
    let fixture = Fixture::with_outside();
    fixture.put("c/a", "harmless o");
    fixture.put("f", "harmless o");
    let before = fixture.surroundings();
    let outside: PathBuf = fixture.directory.path().join("outside/c");
    let (root, stop) = (fixture.root(), AtomicBool::new(false));
    symlink(&outside, root.join("link")).unwrap();
    symlink(outside.join("b"), root.join("file-link")).unwrap();
    let swaps = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let (mut swaps, link) = (0_u64, root.join("link"));
            while !stop.load(Ordering::Relaxed) {
                // Exchanges the two names at once: at every moment one is the directory, one the link.
                exchange(&root.join("c"), &link);
                exchange(&root.join("f"), &root.join("file-link"));
                swaps += 1;
            }
            swaps
        });
        // A failed assertion must not leave the thread running.
        let stop_guard = StopOnDrop(&stop);
        let until = Instant::now() + Duration::from_secs(3);
        let mut rounds = 0;
        while Instant::now() < until || rounds < 50 {
            for path in ["c/a", "f", "c/new", "c", "c/sub/new", "."] {
                fixture.call_all(path);
            }
            rounds += 1;
        }
        drop(stop_guard);
        swapping.join().unwrap()
    });
    assert!(swaps > 100, "{swaps}");
    let after = fixture.surroundings();
    assert_eq!(after, before);
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
fn exchange(left: &Path, right: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let _ = renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE);
}

#[cfg(not(target_os = "linux"))]
fn exchange(left: &Path, right: &Path) {
    let aside = right.with_extension("aside");
    let _ = std::fs::rename(left, &aside);
    let _ = std::fs::rename(right, left);
    let _ = std::fs::rename(&aside, right);
}

#[test]
fn protected_directories_are_neither_read_nor_changed_by_any_name() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = directory.path().join("workspace");
    let kept = root.join("sub/kept");
    std::fs::create_dir_all(kept.join("deep")).unwrap();
    std::fs::write(kept.join("deep/log"), "the record").unwrap();
    std::fs::write(root.join("sub/other"), "the record of others").unwrap();
    symlink("sub/kept", root.join("link")).unwrap();
    symlink("../sub/kept/deep", root.join("sub/deeper")).unwrap();
    let toolbox = infold_toolbox::Toolbox::new(infold_toolbox::ToolboxSettings {
        workspace: Some(root.clone()),
        protected: vec![kept.clone(), root.join("missing")],
        ..Default::default()
    });
    let (toolbox, runtime) = (toolbox.unwrap(), tokio::runtime::Runtime::new().unwrap());
    let call =
        |name: &str, arguments: Value| runtime.block_on(toolbox.call(name, &arguments.to_string()));
    for path in [
        "sub/kept/deep/log",
        "link/deep/log",
        "sub/deeper/log",
        "sub/../link/new",
    ] {
        for (name, arguments) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "forged"})),
            (
                "edit",
                json!({"path": path, "old_string": "the", "new_string": "no"}),
            ),
            ("search", json!({"pattern": "record", "path": path})),
        ] {
            let refused = call(name, arguments);
            assert_eq!(refused.status, CallStatus::Error, "{name} {path}");
            assert!(
                refused.text.contains("kept from file tools"),
                "{}",
                refused.text
            );
        }
    }
    let found = call("search", json!({"pattern": "record", "all": true})).text;
    assert!(
        found.contains("sub/other") && !found.contains("log"),
        "{found}"
    );
    let listed = call("list", json!({"depth": 9, "all": true})).text;
    assert!(
        listed.contains("sub/other") && !listed.contains("sub/kept/deep/"),
        "{listed}"
    );
    assert_eq!(
        std::fs::read_to_string(kept.join("deep/log")).unwrap(),
        "the record"
    );
    assert!(!kept.join("new").exists());
}
