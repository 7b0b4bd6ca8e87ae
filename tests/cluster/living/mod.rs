//! Living on a node: the plugin killed, upgraded and taken away; kubelet, containerd and API server restarted; a node without
//! power; an etcd that forgets. Pods write checksummed blocks all the while.
//!
//! Each case disturbs the whole cluster, so they run one after another (`run` sees to that).

mod burst;
mod control_plane;
mod node_services;
mod plugin_away;
mod plugin_killed;
mod reboot;
