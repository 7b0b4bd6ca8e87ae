//! The API server: which handles the PersistentVolumes name, and events on pods.
//!
//! What the service account may do, and all this adapter ever does:
//!
//! | resource | verbs | for |
//! |---|---|---|
//! | `persistentvolumes` | `list`, `watch` | the view of C21 and the proofs of C22 |
//! | `events` (core) | `create`, `patch` | C30 to C32 |
//! | `namespaces`, the one named `kube-system` | `get` | the marker of C22 (e) |
//!
//! It never writes anything but events, and it decides nothing: what a sweep may do with a view or a list, and what is
//! posted when, is the domain's.

pub mod api_error;
pub mod backoff;
pub mod calls;
pub mod client;
pub mod cluster;
pub mod events;
pub mod lines;
pub mod listing;
pub mod live_view;
pub mod settings;
pub mod transport;
pub mod volume;
pub mod watcher;
