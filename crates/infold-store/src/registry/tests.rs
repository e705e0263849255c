use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// For tests in which the lock is never let go.
const IMPATIENT: Patience = Patience {
    timeout: Duration::from_millis(1),
    pauses: [Duration::from_millis(1); 3],
};

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn task(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Noon of a day in November.
fn day(day: u8) -> Timestamp {
    at(&format!("2026-11-{day:02}T12:00:00Z"))
}

fn running(number: u128) -> TaskRow {
    TaskRow::new(task(number), Status::Running, day(1))
}

fn ended(number: u128, on: u8) -> TaskRow {
    TaskRow {
        completed_at: Some(day(on)),
        ..TaskRow::new(task(number), Status::Completed, day(1))
    }
}

/// A database made by hand, as another version or another program would.
fn by_hand(dir: &TempDir, sql: &str) -> Connection {
    let db = Connection::open(dir.path().join("tasks.db")).unwrap();
    db.execute_batch(sql).unwrap();
    db
}

fn names(registry: &Registry, kind: &str) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = ?1 AND sql IS NOT NULL ORDER BY name";
    let mut statement = registry.connection.prepare(sql).unwrap();
    let names = statement.query_map([kind], |row| row.get(0)).unwrap();
    names.collect::<rusqlite::Result<_>>().unwrap()
}

const INDEXES: [&str; 5] = [
    "forks_parent",
    "idx_tasks_active_at",
    "idx_tasks_created_at",
    "idx_tasks_status",
    "idx_tasks_user",
];

#[test]
fn opening_makes_all_that_is_missing() {
    let dir = home();
    let registry = Registry::open(&dir.path().join("deep/contexts")).unwrap();
    assert_eq!(
        names(&registry, "table"),
        [
            "forks",
            "model_quirks",
            "model_windows",
            "queue",
            "tasks",
            "token_factors"
        ]
    );
    assert_eq!(names(&registry, "index"), INDEXES);
    assert_eq!(
        schema::version(&registry.connection).unwrap(),
        schema::VERSION
    );
    assert!(registry.uuids().unwrap().is_empty());
}

#[test]
fn the_table_has_the_columns_of_the_public_format() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let sql = "SELECT group_concat(name, ' ') FROM pragma_table_info('tasks')";
    let columns: String = registry
        .connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        columns,
        "uuid task_source owner repo task_type task_id status created_at started_at completed_at \
         process_id hostname llm_provider model context_length llm_call_count tool_call_count \
         total_tokens compression_count error_message user cached_tokens cost \
         title agent cwd active_at"
    );
}

