//! The decision about a publish, from what was observed under the handle's lock (C10–C12).

use std::collections::BTreeSet;

use super::handle::Handle;
use super::holds::{Holds, TargetRecord};
use super::mount_table::TargetView;
use super::pod::Pod;
use super::refusal::{FailedStep, Holder, Refusal};
use super::trash::TrashId;
use super::volume_request::{RequestError, VolumeAsk};

/// What was observed.
#[derive(Debug)]
pub struct Observed<'a> {
    pub handle: &'a Handle,
    pub pod: &'a Pod,
    /// The pod that the target belongs to, by its record or its path.
    pub pod_at_target: &'a Pod,
    pub view: &'a TargetView,
    /// The handle's entries in the trash.
    pub trashed: &'a BTreeSet<TrashId>,
    /// The record of this target for this handle.
    pub record: Option<&'a TargetRecord>,
    pub holds: &'a Holds,
    pub readonly: bool,
    pub ask: &'a Result<VolumeAsk, RequestError>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The target shows this pod's copy: OK, and nothing is touched (C11).
    AlreadyPublished,
    Refuse(Refusal),
    Publish(VolumeAsk),
}

/// Decides. The order is that of C10: where the target shows this pod's copy C11 alone decides; then come
/// the request, the holders, and what is in the way.
pub fn decide_publish(observed: &Observed<'_>) -> Decision {
    if shows_own_copy(observed) {
        return match observed.record {
            Some(record) if record.readonly != observed.readonly => {
                let handle = observed.handle.clone();
                Decision::Refuse(Refusal::ReadonlyDiffers { handle, published: record.readonly })
            }
            Some(_) | None => Decision::AlreadyPublished,
        };
    }
    let ask = match observed.ask {
        Ok(ask) => *ask,
        Err(error) => return Decision::Refuse(Refusal::Request(error.clone())),
    };
    if let Some(holder) = observed.holds.other_than(observed.pod) {
        let handle = observed.handle.clone();
        return Decision::Refuse(Refusal::Held { handle, holder: Holder::of(holder) });
    }
    let in_the_way = match observed.view {
        TargetView::Absent | TargetView::Directory { empty: true } => None,
        TargetView::Directory { empty: false } => Some(FailedStep::TargetNotEmpty),
        TargetView::NotADirectory => Some(FailedStep::TargetNotADirectory),
        TargetView::Mounted(_) => Some(FailedStep::TargetForeignMount),
    };
    match in_the_way {
        Some(step) => Decision::Refuse(Refusal::Failed(step)),
        None => Decision::Publish(ask),
    }
}

/// A copy that was moved to the trash or deleted under the mount is still what the pod was given.
fn shows_own_copy(observed: &Observed<'_>) -> bool {
    let shown = observed.view.visible();
    shown.is_some_and(|shown| shown.at_root && shown.belongs_to(observed.handle, observed.trashed))
        && observed.pod_at_target.is_same_as(observed.pod)
}
