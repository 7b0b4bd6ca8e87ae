//! `per-node`: a CSI node plugin that gives one PersistentVolume one directory on each node it visits.
//!
//! # Where to begin
//!
//! The driver does one thing: it bind-mounts `<store>/copies/<handle>` at a pod's target, for one pod of a volume at a time, and
//! removes that directory when no PersistentVolume names the handle any more. Read in this order:
//!
//! 1. [`domain`] decides. [`domain::publish`], [`domain::unpublish`] and [`domain::sweep`] are pure functions from what was
//!    observed to what is to be done; [`domain::refusal`] is every "no". Nothing there names a runtime, a wire format, a client
//!    or a system call, and `tests/core` compiles it alone to prove that.
//! 2. [`domain::use_cases`] are the methods of [`Driver`](domain::use_cases::driver::Driver), which publishes and unpublishes, and
//!    of [`Sweeper`](domain::use_cases::sweeper::Sweeper), which removes. Each observes through ports, lets a decision be made,
//!    acts, and observes again, under one lock for each handle.
//! 3. [`ports`] are the six traits through which they reach the world, each with the errors that an adapter must give when.
//! 4. [`adapters`] implement them (`linux` for the kernel and the store, `kube` for the API server) and carry calls in (`csi`,
//!    `registration`, `http`, `console`, `cli`). They do not import one another.
//! 5. [`service`] puts a driver, its loops and its sockets together, for the binary and for the demonstration alike.
//!
//! # What it rests on
//!
//! Three truths are asked for, and nothing else: the kernel's mounts say who holds a copy, a proof from the API server says
//! whether a volume is gone ([`domain::proof`]), and the journal in the store says what a half-done publish had made. Whatever
//! the process keeps in memory can be lost at any instant.
//!
//! ARCHITECTURE.md has the map and the invariants, docs/contract.md the promises by their numbers (C1 …), which the names of
//! tests carry, and docs/decisions the reasons for what was hard.

#![deny(unsafe_code)]
// The documentation is built with private items: it is for whoever works on the code.
#![allow(rustdoc::private_intra_doc_links)]

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
