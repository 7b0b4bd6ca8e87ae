//! Every outcome that the domain knows, and the code that a kubelet gets for it.

use super::*;
use crate::domain::handle::{Handle, HandleError};
use crate::domain::pod::Pod;
use crate::domain::refusal::Holder;
use crate::domain::target::{TargetError, TargetPath};
use crate::domain::volume_request::RequestError;

/// docs/reference/events.md.
#[path = "reference_tests.rs"]
mod reference;

fn handle() -> Handle {
    Handle::parse("example-store").expect("a handle")
}

fn holder() -> Holder {
    Holder::of(&Pod { uid: None, name: None, target: TargetPath::from_mount_point("/t".into()) })
}

/// Every refusal; the match makes a new one an error here.
fn refusals() -> Vec<Refusal> {
    let mut all = vec![
        Refusal::Handle(HandleError::Empty),
        Refusal::Target(TargetError::Empty),
        Refusal::Request(RequestError::NoCapability),
        Refusal::Held { handle: handle(), holder: holder() },
        Refusal::ReadonlyDiffers { handle: handle(), published: true },
    ];
    all.extend(steps().into_iter().map(Refusal::Failed));
    for refusal in &all {
        match refusal {
            Refusal::Handle(_)
            | Refusal::Target(_)
            | Refusal::Request(_)
            | Refusal::Held { .. }
            | Refusal::ReadonlyDiffers { .. }
            | Refusal::Failed(_) => {}
        }
    }
    all
}

/// Every step; the match makes a new one an error here.
fn steps() -> Vec<FailedStep> {
    let why = || "open x: Input/output error".to_owned();
    let all = vec![
        FailedStep::LookAtTarget { why: why() },
        FailedStep::AskForHolders { why: why() },
        FailedStep::TargetNotADirectory,
        FailedStep::TargetNotEmpty,
        FailedStep::TargetForeignMount,
        FailedStep::WriteJournal { why: why() },
        FailedStep::MakeCopy { why: why() },
        FailedStep::SetGroup { why: why() },
        FailedStep::MakeTarget { why: why() },
        FailedStep::Attach { why: why() },
        FailedStep::CheckFlags,
        FailedStep::CheckCopy,
    ];
    for step in &all {
        match step {
            FailedStep::LookAtTarget { .. }
            | FailedStep::AskForHolders { .. }
            | FailedStep::TargetNotADirectory
            | FailedStep::TargetNotEmpty
            | FailedStep::TargetForeignMount
            | FailedStep::WriteJournal { .. }
            | FailedStep::MakeCopy { .. }
            | FailedStep::SetGroup { .. }
            | FailedStep::MakeTarget { .. }
            | FailedStep::Attach { .. }
            | FailedStep::CheckFlags
            | FailedStep::CheckCopy => {}
        }
    }
    all
}

/// The table of section 6, written once more: the code at a new target, and at one that was there before.
fn expected(refusal: &Refusal) -> (Code, Code) {
    match refusal {
        Refusal::Handle(_) => (Code::InvalidArgument, Code::InvalidArgument),
        Refusal::Target(_) | Refusal::Request(_) => (Code::InvalidArgument, Code::Aborted),
        Refusal::Held { .. } => (Code::FailedPrecondition, Code::Aborted),
        Refusal::ReadonlyDiffers { .. } => (Code::AlreadyExists, Code::AlreadyExists),
        Refusal::Failed(_) => (Code::Internal, Code::Aborted),
    }
}

fn codes(refusal: &Refusal) -> (Code, Code) {
    let code = |target_was_there| {
        of_publish(&PublishError::Refused { refusal: refusal.clone(), target_was_there }).code()
    };
    (code(false), code(true))
}

#[test]
fn c12_every_refusal_has_the_code_of_the_table() {
    for refusal in refusals() {
        assert_eq!(codes(&refusal), expected(&refusal), "{refusal:?}");
    }
}

#[test]
fn c16_an_unknown_outcome_is_never_final() {
    let unknown = of_publish(&PublishError::OutcomeUnknown { why: "lost".to_owned() });
    for status in [unknown, of_lost_publish(false), of_unknown_outcome(), of_crowd(), of_shutdown()] {
        assert!(matches!(status.code(), Code::Aborted | Code::Unavailable), "{status:?}");
    }
}

#[test]
fn c33_a_status_says_what_the_event_says() {
    for refusal in refusals() {
        let status = of_publish(&PublishError::refused(refusal.clone()));
        assert_eq!(status.message(), refusal.to_string());
    }
}

#[test]
fn c17_an_unpublish_that_could_not_do_its_work_is_internal() {
    let why = || "umount2 x: Device or resource busy".to_owned();
    let table = [
        (UnpublishError::MissingField { field: "volume_id" }, Code::InvalidArgument),
        (UnpublishError::Look { why: why() }, Code::Internal),
        (UnpublishError::Unmount { why: why() }, Code::Internal),
        (UnpublishError::RemoveTarget { why: why() }, Code::Internal),
        (UnpublishError::Unsteady, Code::Aborted),
    ];
    for (error, code) in table {
        let status = of_unpublish(&error);
        assert_eq!((status.code(), status.message()), (code, error.to_string().as_str()));
    }
}

#[test]
fn c46_statistics_of_what_is_not_published_there_are_not_found() {
    let why = || "statx x: Input/output error".to_owned();
    let table = [
        (StatisticsError::MissingField { field: "volume_path" }, Code::InvalidArgument),
        (StatisticsError::NotPublished, Code::NotFound),
        (StatisticsError::Look { why: why() }, Code::Internal),
        (StatisticsError::Measure { why: why() }, Code::Internal),
    ];
    for (error, code) in table {
        let status = of_statistics(&error);
        assert_eq!((status.code(), status.message()), (code, error.to_string().as_str()));
    }
}

#[test]
fn c49_what_could_not_be_found_out_is_no_health_and_no_loss() {
    let why = || "statx x: Input/output error".to_owned();
    let table = [
        (HealthError::MissingField { field: "volume_id" }, Code::InvalidArgument),
        (HealthError::Look { why: why() }, Code::Internal),
        (HealthError::Examine { why: why() }, Code::Internal),
        (HealthError::Unsteady, Code::Aborted),
    ];
    for (error, code) in table {
        let status = of_health(&error);
        assert_eq!((status.code(), status.message()), (code, error.to_string().as_str()));
    }
}

#[test]
fn c47_no_status_has_details() {
    for refusal in refusals() {
        assert!(of_publish(&PublishError::refused(refusal)).details().is_empty());
    }
    assert!(of_unserved("NodeStageVolume").details().is_empty());
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let long = of_unpublish(&UnpublishError::Look { why: "é".repeat(TEXT_MAX_BYTES) });
    assert!(long.message().len() <= TEXT_MAX_BYTES && long.message().ends_with('é'));
}

#[test]
fn every_code_has_the_name_that_grpc_gives_it() {
    let names: std::collections::BTreeSet<_> = (0..17).map(|code| name(Code::from(code))).collect();
    assert_eq!(names.len(), 17);
    assert_eq!((name(Code::Ok), name(Code::FailedPrecondition)), ("OK", "FAILED_PRECONDITION"));
}
