//! The driver judged by a real cluster: etcd, kube-apiserver, scheduler, controller manager and, for each of two nodes, a
//! kubelet and a containerd, started by `tests/cluster/run`.
//!
//! Every case does what a user would do with kubectl and looks at what a user, an operator or the kernel would see: objects,
//! events, the node's mount table and its disk. None of them reaches into the driver.
//!
//! Ignored by default: they need root and the cluster. `tests/cluster/run` starts one, runs them all and ends it;
//! `tests/cluster/run cases FILTER` runs some of them in a cluster that is up.

mod api;
mod case;
mod cluster;
#[path = "../browser/devtools.rs"]
#[allow(dead_code)]
mod devtools;
mod manifest;
mod node;
mod plugin;
#[path = "../support/rights_table.rs"]
mod rights_table;
mod room;
mod tool;
mod wait;
mod writer;

#[path = "../support/markdown.rs"]
mod markdown;

mod living;
mod page;
mod whole;
