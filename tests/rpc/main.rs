//! The CSI service over a real unix socket, called by a real client as a kubelet calls it (a fresh connection for
//! each call), on a node in memory. What happens to real mounts is not asked here: other suites do.
#![cfg(feature = "demo")]

mod bad_input;
mod calls;
mod copies_page;
mod health;
mod lifetime;
mod outcomes;
mod random;
mod raw;
mod rig;
mod secrets;
