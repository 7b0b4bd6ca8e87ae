//! A cluster with very many PersistentVolumes, most of them other drivers'.

use std::time::Duration;

use crate::node::{DRIVER, runtime};
use crate::soak::{Soak, api, create_volumes, eventually, node, numbered};
use crate::{Case, pods, size};

/// One volume in so many is this driver's.
const OWN_ONE_IN: usize = 50;

pub fn cases() -> Vec<Case> {
    vec![("c21_c22_c27_c48_very_many_volumes_of_others_cost_neither_memory_nor_copies", volumes)]
}

fn volumes(name: &'static str) {
    let all = numbered("volume", size(600, 100_000));
    let used = numbered("used", size(8, pods::CALLS));
    let node = node();
    // So that a proof by the watch does not wait for a minute.
    api(&node).behave(|behaviour| behaviour.bookmark_every = Duration::from_millis(500));
    api(&node).store(|store| {
        for (number, handle) in all.iter().enumerate() {
            let driver = if number % OWN_ONE_IN == 0 { DRIVER } else { "other.example" };
            store.create_volume(handle, driver, handle).expect("a new volume");
        }
    });
    create_volumes(&node, &used);
    let soak = Soak::begin(name, node);
    let node = &soak.node;
    runtime().block_on(pods::each(used.len(), async |number| {
        for life in 0..size(2, 50) {
            pods::live(node, &used[number], &format!("pod-{number}-{life}")).await;
            // Somebody else's volume comes and another one goes, which is nothing to this driver.
            api(node).store(|store| {
                let other = format!("other-{number}-{life}");
                store.create_volume(&other, "other.example", &other).expect("a new volume");
                store.delete_volume(&other).expect("the volume");
            });
        }
    }));
    let (gone, stays) = used.split_at(used.len() / 2);
    api(node).store(|store| gone.iter().for_each(|handle| drop(store.delete_volume(handle))));
    eventually(|| node.names("copies").into_iter().filter(|copy| gone.contains(copy)).collect());
    let copies = node.names("copies");
    assert!(stays.iter().all(|handle| copies.contains(handle)), "{copies:?}");
    println!("{name}: {} PersistentVolumes, {} copies removed", all.len(), gone.len());
    soak.end();
}
