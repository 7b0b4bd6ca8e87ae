//! The canary: trees outside of the hostile copy, and another pod's copy, of which nothing may change.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use crate::world::World;

/// What is known of an entry: type and mode, owner, group, time of the last change of its contents, and the contents.
type Known = (u32, u32, u32, i64, i64, Vec<u8>);

/// What there was when it was set out.
pub struct Canary {
    roots: [PathBuf; 2],
    known: BTreeMap<PathBuf, Known>,
}

impl Canary {
    /// Makes the trees.
    pub fn make(world: &World) -> Canary {
        world.copy("other");
        let roots = [world.path("elsewhere"), world.path("store/copies/other")];
        for root in &roots {
            std::fs::create_dir_all(root.join("tree/closed/deep")).unwrap();
            std::fs::write(root.join("tree/file"), "every byte").unwrap();
            std::fs::write(root.join("tree/closed/deep/file"), vec![7; 10_000]).unwrap();
            symlink("file", root.join("tree/link")).unwrap();
            let closed = std::fs::Permissions::from_mode(0o500);
            std::fs::set_permissions(root.join("tree/closed/deep"), closed).unwrap();
        }
        let mut canary = Canary { roots, known: BTreeMap::new() };
        canary.known = canary.read();
        canary
    }

    /// The directory that symlinks and links of the hostile copy lead to.
    pub fn tree(&self) -> PathBuf {
        self.roots[0].join("tree")
    }

    #[track_caller]
    pub fn is_untouched(&self) {
        let now = self.read();
        let changed: Vec<&PathBuf> = self
            .known
            .iter()
            .filter(|(path, known)| now.get(*path) != Some(known))
            .map(|(path, _)| path)
            .collect();
        assert!(changed.is_empty() && now.len() == self.known.len(), "touched: {changed:?}");
    }

    fn read(&self) -> BTreeMap<PathBuf, Known> {
        let mut known = BTreeMap::new();
        let mut open: Vec<PathBuf> = self.roots.to_vec();
        while let Some(path) = open.pop() {
            let found = std::fs::symlink_metadata(&path).unwrap();
            let contents = if found.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            } else if found.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let (time, time_ns) = (found.mtime(), found.mtime_nsec());
            known.insert(path, (found.mode(), found.uid(), found.gid(), time, time_ns, contents));
        }
        known
    }
}
