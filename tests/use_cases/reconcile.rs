//! C15, C16, C40: a start and every tick make the records agree with the kernel.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall};
use per_node::domain::holds::{Makes, TargetState};
use per_node::domain::mount_table::TargetView;

use crate::world::{World, h, io, pod, run};

/// A world whose pod `web-0` has a mount in the journal: its publish ended with an unknown outcome.
fn journalled() -> World {
    let world = World::new();
    world.node.gate().script(NodeCall::Attach, Fault::After(KernelFault::Lost));
    world.publish(&pod("web-0", "data")).unwrap_err();
    world
}

#[test]
fn c16_a_start_undoes_what_is_still_in_the_journal() {
    let world = journalled();
    let web = pod("web-0", "data");
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
    let world = world.restart();
    world.assert_nothing_at(&web);
    assert!(!world.has_copy("data"));
    world.publish(&pod("web-1", "data")).unwrap();
}

#[test]
fn c16_a_start_keeps_a_copy_that_was_there_before_or_has_bytes() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.unpublish(&first).unwrap();
    world.node.gate().script(NodeCall::Attach, Fault::After(KernelFault::Lost));
    world.publish(&first).unwrap_err();
    let world = world.restart();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
    let world = journalled();
    world.node.write(pod("web-0", "data").target(), "file", b"early").unwrap();
    let world = world.restart();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"early"[..]));
}

#[test]
fn c16_what_a_start_cannot_undo_the_next_tick_undoes() {
    let world = journalled();
    let web = pod("web-0", "data");
    world.node.set_busy(web.target(), true);
    let mut world = world.restart();
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
    let state = world.records.target(&web.target_path()).map(|record| record.state);
    assert_eq!(state, Some(TargetState::Attaching(Makes { copy: true, target: true })));
    world.node.set_busy(web.target(), false);
    world.tick();
    world.assert_nothing_at(&web);
}

#[test]
fn c16_a_journal_that_cannot_be_cleared_is_tried_again_at_the_next_pass_and_not_at_once() {
    let mut world = journalled().killed();
    world.node.set_read_only(true);
    world.driver.sweep_wanted().take();
    world.sweep();
    assert!(!world.driver.sweep_wanted().take(), "a pass that asks for the next one never rests");
    world.node.set_read_only(false);
    world.tick();
    world.assert_nothing_at(&pod("web-0", "data"));
}

#[test]
fn c15_a_start_drops_records_whose_mounts_are_gone_and_keeps_those_that_are_there() {
    let world = World::new();
    let (gone, there) = (world.running("web-0", "gone"), world.running("web-1", "there"));
    assert!(world.node.unmount(gone.target()));
    let world = world.restart();
    assert_eq!(world.records.target(&gone.target_path()), None);
    assert!(world.records.target(&there.target_path()).is_some());
    assert_eq!(world.node.view(gone.target()), TargetView::Directory { empty: true });
}

#[test]
fn c40_a_start_looks_again_at_those_targets_alone_whose_mounts_it_has_not_read_of() {
    let world = World::new();
    let (gone, _there) = (world.running("web-0", "gone"), world.running("web-1", "there"));
    assert!(world.node.unmount(gone.target()));
    world.node.gate().take_calls();
    let world = world.restart();
    let calls = world.node.gate().take_calls();
    assert_eq!(calls.iter().filter(|call| **call == NodeCall::Look).count(), 1, "{calls:?}");
}

#[test]
fn c15_a_start_fails_where_the_mounts_cannot_be_read() {
    let world = World::new();
    world.running("web-0", "data");
    let world = world.killed();
    world.node.gate().script(NodeCall::Table, io());
    assert!(run(world.driver.reconcile()).is_err());
    assert_eq!(world.records.targets_of(&h("data")).len(), 1);
}

#[test]
fn c16_a_target_whose_volume_the_kubelet_has_forgotten_is_unmounted_by_a_tick() {
    let mut world = World::new();
    let web = world.running("web-0", "data");
    world.tick();
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
    assert!(world.node.remove(format!("{}/vol_data.json", web.directory())));
    world.tick();
    world.assert_nothing_at(&web);
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c16_a_forgotten_target_is_unmounted_by_a_start() {
    let world = World::new();
    let web = world.running("web-0", "data");
    assert!(world.node.remove(format!("{}/vol_data.json", web.directory())));
    let world = world.restart();
    world.assert_nothing_at(&web);
}

#[test]
fn c16_where_nobody_can_tell_whether_it_is_forgotten_it_stays() {
    let mut world = World::new();
    let web = world.running("web-0", "data");
    world.node.gate().script(NodeCall::IsForgotten, io());
    world.tick();
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
}

#[test]
fn c16_only_targets_of_the_kubelets_shape_are_asked_for() {
    let mut world = World::new();
    let mut request = pod("web-0", "data").request();
    request.target_path = "/k/odd/mount".to_owned();
    world.node.make_directory("/k/odd");
    run(world.driver.publish(&request)).unwrap();
    world.node.bind_copy(&h("data"), false, "/mnt/operator");
    world.tick();
    assert!(matches!(world.node.view("/k/odd/mount"), TargetView::Mounted(_)));
    assert!(matches!(world.node.view("/mnt/operator"), TargetView::Mounted(_)));
}
