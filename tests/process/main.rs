//! The binary as a process: how it starts, refuses to start, stops, dies and is followed (C40–C45). The mounts are
//! real; the API server is none, or one that nobody answers for.

mod host;
mod lifetime;
mod pages;
mod refuses_to_start;
#[path = "../registration/watcher.rs"]
mod watcher;
