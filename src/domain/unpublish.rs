//! The decision about an unpublish, from one look at the target (C17).

use super::mount_table::TargetView;
use super::target::{KubeletDir, TargetPath};

/// What to do. Whatever it is, the answer is OK once it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnpublishDecision {
    /// Nothing is there.
    Nothing,
    /// Something is there that is not the driver's: it is left alone and logged.
    LeaveAlone(LeftAlone),
    /// A bare, empty target directory, as a reboot leaves it.
    RemoveDirectory,
    /// A mount of the target's stack shows a copy of this store.
    Detach,
}

/// Why a target is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftAlone {
    NotADirectory,
    NotEmpty,
    ForeignMount,
    OutsideKubeletDir,
}

/// Decides.
pub fn decide_unpublish(
    view: &TargetView,
    target: &TargetPath,
    kubelet_dir: &KubeletDir,
) -> UnpublishDecision {
    match view {
        TargetView::Absent => UnpublishDecision::Nothing,
        TargetView::NotADirectory => UnpublishDecision::LeaveAlone(LeftAlone::NotADirectory),
        TargetView::Directory { empty: false } => UnpublishDecision::LeaveAlone(LeftAlone::NotEmpty),
        TargetView::Directory { empty: true } if !target.is_below(kubelet_dir) => {
            UnpublishDecision::LeaveAlone(LeftAlone::OutsideKubeletDir)
        }
        TargetView::Directory { empty: true } => UnpublishDecision::RemoveDirectory,
        TargetView::Mounted(_) if view.any_shown().is_some() => UnpublishDecision::Detach,
        TargetView::Mounted(_) => UnpublishDecision::LeaveAlone(LeftAlone::ForeignMount),
    }
}

#[cfg(test)]
mod tests {
    use super::super::handle::Handle;
    use super::super::mount_options::{AccessTime, MountFlags};
    use super::super::mount_table::{FileIdentity, Layer, MountStack, Place, Shown};
    use super::*;

    fn layer(handle: Option<&str>) -> Layer {
        let shown = handle.map(|handle| Shown {
            place: Place::Copy(Handle::parse(handle).unwrap()),
            at_root: true,
            deleted: false,
        });
        let access_time = AccessTime::Relative;
        let flags = MountFlags {
            read_only: false,
            no_exec: false,
            no_suid: false,
            no_dev: false,
            no_dir_access_time: false,
            access_time,
        };
        Layer { shown, flags }
    }

    fn stack(layers: Vec<Layer>) -> TargetView {
        TargetView::Mounted(MountStack { layers, visible: FileIdentity { device: 1, inode: 1 } })
    }

    #[track_caller]
    fn check(view: TargetView, target: &str, expect: UnpublishDecision) {
        let kubelet = KubeletDir::new("/k".into(), "/k".into());
        let target = TargetPath::from_mount_point(target.into());
        assert_eq!(decide_unpublish(&view, &target, &kubelet), expect);
    }

    #[test]
    fn c17_only_what_shows_a_copy_is_unmounted() {
        check(stack(vec![layer(Some("h"))]), "/k/t", UnpublishDecision::Detach);
        check(stack(vec![layer(Some("h")), layer(None)]), "/k/t", UnpublishDecision::Detach);
        check(stack(vec![layer(Some("h"))]), "/elsewhere", UnpublishDecision::Detach);
        let foreign = UnpublishDecision::LeaveAlone(LeftAlone::ForeignMount);
        check(stack(vec![layer(None), layer(None)]), "/k/t", foreign);
    }

    #[test]
    fn c17_only_a_bare_empty_target_directory_is_removed() {
        check(TargetView::Absent, "/k/t", UnpublishDecision::Nothing);
        check(TargetView::Directory { empty: true }, "/k/t", UnpublishDecision::RemoveDirectory);
        let outside = UnpublishDecision::LeaveAlone(LeftAlone::OutsideKubeletDir);
        check(TargetView::Directory { empty: true }, "/home", outside);
        let not_empty = UnpublishDecision::LeaveAlone(LeftAlone::NotEmpty);
        check(TargetView::Directory { empty: false }, "/k/t", not_empty);
        let file = UnpublishDecision::LeaveAlone(LeftAlone::NotADirectory);
        check(TargetView::NotADirectory, "/k/t", file);
    }
}
