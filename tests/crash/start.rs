//! A start, killed at each step: of an empty store, and of a store on which everything was left that a kill can leave.

use std::fs;

use per_node::domain::handle::Handle;
use per_node::ports::records::Records;

use crate::Case;
use crate::node::{DRIVER, Node, runtime};
use crate::registers;
use crate::stage::{NEW, STAGED, Setting, Stage};
use crate::sweep_of_steps::{Place, at_each, places};
use crate::tracer::{Kill, Traced, Treatment};
use crate::watcher::{Did, PluginWatcher, Script};

/// Of the writes that set space aside one in so many is a place to die at: they are all alike.
const ALIKE: usize = 256;

pub fn cases() -> Vec<Case> {
    vec![
        ("c40_the_first_start_killed_at_any_step_is_ended_by_the_next", first_starts),
        ("c16_c40_a_start_after_a_kill_killed_at_any_step_is_ended_by_the_next", later_starts),
    ]
}

fn from_the_start(kill: Kill) -> Treatment {
    Treatment { kill, denied: Vec::new(), from_the_start: true }
}

/// Waits until the driver died where it was to, or has come to rest without having met the place.
fn dies_or_rests(node: &Node, traced: &Traced) {
    node.wait_served(traced);
    traced.dies_or_rests();
}

/// The kubelet's double takes the driver in.
fn is_registered(node: &Node) {
    runtime().block_on(async {
        let mut kubelet = PluginWatcher::start(&node.path("kubelet/plugins_registry"), &Script::default());
        loop {
            match kubelet.next().await {
                Did::Registered(info) => {
                    assert_eq!(info.name, DRIVER);
                    return;
                }
                // A socket that a killed driver left, which the living one replaces.
                Did::CouldNotAsk(_) | Did::Deregistered => {}
                Did::Refused(why) => panic!("nothing refuses it: {why}"),
            }
        }
    });
}

fn first_starts() {
    let learnt = Node::in_a_cluster(&["data"]);
    let traced = learnt.start_traced(from_the_start(Kill::Never));
    dies_or_rests(&learnt, &traced);
    let steps = traced.steps();
    let all = places(&steps);
    let is_tried = |(number, place): &(usize, Place)| place.name != "pwrite64" || number % ALIKE < 3;
    let tried: Vec<Place> = all.into_iter().enumerate().filter(is_tried).map(|(_, place)| place).collect();
    println!("steps: {}, of which {} are tried", steps.len(), tried.len());
    drop((traced, learnt));
    at_each("first start", &tried, |place| {
        let node = Node::in_a_cluster(&["data"]);
        let traced = node.start_traced(from_the_start(place.kill));
        dies_or_rests(&node, &traced);
        let _driver = node.start();
        is_registered(&node);
        assert_eq!(node.names(""), ["console.sock", "copies", "holds", "lock", "trash"]);
        node.publish("data", "pod").expect("published");
        fs::write(node.target("pod").join("file"), "x").expect("the pod can write");
        node.unpublish("data", "pod").expect("unpublished");
        assert_eq!(fs::read(node.copy("data").join("file")).expect("the copy stays"), b"x");
        assert_eq!(node.mounts(), ["kubelet"]);
        assert_eq!((node.names("trash"), node.target_records()), (vec![], vec![]));
    });
}

/// Who attaches on a kernel without the newer calls, with more that a kill can leave.
fn setting() -> &'static Setting {
    if registers::CAN_ANSWER { &STAGED } else { &NEW }
}

/// A node on which a process was killed in the middle of a publish, with all that a kill can leave: staging mounts, a
/// mount in the journal, directories without a name, a trash entry half deleted, one that was set aside for nothing, and
/// a pod whose volume the kubelet has forgotten.
fn left_behind(attach: Kill) -> Stage {
    let stage = Stage::on(Node::in_a_cluster(&["data", "other", "third"]), attach, setting());
    let node = &stage.node;
    node.publish("third", "forgotten").expect("published");
    stage.traced.count();
    node.publish("data", "pod").expect_err("the driver died before it answered");
    stage.traced.wait_dead();
    assert_eq!(node.mounts_at("pod"), 1, "{:?}", stage.traced.steps());
    let volume = node.target("forgotten").parent().expect("a parent").to_owned();
    fs::remove_file(volume.join("vol_data.json")).expect("the kubelet forgets it");
    let records = node.records();
    let gone = Handle::parse("gone").expect("a handle");
    let [id, _] = [(); 2].map(|()| runtime().block_on(records.reserve_trash(&gone, None)).expect("a record"));
    for directory in [format!("{id}/a/b"), "n7".to_owned()] {
        fs::create_dir_all(node.path("store/trash").join(directory)).expect("mkdir");
    }
    fs::write(node.path("store/trash").join(id.to_string()).join("a/file"), "x").expect("write");
    stage
}

/// Right after the step that attaches.
fn attaching() -> Kill {
    let learnt = Stage::new(Kill::Never, setting());
    learnt.traced.count();
    learnt.node.publish("data", "pod").expect("published");
    let steps = learnt.traced.steps();
    let attaches = |name: &&&str| matches!(**name, "mount" | "move_mount");
    let last = *steps.iter().rfind(attaches).expect("an attach");
    Kill::AfterNamed(last, steps.iter().filter(|name| **name == last).count() - 1)
}

fn later_starts() {
    let attach = attaching();
    let learnt = left_behind(attach);
    let traced = learnt.node.start_traced(from_the_start(Kill::Never));
    dies_or_rests(&learnt.node, &traced);
    let steps = traced.steps();
    println!("steps: {}", steps.join(" "));
    let all = places(&steps);
    drop((traced, learnt));
    at_each("start after a kill", &all, |place| {
        let stage = left_behind(attach);
        let node = &stage.node;
        let traced = node.start_traced(from_the_start(place.kill));
        dies_or_rests(node, &traced);
        let _driver = node.start();
        node.eventually("the trash to be empty", || node.names("trash").is_empty());
        node.eventually("its records to go", || node.trash_records() == 0);
        stage.is_as_before(&NEW);
        // Not by way of `Node::target`, which lets the kubelet know the volume again.
        let forgotten = node.path("kubelet/pods/forgotten/volumes/kubernetes.io~csi/pv/mount");
        assert!(!forgotten.exists());
        is_registered(node);
        node.publish("data", "pod").expect("published");
        stage.bystander_noticed_nothing();
    });
}
