//! The contents of a directory, read without the library.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The contents of a directory, by path.
pub type Tree = BTreeMap<PathBuf, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    File { contents: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Directory { mode: u32 },
    Special,
}

impl Node {
    pub fn is_directory(&self) -> bool {
        matches!(self, Node::Directory { .. })
    }
}

/// Reads all of a directory, repositories included.
pub fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    add(root, Path::new(""), &mut tree);
    tree
}

fn add(root: &Path, below: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let name = entry.unwrap().file_name();
        let path = below.join(name);
        let at = root.join(&path);
        let meta = fs::symlink_metadata(&at).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let kind = meta.file_type();
        let node = if kind.is_dir() {
            add(root, &path, tree);
            Node::Directory { mode }
        } else if kind.is_symlink() {
            Node::Link(fs::read_link(&at).unwrap())
        } else if kind.is_fifo() || kind.is_socket() {
            Node::Special
        } else {
            let contents = fs::read(&at).unwrap();
            Node::File { contents, mode }
        };
        tree.insert(path, node);
    }
}

/// Returns how two trees differ, for a message.
pub fn difference(left: &Tree, right: &Tree) -> String {
    let mut text = String::new();
    let paths: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    for path in paths {
        let (left, right) = (left.get(path), right.get(path));
        if left != right {
            text.push_str(&format!("{path:?}: {left:?} | {right:?}\n"));
        }
    }
    text
}

pub fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}
