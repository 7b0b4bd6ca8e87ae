//! C20, C21, C23, C25: which copies go, when, and how.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, errno};
use per_node::domain::refusal::{PublishError, Refusal};
use per_node::domain::tally::SweepOutcome;

use crate::world::{Pod, SWEEP_EVERY, World, h, io, pod, poll, run};

/// A swept world with a volume `data`, whose pod has written and left.
fn left_behind() -> World {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    world
}

#[test]
fn c20_a_pod_that_goes_takes_nothing_with_it() {
    let mut world = left_behind();
    for _ in 0..3 {
        world.tick();
    }
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c20_the_deletion_of_the_volume_removes_the_copy_at_once() {
    let mut world = left_behind();
    world.delete_volume("data");
    world.sweep();
    assert!(!world.has_copy("data"));
    assert_eq!(world.node.trash_ids(), []);
    assert_eq!(world.records.trash_records(), []);
    assert_eq!(world.swept(SweepOutcome::Removed), 1);
}

#[test]
fn c21_a_deletion_raises_the_sweep_and_so_does_the_last_holder_of_an_orphan() {
    let mut world = left_behind();
    world.view.wake_on_deletion(std::sync::Arc::default());
    let web = world.running("web-1", "data");
    world.delete_volume("data");
    world.driver.sweep_wanted().take();
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::InUse), 1);
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-1"[..]));
    world.unpublish(&web).unwrap();
    assert!(world.driver.sweep_wanted().take());
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c21_the_last_holder_of_a_named_volume_wakes_no_sweep() {
    let world = left_behind();
    let web = world.running("web-1", "data");
    world.driver.sweep_wanted().take();
    world.unpublish(&web).unwrap();
    assert!(!world.driver.sweep_wanted().take());
}

#[test]
fn c21_a_terminating_volume_and_a_twin_still_name_their_handle() {
    let mut world = left_behind();
    world.api.terminate_volume("data");
    world.tick();
    world.tick();
    assert!(world.has_copy("data"));
    world.api.create_volume("twin", crate::world::DRIVER_NAME, &h("data"));
    world.delete_volume("data");
    world.tick();
    world.tick();
    assert!(world.has_copy("data"));
    world.delete_volume("twin");
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c21_another_drivers_volume_names_nothing_here() {
    let mut world = left_behind();
    world.api.create_volume("other", "another.driver", &h("data"));
    world.delete_volume("data");
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c21_a_volume_made_anew_with_the_same_handle_keeps_its_copy() {
    let mut world = left_behind();
    world.delete_volume("data");
    world.create_volume("data");
    world.tick();
    world.tick();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c15_c21_whatever_shows_an_orphan_keeps_it() {
    for (below, at) in [(true, "/k/pods/web-0-uid/volume-subpaths/data/main/0"), (false, "/mnt/operator")] {
        let mut world = left_behind();
        world.node.bind_copy(&h("data"), below, at);
        world.delete_volume("data");
        world.tick();
        world.tick();
        assert!(world.has_copy("data"), "{at}");
        assert!(world.swept(SweepOutcome::InUse) >= 2);
        assert!(world.node.unmount(at));
        world.tick();
        assert!(!world.has_copy("data"), "{at}");
    }
}

#[test]
fn c23_a_publish_that_comes_meanwhile_gets_a_new_empty_copy() {
    let mut world = left_behind();
    world.node.set_undeletable(&h("data"), Some("file"));
    world.delete_volume("data");
    world.sweep();
    assert_eq!(world.node.trash_ids().len(), 1);
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "file"), None);
    world.node.clear_undeletable();
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), []);
    assert!(world.has_copy("data"));
}

/// A sweep gets its proof while a publish is about to attach, which then ends as `look_again` has it.
fn swept_beside_a_publish(look_again: Option<Fault<KernelFault>>) -> (World, Pod, Result<(), PublishError>) {
    let mut world = left_behind();
    let web = pod("web-1", "data");
    world.prepare(&web);
    world.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    let (driver, request) = (world.driver.clone(), web.request());
    let mut publish = Box::pin(driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    world.delete_volume("data");
    let mut sweep = Box::pin(world.sweeper.step());
    assert!(poll(&mut sweep).is_pending(), "it has the proof, and waits for the lock");
    if let Some(fault) = look_again {
        world.node.gate().script(NodeCall::Look, fault);
    }
    world.node.gate().release_all();
    let published = run(publish);
    run(sweep);
    assert_eq!(world.swept(SweepOutcome::Disturbed), 1);
    (world, web, published)
}

#[test]
fn c23_a_removal_waits_for_the_publish_that_is_under_way() {
    let (world, web, published) = swept_beside_a_publish(None);
    published.unwrap();
    assert_eq!(world.node.read(web.target(), "file").as_deref(), Some(&b"web-0"[..]));
}

/// The copy is as it was before that publish, but the proof speaks of an instant before it.
#[test]
fn c22_a_proof_is_void_once_a_publish_that_was_under_way_has_failed() {
    let (world, _, published) = swept_beside_a_publish(Some(io()));
    published.unwrap_err();
    assert!(world.has_copy("data"));
}

#[test]
fn c23_without_space_for_a_rename_the_trash_is_drained_first() {
    let mut world = left_behind();
    world.create_volume("more");
    let web = world.running("web-1", "more");
    world.unpublish(&web).unwrap();
    world.node.set_undeletable(&h("more"), Some("file"));
    world.delete_volume("more");
    world.sweep();
    assert_eq!(world.node.trash_ids().len(), 1);
    world.node.clear_undeletable();
    world.node.set_available_bytes(0);
    world.delete_volume("data");
    world.calls();
    run(world.sweeper.step());
    let calls = world.calls();
    let discards = calls.iter().filter(|call| **call == NodeCall::Discard).count();
    assert_eq!(discards, 2, "{calls:?}");
    assert!(!calls.contains(&NodeCall::DeleteInPlace), "{calls:?}");
    assert!(!world.has_copy("data"));
}

#[test]
fn c23_where_no_space_comes_free_the_copy_is_deleted_in_place() {
    let mut world = left_behind();
    world.node.set_available_bytes(0);
    world.delete_volume("data");
    world.sweep();
    assert!(!world.has_copy("data"));
    assert!(world.calls().contains(&NodeCall::DeleteInPlace));
    assert_eq!(world.records.trash_records(), []);
    assert_eq!(world.swept(SweepOutcome::Removed), 1);
}

#[test]
fn c23_what_a_deletion_in_place_leaves_does_not_keep_the_copys_name() {
    let mut world = left_behind();
    let web = world.running("web-1", "data");
    world.node.write(web.target(), "fixed", b"1").unwrap();
    world.unpublish(&web).unwrap();
    world.node.set_undeletable(&h("data"), Some("fixed"));
    world.node.set_available_bytes(0);
    world.delete_volume("data");
    world.sweep();
    assert!(!world.has_copy("data"));
    assert_eq!(world.node.trash_ids().len(), 1);
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "fixed"), None);
}

