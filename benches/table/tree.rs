//! Trees of empty files, as many as a section wants.

use std::path::Path;

/// Files of one directory.
const FILES_PER_DIRECTORY: usize = 1_000;

/// Makes a tree of `files` files at `root`; answers how many inodes it has, its root among them.
pub fn make(root: &Path, files: usize) -> usize {
    std::fs::create_dir(root).expect("a root");
    let mut inodes = 1 + files;
    for (number, first) in (0..files).step_by(FILES_PER_DIRECTORY).enumerate() {
        let directory = root.join(format!("d{number}"));
        std::fs::create_dir(&directory).expect("a directory");
        inodes += 1;
        for file in first..files.min(first + FILES_PER_DIRECTORY) {
            std::fs::File::create(directory.join(format!("f{file}"))).expect("a file");
        }
    }
    inodes
}
