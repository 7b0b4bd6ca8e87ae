//! Which system calls are steps: those that change a mount, a directory, a file or a socket's place on disk. Between
//! two steps a kill finds what it finds right before the second.

use std::ffi::c_void;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::registers::Call;

/// The calls that change something whatever their arguments are.
const CHANGING: [(i64, &str); 27] = [
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_mount, "mount"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    (libc::SYS_fremovexattr, "fremovexattr"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_bind, "bind"),
    (libc::SYS_listen, "listen"),
];

/// The same calls under the names that only older processors have.
#[cfg(target_arch = "x86_64")]
const OLDER: [(i64, &str); 8] = [
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_link, "link"),
    (libc::SYS_symlink, "symlink"),
    (libc::SYS_chmod, "chmod"),
    (libc::SYS_chown, "chown"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [(i64, &str); 0] = [];

/// The name of the step that the call is, if it is one.
pub fn name_of(thread: Pid, call: &Call) -> Option<&'static str> {
    let makes = |flags: u64| flags & libc::O_CREAT as u64 != 0;
    if call.number == libc::SYS_openat {
        return makes(call.arguments[2]).then_some("openat");
    }
    if call.number == libc::SYS_openat2 {
        // Its flags are the first word of what the third argument points to.
        let flags = ptrace::read(thread, call.arguments[2] as *mut c_void).unwrap_or_default();
        return makes(flags as u64).then_some("openat2");
    }
    let mut all = CHANGING.iter().chain(&OLDER);
    all.find(|(number, _)| *number == call.number).map(|(_, name)| *name)
}
