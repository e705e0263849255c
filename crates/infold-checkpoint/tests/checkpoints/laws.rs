//! Properties of checkpoints for every workspace and every sequence of edits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use infold_checkpoint::{Restored, Shadow, SnapshotRef};

use crate::edits::{Edits, LIMIT};
use crate::tree::{Node, Tree, difference, path};
use crate::world::{OTHER_TASK, Random, TASK, World, git_program, repetitions};

/// The files at the time of a snapshot, and those that it holds.
struct Taken {
    at: SnapshotRef,
    tree: Tree,
    held: BTreeSet<PathBuf>,
}

#[test]
fn restoring_gives_the_tree_as_it_was_and_touches_nothing_that_no_snapshot_holds() {
    let sequences = repetitions("INFOLD_CHECKPOINT_SEQUENCES", 24);
    let first = repetitions("INFOLD_CHECKPOINT_SEED", 1);
    for seed in first..first + sequences {
        sequence(seed);
    }
}

fn sequence(seed: u64) {
    let world = World::with_limit(LIMIT);
    let mut random = Random::new(seed);
    let with_rules = random.below(3) != 0;
    let mut edits = Edits {
        world: &world,
        random,
        with_rules,
    };
    let mut shadow = world.open();
    let mut taken: Vec<Taken> = Vec::new();
    for round in 0..6 {
        for _ in 0..=edits.random.below(9) {
            edits.edit();
        }
        let task = *edits.random.one_of(&[TASK, TASK, OTHER_TASK]);
        let step = Step {
            seed,
            round,
            world: &world,
            with_rules,
        };
        if round < 3 || edits.random.below(3) == 0 {
            let tree = world.tree();
            let snapshot = shadow.snapshot(task, 0).unwrap();
            step.unchanged(&tree, "a snapshot");
            let held = world.held(snapshot.at);
            step.check_held(&tree, &held);
            taken.push(Taken {
                at: snapshot.at,
                tree,
                held,
            });
        }
        if edits.random.below(4) == 0 {
            drop(shadow);
            shadow = world.open();
            assert_eq!(shadow.warning(), None);
        }
        if round >= 2 {
            let target = edits.random.below(taken.len());
            let before = step.restore(&mut shadow, &taken[target]);
            if edits.random.below(2) == 0 {
                // And back.
                step.restore(&mut shadow, &before);
            }
            taken.push(before);
        }
    }
}

struct Step<'a> {
    seed: u64,
    round: u64,
    world: &'a World,
    with_rules: bool,
}

