//! C12 to C15 and C19: who holds a copy, and who waits for whom.

use futures_util::future::join_all;
use per_node::adapters::memory::{ClusterCall, Fault, NodeCall, Plan};
use per_node::domain::mount_table::TargetView;
use per_node::domain::refusal::{PublishError, Reason, Refusal};
use per_node::domain::trash::TrashId;
use per_node::ports::copies::Copies;

use crate::world::{Pod, World, h, pod, poll, run};

#[track_caller]
fn held_by(world: &World, pod: &Pod) -> String {
    match world.refused(pod, &pod.request()) {
        (Refusal::Held { holder, .. }, _) => holder.to_string(),
        (other, _) => panic!("not held: {other:?}"),
    }
}

#[test]
fn c12_a_second_pod_is_refused_and_told_who_holds_the_copy() {
    let world = World::new();
    world.running("web-0", "data");
    let second = pod("web-1", "data");
    let (refusal, is_final) = world.refused(&second, &second.request());
    assert!(matches!(refusal, Refusal::Held { .. }) && is_final);
    world.assert_nothing_at(&second);
    let events = world.events(&second);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason, Reason::VolumeHeld);
    assert!(events[0].message.contains("pod ns/web-0"), "{}", events[0].message);
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c12_a_holder_whose_name_is_lost_is_named_by_its_uid_else_by_its_mount() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.node.tear_record(&first.target_path());
    let world = world.restart();
    assert_eq!(held_by(&world, &pod("web-1", "data")), "the pod with UID web-0-uid");
    let world = World::new();
    let odd = pod("web-0", "data");
    let mut request = odd.request();
    request.target_path = "/k/odd/mount".to_owned();
    request.pod = Default::default();
    world.node.make_directory("/k/odd");
    run(world.driver.publish(&request)).unwrap();
    assert_eq!(held_by(&world, &pod("web-1", "data")), "the mount at /k/odd/mount");
}

#[test]
fn c12_where_the_target_was_there_no_code_is_final_and_it_stays() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.node.reboot();
    let world = world.restart();
    world.running("web-1", "data");
    let (refusal, is_final) = world.refused(&first, &first.request());
    assert!(matches!(refusal, Refusal::Held { .. }) && !is_final);
    assert_eq!(world.node.view(first.target()), TargetView::Directory { empty: true });
    assert_eq!(world.events(&first)[0].reason, Reason::VolumeHeld);
    let mut request = first.request();
    request.capability = None;
    let (refusal, is_final) = world.refused(&first, &request);
    assert!(matches!(refusal, Refusal::Request(_)) && !is_final);
}

#[test]
fn c12_of_concurrent_publishes_by_different_pods_exactly_one_wins() {
    let world = World::new();
    world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
    let pods = ["a", "b", "c", "d", "e"].map(|name| pod(name, "data"));
    let requests = pods.each_ref().map(|pod| {
        world.prepare(pod);
        pod.request()
    });
    let answers = run(join_all(requests.iter().map(|request| world.driver.publish(request))));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let held = |answer: &Result<(), PublishError>| {
        matches!(
            answer,
            Err(PublishError::Refused { refusal: Refusal::Held { .. }, target_was_there: false })
        )
    };
    assert_eq!(answers.iter().filter(|answer| held(answer)).count(), 4);
    assert_eq!(world.node.store_mounts().len(), 1);
}

#[test]
fn c12_the_winners_hold_survives_the_losers_unpublish() {
    let world = World::new();
    let winner = world.running("web-0", "data");
    let loser = pod("web-1", "data");
    world.publish(&loser).unwrap_err();
    world.unpublish(&loser).unwrap();
    assert_eq!(world.node.read(winner.target(), "file").as_deref(), Some(&b"web-0"[..]));
    assert_eq!(held_by(&world, &loser), "pod ns/web-0");
    world.unpublish(&winner).unwrap();
    world.publish(&loser).unwrap();
}

#[test]
fn c13_without_any_uid_the_target_path_is_the_pod() {
    let world = World::new();
    let publish = |target: &str| {
        let mut request = pod("web-0", "data").request();
        request.target_path = target.to_owned();
        request.pod = Default::default();
        run(world.driver.publish(&request))
    };
    world.node.make_directory("/k/odd");
    publish("/k/odd/one").unwrap();
    publish("/k/odd/one").unwrap();
    assert!(publish("/k/odd/two").is_err());
}

#[test]
fn c14_a_copy_is_held_until_the_last_target_of_its_pod_is_gone() {
    let world = World::new();
    let one = world.running("web-0", "data");
    let two = Pod { volume: "twin", ..one.clone() };
    world.publish(&two).unwrap();
    let other = pod("web-1", "data");
    world.unpublish(&one).unwrap();
    assert_eq!(held_by(&world, &other), "pod ns/web-0");
    world.unpublish(&two).unwrap();
    world.publish(&other).unwrap();
}

