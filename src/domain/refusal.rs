//! Every "no" to a publish: what was refused, which event tells it, and whether the answer may be final
//! (C12, C30, C33, section 6 of the contract).

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::handle::{Handle, HandleError};
use super::pod::Pod;
use super::target::TargetError;
use super::volume_request::RequestError;

/// The reason of a Warning event, a machine-readable word that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// The request is wrong.
    #[serde(rename = "PerNodeVolumeRefused")]
    VolumeRefused,
    /// Another pod holds the copy.
    #[serde(rename = "PerNodeVolumeHeld")]
    VolumeHeld,
    /// It could not be done.
    #[serde(rename = "PerNodeMountFailed")]
    MountFailed,
    /// A pass of the sweep would have removed more than the limit: told of the node (C26).
    #[serde(rename = "PerNodeSweepStopped")]
    SweepStopped,
    /// Kept copies went before their time, for want of space: told of the node (C26).
    #[serde(rename = "PerNodeTrashEmptied")]
    TrashEmptied,
}

/// A publish that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("{0}")]
    Handle(HandleError),
    #[error("{0}")]
    Target(TargetError),
    #[error("{0}")]
    Request(RequestError),
    #[error("volume {handle} is held on this node by {holder}: it mounts here once that pod is gone")]
    Held { handle: Handle, holder: Holder },
    #[error(
        "volume {handle} is published at this target with readonly={published}: it changes only when the pod \
         is created anew"
    )]
    ReadonlyDiffers { handle: Handle, published: bool },
    #[error("{0}")]
    Failed(FailedStep),
}

/// The holder's name, as text, so that a refusal can be compared and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder(String);

/// A step of a publish that could not be done, undone since.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FailedStep {
    #[error("could not look at the target path: {why}")]
    LookAtTarget { why: String },
    #[error("could not tell who holds the copy: {why}")]
    AskForHolders { why: String },
    #[error("the target path is no directory: remove it on the node")]
    TargetNotADirectory,
    #[error("the target directory is not empty: empty it on the node")]
    TargetNotEmpty,
    #[error("the target path carries a mount that is not this volume's: unmount it on the node")]
    TargetForeignMount,
    #[error("could not write the journal: {why}")]
    WriteJournal { why: String },
    #[error("could not make the copy: {why}")]
    MakeCopy { why: String },
    #[error("could not give the copy its group: {why}")]
    SetGroup { why: String },
    #[error("could not make the target directory: {why}")]
    MakeTarget { why: String },
    #[error("could not attach the copy: {why}")]
    Attach { why: String },
    #[error("the attached mount is not as asked: the kernel kept other mount flags")]
    CheckFlags,
    #[error("the attached mount does not show the copy")]
    CheckCopy,
}

/// How a publish ends that is not OK.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishError {
    /// A refusal. `target_was_there` says that the target directory was there before the publish: then the
    /// kubelet may forget a volume it published earlier if the code is final, so it must not be (C12).
    #[error("{refusal}")]
    Refused { refusal: Refusal, target_was_there: bool },
    /// What was done could not be undone, or nobody knows: the kubelet must come again.
    #[error("the outcome is unknown: {why}")]
    OutcomeUnknown { why: String },
}

/// How an unpublish ends that is not OK.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnpublishError {
    #[error("the request has no {field}")]
    MissingField { field: &'static str },
    #[error("could not look at the target path: {why}")]
    Look { why: String },
    #[error("could not unmount the target: {why}")]
    Unmount { why: String },
    #[error("could not remove the target directory: {why}")]
    RemoveTarget { why: String },
    #[error("the target changes what it shows while it is looked at")]
    Unsteady,
}

/// How a request for statistics ends that is not OK.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatisticsError {
    #[error("the request has no {field}")]
    MissingField { field: &'static str },
    #[error("the volume is not published at this path")]
    NotPublished,
    #[error("could not look at the volume path: {why}")]
    Look { why: String },
    #[error("could not measure the copy: {why}")]
    Measure { why: String },
}

/// How a question for health ends that is not OK. None of these says anything about the volume: the client keeps
/// what it was told before.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HealthError {
    #[error("the request has no {field}")]
    MissingField { field: &'static str },
    #[error("could not look at the volume path: {why}")]
    Look { why: String },
    #[error("could not look at the copy: {why}")]
    Examine { why: String },
    #[error("the volume path changes what it shows while it is looked at")]
    Unsteady,
}

impl Reason {
    /// The reasons of refused publishes.
    pub const REFUSALS: [Reason; 3] = [Reason::VolumeRefused, Reason::VolumeHeld, Reason::MountFailed];

    pub fn as_str(self) -> &'static str {
        match self {
            Reason::VolumeRefused => "PerNodeVolumeRefused",
            Reason::VolumeHeld => "PerNodeVolumeHeld",
            Reason::MountFailed => "PerNodeMountFailed",
            Reason::SweepStopped => "PerNodeSweepStopped",
            Reason::TrashEmptied => "PerNodeTrashEmptied",
        }
    }
}

impl Holder {
    pub fn of(pod: &Pod) -> Holder {
        Holder(pod.to_string())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Refusal {
    /// The reason of the event that tells this refusal.
    pub fn reason(&self) -> Reason {
        match self {
            Refusal::Handle(_) | Refusal::Target(_) | Refusal::Request(_) => Reason::VolumeRefused,
            Refusal::Held { .. } => Reason::VolumeHeld,
            Refusal::ReadonlyDiffers { .. } | Refusal::Failed(_) => Reason::MountFailed,
        }
    }
}

impl PublishError {
    /// A refusal of a request whose target nobody has published to, or could have.
    pub fn refused(refusal: Refusal) -> PublishError {
        PublishError::Refused { refusal, target_was_there: false }
    }
}
