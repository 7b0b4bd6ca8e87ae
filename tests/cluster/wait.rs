//! Waiting for something to become true, with a bound. Never asserts how long anything took.

use std::time::{Duration, Instant};

/// The bound of every wait: many times the kubelet's slowest ordinary step (a volume is tried again after two minutes), for
/// machines that are many times slower, and more than the API server's bookmarks take, which prove a deletion in a cluster of
/// many volumes.
pub const PATIENCE_S: u64 = 600;

/// The same for kubectl.
pub const KUBECTL_PATIENCE: &str = "--timeout=600s";

/// How long must pass until nobody can say that a removal was only not due yet: more than two of the overlay's sweeps.
pub const TWO_TICKS_S: u64 = 8;

/// How long one look is from the next. Each look costs the two cores something.
const PAUSE_MS: u64 = 200;

/// Looks until `look` finds something, and gives it back. Panics, naming `what` it waited for, when the time is over.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(PATIENCE_S);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE_S} s in vain for {what}");
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
}

/// Waits until `look` is true.
pub fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    wait_for(what, || look().then_some(()));
}

/// Looks for a while whether something becomes true, for a case that goes another way where it does not.
pub fn becomes_true(within_s: u64, mut look: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(within_s);
    loop {
        if look() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
}

/// Looks again and again for a while, and panics as soon as `holds` is false: for what must stay as it is.
pub fn stays_true(what: &str, for_s: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(for_s);
    while Instant::now() < deadline {
        assert!(holds(), "no longer so: {what}");
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
}

/// How much of something a case does: a number that a person may raise for a long run.
///
/// # Panics
///
/// Where the variable is set to something that is no number.
pub fn number_from_env<T: std::str::FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")),
        Err(_unset) => default,
    }
}
