//! C26, `--trash-for`: a removed copy stays restorable for its time, whatever happens to the process, the calendar and
//! the power; and goes early only for want of space, or because a person says so.

use std::time::Duration;

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, Plan, errno};
use per_node::domain::kept::WhyEmptied;
use per_node::domain::refusal::Reason;
use per_node::domain::time::Wall;
use per_node::domain::trash::TrashId;
use per_node::domain::use_cases::driver::Brakes;
use per_node::ports::clock::Clock;

use crate::world::{SWEEP_EVERY, World, h, io, pod, poll, run};

/// More awaits than a sweep or a drain has.
const AWAITS_MAX: u32 = 200;

const KEEPS: Brakes = Brakes { trash_for: Some(Duration::from_secs(3600)), sweep_limit: None };
/// Ticks in the time for which copies are kept.
const TICKS: u32 = 6;

/// A world whose volume `data` was deleted, with its copy kept.
pub fn kept() -> (World, TrashId) {
    let mut world = World::with(KEEPS);
    world.sweep();
    world.orphan("data");
    world.sweep();
    assert!(!world.has_copy("data"));
    let id = only_kept(&world);
    (world, id)
}

fn only_kept(world: &World) -> TrashId {
    let kept = run(world.driver.kept_copies()).unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    kept[0].id
}

#[test]
fn c26_a_removed_copy_is_kept_for_its_time_and_then_goes() {
    let (mut world, id) = kept();
    for _ in 1..TICKS {
        world.tick();
        assert_eq!(world.node.trash_ids(), [id]);
    }
    world.tick();
    assert_eq!(world.node.trash_ids(), []);
    assert_eq!(world.records.trash_records(), []);
    assert_eq!(world.driver.tally().emptied_for(WhyEmptied::Over), 1);
    assert!(world.node_events().is_empty(), "that is as it should be");
}

#[test]
fn c26_without_the_flag_nothing_is_kept() {
    let mut world = World::new();
    world.sweep();
    world.orphan("data");
    world.sweep();
    assert_eq!((world.node.trash_ids(), world.records.kept_trash()), (vec![], vec![]));
}

#[test]
fn c26_what_was_kept_goes_at_the_first_pass_without_the_flag() {
    let (world, _) = kept();
    let world = world.restart_with(Brakes::default());
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), []);
}

#[test]
fn c26_what_was_on_its_way_out_is_not_kept_by_a_flag_that_comes_later() {
    let mut world = World::new();
    world.sweep();
    world.orphan("data");
    run(world.sweeper.step());
    let world = world.restart_with(KEEPS);
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), []);
}

#[test]
fn c26_no_jump_of_the_calendar_makes_a_kept_copy_go_earlier() {
    let (mut world, id) = kept();
    for jump in [i64::from(u32::MAX), -i64::from(u32::MAX)] {
        let wall = world.clock.wall().unix_ms.saturating_add_signed(1000 * jump);
        world.clock.set_wall(Wall { unix_ms: wall });
        world.tick();
        world = world.restart();
        run(world.driver.drain_trash());
        assert_eq!(world.node.trash_ids(), [id], "a jump of {jump} s");
    }
}

#[test]
fn c26_the_time_goes_on_over_restarts_but_for_what_a_process_had_not_written() {
    let (mut world, id) = kept();
    for _ in 0..2 * TICKS {
        // Not a whole tick: nothing of it is on record.
        world.clock.advance(SWEEP_EVERY / 2);
        world = world.restart();
        run(world.driver.drain_trash());
        assert_eq!(world.node.trash_ids(), [id]);
    }
    for _ in 1..TICKS {
        world.tick();
        world = world.restart();
    }
    assert_eq!(world.node.trash_ids(), [id]);
    world.tick();
    assert_eq!(world.node.trash_ids(), []);
}

#[test]
fn c26_a_power_failure_loses_no_kept_copy() {
    let (world, id) = kept();
    world.node.power_failure();
    let mut world = world.restart();
    for _ in 1..TICKS {
        world.tick();
    }
    assert_eq!(world.node.trash_ids(), [id]);
}

#[test]
fn c26_a_pod_that_comes_meanwhile_gets_a_new_copy_and_the_old_one_stays_kept() {
    let (mut world, id) = kept();
    world.create_volume("data");
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "file"), None);
    world.node.write(web.target(), "file", b"new").unwrap();
    world.unpublish(&web).unwrap();
    world.delete_volume("data");
    world.sweep();
    let kept = run(world.driver.kept_copies()).unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0].id, id, "the oldest first");
    assert!(kept.iter().all(|copy| copy.handle == h("data")));
}

#[test]
fn c26_what_a_mount_still_shows_is_kept_beyond_its_time() {
    let (mut world, id) = kept();
    assert!(world.node.bind_trash(id, "/mnt/operator"));
    for _ in 0..=TICKS {
        world.tick();
    }
    assert_eq!(world.node.trash_ids(), [id]);
    assert_eq!(world.node.read("/mnt/operator", "file").as_deref(), Some(&b"web-0"[..]));
    world.node.unmount("/mnt/operator");
    world.tick();
    assert_eq!(world.node.trash_ids(), []);
}

#[test]
fn c26_a_deletion_does_not_begin_before_it_is_on_record() {
    for fault in [io(), Fault::After(KernelFault::Errno(errno::EIO)), Fault::After(KernelFault::Lost)] {
        let (mut world, id) = kept();
        world.clock.advance(SWEEP_EVERY * TICKS);
        world.node.gate().script(NodeCall::ReleaseTrash, fault);
        assert_eq!(run(world.driver.drain_trash()).stuck, 1);
        assert_eq!(world.node.trash_ids(), [id]);
        world.tick();
        assert_eq!(world.node.trash_ids(), []);
    }
}

