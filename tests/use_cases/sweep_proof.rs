//! C22: nothing goes on the word of a cache; every doubt keeps the copy.

use std::time::Duration;

use per_node::adapters::memory::{ClusterCall, Fault, NodeCall};
use per_node::domain::proof::{ClusterUid, Revision};
use per_node::domain::tally::{SweepOutcome, WaitingFor};
use per_node::ports::cluster::ClusterError;

use crate::world::{DRIVER_NAME, SWEEP_EVERY, World, h, io, poll, run};

/// A swept world whose watch is led by hand, with an orphan `data` whose deletion the watch saw.
fn orphaned() -> World {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    world.delete_volume("data");
    world.view.lead_by_hand();
    world
}

#[test]
fn c22_every_error_of_a_list_keeps_the_copy_and_is_counted() {
    let errors = [
        ClusterError::Unauthorized,
        ClusterError::Forbidden { what: "list persistentvolumes" },
        ClusterError::Gone,
        ClusterError::Throttled { retry_after: None },
        ClusterError::Server { status: 500 },
        ClusterError::Unreachable { why: "gone".to_owned() },
        ClusterError::TimedOut,
        ClusterError::Cut,
        ClusterError::Undecodable { why: "odd".to_owned() },
    ];
    assert_eq!(errors.each_ref().map(ClusterError::word), ClusterError::WORDS);
    for error in errors {
        for call in [ClusterCall::Head, ClusterCall::List, ClusterCall::ClusterUid] {
            let mut world = orphaned();
            let word = error.word();
            world.api.cluster_gate().script(call, Fault::Before(error.clone()));
            let delay = world.sweep();
            assert!(world.has_copy("data"), "{word}");
            assert_eq!(world.driver.tally().sync_failures().get(word), Some(&1), "{word}");
            assert!(delay <= Duration::from_secs(2), "{word}: tried again after {delay:?}");
            world.clock.advance(delay);
            world.sweep();
            assert!(!world.has_copy("data"), "{word}");
        }
    }
}

#[test]
fn c22_tries_without_a_proof_come_less_and_less_often() {
    let mut world = orphaned();
    let mut delays = Vec::new();
    for _ in 0..10 {
        world.api.cluster_gate().script(ClusterCall::List, Fault::Before(ClusterError::TimedOut));
        let delay = world.sweep();
        world.clock.advance(delay);
        delays.push(delay.as_secs());
    }
    assert_eq!(delays, [2, 4, 8, 16, 32, 64, 120, 120, 120, 120]);
}

#[test]
fn c21_before_the_watch_has_synced_nothing_goes() {
    let world = orphaned();
    let World { node, api, clock, driver, records, sweeper, .. } = world;
    drop(sweeper);
    let view = api.watch(DRIVER_NAME);
    let cluster: std::sync::Arc<dyn per_node::ports::cluster::Cluster> = view.clone();
    let mut sweeper = per_node::domain::use_cases::sweeper::Sweeper::new(driver.clone(), cluster);
    run(sweeper.step());
    let world = World { node, api, clock, view, records, driver, sweeper, brakes: Default::default() };
    assert!(world.has_copy("data"));
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
}

#[test]
fn c22_a_watch_that_is_not_live_proves_nothing_and_nobody_is_asked() {
    let mut world = orphaned();
    world.view.drop_watch();
    world.api.cluster_gate().take_calls();
    world.sweep();
    assert_eq!(world.api.cluster_gate().take_calls(), []);
    assert!(world.has_copy("data"));
    assert_eq!(world.swept(SweepOutcome::NoProof), 1);
    world.view.reopen();
    world.sweep();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_watch_lost_while_the_proof_is_sought_keeps_the_copy() {
    let world = orphaned();
    world.api.cluster_gate().script(ClusterCall::List, Fault::HangAfter);
    let World { node, api, view, mut sweeper, .. } = world;
    let mut step = Box::pin(sweeper.step());
    assert!(poll(&mut step).is_pending());
    view.drop_watch();
    api.cluster_gate().release_all();
    run(step);
    assert!(node.copy(&h("data")).is_some());
}

#[test]
fn c22_a_view_that_lags_is_not_believed_against_the_list() {
    let mut world = orphaned();
    // Made anew, and the watch has not brought it yet.
    world.create_volume("data");
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Named), 1);
    assert!(world.has_copy("data"));
}

