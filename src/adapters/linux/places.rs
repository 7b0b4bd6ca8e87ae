//! Which place of the store a mount shows: the rule of C15, pure.
//!
//! A mount shows a place when it has the store's device and its root lies at or below an entry of `copies/` or
//! `trash/`. Paths are compared by whole components, as bytes; nothing here looks at a mount point, because what a
//! mount shows does not depend on where it is.

use std::collections::BTreeSet;

use crate::domain::handle::Handle;
use crate::domain::mount_table::{Place as DomainPlace, Shown};
use crate::domain::trash::TrashId;

/// What the kernel appends to the root of a mount whose directory is gone.
const DELETED_MARK: &[u8] = b"//deleted";

/// The two directories of the store whose entries mounts show, as the roots of mounts name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRoots {
    pub device: (u32, u32),
    pub copies: Vec<u8>,
    pub trash: Vec<u8>,
    /// `copies/` as this process reaches it: mount points right below it are covers.
    pub copies_path: Vec<u8>,
    /// Copies whose root is a mount point of its own.
    pub covers: Vec<Cover>,
}

/// A mount right on an entry of `copies/` (an operator's disk, say): whoever publishes that copy shows this mount's
/// root, which lies elsewhere, maybe on another device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    pub device: (u32, u32),
    pub root: Vec<u8>,
    /// The entry of `copies/`.
    pub name: Vec<u8>,
}

/// Which of the two directories an entry lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Copies,
    Trash,
}

/// An entry of the store that a mount shows, or shows something below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub area: Area,
    /// The name of the entry: the handle in `copies/`, the short id in `trash/`, or whatever a stranger is called.
    pub name: Vec<u8>,
    /// The mount shows a directory or file below the entry (a subPath bind, say).
    pub below: bool,
    /// What the mount shows was removed since.
    pub deleted: bool,
}

impl StoreRoots {
    /// The place that a mount of `device` with the root `root` shows; `None` when it shows none of the store.
    pub fn place_of(&self, device: (u32, u32), root: &[u8]) -> Option<Place> {
        let (live, deleted) = match root.strip_suffix(DELETED_MARK) {
            Some(live) => (live, true),
            None => (root, false),
        };
        self.entry_of(device, live)
            .or_else(|| self.covered_by(device, live))
            .map(|(area, name, below)| Place { area, name, below, deleted })
    }

    fn entry_of(&self, device: (u32, u32), root: &[u8]) -> Option<(Area, Vec<u8>, bool)> {
        if device != self.device {
            return None;
        }
        [(Area::Copies, &self.copies), (Area::Trash, &self.trash)].into_iter().find_map(
            |(area, directory)| {
                let mut components = below(directory, root)?.splitn(2, |&byte| byte == b'/');
                let name = components.next().filter(|name| !name.is_empty())?.to_vec();
                Some((area, name, components.next().is_some()))
            },
        )
    }

    fn covered_by(&self, device: (u32, u32), root: &[u8]) -> Option<(Area, Vec<u8>, bool)> {
        self.covers.iter().filter(|cover| cover.device == device).find_map(|cover| {
            let at_root = root == cover.root;
            (at_root || below(&cover.root, root).is_some())
                .then(|| (Area::Copies, cover.name.clone(), !at_root))
        })
    }
}

impl Place {
    /// The place in the domain's words; `None` for a stranger's (C25), which is no copy.
    pub fn shown(&self) -> Option<Shown> {
        let name = std::str::from_utf8(&self.name).ok()?;
        let place = match self.area {
            Area::Copies => DomainPlace::Copy(Handle::parse(name).ok()?),
            Area::Trash => DomainPlace::Trash(TrashId::parse(name)?),
        };
        Some(Shown { place, at_root: !self.below, deleted: self.deleted })
    }

    /// What [`Shown::belongs_to`] says of it, for whoever asks of thousands: nearly all are told by their name alone.
    pub fn belongs_to(&self, handle: &Handle, trashed: &BTreeSet<TrashId>) -> bool {
        let may_belong = match self.area {
            Area::Copies => self.name == handle.as_str().as_bytes(),
            Area::Trash => !trashed.is_empty(),
        };
        may_belong && self.shown().is_some_and(|shown| shown.belongs_to(handle, trashed))
    }
}

/// The rest of `path` below `directory`, without a leading slash; `None` where it lies elsewhere or is `directory`.
pub fn below<'a>(directory: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(directory.strip_suffix(b"/").unwrap_or(directory))?;
    rest.strip_prefix(b"/").filter(|rest| !rest.is_empty())
}

