//! The contract suites on real mounts, in each setting.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::leftovers;
use per_node::adapters::linux::mounts::LinuxMounts;
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::handle::Handle;
use per_node::domain::target::KubeletDir;
use per_node::ports::copies::Copies;
use per_node::ports::mounts::Mounts;
use per_node::ports::records::Records;

use crate::Case;
use crate::contract::directory::{self, Directory};
use crate::contract::{self, Bench, COPY_MODE, ContractCase};
use crate::setting::{self, in_one};
use crate::world::World;

pub fn cases() -> Vec<Case> {
    let in_each = |(name, case): ContractCase<RealBench>| {
        setting::each()
            .map(move |setting| in_one(setting, name, move |world| case(&mut RealBench::on(world))))
    };
    contract::cases().into_iter().flat_map(in_each).collect()
}

/// Adapters of one process; the world outlives them.
struct RealBench {
    world: World,
    directory: Directory,
    mounts: Arc<LinuxMounts>,
    copies: Arc<LinuxCopies>,
    records: Arc<SlotRecords>,
}

impl RealBench {
    fn on(world: World) -> RealBench {
        // What mkdir would make under this umask is far from what is wanted.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let (mounts, copies, records) = begin(&world);
        RealBench { directory: Directory { store: world.path("store") }, mounts, copies, records, world }
    }
}

/// What a process does first.
fn begin(world: &World) -> (Arc<LinuxMounts>, Arc<LinuxCopies>, Arc<SlotRecords>) {
    let store = Arc::new(StoreDirs::open(&world.path("store")).expect("a store"));
    assert_eq!(leftovers::clear(&store), Ok(0));
    (
        Arc::new(LinuxMounts::new(store.clone(), world.kubelet_dir.clone(), world.abilities)),
        Arc::new(LinuxCopies::new(store.clone(), COPY_MODE)),
        Arc::new(SlotRecords::open(&store).expect("records")),
    )
}

impl Bench for RealBench {
    fn mounts(&self) -> Arc<dyn Mounts> {
        self.mounts.clone()
    }

    fn copies(&self) -> Arc<dyn Copies> {
        self.copies.clone()
    }

    fn records(&self) -> Arc<dyn Records> {
        self.records.clone()
    }

    fn restart(&mut self) {
        (self.mounts, self.copies, self.records) = begin(&self.world);
    }

    fn locks_access_times(&self) -> bool {
        self.world.setting.has_locked_times()
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.world.wait(call)
    }

    fn kubelet_dir(&self) -> KubeletDir {
        self.world.kubelet_dir.clone()
    }

    fn group(&self) -> u32 {
        // The only one that a user namespace is sure to have.
        rustix::process::getegid().as_raw()
    }

    fn make_directory(&self, path: &Path) {
        std::fs::create_dir(path).expect("a directory");
    }

    fn make_file(&self, path: &Path) {
        std::fs::write(path, "").expect("a file");
    }

    fn make_symlink(&self, path: &Path) {
        directory::make_symlink(path);
    }

    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn write(&self, directory: &Path, name: &str, bytes: &[u8]) {
        std::fs::write(directory.join(name), bytes).expect("written");
    }

    fn read(&self, directory: &Path, name: &str) -> Option<Vec<u8>> {
        std::fs::read(directory.join(name)).ok()
    }

    fn write_into_copy(&self, handle: &Handle, name: &str, bytes: &[u8]) {
        self.directory.write_into_copy(handle, name, bytes);
    }

    fn move_copy_away(&self, handle: &Handle) {
        self.directory.move_copy_away(handle);
    }

    fn mode_and_group(&self, handle: &Handle) -> (u32, u32) {
        self.directory.mode_and_group(handle)
    }

    fn put_stranger_file(&self, name: &str) {
        self.directory.put_stranger_file(name);
    }

    fn put_stranger_symlink(&self, name: &str) {
        self.directory.put_stranger_symlink(name);
    }
}
