//! A clock that moves only when told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::locked;
use crate::domain::time::{Monotonic, Wall};
use crate::ports::clock::Clock;

/// Both clocks of a machine. Clones move together; each process has its own origin of monotonic time.
#[derive(Debug, Clone)]
pub struct SteppedClock {
    now: Arc<Mutex<Now>>,
    origin: Duration,
}

#[derive(Debug)]
struct Now {
    uptime: Duration,
    wall: Wall,
}

impl SteppedClock {
    /// A clock that shows this calendar time.
    pub fn at(wall: Wall) -> SteppedClock {
        let now = Now { uptime: Duration::ZERO, wall };
        SteppedClock { now: Arc::new(Mutex::new(now)), origin: Duration::ZERO }
    }

    /// The same clock as a process sees it that starts now.
    pub fn restarted(&self) -> SteppedClock {
        let origin = locked(&self.now).uptime;
        SteppedClock { now: self.now.clone(), origin }
    }

    /// Lets time pass, on both clocks.
    pub fn advance(&self, span: Duration) {
        let mut now = locked(&self.now);
        now.uptime += span;
        now.wall.unix_ms += u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets the calendar alone, as an administrator or NTP does.
    pub fn set_wall(&self, wall: Wall) {
        locked(&self.now).wall = wall;
    }

    /// Time since the machine of this clock came to be, the same for all its processes.
    pub(super) fn uptime(&self) -> Duration {
        locked(&self.now).uptime
    }
}

impl Clock for SteppedClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(locked(&self.now).uptime - self.origin)
    }

    fn wall(&self) -> Wall {
        locked(&self.now).wall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_the_calendar_leaves_monotonic_time() {
        let clock = SteppedClock::at(Wall { unix_ms: 5_000 });
        clock.advance(Duration::from_secs(2));
        let process = clock.restarted();
        clock.advance(Duration::from_secs(3));
        clock.set_wall(Wall { unix_ms: 1 });
        assert_eq!(clock.monotonic(), Monotonic(Duration::from_secs(5)));
        assert_eq!(process.monotonic(), Monotonic(Duration::from_secs(3)));
        assert_eq!(process.wall(), Wall { unix_ms: 1 });
    }
}
