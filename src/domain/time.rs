//! The two times the domain knows: how long something took, and what a person's calendar says.
//! Neither is ever read here; the `Clock` port hands them in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on a clock that only goes forward, counted from an origin that differs in each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Monotonic(pub Duration);

impl Monotonic {
    /// The time from `earlier` to this point; zero where `earlier` is later.
    pub fn since(self, earlier: Monotonic) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `span` later.
    pub fn after(self, span: Duration) -> Monotonic {
        Monotonic(self.0.saturating_add(span))
    }
}

/// A point of calendar time, as whole milliseconds since 1970-01-01T00:00:00Z.
///
/// It may jump in both directions; what is stored across a restart (event series) uses it all the same,
/// since nothing else means the same in two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall {
    pub unix_ms: u64,
}

impl Wall {
    /// The time from `earlier` to this point; zero where the calendar went back.
    pub fn since(self, earlier: Wall) -> Duration {
        Duration::from_millis(self.unix_ms.saturating_sub(earlier.unix_ms))
    }
}
