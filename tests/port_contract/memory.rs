//! A node in memory.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use per_node::adapters::memory::{MemoryCopies, MemoryMounts, MemoryRecords, Node};
use per_node::domain::handle::Handle;
use per_node::domain::target::KubeletDir;
use per_node::ports::copies::Copies;
use per_node::ports::mounts::Mounts;
use per_node::ports::records::Records;

use crate::contract::{Bench, COPY_MODE};

const KUBELET_DIR: &str = "/var/lib/kubelet";
/// No group of this machine: nothing here asks the kernel.
const GROUP: u32 = 4711;

pub struct MemoryBench {
    node: Node,
    records: Arc<MemoryRecords>,
    runtime: tokio::runtime::Runtime,
}

impl MemoryBench {
    pub fn new() -> MemoryBench {
        let node = Node::new("/var/lib/per-node");
        node.set_copy_mode(COPY_MODE);
        node.make_directory(KUBELET_DIR);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        MemoryBench { records: Arc::new(MemoryRecords::open(&node)), node, runtime }
    }
}

impl Bench for MemoryBench {
    fn mounts(&self) -> Arc<dyn Mounts> {
        Arc::new(MemoryMounts::new(&self.node))
    }

    fn copies(&self) -> Arc<dyn Copies> {
        Arc::new(MemoryCopies::new(&self.node))
    }

    fn records(&self) -> Arc<dyn Records> {
        self.records.clone()
    }

    fn restart(&mut self) {
        self.records = Arc::new(MemoryRecords::open(&self.node));
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    fn kubelet_dir(&self) -> KubeletDir {
        KubeletDir::new(KUBELET_DIR.into(), KUBELET_DIR.into())
    }

    fn group(&self) -> u32 {
        GROUP
    }

    fn make_directory(&self, path: &Path) {
        self.node.make_directory(path);
    }

    fn make_file(&self, path: &Path) {
        self.node.make_file(path);
    }

    fn make_symlink(&self, path: &Path) {
        self.node.make_symlink(path);
    }

    fn is_there(&self, path: &Path) -> bool {
        self.node.exists(path)
    }

    fn write(&self, directory: &Path, name: &str, bytes: &[u8]) {
        self.node.write(directory, name, bytes).expect("written");
    }

    fn read(&self, directory: &Path, name: &str) -> Option<Vec<u8>> {
        self.node.read(directory, name)
    }

    fn write_into_copy(&self, handle: &Handle, name: &str, bytes: &[u8]) {
        self.node.put_copy(handle, name, bytes);
    }

    fn move_copy_away(&self, handle: &Handle) {
        assert!(self.node.move_copy_away(handle));
    }

    fn mode_and_group(&self, handle: &Handle) -> (u32, u32) {
        self.node.copy_mode_and_group(handle).expect("a copy")
    }

    fn put_stranger_file(&self, name: &str) {
        self.node.put_stranger(name);
    }

    fn put_stranger_symlink(&self, name: &str) {
        self.node.put_stranger_symlink(name);
    }
}
