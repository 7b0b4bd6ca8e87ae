//! Measuring a copy: a walk that follows no symlink, and the numbers of the latest one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::domain::handle::Handle;
use crate::ports::copies::{Counted, Measured, Usage};

/// How many files one walk counts before it answers with what it has (C46).
pub const MEASURED_FILES_MAX: u64 = 200_000;
/// The unit of a file's block count, in bytes.
const BLOCK_BYTES: u64 = 512;

/// What the latest walk counted for each copy.
#[derive(Debug, Default)]
pub struct Walks(BTreeMap<Handle, (Usage, Instant)>);

/// Counts blocks and inodes, each inode once; what cannot be read is not counted.
pub fn measure_tree(root: &Path) -> io::Result<Usage> {
    let mut usage = Usage { complete: true, ..Usage::default() };
    let mut seen = BTreeSet::new();
    let metadata = std::fs::symlink_metadata(root)?;
    usage.count(&metadata, &mut seen);
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if usage.used_inodes >= MEASURED_FILES_MAX {
                usage.complete = false;
                return Ok(usage);
            }
            let Ok(metadata) = entry.metadata() else { continue };
            usage.count(&metadata, &mut seen);
            if metadata.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(usage)
}

impl Usage {
    fn count(&mut self, metadata: &std::fs::Metadata, seen: &mut BTreeSet<(u64, u64)>) {
        let is_known =
            metadata.nlink() > 1 && !metadata.is_dir() && !seen.insert((metadata.dev(), metadata.ino()));
        if !is_known {
            self.used_inodes += 1;
            self.used_bytes += metadata.blocks() * BLOCK_BYTES;
        }
    }
}

impl Walks {
    pub fn put(&mut self, handle: &Handle, usage: Usage) {
        self.0.insert(handle.clone(), (usage, Instant::now()));
    }

    pub fn forget(&mut self, handle: &Handle) {
        self.0.remove(handle);
    }

    pub fn of(&self, handle: &Handle) -> Option<Measured> {
        self.0.get(handle).map(|(usage, ended)| Measured { usage: *usage, ago: ended.elapsed() })
    }

    pub fn sum(&self) -> Counted {
        Counted {
            copies: self.0.len() as u64,
            bytes: self.0.values().map(|(usage, _)| usage.used_bytes).sum(),
            unfinished: self.0.values().filter(|(usage, _)| !usage.complete).count() as u64,
        }
    }
}
