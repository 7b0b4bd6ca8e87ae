//! Removals and counts give way to pods: as long as calls for pods come, a walk over a tree pauses after every few entries.
//!
//! It holds nothing while it pauses, and never pauses for long, so that however many pods come it gets on.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::syscalls;

/// For so long after the last call another one is expected: a mount is a row of them.
const NEXT_CALL_WITHIN: Duration = Duration::from_millis(2);
/// Entries that a walk takes between two looks at the traffic: a fraction of a millisecond's work.
const ENTRIES_AT_ONCE: u32 = 32;
/// One look later.
const PAUSE: Duration = Duration::from_millis(1);
/// Looks that may find traffic before the next entries are taken all the same.
const PAUSES_MAX: u32 = 20;

/// The calls for pods in one store.
#[derive(Debug)]
pub struct Traffic {
    begun: Instant,
    under_way: AtomicU32,
    /// When the last one ended, in microseconds since `begun`; 0 before the first.
    ended_us: AtomicU64,
}

/// A call for a pod, until dropped.
#[derive(Debug)]
pub struct Call<'a>(&'a Traffic);

/// A walk that gives way, on the thread that began it.
#[derive(Debug)]
pub struct Background<'a> {
    traffic: &'a Traffic,
    entries: Cell<u32>,
    /// Whether this thread's reads and writes of the disk wait for everybody else's, by `ioprio_set`.
    is_idle: bool,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic { begun: Instant::now(), under_way: AtomicU32::new(0), ended_us: AtomicU64::new(0) }
    }
}

impl Traffic {
    /// A call for a pod begins.
    pub fn call(&self) -> Call<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Call(self)
    }

    /// A walk begins that nobody waits for.
    pub fn background(&self) -> Background<'_> {
        let is_idle = syscalls::set_io_class(syscalls::IoClass::Idle).is_ok();
        Background { traffic: self, entries: Cell::new(0), is_idle }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn is_busy(&self) -> bool {
        let ended_us = self.ended_us.load(Ordering::Relaxed);
        let within_us = NEXT_CALL_WITHIN.as_micros() as u64;
        self.under_way.load(Ordering::Relaxed) > 0
            || (ended_us > 0 && self.now_us().saturating_sub(ended_us) < within_us)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.ended_us.store(self.0.now_us(), Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Background<'_> {
    /// To be called before each entry.
    pub fn give_way(&self) {
        let entries = self.entries.get() + 1;
        self.entries.set(entries % ENTRIES_AT_ONCE);
        if entries == ENTRIES_AT_ONCE {
            self.pause();
        }
    }

    /// Waits for calls to end: before a walk begins, and between its entries.
    pub fn pause(&self) {
        for _ in 0..PAUSES_MAX {
            if !self.traffic.is_busy() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        // The thread will do other work.
        if self.is_idle {
            let _ = syscalls::set_io_class(syscalls::IoClass::Usual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a walk over so many entries took.
    fn entries_take(traffic: &Traffic, entries: u32) -> Duration {
        let background = traffic.background();
        let begun = Instant::now();
        (0..entries).for_each(|_| background.give_way());
        begun.elapsed()
    }

    #[test]
    fn c24_a_walk_pauses_while_a_call_goes_on_and_gets_on_all_the_same() {
        let traffic = Traffic::default();
        assert!(!traffic.is_busy());
        let (first, second) = (traffic.call(), traffic.call());
        assert!(traffic.is_busy());
        drop(first);
        assert!(traffic.is_busy());
        // Sleeps are never shorter than asked.
        assert!(entries_take(&traffic, ENTRIES_AT_ONCE) >= PAUSE * PAUSES_MAX);
        assert!(entries_take(&traffic, 2 * ENTRIES_AT_ONCE) >= 2 * PAUSE * PAUSES_MAX);
        drop(second);
        while traffic.is_busy() {
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn c24_another_call_is_expected_for_a_moment() {
        let traffic = Traffic { ended_us: AtomicU64::new(u64::MAX), ..Traffic::default() };
        assert!(traffic.is_busy());
        let traffic = Traffic { ended_us: AtomicU64::new(0), ..Traffic::default() };
        assert!(!traffic.is_busy(), "there was none yet");
    }

    #[test]
    fn c24_a_thread_is_as_before_after_its_walk() {
        let traffic = Traffic::default();
        let before = syscalls::io_class().unwrap();
        let background = traffic.background();
        assert_eq!(syscalls::io_class().unwrap(), syscalls::IoClass::Idle as u32);
        drop(background);
        assert_eq!(syscalls::io_class().unwrap(), before);
    }
}
