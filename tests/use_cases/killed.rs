//! C16 and C40: SIGKILL at any await of any use case; a start settles what was left, and loses nothing.

use per_node::adapters::memory::{Fault, Plan};
use per_node::domain::holds::TargetState;
use per_node::domain::mount_table::TargetView;

use crate::world::{World, h, pod, poll, run};

/// More awaits than any use case has.
const AWAITS_MAX: u32 = 200;

/// A world in which every port call can be killed before and after it acts.
fn pausing(world: &World) {
    world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
}

/// Runs what `begin` makes for `awaits` awaits and kills it; true where it came to its end before.
fn kill_after<F: Future>(awaits: u32, future: F) -> bool {
    let mut future = Box::pin(future);
    (0..awaits).any(|_| poll(&mut future).is_ready())
}

#[test]
fn c16_c40_a_publish_killed_at_any_await_is_undone_or_done() {
    for awaits in 1..AWAITS_MAX {
        let world = World::new();
        let web = pod("web-0", "data");
        world.prepare(&web);
        pausing(&world);
        let request = web.request();
        let ended = kill_after(awaits, world.driver.publish(&request));
        let world = world.restart();
        let record = world.records.target(&web.target_path());
        match world.node.view(web.target()) {
            TargetView::Mounted(stack) => {
                assert_eq!(stack.layers.len(), 1);
                assert_eq!(record.map(|record| record.state), Some(TargetState::Held), "after {awaits}");
            }
            TargetView::Absent => {
                assert!(!ended);
                world.assert_nothing_at(&web);
                assert!(!world.has_copy("data"), "a new empty copy is left after {awaits}");
            }
            other => panic!("after {awaits}: {other:?}"),
        }
        run(world.driver.publish(&request)).unwrap();
        if ended {
            return;
        }
    }
    panic!("the publish never ends");
}

#[test]
fn c12_c40_a_kill_takes_no_target_directory_that_was_there_before() {
    for awaits in 1..AWAITS_MAX {
        let world = World::new();
        let web = world.running("web-0", "data");
        world.node.reboot();
        let world = world.restart();
        pausing(&world);
        let request = web.request();
        let ended = kill_after(awaits, world.driver.publish(&request));
        let world = world.restart();
        assert!(world.node.exists(web.target()), "after {awaits}");
        if ended {
            return;
        }
    }
    panic!("the publish never ends");
}

#[test]
fn c40_an_unpublish_killed_at_any_await_is_ended_by_the_next() {
    for awaits in 1..AWAITS_MAX {
        let world = World::new();
        let web = world.running("web-0", "data");
        pausing(&world);
        let request = web.unpublish_request();
        let ended = kill_after(awaits, world.driver.unpublish(&request));
        let world = world.restart();
        run(world.driver.unpublish(&request)).unwrap();
        world.assert_nothing_at(&web);
        assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
        run(world.driver.publish(&pod_prepared(&world).request())).unwrap();
        if ended {
            return;
        }
    }
    panic!("the unpublish never ends");
}

fn pod_prepared(world: &World) -> crate::world::Pod {
    let other = pod("web-1", "data");
    world.prepare(&other);
    other
}

#[test]
fn c23_c40_a_sweep_killed_at_any_await_loses_no_named_copy_and_ends_after_a_restart() {
    for awaits in 1..AWAITS_MAX {
        let mut world = World::new();
        world.sweep();
        for (name, handle) in [("web-0", "gone"), ("web-1", "kept")] {
            world.create_volume(handle);
            let web = world.running(name, handle);
            world.unpublish(&web).unwrap();
        }
        world.sweep();
        world.delete_volume("gone");
        pausing(&world);
        let ended = kill_after(awaits, world.sweeper.step());
        let mut world = world.restart();
        assert_eq!(world.file("kept", "file").as_deref(), Some(&b"web-1"[..]));
        // A deletion that this process did not see goes at the second tick (C22 (d)).
        world.sweep();
        world.tick();
        assert!(!world.has_copy("gone"), "after {awaits}");
        assert_eq!(world.node.trash_ids(), [], "after {awaits}");
        assert_eq!(world.records.trash_records(), [], "after {awaits}");
        assert_eq!(world.file("kept", "file").as_deref(), Some(&b"web-1"[..]));
        if ended {
            return;
        }
    }
    panic!("the sweep never ends");
}

#[test]
fn c16_c40_a_start_killed_at_any_await_is_ended_by_the_next() {
    for awaits in 1..AWAITS_MAX {
        let world = World::new();
        let (half, whole) = (pod("web-0", "half"), world.running("web-1", "whole"));
        let forgotten = world.running("web-2", "third");
        assert!(world.node.remove(format!("{}/vol_data.json", forgotten.directory())));
        world.prepare(&half);
        world.node.gate().script(per_node::adapters::memory::NodeCall::Attach, Fault::HangAfter);
        let request = half.request();
        kill_after(1, world.driver.publish(&request));
        let world = world.killed();
        pausing(&world);
        let ended = kill_after(awaits, world.driver.reconcile());
        let world = world.restart();
        world.assert_nothing_at(&half);
        assert!(!world.has_copy("half"), "a new empty copy is left after {awaits}");
        world.assert_nothing_at(&forgotten);
        assert_eq!(world.node.read(whole.target(), "file").as_deref(), Some(&b"web-1"[..]));
        assert_eq!(world.records.targets_of(&h("whole")).len(), 1);
        if ended {
            return;
        }
    }
    panic!("the start never ends");
}

#[test]
fn c40_running_pods_notice_no_restart() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let before = world.node.view(web.target());
    let world = world.restart();
    assert_eq!(world.node.view(web.target()), before);
    assert_eq!(world.node.write(web.target(), "file", b"more"), Ok(()));
    assert!(world.publish(&pod("web-1", "data")).is_err());
}
