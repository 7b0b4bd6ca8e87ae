//! C1 to C11 and C18: what a publish that is admitted does, and what it refuses by itself.

use std::time::Duration;

use per_node::adapters::memory::{Fault, NodeCall, WriteError};
use per_node::domain::handle::HandleError;
use per_node::domain::holds::{TargetRecord, TargetState};
use per_node::domain::mount_options::{AccessTime, MountOptionsError};
use per_node::domain::mount_table::TargetView;
use per_node::domain::refusal::{FailedStep, PublishError, Reason, Refusal};
use per_node::domain::target::TargetError;
use per_node::domain::volume_request::{AccessType, RequestError};
use per_node::ports::clock::Clock;

use crate::world::{Pod, World, capability, h, pod, poll, run};

#[test]
fn c01_a_pod_that_comes_back_finds_the_copy_it_left() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.unpublish(&first).unwrap();
    let again = pod("web-1", "data");
    world.publish(&again).unwrap();
    assert_eq!(world.node.read(again.target(), "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c01_another_node_has_a_copy_of_its_own() {
    let (one, two) = (World::new(), World::new());
    one.running("web-0", "data");
    let there = pod("web-1", "data");
    two.publish(&there).unwrap();
    assert_eq!(two.node.read(there.target(), "file"), None);
}

#[test]
fn c03_a_bad_handle_is_refused_for_good_and_its_rule_is_told() {
    let world = World::new();
    let bad = pod("web-0", "Not/A/Handle");
    world.prepare(&bad);
    // Even where a directory is there: nothing can ever have been published under that handle.
    world.node.make_directory(bad.target());
    let (refusal, is_final) = world.refused(&bad, &bad.request());
    assert_eq!(refusal, Refusal::Handle(HandleError::Character { character: 'N' }));
    assert!(is_final);
    assert_eq!(world.node.copy_names(), [""; 0]);
    let events = world.events(&bad);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason, Reason::VolumeRefused);
    assert!(events[0].message.contains("'N'"), "{}", events[0].message);
}

#[test]
fn c04_every_access_mode_is_bound_the_same_way() {
    for access_mode in 1..=7 {
        let world = World::new();
        let web = pod("web-0", "data");
        let mut request = web.request();
        request.capability = Some(capability(&[], "", access_mode));
        world.publish_as(&web, &request).unwrap();
        assert_eq!(world.node.write(web.target(), "file", b"x"), Ok(()), "mode {access_mode}");
    }
}

#[test]
fn c04_a_read_only_publish_refuses_writes_and_the_copy_stays_writable_for_others() {
    let world = World::new();
    let reader = pod("web-0", "data");
    let mut request = reader.request();
    request.readonly = true;
    world.publish_as(&reader, &request).unwrap();
    assert_eq!(world.node.write(reader.target(), "file", b"x"), Err(WriteError::ReadOnly));
    world.unpublish(&reader).unwrap();
    world.running("web-1", "data");
}

#[test]
fn c05_the_flags_that_were_asked_are_the_mounts() {
    let world = World::new();
    let web = pod("web-0", "data");
    let mut request = web.request();
    request.capability = Some(capability(&["noexec,nosuid", "noatime"], "", 5));
    world.publish_as(&web, &request).unwrap();
    let flags = world.node.flags(web.target()).unwrap();
    assert!(flags.no_exec && flags.no_suid && !flags.no_dev && !flags.read_only);
    assert_eq!(flags.access_time, AccessTime::Never);
}

#[test]
fn c05_what_cannot_be_published_is_refused_before_anything_is_made() {
    let block = |pod: &Pod| {
        let mut request = pod.request();
        request.capability.as_mut().unwrap().access_type = Some(AccessType::Block);
        request
    };
    let with = |pod: &Pod, flags: &[&str], mode| {
        let mut request = pod.request();
        request.capability = Some(capability(flags, "", mode));
        request
    };
    let web = pod("web-0", "data");
    let cases = [
        (block(&web), RequestError::Block),
        (with(&web, &[], 99), RequestError::UnknownAccessMode { mode: 99 }),
        (with(&web, &["bind"], 5), RequestError::Options(MountOptionsError::Unsupported)),
    ];
    for (request, error) in cases {
        let world = World::new();
        let (refusal, is_final) = world.refused(&web, &request);
        assert_eq!((refusal, is_final), (Refusal::Request(error), true));
        world.assert_nothing_at(&web);
        assert!(!world.has_copy("data"));
        assert_eq!(world.calls(), [NodeCall::Look, NodeCall::Showing]);
    }
}

#[test]
fn c07_the_group_is_given_to_the_root_alone_and_not_by_a_read_only_publish() {
    let world = World::new();
    let web = pod("web-0", "data");
    let mut request = web.request();
    request.capability = Some(capability(&[], "2000", 5));
    world.node.set_copy_mode(0o700);
    world.publish_as(&web, &request).unwrap();
    assert_eq!(world.node.copy_mode_and_group(&h("data")), Some((0o2770, 2000)));
    world.unpublish(&web).unwrap();
    request.readonly = true;
    request.capability = Some(capability(&[], "3000", 5));
    world.publish_as(&web, &request).unwrap();
    assert_eq!(world.node.copy_mode_and_group(&h("data")), Some((0o2770, 2000)));
}

#[test]
fn c10_a_publish_looks_decides_makes_attaches_and_looks_again() {
    use NodeCall::{Attach, Ensure, Find, Look, MakeTarget, PutTarget, Showing};
    let world = World::new();
    world.publish(&pod("web-0", "data")).unwrap();
    assert_eq!(world.calls(), [Look, Showing, Find, PutTarget, Ensure, MakeTarget, Attach, Look, PutTarget]);
}

