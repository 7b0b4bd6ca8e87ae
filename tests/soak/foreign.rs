//! Mounts that are none of the driver's, by the thousand, made and unmade while pods come and go.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::node::{Node, runtime};
use crate::soak::{Soak, create_volumes, node, numbered};
use crate::{Case, pods, size};

pub fn cases() -> Vec<Case> {
    vec![("c15_c17_c19_foreign_mounts_that_come_and_go_are_left_alone", foreign)]
}

fn foreign(name: &'static str) {
    let count = size(300, 10_000);
    let lives_min = size(2, 100);
    let handles = numbered("volume", size(4, 16));
    let node = node();
    create_volumes(&node, &handles);
    let points = numbered("mount", count);
    for point in &points {
        fs::create_dir(node.path("elsewhere").join(point)).expect("mkdir");
    }
    let soak = Soak::begin(name, node);
    let node = &soak.node;
    let lives = |while_so: &AtomicBool| {
        runtime().block_on(pods::each(handles.len(), async |number| {
            let mut life = 0;
            while life < lives_min || while_so.load(Ordering::Relaxed) {
                pods::live(node, &handles[number], &format!("pod-{number}-{life}")).await;
                life += 1;
            }
        }));
    };
    while_true(&lives, || bind(node, &points));
    assert_eq!(node.mounts().len(), count + 1);
    lives(&AtomicBool::new(false));
    assert_eq!(node.mounts().len(), count + 1, "no foreign mount was touched");
    while_true(&lives, || unbind(node, &points));
    println!("{name}: {count} foreign mounts");
    soak.end();
}

/// Does `work` on a thread, and tells `beside` while it is under way.
fn while_true(beside: &impl Fn(&AtomicBool), work: impl FnOnce() + Send) {
    let is_under_way = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            work();
            is_under_way.store(false, Ordering::Relaxed);
        });
        beside(&is_under_way);
    });
}

fn bind(node: &Node, points: &[String]) {
    for point in points {
        mount_bind(node.path("elsewhere"), node.path("elsewhere").join(point)).expect("a bind");
    }
}

fn unbind(node: &Node, points: &[String]) {
    for point in points {
        unmount(node.path("elsewhere").join(point), UnmountFlags::NOFOLLOW).expect("an unmount");
    }
}
