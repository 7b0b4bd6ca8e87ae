//! What the driver tells of its work: signals to its loops, and numbers for the operator (C45).

use std::sync::atomic::Ordering;

use per_node::adapters::memory::{Fault, MemoryCopies, NodeCall};
use per_node::ports::copies::Copies;

use crate::world::{World, h, io, pod, poll, run};

#[test]
fn c30_a_refusal_wakes_the_loop_that_posts_events() {
    let world = World::new();
    world.running("web-0", "data");
    assert!(!world.driver.events_wanted().take());
    let second = pod("web-1", "data");
    world.refused(&second, &second.request());
    assert!(world.driver.events_wanted().take());
}

#[test]
fn c23_a_removal_wakes_the_loop_that_empties_the_trash_and_so_does_who_looked_at_it_last() {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    assert!(!world.driver.trash_wanted().take(), "there is nothing in it");
    world.delete_volume("data");
    run(world.sweeper.step());
    assert!(world.driver.trash_wanted().take());
    run(world.driver.drain_trash());
    // A person moved a copy there that a pod still has.
    let web = world.running("web-1", "data");
    let id = run(world.records.reserve_trash(&h("data"), None)).unwrap();
    run(MemoryCopies::new(&world.node).discard(&h("data"), id)).unwrap();
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), [id]);
    world.unpublish(&web).unwrap();
    assert!(world.driver.trash_wanted().take());
}

#[test]
fn c22_a_store_is_new_until_it_has_a_copy_a_trash_entry_or_a_marker() {
    let world = World::new();
    assert!(run(world.driver.store_is_new()));
    world.node.put_copy(&h("data"), "file", b"1");
    assert!(!run(world.driver.store_is_new()));
    let id = run(world.records.reserve_trash(&h("data"), None)).unwrap();
    run(MemoryCopies::new(&world.node).discard(&h("data"), id)).unwrap();
    assert!(!run(world.driver.store_is_new()));
    run(world.driver.drain_trash());
    assert!(run(world.driver.store_is_new()));
    let mut world = world;
    world.sweep();
    assert!(!run(world.driver.store_is_new()), "it is that cluster's now");
}

#[test]
fn c45_copies_are_counted_and_those_that_never_were_are_walked() {
    let world = World::new();
    for handle in ["a", "b"] {
        world.node.put_copy(&h(handle), "file", b"1");
    }
    world.node.set_walks_unfinished(true);
    world.calls();
    run(world.driver.measure_copies());
    assert_eq!(world.calls(), [NodeCall::ListCopies, NodeCall::Capacity, NodeCall::Usage, NodeCall::Usage]);
    assert_eq!(world.driver.tally().copies.load(Ordering::Relaxed), 2);
    world.node.set_walks_unfinished(false);
    run(world.driver.measure_copies());
    assert_eq!(world.calls(), [NodeCall::ListCopies, NodeCall::Capacity]);
}

#[test]
fn c45_what_the_trash_keeps_is_counted_whether_it_is_used_or_stuck() {
    let world = World::new();
    let in_trash = || world.driver.tally().trash.load(Ordering::Relaxed);
    for handle in ["used", "stuck", "stuck-too"] {
        world.node.put_copy(&h(handle), "file", b"1");
        let id = run(world.records.reserve_trash(&h(handle), None)).unwrap();
        if handle == "used" {
            world.node.bind_copy(&h(handle), true, "/mnt/operator");
        } else {
            world.node.set_undeletable(&h(handle), Some("file"));
        }
        run(MemoryCopies::new(&world.node).discard(&h(handle), id)).unwrap();
    }
    run(world.driver.drain_trash());
    assert_eq!(in_trash(), 3);
    world.node.clear_undeletable();
    run(world.driver.drain_trash());
    assert_eq!(in_trash(), 1);
    world.node.unmount("/mnt/operator");
    run(world.driver.drain_trash());
    assert_eq!(in_trash(), 0);
}

