//! The one table from outcomes to gRPC codes (contract, section 6).
//!
//! What the kubelet does next decides the code. It takes CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE,
//! RESOURCE_EXHAUSTED and ABORTED as "maybe": it comes again, and unpublishes when the pod goes. Every other code is
//! final: it cleans up by itself and sends no unpublish, so nothing may be left behind. A status never carries
//! details (C47), and its text is that of the event (C33).

use tonic::{Code, Status};

use crate::domain::refusal::{
    FailedStep, HealthError, PublishError, Refusal, StatisticsError, UnpublishError,
};

/// The longest text of a status. It travels percent-encoded in an HTTP/2 header, which clients limit.
const TEXT_MAX_BYTES: usize = 2048;

/// The answer to a publish that is not OK.
pub(super) fn of_publish(error: &PublishError) -> Status {
    status(publish_code(error), &error.to_string())
}

/// The answer to an unpublish that is not OK.
pub(super) fn of_unpublish(error: &UnpublishError) -> Status {
    let code = match error {
        // Nothing to find the target by. Final, and the kubelet never sends it.
        UnpublishError::MissingField { .. } => Code::InvalidArgument,
        // The pod stays in Terminating and the kubelet comes again, whatever the code.
        UnpublishError::Look { .. }
        | UnpublishError::Unmount { .. }
        | UnpublishError::RemoveTarget { .. } => Code::Internal,
        // Another call is at work on the same target: come again.
        UnpublishError::Unsteady => Code::Aborted,
    };
    status(code, &error.to_string())
}

/// The answer to a question for statistics that is not OK. The kubelet shows no numbers, and asks again.
pub(super) fn of_statistics(error: &StatisticsError) -> Status {
    let code = match error {
        StatisticsError::MissingField { .. } => Code::InvalidArgument,
        StatisticsError::NotPublished => Code::NotFound,
        StatisticsError::Look { .. } | StatisticsError::Measure { .. } => Code::Internal,
    };
    status(code, &error.to_string())
}

/// The answer to a question for health that is not OK. The kubelet leaves what it last showed, and asks again.
pub(super) fn of_health(error: &HealthError) -> Status {
    let code = match error {
        HealthError::MissingField { .. } => Code::InvalidArgument,
        HealthError::Look { .. } | HealthError::Examine { .. } => Code::Internal,
        HealthError::Unsteady => Code::Aborted,
    };
    status(code, &error.to_string())
}

/// The answer to a publish that panicked: final only where nothing of it is left, for then no unpublish comes.
pub(super) fn of_lost_publish(nothing_is_left: bool) -> Status {
    if nothing_is_left { of_lost_answer() } else { of_unknown_outcome() }
}

/// Nobody knows what the call did, so the kubelet must come again.
pub(super) fn of_unknown_outcome() -> Status {
    status(Code::Aborted, "the outcome is unknown: the call ended in a bug of the driver, its log has more")
}

/// The answer to another call that panicked: nothing is in doubt but the answer. An unpublish is asked for again, whatever
/// its code.
pub(super) fn of_lost_answer() -> Status {
    status(Code::Internal, "the call ended in a bug of the driver, its log has more")
}

/// The answer to a call that comes while the process stops: the next one will do it.
pub(super) fn of_shutdown() -> Status {
    status(Code::Unavailable, "the driver is shutting down")
}

/// The answer to a call for a volume that has too many calls waiting (CSI: an operation is pending).
pub(super) fn of_crowd() -> Status {
    status(Code::Aborted, "too many calls for this volume are in flight")
}

/// The answer to a call that the driver does not serve. The caller must not come again.
pub(super) fn of_unserved(call: &'static str) -> Status {
    status(Code::Unimplemented, &format!("per-node does not serve {call}"))
}

fn publish_code(error: &PublishError) -> Code {
    match error {
        PublishError::Refused { refusal, target_was_there } => {
            let code = refusal_code(refusal);
            if *target_was_there && !may_be_final_at_an_old_target(refusal) { Code::Aborted } else { code }
        }
        // Never final: something may have been left that only an unpublish, which then comes, can undo.
        PublishError::OutcomeUnknown { .. } => Code::Aborted,
    }
}

/// The code of a refusal at a target that was not there before. All of these are final: nothing is left behind.
fn refusal_code(refusal: &Refusal) -> Code {
    match refusal {
        // The pod waits until its objects are mended; the kubelet goes on asking.
        Refusal::Handle(_) | Refusal::Target(_) | Refusal::Request(_) => Code::InvalidArgument,
        // The next try after the holder's unpublish succeeds.
        Refusal::Held { .. } => Code::FailedPrecondition,
        // CSI demands it; the mount stays as it is.
        Refusal::ReadonlyDiffers { .. } => Code::AlreadyExists,
        Refusal::Failed(step) => failed_code(step),
    }
}

/// What could not be done was undone.
fn failed_code(step: &FailedStep) -> Code {
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
        | FailedStep::CheckCopy => Code::Internal,
    }
}

/// Where the target was there before, the kubelet may have published this volume earlier (before a reboot, say), and
/// kubelets before 1.36.3 forget it on a final code: the pod could never end. A bad handle can never have been
/// published, and ALREADY_EXISTS is the one code that CSI demands (C11, C12).
fn may_be_final_at_an_old_target(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Handle(_) | Refusal::ReadonlyDiffers { .. } => true,
        Refusal::Target(_) | Refusal::Request(_) | Refusal::Held { .. } | Refusal::Failed(_) => false,
    }
}

fn status(code: Code, text: &str) -> Status {
    let end = (0..=TEXT_MAX_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    Status::new(code, &text[..end])
}

/// The name of a code, for metrics and the log.
pub(super) fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
