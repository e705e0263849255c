use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use infold::manage::Prepared;
use infold_store::{Claim, OpenError, TaskError};
use uuid::Uuid;

use super::{Inner, locked, tried};
use crate::ask_to_let_go;
use crate::held::Held;

/// The tasks that this server has open.
#[derive(Default)]
pub(super) struct Opened {
    tasks: HashMap<Uuid, Entry>,
    /// Somebody is opening these: a long log takes its time, and only who wants it waits.
    opening: HashSet<Uuid>,
    /// Until when others go first.
    let_go: HashMap<Uuid, Instant>,
    /// Summaries that were written ahead of need, of tasks that were closed since.
    ready: HashMap<Uuid, Prepared>,
}

struct Entry {
    held: Arc<Mutex<Held>>,
    /// Its files, or only its lock, may be removed by a person.
    claim: Claim,
    /// How many descriptors it may take.
    descriptors: u64,
    used: Instant,
}

/// Somebody opens a task; whoever else wants it is told when that has ended.
struct Opening<'d> {
    desk: &'d Inner,
    task: Uuid,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        locked(&self.desk.opened).opening.remove(&self.task);
        self.desk.door.notify_all();
    }
}

/// At most so many descriptors are for open tasks: those of 128 that continue no other.
const MAX_DESCRIPTORS: u64 = 1024;

/// At least so many are, however few there are: those of four tasks.
const MIN_DESCRIPTORS: u64 = 32;

/// So many descriptors an open task takes beside its log: for its lock, its frames and its view.
const DESCRIPTORS_BESIDE_LOG: u64 = 3;

/// How many descriptors are for open tasks: a third of those there are, the rest is for connections.
fn room() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let third = limit.current.map_or(MAX_DESCRIPTORS, |limit| limit / 3);
    third.clamp(MIN_DESCRIPTORS, MAX_DESCRIPTORS)
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

/// So long a task is waited for that another process holds: its commands are short, and a server
/// lets go when it is asked.
const PATIENCE: Duration = Duration::from_secs(3);

/// So long nobody asks for a task before it is closed: another process may want it.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// How many tasks may wait to be closed: until then their files are open, beyond those of the open ones.
fn max_leaving() -> usize {
    const DESCRIPTORS_FOR_EACH: u64 = 32;
    (room() / DESCRIPTORS_FOR_EACH) as usize
}

/// So many summaries of closed tasks are kept.
const MOST_READY: usize = 256;

