//! The use cases on the in-memory world: each clause that the domain decides, one test a promise.
//!
//! Nothing here waits for time: a future that nobody told to wait is ready at once.

mod condemned;
mod confirm;
mod decision;
mod event_series;
mod events;
mod failing;
mod health;
mod holding;
mod kept;
mod killed;
mod must_not;
mod publish;
mod reconcile;
mod report;
mod restore;
mod statistics;
mod sweep;
mod sweep_limit;
mod sweep_proof;
mod sweep_watch;
mod telling;
mod trash;
mod unpublish;
mod world;
