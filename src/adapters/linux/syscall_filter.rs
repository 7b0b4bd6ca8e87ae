//! The process's own seccomp filter: which system calls it may make from here on, it and every thread it starts.
//!
//! The deployment is privileged for the sake of mount propagation, and a privileged container gets no filter from the
//! runtime. So the process installs one before its first thread. It is a list of what is allowed: what the driver, its
//! libraries and the C library were seen to call, nothing else.
//!
//! Two answers for the rest. A call that no library tries in passing, and that is of use to somebody who took the
//! process over ([`NEVER`]), ends the process. Any other is answered ENOSYS, as by a kernel that does not have it: a new
//! C library that tries a new call falls back to the old one, and a plugin goes on working at three in the morning.
//!
//! Calls that would undo a promise are held to their arguments: `umount2` is never lazy, `mount` never mounts a file
//! system, `clone` makes threads and nothing else.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use thiserror::Error;

use super::syscalls;

/// Why the filter is not in force.
#[derive(Debug, Error)]
pub enum FilterError {
    #[error("no filter is known for this architecture, {0}")]
    Architecture(&'static str),
    #[error("it cannot be built: {0}")]
    Build(seccompiler::BackendError),
    #[error("the kernel does not take it: {0}")]
    Install(seccompiler::Error),
}

/// Puts the filter in force for this thread and all that it starts. There is no way back. It sets `no_new_privs`, too.
pub fn install() -> Result<(), FilterError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| FilterError::Architecture(std::env::consts::ARCH))?;
    let (never, allowed) = (never(architecture)?, allowed(architecture)?);
    // The strictest answer of all filters counts. The list of what is allowed has no `seccomp`, so that it comes last.
    for program in [never, allowed] {
        seccompiler::apply_filter(&program).map_err(FilterError::Install)?;
    }
    Ok(())
}

/// Of no use to a driver of volumes, and of much to whoever took it over: other programs, other processes' memory,
/// other namespaces, code in the kernel, keys.
const NEVER: [c_long; 30] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_quotactl,
];

/// Allowed whatever the arguments, on every architecture.
const ALLOWED: [c_long; 96] = [
    // Files by descriptor.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fallocate,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fremovexattr,
    libc::SYS_getdents64,
    // Files by path.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_fchmodat,
    libc::SYS_getcwd,
    // Mounts; `mount` and `umount2` are held to their arguments below.
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    syscalls::SYS_STATMOUNT,
    syscalls::SYS_LISTMOUNT,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    // Sockets; `socket` is held to its arguments below.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Memory; `mmap` and `mprotect` are held to their arguments below.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    // Threads and signals.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_ioprio_set,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // What it is and where.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
];

/// The older spellings that x86 keeps and newer architectures never had.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: [c_long; 9] = [
    libc::SYS_open,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_chmod,
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: [c_long; 0] = [];

/// Namespaces that `clone` could make.
const CLONE_NEW: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
const CLONE_THREAD: u64 = libc::CLONE_THREAD as u64;
/// Memory that is written and executed.
const WRITE: u64 = libc::PROT_WRITE as u64;
const EXECUTE: u64 = libc::PROT_EXEC as u64;
/// Is this a terminal, do not block, how much is there to read; a file's flags (btrfs: write in place) and a
/// subvolume's.
const IOCTLS: [u64; 8] = [
    libc::TCGETS,
    libc::FIONBIO,
    libc::FIONREAD,
    libc::FIOCLEX,
    libc::FS_IOC_GETFLAGS,
    libc::FS_IOC_SETFLAGS,
    syscalls::BTRFS_SUBVOLUME_GET_FLAGS,
    syscalls::BTRFS_SUBVOLUME_SET_FLAGS,
];
/// From the kernel's `linux/prctl.h`: the C library names its memory.
const PR_SET_VMA: i32 = 0x5356_4d41;
const PRCTLS: [i32; 3] = [libc::PR_SET_NAME, libc::PR_GET_NAME, PR_SET_VMA];

/// One argument: which, as how wide a number the kernel takes it, and what it has to be.
struct Argument(u8, Width, Test);

enum Width {
    Int,
    Long,
}

enum Test {
    Is(u64),
    /// These bits of it, and their value.
    Bits(u64, u64),
}

fn int(index: u8, value: i32) -> Argument {
    Argument(index, Width::Int, Test::Is(value as u64))
}

fn long(index: u8, test: Test) -> Argument {
    Argument(index, Width::Long, test)
}

/// Calls that are allowed with certain arguments alone: any one of the lines of a call must hold.
fn by_argument() -> Vec<(c_long, Argument)> {
    let mut lines = vec![
        // Never lazily, never by force, never through a symlink (C17).
        (libc::SYS_umount2, int(1, libc::UMOUNT_NOFOLLOW)),
        // Binds, their remounts, and propagation: no file system is ever mounted.
        (libc::SYS_mount, long(3, Test::Bits(libc::MS_BIND, libc::MS_BIND))),
        (libc::SYS_mount, long(3, Test::Is(libc::MS_PRIVATE))),
        // Threads. `clone3` has its flags in memory, where no filter sees them: the C library falls back to this.
        (libc::SYS_clone, long(0, Test::Bits(CLONE_NEW | CLONE_THREAD, CLONE_THREAD))),
        // To itself alone, for an abort.
        (libc::SYS_tgkill, int(0, std::process::id() as i32)),
        // Reading a limit, not setting one.
        (libc::SYS_prlimit64, long(2, Test::Is(0))),
        (libc::SYS_socketpair, int(0, libc::AF_UNIX)),
    ];
    let domains = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    lines.extend(domains.map(|domain| (libc::SYS_socket, int(0, domain))));
    lines.extend(IOCTLS.map(|request| (libc::SYS_ioctl, int(1, request as i32))));
    lines.extend(PRCTLS.map(|option| (libc::SYS_prctl, int(0, option))));
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        lines.extend([0, WRITE, EXECUTE].map(|bits| (call, long(2, Test::Bits(WRITE | EXECUTE, bits)))));
    }
    lines
}

fn allowed(architecture: TargetArch) -> Result<BpfProgram, FilterError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        ALLOWED.into_iter().chain(ALLOWED_HERE).map(|call| (call, Vec::new())).collect();
    for (call, argument) in by_argument() {
        rules.entry(call).or_default().push(argument.rule().map_err(FilterError::Build)?);
    }
    let otherwise = SeccompAction::Errno(libc::ENOSYS as u32);
    build(SeccompFilter::new(rules, otherwise, SeccompAction::Allow, architecture))
}

fn never(architecture: TargetArch) -> Result<BpfProgram, FilterError> {
    let rules = NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    build(SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::KillProcess, architecture))
}

fn build(filter: Result<SeccompFilter, seccompiler::BackendError>) -> Result<BpfProgram, FilterError> {
    filter.and_then(BpfProgram::try_from).map_err(FilterError::Build)
}

impl Argument {
    fn rule(&self) -> Result<SeccompRule, seccompiler::BackendError> {
        let width = match self.1 {
            Width::Int => SeccompCmpArgLen::Dword,
            Width::Long => SeccompCmpArgLen::Qword,
        };
        let (operator, value) = match self.2 {
            Test::Is(value) => (SeccompCmpOp::Eq, value),
            Test::Bits(mask, value) => (SeccompCmpOp::MaskedEq(mask), value),
        };
        let condition = SeccompCondition::new(self.0, width, operator, value)?;
        SeccompRule::new(vec![condition])
    }
}

#[cfg(test)]
#[path = "syscall_filter_tests.rs"]
mod tests;
