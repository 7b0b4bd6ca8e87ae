//! C26: what a person does with kept copies. A restore never touches a live copy, nor one that would go again at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, Plan, errno};
use per_node::domain::tally::SweepOutcome;
use per_node::domain::use_cases::driver::Brakes;
use per_node::domain::use_cases::restore::TrashError;
use per_node::ports::cluster::Cluster;

use crate::kept::kept;
use crate::world::{World, h, pod, poll, run};

/// More awaits than a restore has.
const AWAITS_MAX: u32 = 100;

const KEEPS: Brakes = Brakes { trash_for: Some(Duration::from_secs(3600)), sweep_limit: None };

#[test]
fn c26_a_kept_copy_is_restored_with_every_byte_and_stays() {
    let (mut world, id) = kept();
    world.create_volume("data");
    let restored = run(world.driver.restore("data")).unwrap();
    assert_eq!((restored.id, restored.handle), (id, h("data")));
    assert_eq!((world.node.trash_ids(), world.records.trash_records()), (vec![], vec![]));
    world.tick();
    world.tick();
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    assert_eq!(world.node.read(web.target(), "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c26_no_restore_where_no_volume_names_it() {
    let (world, id) = kept();
    assert_eq!(run(world.driver.restore("data")), Err(TrashError::NoVolume { handle: h("data") }));
    assert_eq!(world.node.trash_ids(), [id]);
    world.view.lead_by_hand();
    world.view.start_over();
    assert_eq!(run(world.driver.restore("data")), Err(TrashError::NotSynced { handle: h("data") }));
}

#[test]
fn c26_a_live_copy_is_never_overwritten() {
    let (world, id) = kept();
    world.create_volume("data");
    let web = pod("web-1", "data");
    world.publish(&web).unwrap();
    let live = Err(TrashError::Live { handle: h("data") });
    assert_eq!(run(world.driver.restore("data")), live);
    world.unpublish(&web).unwrap();
    assert_eq!(run(world.driver.restore(&id.to_string())), live, "held or not");
    assert!(world.node.remove_copy(&h("data")));
    world.node.put_stranger("data");
    assert_eq!(run(world.driver.restore("data")), live, "whatever has its name");
    assert_eq!(world.node.trash_ids(), [id]);
}

#[test]
fn c26_a_copy_that_comes_between_the_look_and_the_rename_stays() {
    let (world, id) = kept();
    world.create_volume("data");
    world.node.gate().script(NodeCall::Restore, Fault::Before(KernelFault::Errno(errno::EEXIST)));
    assert_eq!(run(world.driver.restore("data")), Err(TrashError::Live { handle: h("data") }));
    assert_eq!(world.node.trash_ids(), [id]);
}

#[test]
fn c26_of_several_kept_copies_a_person_names_one() {
    let (mut world, first) = kept();
    world.orphan("data");
    world.sweep();
    world.create_volume("data");
    assert!(matches!(run(world.driver.restore("data")), Err(TrashError::Several { .. })));
    assert_eq!(run(world.driver.restore(&first.to_string())).unwrap().id, first);
    assert_eq!(world.records.kept_trash().len(), 1);
    assert_eq!(
        run(world.driver.restore("other")),
        Err(TrashError::NotKept { word: "other".to_owned() }),
        "and never something else"
    );
}

#[test]
fn c22_a_proof_that_was_begun_before_a_restore_says_nothing_of_it() {
    let (mut world, _) = kept();
    world.api.set_other_volumes(100_000);
    world.view.relist();
    world.sweep();
    world.create_volume("data");
    let web = world.running("web-1", "data");
    world.unpublish(&web).unwrap();
    world.delete_volume("data");
    world.view.lead_by_hand();
    world.view.deliver(9);
    world.api.touch();
    // A search waits for the watch, for a copy that another has replaced when it ends.
    run(world.sweeper.step());
    assert_eq!(world.driver.tally().removals_searching.load(Ordering::Relaxed), 1);
    assert!(world.node.remove_copy(&h("data")));
    world.create_volume("data");
    world.view.deliver(9);
    run(world.driver.restore("data")).unwrap();
    world.delete_volume("data");
    world.view.deliver(9);
    // Another proof has to wait.
    world.api.touch();
    run(world.sweeper.step());
    assert_eq!((world.swept(SweepOutcome::Removed), world.swept(SweepOutcome::Disturbed)), (1, 1));
    assert!(world.has_copy("data"));
}

#[test]
fn c26_c40_a_restore_killed_at_any_await_loses_nothing() {
    for awaits in 1..AWAITS_MAX {
        let (world, id) = kept();
        world.create_volume("data");
        world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
        let ended = {
            let mut restore = Box::pin(world.driver.restore("data"));
            (0..awaits).any(|_| poll(&mut restore).is_ready())
        };
        world.node.gate().smooth();
        let world = world.restart();
        run(world.driver.drain_trash());
        let (live, kept) = (world.file("data", "file"), world.node.trash_ids());
        assert_eq!(live.is_some(), kept.is_empty(), "after {awaits}");
        assert!(live.is_some() || kept == [id]);
        if ended {
            return;
        }
    }
    panic!("the restore never ends");
}

#[test]
fn c26_a_restore_whose_outcome_nobody_knows_is_told_so_and_loses_nothing() {
    for (fault, is_live) in
        [(Fault::Before(KernelFault::Lost), false), (Fault::After(KernelFault::Lost), true)]
    {
        let (world, id) = kept();
        world.create_volume("data");
        world.node.gate().script(NodeCall::Restore, fault);
        assert!(matches!(run(world.driver.restore("data")), Err(TrashError::Unknown { .. })));
        run(world.driver.drain_trash());
        assert_eq!(world.has_copy("data"), is_live);
        assert_eq!(world.node.trash_ids(), if is_live { vec![] } else { vec![id] });
    }
}

#[test]
fn c26_nobody_restores_what_is_being_emptied() {
    let (world, id) = kept();
    world.create_volume("data");
    world.node.gate().plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
    let mut empty = Box::pin(world.driver.empty_one("data"));
    let mut polls = 0;
    while !world.calls().contains(&NodeCall::ReleaseTrash) {
        assert!(poll(&mut empty).is_pending() && polls < AWAITS_MAX);
        polls += 1;
    }
    assert_eq!(run(world.driver.restore("data")), Err(TrashError::Busy { id }));
    assert!(run(&mut empty).is_ok());
    drop(empty);
    assert!(matches!(run(world.driver.restore("data")), Err(TrashError::NotKept { .. })));
}

#[test]
fn c26_a_person_empties_one_or_all_but_what_a_mount_shows() {
    let mut world = World::with(KEEPS);
    world.sweep();
    for handle in ["a", "b", "c"] {
        world.orphan(handle);
        world.sweep();
    }
    assert_eq!(run(world.driver.empty_one("b")).unwrap().handle, h("b"));
    run(world.driver.drain_trash());
    let kept = world.records.kept_trash();
    assert_eq!(kept.iter().map(|copy| copy.handle.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert!(world.node.bind_trash(kept[0].id, "/mnt/operator"));
    let in_use = TrashError::InUse { id: kept[0].id };
    assert_eq!(run(world.driver.empty_one("a")), Err(in_use.clone()));
    let (emptied, left) = run(world.driver.empty_all()).unwrap();
    assert_eq!((emptied.len(), left), (1, vec![in_use]));
    run(world.driver.drain_trash());
    assert_eq!(world.node.trash_ids(), [kept[0].id]);
}

#[test]
fn c26_every_refusal_says_what_to_do() {
    let (handle, id) = (h("data"), per_node::domain::trash::TrashId(1));
    let word = || "data".to_owned();
    for (error, hint) in [
        (TrashError::NotKept { word: word() }, "per-node trash ls"),
        (TrashError::Several { word: word(), entries: "t1, t2".to_owned() }, "t1, t2"),
        (TrashError::Live { handle: handle.clone() }, "move that copy out"),
        (TrashError::NoVolume { handle: handle.clone() }, "create the PersistentVolume"),
        (TrashError::NotSynced { handle }, "come again"),
        (TrashError::InUse { id }, "unmount it"),
    ] {
        assert!(error.to_string().contains(hint), "{error}");
    }
}
