//! The kube adapter against a mock API server: what it asks, and what it makes of every kind of answer.
//!
//! The mock fails on calls that were not expected and on calls that did not come. Stories that take more than a few calls
//! are told against a fake that stores and watches (`served`).

#[path = "../support/api_routes.rs"]
mod api_routes;
#[path = "../support/api_server.rs"]
#[allow(dead_code)]
mod api_server;
#[path = "../support/api_store.rs"]
mod api_store;
#[path = "../support/api_watch.rs"]
mod api_watch;
#[path = "../support/mock_api.rs"]
mod mock_api;

mod chain;
#[cfg(feature = "demo")]
mod driver;
mod events;
mod harness;
mod list;
mod secrets;
mod served;
mod watch;
