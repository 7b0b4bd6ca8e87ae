//! `kubectl per-node` as a process, against a fake API server: what it prints, its exit codes, the rights it needs, and what
//! it says of nodes that do not answer. Everything runs without privilege.

mod cluster;
mod completion;
mod confirm;
mod doctor;
mod manifest;
#[path = "../support/objects_api.rs"]
#[allow(dead_code)]
mod objects_api;
#[path = "../support/objects_exec.rs"]
mod objects_exec;
mod reach;
mod release;
mod rights;
#[path = "../support/rights_table.rs"]
#[allow(dead_code)]
mod rights_table;
mod status;
mod tool;
mod trash;
mod ui;
mod why;
