//! File systems of a case's own, as small as their tools make them, for what only a full or a broken one can show.

use std::path::Path;
use std::process::Command;

use crate::file_system::FileSystem;
use crate::ground;

/// The smallest that its tools make.
fn size(file_system: FileSystem) -> &'static str {
    match file_system {
        FileSystem::Tmpfs => "12M",
        FileSystem::Ext4 | FileSystem::Overlay => "16M",
        FileSystem::Xfs => "320M",
        FileSystem::Btrfs => "120M",
    }
}

/// Makes a new one and mounts it at `at`.
pub fn mount_new(file_system: FileSystem, at: &Path) {
    run(&mut file_system.mount_new(&ground::new_root(), at, size(file_system)));
}

/// Whether this machine can make one.
pub fn can_be_made(file_system: FileSystem) -> bool {
    let tool = match file_system {
        FileSystem::Tmpfs => return true,
        FileSystem::Ext4 | FileSystem::Overlay => "mkfs.ext4",
        FileSystem::Xfs => "mkfs.xfs",
        FileSystem::Btrfs => "mkfs.btrfs",
    };
    ["/sbin", "/usr/sbin", "/usr/bin"].iter().any(|directory| Path::new(directory).join(tool).exists())
}

#[track_caller]
pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}

/// Writes a file until there is no space left.
pub fn fill(file: &Path) {
    use std::io::Write;
    let mut open = std::fs::File::create(file).unwrap();
    for size in [1 << 20, 4096, 1] {
        let piece = vec![1u8; size];
        while open.write_all(&piece).is_ok() {}
        // What was promised and is not there shows only now; it fails as the writes did.
        let _ = open.sync_data();
    }
}

/// Waits until everything is written, so that space that was freed shows as such.
pub fn sync(at: &Path) {
    let open = std::fs::File::open(at).unwrap();
    rustix::fs::syncfs(&open).unwrap();
}
