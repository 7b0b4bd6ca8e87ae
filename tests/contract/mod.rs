//! The contract suites of the ports: what every adapter must do, told once and run on each.
//!
//! A [`Bench`] is one node with one adapter of each port. The same cases run on the doubles (`tests/port_contract`)
//! and on real mounts (`tests/real_mounts`): that is what makes the doubles honest.

mod copies;
pub mod directory;
mod mounts;
mod records;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use per_node::domain::handle::Handle;
use per_node::domain::mount_table::{FileIdentity, TargetView};
use per_node::domain::target::{KubeletDir, TargetPath};
use per_node::ports::copies::Copies;
use per_node::ports::mounts::Mounts;
use per_node::ports::records::Records;

/// The mode that every bench gives to new copies: none that a usual umask would give.
pub const COPY_MODE: u32 = 0o757;

/// One node, as people and pods see it beside the ports.
pub trait Bench {
    fn mounts(&self) -> Arc<dyn Mounts>;
    fn copies(&self) -> Arc<dyn Copies>;
    fn records(&self) -> Arc<dyn Records>;

    /// The process ends, without a word, and another begins on the same node.
    fn restart(&mut self);

    /// Whether the kernel lets nobody here change how access times are kept.
    fn locks_access_times(&self) -> bool {
        false
    }

    /// Runs a call of a port to its end.
    fn wait<T>(&self, call: impl Future<Output = T>) -> T;

    /// The kubelet's directory, which is there and empty.
    fn kubelet_dir(&self) -> KubeletDir;
    /// A group that a copy may be given here.
    fn group(&self) -> u32;

    fn make_directory(&self, path: &Path);
    fn make_file(&self, path: &Path);
    fn make_symlink(&self, path: &Path);
    fn is_there(&self, path: &Path) -> bool;

    /// Writes a file into a directory that a pod sees (a target), and reads one.
    fn write(&self, directory: &Path, name: &str, bytes: &[u8]);
    fn read(&self, directory: &Path, name: &str) -> Option<Vec<u8>>;

    /// Writes a file into a copy that is there.
    fn write_into_copy(&self, handle: &Handle, name: &str, bytes: &[u8]);
    /// Moves a copy out of `copies/`, whoever sees it, as an operator may.
    fn move_copy_away(&self, handle: &Handle);
    /// The permission bits and the group of a copy's root.
    fn mode_and_group(&self, handle: &Handle) -> (u32, u32);
    /// Puts a file, and a symlink, of that name under `copies/`.
    fn put_stranger_file(&self, name: &str);
    fn put_stranger_symlink(&self, name: &str);

    fn target(&self, name: &str) -> TargetPath {
        let path: PathBuf = self.kubelet_dir().path().join(name);
        TargetPath::parse(path.to_str().expect("a path of letters"), &self.kubelet_dir())
            .expect("a target path")
    }

    fn look(&self, target: &TargetPath) -> TargetView {
        self.wait(self.mounts().look(target)).expect("a look")
    }

    /// The copy, made if it is missing.
    fn copy(&self, name: &str) -> FileIdentity {
        self.wait(self.copies().ensure(&handle(name))).expect("a copy").identity
    }

    /// A target that shows a copy.
    fn published(&self, copy: &str, target: &str) -> TargetPath {
        let identity = self.copy(copy);
        let target = self.target(target);
        self.wait(self.mounts().make_target(&target)).expect("a target");
        let attached = self.mounts();
        self.wait(attached.attach(&handle(copy), identity, &target, &Default::default())).expect("a mount");
        target
    }
}

/// A case on a bench.
pub type ContractCase<B> = (&'static str, fn(&mut B));

/// Every case of every port.
pub fn cases<B: Bench>() -> Vec<ContractCase<B>> {
    [mounts::cases(), copies::cases(), records::cases()].concat()
}

pub fn handle(name: &str) -> Handle {
    Handle::parse(name).expect("a handle")
}
