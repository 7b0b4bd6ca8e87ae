//! C26, `--sweep-limit`: a pass that would remove more copies removes none, and says so, until a person confirms these.

use std::sync::atomic::Ordering;

use per_node::domain::refusal::Reason;
use per_node::domain::tally::{SweepOutcome, WaitingFor};
use per_node::domain::use_cases::confirm::{ConfirmError, Seen};
use per_node::domain::use_cases::driver::Brakes;

use crate::world::{World, h, run};

const TWO: Brakes = Brakes { trash_for: None, sweep_limit: Some(2) };
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A world with a limit of two, and so many orphans.
fn orphans(count: usize) -> World {
    let mut world = World::with(TWO);
    world.sweep();
    NAMES[..count].iter().for_each(|name| world.orphan(name));
    world
}

/// The same after the pass that was stopped.
fn stopped() -> World {
    let mut world = orphans(3);
    world.sweep();
    world
}

fn over_limit(world: &World) -> u64 {
    world.driver.tally().over_limit.load(Ordering::Relaxed)
}

#[test]
fn c26_a_pass_within_the_limit_removes_all() {
    let mut world = orphans(2);
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 2);
    assert_eq!(world.sweeper.waiting(), None);
    assert!(world.node_events().is_empty());
}

#[test]
fn c26_a_pass_over_the_limit_removes_none_and_says_so() {
    let mut world = stopped();
    assert_eq!((world.swept(SweepOutcome::Removed), world.swept(SweepOutcome::OverLimit)), (0, 3));
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::SweepLimit));
    assert_eq!(world.sweeper.over_limit(), [h("a"), h("b"), h("c")]);
    assert_eq!(over_limit(&world), 3);
    let events = world.node_events();
    assert_eq!((events.len(), events[0].reason, events[0].count), (1, Reason::SweepStopped, 1));
    world.tick();
    assert_eq!(world.swept(SweepOutcome::Removed), 0, "nor does the next");
    let events = world.node_events();
    assert_eq!((events.len(), events[0].count), (1, 2), "which counts in the same event (C31)");
    assert_eq!(world.driver.tally().sweeps_stopped.load(Ordering::Relaxed), 2);
}

#[test]
fn c26_a_person_lets_through_what_waits() {
    let mut world = stopped();
    assert_eq!(run(world.sweeper.confirm(None)).unwrap(), WaitingFor::SweepLimit);
    assert_eq!(world.sweeper.waiting(), None);
    assert!(matches!(run(world.sweeper.confirm(None)), Err(ConfirmError::NothingWaits)));
    run(world.driver.sweep_wanted().wait());
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 3);
}

#[test]
fn c26_what_comes_after_the_confirmation_is_stopped_again_with_the_rest() {
    let mut world = stopped();
    run(world.sweeper.confirm(None)).unwrap();
    world.orphan("d");
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
    assert_eq!(world.sweeper.over_limit().len(), 4);
    run(world.sweeper.confirm(None)).unwrap();
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 4);
}

#[test]
fn c26_what_was_seen_is_confirmed_and_not_what_came_to_it_since() {
    let mut world = stopped();
    let seen = world.sweeper.seen();
    assert!(seen.is_some_and(|seen| Seen::parse(&seen.to_string()) == Some(seen)));
    world.orphan("d");
    world.sweep();
    assert!(matches!(run(world.sweeper.confirm(seen)), Err(ConfirmError::Changed)));
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
    let seen = world.sweeper.seen();
    run(world.sweeper.confirm(seen)).unwrap();
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 4);
    assert_eq!(world.sweeper.seen(), None, "nothing waits");
}

#[test]
fn c26_a_copy_that_was_published_since_is_not_the_one_that_was_confirmed() {
    let mut world = stopped();
    run(world.sweeper.confirm(None)).unwrap();
    world.orphan("a");
    world.sweep();
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
}

#[test]
fn c26_what_is_confirmed_goes_on_proofs_of_its_own() {
    let mut world = stopped();
    run(world.sweeper.confirm(None)).unwrap();
    world.create_volume("b");
    world.sweep();
    assert!(world.has_copy("b") && !world.has_copy("a") && !world.has_copy("c"));
}

#[test]
fn c26_a_larger_limit_lets_it_go_on() {
    let mut world = stopped().restart_with(Brakes { sweep_limit: Some(3), ..TWO });
    world.sweep();
    world.tick();
    assert_eq!(world.swept(SweepOutcome::Removed), 3);
}

#[test]
fn c26_a_restart_forgets_what_was_confirmed_and_asks_again() {
    let mut world = stopped();
    run(world.sweeper.confirm(None)).unwrap();
    let mut world = world.restart();
    world.sweep();
    world.tick();
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::SweepLimit));
}

#[test]
fn c26_volumes_that_come_back_end_the_stop() {
    let mut world = stopped();
    world.create_volume("a");
    world.create_volume("b");
    world.tick();
    assert_eq!((world.sweeper.waiting(), over_limit(&world)), (None, 0));
    assert!(world.has_copy("a") && world.has_copy("b") && !world.has_copy("c"));
}

#[test]
fn c26_what_waits_unseen_waits_on_beside_a_pass_that_is_small_enough() {
    let mut world = orphans(3).restart();
    world.sweep();
    world.tick();
    assert_eq!(world.sweeper.over_limit().len(), 3, "vanished unseen, stopped at the second tick");
    world.orphan("d");
    world.sweep();
    assert!(!world.has_copy("d"));
    assert_eq!((world.sweeper.waiting(), over_limit(&world)), (Some(WaitingFor::SweepLimit), 3));
}

#[test]
fn c26_a_doubt_of_the_history_comes_before_the_number() {
    let mut world = stopped();
    let backup = world.api.backup();
    world.api.touch();
    world.tick();
    world.api.restore(&backup);
    world.tick();
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::Revision));
    assert_eq!(run(world.sweeper.confirm(None)).unwrap(), WaitingFor::Revision);
    world.tick();
    assert_eq!(world.sweeper.waiting(), Some(WaitingFor::SweepLimit));
    assert_eq!(world.swept(SweepOutcome::Removed), 0);
}

#[test]
fn c26_a_limit_of_none_asks_a_person_for_every_copy() {
    let mut world = World::with(Brakes { sweep_limit: Some(0), ..TWO });
    world.sweep();
    world.orphan("a");
    world.sweep();
    assert!(world.has_copy("a"));
    run(world.sweeper.confirm(None)).unwrap();
    world.sweep();
    assert!(!world.has_copy("a"));
}
