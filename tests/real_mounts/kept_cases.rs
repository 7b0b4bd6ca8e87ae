//! C26 on the kernel: kept copies that mounts show, that are restored beside live ones, and that make room on real disks.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use per_node::adapters::linux::kept_list;
use per_node::adapters::linux::records::SlotRecords;
use per_node::domain::kept::{Kept, ServedTime};
use per_node::domain::time::Wall;
use per_node::domain::trash::TrashId;
use per_node::domain::use_cases::driver::{Brakes, Driver};
use per_node::domain::use_cases::restore::TrashError;
use per_node::ports::copies::Copies;
use per_node::ports::records::Records;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::Case;
use crate::file_system_cases::on_small_ones;
use crate::health_cases::driver_with;
use crate::setting::in_each;
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        in_each("c26_a_kept_copy_outlives_its_mounts_and_has_its_name_again", kept),
        on_small_ones("c26_a_full_disk_empties_the_oldest_kept_copy_and_no_more", |world| full(&world)),
        on_small_ones("c26_a_plugin_that_is_new_to_a_full_disk_starts", |world| new_to_it(&world)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const KEEPS: Brakes = Brakes { trash_for: Some(Duration::from_secs(3600)), sweep_limit: None };
/// What the oldest kept copy is filled with at a time.
const PIECE_BYTES: usize = 64 * 1024;

fn driver(world: &World, brakes: Brakes) -> (Driver, Arc<SlotRecords>) {
    let records = Arc::new(SlotRecords::open(&world.store).unwrap());
    (driver_with(world, records.clone(), brakes), records)
}

/// Removes a copy as a sweep would that keeps it.
fn remove(world: &World, records: &SlotRecords, name: &str, since: u64) -> TrashId {
    let kept = Kept { removed: Wall { unix_ms: 1 }, since: ServedTime { ms: since }, bytes: None };
    let id = world.wait(records.reserve_trash(&handle(name), Some(kept))).unwrap();
    world.wait(world.copies.discard(&handle(name), id)).unwrap();
    id
}

fn entry(world: &World, id: TrashId) -> PathBuf {
    world.path("store/trash").join(id.to_string())
}

fn kept(world: World) {
    let (driver, records) = driver(&world, KEEPS);
    world.copy("h");
    std::fs::write(world.path("store/copies/h/file"), "old").unwrap();
    let first = remove(&world, &records, "h", 0);
    let shown = world.path("elsewhere");
    mount_bind(entry(&world, first), &shown).unwrap();
    assert_eq!(world.wait(driver.empty_one("h")), Err(TrashError::InUse { id: first }));
    world.wait(driver.drain_trash());
    // A new copy of the name stays as it is, empty or not.
    let new = world.copy("h");
    assert_eq!(world.wait(driver.restore("h")), Err(TrashError::Live { handle: handle("h") }));
    assert_eq!(world.wait(world.copies.find(&handle("h"))), Ok(Some(new)));
    let second = remove(&world, &records, "h", 1);
    assert!(matches!(world.wait(driver.restore("h")), Err(TrashError::Several { .. })));
    let (listed, _) = kept_list::read(&world.path("store")).unwrap();
    assert_eq!(listed.iter().map(|copy| copy.id).collect::<Vec<_>>(), [first, second]);
    // Whoever shows it goes on to.
    world.wait(driver.restore(&first.to_string())).unwrap();
    assert_eq!(std::fs::read(world.path("store/copies/h/file")).unwrap(), b"old");
    assert_eq!(std::fs::read(shown.join("file")).unwrap(), b"old");
    unmount(&shown, UnmountFlags::empty()).unwrap();
    drop(driver);
    // Without the flag what is still kept goes, and what is restored stays.
    let driver = driver_with(&world, Arc::new(SlotRecords::open(&world.store).unwrap()), Brakes::default());
    world.wait(driver.drain_trash());
    assert!(!entry(&world, second).exists() && world.path("store/copies/h/file").is_file());
    assert_eq!(kept_list::read(&world.path("store")).unwrap().0, []);
}

/// Writes into a directory until nothing is left.
fn fill(directory: &Path) {
    let mut file = File::create(directory.join("fill")).unwrap();
    for bytes in [PIECE_BYTES, 512, 1] {
        let piece = vec![0xa5; bytes];
        while file.write_all(&piece).is_ok() {}
        let _ = file.sync_all();
    }
}

/// A store that a plugin before C26 has used, and pods have filled since.
fn new_to_it(world: &World) {
    drop(SlotRecords::open(&world.store).unwrap());
    std::fs::remove_file(world.path("store/holds/keeping")).unwrap();
    world.copy("live");
    fill(&world.path("store/copies/live"));
    let (driver, records) = driver(world, KEEPS);
    world.wait(driver.drain_trash());
    assert_eq!(records.kept_trash(), []);
}

fn full(world: &World) {
    let (driver, records) = driver(world, KEEPS);
    for name in ["oldest", "younger", "live"] {
        world.copy(name);
    }
    let oldest = remove(world, &records, "oldest", 0);
    let younger = remove(world, &records, "younger", 1);
    world.wait(driver.make_room());
    assert!(entry(world, oldest).is_dir(), "there is room");
    fill(&entry(world, oldest));
    world.wait(driver.make_room());
    assert!(!entry(world, oldest).exists() && entry(world, younger).is_dir());
    assert!(world.path("store/copies/live").is_dir());
}
