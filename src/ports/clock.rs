//! The clock. It cannot fail.

use crate::domain::time::{Monotonic, Wall};

/// Both clocks of the node.
pub trait Clock: Send + Sync {
    /// Time that never goes back within this process.
    fn monotonic(&self) -> Monotonic;

    /// Calendar time, for what a person reads and for what outlives the process.
    fn wall(&self) -> Wall;
}
