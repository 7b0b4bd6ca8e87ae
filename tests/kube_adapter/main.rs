//! The kube adapter against a mock API server: what it asks, and what it makes of every kind of answer.
//!
//! The mock fails on calls that were not expected and on calls that did not come.

#[path = "../support/mock_api.rs"]
mod mock_api;

mod events;
mod harness;
mod list;
mod secrets;
mod watch;