#[test]
fn it_writes_ahead_and_syncs_at_checkpoints() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let ask = |sql: &str| {
        registry
            .connection
            .query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0))
    };
    assert_eq!(ask("PRAGMA journal_mode").unwrap(), "wal".to_owned().into());
    assert_eq!(ask("PRAGMA synchronous").unwrap(), 1.into());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_owner_may_look() {
    let dir = home();
    let contexts = dir.path().join("contexts");
    let registry = Registry::open(&contexts).unwrap();
    registry.insert(&running(1)).unwrap();
    assert_eq!(mode(&contexts), 0o700);
    for file in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        assert_eq!(mode(&contexts.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_file_open_to_all_is_closed_to_them() {
    let dir = home();
    drop(Registry::open(dir.path()).unwrap());
    let path = dir.path().join("tasks.db");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    registry.insert(&running(1)).unwrap();
    for file in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        assert_eq!(mode(&dir.path().join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_file_that_is_write_protected_stays_so() {
    let dir = home();
    drop(Registry::open(dir.path()).unwrap());
    let path = dir.path().join("tasks.db");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let _registry = Registry::open(dir.path()).unwrap();
    assert_eq!(mode(&path), 0o400);
}

#[test]
fn a_row_comes_back_as_it_went_in() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let text = |text: &str| Some(text.to_owned());
    let row = TaskRow {
        uuid: Uuid::new_v4(),
        task_source: text("github"),
        owner: text("o'hara"),
        repo: text("infold"),
        task_type: text("issue"),
        task_id: text("42"),
        status: Status::Failed,
        created_at: at("2026-11-15T20:51:34.123Z"),
        started_at: Some(at("2026-11-15T20:51:35Z")),
        completed_at: Some(at("2026-11-15T20:52:00.5Z")),
        process_id: Some(u32::MAX),
        hostname: text("höst"),
        llm_provider: text("openai"),
        model: text("m"),
        context_length: Some(1_000_000),
        counters: Counters {
            llm_calls: 1,
            tool_calls: 2,
            tokens: 3,
            compressions: 4,
            cached: 5,
            cost: 6_000_007,
        },
        error_message: text("no\nluck"),
        user: text("ada"),
        title: text("Fix it"),
        agent: text("claude-cli"),
        cwd: text("/code"),
        active_at: Some(at("2026-11-15T20:51:59Z")),
    };
    assert!(registry.insert(&row).unwrap());
    assert_eq!(registry.get(row.uuid).unwrap(), Some(row));
    assert_eq!(registry.get(task(7)).unwrap(), None);
}

#[test]
fn times_are_texts_of_one_length() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let made = at("2026-11-15T21:51:34+01:00");
    registry
        .insert(&TaskRow::new(task(1), Status::Running, made))
        .unwrap();
    registry
        .finish(
            task(1),
            &Outcome::Completed,
            at("2026-11-15T20:51:34.123987Z"),
        )
        .unwrap();
    let sql = "SELECT created_at || ' ' || completed_at FROM tasks";
    let times: String = registry
        .connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    assert_eq!(times, "2026-11-15T20:51:34.000Z 2026-11-15T20:51:34.123Z");
}

#[test]
fn inserting_again_changes_nothing() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let row = TaskRow {
        user: Some("ada".to_owned()),
        ..running(1)
    };
    assert!(registry.insert(&row).unwrap());
    assert!(!registry.insert(&running(1)).unwrap());
    assert_eq!(registry.get(task(1)).unwrap(), Some(row));
}

#[test]
fn lists_are_newest_first_and_filtered() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    for (number, status, user, on) in [
        (1, Status::Completed, "ada", 3),
        (2, Status::Running, "ada", 1),
        (3, Status::Running, "bob", 2),
        (4, Status::Queued, "ada", 2),
    ] {
        let row = TaskRow::new(task(number), status, day(on));
        registry
            .insert(&TaskRow {
                user: Some(user.to_owned()),
                ..row
            })
            .unwrap();
    }
    let list = |filter: Filter| -> Vec<u128> {
        let rows = registry.list(&filter).unwrap();
        rows.iter().map(|row| row.uuid.as_u128()).collect()
    };
    let ada = Some("ada".to_owned());
    assert_eq!(list(Filter::default()), [1, 4, 3, 2]);
    assert_eq!(
        list(Filter {
            limit: Some(2),
            ..Filter::default()
        }),
        [1, 4]
    );
    assert_eq!(
        list(Filter {
            user: ada.clone(),
            ..Filter::default()
        }),
        [1, 4, 2]
    );
    let status = Some(Status::Running);
    assert_eq!(
        list(Filter {
            status,
            ..Filter::default()
        }),
        [3, 2]
    );
    assert_eq!(
        list(Filter {
            status,
            user: ada,
            limit: None
        }),
        [2]
    );
    assert_eq!(registry.uuids().unwrap(), [1, 4, 3, 2].map(task));
    assert_eq!(registry.unfinished().unwrap(), [4, 3, 2].map(task));
}

#[test]
fn a_life_from_queue_to_end_and_back() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    registry
        .insert(&TaskRow::new(task(1), Status::Queued, day(1)))
        .unwrap();
    let look = || {
        let row = registry.get(task(1)).unwrap().unwrap();
        (
            row.status,
            row.started_at,
            row.completed_at,
            row.error_message,
        )
    };
    assert_eq!(look(), (Status::Queued, None, None, None));
    assert!(
        registry
            .set_status(task(1), Status::Running, day(2))
            .unwrap()
    );
    assert_eq!(look(), (Status::Running, Some(day(2)), None, None));
    registry
        .set_status(task(1), Status::Paused, day(3))
        .unwrap();
    registry
        .set_status(task(1), Status::Running, day(4))
        .unwrap();
    assert_eq!(look(), (Status::Running, Some(day(2)), None, None));
    let failed = Outcome::Failed {
        error: "no luck".to_owned(),
    };
    assert!(registry.finish(task(1), &failed, day(5)).unwrap());
    let error = Some("no luck".to_owned());
    assert_eq!(look(), (Status::Failed, Some(day(2)), Some(day(5)), error));
    registry
        .set_status(task(1), Status::Running, day(6))
        .unwrap();
    assert_eq!(look(), (Status::Running, Some(day(2)), None, None));
    registry
        .finish(task(1), &Outcome::Completed, day(7))
        .unwrap();
    assert_eq!(
        look(),
        (Status::Completed, Some(day(2)), Some(day(7)), None)
    );
}

#[test]
fn a_task_that_is_not_here_is_not_changed() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    assert!(
        !registry
            .set_status(task(1), Status::Paused, day(1))
            .unwrap()
    );
    assert!(
        !registry
            .finish(task(1), &Outcome::Completed, day(1))
            .unwrap()
    );
    assert!(!registry.set_counters(task(1), Counters::default()).unwrap());
    assert!(!registry.remove(task(1)).unwrap());
}

