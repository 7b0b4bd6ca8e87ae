//! File systems in files, for what a tmpfs cannot show. Only root may mount them.

use std::path::Path;
use std::process::Command;

/// A kind of file system that a store may lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// The smallest that its tools make.
    fn megabytes(self) -> u64 {
        match self {
            Kind::Ext4 => 16,
            Kind::Xfs => 320,
            Kind::Btrfs => 120,
        }
    }

    /// Whether this machine can make one; ext4's tools are on every machine.
    pub fn can_be_made(self) -> bool {
        let tool = format!("mkfs.{}", self.name());
        ["/sbin", "/usr/sbin", "/usr/bin"].iter().any(|directory| Path::new(directory).join(&tool).exists())
    }
}

/// Makes a file system in the file `image` and mounts it at `at`. The loop device goes with the mount.
pub fn mount_new(kind: Kind, image: &Path, at: &Path) {
    std::fs::File::create(image).unwrap().set_len(kind.megabytes() << 20).unwrap();
    run(Command::new(format!("mkfs.{}", kind.name())).arg(image));
    run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
}

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
