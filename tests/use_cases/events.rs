//! C30 to C33: refusals are told on the pod, counted, and lost to no outage and no restart.

use std::time::Duration;

use per_node::adapters::memory::{EventCall, Fault, NodeCall};
use per_node::domain::event_series::SERIES_MAX;
use per_node::domain::refusal::Reason;
use per_node::ports::event_sink::EventSinkError;

use crate::world::{Pod, WINDOW, World, io, pod, poll, run};

/// A world in which `web-0` holds the copy, and a second pod that will be refused.
fn held() -> (World, Pod) {
    let world = World::new();
    world.running("web-0", "data");
    (world, pod("web-1", "data"))
}

fn refuse(world: &World, pod: &Pod, times: u32) {
    for _ in 0..times {
        world.publish(pod).unwrap_err();
    }
}

fn retry() -> EventSinkError {
    EventSinkError::Retry { why: "away".to_owned(), retry_after: None }
}

#[test]
fn c30_a_refusal_is_told_on_the_pod() {
    let (world, second) = held();
    refuse(&world, &second, 1);
    let events = world.events(&second);
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].reason.as_str(), events[0].count), ("PerNodeVolumeHeld", 1));
    assert_eq!(events[0].subject, second.reference().into());
    assert_eq!(events[0].first, events[0].last);
}

#[test]
fn c30_a_request_that_names_no_pod_posts_none() {
    let (world, second) = held();
    world.prepare(&second);
    let mut request = second.request();
    request.pod.namespace = None;
    run(world.driver.publish(&request)).unwrap_err();
    run(world.driver.step_events());
    assert_eq!(world.api.events(), []);
    assert_eq!(world.driver.tally().refusals(Reason::VolumeHeld), 1);
}

#[test]
fn c31_a_refusal_that_repeats_raises_the_count_of_one_event() {
    let (world, second) = held();
    let first = world.driver.tally();
    for minute in 0..37 {
        refuse(&world, &second, 1);
        assert_eq!(world.events(&second).len(), 1, "minute {minute}");
        world.clock.advance(Duration::from_secs(100));
    }
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 37));
    assert_eq!(events[0].last.since(events[0].first), Duration::from_secs(3600));
    assert_eq!(first.refusals(Reason::VolumeHeld), 37);
}

#[test]
fn c31_later_than_the_window_it_is_a_new_event() {
    let (world, second) = held();
    refuse(&world, &second, 1);
    world.events(&second);
    world.clock.advance(WINDOW);
    refuse(&world, &second, 1);
    assert_eq!(world.events(&second).len(), 1, "ten minutes are within ten minutes");
    world.clock.advance(WINDOW + Duration::from_millis(1));
    refuse(&world, &second, 1);
    let counts: Vec<u32> = world.events(&second).iter().map(|event| event.count).collect();
    assert_eq!(counts, [2, 1]);
}

#[test]
fn c33_two_reasons_on_one_pod_never_hide_each_other() {
    let (world, second) = held();
    refuse(&world, &second, 1);
    let mut request = second.request();
    request.capability = None;
    world.publish_as(&second, &request).unwrap_err();
    world.node.gate().script(NodeCall::Showing, io());
    refuse(&world, &second, 1);
    let mut reasons: Vec<Reason> = world.events(&second).iter().map(|event| event.reason).collect();
    reasons.sort();
    assert_eq!(reasons, [Reason::VolumeRefused, Reason::VolumeHeld, Reason::MountFailed]);
}

#[test]
fn c32_the_count_goes_on_across_a_restart() {
    let (world, second) = held();
    refuse(&world, &second, 2);
    world.events(&second);
    let world = world.restart();
    refuse(&world, &second, 1);
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 3));
}

#[test]
fn c32_an_outage_of_the_api_server_loses_no_count() {
    let (world, second) = held();
    for _ in 0..5 {
        world.api.event_gate().script(EventCall::Create, Fault::Before(retry()));
        refuse(&world, &second, 1);
        let delay = run(world.driver.step_events()).expect("it is tried again");
        world.clock.advance(delay);
    }
    assert_eq!(world.api.events(), []);
    let world = world.restart();
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 5));
}

#[test]
fn c32_a_post_whose_answer_was_lost_is_not_counted_twice() {
    let (world, second) = held();
    world.api.event_gate().script(EventCall::Create, Fault::After(retry()));
    world.api.event_gate().script(EventCall::Patch, Fault::After(retry()));
    refuse(&world, &second, 2);
    for _ in 0..4 {
        run(world.driver.step_events());
        world.clock.advance(Duration::from_secs(61));
    }
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 2));
}

#[test]
fn c32_an_event_that_aged_out_is_created_anew_with_its_count() {
    let (world, second) = held();
    world.api.set_event_ttl(Duration::from_secs(300));
    refuse(&world, &second, 2);
    world.events(&second);
    world.clock.advance(Duration::from_secs(400));
    assert_eq!(world.api.events(), []);
    refuse(&world, &second, 1);
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 3));
    assert_eq!(events[0].last.since(events[0].first), Duration::from_secs(400));
}