#[test]
fn counters_are_what_they_were_set_to() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    registry.insert(&running(1)).unwrap();
    let counted = Counters {
        llm_calls: 1,
        tool_calls: 2,
        tokens: 300,
        compressions: 4,
        cached: 5,
        cost: 6_000_007,
    };
    registry.set_counters(task(1), counted).unwrap();
    assert_eq!(registry.get(task(1)).unwrap().unwrap().counters, counted);
}

#[test]
fn what_many_write_at_once_is_all_there() {
    let dir = home();
    thread::scope(|scope| {
        for writer in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                let registry = Registry::open(dir.path()).unwrap();
                for number in 0..100 {
                    assert!(registry.insert(&running(writer * 100 + number)).unwrap());
                }
            });
        }
    });
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(registry.uuids().unwrap().len(), 400);
}

#[test]
fn many_may_open_what_is_not_there_yet() {
    let dir = home();
    thread::scope(|scope| {
        for number in 0..8 {
            let dir = dir.path();
            scope.spawn(move || {
                Registry::open(dir)
                    .unwrap()
                    .insert(&running(number))
                    .unwrap()
            });
        }
    });
    assert_eq!(
        Registry::open(dir.path()).unwrap().uuids().unwrap().len(),
        8
    );
}

#[test]
fn an_old_database_is_brought_up_to_date_and_keeps_its_rows() {
    let dir = home();
    let made = Registry::open(dir.path()).unwrap();
    made.insert(&running(1)).unwrap();
    drop(made);
    by_hand(
        &dir,
        "DROP TABLE forks; DROP TABLE queue; DROP INDEX idx_tasks_active_at; DROP INDEX idx_tasks_user; \
         CREATE INDEX tasks_status ON tasks (status); \
         ALTER TABLE tasks DROP COLUMN cached_tokens; ALTER TABLE tasks DROP COLUMN cost; \
         ALTER TABLE tasks DROP COLUMN title; ALTER TABLE tasks DROP COLUMN agent; \
         ALTER TABLE tasks DROP COLUMN cwd; ALTER TABLE tasks DROP COLUMN active_at; \
         PRAGMA user_version = 0",
    );
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(
        names(&registry, "table"),
        [
            "forks",
            "model_quirks",
            "model_windows",
            "queue",
            "tasks",
            "token_factors"
        ]
    );
    assert_eq!(names(&registry, "index"), INDEXES);
    assert_eq!(
        schema::version(&registry.connection).unwrap(),
        schema::VERSION
    );
    assert_eq!(registry.uuids().unwrap(), [task(1)]);
}

#[test]
fn what_someone_dropped_is_made_again() {
    let dir = home();
    drop(Registry::open(dir.path()).unwrap());
    by_hand(&dir, "DROP TABLE tasks; DROP INDEX forks_parent");
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(
        names(&registry, "table"),
        [
            "forks",
            "model_quirks",
            "model_windows",
            "queue",
            "tasks",
            "token_factors"
        ]
    );
    assert_eq!(names(&registry, "index"), INDEXES);
}

#[test]
fn tables_of_others_stay() {
    let dir = home();
    by_hand(
        &dir,
        "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)",
    );
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(
        names(&registry, "table"),
        [
            "forks",
            "model_quirks",
            "model_windows",
            "queue",
            "tasks",
            "theirs",
            "token_factors"
        ]
    );
}

