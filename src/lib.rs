//! `per-node`: a CSI node plugin that gives one PersistentVolume one directory on each node it visits.
//!
//! The core is in [`domain`]; it reaches the world through the traits of [`ports`]; `adapters` implement
//! them and carry calls in. See ARCHITECTURE.md.

pub mod adapters;
#[cfg(feature = "demo")]
pub mod demo;
pub mod domain;
pub mod ports;
pub mod proto;
pub mod service;
