//! What the benches on real directories have in common.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use per_node::domain::handle::Handle;

/// A store and what pods see of it, on a real file system.
pub struct Directory {
    pub store: PathBuf,
}

impl Directory {
    pub fn copy(&self, handle: &Handle) -> PathBuf {
        self.store.join("copies").join(handle.as_path())
    }

    pub fn write_into_copy(&self, handle: &Handle, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.copy(handle)).expect("a copy");
        std::fs::write(self.copy(handle).join(name), bytes).expect("written");
    }

    pub fn move_copy_away(&self, handle: &Handle) {
        // Beside `copies`, for the store may be a file system of its own.
        let away = self.store.join(format!("away-{handle}"));
        std::fs::rename(self.copy(handle), away).expect("moved");
    }

    pub fn mode_and_group(&self, handle: &Handle) -> (u32, u32) {
        let found = std::fs::symlink_metadata(self.copy(handle)).expect("a copy");
        (found.mode() & 0o7777, found.gid())
    }

    pub fn put_stranger_file(&self, name: &str) {
        std::fs::write(self.store.join("copies").join(name), "a stranger's").expect("written");
    }

    pub fn put_stranger_symlink(&self, name: &str) {
        symlink("/", self.store.join("copies").join(name)).expect("a symlink");
    }
}

pub fn make_symlink(path: &Path) {
    symlink("nowhere", path).expect("a symlink");
}
