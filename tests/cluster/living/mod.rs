//! Living on a node: the plugin killed, upgraded and taken away; kubelet and containerd restarted; a node without power; many
//! pods at once. Pods write checksummed blocks all the while.
//!
//! Each case disturbs a node and has it for itself meanwhile; cases on two nodes run side by side.

mod brakes;
mod burst;
mod killed_between;
mod node_services;
mod plugin_away;
mod plugin_killed;
pub mod reboot;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::case::{Case, run};
use crate::cluster::cluster;
use crate::node::Node;

/// Which of `Cluster::nodes` a case disturbs at this moment.
static DISTURBED: Mutex<[bool; 2]> = Mutex::new([false; 2]);
static CHANGED: Condvar = Condvar::new();

fn disturbed() -> MutexGuard<'static, [bool; 2]> {
    // A case that fails says so by itself; the next one finds the flags as its guard left them.
    DISTURBED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The node that a case has for itself until this is dropped.
struct Mine(usize);

impl Mine {
    /// Whichever is free first: both are to serve every case, and differ in their paths.
    fn take() -> Self {
        let all_taken = |nodes: &mut [bool; 2]| *nodes == [true; 2];
        let mut nodes = CHANGED.wait_while(disturbed(), all_taken).unwrap_or_else(PoisonError::into_inner);
        let free = usize::from(nodes[0]);
        nodes[free] = true;
        Self(free)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        disturbed()[self.0] = false;
        CHANGED.notify_all();
    }
}

/// Runs a case that disturbs one node, whichever that is.
fn on_a_node(name: &str, body: impl FnOnce(&Case, &'static Node)) {
    let mine = Mine::take();
    let node = cluster().nodes()[mine.0];
    println!("on {}", node.name);
    run(name, |case| body(case, node));
}
