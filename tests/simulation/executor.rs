//! An executor that polls one task at a time, the one it is told to. Dropping its tasks is a crash.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// The tasks of one process, in the order in which they were spawned.
#[derive(Default)]
pub struct Executor {
    tasks: BTreeMap<u64, Task>,
    last: u64,
}

struct Task {
    name: String,
    future: Pin<Box<dyn Future<Output = ()>>>,
    awake: Arc<Awake>,
}

struct Awake(AtomicBool);

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Executor {
    pub fn spawn(&mut self, name: String, future: impl Future<Output = ()> + 'static) {
        self.last += 1;
        let awake = Arc::new(Awake(AtomicBool::new(true)));
        self.tasks.insert(self.last, Task { name, future: Box::pin(future), awake });
    }

    /// Tasks that can go on.
    pub fn ready(&self) -> Vec<u64> {
        let awake = self.tasks.iter().filter(|(_, task)| task.awake.0.load(Ordering::Relaxed));
        awake.map(|(id, _)| *id).collect()
    }

    pub fn name(&self, id: u64) -> &str {
        self.tasks.get(&id).map_or("", |task| &task.name)
    }

    /// Lets a task go on until it waits or ends.
    pub fn poll(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.awake.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(task.awake.clone());
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks.remove(&id);
        }
    }

    /// Time has passed: whoever sleeps looks at the clock.
    pub fn wake_all(&self) {
        self.tasks.values().for_each(|task| task.awake.0.store(true, Ordering::Relaxed));
    }

    /// The process is killed: nothing of it ever runs again.
    pub fn kill(&mut self) {
        self.tasks.clear();
    }
}
