//! Where a call may block a thread of the socket, and how the socket is served on where one is stuck (C19).
//!
//! Of the socket's threads one more than may block serves on. Few calls run side by side, since the kernel makes one mount at a
//! time, and threads that wait for it in line cost more than they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// Calls that may block a thread of the socket at a time.
pub(super) const PLACES: usize = 2;
/// The socket's threads: one always serves.
pub const SOCKET_THREADS: usize = PLACES + 1;
/// A call that gets no place goes elsewhere when none has ended for so long: many times what one takes.
const PATIENCE: Duration = Duration::from_millis(10);
/// How often [`watch`] looks whether calls get on.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Looks without a call after which nobody watches until the next one.
const QUIET_LOOKS: u32 = 20;

/// The places on the socket's threads.
#[derive(Debug)]
pub(super) struct Places {
    free: Semaphore,
    taken: AtomicUsize,
    /// How many have been given back.
    ended: AtomicUsize,
    is_watched: AtomicBool,
}

/// A thread of the socket that a call may block, until dropped.
pub(super) struct Place<'a> {
    places: &'a Places,
    _permit: SemaphorePermit<'a>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            free: Semaphore::new(PLACES),
            taken: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            is_watched: AtomicBool::new(false),
        }
    }
}

impl Places {
    /// A place on this thread; none where it must not block, or where the places are taken by calls that hang. `driver` is
    /// where it is watched.
    pub(super) async fn take(self: &Arc<Self>, driver: &Handle) -> Option<Place<'_>> {
        let socket = Handle::current();
        if socket.runtime_flavor() != RuntimeFlavor::MultiThread || socket.metrics().num_workers() <= PLACES {
            return None;
        }
        let permit = loop {
            let ended = self.ended.load(SeqCst);
            match timeout(PATIENCE, self.free.acquire()).await {
                Ok(permit) => break permit.ok()?,
                Err(_) if self.ended.load(SeqCst) == ended => return None,
                Err(_) => {}
            }
        };
        self.taken.fetch_add(1, SeqCst);
        if !self.is_watched.swap(true, SeqCst) {
            driver.spawn(watch(Arc::clone(self), socket));
        }
        Some(Place { places: self, _permit: permit })
    }

    /// Whether calls are under way, or were a moment ago.
    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(SeqCst) || self.taken.load(SeqCst) > 0
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.ended.fetch_add(1, SeqCst);
        self.places.taken.fetch_sub(1, SeqCst);
    }
}

/// A thread that serves the socket waits for what comes next only when it is done with what came; while it is stuck in a call
/// the others sleep. Wakes one of them then: it takes over, and whatever the stuck one had still to do.
async fn watch(places: Arc<Places>, socket: Handle) {
    let mut quiet = 0;
    loop {
        let ended = places.ended.load(SeqCst);
        sleep(LOOK_EVERY).await;
        let (is_taken, none_ended) = (places.taken.load(SeqCst) > 0, places.ended.load(SeqCst) == ended);
        if is_taken && none_ended {
            socket.spawn(async {});
        }
        quiet = if is_taken || !none_ended { 0 } else { quiet + 1 };
        if quiet < QUIET_LOOKS {
            continue;
        }
        places.is_watched.store(false, SeqCst);
        // Whoever took a place just now has seen that somebody watches.
        if places.taken.load(SeqCst) == 0 || places.is_watched.swap(true, SeqCst) {
            return;
        }
        quiet = 0;
    }
}
