//! `per-node`: a CSI node plugin that gives one PersistentVolume one directory on each node it visits.
//!
//! The core is in [`domain`]; it reaches the world through the traits of [`ports`]; `adapters` implement
//! them and carry calls in. See ARCHITECTURE.md.

#![deny(unsafe_code)]

pub mod adapters;
#[cfg(feature = "demo")]
#[forbid(unsafe_code)]
pub mod demo;
#[forbid(unsafe_code)]
pub mod domain;
#[forbid(unsafe_code)]
pub mod ports;
#[forbid(unsafe_code)]
pub mod proto;
#[forbid(unsafe_code)]
pub mod service;
