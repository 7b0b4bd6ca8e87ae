//! Waiting for something to become true, with a bound. Never asserts how long anything took.

use std::time::{Duration, Instant};

/// The bound of every wait that has no reason for another: longer than the kubelet's slowest ordinary step on a busy machine.
pub const PATIENCE_S: u64 = 90;

/// The bound where a copy is to go: in a cluster of many volumes it is the watch that proves the deletion, and that takes as long
/// as the API server's bookmarks do.
pub const PATIENCE_FOR_A_PROOF_S: u64 = 300;

/// How long must pass until nobody can say that a removal was only not due yet: more than two of the overlay's sweeps.
pub const TWO_TICKS_S: u64 = 8;

/// How long one look is from the next. Each look costs the two cores something.
const PAUSE_MS: u64 = 200;

/// Looks until `look` finds something, and gives it back. Panics, naming `what` it waited for, when the time is over.
pub fn wait_for<T>(what: &str, patience_s: u64, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(patience_s);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {patience_s} s in vain for {what}");
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
}

/// Waits until `look` is true.
pub fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    wait_for(what, PATIENCE_S, || look().then_some(()));
}

/// Looks again and again for a while, and panics as soon as `holds` is false: for what must stay as it is.
pub fn stays_true(what: &str, for_s: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(for_s);
    while Instant::now() < deadline {
        assert!(holds(), "no longer so: {what}");
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
}
