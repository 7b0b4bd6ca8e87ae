//! Giving up rights before the first thread.
//!
//! The deployment must be privileged for the sake of mount propagation alone, and the runtime then grants everything.
//! Capabilities and `no_new_privs` belong to a thread and are inherited by those it starts, so this comes first.

use caps::{CapSet, Capability, CapsHashSet};
use thiserror::Error;

/// What the work needs: mounting, entering and changing what pods made with any owner and mode, group ownership and
/// setgid of a copy's root.
const NEEDED: [Capability; 5] = [
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_FOWNER,
    Capability::CAP_CHOWN,
    Capability::CAP_FSETID,
];

/// Why rights could not be given up.
#[derive(Debug, Error)]
pub enum ConfineError {
    #[error("capabilities cannot be given up: {0}")]
    Capabilities(caps::errors::CapsError),
    #[error("no_new_privs cannot be set: {0}")]
    NoNewPrivs(rustix::io::Errno),
}

/// Gives up every capability but [`NEEDED`], for this thread and all that it starts, and the right to gain any by
/// executing a program. What the process does not have it does not get.
pub fn confine() -> Result<(), ConfineError> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(ConfineError::Capabilities)?;
    let kept: CapsHashSet = NEEDED.into_iter().filter(|needed| permitted.contains(needed)).collect();
    // The bounding set first: changing it needs a capability that goes next.
    if permitted.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::read(None, CapSet::Bounding).map_err(ConfineError::Capabilities)? {
            if !kept.contains(&capability) {
                caps::drop(None, CapSet::Bounding, capability).map_err(ConfineError::Capabilities)?;
            }
        }
    }
    caps::clear(None, CapSet::Ambient).map_err(ConfineError::Capabilities)?;
    caps::clear(None, CapSet::Inheritable).map_err(ConfineError::Capabilities)?;
    caps::set(None, CapSet::Effective, &kept).map_err(ConfineError::Capabilities)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(ConfineError::Capabilities)?;
    rustix::thread::set_no_new_privs(true).map_err(ConfineError::NoNewPrivs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_kept() {
        // A thread's rights are its own: the other tests keep theirs.
        let rights = std::thread::spawn(|| {
            confine().expect("confined");
            let sets = [CapSet::Permitted, CapSet::Effective, CapSet::Inheritable, CapSet::Ambient];
            let held: Vec<CapsHashSet> =
                sets.into_iter().map(|set| caps::read(None, set).expect("read")).collect();
            (held, rustix::thread::no_new_privs().expect("read"))
        });
        let (held, no_new_privs) = rights.join().expect("the thread ended well");
        assert!(no_new_privs);
        let needed: CapsHashSet = NEEDED.into_iter().collect();
        assert!(held[0].is_subset(&needed) && held[1] == held[0], "{held:?}");
        assert!(held[2].is_empty() && held[3].is_empty(), "{held:?}");
    }
}
