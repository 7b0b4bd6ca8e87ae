//! The node's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::domain::time::{Monotonic, Wall};
use crate::ports::clock::Clock;

/// Monotonic time counts from the making of this value.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(self.origin.elapsed())
    }

    fn wall(&self) -> Wall {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Wall { unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}