#[test]
fn c22_a_handle_named_while_the_proof_was_under_way_stays() {
    let mut world = orphaned();
    let mut world = world_after_restart(&mut world);
    world.sweep();
    world.view.lead_by_hand();
    world.clock.advance(SWEEP_EVERY);
    // Its second tick: the list was right when it was answered.
    world.api.cluster_gate().script(ClusterCall::List, Fault::HangAfter);
    let World { node, api, view, driver, mut sweeper, .. } = world;
    let mut step = Box::pin(sweeper.step());
    assert!(poll(&mut step).is_pending());
    api.create_volume("data", DRIVER_NAME, &h("data"));
    view.deliver(9);
    api.cluster_gate().release_all();
    run(step);
    assert!(node.copy(&h("data")).is_some());
    assert_eq!(driver.tally().sweeps(SweepOutcome::Named), 1);
}

#[test]
fn c22_a_publish_or_unpublish_while_the_proof_is_sought_makes_it_none() {
    let world = orphaned();
    world.api.cluster_gate().script(ClusterCall::List, Fault::HangAfter);
    let web = crate::world::pod("web-1", "data");
    world.prepare(&web);
    let World { node, api, driver, mut sweeper, .. } = world;
    let mut step = Box::pin(sweeper.step());
    assert!(poll(&mut step).is_pending());
    run(driver.publish(&web.request())).unwrap();
    run(driver.unpublish(&web.unpublish_request())).unwrap();
    api.cluster_gate().release_all();
    run(step);
    assert!(node.copy(&h("data")).is_some());
    assert_eq!(driver.tally().sweeps(SweepOutcome::Disturbed), 1);
    run(sweeper.step());
    assert!(node.copy(&h("data")).is_none());
}

#[test]
fn c22_a_handle_that_vanished_unseen_goes_at_the_second_tick() {
    let mut world = orphaned();
    world.view.relist();
    let mut world = world_after_restart(&mut world);
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::SecondTick), 1);
    for _ in 0..3 {
        // What is not a tick does not count.
        world.sweep();
    }
    assert!(world.has_copy("data"));
    world.tick();
    assert!(!world.has_copy("data"));
}

fn world_after_restart(world: &mut World) -> World {
    let fresh = World::new();
    std::mem::replace(world, fresh).restart()
}

