//! C23: a copy that is deleted in its place, because the disk is full, is never served again, however the deletion ends.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, Plan, errno};
use per_node::domain::refusal::{FailedStep, Refusal};
use per_node::domain::tally::SweepOutcome;

use crate::world::{World, h, io, pod, poll, run};

/// More awaits than a sweep has.
const AWAITS_MAX: u32 = 200;

/// A full world whose volume `data` has been deleted, with two files in its copy, one of which resists.
fn full() -> World {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.node.write(web.target(), "fixed", b"1").unwrap();
    world.unpublish(&web).unwrap();
    world.sweep();
    world.node.set_undeletable(&h("data"), Some("fixed"));
    world.node.set_available_bytes(0);
    world.delete_volume("data");
    world
}

/// The same after a sweep that could neither delete it whole nor move what was left.
fn half_deleted() -> World {
    let mut world = full();
    for fault in [Fault::None, Fault::None, Fault::Before(KernelFault::Errno(errno::EIO))] {
        world.node.gate().script(NodeCall::Discard, fault);
    }
    run(world.sweeper.step());
    assert_eq!(world.swept(SweepOutcome::Failed), 1);
    assert_eq!((world.file("data", "file"), world.file("data", "fixed")), (None, Some(b"1".to_vec())));
    world
}

#[test]
fn c23_half_a_copy_is_not_served() {
    for restarts in [false, true] {
        let world = if restarts { half_deleted().restart() } else { half_deleted() };
        let web = pod("web-1", "data");
        world.publish(&web).unwrap();
        assert_eq!(world.node.read(web.target(), "fixed"), None, "restarts: {restarts}");
        world.node.write(web.target(), "new", b"2").unwrap();
        let world = world.restart();
        assert_eq!(
            world.file("data", "new").as_deref(),
            Some(&b"2"[..]),
            "and the new one is not taken for it"
        );
    }
}

#[test]
fn c23_where_half_a_copy_cannot_leave_its_place_nothing_is_published() {
    let world = half_deleted().restart();
    world.node.set_available_bytes(0);
    let web = pod("web-1", "data");
    world.prepare(&web);
    let (refusal, _) = world.refused(&web, &web.request());
    assert!(matches!(refusal, Refusal::Failed(FailedStep::MakeCopy { .. })), "{refusal:?}");
    world.assert_nothing_at(&web);
    world.node.clear_undeletable();
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "fixed"), None);
}

#[test]
fn c23_half_a_copy_goes_at_the_next_tick_also_after_its_volume_came_back() {
    let mut world = half_deleted().restart();
    world.create_volume("data");
    world.tick();
    run(world.driver.drain_trash());
    assert!(!world.has_copy("data"));
    assert_eq!(world.records.condemned(), []);
}

#[test]
fn c23_what_somebody_else_put_in_its_place_is_served() {
    let world = half_deleted();
    assert!(world.node.remove_copy(&h("data")));
    world.node.put_copy(&h("data"), "file", b"restored");
    let world = world.restart();
    run(world.driver.drain_trash());
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "file").as_deref(), Some(&b"restored"[..]));
}

#[test]
fn c23_half_a_copy_that_a_mount_shows_stays_until_that_has_gone() {
    let world = half_deleted().restart();
    assert!(world.node.bind_copy(&h("data"), false, "/mnt/operator"));
    run(world.driver.drain_trash());
    assert!(world.has_copy("data"));
    world.node.unmount("/mnt/operator");
    run(world.driver.drain_trash());
    assert!(!world.has_copy("data"));
}

#[test]
fn c23_nothing_is_deleted_in_its_place_before_that_is_on_record() {
    for fault in [io(), Fault::After(KernelFault::Errno(errno::EIO)), Fault::After(KernelFault::Lost)] {
        let mut world = full();
        world.node.gate().script(NodeCall::Condemn, fault.clone());
        run(world.sweeper.step());
        assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]), "{fault:?}");
        // What may have been written was taken back: the copy lives on, also in the next process.
        let web = pod("web-1", "data");
        world.publish(&web).unwrap();
        world.node.write(web.target(), "new", b"2").unwrap();
        world.unpublish(&web).unwrap();
        let world = world.restart();
        run(world.driver.drain_trash());
        assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]), "{fault:?}");
        assert_eq!(world.file("data", "new").as_deref(), Some(&b"2"[..]), "{fault:?}");
    }
}

#[test]
fn c23_a_copy_that_may_be_condemned_is_not_published_before_that_is_known() {
    let mut world = full();
    world.node.gate().script(NodeCall::Condemn, Fault::After(KernelFault::Lost));
    world.node.gate().script(NodeCall::Acquit, io());
    run(world.sweeper.step());
    let web = pod("web-1", "data");
    world.prepare(&web);
    world.node.gate().script(NodeCall::Acquit, io());
    let (refusal, _) = world.refused(&web, &web.request());
    assert!(matches!(refusal, Refusal::Failed(FailedStep::MakeCopy { .. })), "{refusal:?}");
    world.assert_nothing_at(&web);
    run(world.driver.drain_trash());
    world.publish(&web).unwrap();
    let world = world.restart();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c23_c40_a_deletion_in_place_killed_at_any_await_never_serves_half_a_copy() {
    for awaits in 1..AWAITS_MAX {
        let mut world = full();
        world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
        let ended = {
            let mut step = Box::pin(world.sweeper.step());
            (0..awaits).any(|_| poll(&mut step).is_ready())
        };
        let world = world.restart();
        let web = pod("web-1", "data");
        world.node.set_available_bytes(1 << 20);
        world.publish(&web).unwrap();
        let found = (world.node.read(web.target(), "file"), world.node.read(web.target(), "fixed"));
        assert_eq!(found.0.is_some(), found.1.is_some(), "half a copy after {awaits}: {found:?}");
        if ended {
            return;
        }
    }
    panic!("the sweep never ends");
}