#[test]
fn c45_copies_that_could_not_be_removed_are_counted() {
    let mut world = World::new();
    world.sweep();
    for handle in ["a", "b"] {
        world.create_volume(handle);
        world.node.put_copy(&h(handle), "file", b"1");
    }
    world.sweep();
    let stuck = |world: &World| world.driver.tally().stuck_removals.load(Ordering::Relaxed);
    for handle in ["a", "b"] {
        world.delete_volume(handle);
        world.node.gate().script(NodeCall::Discard, io());
    }
    world.sweep();
    assert_eq!(stuck(&world), 2);
    world.tick();
    assert_eq!(stuck(&world), 0);
    assert!(!world.has_copy("a") && !world.has_copy("b"));
}

#[test]
fn c15_a_stale_hold_goes_and_the_live_one_beside_it_stays() {
    let world = World::new();
    let gone = world.running("web-0", "data");
    world.node.unmount(gone.target());
    let live = world.running("web-1", "data");
    // Its record came back, as from a write that was thought lost.
    let record = world.records.target(&live.target_path()).expect("a record");
    let stale = per_node::domain::holds::TargetRecord { target: gone.target_path(), ..record };
    run(world.records.put_target(&stale)).unwrap();
    let third = pod("web-2", "data");
    world.refused(&third, &third.request());
    assert_eq!(world.records.target(&gone.target_path()), None);
    assert!(world.records.target(&live.target_path()).is_some());
}

#[test]
fn c11_a_publish_that_is_on_record_writes_nothing() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let mut unnamed = web.request();
    unnamed.pod.name = None;
    for request in [web.request(), unnamed] {
        world.calls();
        world.publish_as(&web, &request).unwrap();
        assert!(!world.calls().contains(&NodeCall::PutTarget), "{request:?}");
    }
    // One whose pod was not known is completed.
    let record = world.records.target(&web.target_path()).expect("a record");
    let unknown = per_node::domain::holds::TargetRecord { pod: None, ..record.clone() };
    run(world.records.put_target(&unknown)).unwrap();
    world.publish(&web).unwrap();
    assert_eq!(world.records.target(&web.target_path()), Some(record));
}

#[test]
fn c16_what_a_publish_that_ended_in_a_bug_made_is_taken_back() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.prepare(&web);
    let request = web.request();
    assert!(run(world.driver.take_back(&request)), "nothing was begun");
    // As if it had panicked between two calls.
    for call in [NodeCall::Ensure, NodeCall::MakeTarget, NodeCall::Attach] {
        world.node.gate().script(call, Fault::HangAfter);
        let mut publish = Box::pin(world.driver.publish(&request));
        assert!(poll(&mut publish).is_pending());
        drop(publish);
        world.node.gate().release_all();
        assert!(run(world.driver.take_back(&request)), "{call:?}");
        world.assert_nothing_at(&web);
        assert!(!world.has_copy("data"), "{call:?}");
    }
    world.publish(&web).unwrap();
    assert!(!run(world.driver.take_back(&request)), "what was published stays");
    assert!(world.node.flags(web.target()).is_some());
    world.node.gate().script(NodeCall::Look, io());
    assert!(!run(world.driver.take_back(&request)), "nobody knows");
}

#[test]
fn c45_what_could_not_be_deleted_at_all_is_counted_as_stuck() {
    let world = World::new();
    for handle in ["a", "b"] {
        world.node.put_copy(&h(handle), "file", b"1");
        let id = run(world.records.reserve_trash(&h(handle), None)).unwrap();
        run(MemoryCopies::new(&world.node).discard(&h(handle), id)).unwrap();
        world.node.gate().script(NodeCall::Delete, io());
    }
    assert_eq!(run(world.driver.drain_trash()).stuck, 2);
    assert_eq!(run(world.driver.drain_trash()).removed, 2);
}