#[test]
fn c26_the_numbers_tell_what_is_kept() {
    let (mut world, _) = kept();
    world.tick();
    let load = |number: &std::sync::atomic::AtomicU64| number.load(std::sync::atomic::Ordering::Relaxed);
    let tally = world.driver.tally().clone();
    assert_eq!(load(&tally.kept), 1);
    assert_eq!(load(&tally.kept_bytes), 8192, "the directory and its file, as they were measured");
    assert_eq!(load(&tally.kept_oldest_ms), SWEEP_EVERY.as_millis() as u64);
    assert_eq!(load(&tally.trash), 0, "it is not on its way out");
    run(world.driver.empty_one("data")).unwrap();
    run(world.driver.drain_trash());
    assert_eq!((load(&tally.kept), load(&tally.kept_bytes), load(&tally.kept_oldest_ms)), (0, 0, 0));
}

/// Three kept copies, the oldest first, and one live copy.
fn three_kept() -> (World, Vec<TrashId>) {
    let mut world = World::with(KEEPS);
    world.sweep();
    world.create_volume("live");
    world.running("live-0", "live");
    for handle in ["first", "second", "third"] {
        world.orphan(handle);
        world.tick();
    }
    let ids = run(world.driver.kept_copies()).unwrap().iter().map(|copy| copy.id).collect();
    (world, ids)
}

#[test]
fn c26_where_space_runs_out_the_oldest_goes_first_and_no_more_than_must() {
    let (world, ids) = three_kept();
    // A little less than a tenth is left: one copy makes it enough.
    world.node.set_available_bytes(3640);
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), &ids[1..]);
    assert_eq!(world.driver.tally().emptied_for(WhyEmptied::Space), 1);
    let events = world.node_events();
    assert_eq!((events.len(), events[0].reason, events[0].count), (1, Reason::TrashEmptied, 1));
    assert!(world.has_copy("live"));
}

#[test]
fn c26_a_full_store_empties_what_is_kept_and_nothing_else() {
    let (world, _) = three_kept();
    world.node.put_stranger("note");
    world.orphan("going");
    for left in [2, 1, 0, 0] {
        world.node.set_available_bytes(0);
        // The looks that come between two drains do it too.
        run(world.driver.make_room());
        assert_eq!(world.node.trash_ids().len(), left, "one makes room enough");
    }
    assert!(world.has_copy("live") && world.has_copy("going"));
    assert_eq!(world.node.copy_names(), ["going", "live", "note"]);
    assert_eq!(world.node_events()[0].count, 3);
}

#[test]
fn c26_a_publish_that_finds_no_space_has_the_trash_make_room() {
    let (world, ids) = three_kept();
    world.create_volume("new");
    let web = pod("web-9", "new");
    world.prepare(&web);
    // Whatever the file system says it has left, a quota may say no.
    world.node.gate().script(NodeCall::Ensure, Fault::Before(KernelFault::Errno(errno::ENOSPC)));
    assert!(world.publish(&web).is_err());
    run(world.driver.trash_wanted().wait());
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), &ids[1..]);
    world.publish(&web).unwrap();
}

#[test]
fn c26_a_removal_that_finds_no_space_takes_the_place_of_older_ones() {
    let (mut world, ids) = three_kept();
    world.orphan("going");
    for _ in 0..3 {
        world.node.gate().script(NodeCall::Discard, Fault::Before(KernelFault::Errno(errno::ENOSPC)));
    }
    run(world.sweeper.step());
    let kept: Vec<_> =
        run(world.driver.kept_copies()).unwrap().iter().map(|copy| copy.handle.clone()).collect();
    assert_eq!(kept, [h("third"), h("going")], "two made room for it");
    assert!(!world.node.trash_ids().contains(&ids[0]));
    assert_eq!(world.records.condemned(), []);
}

#[test]
fn c26_nobody_is_asked_for_space_where_nothing_is_kept() {
    let world = World::with(KEEPS);
    world.calls();
    run(world.driver.drain_trash());
    assert_eq!(world.calls(), [NodeCall::ListTrash]);
    assert_eq!(world.driver.look_at_room_every(), None);
}

#[test]
fn c26_c40_a_removal_killed_at_any_await_keeps_the_whole_copy_or_leaves_it() {
    for awaits in 1..AWAITS_MAX {
        let mut world = World::with(KEEPS);
        world.sweep();
        world.orphan("data");
        world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
        let ended = {
            let mut step = Box::pin(world.sweeper.step());
            (0..awaits).any(|_| poll(&mut step).is_ready())
        };
        world.node.gate().smooth();
        world.node.power_failure();
        let mut world = world.restart();
        run(world.driver.drain_trash());
        if !world.has_copy("data") {
            world.create_volume("data");
            run(world.driver.restore("data")).unwrap();
        }
        assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]), "after {awaits}");
        world.tick();
        assert_eq!(world.node.trash_ids(), []);
        if ended {
            return;
        }
    }
    panic!("the sweep never ends");
}

#[test]
fn c26_c40_an_emptying_killed_at_any_await_never_leaves_half_a_copy_to_restore() {
    for awaits in 1..AWAITS_MAX {
        let (world, _) = kept();
        world.clock.advance(SWEEP_EVERY * TICKS);
        world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
        let ended = {
            let mut drain = Box::pin(world.driver.drain_trash());
            (0..awaits).any(|_| poll(&mut drain).is_ready())
        };
        world.node.gate().smooth();
        let began = world.calls().contains(&NodeCall::Delete);
        let world = world.restart();
        world.create_volume("data");
        assert!(!began || run(world.driver.restore("data")).is_err(), "after {awaits}");
        if ended {
            return;
        }
    }
    panic!("the drain never ends");
}
