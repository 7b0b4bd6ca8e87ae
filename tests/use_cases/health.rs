//! C49: what is wrong with a copy that is published there, and nothing about anything else.

use std::pin::pin;

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, errno};
use per_node::domain::health::Condition;
use per_node::domain::refusal::HealthError;

use crate::world::{World, h, io, pod, poll, run};

#[track_caller]
fn conditions(world: &World, volume_id: &str, path: &str) -> Vec<Condition> {
    run(world.driver.health(volume_id, path)).expect("an answer")
}

#[test]
fn c49_a_copy_in_its_place_is_healthy() {
    let world = World::new();
    let web = world.running("web-0", "data");
    assert_eq!(conditions(&world, "data", &web.target()), []);
    let world = world.restart();
    assert_eq!(conditions(&world, "data", &web.target()), []);
}

#[test]
fn c49_a_volume_that_no_pod_holds_here_is_healthy_whatever_the_store_is_like() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let waiter = pod("web-1", "data");
    world.publish(&waiter).expect_err("held");
    world.node.bind_copy(&h("data"), true, "/k/pods/u/volume-subpaths/data/main/0");
    world.node.make_directory("/k/bare");
    world.node.mount_foreign("/k/foreign");
    world.node.set_read_only(true);
    world.node.set_available_bytes(0);
    for (volume_id, path) in [
        ("data", ""),
        ("data", waiter.target().as_str()),
        ("data", "/k/none"),
        ("data", "/k/bare"),
        ("data", "/k/foreign"),
        ("data", "/k/pods/u/volume-subpaths/data/main/0"),
        ("data", "/elsewhere"),
        ("data", "relative"),
        ("other", &web.target()),
        ("Not/A/Handle", &web.target()),
    ] {
        assert_eq!(conditions(&world, volume_id, path), [], "{volume_id} at {path}");
    }
}

#[test]
fn c49_without_a_path_or_a_mount_the_store_is_not_asked() {
    let world = World::new();
    world.running("web-0", "data");
    world.calls();
    conditions(&world, "data", "");
    conditions(&world, "Not/A/Handle", "/k/x");
    assert_eq!(world.calls(), []);
    conditions(&world, "data", "/k/none");
    assert_eq!(world.calls(), [NodeCall::Look]);
}

#[test]
fn c49_a_copy_that_is_gone_is_a_data_loss_until_its_pod_is_gone() {
    let remove: [fn(&World); 3] = [
        |world| assert!(world.node.remove_copy(&h("data"))),
        |world| assert!(world.node.move_copy_away(&h("data"))),
        |world| assert!(world.node.rename_copy(&h("data"), &h("other"))),
    ];
    for remove in remove {
        let world = World::new();
        let web = world.running("web-0", "data");
        remove(&world);
        for _ in 0..2 {
            assert_eq!(conditions(&world, "data", &web.target()), [Condition::CopyGone]);
        }
        // A new directory under the old name is another one.
        world.node.put_copy(&h("data"), "file", b"new");
        assert_eq!(conditions(&world, "data", &web.target()), [Condition::CopyReplaced]);
    }
}

#[test]
fn c49_a_loss_is_still_known_after_a_restart() {
    let world = World::new();
    let (removed, moved) = (world.running("web-0", "removed"), world.running("web-1", "moved"));
    assert!(world.node.remove_copy(&h("removed")) && world.node.move_copy_away(&h("moved")));
    let world = world.restart();
    assert_eq!(conditions(&world, "removed", &removed.target()), [Condition::CopyGone]);
    assert_eq!(conditions(&world, "moved", &moved.target()), [Condition::CopyGone]);
}

#[test]
fn c49_a_read_only_store_is_inaccessible_and_a_read_only_mount_is_not() {
    let world = World::new();
    let web = pod("web-0", "data");
    let mut request = web.request();
    request.readonly = true;
    world.publish_as(&web, &request).expect("published");
    assert_eq!(conditions(&world, "data", &web.target()), []);
    world.node.set_read_only(true);
    assert_eq!(conditions(&world, "data", &web.target()), [Condition::StoreReadOnly]);
    world.node.set_read_only(false);
    assert_eq!(conditions(&world, "data", &web.target()), []);
}

#[test]
fn c49_a_store_that_fails_is_inaccessible_and_the_answer_names_the_errno() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.gate().script(NodeCall::Examine, io());
    let told = conditions(&world, "data", &web.target());
    let [Condition::StoreFailing { why }] = told.as_slice() else { panic!("{told:?}") };
    assert!(why.contains("/store/copies/data") && why.contains("Input/output error"), "{why}");
    assert_eq!(conditions(&world, "data", &web.target()), []);
}

