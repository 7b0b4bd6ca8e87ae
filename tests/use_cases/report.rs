//! What the driver tells people of its copies. The method is no future: it cannot ask the disk, the kernel or the API server.

use std::time::Duration;

use per_node::adapters::memory::{self, Fault, NodeCall};
use per_node::domain::use_cases::driver::Brakes;
use per_node::domain::use_cases::report::{CopyReport, Report, Wanted};
use per_node::ports::clock::Clock;

use crate::world::{World, driver_on, h, pod, poll, run};

const ALL: Wanted = Wanted { handle: None, after: None, copies_max: 100 };

fn handles(report: &Report) -> Vec<&str> {
    report.copies.iter().map(|copy| copy.handle.as_str()).collect()
}

/// The holders of a copy, as a person would call them.
fn holders(copy: &CopyReport) -> Vec<String> {
    copy.holders.iter().map(|holder| holder.pod.to_string()).collect()
}

#[test]
fn c45_a_copy_is_told_with_its_size_its_holder_and_since_when() {
    let world = World::new();
    let since = world.clock.wall();
    let web = world.running("web-0", "data");
    world.clock.advance(Duration::from_secs(90));
    world.calls();
    let report = world.driver.report(&ALL);
    assert_eq!(world.calls(), [], "a report asks the node for nothing");
    let [copy] = report.copies.as_slice() else { panic!("{report:?}") };
    let [holder] = copy.holders.as_slice() else { panic!("{copy:?}") };
    assert_eq!((copy.handle.as_str(), holder.pod.to_string().as_str()), ("data", "pod ns/web-0"));
    assert_eq!((holder.since, holder.readonly), (Some(since), Some(false)));
    assert_eq!(holder.pod.target, web.target_path());
    assert_eq!(copy.measured.map(|measured| measured.usage.used_inodes), Some(2));
    assert_eq!(copy.leftovers, 0);
}

#[test]
fn c45_what_a_record_does_not_say_the_latest_look_at_the_mounts_does() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.tear_record(&web.target_path());
    world.node.bind_copy(&h("data"), true, "/mnt/operator");
    let world = world.restart();
    let report = world.driver.report(&ALL);
    assert_eq!(holders(&report.copies[0]), ["the pod with UID web-0-uid"]);
    assert_eq!((report.copies[0].holders[0].since, report.copies[0].leftovers), (None, 1));
    world.unpublish(&web).unwrap();
    assert_eq!(holders(&world.driver.report(&ALL).copies[0]), [""; 0]);
}

#[test]
fn c45_a_publish_that_is_not_done_holds_nothing_in_a_report() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.prepare(&web);
    world.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    let request = web.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    assert_eq!(handles(&world.driver.report(&ALL)), [""; 0]);
    world.node.gate().release_all();
    run(publish).unwrap();
    assert_eq!(handles(&world.driver.report(&ALL)), ["data"]);
}

#[test]
fn c21_a_copy_that_no_volume_names_is_an_orphan_once_the_volumes_were_read() {
    let mut world = World::new();
    world.create_volume("named");
    world.running("web-0", "named");
    world.running("web-1", "orphan");
    let orphans = |world: &World| -> Vec<Option<bool>> {
        world.driver.report(&ALL).copies.iter().map(|copy| copy.orphan).collect()
    };
    world.sweep();
    assert_eq!(orphans(&world), [Some(false), Some(true)]);
    let standalone = driver_on(memory::ports(&world.node, &world.api, None, &world.clock));
    run(standalone.measure_copies());
    let told: Vec<_> = standalone.report(&ALL).copies.iter().map(|copy| copy.orphan).collect();
    assert_eq!(told, [None, None], "where the volumes are not read nobody knows");
}

#[test]
fn c21_a_removed_copy_leaves_the_report_and_one_without_a_holder_stays_in_it() {
    let mut world = World::new();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    assert_eq!(handles(&world.driver.report(&ALL)), ["data"]);
    world.delete_volume("data");
    world.sweep();
    assert!(!world.has_copy("data"));
    let report = world.driver.report(&ALL);
    assert_eq!((handles(&report), report.copies_total), (vec![], 0));
}