/// Everything in a directory but the shared memory, which holds no data.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// A version that this infold does not know.
const NEWER: i64 = schema::VERSION + 1;

fn assert_too_new(dir: &Path) {
    let before = files(dir);
    let error = Registry::open(dir).unwrap_err();
    assert!(
        matches!(
            error,
            RegistryError::TooNew {
                found: NEWER,
                supported: schema::VERSION,
                ..
            }
        ),
        "{error:?}"
    );
    let known = schema::VERSION;
    let said = format!("tasks.db is of version {NEWER}, and this infold knows up to {known}");
    assert!(error.to_string().ends_with(&said), "{error}");
    assert_eq!(files(dir), before);
}

#[test]
fn a_newer_database_is_refused_and_stays_as_it_is() {
    let dir = home();
    drop(by_hand(
        &dir,
        &format!("CREATE TABLE later (x); PRAGMA user_version = {NEWER}"),
    ));
    assert_too_new(dir.path());
}

#[test]
fn a_newer_database_in_wal_mode_is_refused_too() {
    let dir = home();
    drop(by_hand(
        &dir,
        &format!(
            "PRAGMA journal_mode = WAL; CREATE TABLE later (x); PRAGMA user_version = {NEWER}"
        ),
    ));
    assert_too_new(dir.path());
}

/// As a killed process leaves it: the version is in the journal alone.
#[test]
fn a_newer_database_keeps_its_journal() {
    let dir = home();
    let open = by_hand(
        &dir,
        &format!(
            "PRAGMA journal_mode = WAL; CREATE TABLE later (x); PRAGMA user_version = {NEWER}"
        ),
    );
    let left = home();
    for file in ["tasks.db", "tasks.db-wal"] {
        fs::copy(dir.path().join(file), left.path().join(file)).unwrap();
    }
    assert_too_new(left.path());
    drop(open);
}

#[test]
fn a_write_waits_for_another() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let other = by_hand(&dir, "BEGIN IMMEDIATE");
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(50));
            other.execute_batch("COMMIT").unwrap();
        });
        assert!(registry.insert(&running(1)).unwrap());
    });
}