#[test]
fn c22_a_handle_named_between_two_ticks_begins_again() {
    let mut world = orphaned();
    let mut world = world_after_restart(&mut world);
    world.sweep();
    world.view.lead_by_hand();
    world.create_volume("data");
    world.tick();
    assert_eq!(world.swept(SweepOutcome::Named), 1);
    world.api.delete_volume("data");
    world.tick();
    assert!(world.has_copy("data"), "its first tick unnamed");
    world.tick();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_tick_without_a_proof_does_not_count() {
    let mut world = orphaned();
    let mut world = world_after_restart(&mut world);
    world.api.cluster_gate().script(ClusterCall::List, Fault::Before(ClusterError::TimedOut));
    world.tick();
    world.sweep();
    assert!(world.has_copy("data"));
    world.tick();
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_a_revision_below_the_highest_seen_waits_for_a_person() {
    let mut world = orphaned();
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    let delay = world.sweep();
    assert!(world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    assert_eq!(world.swept(SweepOutcome::WaitsForPerson), 1);
    assert_eq!(delay, SWEEP_EVERY);
}

#[test]
fn c22_an_etcd_that_was_put_back_is_noticed_at_the_next_tick_also_where_nothing_is_to_be_removed() {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    world.sweep();
    assert_eq!(world.driver.tally().waiting(), None);
    world.tick();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    world.unpublish(&web).unwrap();
    world.delete_volume("data");
    world.tick();
    world.tick();
    assert!(world.has_copy("data"));
}

#[test]
fn c22_a_history_that_went_back_waits_for_a_person_however_far_it_comes_also_after_a_restart() {
    let mut world = orphaned();
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    world.sweep();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    (0..50).for_each(|_| world.api.touch());
    world.view.relist();
    for _ in 0..3 {
        world.tick();
    }
    assert!(world.has_copy("data"));
    let mut world = world.restart();
    for _ in 0..3 {
        world.tick();
    }
    assert!(world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    run(world.sweeper.confirm(None)).unwrap();
    world.view.relist();
    world.tick();
    world.tick();
    assert!(!world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), None);
}

#[test]
fn c22_what_the_watch_noticed_is_kept_at_once_and_not_at_the_next_tick() {
    let mut world = orphaned();
    world.api.create_volume("data", DRIVER_NAME, &h("data"));
    world.view.relist();
    world.sweep();
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    // A new chain begins below what the last one had reached; then the new history passes that.
    world.view.break_chain();
    world.view.reopen();
    (0..9).for_each(|_| world.api.touch());
    world.sweep();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
    let world = world.restart();
    assert!(world.records.history().unwrap().went_back);
}

#[test]
fn c22_a_history_that_went_back_is_remembered_by_the_process_where_the_store_cannot_be_written() {
    let mut world = orphaned();
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    world.node.gate().script(NodeCall::PutHistory, io());
    world.sweep();
    assert!(!world.records.history().unwrap().went_back);
    (0..9).for_each(|_| world.api.touch());
    // The fake's view knows nothing of it any more.
    world.tick();
    world.tick();
    assert!(world.has_copy("data"));
    assert!(world.records.history().unwrap().went_back, "written once it can be");
}

#[test]
fn c22_what_waited_for_another_cluster_goes_on_when_its_own_is_back() {
    let mut world = orphaned();
    world.api.set_cluster_uid("another");
    world.tick();
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::MarkerDiffers));
    world.api.set_cluster_uid("cluster-1");
    world.tick();
    assert_eq!(world.driver.tally().waiting(), None);
    assert!(!world.has_copy("data"));
}

#[test]
fn c22_the_highest_revision_outlives_a_restart() {
    let mut world = orphaned();
    let backup = world.api.backup();
    world.api.touch();
    world.view.bookmark();
    world.api.cluster_gate().script(ClusterCall::List, Fault::Before(ClusterError::TimedOut));
    world.sweep();
    world.api.restore(&backup);
    let mut world = world.restart();
    world.sweep();
    world.tick();
    assert!(world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::Revision));
}

#[test]
fn c22_a_revision_that_cannot_be_kept_proves_nothing() {
    let mut world = orphaned();
    world.api.touch();
    world.node.gate().script(NodeCall::PutHistory, io());
    world.node.gate().script(NodeCall::PutHistory, io());
    world.sweep();
    assert!(world.has_copy("data"));
}

#[test]
fn c22_what_is_removed_on_a_proof_outlives_no_power_failure_without_its_revision() {
    let mut world = orphaned();
    world.api.touch();
    let head: Revision = world.api.revision();
    world.sweep();
    assert!(!world.has_copy("data"));
    world.node.power_failure();
    assert_eq!(world.node.revision_on_disk(), Some(head));
}

#[test]
fn c22_the_marker_is_written_when_an_api_server_first_answers_to_an_empty_store() {
    let mut world = World::new();
    world.api.cluster_gate().script(ClusterCall::ClusterUid, Fault::Before(ClusterError::TimedOut));
    world.sweep();
    assert_eq!(world.records.marker(), None);
    world.sweep();
    let marker = world.node.marker_on_disk().unwrap();
    assert_eq!((marker.driver_name.as_str(), marker.cluster_uid), (DRIVER_NAME, world.api.cluster_uid()));
}

#[test]
fn c22_a_store_with_copies_and_no_marker_is_served_and_never_swept() {
    let mut world = World::new();
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    for _ in 0..3 {
        world.tick();
    }
    assert!(world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::MarkerMissing));
    assert_eq!(world.records.marker(), None);
    world.publish(&web).unwrap();
}

#[test]
fn c22_another_cluster_sweeps_nothing_of_this_store() {
    let mut world = orphaned();
    world.api.set_cluster_uid("another");
    let mut world = world_after_restart(&mut world);
    for _ in 0..3 {
        world.tick();
    }
    assert!(world.has_copy("data"));
    assert_eq!(world.driver.tally().waiting(), Some(WaitingFor::MarkerDiffers));
    // The other cluster's revisions mean nothing here.
    let kept = world.records.history();
    world.api.touch();
    world.view.relist();
    world.tick();
    assert_eq!(world.records.history(), kept);
    assert_eq!(world.node.marker_on_disk().unwrap().cluster_uid, ClusterUid("cluster-1".to_owned()));
}
