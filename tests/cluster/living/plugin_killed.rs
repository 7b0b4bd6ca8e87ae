//! The plugin is killed, restarted and upgraded (C32, C40).

use super::on_a_node;
use crate::case::Case;
use crate::cluster::cluster;
use crate::manifest;
use crate::node::{Mount, Node};
use crate::plugin;
use crate::wait::{KUBECTL_PATIENCE, becomes_true, number_from_env, wait_for, wait_until};
use crate::writer::Writer;

/// How often the plugin is killed during the churn; more by hand: `PER_NODE_KILLS=200`.
const KILLS: usize = 8;

/// How long the kubelet has for what it still knows of: its retries are two minutes apart at most.
const SETTLED_WITHIN_S: u64 = 150;

/// How many volumes the churn goes over.
const VOLUMES: usize = 3;

/// A small generator, so that a run can be told apart and repeated (`PER_NODE_SEED`).
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One step of the churn: the pod of a volume is made where there is none, else deleted, gently or by force.
fn churn(case: &Case, node: &Node, dice: &mut Dice, made: &mut u32) {
    let volume = dice.up_to(VOLUMES as u64);
    let handle = format!("{}-v{volume}", case.name);
    let pods = case.kubectl(&["get", "pods", "--selector", &format!("volume={volume}"), "--output=name"]);
    match pods.lines().next() {
        None => {
            *made += 1;
            let mut pod =
                manifest::pod(&format!("pod-{made}"), Some(node.name), &handle, "echo line >> /data/lines");
            pod["metadata"]["labels"]["volume"] = volume.to_string().into();
            case.apply(&pod);
        }
        Some(pod) if dice.up_to(3) == 0 => {
            case.kubectl(&["delete", pod, "--force", "--grace-period=0", "--ignore-not-found"]);
        }
        Some(pod) => {
            case.kubectl(&["delete", pod, "--wait=false", "--ignore-not-found"]);
        }
    }
}

/// A kubelet that looks again at a mounted volume just while the plugin is away, and then loses the pod, takes the refused
/// connection for a final answer and forgets the volume. Its own note stays beside the target: with that it finds the volume
/// when it starts again, and unmounts it. What has no such note no kubelet would ever find: that would be the driver's leak.
fn find_what_the_kubelet_forgot(node: &Node, left: &[Mount]) {
    for mount in left {
        let target = node.outside(&mount.target);
        assert!(target.with_file_name("vol_data.json").exists(), "nobody will ever unmount {mount:?}");
    }
    println!("the kubelet has forgotten {left:#?}");
    node.stop("kubelet", "TERM");
    node.start("kubelet");
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c40_killed_at_any_instant_of_a_churn_it_loses_and_leaks_nothing() {
    on_a_node("c40-killed", |case, node| {
        let writer = Writer::start(case, node);
        for volume in 0..VOLUMES {
            case.bound_volume(&format!("v{volume}"), "ReadWriteMany");
        }
        let seed = number_from_env("PER_NODE_SEED", 1);
        println!("seed {seed}");
        let (mut dice, mut made, mut killed) = (Dice(seed), 0, 0);
        while killed < number_from_env("PER_NODE_KILLS", KILLS) {
            for _ in 0..=dice.up_to(3) {
                churn(case, node, &mut dice, &mut made);
            }
            std::thread::sleep(std::time::Duration::from_millis(dice.up_to(900)));
            killed += usize::from(plugin::kill(node));
            for volume in 0..VOLUMES {
                let mounts = node.mounts_of(&format!("{}-v{volume}", case.name));
                assert!(mounts.len() <= 1, "C12: a second holder: {mounts:?}");
            }
        }
        plugin::wait_ready(node);
        writer.noticed_nothing();

        // Faults are over: every pod that is left can run once the others of its volume are gone.
        case.kubectl(&["delete", "pods", "--selector=volume", KUBECTL_PATIENCE]);
        let left = || -> Vec<_> {
            let handles = (0..VOLUMES).map(|volume| format!("{}-v{volume}", case.name));
            handles.flat_map(|handle| node.mounts_of(&handle)).collect()
        };
        if !becomes_true(SETTLED_WITHIN_S, || left().is_empty()) {
            find_what_the_kubelet_forgot(node, &left());
            wait_until("no mount to be left", || left().is_empty());
        }
        for volume in 0..VOLUMES {
            let handle = format!("{}-v{volume}", case.name);
            case.running_pod(&format!("last-{volume}"), node, &handle, "true");
        }
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c40_a_restart_and_an_upgrade_are_noticed_by_nobody() {
    on_a_node("c40-upgrade", |case, node| {
        let writer = Writer::start(case, node);
        let daemon_set = format!("daemonset/{}", node.daemon_set);
        let rolled = || {
            cluster().kubectl(&["--namespace=per-node", "rollout", "status", &daemon_set, KUBECTL_PATIENCE]);
            plugin::wait_ready(node);
        };
        cluster().kubectl(&["--namespace=per-node", "rollout", "restart", &daemon_set]);
        rolled();
        writer.noticed_nothing();

        cluster().call(&["upgrade_image"]);
        cluster().kubectl(&["--namespace=per-node", "set", "image", &daemon_set, "per-node=per-node:next"]);
        rolled();
        writer.noticed_nothing();
        let other = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("new", node, &other, "true");
        case.delete("pod", &writer.pod);
        cluster().kubectl(&["--namespace=per-node", "set", "image", &daemon_set, "per-node=per-node:test"]);
        rolled();
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c32_the_count_goes_on_over_a_restart() {
    on_a_node("c32-count", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "true");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
        let count = || {
            let events = case.events("waiter", "PerNodeVolumeHeld");
            assert!(events.len() <= 1, "a second line: {events:#?}");
            events.first().map_or(0, |event| event["count"].as_u64().unwrap_or(1))
        };
        let before = wait_for("three refusals", || Some(count()).filter(|count| *count >= 3));
        assert!(plugin::kill(node));
        // The kubelet's next tries come while the overlay's window is open.
        wait_until("the count to go on", || count() > before);
        let described = case.kubectl(&["describe", "pod", "waiter"]);
        let lines: Vec<_> = described.lines().filter(|line| line.contains("PerNodeVolumeHeld")).collect();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        case.delete("pod", "holder");
        case.wait_running("waiter");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c43_a_deleted_registration_socket_is_made_again() {
    on_a_node("c43-socket", |case, node| {
        let registry = node.kubelet_dir().join("plugins_registry");
        let sockets = || -> Vec<_> {
            let entries = std::fs::read_dir(&registry).expect("the registry");
            entries.map(|entry| entry.expect("an entry").path()).collect()
        };
        let before = sockets();
        assert_eq!(before.len(), 1, "{before:?}");
        std::fs::remove_file(&before[0]).expect("removed");
        wait_until("the socket", || sockets() == before);
        wait_until("the registration", || node.driver_is_registered());
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &handle, "true");
    });
}
