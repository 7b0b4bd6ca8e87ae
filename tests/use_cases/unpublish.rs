//! C17: what an unpublish takes away, and all that it leaves alone.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall};
use per_node::domain::mount_table::TargetView;
use per_node::domain::refusal::UnpublishError;
use per_node::domain::volume_request::UnpublishRequest;

use crate::world::{World, h, io, pod, poll, run};

fn unpublish(world: &World, volume_id: &str, target: &str) -> Result<(), UnpublishError> {
    let request = UnpublishRequest { volume_id: volume_id.to_owned(), target_path: target.to_owned() };
    run(world.driver.unpublish(&request))
}

#[test]
fn c17_the_mount_the_target_and_the_record_go_and_the_copy_stays() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.unpublish(&web).unwrap();
    world.assert_nothing_at(&web);
    assert!(world.node.exists(web.directory()));
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
    world.unpublish(&web).unwrap();
}

#[test]
fn c17_what_is_mounted_below_goes_first_then_the_whole_stack() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.mount_foreign(web.target());
    world.node.mount_foreign(format!("{}/x", web.target()));
    world.node.mount_foreign(format!("{}/x/y", web.target()));
    world.unpublish(&web).unwrap();
    world.assert_nothing_at(&web);
    assert_eq!(world.node.view(format!("{}/x", web.target())), TargetView::Absent);
}

#[test]
fn c17_a_target_in_use_is_named_and_tried_again() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.set_busy(web.target(), true);
    let error = world.unpublish(&web).unwrap_err();
    assert!(matches!(&error, UnpublishError::Unmount { why } if why.contains(&web.target())), "{error}");
    assert!(world.publish(&pod("web-1", "data")).is_err(), "it still holds the copy");
    world.node.set_busy(web.target(), false);
    world.unpublish(&web).unwrap();
}

#[test]
fn c17_a_target_directory_that_cannot_be_removed_is_named() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.make_file(format!("{}/hidden", web.target()));
    let error = world.unpublish(&web).unwrap_err();
    assert!(matches!(&error, UnpublishError::RemoveTarget { why } if why.contains(&web.target())), "{error}");
    assert!(world.node.exists(format!("{}/hidden", web.target())));
}

#[test]
fn c17_what_was_never_published_is_fine() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.unpublish(&web).unwrap();
    for (volume_id, target) in [
        ("data", "/k/none/at/all"),
        ("Not/A/Handle", "/k/none"),
        ("data", "relative"),
        ("data", "/k/../etc"),
        ("data", "/elsewhere"),
        ("data", "/k/nul\0byte"),
    ] {
        unpublish(&world, volume_id, target).unwrap();
    }
    assert_eq!(unpublish(&world, "", "/k/x"), Err(UnpublishError::MissingField { field: "volume_id" }));
    assert_eq!(unpublish(&world, "data", ""), Err(UnpublishError::MissingField { field: "target_path" }));
}

#[test]
fn c17_a_bare_empty_target_directory_is_removed() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.reboot();
    let world = world.restart();
    world.unpublish(&web).unwrap();
    world.assert_nothing_at(&web);
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c17_what_is_not_the_drivers_is_left_alone() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.node.make_directory(web.target());
    world.node.mount_foreign(web.target());
    world.node.make_file("/k/file");
    world.node.make_directory("/k/parent/of/others");
    world.node.make_directory("/elsewhere");
    world.unpublish(&web).unwrap();
    for target in ["/k/file", "/k/parent", "/elsewhere"] {
        unpublish(&world, "data", target).unwrap();
        assert!(world.node.exists(target), "{target}");
    }
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
    let calls = world.calls();
    assert!(!calls.contains(&NodeCall::Detach) && !calls.contains(&NodeCall::RemoveTarget), "{calls:?}");
}

#[test]
fn c17_a_copy_that_was_deleted_under_its_mount_is_unmounted_too() {
    let world = World::new();
    let web = pod("web-0", "data");
    world.publish(&web).unwrap();
    let identity = *world.node.copy_identities().get("data").unwrap();
    let copies = per_node::adapters::memory::MemoryCopies::new(&world.node);
    run(per_node::ports::copies::Copies::unmake(&copies, &h("data"), identity)).unwrap();
    assert!(world.node.view(web.target()).visible().is_some_and(|shown| shown.deleted));
    world.unpublish(&web).unwrap();
    world.assert_nothing_at(&web);
}

#[test]
fn c17_a_volume_id_that_is_none_of_ours_does_not_matter_for_what_the_target_shows() {
    let world = World::new();
    let web = world.running("web-0", "data");
    unpublish(&world, "Another/Thing", &web.target()).unwrap();
    world.assert_nothing_at(&web);
}

#[test]
fn c17_the_lock_is_that_of_the_handle_the_target_shows() {
    let world = World::new();
    let web = world.running("web-0", "data");
    let other = pod("web-1", "data");
    world.prepare(&other);
    world.node.gate().script(NodeCall::Showing, Fault::HangBefore);
    let request = other.request();
    let mut publish = Box::pin(world.driver.publish(&request));
    assert!(poll(&mut publish).is_pending());
    let named_wrongly = UnpublishRequest { volume_id: "other".to_owned(), target_path: web.target() };
    let mut unpublish = Box::pin(world.driver.unpublish(&named_wrongly));
    assert!(poll(&mut unpublish).is_pending(), "a publish of that handle is under way");
    world.node.gate().release_all();
    assert!(run(publish).is_err());
    run(unpublish).unwrap();
    world.assert_nothing_at(&web);
}

#[test]
fn c17_an_unmount_whose_outcome_is_unknown_is_not_ok() {
    for fault in [Fault::Before(KernelFault::Lost), Fault::After(KernelFault::Lost), io()] {
        let world = World::new();
        let web = world.running("web-0", "data");
        world.node.gate().script(NodeCall::Detach, fault);
        assert!(matches!(world.unpublish(&web), Err(UnpublishError::Unmount { .. })));
        world.unpublish(&web).unwrap();
        world.assert_nothing_at(&web);
    }
}

#[test]
fn c17_a_target_that_cannot_be_looked_at_is_not_ok() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.gate().script(NodeCall::Look, io());
    assert!(matches!(world.unpublish(&web), Err(UnpublishError::Look { .. })));
    assert_eq!(world.node.read(web.target(), "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c40_an_unpublish_works_when_the_record_cannot_be_dropped() {
    let world = World::new();
    let web = world.running("web-0", "data");
    world.node.gate().script(NodeCall::DropTarget, io());
    world.unpublish(&web).unwrap();
    assert_eq!(world.node.view(web.target()), TargetView::Absent);
    let world = world.restart();
    world.assert_nothing_at(&web);
    world.publish(&pod("web-1", "data")).unwrap();
}
