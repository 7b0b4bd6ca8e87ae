//! What every adapter of `Copies` does.

use per_node::domain::mount_table::{FileIdentity, Place, TargetView};
use per_node::domain::trash::TrashId;
use per_node::domain::volume_request::Gid;
use per_node::ports::copies::{Capacity, CopiesError, Deletion};

use super::{Bench, COPY_MODE, ContractCase, handle};

pub fn cases<B: Bench>() -> Vec<ContractCase<B>> {
    vec![
        ("c01_a_copy_is_made_once_and_found_again", making),
        ("c06_a_new_copy_has_exactly_the_mode_that_was_configured", exact_mode),
        ("c25_what_is_no_directory_is_no_copy", strangers_in_the_way),
        ("c16_only_the_empty_copy_that_was_made_is_unmade", unmaking),
        ("c07_a_group_is_given_to_the_root_of_a_copy", group),
        ("c25_copies_are_listed_in_order_and_strangers_apart", listing),
        ("c23_a_discarded_copy_leaves_its_name_to_a_new_one", discarding),
        ("c26_what_is_in_the_trash_has_its_name_again_and_takes_nobodys", restoring),
        ("c23_what_is_in_the_trash_is_deleted_whole", deleting),
        ("c23_a_copy_is_deleted_in_place", in_place),
        ("c23_a_mark_tells_a_copy_from_every_later_one", marks),
        ("c46_a_copy_takes_up_its_files_and_itself", usage),
        ("c46_the_file_system_has_room", capacity),
        ("c49_a_copy_is_examined_under_its_name", examining),
        ("c49_a_copy_that_was_moved_away_is_not_the_one_under_its_name", moved_away),
        ("c40_copies_and_trash_outlive_the_process", restart),
    ]
}

fn making<B: Bench>(bench: &mut B) {
    let copies = bench.copies();
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(None));
    let first = bench.wait(copies.ensure(&handle("h"))).expect("made");
    assert!(first.made);
    bench.write_into_copy(&handle("h"), "file", b"kept");
    let second = bench.wait(copies.ensure(&handle("h"))).expect("found");
    assert_eq!((second.made, second.identity), (false, first.identity));
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(Some(first.identity)));
    let long = "a".repeat(253);
    assert!(bench.wait(copies.ensure(&handle(&long))).expect("the longest handle is a name, too").made);
}

fn exact_mode<B: Bench>(bench: &mut B) {
    bench.copy("h");
    assert_eq!(bench.mode_and_group(&handle("h")).0, COPY_MODE);
}

fn strangers_in_the_way<B: Bench>(bench: &mut B) {
    bench.put_stranger_file("file");
    bench.put_stranger_symlink("link");
    for name in ["file", "link"] {
        let copies = bench.copies();
        let found = bench.wait(copies.find(&handle(name)));
        assert!(matches!(found, Err(CopiesError::NotADirectory(_))), "{name}: {found:?}");
        let made = bench.wait(copies.ensure(&handle(name)));
        assert!(matches!(made, Err(CopiesError::NotADirectory(_))), "{name}: {made:?}");
        bench.wait(copies.discard(&handle(name), TrashId(1))).expect_err("no copy is there");
    }
    assert_eq!(bench.wait(bench.copies().list()).expect("listed").strangers, ["file", "link"]);
    assert_eq!(bench.wait(bench.copies().trash()), Ok(vec![]));
}

fn unmaking<B: Bench>(bench: &mut B) {
    let identity = bench.copy("h");
    let copies = bench.copies();
    let is_there = |bench: &B| bench.wait(bench.copies().find(&handle("h"))) == Ok(Some(identity));
    let other = FileIdentity { inode: identity.inode + 1, ..identity };
    bench.wait(copies.unmake(&handle("h"), other)).expect("another copy is left");
    assert!(is_there(bench));
    bench.write_into_copy(&handle("full"), "file", b"x");
    let full = bench.copy("full");
    bench.wait(copies.unmake(&handle("full"), full)).expect("a copy with data is left");
    assert_eq!(bench.wait(copies.find(&handle("full"))), Ok(Some(full)));
    bench.wait(copies.unmake(&handle("h"), identity)).expect("unmade");
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(None));
    bench.wait(copies.unmake(&handle("h"), identity)).expect("nothing to do");
    bench.put_stranger_file("stranger");
    bench.wait(copies.unmake(&handle("stranger"), identity)).expect("a stranger is left");
}