#[test]
fn c32_a_terminating_namespace_ends_the_series() {
    let (world, second) = held();
    world.api.terminate_namespace("ns");
    refuse(&world, &second, 1);
    assert_eq!(run(world.driver.step_events()), None);
    assert_eq!(world.api.events(), []);
    assert_eq!(world.records.series(), []);
    world.api.event_gate().take_calls();
    run(world.driver.step_events());
    assert_eq!(world.api.event_gate().take_calls(), []);
}

#[test]
fn c32_an_event_that_will_never_be_taken_is_dropped_and_counted() {
    let (world, second) = held();
    world.api.event_gate().script(EventCall::Create, Fault::Before(EventSinkError::Rejected { status: 422 }));
    refuse(&world, &second, 1);
    assert_eq!(run(world.driver.step_events()), None);
    let dropped = world.driver.tally().events_dropped.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(dropped, 1);
    assert_eq!(world.records.series(), []);
}

#[test]
fn c32_the_queue_is_bounded_and_what_overflows_is_counted() {
    let (world, _) = held();
    for number in 0..SERIES_MAX + 10 {
        let mut request = pod("web-1", "data").request();
        request.pod.name = Some(format!("web-{number}"));
        run(world.driver.publish(&request)).unwrap_err();
    }
    let tally = world.driver.tally();
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((load(&tally.events_queued), load(&tally.events_dropped)), (SERIES_MAX as u64, 10));
    while run(world.driver.step_events()).is_some() {}
    assert_eq!(world.api.events().len(), SERIES_MAX);
    assert_eq!(load(&tally.events_queued), 0);
}

#[test]
fn c32_what_leaves_a_full_book_leaves_the_store_before_what_takes_its_place() {
    let (world, _) = held();
    let refuse = |number: usize| {
        let mut request = pod("web-1", "data").request();
        request.pod.name = Some(format!("web-{number}"));
        run(world.driver.publish(&request)).unwrap_err();
    };
    (0..SERIES_MAX).for_each(refuse);
    while run(world.driver.step_events()).is_some() {}
    world.node.gate().take_calls();
    refuse(SERIES_MAX);
    run(world.driver.step_events());
    let calls = world.node.gate().take_calls();
    let writes = calls.into_iter().filter(|call| matches!(call, NodeCall::PutSeries | NodeCall::DropSeries));
    // The second write says that it is posted.
    assert_eq!(writes.collect::<Vec<_>>(), [NodeCall::DropSeries, NodeCall::PutSeries, NodeCall::PutSeries]);
    assert_eq!(world.records.series().len(), SERIES_MAX);
}

#[test]
fn c30_no_publish_waits_for_an_event() {
    let (world, second) = held();
    world.api.event_gate().script(EventCall::Create, Fault::HangBefore);
    refuse(&world, &second, 1);
    let mut step = Box::pin(world.driver.step_events());
    assert!(poll(&mut step).is_pending());
    refuse(&world, &second, 4);
    world.api.event_gate().release_all();
    run(step);
    let events = world.events(&second);
    assert_eq!((events.len(), events[0].count), (1, 5));
}

#[test]
fn c32_no_count_is_told_that_a_restart_would_not_know() {
    let (world, second) = held();
    world.api.event_gate().script(EventCall::Create, Fault::HangBefore);
    // The refusals of the other pod come between saving and posting.
    let third = pod("web-2", "data");
    refuse(&world, &second, 1);
    world.node.gate().script(NodeCall::PutSeries, Fault::HangBefore);
    let mut step = Box::pin(world.driver.step_events());
    assert!(poll(&mut step).is_pending());
    refuse(&world, &third, 2);
    world.node.gate().release_all();
    assert!(poll(&mut step).is_pending());
    world.api.event_gate().release_all();
    let _ = poll(&mut step);
    drop(step);
    let told: Vec<u32> = world.api.events_of(&third.reference()).iter().map(|event| event.count).collect();
    let world = world.restart();
    refuse(&world, &third, 1);
    let counts: Vec<u32> = world.events(&third).iter().map(|event| event.count).collect();
    assert!(told.is_empty() || told == [2], "{told:?}");
    assert_eq!(counts, [3]);
}

#[test]
fn c32_a_series_that_could_not_be_written_is_written_again() {
    let (world, second) = held();
    for _ in 0..3 {
        world.node.gate().script(NodeCall::PutSeries, io());
    }
    refuse(&world, &second, 1);
    let delay = run(world.driver.step_events()).expect("it is written again");
    assert_eq!(world.api.events_of(&second.reference()).len(), 1, "it is told all the same");
    world.clock.advance(delay);
    assert_eq!(run(world.driver.step_events()), None);
    let world = world.restart();
    refuse(&world, &second, 1);
    assert_eq!(world.events(&second)[0].count, 2);
}

#[test]
fn c31_finished_series_leave_the_store() {
    let (world, second) = held();
    refuse(&world, &second, 1);
    world.events(&second);
    assert_eq!(world.records.series().len(), 1);
    world.clock.advance(WINDOW + Duration::from_secs(1));
    run(world.driver.step_events());
    assert_eq!(world.records.series(), []);
}
