//! The core, its ports and their in-memory twins with their tests, all in one crate, for `tests/mutants/run`.

#![deny(unsafe_code)]

// The tests know the crate by its name.
extern crate self as per_node;

pub mod adapters {
    //! The one adapter that knows no runtime.
    pub mod memory;
}
pub mod domain;
pub mod ports;
#[cfg(test)]
#[path = "../tests/simulation/main.rs"]
mod simulation;
#[cfg(test)]
#[path = "../tests/use_cases/main.rs"]
mod use_cases;
