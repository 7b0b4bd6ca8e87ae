//! Many pods on the node at once, each with a volume of its own.

use crate::node::runtime;
use crate::soak::{Soak, create_volumes, node, numbered};
use crate::{Case, pods, size};

pub fn cases() -> Vec<Case> {
    vec![("c14_c15_c16_many_pods_at_once_leave_nothing", crowd)]
}

fn crowd(name: &'static str) {
    let handles = numbered("crowd", size(64, 1_000));
    let soak = Soak::begin(name, node());
    round(&soak, &handles);
    // The files of records have grown to what so many pods need, and keep that space for the next time.
    let soak = soak.begun_again();
    round(&soak, &handles);
    soak.end();
}

/// All start, all are there, all end, and their volumes are deleted.
fn round(soak: &Soak, handles: &[String]) {
    let node = &soak.node;
    create_volumes(node, handles);
    let pod = |number: usize| format!("{}-pod", handles[number]);
    runtime().block_on(pods::each(handles.len(), async |number| {
        pods::start(node, &handles[number], &pod(number)).await;
        pods::write_line(node, &pod(number));
    }));
    // And that of the kubelet's directory.
    assert_eq!(node.mounts().len(), handles.len() + 1);
    assert_eq!(node.target_records().len(), handles.len());
    runtime().block_on(pods::each(handles.len(), async |number| {
        pods::refused(node, &handles[number], &format!("rival-{number}")).await;
    }));
    let there = soak.picture();
    println!("{} pods at once: {} KiB resident, {} threads", handles.len(), there.rss_kib, there.threads);
    runtime().block_on(pods::each(handles.len(), async |number| {
        pods::end(node, &handles[number], &pod(number)).await;
    }));
    soak.delete_volumes();
}
