//! The search index is checked like the other databases.

use std::fs;

use infold_store::{Contexts, Durability, Matching, Metadata, SearchRequest};

fn search(contexts: &Contexts) -> usize {
    let request = SearchRequest::new(Matching::Words("hunter2"));
    contexts.search(&request).expect("an answer").hits.len()
}

#[test]
fn a_search_index_that_is_damaged_or_of_another_version_is_reported_and_removed() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer
        .append(&[r#"{"role":"user","content":"hunter2"}"#])
        .expect("a message");
    drop(writer);
    assert_eq!(contexts.check_search_index().expect("checked"), None);
    assert!(!root.path().join("search.db").exists());
    assert_eq!(search(&contexts), 1);
    assert_eq!(contexts.check_search_index().expect("checked"), None);
    let path = root.path().join("search.db");
    let whole = fs::read(&path).expect("an index");
    // The version stands at byte 60.
    for (at, bytes) in [(60, vec![0, 0, 0, 9]), (4096, vec![0xff; 4096])] {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        fs::write(&path, damaged).expect("written");
        assert!(
            contexts.check_search_index().expect("checked").is_some(),
            "{at}"
        );
        contexts.remove_search_index().expect("removed");
        assert_eq!(contexts.check_search_index().expect("checked"), None);
        assert_eq!(search(&contexts), 1);
    }
}
