//! Lesser kernels: the calls that the driver can do without, and a filter that answers ENOSYS to some of them.

use std::collections::BTreeMap;

use per_node::adapters::linux::syscalls::{SYS_LISTMOUNT, SYS_STATMOUNT};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// A call with a fall-back: one that came after the oldest kernel that the driver runs on, or that a node may have used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newer {
    MountEvents,
    ListMount,
    StatMount,
    MountSetAttr,
    OpenTree,
    MoveMount,
    Renames,
}

impl Newer {
    pub const ALL: [Newer; 7] = [
        Newer::MountEvents,
        Newer::ListMount,
        Newer::StatMount,
        Newer::MountSetAttr,
        Newer::OpenTree,
        Newer::MoveMount,
        Newer::Renames,
    ];

    fn number(self) -> libc::c_long {
        match self {
            Newer::MountEvents => libc::SYS_fanotify_init,
            Newer::ListMount => SYS_LISTMOUNT,
            Newer::StatMount => SYS_STATMOUNT,
            Newer::MountSetAttr => libc::SYS_mount_setattr,
            Newer::OpenTree => libc::SYS_open_tree,
            Newer::MoveMount => libc::SYS_move_mount,
            Newer::Renames => libc::SYS_inotify_init1,
        }
    }
}

/// Runs the case on a kernel without these calls: on a thread of its own, which ends with the case.
pub fn run_without(calls: Vec<Newer>, case: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        without_numbers(&calls.iter().map(|call| call.number()).collect::<Vec<_>>());
        case();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Makes this thread, and all that it starts, live without these calls. There is no way back.
pub fn without_numbers(numbers: &[libc::c_long]) {
    let rules: BTreeMap<_, _> = numbers.iter().map(|&number| (number, Vec::new())).collect();
    if rules.is_empty() {
        return;
    }
    let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}