/// A publish fails, and leaves nothing, where `change` happens between its attach and its check.
#[track_caller]
fn assert_checked(change: impl FnOnce(&World, &Pod)) {
    let world = World::new();
    let web = pod("web-0", "data");
    world.prepare(&web);
    world.node.gate().script(NodeCall::Attach, Fault::HangAfter);
    let request = web.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    change(&world, &web);
    world.node.gate().release_all();
    let refusal = Refusal::Failed(FailedStep::CheckCopy);
    assert_eq!(run(publish), Err(PublishError::Refused { refusal, target_was_there: false }));
    world.assert_nothing_at(&web);
}

#[test]
fn c10_nothing_is_ok_before_the_target_shows_the_copy() {
    assert_checked(|world, web| world.node.mount_foreign(web.target()));
}

#[test]
fn c10_a_copy_that_was_removed_by_hand_meanwhile_is_not_published() {
    assert_checked(|world, _| assert!(world.node.remove_copy(&h("data"))));
}

#[test]
fn c10_what_was_published_is_on_record_with_its_pod() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.publish(&web).unwrap();
    let reference = web.reference();
    let record = TargetRecord {
        target: web.target_path(),
        handle: h("data"),
        uid: Some(reference.uid),
        pod: Some(reference.name),
        readonly: false,
        state: TargetState::Held,
        since: Some(world.clock.wall()),
    };
    assert_eq!(world.node.records_on_disk(), [record]);
}

#[test]
fn c11_a_publish_that_comes_again_does_not_change_since_when_it_is_held() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let since = world.clock.wall();
    world.clock.advance(Duration::from_secs(60));
    world.publish(&web).unwrap();
    let held_since = |world: &World| world.node.records_on_disk()[0].since;
    assert_eq!(held_since(&world), Some(since));
    // Where no record says it nobody knows.
    run(world.records.drop_target(&web.target_path())).unwrap();
    world.publish(&web).unwrap();
    assert_eq!(held_since(&world), None);
}

#[test]
fn c11_the_same_publish_any_number_of_times_leaves_one_mount() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let before = world.node.view(web.target());
    for _ in 0..3 {
        world.publish(&web).unwrap();
    }
    assert_eq!(world.node.view(web.target()), before);
    let TargetView::Mounted(stack) = before else { panic!("mounted") };
    assert_eq!(stack.layers.len(), 1);
}

#[test]
fn c11_other_flags_are_ok_and_the_mount_stays_as_it_is() {
    let world = World::new();
    let web = world.running("web-0", "data");
    for flags in [&["noexec"][..], &["context=unsupported"], &["ro"]] {
        let mut request = web.request();
        request.capability = Some(capability(flags, "", 5));
        world.publish_as(&web, &request).unwrap();
        assert!(!world.node.flags(web.target()).unwrap().no_exec);
    }
    let mut request = web.request();
    request.capability.as_mut().unwrap().access_type = Some(AccessType::Block);
    world.publish_as(&web, &request).unwrap();
    assert_eq!(world.events(&web), []);
}

#[test]
fn c11_another_readonly_than_recorded_is_refused_and_an_unknown_one_is_ok() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let mut request = web.request();
    request.readonly = true;
    let (refusal, _) = world.refused(&web, &request);
    assert_eq!(refusal, Refusal::ReadonlyDiffers { handle: h("data"), published: false });
    assert_eq!(world.events(&web)[0].reason, Reason::MountFailed);
    assert!(world.node.tear_record(&web.target_path()));
    let world = world.restart();
    world.publish_as(&web, &request).unwrap();
    assert!(!world.node.flags(web.target()).unwrap().read_only);
}

#[test]
fn c11_a_bare_target_directory_left_by_a_reboot_is_bound_again() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.reboot();
    let world = world.restart();
    assert_eq!(world.node.view(web.target()), TargetView::Directory { empty: true });
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c11_what_hides_the_copy_is_not_taken_for_it() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.mount_foreign(web.target());
    let (refusal, is_final) = world.refused(&web, &web.request());
    assert_eq!((refusal, is_final), (Refusal::Failed(FailedStep::TargetForeignMount), false));
}

#[test]
fn c18_a_target_outside_the_kubelet_directory_is_refused_and_the_flag_named() {
    let world = World::new();
    let web = pod("web-0", "data");
    for (target, error) in [
        ("/elsewhere/mount", None),
        ("relative", Some(TargetError::NotAbsolute)),
        ("/k/pods/../../etc", Some(TargetError::ParentComponent)),
    ] {
        let mut request = web.request();
        request.target_path = target.to_owned();
        let (refusal, is_final) = world.refused(&web, &request);
        assert!(is_final && matches!(refusal, Refusal::Target(_)));
        match error {
            Some(error) => assert_eq!(refusal, Refusal::Target(error)),
            None => assert!(refusal.to_string().contains("--kubelet-dir")),
        }
    }
    assert_eq!(world.calls(), []);
    assert_eq!(world.events(&web).len(), 3);
}

#[test]
fn c12_what_is_in_the_way_is_named_and_stays() {
    let web = pod("web-0", "data");
    let world = World::new();
    world.node.make_file(web.target());
    let (refusal, is_final) = world.refused(&web, &web.request());
    assert_eq!((refusal, is_final), (Refusal::Failed(FailedStep::TargetNotADirectory), false));
    let world = World::new();
    world.node.make_file(format!("{}/left", web.target()));
    let (refusal, is_final) = world.refused(&web, &web.request());
    assert_eq!((refusal, is_final), (Refusal::Failed(FailedStep::TargetNotEmpty), false));
    assert!(world.node.exists(format!("{}/left", web.target())));
}