impl Step<'_> {
    fn fail(&self, what: &str) -> ! {
        panic!(
            "INFOLD_CHECKPOINT_SEED={} INFOLD_CHECKPOINT_SEQUENCES=1, round {}: {what}",
            self.seed, self.round
        );
    }

    fn unchanged(&self, before: &Tree, by: &str) {
        let now = self.world.tree();
        if now != *before {
            self.fail(&format!(
                "{by} changed the workspace:\n{}",
                difference(before, &now)
            ));
        }
    }

    /// Compares what a snapshot holds with what git finds in the workspace.
    fn check_held(&self, tree: &Tree, held: &BTreeSet<PathBuf>) {
        let can_be_held = |path: &Path, node: &Node| {
            let is_git_link = matches!(node, Node::Link(_))
                && path
                    .file_name()
                    .is_some_and(|name| name.eq_ignore_ascii_case(".gitmodules"));
            !is_named_git(path)
                && !is_git_link
                && match node {
                    Node::File { contents, .. } => contents.len() as u64 <= LIMIT,
                    Node::Link(_) => true,
                    _ => false,
                }
        };
        let candidates: BTreeSet<_> = tree
            .iter()
            .filter(|(path, node)| can_be_held(path, node))
            .map(|(path, _)| path.clone())
            .collect();
        let nested = tree.keys().any(|path| {
            path.file_name().is_some_and(|name| name == ".git") && path.components().count() > 1
        });
        let expected: BTreeSet<_> = if !self.with_rules {
            candidates
        } else if self.world.workspace.join(".git/HEAD").exists() && !nested {
            let listed = self
                .world
                .user_git(&["ls-files", "-co", "-z", "--exclude-standard"]);
            let listed = listed.split(|byte| *byte == 0).map(path);
            listed.filter(|path| candidates.contains(path)).collect()
        } else {
            return;
        };
        if *held != expected {
            let only_held: Vec<_> = held.difference(&expected).collect();
            let only_expected: Vec<_> = expected.difference(held).collect();
            self.fail(&format!(
                "held too much {only_held:?}, too little {only_expected:?}"
            ));
        }
    }

    /// Restores a snapshot, checks what became of everything, and returns what was there before.
    fn restore(&self, shadow: &mut Shadow, to: &Taken) -> Taken {
        let before = self.world.tree();
        let (from, restored) = shadow
            .restore("id", TASK, 0, to.at)
            .unwrap_or_else(|error| {
                self.fail(&format!("restoring {}: {error}", to.at.number));
            });
        let now = self.world.tree();
        let from = Taken {
            at: from.at,
            held: self.world.held(from.at),
            tree: before,
        };
        self.check_target(to, &restored, &now);
        self.check_untouched(&from, &restored, &now);
        self.check_rest(to, &from, &restored, &now);
        if !restored.saved.is_empty() {
            self.fail(&format!("nothing changed meanwhile: {restored:?}"));
        }
        from
    }

    /// Asserts that every path of the snapshot is restored unchanged.
    fn check_target(&self, to: &Taken, restored: &Restored, now: &Tree) {
        for path in &to.held {
            if restored.not_restored.contains(path) {
                continue;
            }
            if now.get(path) != to.tree.get(path) {
                let found = (now.get(path), to.tree.get(path));
                self.fail(&format!(
                    "{path:?} is not as it was: {found:?}\n{restored:?}"
                ));
            }
        }
        if !restored.not_restored.is_empty() && restored.kept.is_empty() {
            self.fail(&format!("nothing stood in the way: {restored:?}"));
        }
        if !self.with_rules && restored.not_restored.is_empty() {
            for (path, node) in to.tree.iter().filter(|(_, node)| node.is_directory()) {
                if !is_named_git(path) && now.get(path) != Some(node) {
                    self.fail(&format!(
                        "directory {path:?} is not as it was: {:?}, {node:?}\n{restored:?}",
                        now.get(path)
                    ));
                }
            }
        }
    }

    /// Asserts that paths that no snapshot holds are unchanged.
    fn check_untouched(&self, from: &Taken, restored: &Restored, now: &Tree) {
        for (path, node) in &from.tree {
            if node.is_directory() || from.held.contains(path) {
                continue;
            }
            if now.get(path) != Some(node) {
                self.fail(&format!(
                    "{path:?} was in no snapshot: {node:?}, now {:?}\n{restored:?}",
                    now.get(path)
                ));
            }
        }
    }

    /// Asserts that other paths exist only if they did before, and have a reason to be kept.
    fn check_rest(&self, to: &Taken, from: &Taken, restored: &Restored, now: &Tree) {
        let mut doubtful = BTreeMap::new();
        for (path, node) in now {
            if node.is_directory() || to.held.contains(path) {
                continue;
            }
            if from.tree.get(path) != Some(node) {
                self.fail(&format!(
                    "{path:?} comes from nowhere: {node:?}\n{restored:?}"
                ));
            }
            let was_there = to.tree.contains_key(path)
                || path.ancestors().any(|above| {
                    to.tree.get(above).is_some_and(|node| !node.is_directory())
                        && !to.held.contains(above)
                });
            if from.held.contains(path) && !was_there {
                doubtful.insert(path.clone(), node);
            }
        }
        if doubtful.is_empty() {
            return;
        }
        if !self.with_rules {
            self.fail(&format!(
                "should have been removed: {doubtful:?}\n{restored:?}"
            ));
        }
        let mut missing = restored.not_restored.iter();
        let has_all_rules = !missing.any(|path| path.ends_with(".gitignore"));
        if !self.world.workspace.join(".git/HEAD").exists() || !has_all_rules {
            // Git does not know which rules count, or those that count are not there.
            return;
        }
        // A directory that was ignored then is spared with all that is in it, now and then.
        let spared = |path: &Path| {
            path.ancestors().any(|above| {
                to.tree.get(above).is_some_and(Node::is_directory)
                    && !above.as_os_str().is_empty()
                    && !to.held.iter().any(|held| held.starts_with(above))
            })
        };
        for path in doubtful.keys() {
            if !spared(path) && !self.is_ignored(path) && !self.is_in_nested_repository(path) {
                self.fail(&format!("should have been removed: {path:?}\n{restored:?}"));
            }
        }
    }

    fn is_in_nested_repository(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.any(|above| {
            !above.as_os_str().is_empty() && self.world.workspace.join(above).join(".git").exists()
        })
    }

    fn is_ignored(&self, path: &Path) -> bool {
        let status = Command::new(git_program())
            .args(["check-ignore", "-q", "--"])
            .arg(Path::new(".").join(path))
            .env("HOME", &self.world.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(&self.world.workspace)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        status.success()
    }
}

fn is_named_git(path: &Path) -> bool {
    let mut names = path.components();
    names.any(|name| name.as_os_str().eq_ignore_ascii_case(".git"))
}
