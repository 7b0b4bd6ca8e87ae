//! What is wrong with a published copy (C49): facts in, conditions out.
//!
//! Only a copy that a target shows is judged: of a volume that no pod here holds nothing is known that would be
//! amiss. No text here has a number, a time or a name that changes while the condition lasts.

use std::collections::BTreeSet;

use super::handle::Handle;
use super::mount_table::{FileIdentity, Place, Shown, TargetView};
use super::trash::TrashId;

/// A store is nearly full when less than this part of its bytes, or of its inodes, is left for pods.
pub const LEFT_PERCENT_MIN: u64 = 5;
/// The longest message that the API server takes in a pod's status, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// What a target shows of the copy that it was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The directory under the copy's name, or one that was there before another mount covered it; `None` where
    /// a foreign mount on the target hides which.
    Named(Option<FileIdentity>),
    /// The copy's directory, without its name: it was removed, or has another name in the store.
    Nameless,
    /// A directory that is no place in the store. The copy, if it lies on the store's device: somebody moved it.
    Elsewhere(FileIdentity),
}

/// The store as a look found it that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFacts {
    /// The directory under the copy's name, `None` where there is none.
    pub copy: Option<FileIdentity>,
    /// The device of the directory that holds the copies.
    pub device: u64,
    /// Nothing can be written to the copy's file system.
    pub read_only: bool,
    pub bytes: Room,
    pub inodes: Room,
}

/// How much of something there is. A total of zero: the file system does not say, or knows no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    pub available: u64,
    pub total: u64,
}

/// How bad a condition is, in the words of CSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Usable, but not as it should be.
    Degraded,
    /// Not to be used on this node.
    Inaccessible,
    /// What was written is lost, or will be with the pod.
    DataLoss,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No directory has the copy's name any more.
    CopyGone,
    /// Another directory has the copy's name.
    CopyReplaced,
    /// The store answers with an error, or not at all.
    StoreFailing {
        why: String,
    },
    StoreReadOnly,
    StoreNearlyFull,
    StoreNearlyOutOfInodes,
}

/// What the target shows of this handle's copy, `None` where nothing of it is published there. `recorded` says
/// that the store's record names the handle for this target: only that tells a copy which was renamed to another
/// handle's from that other handle's own.
pub fn published(
    view: &TargetView,
    handle: &Handle,
    trashed: &BTreeSet<TrashId>,
    recorded: bool,
) -> Option<Published> {
    let TargetView::Mounted(stack) = view else { return None };
    let (shown, identity) = match (view.visible(), view.any_shown()) {
        (Some(shown), _) => (shown, Some(stack.visible)),
        (None, Some(hidden)) => (hidden, None),
        (None, None) => return Some(Published::Elsewhere(stack.visible)),
    };
    if !shown.at_root {
        return None;
    }
    let is_its_own = shown.belongs_to(handle, trashed);
    match shown {
        Shown { place: Place::Copy(_), deleted: false, .. } if is_its_own => Some(Published::Named(identity)),
        Shown { .. } => (is_its_own || recorded).then_some(Published::Nameless),
    }
}

/// What is wrong, the worst first; nothing where all is well. `store` is the reason in words where the store
/// failed the look.
pub fn conditions(published: &Published, store: &Result<StoreFacts, String>) -> Vec<Condition> {
    let facts = match store {
        Ok(facts) => facts,
        Err(why) => {
            let failing = Condition::StoreFailing { why: why.clone() };
            return match published {
                Published::Nameless => vec![Condition::CopyGone, failing],
                Published::Named(_) | Published::Elsewhere(_) => vec![failing],
            };
        }
    };
    let is_lost = match published {
        Published::Nameless => true,
        Published::Named(shown) => facts.copy.is_none() || shown.is_some_and(|it| Some(it) != facts.copy),
        Published::Elsewhere(shown) => {
            if shown.device != facts.device && Some(*shown) != facts.copy {
                // Somebody's own mount: this volume is not published here.
                return Vec::new();
            }
            Some(*shown) != facts.copy
        }
    };
    let loss = if facts.copy.is_some() { Condition::CopyReplaced } else { Condition::CopyGone };
    [
        (is_lost, loss),
        (facts.read_only, Condition::StoreReadOnly),
        (facts.bytes.is_nearly_used_up(), Condition::StoreNearlyFull),
        (facts.inodes.is_nearly_used_up(), Condition::StoreNearlyOutOfInodes),
    ]
    .into_iter()
    .filter_map(|(is_so, condition)| is_so.then_some(condition))
    .collect()
}

impl Room {
    fn is_nearly_used_up(self) -> bool {
        // Of nothing at all no part is less than none.
        u128::from(self.available) * 100 < u128::from(self.total) * u128::from(LEFT_PERCENT_MIN)
    }
}

impl Condition {
    pub fn severity(&self) -> Severity {
        match self {
            Condition::CopyGone | Condition::CopyReplaced => Severity::DataLoss,
            Condition::StoreFailing { .. } | Condition::StoreReadOnly => Severity::Inaccessible,
            Condition::StoreNearlyFull | Condition::StoreNearlyOutOfInodes => Severity::Degraded,
        }
    }

    /// A word for machines, which never changes.
    pub fn reason(&self) -> &'static str {
        match self {
            Condition::CopyGone => "CopyGone",
            Condition::CopyReplaced => "CopyReplaced",
            Condition::StoreFailing { .. } => "StoreFailing",
            Condition::StoreReadOnly => "StoreReadOnly",
            Condition::StoreNearlyFull => "StoreNearlyFull",
            Condition::StoreNearlyOutOfInodes => "StoreNearlyOutOfInodes",
        }
    }

    /// What it means and what to do, for people; as long as a pod's status takes.
    pub fn message(&self) -> String {
        let mut text = match self {
            Condition::CopyGone => {
                "the copy's directory was removed from this node's store, or moved: what this \
                                    pod writes goes with it; delete the pod to begin anew"
                    .to_owned()
            }
            Condition::CopyReplaced => {
                "another directory has the copy's name in this node's store: the next pod \
                                        will see that one, not what this pod wrote"
                    .to_owned()
            }
            Condition::StoreFailing { why } => format!("this node's store fails: {why}"),
            Condition::StoreReadOnly => {
                "this node's store is read-only: nothing can be written; see the node's disk".to_owned()
            }
            Condition::StoreNearlyFull => {
                format!("less than {LEFT_PERCENT_MIN} % of the space in this node's store is left")
            }
            Condition::StoreNearlyOutOfInodes => {
                format!("less than {LEFT_PERCENT_MIN} % of the inodes in this node's store are left")
            }
        };
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
