//! The one list of settings that every case runs in: what the store lies on, how it lies there, which newer calls the
//! kernel lacks, and whether root is root. A case's name begins with its setting: `xfs::c15_…`.

use crate::Case;
use crate::file_system::FileSystem;
use crate::kernel::{self, Newer};
use crate::world::World;

/// How the store and the kubelet's directory lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Both in one file system, as on most nodes.
    Together,
    /// The store is a mount of its own, and a shared one.
    StoreMount,
    /// The driver is told of both by symlinks.
    Symlinks,
}

/// What a case runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub file_system: FileSystem,
    pub layout: Layout,
    pub lacks: &'static [Newer],
    /// Whether its root is that of a user namespace.
    pub user_namespace: bool,
}

/// For cases that are about something else.
pub const PLAIN: Setting = on("tmpfs", FileSystem::Tmpfs);
pub const EXT4: Setting = on("ext4", FileSystem::Ext4);
/// The same with what the oldest kernel has.
pub const OLDEST: Setting = PLAIN.named("tmpfs_oldest").without(&Newer::ALL);

const STAGED: &[Newer] = &[Newer::MountSetAttr, Newer::OpenTree, Newer::MoveMount];
const TABLED: &[Newer] = &[Newer::MountEvents, Newer::ListMount, Newer::StatMount];

const ALL: &[Setting] = &[
    PLAIN,
    EXT4,
    on("xfs", FileSystem::Xfs),
    on("btrfs", FileSystem::Btrfs),
    on("overlay", FileSystem::Overlay),
    OLDEST,
    on("ext4_oldest", FileSystem::Ext4).without(&Newer::ALL),
    on("xfs_oldest", FileSystem::Xfs).without(&Newer::ALL),
    on("btrfs_oldest", FileSystem::Btrfs).without(&Newer::ALL),
    on("overlay_oldest", FileSystem::Overlay).without(&Newer::ALL),
    on("ext4_mount", FileSystem::Ext4).lying(Layout::StoreMount),
    on("btrfs_mount", FileSystem::Btrfs).lying(Layout::StoreMount),
    on("tmpfs_mount_oldest", FileSystem::Tmpfs).lying(Layout::StoreMount).without(&Newer::ALL),
    on("xfs_symlinks", FileSystem::Xfs).lying(Layout::Symlinks),
    on("overlay_symlinks_oldest", FileSystem::Overlay).lying(Layout::Symlinks).without(&Newer::ALL),
    on("without_mount_events", FileSystem::Ext4).without(&[Newer::MountEvents]),
    on("without_listmount", FileSystem::Xfs).without(&[Newer::ListMount]),
    on("without_statmount", FileSystem::Btrfs).without(&[Newer::StatMount]),
    on("without_mount_setattr", FileSystem::Overlay).without(&[Newer::MountSetAttr]),
    on("without_open_tree", FileSystem::Tmpfs).without(&[Newer::OpenTree]),
    on("without_move_mount", FileSystem::Ext4).without(&[Newer::MoveMount]),
    on("without_renames", FileSystem::Btrfs).without(&[Newer::Renames]),
    on("staged", FileSystem::Xfs).without(STAGED),
    on("tabled", FileSystem::Btrfs).without(TABLED),
    PLAIN.named("userns_tmpfs").in_user_namespace(),
    on("userns_ext4", FileSystem::Ext4).in_user_namespace(),
    on("userns_xfs", FileSystem::Xfs).in_user_namespace(),
    on("userns_btrfs", FileSystem::Btrfs).in_user_namespace(),
    on("userns_overlay", FileSystem::Overlay).in_user_namespace(),
    PLAIN.named("userns_tmpfs_oldest").without(&Newer::ALL).in_user_namespace(),
];

const fn on(name: &'static str, file_system: FileSystem) -> Setting {
    Setting { name, file_system, layout: Layout::Together, lacks: &[], user_namespace: false }
}

impl Setting {
    const fn named(self, name: &'static str) -> Setting {
        Setting { name, ..self }
    }

    pub const fn without(self, lacks: &'static [Newer]) -> Setting {
        Setting { lacks, ..self }
    }

    const fn lying(self, layout: Layout) -> Setting {
        Setting { layout, ..self }
    }

    const fn in_user_namespace(self) -> Setting {
        Setting { user_namespace: true, ..self }
    }

    /// Whether nothing about it is special but its file system.
    pub fn is_plain(&self) -> bool {
        self.layout == Layout::Together && self.lacks.is_empty() && !self.user_namespace
    }

    /// Whether the kernel forbids this root to change how access times are kept: it does so on every mount that was made
    /// outside of its namespace.
    pub fn has_locked_times(&self) -> bool {
        self.user_namespace && self.file_system != FileSystem::Tmpfs
    }
}

/// The case in this setting.
pub fn in_one(setting: Setting, name: &str, case: impl FnOnce(World) + Send + 'static) -> Case {
    let run = move || kernel::run_without(setting.lacks.to_vec(), move || case(World::new(setting)));
    Case::new(format!("{}::{name}", setting.name), run).of(setting)
}

/// Every setting.
pub fn each() -> impl Iterator<Item = Setting> {
    ALL.iter().copied()
}

/// The case in every setting.
pub fn in_each(name: &str, case: impl Fn(World) + Copy + Send + 'static) -> Vec<Case> {
    each().map(|setting| in_one(setting, name, case)).collect()
}

/// The case on each file system: for what only root can do, and for what asks much of the file system and little else.
pub fn on_each_file_system(name: &str, case: impl Fn(World) + Copy + Send + 'static) -> Vec<Case> {
    each().filter(Setting::is_plain).map(|setting| in_one(setting, name, case).needs_root()).collect()
}

/// The case where root is that of a user namespace.
pub fn in_user_namespaces(name: &str, case: fn(World)) -> Vec<Case> {
    each().filter(|setting| setting.user_namespace).map(|setting| in_one(setting, name, case)).collect()
}

/// The case on the newest kernel and on the oldest: for long ones about the mount table.
pub fn on_both_kernels(name: &str, case: impl Fn(World) + Copy + Send + 'static) -> Vec<Case> {
    [PLAIN, OLDEST].map(|setting| in_one(setting, name, case)).into()
}