fn group<B: Bench>(bench: &mut B) {
    let missing = bench.wait(bench.copies().set_group(&handle("h"), Gid(bench.group())));
    assert!(matches!(missing, Err(CopiesError::Missing(_))), "{missing:?}");
    bench.copy("h");
    for _ in 0..2 {
        bench.wait(bench.copies().set_group(&handle("h"), Gid(bench.group()))).expect("given");
        assert_eq!(bench.mode_and_group(&handle("h")), (COPY_MODE | 0o2070, bench.group()));
    }
    bench.copy("h");
    assert_eq!(bench.mode_and_group(&handle("h")).0, COPY_MODE | 0o2070, "a later publish changes nothing");
}

fn listing<B: Bench>(bench: &mut B) {
    // Neither the order of their making nor its reverse is the one to be told.
    for name in ["a.b", "b", "a"] {
        bench.copy(name);
    }
    bench.put_stranger_file("Readme");
    bench.put_stranger_symlink("c");
    let listing = bench.wait(bench.copies().list()).expect("listed");
    assert_eq!(listing.handles, [handle("a"), handle("a.b"), handle("b")]);
    assert_eq!(listing.strangers, ["Readme", "c"]);
}

fn discarding<B: Bench>(bench: &mut B) {
    let copies = bench.copies();
    let missing = bench.wait(copies.discard(&handle("h"), TrashId(1)));
    assert!(matches!(missing, Err(CopiesError::Missing(_))), "{missing:?}");
    let old = bench.copy("h");
    bench.wait(copies.discard(&handle("h"), TrashId(9))).expect("discarded");
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(None));
    let new = bench.wait(copies.ensure(&handle("h"))).expect("made anew");
    assert!(new.made && new.identity != old);
    bench.wait(copies.discard(&handle("h"), TrashId(10))).expect("discarded");
    assert_eq!(bench.wait(copies.trash()), Ok(vec![TrashId(9), TrashId(10)]));
}

fn restoring<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    bench.write(target.as_path(), "file", b"kept");
    let old = bench.copy("h");
    let copies = bench.copies();
    bench.wait(copies.discard(&handle("h"), TrashId(9))).expect("discarded");
    let missing = bench.wait(copies.restore(TrashId(8), &handle("h")));
    assert!(matches!(missing, Err(CopiesError::Missing(_))), "{missing:?}");
    bench.put_stranger_file("file");
    bench.put_stranger_symlink("link");
    let new = bench.copy("empty");
    for name in ["empty", "file", "link"] {
        let taken = bench.wait(copies.restore(TrashId(9), &handle(name)));
        assert!(matches!(taken, Err(CopiesError::NotADirectory(_))), "{name}: {taken:?}");
    }
    assert_eq!(bench.wait(copies.find(&handle("empty"))), Ok(Some(new)), "an empty copy is a copy");
    assert_eq!(bench.wait(copies.trash()), Ok(vec![TrashId(9)]));
    bench.wait(copies.restore(TrashId(9), &handle("h"))).expect("restored");
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(Some(old)));
    assert_eq!(bench.wait(copies.trash()), Ok(vec![]));
    let shown = bench.look(&target).visible().cloned().expect("what it showed all the time");
    assert_eq!((shown.place, shown.deleted), (Place::Copy(handle("h")), false));
    assert_eq!(bench.read(target.as_path(), "file").as_deref(), Some(&b"kept"[..]));
}