#[test]
fn c23_any_other_failure_keeps_the_copy_for_the_next_tick() {
    for no in [errno::EPERM, errno::EBUSY, errno::EXDEV, errno::EIO] {
        let mut world = left_behind();
        world.node.gate().script(NodeCall::Discard, Fault::Before(KernelFault::Errno(no)));
        world.delete_volume("data");
        world.sweep();
        assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]), "errno {no}");
        assert_eq!(world.swept(SweepOutcome::Failed), 1);
        assert_eq!(world.records.trash_records(), [], "errno {no}");
        world.tick();
        assert!(!world.has_copy("data"), "errno {no}");
    }
}

#[test]
fn c23_a_rename_whose_outcome_is_unknown_loses_no_track_of_the_copy() {
    for acted in [false, true] {
        let mut world = left_behind();
        let fault = if acted { Fault::After(KernelFault::Lost) } else { Fault::Before(KernelFault::Lost) };
        world.node.gate().script(NodeCall::Discard, fault);
        world.delete_volume("data");
        run(world.sweeper.step());
        assert_eq!(world.records.trashed(&h("data")).len(), 1, "acted: {acted}");
        let mut world = world.restart();
        world.sweep();
        world.tick();
        assert!(!world.has_copy("data"));
        assert_eq!(world.records.trash_records(), [], "acted: {acted}");
    }
}

#[test]
fn c23_a_copy_that_is_a_mount_point_is_published_and_waits() {
    let mut world = left_behind();
    world.node.mount_foreign("/store/copies/data");
    world.delete_volume("data");
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Failed), 1);
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    world.unpublish(&web).unwrap();
    assert!(world.node.unmount("/store/copies/data"));
    world.tick();
    world.tick();
    assert!(!world.has_copy("data"));
}

#[test]
fn c24_what_cannot_be_deleted_keeps_no_other_copy() {
    let mut world = left_behind();
    world.create_volume("other");
    let web = world.running("web-1", "other");
    world.unpublish(&web).unwrap();
    world.node.set_immutable(&h("data"), true);
    world.delete_volume("data");
    world.delete_volume("other");
    world.sweep();
    assert!(world.has_copy("data") && !world.has_copy("other"));
    assert_eq!((world.swept(SweepOutcome::Failed), world.swept(SweepOutcome::Removed)), (1, 1));
}

#[test]
fn c25_strangers_are_left_alone_and_counted() {
    let mut world = left_behind();
    world.node.put_stranger("lost+found");
    world.node.put_stranger("a-file");
    world.node.put_stranger_symlink("a-link");
    world.tick();
    world.tick();
    assert_eq!(world.node.copy_names(), ["a-file", "a-link", "data", "lost+found"]);
    let strangers = world.driver.tally().strangers.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(strangers, 3);
}

#[test]
fn c21_a_tick_comes_by_itself() {
    let mut world = left_behind();
    let delay = world.tick();
    assert_eq!(delay, SWEEP_EVERY);
    world.clock.advance(SWEEP_EVERY / 3);
    assert_eq!(world.sweep(), SWEEP_EVERY - SWEEP_EVERY / 3);
}

#[test]
fn c23_a_held_orphan_is_refused_to_a_second_pod_as_any_other() {
    let mut world = left_behind();
    world.running("web-1", "data");
    world.delete_volume("data");
    world.tick();
    let second = pod("web-2", "data");
    assert!(matches!(world.refused(&second, &second.request()).0, Refusal::Held { .. }));
}

#[test]
fn c22_copies_that_cannot_be_listed_are_not_swept() {
    let mut world = left_behind();
    world.delete_volume("data");
    world.node.gate().script(NodeCall::ListCopies, io());
    world.sweep();
    assert!(world.has_copy("data"));
    world.clock.advance(SWEEP_EVERY);
    world.node.gate().script(NodeCall::Table, Fault::None);
    world.node.gate().script(NodeCall::Table, io());
    world.sweep();
    assert!(world.has_copy("data"));
}
