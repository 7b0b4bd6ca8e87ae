//! A directory of this machine, and the rootless double on it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use per_node::adapters::rootless::Rootless;
use per_node::domain::handle::Handle;
use per_node::domain::target::KubeletDir;
use per_node::ports::copies::Copies;
use per_node::ports::mounts::Mounts;
use per_node::ports::records::Records;

use crate::contract::directory::{self, Directory};
use crate::contract::{Bench, COPY_MODE};

pub struct RootlessBench {
    scratch: tempfile::TempDir,
    kubelet_dir: PathBuf,
    directory: Directory,
    adapter: Arc<Rootless>,
    runtime: tokio::runtime::Runtime,
}

impl RootlessBench {
    pub fn new() -> RootlessBench {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = std::fs::canonicalize(scratch.path()).expect("its path");
        for name in ["kubelet", "store"] {
            std::fs::create_dir(root.join(name)).expect("a directory");
        }
        let adapter = Arc::new(Rootless::open(&root.join("store"), COPY_MODE).expect("a store"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let directory = Directory { store: root.join("store") };
        RootlessBench { scratch, kubelet_dir: root.join("kubelet"), directory, adapter, runtime }
    }
}

impl Bench for RootlessBench {
    fn mounts(&self) -> Arc<dyn Mounts> {
        self.adapter.clone()
    }

    fn copies(&self) -> Arc<dyn Copies> {
        self.adapter.clone()
    }

    fn records(&self) -> Arc<dyn Records> {
        self.adapter.clone()
    }

    fn restart(&mut self) {
        self.adapter = Arc::new(Rootless::open(&self.directory.store, COPY_MODE).expect("a store"));
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    fn kubelet_dir(&self) -> KubeletDir {
        KubeletDir::new(self.kubelet_dir.clone(), self.kubelet_dir.clone())
    }

    fn group(&self) -> u32 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(self.scratch.path()).expect("our directory").gid()
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
