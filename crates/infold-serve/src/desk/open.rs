use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use infold_store::{OpenError, TaskError};
use uuid::Uuid;

use super::{DeskError, Inner, locked};
use crate::held::Held;

/// The tasks that this server has open.
#[derive(Default)]
pub(super) struct Opened {
    tasks: HashMap<Uuid, Entry>,
    /// Until when others go first.
    let_go: HashMap<Uuid, Instant>,
    /// Counts uses, to tell which was used last.
    clock: u64,
}

struct Entry {
    held: Arc<Mutex<Held>>,
    /// Somebody may take its files away.
    dir: PathBuf,
    used: u64,
}

/// So many are open at once, if there are file descriptors for them.
const MOST: u64 = 128;

/// So many descriptors an open task takes.
const FILES: u64 = 8;

/// How many tasks may be open: a third of the descriptors there are is for them, the rest for connections.
fn most() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let room = limit.current.map_or(MOST, |limit| limit / 3 / FILES);
    room.clamp(4, MOST) as usize
}

/// Asks for as many file descriptors as this process may have.
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Without it there is room for fewer tasks and connections.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// So long nobody here takes a task up again that another process asked for: else requests that
/// follow each other closely would never let it in.
const COURTESY: Duration = Duration::from_millis(150);

/// So long a task is waited for that another process holds: its commands are short.
const PATIENCE: Duration = Duration::from_secs(3);

impl Inner {
    /// A task, opened for writing.
    pub fn open(&self, task: Uuid) -> Result<Arc<Mutex<Held>>, TaskError> {
        let begin = Instant::now();
        loop {
            let mut opened = locked(&self.opened);
            if let Some(held) = opened.get(task) {
                return Ok(held);
            }
            if opened.gives_way(task) {
                drop(opened);
                sleep(Duration::from_millis(5));
                continue;
            }
            match self.contexts.write(task) {
                Ok((writer, _)) => {
                    let (held, idle) = opened.put(task, Held::new(task, writer));
                    drop(opened);
                    self.later.away(idle);
                    return Ok(held);
                }
                Err(TaskError::Open {
                    source: OpenError::Held { .. },
                    ..
                }) if begin.elapsed() < PATIENCE => {
                    drop(opened);
                    sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A task, if it is open.
    pub fn opened(&self, task: Uuid) -> Option<Arc<Mutex<Held>>> {
        let opened = locked(&self.opened);
        opened.tasks.get(&task).map(|entry| entry.held.clone())
    }

    /// Closes a task, once nobody uses it.
    pub fn release(&self, task: Uuid) {
        let entry = locked(&self.opened).let_go(task);
        let Some(entry) = entry else { return };
        let begin = Instant::now();
        while Arc::strong_count(&entry.held) > 1 && begin.elapsed() < PATIENCE {
            sleep(Duration::from_millis(2));
        }
        self.put_away([entry.held]);
    }

    /// Closes a task that is to go.
    pub fn drop_out(&self, task: Uuid) {
        let entry = locked(&self.opened).tasks.remove(&task);
        drop(entry);
    }

    /// Closes all tasks.
    pub fn close(&self) {
        self.later.catch_up();
        let all = std::mem::take(&mut locked(&self.opened).tasks);
        for entry in all.into_values() {
            let mut held = locked(&entry.held);
            let forced = held.writer.force().map_err(DeskError::from);
            if let Err(error) = forced.and_then(|()| self.lay_down(&mut held)) {
                self.failed(&error);
            }
        }
    }

    /// Closes tasks that came to rest, and those that did not come to it yet.
    pub fn put_away(&self, tasks: impl IntoIterator<Item = Arc<Mutex<Held>>>) {
        for held in tasks {
            if let Err(error) = self.lay_down(&mut locked(&held)) {
                self.failed(&error);
            }
        }
    }
}

impl Opened {
    fn get(&mut self, task: Uuid) -> Option<Arc<Mutex<Held>>> {
        self.clock += 1;
        let entry = self.tasks.get_mut(&task)?;
        if !entry.dir.is_dir() {
            // What is written there would be in no file that has a name.
            self.tasks.remove(&task);
            return None;
        }
        entry.used = self.clock;
        Some(entry.held.clone())
    }

    /// Gives a task up, and way to whoever asked for it.
    fn let_go(&mut self, task: Uuid) -> Option<Entry> {
        let now = Instant::now();
        self.let_go.retain(|_, until| now < *until);
        self.let_go.insert(task, now + COURTESY);
        self.tasks.remove(&task)
    }

    fn gives_way(&self, task: Uuid) -> bool {
        let until = self.let_go.get(&task);
        until.is_some_and(|until| Instant::now() < *until)
    }

    /// Takes a task in, and gives those back that were not used for the longest time.
    fn put(&mut self, task: Uuid, held: Held) -> (Arc<Mutex<Held>>, Vec<Arc<Mutex<Held>>>) {
        let mut out = Vec::new();
        let most = most();
        if self.tasks.len() >= most {
            let mut ages: Vec<(u64, Uuid)> =
                self.tasks.iter().map(|(id, one)| (one.used, *id)).collect();
            ages.sort_unstable();
            for (_, id) in ages.into_iter().take(most / 8 + 1) {
                if self
                    .tasks
                    .get(&id)
                    .is_some_and(|one| Arc::strong_count(&one.held) == 1)
                {
                    out.extend(self.tasks.remove(&id).map(|one| one.held));
                }
            }
        }
        let dir = held.log().dir().to_owned();
        let held = Arc::new(Mutex::new(held));
        let entry = Entry {
            dir,
            held: held.clone(),
            used: self.clock,
        };
        self.tasks.insert(task, entry);
        (held, out)
    }
}
