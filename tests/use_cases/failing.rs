//! C16 with a world that fails: what a publish that cannot be done leaves, and what is answered.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, errno};
use per_node::domain::holds::{Makes, TargetState};
use per_node::domain::mount_table::TargetView;
use per_node::domain::refusal::{FailedStep, PublishError, Reason, Refusal};

use crate::world::{World, capability, h, io, pod, run};

const LOST_BEFORE: Fault<KernelFault> = Fault::Before(KernelFault::Lost);
const LOST_AFTER: Fault<KernelFault> = Fault::After(KernelFault::Lost);

/// Fails the `nth` such call of a publish that gives a group, from one.
fn failing(call: NodeCall, nth: usize, fault: Fault<KernelFault>) -> (World, Result<(), PublishError>) {
    let world = World::new();
    let web = pod("web-0", "data");
    (1..nth).for_each(|_| world.node.gate().script(call, Fault::None));
    world.node.gate().script(call, fault);
    let mut request = web.request();
    request.capability = Some(capability(&[], "2000", 5));
    let answer = world.publish_as(&web, &request);
    (world, answer)
}

#[track_caller]
fn step_of(answer: Result<(), PublishError>) -> (FailedStep, bool) {
    match answer {
        Err(PublishError::Refused { refusal: Refusal::Failed(step), target_was_there }) => {
            (step, target_was_there)
        }
        other => panic!("no step failed: {other:?}"),
    }
}

#[test]
fn c16_whichever_step_fails_nothing_is_left_and_the_code_is_final() {
    let steps = [
        (NodeCall::Showing, 1),
        (NodeCall::Find, 1),
        (NodeCall::PutTarget, 1),
        (NodeCall::Ensure, 1),
        (NodeCall::SetGroup, 1),
        (NodeCall::MakeTarget, 1),
        (NodeCall::Attach, 1),
        (NodeCall::Look, 2),
        (NodeCall::PutTarget, 2),
    ];
    for (call, nth) in steps {
        let (world, answer) = failing(call, nth, io());
        let web = pod("web-0", "data");
        let (step, target_was_there) = step_of(answer);
        assert!(!target_was_there, "{call:?}");
        world.assert_nothing_at(&web);
        assert!(!world.has_copy("data"), "{call:?} leaves a new empty copy");
        let events = world.events(&web);
        assert_eq!((events.len(), events[0].reason), (1, Reason::MountFailed), "{call:?}");
        assert_eq!(events[0].message, step.to_string(), "{call:?}");
    }
}

#[test]
fn c16_a_first_look_that_fails_is_never_final() {
    // The target may show this pod's copy (C11).
    let (_, answer) = failing(NodeCall::Look, 1, io());
    let (step, target_was_there) = step_of(answer);
    assert!(matches!(step, FailedStep::LookAtTarget { .. }) && target_was_there);
}

#[test]
fn c16_a_journal_write_that_fails_late_leaves_no_record() {
    let (world, answer) = failing(NodeCall::PutTarget, 1, Fault::After(KernelFault::Errno(errno::EIO)));
    assert!(matches!(step_of(answer).0, FailedStep::WriteJournal { .. }));
    world.assert_nothing_at(&pod("web-0", "data"));
}

#[test]
fn c16_a_copy_with_bytes_in_it_survives_a_failed_publish() {
    let world = World::new();
    let first = world.running("web-0", "data");
    world.unpublish(&first).unwrap();
    world.node.gate().script(NodeCall::Attach, io());
    world.publish(&pod("web-1", "data")).unwrap_err();
    assert_eq!(world.file("data", "file").as_deref(), Some(&b"web-0"[..]));
}

#[test]
fn c16_where_undoing_fails_the_outcome_is_unknown_and_the_next_start_undoes_it() {
    for undo in [NodeCall::RemoveTarget, NodeCall::Unmake, NodeCall::DropTarget] {
        let world = World::new();
        let web = pod("web-0", "data");
        world.node.gate().script(NodeCall::Attach, io());
        world.node.gate().script(undo, io());
        let answer = world.publish(&web);
        assert!(matches!(answer, Err(PublishError::OutcomeUnknown { .. })), "{undo:?}: {answer:?}");
        let state = world.records.target(&web.target_path()).map(|record| record.state);
        assert_eq!(state, Some(TargetState::Attaching(Makes { copy: true, target: true })), "{undo:?}");
        assert_eq!(world.events(&web), [], "an unknown outcome is no refusal");
        let world = world.restart();
        world.assert_nothing_at(&web);
        assert!(!world.has_copy("data"), "{undo:?}");
    }
}

#[test]
fn c16_an_unknown_outcome_is_never_final_and_the_next_try_ends_it() {
    let calls =
        [NodeCall::PutTarget, NodeCall::Ensure, NodeCall::SetGroup, NodeCall::MakeTarget, NodeCall::Attach];
    for call in calls {
        for fault in [LOST_BEFORE, LOST_AFTER] {
            let (world, answer) = failing(call, 1, fault);
            assert!(matches!(answer, Err(PublishError::OutcomeUnknown { .. })), "{call:?}: {answer:?}");
            let web = pod("web-0", "data");
            world.publish(&web).unwrap();
            let state = world.records.target(&web.target_path()).map(|record| record.state);
            assert_eq!(state, Some(TargetState::Held), "{call:?}");
            let TargetView::Mounted(stack) = world.node.view(web.target()) else { panic!("{call:?}") };
            assert_eq!(stack.layers.len(), 1, "{call:?}");
        }
    }
}

