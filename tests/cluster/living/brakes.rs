//! The brakes (C26) as an operator meets them: a sweep that stops until a person confirms, copies that are kept, restored and
//! deleted by `kubectl per-node trash`, and a small data disk that fills up. The node tells of both in `kubectl describe node`.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use super::on_a_node;
use crate::case::{Case, broken};
use crate::cluster::cluster;
use crate::node::Node;
use crate::plugin;
use crate::tool::{tool, tool_json};
use crate::wait::{wait_for, wait_until};

/// Every pass that would remove anything stops, and what is removed is kept for longer than the case takes.
const FLAGS: [&str; 2] = ["--trash-for=1h", "--sweep-limit=0"];
const DISK_MIB: usize = 96;
/// Writes what is to be found again, with its sum beside it.
const WRITE: &str = "cd /data && head -c 1000000 /dev/urandom > file && sha256sum file > part && mv part sum";
const CHECK: &str = "cd /data && sha256sum -c sum";

/// A data disk of the node's own below its store: small, so that it can be filled, and gone with what was kept.
struct DataDisk(&'static Node);

impl DataDisk {
    fn mount(&self) {
        plugin::take_away(self.0);
        let size = format!("size={DISK_MIB}m");
        self.on_node(&["mount", "-t", "tmpfs", "-o", &size, "per-node-data", &self.0.store_path()]);
        plugin::add_flags(self.0, &FLAGS);
        plugin::bring_back(self.0);
    }

    fn unmount(&self) {
        plugin::take_away(self.0);
        self.on_node(&["umount", &self.0.store_path()]);
        plugin::remove_flags(self.0, FLAGS.len());
        plugin::bring_back(self.0);
    }

    fn on_node(&self, command: &[&str]) {
        cluster().call(&[&["in_node", self.0.number()], command].concat());
    }

    /// A path of the store, as the node sees it.
    fn path(&self, below: &str) -> PathBuf {
        self.0.inside(&self.0.store_path()).join(below)
    }
}

/// A volume with a copy that nobody holds. Gives back its handle.
fn written(case: &Case, node: &Node, disk: &DataDisk, suffix: &str) -> String {
    let handle = case.bound_volume(suffix, "ReadWriteMany");
    case.running_pod(suffix, node, &handle, WRITE);
    wait_until("the sum", || disk.path(&format!("copies/{handle}/sum")).exists());
    case.delete("pod", suffix);
    handle
}

/// What `kubectl describe node` has of an event of that reason.
fn described(node: &Node, reason: &str) -> Option<String> {
    let text = cluster().kubectl(&["describe", "node", node.name]);
    text.lines().find(|line| line.contains(reason)).map(str::to_owned)
}

fn wait_described(node: &Node, reason: &str) {
    let line = wait_for(&format!("the node's event {reason}"), || described(node, reason));
    println!("{line}");
    assert!(line.trim_start().starts_with("Warning") && line.contains("per-node.liken.sh"), "{line}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// `kubectl per-node trash` for this node. Holds its exit code to what is expected, and gives back what it said.
fn trash(node: &Node, words: &[&str], code: i32) -> String {
    let output = tool(&[&["trash"], words, &["--node", node.name]].concat());
    let said = text(&output);
    println!("{words:?}: {said}");
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

/// The handles that are kept there.
fn kept(node: &Node) -> Vec<String> {
    let list = tool_json(&["trash", "ls", "--node", node.name]);
    let handle = |kept: &Value| kept["handle"].as_str().unwrap_or_default().to_owned();
    let mut handles: Vec<String> =
        list["kept"].as_array().map(|kept| kept.iter().map(handle).collect()).unwrap_or_default();
    handles.sort();
    handles
}

/// Waits until a stopped sweep waits for these copies, and lets them go.
fn confirmed(node: &Node, handles: &[&str]) {
    wait_until("what waits to be shown", || {
        let output = tool(&["confirm", "--node", node.name, "--show"]);
        let said = text(&output);
        output.status.code() == Some(4) && handles.iter().all(|handle| said.contains(handle))
    });
    let output = tool(&["confirm", "--node", node.name, "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c26_a_stopped_sweep_is_confirmed_and_what_is_kept_is_restored_emptied_and_makes_room() {
    on_a_node("c26-brakes", |case, node| {
        let disk = DataDisk(node);
        broken(|| disk.mount(), || brakes(case, node, &disk), || disk.unmount());
    });
}

fn brakes(case: &Case, node: &Node, disk: &DataDisk) {
    let (kept_one, other) = (written(case, node, disk, "v"), written(case, node, disk, "w"));
    case.delete_volume(&kept_one);
    case.delete_volume(&other);
    wait_described(node, "PerNodeSweepStopped");
    confirmed(node, &[&kept_one, &other]);
    wait_until("both to be kept", || kept(node) == [kept_one.clone(), other.clone()]);
    assert!(!disk.path(&format!("copies/{kept_one}")).exists());
    trash(node, &["empty", &other, "--yes"], 0);
    wait_until("one to be kept", || kept(node) == [kept_one.clone()]);

    restored(case, node, disk, &kept_one);

    // Removed once more, and the disk fills up.
    case.delete_volume(&kept_one);
    confirmed(node, &[&kept_one]);
    wait_until("it to be kept again", || kept(node) == [kept_one.clone()]);
    let filler = disk.path("filler");
    std::fs::write(&filler, vec![0; (DISK_MIB - DISK_MIB / 16) << 20]).expect("the disk is filled");
    wait_until("room to be made", || kept(node).is_empty());
    wait_described(node, "PerNodeTrashEmptied");
    std::fs::remove_file(filler).expect("removed");
}

/// A restore is refused while no volume names the handle, and over the copy that a pod made meanwhile; then it is done.
fn restored(case: &Case, node: &Node, disk: &DataDisk, handle: &str) {
    let restore = ["restore", handle, "--yes"];
    let said = trash(node, &restore, 1);
    assert!(said.contains("no PersistentVolume names"), "{said}");
    assert_eq!(case.bound_volume("v", "ReadWriteMany"), handle);
    case.running_pod("early", node, handle, "touch /data/new");
    trash(node, &restore, 1);
    assert_eq!(kept(node), [handle]);
    case.delete("pod", "early");
    // As docs/operations.md says: that copy is moved out of the way.
    let copy = disk.path(&format!("copies/{handle}"));
    assert!(copy.join("new").exists() && !copy.join("sum").exists(), "a new copy was not empty");
    std::fs::rename(&copy, disk.path("moved-away")).expect("moved away");
    trash(node, &restore, 0);
    assert!(kept(node).is_empty());
    case.running_pod("late", node, handle, CHECK);
    wait_until("every byte to be there", || case.kubectl(&["logs", "late"]) == "file: OK\n");
    case.delete("pod", "late");
}
