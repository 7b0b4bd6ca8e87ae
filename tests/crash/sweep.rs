//! A sweep and the trash, killed at each step: the copy of a deleted volume is there whole or on its way out, and is
//! gone in the end; no other loses a byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::libc;
use tonic::Code;

use crate::Case;
use crate::node::Node;
use crate::registers;
use crate::sweep_of_steps::{Place, at_each, places};
use crate::tracer::{Denied, Kill, Traced, Treatment};

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        vec![("c23_c40_a_sweep_killed_at_any_step_loses_nothing_and_is_ended", || sweeps(&ROOM))];
    if registers::CAN_ANSWER {
        cases.push(("c23_a_deletion_in_place_killed_at_any_step_never_serves_half_a_copy", || sweeps(&FULL)));
    }
    cases
}

/// What a sweep finds.
struct Setting {
    title: &'static str,
    /// No directory takes another entry, so that nothing can be moved into the trash.
    is_full: bool,
}

const ROOM: Setting = Setting { title: "sweep and trash", is_full: false };
const FULL: Setting = Setting { title: "deletion in place", is_full: true };

fn treatment(kill: Kill, setting: &Setting) -> Treatment {
    let full = Denied { number: libc::SYS_renameat2, errno: libc::ENOSPC, counted_only: true };
    Treatment { kill, denied: setting.is_full.then_some(full).into_iter().collect(), from_the_start: false }
}

/// Every file of a copy and what is in it.
fn files(copy: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![copy.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(copy).expect("below").display().to_string();
                found.insert(name, fs::read_to_string(&path).expect("a file"));
            }
        }
    }
    found
}

/// A node with the copies of two volumes, from which its traced driver has come to rest.
fn at_rest(kill: Kill, setting: &Setting) -> (Node, Traced, BTreeMap<String, String>) {
    let node = Node::in_a_cluster(&["gone", "kept"]);
    let traced = node.start_traced(treatment(kill, setting));
    node.wait_served(&traced);
    node.wait_marked();
    for handle in ["gone", "kept"] {
        node.publish(handle, handle).expect("published");
        for file in ["one", "two", "sub/three"] {
            let path = node.target(handle).join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, file).expect("write");
        }
        node.unpublish(handle, handle).expect("unpublished");
    }
    traced.wait_quiet();
    let whole = files(&node.copy("gone"));
    (node, traced, whole)
}

fn delete_the_volume(node: &Node, traced: &Traced) {
    traced.count();
    let api = node.api.as_ref().expect("a cluster");
    api.store(|store| store.delete_volume("gone")).expect("it was there");
    let is_settled =
        || !node.copy("gone").exists() && node.names("trash").is_empty() && node.trash_records() == 0;
    node.eventually("the sweep", || traced.is_dead() || is_settled());
}

fn sweeps(setting: &Setting) {
    let (node, traced, _) = at_rest(Kill::Never, setting);
    delete_the_volume(&node, &traced);
    let steps = traced.steps();
    println!("steps: {}", steps.join(" "));
    let places = places(&steps);
    drop((traced, node));
    at_each(setting.title, &places, |place| sweep_killed(setting, place));
}

fn sweep_killed(setting: &Setting, place: Place) {
    let (node, traced, whole) = at_rest(place.kill, setting);
    delete_the_volume(&node, &traced);
    traced.kill();
    let driver = node.start_with(&[("PER_NODE_SWEEP_EVERY", "1s")]);
    // A volume of that name comes back before the next sweep: it finds all that was written, or nothing.
    match node.publish("gone", "next") {
        Ok(()) => {
            let found = files(&node.target("next"));
            assert!(found == whole || found.is_empty(), "half a copy is served: {found:?}");
            node.unpublish("gone", "next").expect("unpublished");
        }
        Err(status) => assert_eq!(status.code(), Code::Internal, "{status:?}"),
    }
    node.eventually("the copy to go", || !node.copy("gone").exists());
    node.eventually("the trash to be empty", || node.names("trash").is_empty());
    node.eventually("its records to go", || node.trash_records() == 0);
    assert_eq!(files(&node.copy("kept")), whole, "another copy lost something");
    assert_eq!(node.mounts(), ["kubelet"]);
    drop(driver);
}