impl Inner {
    /// A task, opened for writing. Who holds it is asked to let go.
    pub fn open(&self, task: Uuid) -> Result<Arc<Mutex<Held>>, TaskError> {
        let (mut begin, mut asked) = (Instant::now(), false);
        loop {
            let (error, address) = match self.try_open(task) {
                Err(TaskError::Open {
                    task,
                    source: OpenError::Held { holder },
                }) => {
                    let address = holder.as_ref().and_then(|holder| holder.address.clone());
                    let source = OpenError::Held { holder };
                    (TaskError::Open { task, source }, address)
                }
                opened => return opened,
            };
            // We hold it ourselves while we close it.
            let other = address.filter(|address| Some(&**address) != self.contexts.address());
            if let (Some(address), false) = (other, asked) {
                asked = true;
                let token = self.config.serve.token.as_ref();
                let token = token.map(|set| set.value.reveal());
                if ask_to_let_go(&address, task, token, PATIENCE) {
                    begin = Instant::now();
                }
            } else if begin.elapsed() >= PATIENCE {
                return Err(error);
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// A task, opened for writing unless another process holds it.
    pub fn try_open(&self, task: Uuid) -> Result<Arc<Mutex<Held>>, TaskError> {
        loop {
            let mut opened = locked(&self.opened);
            if let Some(held) = opened.get(task) {
                return Ok(held);
            }
            if opened.opening.contains(&task) {
                let waited = self.door.wait(opened);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            if opened.gives_way(task) {
                drop(opened);
                sleep(Duration::from_millis(5));
                continue;
            }
            opened.opening.insert(task);
            drop(opened);
            let opening = Opening { desk: self, task };
            let (writer, _) = self.contexts.write(task)?;
            let mut opened = locked(&self.opened);
            let (held, idle) = opened.put(task, Held::new(task, writer));
            drop(opened);
            drop(opening);
            self.put_away(self.later.away(idle, max_leaving()));
            return Ok(held);
        }
    }

    /// A task, if it is open.
    pub fn opened(&self, task: Uuid) -> Option<Arc<Mutex<Held>>> {
        let opened = locked(&self.opened);
        opened.tasks.get(&task).map(|entry| entry.held.clone())
    }

    /// Closes a task, once nobody uses it.
    pub fn release(&self, task: Uuid) {
        let mut opened = locked(&self.opened);
        opened.give_way(task);
        while opened.opening.contains(&task) {
            let waited = self.door.wait(opened);
            opened = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let entry = opened.tasks.remove(&task);
        drop(opened);
        let Some(entry) = entry else { return };
        // Whoever has it next looks there.
        if let Err(error) = self.whole_index() {
            self.failed(&error.into());
        }
        let begin = Instant::now();
        while Arc::strong_count(&entry.held) > 1 && begin.elapsed() < PATIENCE {
            sleep(Duration::from_millis(2));
        }
        self.put_away([entry.held]);
        if let Err(error) = self.force() {
            self.failed(&error);
        }
    }

    /// Does something that needs the locks of several tasks, those let go of first that this server holds.
    pub fn released<T>(
        &self,
        mut work: impl FnMut() -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let begin = Instant::now();
        loop {
            match work() {
                Err(TaskError::Open { task, .. })
                    if locked(&self.opened).tasks.contains_key(&task)
                        && begin.elapsed() < PATIENCE =>
                {
                    self.release(task);
                }
                done => return done,
            }
        }
    }

    /// Closes a task that is to go.
    pub fn drop_out(&self, task: Uuid) {
        let entry = locked(&self.opened).tasks.remove(&task);
        drop(entry);
    }

    /// Closes all tasks.
    pub fn close(&self) {
        self.later.catch_up();
        if let Err(error) = self.whole_index() {
            self.failed(&error.into());
        }
        let all = std::mem::take(&mut locked(&self.opened).tasks);
        self.put_away(all.into_values().map(|entry| entry.held));
        for task in std::mem::take(&mut *locked(&self.behind)) {
            // Opening a task writes its view. Should it fail again, the next process does that.
            let _ = self.contexts.write(task);
        }
        if let Err(error) = self.force() {
            self.failed(&error);
        }
    }

    /// Closes tasks that came to rest, and those that did not come to it yet.
    pub fn put_away(&self, tasks: impl IntoIterator<Item = Arc<Mutex<Held>>>) {
        for held in tasks {
            let mut held = locked(&held);
            if let Err(error) = self.lay_down(&mut held) {
                self.failed(&error);
            }
            if !held.writer.has_current_view() {
                locked(&self.behind).insert(held.id);
                self.later.rest(held.id);
            }
            if let Some(ready) = held.ready.take() {
                locked(&self.opened).keep_ready(held.id, ready);
            }
        }
    }

    /// Closes the tasks that nobody asked for in so long, and nobody has anything under way in.
    pub fn close_idle(&self, idle: Duration) {
        let mut opened = locked(&self.opened);
        let rests = |task: &Uuid, entry: &mut Entry| {
            entry.used.elapsed() >= idle
                && Arc::strong_count(&entry.held) == 1
                && tried(&entry.held).is_some_and(|held| !held.preparing)
                && self.is_idle(*task)
        };
        let out: Vec<(Uuid, Entry)> = opened.tasks.extract_if(rests).collect();
        drop(opened);
        self.put_away(out.into_iter().map(|(_, entry)| entry.held));
    }
}

impl Opened {
    fn get(&mut self, task: Uuid) -> Option<Arc<Mutex<Held>>> {
        let entry = self.tasks.get_mut(&task)?;
        // A request asks several times within a moment.
        let just_now = entry.used.elapsed() < Duration::from_millis(1);
        if !just_now && !entry.claim.holds() {
            // What is written there would be in no file that has a name, or beside another writer.
            self.tasks.remove(&task);
            return None;
        }
        entry.used = Instant::now();
        Some(entry.held.clone())
    }

    /// Gives way to whoever asked for a task.
    fn give_way(&mut self, task: Uuid) {
        let now = Instant::now();
        self.let_go.retain(|_, until| now < *until);
        self.let_go.insert(task, now + COURTESY);
    }

    /// Keeps a summary for when its task is opened again: it says itself whether it is still right.
    fn keep_ready(&mut self, task: Uuid, ready: Prepared) {
        if self.ready.len() >= MOST_READY {
            self.ready.clear();
        }
        self.ready.insert(task, ready);
    }

    fn gives_way(&self, task: Uuid) -> bool {
        let until = self.let_go.get(&task);
        until.is_some_and(|until| Instant::now() < *until)
    }

    /// Takes a task in, and gives those back that were not used for the longest time, if there are not enough
    /// descriptors for all.
    fn put(&mut self, task: Uuid, mut held: Held) -> (Arc<Mutex<Held>>, Vec<Arc<Mutex<Held>>>) {
        let descriptors = held.log().max_descriptors() + DESCRIPTORS_BESIDE_LOG;
        let out = self.make_room(descriptors);
        held.ready = self.ready.remove(&task);
        let claim = held.writer.claim().clone();
        let held = Arc::new(Mutex::new(held));
        let entry = Entry {
            claim,
            descriptors,
            held: held.clone(),
            used: Instant::now(),
        };
        self.tasks.insert(task, entry);
        (held, out)
    }

    /// Takes out those that nobody uses, oldest first, until there is room for so many descriptors more.
    fn make_room(&mut self, more: u64) -> Vec<Arc<Mutex<Held>>> {
        let (room, mut out) = (room(), Vec::new());
        let mut taken: u64 = self.tasks.values().map(|one| one.descriptors).sum();
        if taken + more <= room {
            return out;
        }
        let mut ages: Vec<(Instant, Uuid)> =
            self.tasks.iter().map(|(id, one)| (one.used, *id)).collect();
        ages.sort_unstable();
        for (_, id) in ages {
            // Some more than needed: else each that comes would look through all of them.
            if taken + more <= room - room / 8 {
                break;
            }
            let is_idle = |entry: &Entry| Arc::strong_count(&entry.held) == 1;
            if self.tasks.get(&id).is_some_and(is_idle)
                && let Some(entry) = self.tasks.remove(&id)
            {
                taken -= entry.descriptors;
                out.push(entry.held);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::channel;

    use infold::{Config, Switchboard};
    use infold_provider::{Client, Patience};
    use infold_store::{Contexts, Durability, Metadata};
    use tokio::runtime::Runtime;
    use tokio::sync::watch;

    use super::*;
    use crate::Desk;

    /// A desk over a directory; its runtime asks nobody.
    fn desk(dir: &Path) -> (Desk, Runtime) {
        let runtime = Runtime::new().expect("a runtime can be made");
        let client = Client::new(Patience::default()).expect("a client can be made");
        let stop = watch::channel(false).1;
        let board = Switchboard::new(client, runtime.handle().clone(), stop);
        let contexts = Contexts::new(dir, Durability::Never).keeping();
        let contexts = contexts.expect("a registry can be opened");
        let desk = Desk::new(contexts, Arc::new(Config::default()), board);
        (desk.expect("a desk can be opened"), runtime)
    }

    fn task(desk: &Desk) -> Uuid {
        let made = desk.contexts().create(Metadata::default());
        made.expect("a task can be made")
    }

    #[test]
    fn another_process_gets_a_task_that_nobody_uses() {
        let dir = tempfile::tempdir().unwrap();
        let (desk, _runtime) = desk(dir.path());
        let (idle, busy) = (task(&desk), task(&desk));
        for task in [idle, busy] {
            let noted = desk.with(task, |writer| writer.note("something"));
            noted.unwrap().unwrap();
        }
        desk.inner.under_way(busy, true);
        let other = Contexts::new(dir.path(), Durability::Turn);
        desk.inner.close_idle(IDLE);
        assert!(other.write(idle).is_err(), "it was used just now");
        desk.inner.close_idle(Duration::ZERO);
        other.write(idle).unwrap();
        assert!(other.write(busy).is_err());
    }

    #[test]
    fn a_task_that_takes_long_to_open_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let (desk, _runtime) = desk(dir.path());
        let (slow, other) = (task(&desk), task(&desk));
        // Whoever opens it makes up for what a crash left, and wants the registry for that.
        let lock = desk.contexts().place(slow).unwrap().join("lock");
        std::fs::write(lock, "{\"pid\":1,\"host\":\"gone\"}\n").unwrap();
        let (done, is_done) = channel();
        let (go, may_go) = channel::<()>();
        std::thread::scope(|scope| {
            let (desk, door) = (&desk, done.clone());
            let contexts = desk.contexts();
            scope.spawn(move || {
                let held = contexts.with_registry(|_| {
                    door.send("registry").unwrap();
                    may_go.recv().unwrap();
                    Ok::<(), TaskError>(())
                });
                held.unwrap();
            });
            assert_eq!(is_done.recv(), Ok("registry"));
            for name in ["slow", "slow"] {
                let done = done.clone();
                scope.spawn(move || {
                    desk.inner.open(slow).unwrap();
                    done.send(name).unwrap();
                });
            }
            let is_opening = || {
                let opened = tried(&desk.inner.opened);
                opened.is_some_and(|opened| opened.opening.contains(&slow))
            };
            let begin = Instant::now();
            while !is_opening() && begin.elapsed() < Duration::from_secs(60) {
                sleep(Duration::from_millis(1));
            }
            scope.spawn(move || {
                desk.inner.open(other).unwrap();
                done.send("other").unwrap();
            });
            let first = is_done.recv_timeout(Duration::from_secs(60));
            go.send(()).unwrap();
            assert_eq!(first, Ok("other"));
            assert_eq!(is_done.recv(), Ok("slow"));
            assert_eq!(is_done.recv(), Ok("slow"));
        });
    }
}