#[test]
fn c15_a_hold_whose_mount_is_gone_is_stale_and_dropped() {
    let world = World::new();
    let first = world.running("web-0", "data");
    assert!(world.node.unmount(first.target()));
    let second = pod("web-1", "data");
    world.publish(&second).unwrap();
    assert_eq!(world.records.target(&first.target_path()), None);
    assert_eq!(world.records.targets_of(&h("data")).len(), 1);
}

#[test]
fn c15_a_missing_record_never_drops_a_hold_that_the_kernel_has() {
    let world = World::new();
    let first = world.running("web-0", "data");
    assert!(world.node.tear_record(&first.target_path()));
    let world = world.restart();
    assert_eq!(held_by(&world, &pod("web-1", "data")), "the pod with UID web-0-uid");
}

#[test]
fn c15_a_leftover_subpath_bind_keeps_nobody_from_publishing() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.node.bind_copy(&h("data"), true, "/k/pods/web-0-uid/volume-subpaths/data/main/0");
    world.unpublish(&first).unwrap();
    world.publish(&pod("web-1", "data")).unwrap();
}

#[test]
fn c15_an_operators_bind_holds_nothing() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.node.bind_copy(&h("data"), false, "/mnt/operator");
    world.unpublish(&first).unwrap();
    world.publish(&pod("web-1", "data")).unwrap();
}

/// Moves a copy into the trash although it is shown, as an operator could.
fn discard_by_force(world: &World, handle: &str) -> TrashId {
    let id = run(world.records.reserve_trash(&h(handle), None)).unwrap();
    run(per_node::adapters::memory::MemoryCopies::new(&world.node).discard(&h(handle), id)).unwrap();
    id
}

#[test]
fn c15_a_copy_in_the_trash_that_a_target_still_shows_holds_its_handle() {
    let world = World::new();
    let first = world.running("web-0", "data");
    let id = discard_by_force(&world, "data");
    assert_eq!(held_by(&world, &pod("web-1", "data")), "pod ns/web-0");
    world.publish(&first).unwrap();
    assert_eq!(run(world.driver.drain_trash()).in_use, 1);
    assert_eq!(world.node.trash_ids(), [id]);
    assert_eq!(world.node.read(first.target(), "file").as_deref(), Some(&b"web-0"[..]));
    world.unpublish(&first).unwrap();
    assert_eq!(run(world.driver.drain_trash()).removed, 1);
    world.publish(&pod("web-1", "data")).unwrap();
}

#[test]
fn c19_another_handle_never_waits() {
    let world = World::new();
    let (slow, fast) = (pod("web-0", "slow"), pod("web-1", "fast"));
    world.prepare(&slow);
    world.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    let request = slow.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    world.publish(&fast).unwrap();
    world.unpublish(&fast).unwrap();
    world.node.gate().release_all();
    run(publish).unwrap();
}

#[test]
fn c19_calls_for_one_handle_come_one_after_the_other() {
    let world = World::new();
    let (first, second) = (pod("web-0", "data"), pod("web-1", "data"));
    world.prepare(&first);
    world.prepare(&second);
    world.node.gate().script(NodeCall::Attach, Fault::HangAfter);
    let (one, two) = (first.request(), second.request());
    let mut winner = Box::pin(world.driver.publish(&one));
    assert!(poll(&mut winner).is_pending());
    let mut loser = Box::pin(world.driver.publish(&two));
    assert!(poll(&mut loser).is_pending());
    world.node.gate().release_all();
    run(winner).unwrap();
    assert!(matches!(run(loser), Err(PublishError::Refused { refusal: Refusal::Held { .. }, .. })));
}

#[test]
fn c19_no_request_waits_for_the_api_server() {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let first = world.running("web-0", "data");
    world.delete_volume("data");
    world.unpublish(&first).unwrap();
    world.api.cluster_gate().script(ClusterCall::List, Fault::HangBefore);
    let World { node, api, driver, mut sweeper, .. } = world;
    let mut step = Box::pin(sweeper.step());
    assert!(poll(&mut step).is_pending());
    let second = pod("web-1", "data");
    node.make_file(format!("{}/vol_data.json", second.directory()));
    run(driver.publish(&second.request())).unwrap();
    run(driver.unpublish(&second.unpublish_request())).unwrap();
    api.cluster_gate().release_all();
    run(step);
    // The proof was begun before that publish, so it is none (C22 (a)).
    assert!(node.copy(&h("data")).is_some());
}