#[test]
fn c16_an_unknown_outcome_is_undone_by_an_unpublish() {
    let (world, _) = failing(NodeCall::Attach, 1, LOST_AFTER);
    let web = pod("web-0", "data");
    world.unpublish(&web).unwrap();
    world.assert_nothing_at(&web);
    world.publish(&pod("web-1", "data")).unwrap();
}

#[test]
fn c16_a_final_code_settles_what_an_earlier_try_left() {
    let (world, answer) = failing(NodeCall::PutTarget, 1, Fault::After(KernelFault::Lost));
    assert!(matches!(answer, Err(PublishError::OutcomeUnknown { .. })));
    // The process does not know whether its record is there; this try knows, and fails before it has made any.
    let web = pod("web-0", "data");
    world.node.gate().script(NodeCall::Ensure, LOST_AFTER);
    world.publish(&web).unwrap_err();
    world.node.gate().script(NodeCall::Find, io());
    let (_, is_final) = world.refused(&web, &web.request());
    assert!(is_final);
    world.assert_nothing_at(&web);
    assert!(!world.has_copy("data"));
}

#[test]
fn c16_a_journal_that_cannot_be_settled_makes_the_outcome_unknown() {
    let (world, _) = failing(NodeCall::Ensure, 1, LOST_BEFORE);
    let web = pod("web-0", "data");
    world.node.gate().script(NodeCall::Find, io());
    world.node.gate().script(NodeCall::DropTarget, io());
    assert!(matches!(world.publish(&web), Err(PublishError::OutcomeUnknown { .. })));
}

#[test]
fn c16_on_a_full_store_copies_are_published_and_only_a_new_one_fails() {
    let world = World::new();
    let old = world.running("web-0", "old");
    world.unpublish(&old).unwrap();
    world.node.set_available_bytes(0);
    world.publish(&old).unwrap();
    let new = pod("web-1", "new");
    let (refusal, is_final) = world.refused(&new, &new.request());
    assert!(matches!(refusal, Refusal::Failed(FailedStep::MakeCopy { .. })) && is_final);
    world.assert_nothing_at(&new);
}

#[test]
fn c16_without_a_free_record_nothing_is_attached() {
    let world = World::new();
    world.node.set_target_slots(0);
    let web = pod("web-0", "data");
    let (refusal, is_final) = world.refused(&web, &web.request());
    assert!(matches!(refusal, Refusal::Failed(FailedStep::WriteJournal { .. })) && is_final);
    world.assert_nothing_at(&web);
    assert!(!world.has_copy("data"));
}

#[test]
fn c16_on_a_read_only_store_a_publish_is_refused_with_its_event_and_leaves_nothing() {
    let world = World::new();
    let old = world.running("web-0", "old");
    world.unpublish(&old).unwrap();
    world.node.set_read_only(true);
    for handle in ["old", "new"] {
        let web = pod("web-1", handle);
        let (refusal, is_final) = world.refused(&web, &web.request());
        assert!(matches!(refusal, Refusal::Failed(FailedStep::WriteJournal { .. })) && is_final, "{handle}");
        world.assert_nothing_at(&web);
        assert_eq!(world.events(&web)[0].reason, Reason::MountFailed);
    }
    assert!(!world.has_copy("new"));
    world.node.set_read_only(false);
    world.publish(&old).unwrap();
}

#[test]
fn c16_a_store_that_turns_read_only_with_a_journal_entry_in_it_keeps_the_outcome_unknown() {
    let world = World::new();
    world.node.gate().script(NodeCall::Attach, LOST_BEFORE);
    let web = pod("web-0", "data");
    assert!(matches!(world.publish(&web), Err(PublishError::OutcomeUnknown { .. })));
    world.node.set_read_only(true);
    assert!(matches!(world.publish(&web), Err(PublishError::OutcomeUnknown { .. })));
    world.node.set_read_only(false);
    world.publish(&web).unwrap();
}

#[test]
fn c25_a_file_where_the_copy_should_be_is_told_and_stays() {
    let world = World::new();
    world.node.put_stranger("data");
    let web = pod("web-0", "data");
    let (refusal, is_final) = world.refused(&web, &web.request());
    assert!(matches!(refusal, Refusal::Failed(FailedStep::MakeCopy { .. })) && is_final);
    assert_eq!(world.node.copy_names(), ["data"]);
    world.assert_nothing_at(&web);
}

#[test]
fn c11_a_republish_whose_record_cannot_be_completed_is_not_ok() {
    // A journal entry that stays would let the next start undo a mount that is in use.
    let (world, _) = failing(NodeCall::Attach, 1, LOST_AFTER);
    let web = pod("web-0", "data");
    world.node.gate().script(NodeCall::PutTarget, io());
    assert!(matches!(world.publish(&web), Err(PublishError::OutcomeUnknown { .. })));
    world.publish(&web).unwrap();
    let world = world.restart();
    assert!(run(async { world.node.read(web.target(), "file") }).is_none());
    assert!(matches!(world.node.view(web.target()), TargetView::Mounted(_)));
    assert_eq!(world.records.targets_of(&h("data")).len(), 1);
}
