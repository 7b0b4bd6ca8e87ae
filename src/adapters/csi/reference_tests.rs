//! docs/reference/events.md is what the driver says: each reason with every message that it can have, and the codes beside it.

use super::*;
use crate::adapters::generated;
use crate::domain::mount_options::MountOptionsError;
use crate::domain::pod::PodName;
use crate::domain::refusal::Reason;
use crate::domain::use_cases::{kept::EMPTIED_EARLY, sweep_limit::STOPPED};

/// Every refusal of a request, by each rule that it can break.
fn requests() -> Vec<Refusal> {
    let handles = [
        HandleError::Empty,
        HandleError::TooLong { length: 254 },
        HandleError::Character { character: '_' },
        HandleError::EmptySegment,
        HandleError::SegmentEdge,
    ];
    let targets = [
        TargetError::Empty,
        TargetError::NotAbsolute,
        TargetError::ParentComponent,
        TargetError::NulByte,
        TargetError::TooLong,
        TargetError::NotBelowKubeletDir { kubelet_dir: "/var/lib/kubelet".to_owned() },
    ];
    let requests = [
        RequestError::NoCapability,
        RequestError::NoAccessType,
        RequestError::Block,
        RequestError::NoAccessMode,
        RequestError::UnknownAccessMode { mode: 42 },
        RequestError::MountGroup,
        RequestError::Options(MountOptionsError::Unsupported),
        RequestError::Options(MountOptionsError::TooLong),
    ];
    for request in &requests {
        // A new rule is an error here.
        match request {
            RequestError::NoCapability
            | RequestError::NoAccessType
            | RequestError::Block
            | RequestError::NoAccessMode
            | RequestError::UnknownAccessMode { .. }
            | RequestError::MountGroup
            | RequestError::Options(MountOptionsError::Unsupported | MountOptionsError::TooLong) => {}
        }
    }
    let handles = handles.into_iter().map(Refusal::Handle);
    handles
        .chain(targets.into_iter().map(Refusal::Target))
        .chain(requests.into_iter().map(Refusal::Request))
        .collect()
}

/// All refusals, the words of the kernel as a placeholder, and the holder as a pod's name.
fn all() -> Vec<Refusal> {
    let why = || "WHY".to_owned();
    let mut all = requests();
    for refusal in refusals() {
        match refusal {
            // These are above, by every rule.
            Refusal::Handle(_) | Refusal::Target(_) | Refusal::Request(_) => {}
            Refusal::Held { .. } => all.push(Refusal::Held {
                handle: handle(),
                holder: Holder::of(&Pod {
                    uid: None,
                    name: Some(PodName { namespace: "example".to_owned(), name: "web-0".to_owned() }),
                    target: TargetPath::from_mount_point("/t".into()),
                }),
            }),
            Refusal::ReadonlyDiffers { .. } => all.push(refusal),
            Refusal::Failed(step) => all.push(Refusal::Failed(match step {
                FailedStep::LookAtTarget { .. } => FailedStep::LookAtTarget { why: why() },
                FailedStep::AskForHolders { .. } => FailedStep::AskForHolders { why: why() },
                FailedStep::WriteJournal { .. } => FailedStep::WriteJournal { why: why() },
                FailedStep::MakeCopy { .. } => FailedStep::MakeCopy { why: why() },
                FailedStep::SetGroup { .. } => FailedStep::SetGroup { why: why() },
                FailedStep::MakeTarget { .. } => FailedStep::MakeTarget { why: why() },
                FailedStep::Attach { .. } => FailedStep::Attach { why: why() },
                FailedStep::TargetNotADirectory
                | FailedStep::TargetNotEmpty
                | FailedStep::TargetForeignMount
                | FailedStep::CheckFlags
                | FailedStep::CheckCopy => step,
            })),
        }
    }
    all
}

/// The table of a reason of pods.
fn of_pods(reason: Reason) -> String {
    let mut made = generated::head(&["message", "code", "where something was there before"]);
    for refusal in all().into_iter().filter(|refusal| refusal.reason() == reason) {
        let (first, before) = codes(&refusal);
        let codes = [first, before].map(|code| format!("`{}`", name(code)));
        made += &generated::row(&[&refusal.to_string(), &codes[0], &codes[1]]);
    }
    made
}

#[test]
fn c30_the_events_of_the_reference_are_those_of_the_driver() {
    let mut made = String::new();
    for reason in Reason::REFUSALS {
        made += &format!("## {}\n\nOn the pod.\n\n{}\n", reason.as_str(), of_pods(reason));
    }
    for (reason, message) in [(Reason::SweepStopped, STOPPED), (Reason::TrashEmptied, EMPTIED_EARLY)] {
        made += &format!("## {}\n\nOn the node: {message}.\n\n", reason.as_str());
    }
    generated::agree("events.md", "events", &made);
}