#[test]
fn a_write_that_never_gets_its_turn_says_busy() {
    let dir = home();
    let registry = Registry::open_with(dir.path(), IMPATIENT).unwrap();
    registry.insert(&running(1)).unwrap();
    let other = by_hand(&dir, "BEGIN IMMEDIATE");
    let error = registry
        .set_counters(task(1), Counters::default())
        .unwrap_err();
    assert!(matches!(error, RegistryError::Busy { .. }), "{error:?}");
    assert!(matches!(
        registry.remove(task(1)),
        Err(RegistryError::Busy { .. })
    ));

    assert_eq!(
        registry.uuids().unwrap(),
        [task(1)],
        "reading does not wait"
    );
    assert!(
        Registry::open_with(dir.path(), IMPATIENT).is_ok(),
        "nor does opening"
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert!(registry.remove(task(1)).unwrap(), "and then it goes on");
}

#[test]
fn a_file_that_is_no_database_is_damaged_and_stays_as_it_is() {
    let dir = home();
    fs::write(
        dir.path().join("tasks.db"),
        "not a database, but long\n".repeat(400),
    )
    .unwrap();
    let before = files(dir.path());
    let error = Registry::open(dir.path()).unwrap_err();
    assert!(matches!(error, RegistryError::Damaged { .. }), "{error:?}");
    assert_eq!(files(dir.path()), before);
}

#[test]
fn a_broken_page_is_damage() {
    let dir = home();
    drop(Registry::open(dir.path()).unwrap());
    let path = dir.path().join("tasks.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..4096].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let error = Registry::open(dir.path()).unwrap_err();
    assert!(matches!(error, RegistryError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_row_nobody_could_have_written_is_damage() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    for broken in [
        "status = 'done'",
        "created_at = 'today'",
        "total_tokens = -1",
        "uuid = 'x'",
    ] {
        registry.insert(&running(1)).unwrap();
        by_hand(&dir, &format!("UPDATE tasks SET {broken}"));
        let error = registry.list(&Filter::default()).unwrap_err();
        assert!(
            matches!(error, RegistryError::Damaged { .. }),
            "{broken}: {error:?}"
        );
        by_hand(&dir, "DELETE FROM tasks");
    }
}

#[test]
fn a_full_disk_is_said_so_and_writing_goes_on_after() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    let pages = |most: u32| {
        let sql = format!("PRAGMA max_page_count = {most}");
        registry.connection.query_row(&sql, [], |_| Ok(())).unwrap();
    };
    pages(1);
    let long = TaskRow {
        error_message: Some("x".repeat(100_000)),
        ..running(1)
    };
    assert!(matches!(
        registry.insert(&long),
        Err(RegistryError::Full { .. })
    ));
    assert!(registry.uuids().unwrap().is_empty());
    pages(u32::MAX - 1);
    assert!(registry.insert(&long).unwrap());
}

#[test]
fn a_database_that_may_only_be_read_can_be_read() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    registry.insert(&running(1)).unwrap();
    registry
        .connection
        .execute_batch("PRAGMA query_only = ON")
        .unwrap();
    assert!(matches!(
        registry.insert(&running(2)),
        Err(RegistryError::ReadOnly { .. })
    ));
    assert_eq!(registry.uuids().unwrap(), [task(1)]);
}

#[test]
fn a_directory_that_is_a_file_cannot_be_opened() {
    let dir = home();
    fs::write(dir.path().join("contexts"), "").unwrap();
    let error = Registry::open(&dir.path().join("contexts")).unwrap_err();
    assert!(matches!(error, RegistryError::Open { .. }), "{error:?}");
}

#[test]
fn forks_keep_what_they_came_from() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    registry.insert(&ended(1, 2)).unwrap();
    assert!(registry.add_fork(task(2), task(1)).unwrap());
    assert!(
        registry.add_fork(task(2), task(1)).unwrap(),
        "again is the same"
    );
    assert!(
        !registry.add_fork(task(3), task(9)).unwrap(),
        "from one that is not here"
    );
    assert_eq!(registry.forks_of(task(1)).unwrap(), [task(2)]);
    assert!(
        registry.expired(day(9)).unwrap().is_empty(),
        "also before the fork has a row"
    );

    registry.insert(&ended(2, 3)).unwrap();
    assert!(!registry.remove(task(1)).unwrap());
    assert!(registry.remove(task(2)).unwrap());
    assert!(registry.forks_of(task(1)).unwrap().is_empty());
    assert!(registry.remove(task(1)).unwrap());
}

#[test]
fn a_fork_that_was_never_made_can_be_forgotten() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    registry.insert(&ended(1, 2)).unwrap();
    registry.add_fork(task(2), task(1)).unwrap();
    assert!(!registry.remove(task(2)).unwrap());
    assert!(registry.remove(task(1)).unwrap());
}

#[test]
fn the_expired_are_those_nothing_left_refers_to() {
    let dir = home();
    let registry = Registry::open(dir.path()).unwrap();
    // 1 <- 2 <- 3, all old; 4 <- 5 <- 6, the last still running; 7 is recent.
    for row in [
        ended(1, 2),
        ended(2, 2),
        ended(3, 2),
        ended(4, 2),
        ended(5, 2),
        running(6),
        ended(7, 9),
    ] {
        registry.insert(&row).unwrap();
    }
    for (child, parent) in [(2, 1), (3, 2), (5, 4), (6, 5)] {
        registry.add_fork(task(child), task(parent)).unwrap();
    }
    let expired = |before: Timestamp| -> Vec<u128> {
        let rows = registry.expired(before).unwrap();
        rows.iter().map(|row| row.uuid.as_u128()).collect()
    };
    assert_eq!(expired(day(2)), [0; 0], "not before their time");
    assert_eq!(expired(day(3)), [3, 2, 1]);

    let failed = Outcome::Failed {
        error: "stopped".to_owned(),
    };
    registry.finish(task(6), &failed, day(3)).unwrap();
    assert_eq!(expired(day(4)), [3, 6, 2, 5, 1, 4]);
    for number in expired(day(4)) {
        assert!(registry.remove(task(number)).unwrap());
    }
    assert_eq!(registry.uuids().unwrap(), [task(7)]);
}
