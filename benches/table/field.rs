//! Where the sides meet: a temporary directory with a kubelet's directory and a store for the driver, such directories for its
//! limits, and foreign mounts beside them. Everything goes with it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::bare::RAW;
use crate::steps::STEPS;

/// The directories below which the driver and its limits mount.
const KUBELETS: [&str; 3] = ["kubelet", RAW, STEPS];
/// How long anything may take to come up.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Enters a mount namespace of this process' own. Must come before any thread.
pub fn enter_namespace() {
    unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    change(Path::new("/"), MsFlags::MS_REC | MsFlags::MS_PRIVATE);
}

fn change(path: &Path, flags: MsFlags) {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>).expect("propagation changes");
}

pub fn bind(from: &Path, onto: &Path) -> nix::Result<()> {
    mount(Some(from), onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}

pub struct Field {
    root: tempfile::TempDir,
}

impl Field {
    pub fn new() -> Field {
        let root = tempfile::tempdir().expect("a directory");
        let field = Field { root };
        for name in KUBELETS.iter().chain(&["store", "foreign"]) {
            std::fs::create_dir(field.path(name)).expect(name);
        }
        // As on a node: what is mounted below the kubelet's directory propagates.
        for name in KUBELETS {
            let path = field.path(name);
            bind(&path, &path).expect("bind");
            change(&path, MsFlags::MS_SHARED);
        }
        // One mount below which the others lie, so that they go with it.
        mount(Some("foreign"), &field.path("foreign"), Some("tmpfs"), MsFlags::empty(), None::<&str>)
            .expect("a tmpfs");
        field
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Mounts that have nothing to do with either side, such as other pods have.
    pub fn mount_foreign(&self, count: usize) {
        for number in 0..count {
            let path = self.path("foreign").join(number.to_string());
            std::fs::create_dir(&path).expect("a mount point");
            bind(&path, &path).expect("bind");
        }
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        for name in KUBELETS.iter().chain(&["foreign"]) {
            let _ = umount2(&self.path(name), MntFlags::MNT_DETACH);
        }
    }
}

/// Waits until `happens` says so; a longer wait than anything takes is a failure.
pub fn wait_until(what: &str, every: Duration, mut happens: impl FnMut() -> bool) {
    wait_for(what, START_LIMIT, every, &mut happens);
}

/// As `wait_until`, for what may take long.
pub fn wait_for(what: &str, limit: Duration, every: Duration, happens: &mut dyn FnMut() -> bool) {
    let began = Instant::now();
    while !happens() {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(every);
    }
}