#[test]
fn c49_a_store_that_fails_even_the_look_at_its_mount_is_inaccessible() {
    let world = World::new();
    let web = world.running("web-0", "data");
    // At the first look, and at the second.
    for looks_before in [0, 1] {
        for _ in 0..looks_before {
            world.node.gate().script(NodeCall::Look, Fault::None);
            world.node.gate().script(NodeCall::Examine, Fault::None);
        }
        world.node.gate().script(NodeCall::Look, io());
        world.node.gate().script(NodeCall::Examine, io());
        let told = conditions(&world, "data", &web.target());
        assert!(matches!(told.as_slice(), [Condition::StoreFailing { .. }]), "{told:?}");
    }
    assert_eq!(conditions(&world, "data", &web.target()), []);
}

#[test]
fn c49_a_nearly_full_store_is_degraded() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.set_available_bytes(8192);
    assert_eq!(conditions(&world, "data", &web.target()), []);
    world.node.write(web.target(), "big", &[0; 400 * 1024]).unwrap();
    world.node.set_available_bytes(8192);
    let full = [Condition::StoreNearlyFull, Condition::StoreNearlyOutOfInodes];
    assert_eq!(conditions(&world, "data", &web.target()), full);
}

#[test]
fn c49_what_cannot_be_found_out_is_an_error_and_no_condition() {
    let world = World::new();
    let web = world.running("web-0", "data");
    assert_eq!(
        run(world.driver.health("", &web.target())),
        Err(HealthError::MissingField { field: "volume_id" })
    );
    world.node.gate().script(NodeCall::Look, io());
    let answer = run(world.driver.health("data", &web.target()));
    assert!(matches!(answer, Err(HealthError::Look { .. })), "{answer:?}");
    // Of a target that is on record for nobody, or another volume's, not even a broken store says more.
    for (volume_id, path) in [("data", "/k/none"), ("other", &web.target())] {
        world.node.gate().script(NodeCall::Look, io());
        world.node.gate().script(NodeCall::Examine, io());
        let answer = run(world.driver.health(volume_id, path));
        assert!(matches!(answer, Err(HealthError::Look { .. })), "{answer:?}");
        world.node.gate().smooth();
    }
    world.node.gate().script(NodeCall::Examine, Fault::Before(KernelFault::Lost));
    let answer = run(world.driver.health("data", &web.target()));
    assert!(matches!(answer, Err(HealthError::Examine { .. })), "{answer:?}");
}

#[test]
fn c49_a_pod_that_leaves_meanwhile_with_its_copy_swept_has_lost_nothing() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.gate().script(NodeCall::Examine, Fault::HangBefore);
    let target = web.target();
    let mut health = pin!(world.driver.health("data", &target));
    assert!(poll(&mut health).is_pending());
    world.unpublish(&web).expect("unpublished");
    assert!(world.node.remove_copy(&h("data")));
    world.node.gate().release(NodeCall::Examine);
    assert_eq!(run(health), Ok(vec![]));
}

#[test]
fn c49_a_target_that_changes_under_every_look_is_told_as_such() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let (target, node) = (web.target(), world.node.clone());
    let mut health = pin!(world.driver.health("data", &target));
    for round in 0..16 {
        node.gate().script(NodeCall::Examine, Fault::HangBefore);
        if poll(&mut health).is_ready() {
            panic!("an answer after {round} changes");
        }
        // Another directory each time: never the same before and after.
        assert!(node.unmount(&target) && node.remove_copy(&h("data")));
        node.put_copy(&h("data"), "file", b"new");
        assert!(node.bind_copy(&h("data"), false, &target));
        if round == 3 {
            node.gate().smooth();
            node.gate().release(NodeCall::Examine);
            break;
        }
        node.gate().release(NodeCall::Examine);
    }
    assert_eq!(run(health), Err(HealthError::Unsteady));
}

#[test]
fn c49_a_question_changes_nothing_and_waits_for_no_publish() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let second = pod("web-1", "data");
    world.prepare(&second);
    world.node.gate().script(NodeCall::Showing, Fault::HangBefore);
    let request = second.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    world.calls();
    world.node.gate().script(NodeCall::Examine, Fault::Before(KernelFault::Errno(errno::EIO)));
    run(world.driver.health("data", &web.target())).expect("an answer");
    assert_eq!(world.calls(), [NodeCall::Look, NodeCall::Examine, NodeCall::Look]);
}
