//! C23: the trash is emptied in the background, and after a restart, and never while somebody looks at it.

use per_node::adapters::memory::{Fault, KernelFault, MemoryCopies, NodeCall, errno};
use per_node::domain::trash::TrashId;
use per_node::domain::use_cases::trash::Drained;
use per_node::ports::copies::Copies;

use crate::world::{World, h, io, run};

/// A world with the copy of `data` in the trash, with a file in it.
fn discarded() -> (World, TrashId) {
    let world = World::new();
    world.node.put_copy(&h("data"), "file", b"old");
    let id = run(world.records.reserve_trash(&h("data"), None)).unwrap();
    run(MemoryCopies::new(&world.node).discard(&h("data"), id)).unwrap();
    (world, id)
}

#[test]
fn c23_a_restart_resumes_the_trash() {
    let (world, _) = discarded();
    let world = world.restart();
    assert_eq!(run(world.driver.drain_trash()), Drained { removed: 1, in_use: 0, stuck: 0, kept: 0 });
    assert_eq!(world.node.trash_ids(), []);
    assert_eq!(world.records.trash_records(), []);
}

#[test]
fn c23_what_a_mount_shows_stays_until_it_is_gone() {
    let world = World::new();
    world.node.put_copy(&h("data"), "file", b"old");
    world.node.bind_copy(&h("data"), true, "/mnt/operator");
    let id = run(world.records.reserve_trash(&h("data"), None)).unwrap();
    run(MemoryCopies::new(&world.node).discard(&h("data"), id)).unwrap();
    assert_eq!(run(world.driver.drain_trash()), Drained { removed: 0, in_use: 1, stuck: 0, kept: 0 });
    assert_eq!(world.node.read("/mnt/operator", "file").as_deref(), Some(&b"old"[..]));
    world.node.unmount("/mnt/operator");
    assert_eq!(run(world.driver.drain_trash()).removed, 1);
}

#[test]
fn c23_where_nobody_can_tell_who_uses_it_it_stays() {
    let (world, id) = discarded();
    world.node.gate().script(NodeCall::Table, io());
    assert_eq!(run(world.driver.drain_trash()), Drained { removed: 0, in_use: 0, stuck: 1, kept: 0 });
    assert_eq!(world.node.trash_ids(), [id]);
}

#[test]
fn c24_what_cannot_be_deleted_is_tried_again_and_the_rest_goes_on() {
    let (world, _) = discarded();
    world.node.put_copy(&h("more"), "fixed", b"1");
    world.node.set_undeletable(&h("more"), Some("fixed"));
    let id = run(world.records.reserve_trash(&h("more"), None)).unwrap();
    run(MemoryCopies::new(&world.node).discard(&h("more"), id)).unwrap();
    assert_eq!(run(world.driver.drain_trash()), Drained { removed: 1, in_use: 0, stuck: 1, kept: 0 });
    world.node.clear_undeletable();
    assert_eq!(run(world.driver.drain_trash()), Drained { removed: 1, in_use: 0, stuck: 0, kept: 0 });
    assert_eq!(world.records.trash_records(), []);
}

#[test]
fn c23_a_deletion_that_fails_is_tried_again() {
    for fault in [io(), Fault::After(KernelFault::Errno(errno::EIO)), Fault::After(KernelFault::Lost)] {
        let (world, _) = discarded();
        world.node.gate().script(NodeCall::Delete, fault);
        assert_eq!(run(world.driver.drain_trash()).removed, 0);
        let world = world.restart();
        run(world.driver.drain_trash());
        assert_eq!(world.node.trash_ids(), []);
        assert_eq!(world.records.trash_records(), []);
    }
}

#[test]
fn c23_an_entry_that_was_set_aside_for_nothing_is_forgotten_by_a_start() {
    let (world, id) = discarded();
    run(world.records.reserve_trash(&h("other"), None)).unwrap();
    let world = world.restart();
    assert_eq!(world.records.trash_records(), [(id, h("data"))]);
}
