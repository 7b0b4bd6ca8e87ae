//! Living on a node: the plugin killed, upgraded and taken away; kubelet, containerd and API server restarted; a node without
//! power; an etcd that forgets; a right that is gone. Pods write checksummed blocks all the while.
//!
//! Each case disturbs a node, or the whole cluster, and has it for itself meanwhile; cases on two nodes run side by side.

mod burst;
mod control_plane;
mod killed_between;
mod node_services;
mod plugin_away;
mod plugin_killed;
mod reboot;
mod rights;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::case::{Case, run};
use crate::cluster::cluster;
use crate::node::Node;

/// Who disturbs what at this moment.
#[derive(Default)]
struct Disturbed {
    /// One for each of `Cluster::nodes`.
    nodes: [bool; 2],
    /// Cases that want all of it: while there is one no other begins.
    wanted_whole: usize,
}

static DISTURBED: Mutex<Disturbed> = Mutex::new(Disturbed { nodes: [false; 2], wanted_whole: 0 });
static CHANGED: Condvar = Condvar::new();

fn disturbed() -> MutexGuard<'static, Disturbed> {
    // A case that fails says so by itself; the next one finds the flags as its guard left them.
    DISTURBED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a case has for itself until this is dropped.
struct Mine([bool; 2]);

impl Mine {
    /// Whichever node is free first: both are to serve every case, and differ in their paths.
    fn node() -> (Self, &'static Node) {
        let busy = |now: &mut Disturbed| now.wanted_whole > 0 || now.nodes == [true; 2];
        let mut now = CHANGED.wait_while(disturbed(), busy).unwrap_or_else(PoisonError::into_inner);
        let free = usize::from(now.nodes[0]);
        let mut mine = [false; 2];
        mine[free] = true;
        now.nodes[free] = true;
        (Self(mine), cluster().nodes()[free])
    }

    fn whole() -> Self {
        let mut now = disturbed();
        now.wanted_whole += 1;
        let busy = |now: &mut Disturbed| now.nodes != [false; 2];
        now = CHANGED.wait_while(now, busy).unwrap_or_else(PoisonError::into_inner);
        now.wanted_whole -= 1;
        now.nodes = [true; 2];
        Self([true; 2])
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let mut now = disturbed();
        for (node, mine) in now.nodes.iter_mut().zip(self.0) {
            *node &= !mine;
        }
        CHANGED.notify_all();
    }
}

/// Runs a case that disturbs one node, whichever that is.
fn on_a_node(name: &str, body: impl FnOnce(&Case, &'static Node)) {
    let (_mine, node) = Mine::node();
    println!("on {}", node.name);
    run(name, |case| body(case, node));
}

/// Runs a case that disturbs the whole cluster.
fn alone(name: &str, body: impl FnOnce(&Case)) {
    let _mine = Mine::whole();
    run(name, body);
}