fn deleting<B: Bench>(bench: &mut B) {
    bench.write_into_copy(&handle("h"), "file", b"data");
    let copies = bench.copies();
    bench.wait(copies.discard(&handle("h"), TrashId(1))).expect("discarded");
    assert_eq!(bench.wait(copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert_eq!(bench.wait(copies.trash()), Ok(vec![]));
    assert_eq!(bench.wait(copies.delete(TrashId(1))), Ok(Deletion::Done), "it is gone already");
}

fn in_place<B: Bench>(bench: &mut B) {
    bench.write_into_copy(&handle("h"), "file", b"data");
    let other = bench.copy("other");
    let copies = bench.copies();
    assert_eq!(bench.wait(copies.delete_in_place(&handle("h"))), Ok(Deletion::Done));
    assert_eq!(bench.wait(copies.find(&handle("h"))), Ok(None));
    assert_eq!(bench.wait(copies.find(&handle("other"))), Ok(Some(other)));
    assert_eq!(bench.wait(copies.delete_in_place(&handle("h"))), Ok(Deletion::Done), "it is gone already");
}

fn marks<B: Bench>(bench: &mut B) {
    let copies = bench.copies();
    let mark = |name: &str| bench.wait(copies.mark(&handle(name)));
    assert_eq!(mark("h"), Ok(None));
    bench.copy("h");
    let first = mark("h").expect("told").expect("a copy");
    bench.write_into_copy(&handle("h"), "file", b"data");
    assert_eq!(mark("h"), Ok(Some(first)), "what is written into it does not change it");
    assert_eq!(bench.wait(copies.delete_in_place(&handle("h"))), Ok(Deletion::Done));
    bench.wait(copies.settle()).expect("durable");
    // The kernel's clock for files stands still for some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(20));
    bench.copy("h");
    let later = mark("h").expect("told").expect("a copy");
    assert_ne!(first, later, "whatever inode it has");
    bench.put_stranger_file("file");
    assert!(matches!(mark("file"), Err(CopiesError::NotADirectory(_))));
}

fn usage<B: Bench>(bench: &mut B) {
    let copies = bench.copies();
    let missing = bench.wait(copies.usage(&handle("h")));
    assert!(matches!(missing, Err(CopiesError::Missing(_))), "{missing:?}");
    bench.copy("empty");
    let empty = bench.wait(copies.usage(&handle("empty"))).expect("counted");
    assert_eq!((empty.used_inodes, empty.complete), (1, true));
    for name in ["a", "b", "c"] {
        bench.write_into_copy(&handle("full"), name, &[1; 10_000]);
    }
    let full = bench.wait(copies.usage(&handle("full"))).expect("counted");
    assert_eq!((full.used_inodes, full.complete), (4, true));
    assert!(full.used_bytes >= empty.used_bytes + 30_000, "{full:?}, {empty:?}");
    for (name, usage) in [("empty", Some(empty)), ("full", Some(full)), ("h", None)] {
        assert_eq!(copies.measured(&handle(name)).map(|measured| measured.usage), usage, "{name}");
    }
    let counted = copies.counted();
    assert_eq!((counted.copies, counted.unfinished), (2, 0));
    assert_eq!(counted.bytes, full.used_bytes + empty.used_bytes);
}

fn capacity<B: Bench>(bench: &mut B) {
    let capacity = bench.wait(bench.copies().capacity()).expect("told");
    assert!(capacity.total_bytes > 0 && capacity.available_bytes <= capacity.total_bytes, "{capacity:?}");
    assert!(capacity.available_inodes <= capacity.total_inodes, "{capacity:?}");
}

fn examining<B: Bench>(bench: &mut B) {
    let copies = bench.copies();
    let missing = bench.wait(copies.examine(&handle("h"))).expect("the store is examined all the same");
    assert_eq!(missing.copy, None);
    let identity = bench.copy("h");
    bench.write_into_copy(&handle("h"), "file", b"data");
    let examined = bench.wait(copies.examine(&handle("h"))).expect("examined");
    assert_eq!((examined.copy, examined.store_device), (Some(identity), identity.device));
    assert_eq!((missing.store_device, examined.read_only), (identity.device, false));
    let capacity = bench.wait(copies.capacity()).expect("told");
    let totals = |of: Capacity| (of.total_bytes, of.total_inodes);
    assert_eq!(totals(examined.capacity), totals(capacity));
    assert!(examined.capacity.available_bytes <= capacity.total_bytes, "{examined:?}");
    bench.put_stranger_file("file");
    bench.put_stranger_symlink("link");
    for name in ["file", "link"] {
        let stranger = bench.wait(copies.examine(&handle(name))).expect("examined");
        assert_eq!(stranger.copy, None, "{name} is no copy");
    }
}

fn moved_away<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    let was = bench.copy("h");
    bench.move_copy_away(&handle("h"));
    let examine = |bench: &B| bench.wait(bench.copies().examine(&handle("h"))).expect("examined");
    assert_eq!(examine(bench).copy, None);
    let view = bench.look(&target);
    // The double tells it as a copy that was deleted; the kernel, as no place of the store.
    assert!(view.visible().is_none_or(|shown| shown.deleted), "{view:?}");
    let TargetView::Mounted(stack) = view else { panic!("nothing is mounted") };
    assert_eq!((stack.visible, was.device), (was, examine(bench).store_device));
    let fresh = bench.copy("h");
    assert_eq!(examine(bench).copy, Some(fresh));
    assert_ne!(fresh, was);
}

fn restart<B: Bench>(bench: &mut B) {
    let kept = bench.copy("kept");
    bench.copy("gone");
    bench.wait(bench.copies().discard(&handle("gone"), TrashId(4))).expect("discarded");
    bench.restart();
    let copies = bench.copies();
    assert_eq!(bench.wait(copies.find(&handle("kept"))), Ok(Some(kept)));
    assert_eq!(bench.wait(copies.find(&handle("gone"))), Ok(None));
    assert_eq!(bench.wait(copies.trash()), Ok(vec![TrashId(4)]));
    assert_eq!(bench.wait(copies.delete(TrashId(4))), Ok(Deletion::Done));
}
