//! The core and its ports, compiled without the rest of the crate.

#[path = "../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../src/ports/mod.rs"]
pub mod ports;
