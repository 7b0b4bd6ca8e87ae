//! C27: in a large cluster the watch is the proof, and what a deletion costs the API server is bounded.

use std::sync::atomic::Ordering;

use per_node::adapters::memory::{ClusterCall, Fault};
use per_node::domain::sweep::PROOF_LIST_VOLUMES_MAX;
use per_node::domain::tally::{SweepOutcome, WaitingFor};
use per_node::ports::cluster::{Cluster, ClusterError};

use crate::world::{DRIVER_NAME, SWEEP_EVERY, World, h, pod, poll, run};

/// A swept world of a cluster that has this many volumes of other drivers, with the volumes `data` and `more`, each with
/// a copy that its pod has left.
fn world_of(other_volumes: usize) -> World {
    let mut world = World::new();
    world.api.set_other_volumes(other_volumes);
    world.view.relist();
    world.sweep();
    for (volume, pod) in [("data", "web-0"), ("more", "web-1")] {
        world.create_volume(volume);
        let web = world.running(pod, volume);
        world.unpublish(&web).unwrap();
    }
    world.sweep();
    calls(&world);
    world
}

fn large() -> World {
    world_of(100_000)
}

/// The calls that reached the API server since this was last asked.
fn calls(world: &World) -> Vec<ClusterCall> {
    world.api.cluster_gate().take_calls()
}

/// Deletes a volume; the watch brings it and then nothing more by itself. Then the head moves on.
fn delete_behind(world: &World, volume: &str) {
    world.delete_volume(volume);
    world.view.lead_by_hand();
    world.view.deliver(9);
    world.api.touch();
}

/// A large world in which etcd was put back while the proof of a deletion waited for the watch, and two bookmarks came.
fn put_back_while_waiting() -> World {
    let mut world = large();
    delete_behind(&world, "data");
    let backup = world.api.backup();
    world.api.touch();
    world.sweep();
    world.api.restore(&backup);
    world.view.repeat_bookmark();
    world.view.repeat_bookmark();
    world.sweep();
    world
}

#[test]
fn c27_a_deletion_is_proved_by_the_watch_once_it_has_passed_the_head_and_nothing_is_listed() {
    let mut world = large();
    delete_behind(&world, "data");
    let delay = world.sweep();
    assert!(world.has_copy("data"));
    assert!(delay < SWEEP_EVERY, "looked after in {delay:?}");
    assert_eq!(calls(&world), [ClusterCall::Head, ClusterCall::ClusterUid]);
    world.sweep();
    assert!(world.has_copy("data"), "the head that was read is not passed");
    let searching = |world: &World| world.driver.tally().removals_searching.load(Ordering::Relaxed);
    assert_eq!(searching(&world), 1, "an operator can see what it waits for");
    world.view.bookmark();
    assert_eq!(world.sweep(), SWEEP_EVERY);
    assert_eq!(searching(&world), 0);
    assert!(!world.has_copy("data") && world.has_copy("more"));
    assert_eq!(calls(&world), []);
    assert_eq!(world.swept(SweepOutcome::Removed), 1);
}

#[test]
fn c27_every_copy_that_waits_for_the_watch_is_counted() {
    let mut world = large();
    world.delete_volume("data");
    delete_behind(&world, "more");
    world.sweep();
    assert_eq!(world.driver.tally().removals_searching.load(Ordering::Relaxed), 2);
}

#[test]
fn c27_a_list_is_the_proof_up_to_the_documented_number_of_volumes() {
    for (other_volumes, lists) in [(PROOF_LIST_VOLUMES_MAX, true), (PROOF_LIST_VOLUMES_MAX + 1, false)] {
        let mut world = world_of(other_volumes);
        delete_behind(&world, "data");
        world.sweep();
        assert_eq!(calls(&world).contains(&ClusterCall::List), lists, "{other_volumes}");
        assert_eq!(world.has_copy("data"), !lists, "{other_volumes}");
    }
}

