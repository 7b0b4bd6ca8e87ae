//! The table of mounts: what each target shows, in a file of the store. It keeps what a symlink cannot say: the
//! flags, and which directory was mounted (the kernel shows that one, even when another took its name since).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{COPIES, TRASH, identity_of, replace_file};
use crate::domain::handle::Handle;
use crate::domain::mount_options::MountFlags;
use crate::domain::mount_table::{FileIdentity, Place, Shown};
use crate::domain::trash::TrashId;

/// How many targets the table holds at most; the kernel's own limit for one namespace.
pub const TARGETS_MAX: usize = 100_000;

/// All mounts, by target; those on one target lowest first.
#[derive(Debug)]
pub struct MountFile {
    path: PathBuf,
    targets: BTreeMap<PathBuf, Vec<Attached>>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// What it shows, as a path in the store: `copies/HANDLE` or `trash/ID`.
    pub place: String,
    pub identity: FileIdentity,
    pub flags: MountFlags,
}

impl MountFile {
    /// Reads the table. A file that cannot be understood is one that this program did not write: it is an error,
    /// for without it nobody knows what is mounted.
    pub fn load(path: PathBuf) -> io::Result<MountFile> {
        let targets = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(MountFile { path, targets })
    }

    /// The mounts that are still on a target, lowest first; none where its symlink is gone or leads elsewhere.
    pub fn on(&self, store: &Path, target: &Path) -> &[Attached] {
        let Some(layers) = self.targets.get(target) else { return &[] };
        let Some(top) = layers.last() else { return &[] };
        match std::fs::read_link(target) {
            Ok(leads_to) if leads_to == store.join(&top.place) => layers,
            Ok(_) | Err(_) => &[],
        }
    }

    /// Every target that carries a mount.
    pub fn live<'a>(&'a self, store: &'a Path) -> impl Iterator<Item = (&'a Path, &'a [Attached])> {
        let targets = self.targets.keys().map(PathBuf::as_path);
        targets.map(|target| (target, self.on(store, target))).filter(|(_, layers)| !layers.is_empty())
    }

    /// The nearest target above `path` that carries a mount.
    pub fn above<'a>(&self, store: &Path, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().skip(1).find(|above| !self.on(store, above).is_empty())
    }

    /// Puts these mounts on a target in place of what the table says of it, and writes the table.
    pub fn set(&mut self, target: &Path, layers: Vec<Attached>) -> io::Result<()> {
        if layers.is_empty() {
            self.targets.remove(target);
        } else {
            if self.targets.len() >= TARGETS_MAX && !self.targets.contains_key(target) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            self.targets.insert(target.to_owned(), layers);
        }
        self.save()
    }

    /// Writes the table without the targets that carry nothing any more.
    fn save(&self) -> io::Result<()> {
        replace_file(&self.path, &serde_json::to_vec_pretty(&self.targets)?, false)
    }
}

impl Attached {
    /// What it shows now.
    pub fn shown(&self, store: &Path) -> Option<Shown> {
        let place = match self.place.split_once('/')? {
            (COPIES, name) => Place::Copy(Handle::parse(name).ok()?),
            (TRASH, name) => Place::Trash(TrashId::parse(name)?),
            _ => return None,
        };
        let there = std::fs::symlink_metadata(store.join(&self.place));
        let deleted = !there.is_ok_and(|metadata| identity_of(&metadata) == self.identity);
        Some(Shown { place, at_root: true, deleted })
    }
}

/// A place in the store as the table spells it.
pub fn spelled(place: &Place) -> String {
    match place {
        Place::Copy(handle) => format!("{COPIES}/{handle}"),
        Place::Trash(id) => format!("{TRASH}/{id}"),
    }
}
