//! The use cases: each observes through the ports, lets a pure function decide, acts, and observes again.
//! They await ports and the handle's lock and nothing else; they never spawn and never sleep.

mod condemned;
pub mod confirm;
pub mod driver;
pub mod events;
pub mod health;
pub mod kept;
pub mod marker;
mod proof_search;
pub mod publish;
pub mod reconcile;
mod removal;
pub mod report;
pub mod restore;
mod sight;
pub mod statistics;
pub(crate) mod sweep_limit;
pub mod sweeper;
pub mod trash;
pub mod unpublish;
