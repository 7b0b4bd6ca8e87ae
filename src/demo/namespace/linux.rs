//! Entering the namespace on Linux. It must be done before any thread: a process with threads may not enter a
//! user namespace, and a mount namespace would be that of one thread alone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::Kind;

/// Moves this process into a new namespace. Nothing that is mounted in it is seen outside.
pub fn enter(kind: Kind) -> Result<(), String> {
    let flags = match kind {
        Kind::Mount => CloneFlags::CLONE_NEWNS,
        Kind::User => CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS,
    };
    let (user, group) = (geteuid(), getegid());
    unshare(flags).map_err(|errno| format!("unshare: {}", errno.desc()))?;
    match kind {
        Kind::Mount => {}
        Kind::User => {
            // Without this a group cannot be mapped; the caller becomes root in there and nobody else exists.
            write("/proc/self/setgroups", "deny")?;
            write("/proc/self/uid_map", &format!("0 {user} 1"))?;
            write("/proc/self/gid_map", &format!("0 {group} 1"))?;
        }
    }
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|errno| format!("mount / as private: {}", errno.desc()))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("write {path}: {error}"))
}

/// Makes a directory a mount of its own, so that whatever is mounted below it can be taken away at once.
pub fn set_apart(directory: &Path) -> Result<(), String> {
    mount(Some(directory), directory, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|errno| format!("bind {}: {}", directory.display(), errno.desc()))
}

/// Takes away what `set_apart` made, with all that is mounted below it. The driver never unmounts lazily; here
/// nobody uses the mounts any more, and the namespace ends with the process.
pub fn clear(directory: &Path) -> Result<(), String> {
    umount2(directory, MntFlags::MNT_DETACH)
        .map_err(|errno| format!("umount {}: {}", directory.display(), errno.desc()))
}

/// Binds one directory below `scratch` onto another, looks whether it shows, and takes it away.
pub fn try_bind(scratch: &Path) -> Result<(), String> {
    let (from, onto) = (scratch.join("from"), scratch.join("onto"));
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).map_err(|error| error.to_string());
    for directory in [&from, &onto] {
        fs::create_dir(directory).map_err(|error| format!("mkdir {}: {error}", directory.display()))?;
    }
    mount(Some(&from), &onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|errno| format!("bind: {}", errno.desc()))?;
    let shows = inode(&onto)? == inode(&from)?;
    umount(&onto).map_err(|errno| format!("umount: {}", errno.desc()))?;
    if shows { Ok(()) } else { Err("a bind shows nothing".to_owned()) }
}
