//! Room for a case: how many run at once is what the machine can bear, which is not the same on each and changes while they run.
//!
//! Cases side by side on a machine that is slow just then starve the API server, and with it each other. So the next one begins
//! when the API server answers at once, or when no other is at work.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use super::api::api;

/// An API server that takes longer than this to say that it is well is short of the machine; with room it takes a twentieth.
const AT_ONCE: Duration = Duration::from_millis(400);

/// How often in a row it must answer at once.
const LOOKS: usize = 5;

/// How long one look is from the next. All looks together are what a case that has begun needs until its weight is felt.
const PAUSE: Duration = Duration::from_millis(400);

/// The cases at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Held by who looks for room: one begins at a time.
static ENTRANCE: Mutex<()> = Mutex::new(());

/// The room that a case has until it ends.
pub struct Room(());

impl Room {
    /// Waits until there is room for a case of this name.
    pub fn of(name: &str) -> Self {
        let _entrance = ENTRANCE.lock().expect("nobody panics with it");
        let mut told = false;
        let mut well = 0;
        while AT_WORK.load(Ordering::Relaxed) > 0 && well < LOOKS {
            let answered = api().time_of_an_answer();
            well = if answered.is_some_and(|time| time < AT_ONCE) { well + 1 } else { 0 };
            if well == 0 && !std::mem::replace(&mut told, true) {
                let _ =
                    writeln!(std::io::stderr(), "{name}: waits for room (the API server took {answered:?})");
            }
            sleep(PAUSE);
        }
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}
