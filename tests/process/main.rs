//! The binary as a process: how it starts, refuses to start, stops, dies and is followed (C40–C45). The mounts are
//! real; the API server is none, one that nobody answers for, or a fake. And what it may do and show: rights, system
//! calls, modes of what it makes, and its log (C6, C47).

#[path = "../support/api_routes.rs"]
mod api_routes;
#[allow(dead_code)]
#[path = "../support/api_server.rs"]
mod api_server;
#[allow(dead_code)]
#[path = "../support/api_store.rs"]
mod api_store;
#[path = "../support/api_watch.rs"]
mod api_watch;
mod confined;
#[allow(dead_code)]
#[path = "../support/file_system.rs"]
mod file_system;
mod file_systems;
mod host;
mod layouts;
mod lifetime;
mod logs;
mod ls;
#[cfg(feature = "kubectl")]
#[path = "../support/objects_api.rs"]
#[allow(dead_code)]
mod objects_api;
#[cfg(feature = "kubectl")]
#[path = "../support/objects_exec.rs"]
mod objects_exec;
mod pages;
mod refuses_to_start;
mod secrets;
#[cfg(feature = "kubectl")]
mod tool;
mod trash;
#[path = "../registration/watcher.rs"]
mod watcher;