#[test]
fn c27_what_no_copy_here_is_of_is_deleted_without_asking_anybody() {
    let mut world = large();
    world.create_volume("elsewhere");
    world.delete_volume("elsewhere");
    world.driver.sweep_wanted().raise();
    assert!(world.sweep() > SWEEP_EVERY / 2);
    assert_eq!(calls(&world), []);
}

#[test]
fn c22_a_handle_named_anew_before_the_watch_has_passed_the_head_stays() {
    let mut world = large();
    delete_behind(&world, "data");
    world.create_volume("data");
    world.sweep();
    world.view.deliver(9);
    world.sweep();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
    assert_eq!(world.swept(SweepOutcome::Named), 1);
}

#[test]
fn c22_a_copy_that_was_published_meanwhile_needs_a_proof_of_its_own() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    let web = world.running("web-2", "data");
    world.unpublish(&web).unwrap();
    world.api.touch();
    // What was asked for is passed, and what was asked for then is not enough any more.
    world.view.bookmark();
    world.api.touch();
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Disturbed), 1);
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-2"[..]));
    world.view.bookmark();
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_publish_and_unpublish_while_the_head_is_read_make_it_no_proof() {
    let world = large();
    delete_behind(&world, "data");
    world.api.cluster_gate().script(ClusterCall::Head, Fault::HangAfter);
    let web = pod("web-2", "data");
    world.prepare(&web);
    let World { node, api, view, driver, mut sweeper, .. } = world;
    let mut step = Box::pin(sweeper.step());
    assert!(poll(&mut step).is_pending());
    run(driver.publish(&web.request())).unwrap();
    run(driver.unpublish(&web.unpublish_request())).unwrap();
    view.bookmark();
    api.cluster_gate().release_all();
    run(step);
    assert!(node.copy(&h("data")).is_some());
    assert_eq!(driver.tally().sweeps(SweepOutcome::Disturbed), 1);
}

#[test]
fn c27_candidates_that_come_while_a_proof_is_sought_share_the_next_one() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    world.delete_volume("more");
    world.view.deliver(9);
    world.sweep();
    assert!(!world.has_copy("data"), "its head was passed by the second deletion");
    // A head read after the second deletion is that deletion's own revision: the watch is there already.
    assert!(!world.has_copy("more"));
    let heads = calls(&world).into_iter().filter(|call| *call == ClusterCall::Head).count();
    assert_eq!(heads, 2);
}

#[test]
fn c27_an_idle_watch_is_moved_on_by_a_second_read_of_the_head_and_replaced_by_a_list_after_that() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    let mut seen = Vec::new();
    for _ in 0..6 {
        world.view.repeat_bookmark();
        calls(&world);
        world.sweep();
        seen.push(calls(&world));
        if !world.has_copy("data") {
            break;
        }
    }
    assert_eq!(seen, [vec![], vec![ClusterCall::Head], vec![], vec![ClusterCall::List]]);
    assert!(!world.has_copy("data"));
}

#[test]
fn c27_the_second_read_of_the_head_may_fail_and_is_tried_again() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    world.view.repeat_bookmark();
    world.view.repeat_bookmark();
    world.api.cluster_gate().script(ClusterCall::Head, Fault::Before(ClusterError::TimedOut));
    let delay = world.sweep();
    assert_eq!((delay.as_secs(), world.swept(SweepOutcome::NoProof)), (2, 1));
    world.sweep();
    world.view.bookmark();
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_watch_that_is_lost_while_it_is_waited_for_proves_nothing_until_a_new_chain_has() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    world.view.bookmark();
    world.view.break_chain();
    world.sweep();
    assert!(world.has_copy("data"), "passed, and not live");
    world.view.reopen();
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_tick_asks_the_api_server_also_while_the_watch_is_not_live() {
    let mut world = World::new();
    world.sweep();
    world.view.drop_watch();
    world.api.cluster_gate().take_calls();
    world.tick();
    assert_eq!(world.api.cluster_gate().take_calls(), [ClusterCall::Head, ClusterCall::ClusterUid]);
    assert_eq!(world.swept(SweepOutcome::NoProof), 0);
}

