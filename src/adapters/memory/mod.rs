//! In-memory twins of every port, with the semantics of the kernel and of the API server, for tests and the
//! demonstration. They can be told to fail before acting, to fail after it, or to hang; they pause where the
//! real ones do, so that a seeded scheduler can interleave them. They know no runtime and no real file.
//!
//! A [`Node`] is one machine: mounts, target directories and a store; it outlives any number of processes.
//! An [`ApiServer`] is one cluster. A process gets its ports from [`ports`].

mod api_server;
mod clock;
mod cluster;
mod copies;
mod events;
mod gate;
mod kernel_fault;
mod mounts;
mod node;
mod on_disk;
mod records;
mod world;

use std::sync::Arc;

pub use api_server::{ApiServer, Backup};
pub use clock::SteppedClock;
pub use cluster::{ClusterCall, ClusterView};
pub use copies::MemoryCopies;
pub use events::{EventCall, MemorySink, StoredEvent};
pub use gate::{Fault, Gate, Plan};
pub use kernel_fault::{KernelFault, errno};
pub use mounts::MemoryMounts;
pub use node::{Node, NodeCall, NodeGate, WriteError};
pub use records::MemoryRecords;

use crate::domain::use_cases::driver::Ports;

/// The ports of a process that starts now on `node`: it reads the store's records anew.
pub fn ports(node: &Node, api: &ApiServer, cluster: Option<Arc<ClusterView>>, clock: &SteppedClock) -> Ports {
    Ports {
        mounts: Arc::new(MemoryMounts::new(node)),
        copies: Arc::new(MemoryCopies::new(node)),
        records: Arc::new(MemoryRecords::open(node)),
        clock: Arc::new(clock.clone()),
        sink: Arc::new(MemorySink::new(api)),
        cluster: cluster.map(|view| view as Arc<dyn crate::ports::cluster::Cluster>),
    }
}

/// A lock that a panicking test leaves usable; no lock here is held over an await.
fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod node_tests;
