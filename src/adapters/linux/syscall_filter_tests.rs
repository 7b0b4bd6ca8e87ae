//! What the filter lets through, what it answers, and what it ends the process for.

use super::*;
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

/// Runs a case on a thread of its own: the filter is for that thread alone.
fn filtered<T: Send>(case: impl FnOnce() -> T + Send) -> T {
    let run = || {
        install().expect("the filter is in force");
        case()
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the case ended well"))
}

#[test]
fn what_is_not_on_the_list_is_not_there() {
    type Call = fn() -> Result<(), Errno>;
    let calls: [(&str, Call); 8] = [
        ("a lazy unmount (C17)", || rustix::mount::unmount("/nowhere", UnmountFlags::DETACH)),
        ("an unmount that follows a symlink", || rustix::mount::unmount("/nowhere", UnmountFlags::empty())),
        ("a new file system", || rustix::mount::mount("none", "/nowhere", "tmpfs", MountFlags::empty(), c"")),
        ("a mount that is moved", || rustix::mount::mount_move("/nowhere", "/elsewhere")),
        ("a shared mount", || rustix::mount::mount_change("/nowhere", MountPropagationFlags::SHARED)),
        ("a symlink", || rustix::fs::symlinkat("/nowhere", CWD, "/nowhere/link")),
        ("a device or a pipe", || rustix::fs::mkfifoat(CWD, "/nowhere/pipe", Mode::RWXU)),
        ("a working directory", || {
            std::env::set_current_dir("/").map_err(|error| Errno::from_io_error(&error).expect("an errno"))
        }),
    ];
    for (what, call) in calls {
        assert_eq!(filtered(call), Err(Errno::NOSYS), "{what}");
    }
}

#[test]
fn what_is_on_the_list_reaches_the_kernel() {
    filtered(|| {
        assert_eq!(rustix::mount::unmount("/nowhere", UnmountFlags::NOFOLLOW), Err(Errno::NOENT));
        assert_eq!(rustix::mount::mount_bind("/nowhere", "/nowhere"), Err(Errno::NOENT));
        assert!(std::thread::spawn(|| std::fs::read("/proc/self/mountinfo")).join().unwrap().is_ok());
        std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    });
}

#[test]
fn no_other_process_is_started_and_no_limit_is_raised() {
    filtered(|| {
        let error = Command::new("/bin/true").status().expect_err("no fork");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
        let limit = nix::sys::resource::Resource::RLIMIT_CORE;
        let (soft, hard) = nix::sys::resource::getrlimit(limit).expect("reading it is allowed");
        assert_eq!(nix::sys::resource::setrlimit(limit, soft, hard), Err(nix::errno::Errno::ENOSYS));
    });
}

#[test]
fn c44_a_filter_that_cannot_be_installed_is_told() {
    filtered(|| {
        let error = install().expect_err("the first one forbids a second");
        assert!(error.to_string().contains("the kernel does not take it"), "{error}");
    });
}

/// In the child process of the test below: what it is to die of.
const DIE_OF: &str = "PER_NODE_TEST_DIE_OF";

#[test]
fn what_only_an_intruder_calls_ends_the_process() {
    type Call = fn();
    let calls: [(&str, Call); 4] = [
        ("execve", || {
            let _ = Command::new("/bin/true").exec();
        }),
        ("chroot", || {
            let _ = std::os::unix::fs::chroot("/");
        }),
        ("unshare", || {
            let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS);
        }),
        ("pivot_root", || {
            let _ = rustix::process::pivot_root("/", "/");
        }),
    ];
    if let Ok(dies_of) = std::env::var(DIE_OF) {
        install().expect("the filter is in force");
        calls.iter().filter(|(name, _)| *name == dies_of).for_each(|(_, call)| call());
        std::process::exit(0);
    }
    let name = concat!(module_path!(), "::what_only_an_intruder_calls_ends_the_process");
    let name = name.split_once("::").expect("a path in the crate").1;
    for (call, _) in calls {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        let output = child.args(["--exact", name]).env(DIE_OF, call).output().expect("it runs");
        assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{call}: {output:?}");
    }
}

#[test]
fn each_call_has_one_answer() {
    let by_argument: BTreeSet<c_long> = by_argument().into_iter().map(|(call, _)| call).collect();
    let mut seen = BTreeSet::new();
    let all = ALLOWED.into_iter().chain(ALLOWED_HERE).chain(NEVER).chain(by_argument);
    let twice: Vec<c_long> = all.filter(|&call| !seen.insert(call)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn both_architectures_of_the_image_have_a_filter() {
    for architecture in [TargetArch::x86_64, TargetArch::aarch64] {
        assert!(allowed(architecture).is_ok_and(|program| program.len() < 1000));
        assert!(never(architecture).is_ok());
    }
}
