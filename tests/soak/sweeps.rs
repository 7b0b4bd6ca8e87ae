//! Pods come and go by the thousand while every second a sweep removes what nobody names any more, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join;

use crate::node::{DRIVER, Node, runtime};
use crate::soak::{Soak, api, create_volumes, node, numbered};
use crate::{Case, pods, size};

/// One life in so many meets a pod that wants the same volume.
const RIVALS_ONE_IN: usize = 8;

/// Between two lives of a volume's pods when there were enough.
const PACE_AFTERWARDS: Duration = Duration::from_secs(1);

pub fn cases() -> Vec<Case> {
    vec![("c12_c16_c20_c21_c22_sweeps_between_publishes_remove_what_nobody_names_and_nothing_else", cycles)]
}

fn cycles(name: &'static str) {
    let lives_min = size(256, 10_000);
    let others = numbered("other", size(10, 300));
    let used = numbered("used", pods::CALLS);
    let node = node();
    create_volumes(&node, &used);
    let soak = Soak::begin(name, node);
    let node = &soak.node;
    let (lives, are_gone) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = async |number: usize| {
        let handle = &used[number];
        let mut count = 0;
        // At least so many, and for as long as others come and go.
        while lives.load(Ordering::Relaxed) < lives_min || !are_gone.load(Ordering::Relaxed) {
            let pod = format!("{handle}-{count}");
            pods::start(node, handle, &pod).await;
            pods::write_line(node, &pod);
            if count % RIVALS_ONE_IN == 0 {
                pods::refused(node, handle, &format!("{pod}-rival")).await;
            }
            pods::end(node, handle, &pod).await;
            count += 1;
            if lives.fetch_add(1, Ordering::Relaxed) >= lives_min {
                tokio::time::sleep(PACE_AFTERWARDS).await;
            }
        }
        let expected: Vec<String> = (0..count).map(|number| format!("{handle}-{number}")).collect();
        assert_eq!(pods::lines(node, handle), expected, "the copy of {handle}");
    };
    let come_and_go = async {
        for (number, other) in others.iter().enumerate() {
            comes_and_goes(node, other, &used[number % used.len()]).await;
        }
        while node.names("copies").iter().any(|copy| others.contains(copy)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        are_gone.store(true, Ordering::Relaxed);
    };
    runtime().block_on(join(pods::each(used.len(), worker), come_and_go));
    println!("{name}: {} lives of pods, {} copies removed", lives.into_inner(), others.len());
    soak.end();
}

/// A volume that one pod uses before it is deleted, and a second name for one that stays in use.
async fn comes_and_goes(node: &Node, handle: &str, used: &str) {
    let twin = format!("{used}-too");
    api(node).store(|store| {
        store.create_volume(handle, DRIVER, handle).expect("a new volume");
        store.create_volume(&twin, DRIVER, used).expect("a second name");
    });
    pods::live(node, handle, &format!("{handle}-pod")).await;
    api(node).store(|store| {
        store.delete_volume(&twin).expect("the second name");
        store.delete_volume(handle).expect("the volume");
    });
}
