//! The file systems that a store is tried on, and how each is made of nothing. Only root may mount those that lie on a
//! disk, which is a file here.

use std::path::Path;
use std::process::Command;

/// What a store lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    Tmpfs,
    Ext4,
    Xfs,
    Btrfs,
    /// With its upper layer on ext4.
    Overlay,
}

impl FileSystem {
    pub const ALL: [FileSystem; 5] =
        [FileSystem::Tmpfs, FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs, FileSystem::Overlay];

    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Tmpfs => "tmpfs",
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
            FileSystem::Overlay => "overlay",
        }
    }

    /// The command that makes one in the directory `room`, which must be empty, and mounts it at `at`. `size` is in the
    /// words of truncate(1). The loop device goes with the mount.
    pub fn mount_new(self, room: &Path, at: &Path, size: &str) -> Command {
        let mut command = Command::new("sh");
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.args(["-euc", MOUNT_NEW, "sh", self.name(), size]).arg(room).arg(at);
        command
    }
}

const MOUNT_NEW: &str = r#"
disk() {
  truncate -s "$2" "$3/image"
  "mkfs.$1" -q "$3/image"
  mount -o loop "$3/image" "$4"
}
case $1 in
  tmpfs) mount -t tmpfs -o "mode=0755,size=$2" scratch "$4" ;;
  overlay)
    mkdir "$3/disk"
    disk ext4 "$2" "$3" "$3/disk"
    mkdir "$3/disk/lower" "$3/disk/upper" "$3/disk/work"
    layers="lowerdir=$3/disk/lower,upperdir=$3/disk/upper,workdir=$3/disk/work"
    mount -t overlay -o "$layers,redirect_dir=off" overlay "$4"
    ;;
  *) disk "$@" ;;
esac
"#;