/// `directory` with `rest` (no leading slash, may be empty) below it.
pub fn joined(directory: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut path = directory.strip_suffix(b"/").unwrap_or(directory).to_vec();
    if !rest.is_empty() || path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(rest);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn roots() -> StoreRoots {
        StoreRoots {
            device: (8, 1),
            copies: b"/s/copies".to_vec(),
            trash: b"/s/trash".to_vec(),
            copies_path: b"/store/copies".to_vec(),
            covers: Vec::new(),
        }
    }

    fn shown(root: &str) -> Option<(Area, String, bool, bool)> {
        roots()
            .place_of((8, 1), root.as_bytes())
            .map(|place| (place.area, String::from_utf8(place.name).unwrap(), place.below, place.deleted))
    }

    #[test]
    fn c15_a_mount_at_or_below_a_copy_shows_it() {
        assert_eq!(shown("/s/copies/a"), Some((Area::Copies, "a".into(), false, false)));
        assert_eq!(shown("/s/copies/a/sub/dir"), Some((Area::Copies, "a".into(), true, false)));
    }

    #[test]
    fn c15_whole_components_are_compared() {
        assert_eq!(shown("/s/copies/a.b"), Some((Area::Copies, "a.b".into(), false, false)));
        assert_eq!(shown("/s/copies2/a"), None);
        assert_eq!(shown("/s/copiesa"), None);
        assert_eq!(shown("/t/s/copies/a"), None);
    }

    #[test]
    fn c15_a_copy_in_the_trash_or_deleted_is_still_shown() {
        assert_eq!(shown("/s/trash/x1"), Some((Area::Trash, "x1".into(), false, false)));
        assert_eq!(shown("/s/trash/x1//deleted"), Some((Area::Trash, "x1".into(), false, true)));
        assert_eq!(shown("/s/copies/a/sub//deleted"), Some((Area::Copies, "a".into(), true, true)));
    }

    #[test]
    fn the_store_itself_and_what_is_above_it_show_no_copy() {
        for root in ["/", "/s", "/s/copies", "/s/trash", "/s/copies//deleted", "/s/copies/", ""] {
            assert_eq!(shown(root), None, "{root}");
        }
    }

    #[test]
    fn c15_another_device_shows_nothing_whatever_its_root() {
        assert_eq!(roots().place_of((8, 2), b"/s/copies/a"), None);
        assert_eq!(roots().place_of((9, 1), b"/s/copies/a"), None);
    }

    #[test]
    fn a_store_that_is_the_root_of_its_file_system_is_no_special_case() {
        let roots = StoreRoots { copies: b"/copies".to_vec(), trash: b"/trash".to_vec(), ..roots() };
        assert_eq!(roots.place_of((8, 1), b"/copies/a").unwrap().name, b"a");
        assert_eq!(joined(b"/", b"copies"), b"/copies");
        assert_eq!(joined(b"/", b""), b"/");
        assert_eq!(joined(b"/r", b""), b"/r");
        assert_eq!(joined(b"/r", b"a/b"), b"/r/a/b");
        assert_eq!(below(b"/", b"/a/b"), Some(&b"a/b"[..]));
        assert_eq!(below(b"/", b"/"), None);
    }

    #[test]
    fn c23_a_copy_whose_root_is_a_mount_is_shown_by_whatever_shows_that_mount() {
        let cover = Cover { device: (9, 1), root: b"/disk".to_vec(), name: b"a".to_vec() };
        let roots = StoreRoots { covers: vec![cover], ..roots() };
        let place =
            |root: &[u8]| roots.place_of((9, 1), root).map(|place| (place.name, place.below, place.deleted));
        assert_eq!(place(b"/disk"), Some((b"a".to_vec(), false, false)));
        assert_eq!(place(b"/disk/sub//deleted"), Some((b"a".to_vec(), true, true)));
        assert_eq!(place(b"/disk2"), None);
        assert_eq!(place(b"/"), None);
        assert_eq!(roots.place_of((9, 2), b"/disk"), None);
    }

    #[test]
    fn c25_what_a_stranger_shows_is_no_copy() {
        let shown = |root: &[u8]| roots().place_of((8, 1), root).unwrap().shown();
        assert!(shown(b"/s/copies/a").is_some() && shown(b"/s/trash/t1").is_some());
        for stranger in [&b"/s/copies/A"[..], b"/s/copies/\xff", b"/s/trash/x", b"/s/trash/n1"] {
            assert_eq!(shown(stranger), None);
        }
    }

    #[test]
    fn c15_a_place_belongs_to_the_handle_of_its_name_and_of_its_trash() {
        let handle = Handle::parse("a").unwrap();
        let belongs = |root: &[u8], trashed: &[u64]| {
            let place = roots().place_of((8, 1), root).unwrap();
            let trashed = trashed.iter().copied().map(TrashId).collect();
            let answer = place.belongs_to(&handle, &trashed);
            let of_domain = place.shown().is_some_and(|shown| shown.belongs_to(&handle, &trashed));
            assert_eq!(answer, of_domain);
            answer
        };
        assert!(belongs(b"/s/copies/a", &[]) && belongs(b"/s/copies/a/b//deleted", &[1]));
        assert!(belongs(b"/s/trash/t1", &[1, 2]) && belongs(b"/s/trash/t2/a", &[1, 2]));
        assert!(!belongs(b"/s/copies/b", &[1]) && !belongs(b"/s/trash/t1", &[]));
        assert!(!belongs(b"/s/trash/t3", &[1]) && !belongs(b"/s/trash/a", &[1]));
    }

    proptest! {
        #[test]
        fn c15_what_was_joined_below_a_copy_is_found_again(
            name in "[^/]{1,20}", rest in "([^/]{1,8}/){0,3}[^/]{0,8}", deleted: bool,
        ) {
            prop_assume!(!rest.ends_with('/'));
            let mut root = joined(b"/s/copies", name.as_bytes());
            if !rest.is_empty() {
                root = joined(&root, rest.as_bytes());
            }
            if deleted {
                root.extend_from_slice(DELETED_MARK);
            }
            let place = roots().place_of((8, 1), &root).unwrap();
            prop_assert_eq!(place, Place {
                area: Area::Copies, name: name.into_bytes(), below: !rest.is_empty(), deleted,
            });
        }
    }
}
