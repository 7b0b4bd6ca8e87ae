//! The namespaces of the suite: its own, and peers that see what the host's pods would see.

use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountPropagationFlags, mount_change};

/// Makes the test binary a peer instead of a suite.
pub const PEER_ARGUMENT: &str = "--be-a-peer";

/// Has root enter a user namespace, too.
pub const USER_NAMESPACE_VARIABLE: &str = "PER_NODE_TEST_USER_NAMESPACE";

/// What the suite runs as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    Root,
    UserNamespace,
}

/// Whether everything must run, and fail where it cannot (in CI).
pub fn everything_is_required() -> bool {
    std::env::var_os("PER_NODE_REQUIRE_ROOT").is_some_and(|value| value == "1")
}

/// Enters a private mount namespace; ends the process where that cannot be and root was required, or where not even
/// a user namespace is allowed.
pub fn enter() -> Entered {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let wants_user_namespace = std::env::var_os(USER_NAMESPACE_VARIABLE).is_some();
    let entered = if uid.is_root() && !wants_user_namespace && unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        Entered::Root
    } else {
        assert!(
            !everything_is_required() || wants_user_namespace,
            "PER_NODE_REQUIRE_ROOT=1, and this is not root or may not unshare"
        );
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).expect("a user and mount namespace");
        std::fs::write("/proc/self/setgroups", "deny").unwrap();
        std::fs::write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw())).unwrap();
        std::fs::write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw())).unwrap();
        Entered::UserNamespace
    };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("private mounts");
    entered
}

/// A process in a mount namespace that is a copy of the suite's, so that shared mounts of the two are peers. It
/// stands for the host.
pub struct Peer {
    child: Child,
}

impl Peer {
    pub fn start() -> Peer {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(PEER_ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0u8; 1];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).expect("the peer entered its namespace");
        Peer { child }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The peer's mount table.
    pub fn mountinfo(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/mountinfo", self.child.id())).unwrap()
    }

    /// A path as the peer sees it.
    pub fn path(&self, path: &std::path::Path) -> std::path::PathBuf {
        format!("/proc/{}/root{}", self.child.id(), path.display()).into()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its standard input ends with it, and so does the peer.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// What a peer does: enters its namespace, says so, and stays until its standard input ends.
pub fn be_a_peer() -> ExitCode {
    if unshare(CloneFlags::CLONE_NEWNS).is_err() {
        return ExitCode::FAILURE;
    }
    println!("+");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