#[test]
fn c45_a_report_comes_in_parts_in_the_order_of_handles() {
    let world = World::new();
    for (name, handle) in [("p1", "a"), ("p2", "b"), ("p3", "c"), ("p4", "d"), ("p5", "e")] {
        world.running(name, handle);
    }
    let part = |after: Option<&str>| {
        let report = world.driver.report(&Wanted { after: after.map(h), copies_max: 2, ..ALL });
        assert_eq!(report.copies_total, 5);
        (report.copies.iter().map(|copy| copy.handle.to_string()).collect::<Vec<_>>().join(""), report.more)
    };
    assert_eq!(part(None), ("ab".into(), true));
    assert_eq!(part(Some("b")), ("cd".into(), true));
    assert_eq!(part(Some("d")), ("e".into(), false));
    assert_eq!(part(Some("e")), ("".into(), false));
    let one = world.driver.report(&Wanted { handle: Some(h("c")), ..ALL });
    assert_eq!((handles(&one), one.more), (vec!["c"], false));
}

#[test]
fn c30_the_refusals_of_the_last_hour_are_told_with_volume_pod_and_count() {
    let world = World::new();
    world.running("web-0", "data");
    let first = world.clock.wall();
    let second = pod("web-1", "data");
    for _ in 0..3 {
        world.refused(&second, &second.request());
        world.clock.advance(Duration::from_secs(60));
    }
    let mut bad = pod("web-2", "data").request();
    bad.volume_id = "Not/A/Handle".to_owned();
    bad.pod = Default::default();
    bad.target_path = "relative".to_owned();
    run(world.driver.publish(&bad)).unwrap_err();
    let refusals = world.driver.recent_refusals();
    let [(rule, once), (held, thrice)] = refusals.as_slice() else { panic!("{refusals:?}") };
    assert_eq!((rule.handle.as_ref(), rule.pod.as_ref(), once.count), (None, None, 1));
    assert_eq!((held.handle.clone(), held.pod.clone()), (Some(h("data")), Some(second.reference())));
    assert_eq!((thrice.count, thrice.first), (3, first));
    assert!(held.message.contains("pod ns/web-0"), "{}", held.message);
    world.clock.advance(Duration::from_secs(3601));
    assert_eq!(world.driver.recent_refusals(), []);
}

#[test]
fn c46_the_stores_space_is_as_it_was_last_asked_for() {
    let world = World::new();
    let web = world.running("web-0", "data");
    assert_eq!(world.driver.report(&ALL).capacity, None);
    world.node.set_available_bytes(1 << 20);
    run(world.driver.measure_copies());
    let (capacity, at) = world.driver.report(&ALL).capacity.expect("measured");
    assert_eq!((capacity.available_bytes, at), (1 << 20, world.clock.wall()));
    world.node.set_available_bytes(1 << 19);
    world.clock.advance(Duration::from_secs(60));
    run(world.driver.statistics("data", &web.target())).unwrap();
    let (capacity, at) = world.driver.report(&ALL).capacity.expect("measured");
    assert_eq!((capacity.available_bytes, at), (1 << 19, world.clock.wall()));
}

#[test]
fn c26_a_kept_copy_is_told_with_the_time_that_is_left_to_it() {
    let mut world = World::with(Brakes { trash_for: Some(Duration::from_secs(3600)), ..Brakes::default() });
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.sweep();
    let removed = world.clock.wall();
    world.delete_volume("data");
    world.sweep();
    world.clock.advance(Duration::from_secs(600));
    let trash = world.driver.trash_report();
    let [entry] = trash.as_slice() else { panic!("{trash:?}") };
    assert_eq!((entry.handle.as_str(), entry.left), ("data", Some(Duration::from_secs(3000))));
    assert_eq!(entry.kept.map(|kept| kept.removed), Some(removed));
}
