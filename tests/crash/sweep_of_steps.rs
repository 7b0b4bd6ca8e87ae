//! One operation, tried with a kill at each of its steps: first once without, to learn the steps, then once for each.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tracer::Kill;

/// Worlds at a time. Most of what they do is wait.
const WORLDS_AT_ONCE: usize = 10;

/// A place to kill at: the step's number, name and what the kill is.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub name: &'static str,
    pub kill: Kill,
    pub is_last: bool,
}

impl Place {
    /// Whether everything but the answer had come about. A last record that was torn is as good: it said that the
    /// publish was under way, and says nothing now.
    pub fn is_in_the_window(&self) -> bool {
        self.is_last && matches!(self.kill, Kill::After(_) | Kill::Within(_))
    }
}

/// Steps after which a kill is tried as well: those that others see. After any other it finds what it finds before the
/// next step.
const SEEN_BY_OTHERS: [&str; 6] = ["move_mount", "mount", "umount2", "renameat2", "unlinkat", "bind"];

/// Every place of an operation with these steps: before each, after those that matter and the last, within each write.
pub fn places(steps: &[&'static str]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, &name) in steps.iter().enumerate() {
        let is_last = number + 1 == steps.len();
        let mut add = |kill| places.push(Place { name, kill, is_last });
        add(Kill::Before(number));
        if name == "pwrite64" {
            add(Kill::Within(number));
        }
        if is_last || SEEN_BY_OTHERS.contains(&name) {
            add(Kill::After(number));
        }
    }
    places
}

/// Runs `attempt` at each place, several at a time, and prints what was tried under `title`.
pub fn at_each(title: &str, places: &[Place], attempt: impl Fn(Place) + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORLDS_AT_ONCE {
            scope.spawn(|| {
                while let Some(&place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(place)));
                    if tried.is_err() {
                        failures.lock().expect("lock").push(place);
                    }
                }
            });
        }
    });
    println!("{title}: {} kills at {}", places.len(), counts(places));
    let failures = failures.into_inner().expect("lock");
    assert!(failures.is_empty(), "{title}: wrong after a kill at {failures:#?}");
}

/// How many of which step.
fn counts(places: &[Place]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for place in places {
        *counts.entry(place.name).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    counts.join(", ")
}
