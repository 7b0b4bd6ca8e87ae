//! The kept copies of a store as a tool sees them that only reads: without the lock, whether or not a process serves the
//! store, and without changing anything in it (C26, C40).

use std::collections::BTreeSet;
use std::path::Path;

use super::copies::entries;
use super::failure::Outcome;
use super::records::SlotRecords;
use super::store::StoreDirs;
use crate::domain::kept::{Keeping, KeptCopy, oldest_first};
use crate::domain::trash::TrashId;
use crate::ports::records::Records;

/// What is kept, the oldest first, and how: `None` where nothing ever was.
pub fn read(store: &Path) -> Outcome<(Vec<KeptCopy>, Option<Keeping>)> {
    let store = StoreDirs::look(store)?;
    let records = SlotRecords::look(&store)?;
    // After the records: what is kept is on record before it is in the trash, and a copy that is restored meanwhile is not.
    let names = entries(store.trash())?;
    let there: BTreeSet<TrashId> =
        names.iter().filter_map(|(name, _)| TrashId::parse(name.to_str().ok()?)).collect();
    let kept = records.kept_trash().into_iter().filter(|copy| there.contains(&copy.id)).collect();
    Ok((oldest_first(kept), records.keeping()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::handle::Handle;
    use crate::domain::kept::{Kept, ServedTime};
    use crate::domain::time::Wall;

    #[tokio::test]
    async fn c26_what_is_kept_is_read_beside_the_process_that_serves_and_without_one() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(read(scratch.path()).is_err(), "a directory that is no store");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "and stays as it is");
        let records = SlotRecords::open(&StoreDirs::open(scratch.path()).unwrap()).unwrap();
        let handle = Handle::parse("a").unwrap();
        let kept =
            |since| Kept { removed: Wall { unix_ms: 5 }, since: ServedTime { ms: since }, bytes: Some(7) };
        let younger = records.reserve_trash(&handle, Some(kept(2))).await.unwrap();
        let older = records.reserve_trash(&handle, Some(kept(1))).await.unwrap();
        let _never_moved = records.reserve_trash(&handle, Some(kept(0))).await.unwrap();
        let going = records.reserve_trash(&handle, None).await.unwrap();
        for id in [younger, older, going] {
            std::fs::create_dir(scratch.path().join("trash").join(id.to_string())).unwrap();
        }
        let keeping = Keeping { served: ServedTime { ms: 9 }, trash_for: None };
        records.put_keeping(keeping).await.unwrap();
        let expect = [(older, 1), (younger, 2)].map(|(id, since)| KeptCopy {
            id,
            handle: handle.clone(),
            kept: kept(since),
        });
        assert_eq!(read(scratch.path()).unwrap(), (expect.to_vec(), Some(keeping)));
        drop(records);
        assert_eq!(read(scratch.path()).unwrap(), (expect.to_vec(), Some(keeping)));
    }
}
