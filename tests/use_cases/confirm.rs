//! C22 (c) and (e): what a person confirms, and what a confirmation does and does not do.

use per_node::adapters::memory::{ClusterCall, Fault, NodeCall};
use per_node::domain::tally::WaitingFor;
use per_node::domain::use_cases::confirm::ConfirmError;
use per_node::ports::cluster::ClusterError;

use crate::world::{World, io, run};

/// A store with a copy that no volume names and no marker.
fn without_marker() -> World {
    let mut world = World::new();
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::MarkerMissing));
    world
}

/// A world with an orphan and an etcd that was put back.
fn put_back() -> World {
    let mut world = World::new();
    world.sweep();
    let backup = world.api.backup();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.delete_volume("data");
    world.api.touch();
    world.view.bookmark();
    world.api.restore(&backup);
    world.sweep();
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::Revision));
    world
}

#[test]
fn c22_a_confirmation_removes_nothing_itself_and_the_sweep_goes_on_with_a_proof_of_its_own() {
    for mut world in [without_marker(), put_back()] {
        let waiting = world.sweeper.waiting();
        world.driver.sweep_wanted().take();
        assert_eq!(run(world.sweeper.confirm(None)).ok(), waiting);
        assert!(world.has_copy("data"));
        assert_eq!(world.sweeper.waiting(), None);
        assert!(world.driver.sweep_wanted().take());
        world.view.relist();
        // Nobody saw a deletion in the history that counts from now on: two ticks.
        world.tick();
        assert!(world.has_copy("data"));
        world.tick();
        assert!(!world.has_copy("data"));
    }
}

#[test]
fn c22_a_confirmed_history_counts_also_after_a_restart() {
    let mut world = put_back();
    run(world.sweeper.confirm(None)).unwrap();
    assert_eq!(world.node.revision_on_disk(), Some(world.api.revision()));
    let mut world = world.restart();
    world.sweep();
    assert_eq!(world.sweeper.waiting(), None);
}

#[test]
fn c22_a_confirmation_for_another_cluster_writes_the_marker_anew() {
    let mut world = World::new();
    world.sweep();
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.api.set_cluster_uid("another");
    let mut world = world.restart();
    world.sweep();
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::MarkerDiffers));
    run(world.sweeper.confirm(None)).unwrap();
    assert_eq!(world.node.marker_on_disk().unwrap().cluster_uid, world.api.cluster_uid());
    world.sweep();
    assert_eq!(world.sweeper.waiting(), None);
}

#[test]
fn c22_where_nothing_waits_nothing_is_confirmed() {
    let mut world = World::new();
    world.sweep();
    assert!(matches!(run(world.sweeper.confirm(None)), Err(ConfirmError::NothingWaits)));
}

#[test]
fn c22_without_a_complete_answer_nothing_is_confirmed() {
    let mut world = without_marker();
    for call in [ClusterCall::Head, ClusterCall::ClusterUid] {
        world.api.cluster_gate().script(call, Fault::Before(ClusterError::TimedOut));
        assert!(matches!(run(world.sweeper.confirm(None)), Err(ConfirmError::Cluster(_))));
        assert_eq!(world.sweeper.waiting(), Some(WaitingFor::MarkerMissing));
        assert_eq!(world.node.marker_on_disk(), None);
    }
    world.node.gate().script(NodeCall::PutMarker, io());
    assert!(matches!(run(world.sweeper.confirm(None)), Err(ConfirmError::Records(_))));
    world.node.gate().script(NodeCall::PutHistory, io());
    assert!(matches!(run(world.sweeper.confirm(None)), Err(ConfirmError::Records(_))));
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::MarkerMissing));
}
