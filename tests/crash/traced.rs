//! The node's drivers that the tracer holds.

use crate::node::Node;
use crate::tracer::{Traced, Treatment};

impl Node {
    /// Starts a driver under the tracer. It does not wait for anything.
    pub fn start_traced(&self, treatment: Treatment) -> Traced {
        Traced::start(&self.command(), &self.path("traced.log"), treatment)
    }

    /// Waits until a traced driver serves or is dead.
    pub fn wait_served(&self, traced: &Traced) {
        self.eventually("the driver to serve or to die", || traced.is_dead() || self.client().is_ok());
    }
}
