//! Everything that the double's store remembers, in memory and in one file that is written anew at each change.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::replace_file;
use crate::domain::event_series::Series;
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::{Keeping, Kept};
use crate::domain::proof::{History, Marker};
use crate::domain::trash::{CopyMark, TrashId};

/// How many records of one kind are kept at most.
pub const RECORDS_MAX: usize = 100_000;

/// The records and where they are kept.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    records: AllRecords,
}

/// The records as the file has them: a list of each kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllRecords {
    pub targets: Vec<TargetRecord>,
    pub trash: BTreeMap<TrashId, Handle>,
    /// The highest trash id ever reserved.
    pub last_trash: u64,
    pub kept: BTreeMap<TrashId, Kept>,
    pub keeping: Option<Keeping>,
    pub condemned: BTreeMap<Handle, CopyMark>,
    pub series: Vec<Series>,
    pub history: Option<History>,
    pub marker: Option<Marker>,
}

impl RecordFile {
    /// Reads the records. A torn or foreign file is put aside and nothing is known then: the mounts are the truth
    /// (C15), and without a marker nothing is swept (C22). `last_trash` is the highest id found in the trash.
    pub fn load(path: PathBuf, last_trash: u64) -> io::Result<RecordFile> {
        let mut records = match std::fs::read(&path) {
            Ok(text) => match serde_json::from_slice::<AllRecords>(&text) {
                Ok(records) => records,
                Err(error) => {
                    let aside = path.with_extension("unreadable");
                    std::fs::rename(&path, &aside)?;
                    tracing::warn!(aside = %aside.display(), %error, "records cannot be read; they are put aside");
                    AllRecords::default()
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => AllRecords::default(),
            Err(error) => return Err(error),
        };
        records.last_trash = records.last_trash.max(last_trash);
        Ok(RecordFile { path, records })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn all(&self) -> &AllRecords {
        &self.records
    }

    /// Changes the records in the file and then in memory; on an error both are as they were.
    pub fn change(&mut self, durable: bool, change: impl FnOnce(&mut AllRecords)) -> io::Result<()> {
        let mut records = self.records.clone();
        change(&mut records);
        if records == self.records {
            return Ok(());
        }
        if records.targets.len().max(records.trash.len()).max(records.series.len()) > RECORDS_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        replace_file(&self.path, &serde_json::to_vec_pretty(&records)?, durable)?;
        self.records = records;
        Ok(())
    }
}