#[test]
fn c22_a_head_below_the_highest_revision_waits_for_a_person() {
    let mut world = large();
    let backup = world.api.backup();
    delete_behind(&world, "data");
    world.api.restore(&backup);
    world.sweep();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    world.view.bookmark();
    world.sweep();
    assert!(world.has_copy("data"));
}

#[test]
fn c22_an_etcd_put_back_while_the_watch_is_waited_for_is_noticed_by_the_second_read() {
    let world = put_back_while_waiting();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    assert!(world.has_copy("data"));
}

#[test]
fn c22_what_vanished_unseen_needs_the_watch_at_two_ticks_a_period_apart() {
    let mut world = large();
    world.view.break_chain();
    world.delete_volume("data");
    world.view.reopen();
    assert!(!world.view.is_named(&h("data")) && !world.view.deletion_was_seen(&h("data")));
    calls(&world);
    world.sweep();
    assert_eq!(calls(&world), [], "what is no tick asks nothing about it");
    world.tick();
    assert_eq!((world.has_copy("data"), world.swept(SweepOutcome::SecondTick)), (true, 1));
    world.clock.advance(SWEEP_EVERY - std::time::Duration::from_secs(1));
    world.sweep();
    assert!(world.has_copy("data"));
    world.tick();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_tick_whose_proof_came_late_puts_the_next_one_off() {
    let mut world = large();
    world.view.break_chain();
    world.delete_volume("data");
    world.view.reopen();
    world.api.touch();
    world.tick();
    assert_eq!(world.swept(SweepOutcome::SecondTick), 0, "it waits for the watch");
    // The watch gets there just as the next tick would be due.
    world.clock.advance(SWEEP_EVERY);
    world.view.bookmark();
    world.sweep();
    assert_eq!((world.has_copy("data"), world.swept(SweepOutcome::SecondTick)), (true, 1));
    world.tick();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_watch_proof_outlives_no_power_failure_without_its_revision() {
    let mut world = large();
    delete_behind(&world, "data");
    world.sweep();
    world.api.touch();
    world.view.bookmark();
    let reached = world.api.revision();
    world.sweep();
    assert!(!world.has_copy("data"));
    world.node.power_failure();
    assert_eq!(world.node.revision_on_disk(), Some(reached));
}

#[test]
fn c22_a_confirmation_gives_up_what_was_being_proved() {
    let mut world = put_back_while_waiting();
    run(world.sweeper.confirm(None)).unwrap();
    // In the history that counts now somebody names it again.
    world.api.create_volume("data", DRIVER_NAME, &h("data"));
    world.view.relist();
    world.tick();
    world.tick();
    assert!(world.has_copy("data"));
}

#[test]
fn c22_what_is_named_and_vanishes_unseen_while_a_proof_is_sought_needs_two_ticks() {
    let mut world = world_of(0);
    world.delete_volume("data");
    world.api.cluster_gate().script(ClusterCall::List, Fault::HangAfter);
    let mut step = Box::pin(world.sweeper.step());
    assert!(poll(&mut step).is_pending());
    // Named again, and gone again while nobody watched.
    world.api.create_volume("data", DRIVER_NAME, &h("data"));
    world.view.drop_watch();
    assert!(world.api.delete_volume("data"));
    world.view.relist();
    world.api.cluster_gate().release_all();
    run(step);
    assert!(world.has_copy("data"));
    assert_eq!(world.swept(SweepOutcome::SecondTick), 1);
    world.tick();
    assert!(world.has_copy("data"), "the first tick at which it is an orphan");
    world.tick();
    assert!(!world.has_copy("data"));
}
