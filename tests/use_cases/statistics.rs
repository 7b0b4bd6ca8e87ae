//! C46 and C18: statistics are of the copy that is published there, and of nothing else.

use per_node::adapters::memory::NodeCall;
use per_node::domain::refusal::StatisticsError;

use crate::world::{World, h, io, pod, run};

#[test]
fn c46_used_is_the_copys_and_the_rest_is_the_file_systems() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.running("web-1", "other");
    world.node.write(web.target(), "big", &[0; 10_000]).unwrap();
    world.node.set_available_bytes(1 << 20);
    let statistics = run(world.driver.statistics("data", &web.target())).unwrap();
    assert_eq!((statistics.usage.used_bytes, statistics.usage.used_inodes), (4096 * 5, 3));
    assert!(statistics.usage.complete);
    assert_eq!(statistics.capacity.available_bytes, 1 << 20);
    assert!(statistics.capacity.total_bytes > 1 << 20);
}

#[test]
fn c46_until_the_first_walk_has_ended_the_answer_says_so() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.set_walks_unfinished(true);
    assert!(!run(world.driver.statistics("data", &web.target())).unwrap().usage.complete);
}

#[test]
fn c46_no_copy_at_that_path_is_not_published() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let hidden = world.running("web-1", "hidden");
    world.node.mount_foreign(hidden.target());
    world.node.bind_copy(&h("data"), true, "/k/pods/u/volume-subpaths/data/main/0");
    world.node.make_directory("/k/bare");
    for (volume_id, path) in [
        ("data", "/k/none"),
        ("data", "/k/bare"),
        ("other", &web.target()),
        ("Not/A/Handle", &web.target()),
        ("hidden", &hidden.target()),
        ("data", "/k/pods/u/volume-subpaths/data/main/0"),
        ("data", "/elsewhere"),
        ("data", "relative"),
    ] {
        let answer = run(world.driver.statistics(volume_id, path));
        assert_eq!(answer, Err(StatisticsError::NotPublished), "{volume_id} at {path}");
    }
}

#[test]
fn c46_what_cannot_be_measured_is_an_error_and_no_zero() {
    let world = World::new();
    let web = world.running("web-0", "data");
    for call in [NodeCall::Usage, NodeCall::Capacity] {
        world.node.gate().script(call, io());
        let answer = run(world.driver.statistics("data", &web.target()));
        assert!(matches!(answer, Err(StatisticsError::Measure { .. })), "{answer:?}");
    }
    world.node.gate().script(NodeCall::Look, io());
    let answer = run(world.driver.statistics("data", &web.target()));
    assert!(matches!(answer, Err(StatisticsError::Look { .. })), "{answer:?}");
    let missing = run(world.driver.statistics("", &web.target()));
    assert_eq!(missing, Err(StatisticsError::MissingField { field: "volume_id" }));
    assert_eq!(
        run(world.driver.statistics("data", "")),
        Err(StatisticsError::MissingField { field: "volume_path" })
    );
}

#[test]
fn c45_the_stores_space_is_told_as_of_the_latest_look_and_not_where_that_failed() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let available = || world.driver.tally().room().map(|room| room.bytes.available);
    assert_eq!(available(), None);
    world.node.set_available_bytes(1 << 20);
    run(world.driver.measure_copies());
    assert_eq!(available(), Some(1 << 20));
    world.node.set_available_bytes(1 << 10);
    run(world.driver.statistics("data", &web.target())).unwrap();
    assert_eq!(available(), Some(1 << 10));
    world.node.gate().script(NodeCall::Capacity, io());
    run(world.driver.measure_copies());
    assert_eq!(available(), None);
}

#[test]
fn c46_statistics_change_nothing_and_wait_for_no_publish() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let second = pod("web-1", "data");
    world.prepare(&second);
    world.node.gate().script(NodeCall::Showing, per_node::adapters::memory::Fault::HangBefore);
    let request = second.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(crate::world::poll(&mut publish).is_pending());
    world.calls();
    run(world.driver.statistics("data", &web.target())).unwrap();
    assert_eq!(world.calls(), [NodeCall::Look, NodeCall::Usage, NodeCall::Capacity]);
}
