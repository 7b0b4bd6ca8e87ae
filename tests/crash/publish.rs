//! Publish and unpublish, killed at each step: what a start finds, what it leaves, and whether the next call succeeds.

use std::fs;

use tonic::Code;

use crate::registers;
use crate::stage::{AFTER_REBOOT, FAILING, NEW, OLD, STAGED, Setting, Stage};
use crate::sweep_of_steps::{Place, at_each, places};
use crate::tracer::Kill;
use crate::{Case, everything};

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = vec![
        ("c16_a_publish_of_a_new_copy_killed_at_any_step_is_undone_or_done", || publishes(&NEW)),
        ("c17_c40_an_unpublish_killed_at_any_step_is_ended_by_the_next", unpublishes),
    ];
    if everything() {
        cases.push(("c16_a_publish_of_an_old_copy_killed_at_any_step_is_undone_or_done", || publishes(&OLD)));
        cases.push(("c12_a_killed_publish_takes_no_target_that_was_there_before", || {
            publishes(&AFTER_REBOOT)
        }));
    }
    if everything() && registers::CAN_ANSWER {
        cases.push(("c16_a_publish_by_way_of_staging_killed_at_any_step_is_undone_or_done", || {
            publishes(&STAGED)
        }));
        cases.push(("c16_the_undoing_of_a_failed_publish_killed_at_any_step_is_ended", || {
            publishes(&FAILING)
        }));
    }
    cases
}

/// The steps of the operation when nobody kills it.
fn steps_of(stage: &Stage) -> Vec<&'static str> {
    let steps = stage.traced.steps();
    assert!(!stage.traced.is_dead() && steps.len() > 2, "{steps:?}\n{}", stage.node.log());
    println!("steps: {}", steps.join(" "));
    steps
}

fn publishes(setting: &Setting) {
    let learnt = Stage::new(Kill::Never, setting);
    learnt.traced.count();
    let answer = learnt.node.publish("data", "pod");
    assert_eq!(answer.is_err(), setting.fails, "{answer:?}");
    let places = places(&steps_of(&learnt));
    drop(learnt);
    at_each(setting.title, &places, |place| publish_killed(setting, place));
}

fn publish_killed(setting: &Setting, place: Place) {
    let stage = Stage::new(place.kill, setting);
    let Stage { node, traced, .. } = &stage;
    traced.count();
    node.publish("data", "pod").expect_err("the driver died before it answered, or refused");
    traced.dies_or_rests();
    // Where it refuses, what tells of that comes by itself.
    assert!(setting.fails || traced.steps().last() == Some(&place.name), "{:?}", traced.steps());
    let _driver = node.start();
    if place.is_in_the_window() && !setting.fails {
        // The one window of C16: all was done, and nobody was told.
        assert_eq!(node.mounts_at("pod"), 1);
        let held = node.publish("data", "rival").expect_err("it counts as held");
        assert_eq!(held.code(), Code::FailedPrecondition);
    } else {
        stage.is_as_before(setting);
    }
    let (pod, is_retry) = if matches!(place.kill, Kill::Before(at) if at % 2 == 1) {
        ("another", false)
    } else {
        ("pod", true)
    };
    node.publish("data", pod).unwrap_or_else(|error| panic!("retry: {is_retry}: {error:?}\n{}", node.log()));
    assert_eq!(node.mounts_at(pod), 1);
    fs::write(node.target(pod).join("new"), "x").expect("the pod can write");
    stage.bystander_noticed_nothing();
    node.unpublish("data", pod).expect("unpublished");
    assert_eq!(node.mounts(), stage.mounts);
    assert!(!node.target(pod).exists());
    assert_eq!(fs::read(node.copy("data").join("new")).expect("the copy stays"), b"x");
    if setting.copy_is_there {
        stage.old_data_is_whole();
    }
}

/// A pod on the stage that has mounted things below its target, as one with Bidirectional propagation may.
fn running(kill: Kill) -> Stage {
    let stage = Stage::new(kill, &OLD);
    stage.node.publish("data", "pod").expect("published");
    for below in ["one", "one/two"] {
        let at = stage.node.target("pod").join(below);
        fs::create_dir_all(&at).expect("mkdir");
        rustix::mount::mount("below", &at, "tmpfs", rustix::mount::MountFlags::empty(), c"")
            .expect("a tmpfs");
    }
    stage
}

fn unpublishes() {
    let learnt = running(Kill::Never);
    learnt.traced.count();
    learnt.node.unpublish("data", "pod").expect("unpublished");
    let places = places(&steps_of(&learnt));
    drop(learnt);
    at_each("unpublish", &places, |place| {
        let stage = running(place.kill);
        let Stage { node, traced, .. } = &stage;
        traced.count();
        node.unpublish("data", "pod").expect_err("the driver died before it answered");
        traced.wait_dead();
        assert_eq!(traced.steps().last(), Some(&place.name));
        let is_mounted = node.mounts_at("pod") > 0;
        let _driver = node.start();
        assert_eq!(node.mounts_at("pod") > 0, is_mounted, "a start takes nothing from a pod that may run");
        match node.publish("data", "another") {
            Ok(()) => {
                assert!(!is_mounted, "two pods on one copy");
                node.unpublish("data", "another").expect("unpublished");
            }
            Err(status) => {
                assert!(is_mounted, "refused though nobody holds it: {status:?}");
                assert_eq!(status.code(), Code::FailedPrecondition);
            }
        }
        node.unpublish("data", "pod").expect("the kubelet's next try");
        stage.is_as_before(&OLD);
        stage.bystander_noticed_nothing();
    });
}
