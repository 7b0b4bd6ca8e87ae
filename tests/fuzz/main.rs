//! Fuzzing on stable Rust: each property takes generated and mutated input and holds it to an invariant, not only to "no
//! crash". A failure shrinks, is printed, and its seed goes to `regressions/`, which is committed and run first.
//!
//! `cargo test` runs a few hundred inputs of each; `PER_NODE_FUZZ_SECONDS=N cargo test --test fuzz` runs all properties for
//! about N seconds together. Inputs that are bytes begin at the files of `corpus/` and are mutated from there.

mod calls;
mod names;
mod objects;
mod records;
mod removal;
mod runner;
mod tables;
mod wire;

#[allow(dead_code)]
#[path = "../process/host.rs"]
mod host;
#[path = "../rpc/raw.rs"]
mod raw;
#[allow(dead_code)]
#[path = "../rpc/rig.rs"]
mod rig;
