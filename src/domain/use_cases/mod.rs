//! The use cases: each observes through the ports, lets a pure function decide, acts, and observes again.
//! They await ports and the handle's lock and nothing else; they never spawn and never sleep.

pub mod confirm;
pub mod driver;
pub mod events;
pub mod marker;
pub mod publish;
pub mod reconcile;
pub mod statistics;
pub mod sweeper;
pub mod trash;
pub mod unpublish;
